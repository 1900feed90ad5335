// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/nsys.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

enum class Column : int {
  kShare,
  kTotal,
  kInstances,
  kMean,
  kMedian,
  kMinimum,
  kMaximum,
  kDeviation,
  kName,
  kOther
};

struct Header {
  std::vector<Column> columns;
  std::vector<double> seconds_per_unit;  // of the columns that are times
  bool csv = true;
  std::string refusal;  // why the rows are no kernels; empty: they are
};

// Fields of one CSV line; quotes as RFC 4180, and as far as they go where one is not closed.
std::vector<std::string> CsvFields(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back().push_back(c);
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back().push_back('"');
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  return fields;
}

// Pieces between runs of two and more blanks: the header of the column output.
std::vector<std::string> WideFields(absl::string_view line) {
  std::vector<std::string> fields;
  line = absl::StripAsciiWhitespace(line);
  while (!line.empty()) {
    const size_t end = std::min(line.find("  "), line.size());
    fields.emplace_back(line.substr(0, end));
    line = absl::StripLeadingAsciiWhitespace(line.substr(end));
  }
  return fields;
}

Column ColumnOf(const std::string& key) {
  if (absl::StartsWith(key, "time") && (key == "time" || key == "time_percent")) {
    return Column::kShare;
  }
  if (absl::StartsWith(key, "total_time")) return Column::kTotal;
  if (key == "instances") return Column::kInstances;
  if (absl::StartsWith(key, "avg") || absl::StartsWith(key, "average")) return Column::kMean;
  if (absl::StartsWith(key, "med")) return Column::kMedian;
  if (absl::StartsWith(key, "min")) return Column::kMinimum;
  if (absl::StartsWith(key, "max")) return Column::kMaximum;
  if (absl::StartsWith(key, "stddev")) return Column::kDeviation;
  if (key == "name" || key == "kernel_name") return Column::kName;
  return Column::kOther;
}

double UnitOf(absl::string_view label) {
  const size_t open = label.find('(');
  const size_t close = label.find(')');
  if (open != absl::string_view::npos && close != absl::string_view::npos && close > open) {
    const auto unit = SecondsPerUnit(label.substr(open + 1, close - open - 1));
    if (unit) return *unit;
  }
  return 1e-9;  // older headers leave it out; nsys counts in nanoseconds
}

// A header of any report of nsys stats; nothing for another line.
std::optional<Header> ReadHeaderLine(absl::string_view line) {
  if (!absl::StrContains(line, "Time") || !absl::StrContains(line, "Total Time")) {
    return std::nullopt;
  }
  Header header;
  header.csv = absl::StrContains(line, ",");
  const std::vector<std::string> labels = header.csv ? CsvFields(line) : WideFields(line);
  bool has_total = false;
  bool has_instances = false;
  bool has_name = false;
  std::string other;
  for (const std::string& label : labels) {
    const std::string key = KeyOf(absl::StripAsciiWhitespace(label));
    const Column column = ColumnOf(key);
    header.columns.push_back(column);
    header.seconds_per_unit.push_back(UnitOf(label));
    has_total = has_total || column == Column::kTotal;
    has_instances = has_instances || column == Column::kInstances;
    has_name = has_name || column == Column::kName;
    if (key == "range" || key == "operation" || key == "num_calls" || key == "style") other = key;
  }
  if (!has_total || labels.size() < 4) return std::nullopt;
  if (other == "num_calls") {
    header.refusal = "is a call of the host, not a kernel";
  } else if (other == "range" || other == "style") {
    header.refusal = "is an annotated range, not a kernel";
  } else if (other == "operation") {
    header.refusal = "is a memory operation, not a kernel";
  } else if (!has_name || !has_instances) {
    header.refusal = "stands in a table that is no kernel summary";
  }
  return header;
}

bool IsCutName(absl::string_view name) {
  return absl::EndsWith(name, "\xE2\x80\xA6") || absl::EndsWith(name, "...");
}

class Reader {
 public:
  explicit Reader(absl::string_view text) : lines_(text) {}

  NsysReading Read() {
    while (lines_.Next()) ReadLine(lines_.line());
    double share = 0;
    bool all_shares = !reading_.kernels.empty();
    for (const NsysKernel& kernel : reading_.kernels) {
      share += kernel.share_percent.value_or(0);
      all_shares = all_shares && kernel.share_percent.has_value();
    }
    // Shares are rounded to 0.1.
    const double rounding = 0.05 * static_cast<double>(reading_.kernels.size()) + 0.1;
    if (all_shares && share + rounding < 99.5) reading_.complete = false;
    return std::move(reading_);
  }

 private:
  void ReadLine(absl::string_view line) {
    const absl::string_view bare = absl::StripAsciiWhitespace(line);
    if (const size_t at = bare.find("(cuda_");
        absl::StartsWith(bare, "**") && at != absl::string_view::npos) {
      const size_t close = std::min(bare.find(')', at), bare.size());
      report_ = std::string(bare.substr(at + 1, close - at - 1));
    }
    if (auto header = ReadHeaderLine(line)) {
      header_ = std::move(*header);
      in_table_ = true;
      if (header_.refusal.empty() && reading_.report.empty()) reading_.report = report_;
      return;
    }
    if (!in_table_ || bare.empty()) return;
    if (bare == "..." || bare == "\xE2\x80\xA6") {
      if (header_.refusal.empty()) reading_.complete = false;
      return;
    }
    if (absl::StartsWith(bare, "--")) return;
    if (absl::StartsWith(bare, "**") || absl::StartsWith(bare, "Processing") ||
        absl::StartsWith(bare, "SKIPPED")) {
      in_table_ = false;
      return;
    }
    ReadRow(line);
  }

  // The fields of a row; the last column takes what is left in the column output.
  std::vector<std::string> Fields(absl::string_view line) const {
    if (header_.csv) return CsvFields(line);
    std::vector<std::string> fields;
    line = absl::StripAsciiWhitespace(line);
    while (fields.size() + 1 < header_.columns.size() && !line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      fields.emplace_back(line.substr(0, end));
      line = absl::StripLeadingAsciiWhitespace(line.substr(end));
    }
    if (!line.empty()) fields.emplace_back(line);
    return fields;
  }

  void ReadRow(absl::string_view line) {
    const std::vector<std::string> fields = Fields(line);
    const int64_t number = lines_.number();
    if (!header_.refusal.empty()) {
      if (fields.size() > 1) reading_.refusals.Add(header_.refusal, number, line);
      return;
    }
    NsysKernel kernel;
    if (fields.size() != header_.columns.size() || !ReadFields(fields, &kernel)) {
      reading_.refusals.Add("line is cut or not a row of the table", number, line);
      return;
    }
    if (kernel.instance_count == 0 || !(kernel.total_seconds > 0)) {
      reading_.refusals.Add("ran no time", number, line);
      return;
    }
    if (kernel.mean_seconds &&
        std::abs(*kernel.mean_seconds * static_cast<double>(kernel.instance_count) -
                 kernel.total_seconds) > 0.02 * kernel.total_seconds + 1e-7) {
      reading_.refusals.Add("total and mean contradict each other", number, line);
      return;
    }
    if (!seen_.insert(absl::StrJoin(fields, ",")).second) {
      reading_.refusals.Add("is a copy of a row before it", number, line);
      return;
    }
    if (reading_.kernels.size() >= kNsysKernelLimit) {
      reading_.complete = false;
      reading_.refusals.Add(absl::StrCat("stands behind the first ", kNsysKernelLimit, " kernels"),
                            number, line);
      return;
    }
    reading_.kernels.push_back(std::move(kernel));
  }

  bool ReadFields(const std::vector<std::string>& fields, NsysKernel* kernel) const {
    bool has_total = false;
    bool has_count = false;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Column column = header_.columns[i];
      if (column == Column::kOther) continue;
      if (column == Column::kName) {
        kernel->name = std::string(absl::StripAsciiWhitespace(fields[i]));
        kernel->name_is_cut = IsCutName(kernel->name);
        kernel->is_communication = IsCommunicationKernel(kernel->name);
        continue;
      }
      if (column == Column::kInstances) {
        const auto count = ParseCount(fields[i]);
        if (!count) return false;
        kernel->instance_count = *count;
        has_count = true;
        continue;
      }
      const auto number =
          ParseNumber(absl::StripSuffix(absl::StripAsciiWhitespace(fields[i]), "%"));
      if (column == Column::kShare) {
        kernel->share_percent = number;
        continue;
      }
      if (column == Column::kTotal) {
        if (!number || *number < 0) return false;
        kernel->total_seconds = *number * header_.seconds_per_unit[i];
        has_total = true;
        continue;
      }
      if (number) *Statistic(column, kernel) = *number * header_.seconds_per_unit[i];
    }
    return has_total && has_count && !kernel->name.empty();
  }

  static std::optional<double>* Statistic(Column column, NsysKernel* kernel) {
    switch (column) {
      case Column::kMean:
        return &kernel->mean_seconds;
      case Column::kMedian:
        return &kernel->median_seconds;
      case Column::kMinimum:
        return &kernel->minimum_seconds;
      case Column::kMaximum:
        return &kernel->maximum_seconds;
      default:
        return &kernel->deviation_seconds;
    }
  }

  LineReader lines_;
  NsysReading reading_;
  Header header_;
  bool in_table_ = false;
  std::string report_;
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

bool IsNsysKernelHeader(absl::string_view line) {
  const auto header = ReadHeaderLine(line);
  return header && header->refusal.empty();
}

bool IsCommunicationKernel(absl::string_view name) {
  // "ncclDevKernel_AllReduce_...", "ncclKernel_SendRecv_...", "void ncclKernel<...>"; RCCL keeps
  // the names.
  const std::string start = absl::AsciiStrToLower(name.substr(0, 64));
  return absl::StrContains(start, "nccldevkernel") || absl::StrContains(start, "ncclkernel") ||
         absl::StrContains(start, "rcclkernel") || absl::StrContains(start, "rccl_");
}

NsysReading ReadNsys(absl::string_view text) { return Reader(text).Read(); }

}  // namespace sextant::ingest
