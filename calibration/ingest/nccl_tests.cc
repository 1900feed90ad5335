// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

struct DataType {
  absl::string_view name;
  int64_t bytes;
};
// Names of nccl-tests and rccl-tests, all versions.
constexpr std::array kDataTypes = {
    DataType{"int8", 1},     DataType{"uint8", 1},    DataType{"char", 1},
    DataType{"int32", 4},    DataType{"uint32", 4},   DataType{"int", 4},
    DataType{"int64", 8},    DataType{"uint64", 8},   DataType{"half", 2},
    DataType{"fp16", 2},     DataType{"float16", 2},  DataType{"float", 4},
    DataType{"double", 8},   DataType{"bf16", 2},     DataType{"bfloat16", 2},
    DataType{"fp8_e4m3", 1}, DataType{"fp8_e5m2", 1}, DataType{"f8e4m3", 1},
    DataType{"f8e5m2", 1},   DataType{"float32", 4}};
constexpr std::array<absl::string_view, 7> kReductions = {"sum", "prod",   "min", "max",
                                                          "avg", "mulsum", "none"};

int64_t DataTypeBytes(absl::string_view name) {
  for (const DataType& type : kDataTypes) {
    if (type.name == name) return type.bytes;
  }
  return 0;
}

bool IsOneOf(absl::string_view word, absl::Span<const absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Index of the word that starts a data row; words.size() where none does.
size_t RowStart(const std::vector<absl::string_view>& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (DataTypeBytes(words[i + 2]) > 0 && ParseCount(words[i]) && ParseCount(words[i + 1])) {
      return i;
    }
  }
  return words.size();
}

// time, algbw, busbw and, with four columns, #wrong.
std::optional<NcclTiming> ReadTiming(absl::Span<const absl::string_view> words) {
  NcclTiming timing;
  const auto time = ParseNumber(words[0]);
  const auto algorithm = ParseNumber(words[1]);
  const auto bus = ParseNumber(words[2]);
  if (!time || !algorithm || !bus || *time < 0) return std::nullopt;
  timing.time_us = *time;
  timing.algorithm_gigabytes_per_second = *algorithm;
  timing.bus_gigabytes_per_second = *bus;
  if (words.size() > 3) {
    timing.wrong_count = ParseNumber(words[3]);
    if (!timing.wrong_count && !absl::EqualsIgnoreCase(words[3], "N/A")) return std::nullopt;
  }
  return timing;
}

// The columns behind size, count and type; false where they are not those of a row.
bool ReadColumns(absl::Span<const absl::string_view> words, NcclTestsRow* row) {
  if (!words.empty() && IsOneOf(words[0], kReductions)) {
    row->reduction = std::string(words[0]);
    words.remove_prefix(1);
  }
  // Without root 8, 6 or 4 columns are left, with it one more.
  const size_t left = words.size();
  if (left == 9 || left == 7 || left == 5) {
    int64_t root = 0;
    if (!absl::SimpleAtoi(words[0], &root)) return false;
    if (root >= 0) row->root = root;
    words.remove_prefix(1);
  } else if (left != 8 && left != 6 && left != 4) {
    return false;
  }
  const bool both = words.size() >= 6;
  const size_t width = both ? words.size() / 2 : words.size();
  row->out_of_place = ReadTiming(words.subspan(0, width));
  if (!row->out_of_place) return false;
  if (both) row->in_place = ReadTiming(words.subspan(width));
  // A cut row of eight columns may look like one of six: its count of errors stands as a time.
  const bool shifted = width == 3 && row->in_place && row->in_place->time_us == 0;
  return !both || (row->in_place.has_value() && !shifted);
}

// Printed bandwidths are bytes over time; where they are not, the line is no row.
bool Contradicts(int64_t bytes, const NcclTiming& timing) {
  if (timing.time_us <= 0) return false;
  const double expected = static_cast<double>(bytes) / timing.time_us * 1e-3;
  // Two printed digits behind the point, and times of two or three digits.
  return std::abs(expected - timing.algorithm_gigabytes_per_second) > 0.011 + 0.03 * expected;
}

std::string RefusalOf(const NcclTestsRow& row) {
  if (row.bytes == 0) return "moves no bytes";
  for (const auto& timing : {row.out_of_place, row.in_place}) {
    if (!timing) continue;
    if (!(timing->time_us > 0)) return "no time was measured";
    if (timing->wrong_count.value_or(0) > 0) return "failed its validation: #wrong is above 0";
    if (Contradicts(row.bytes, *timing)) return "time and bandwidth contradict each other";
  }
  return "";
}

// The row with the highest bandwidth: there the printed digits say most.
const NcclTestsRow* Fastest(const NcclTestsRun& run) {
  const NcclTestsRow* best = nullptr;
  for (const NcclTestsRow& row : run.rows) {
    if (!row.refusal.empty() || !row.out_of_place) continue;
    if (best == nullptr || row.out_of_place->algorithm_gigabytes_per_second >
                               best->out_of_place->algorithm_gigabytes_per_second) {
      best = &row;
    }
  }
  return best;
}

// busbw / algbw is 0 for one rank: all factors of nccl-tests have (ranks - 1) or are 1.
bool IsOneRank(const NcclTestsRun& run) {
  if (run.rank_count) return *run.rank_count == 1;
  const NcclTestsRow* row = Fastest(run);
  return row != nullptr && row->out_of_place->algorithm_gigabytes_per_second >= 1 &&
         row->out_of_place->bus_gigabytes_per_second == 0;
}

struct Shape {
  bool reduces = false;
  bool rooted = false;
  double ratio = 0;   // bytes over (count x element): ranks where the count is per rank, else 1
  double factor = 0;  // busbw over algbw; 0: not readable
  bool in_place_unchecked = false;  // out of place validated, in place "N/A": all-to-all prints so
};

Shape ShapeOf(const NcclTestsRow& row) {
  Shape shape;
  shape.reduces = !row.reduction.empty() && row.reduction != "none";
  shape.rooted = row.root.has_value();
  shape.ratio = static_cast<double>(row.bytes) /
                (static_cast<double>(std::max<int64_t>(row.element_count, 1)) *
                 static_cast<double>(DataTypeBytes(row.data_type)));
  const NcclTiming& timing = *row.out_of_place;
  if (timing.algorithm_gigabytes_per_second >= 1) {
    shape.factor = timing.bus_gigabytes_per_second / timing.algorithm_gigabytes_per_second;
  }
  shape.in_place_unchecked =
      timing.wrong_count.has_value() && row.in_place && !row.in_place->wrong_count;
  return shape;
}

// What only one collective of nccl-tests prints; empty where several do.
std::string DeriveCollective(const Shape& shape, bool blank_reduction_column,
                             absl::string_view name_hint) {
  const bool per_rank = shape.ratio > 1.5;
  if (shape.reduces) {
    if (shape.rooted) return "reduce";
    return per_rank ? "reduce_scatter" : "all_reduce";
  }
  const bool whole = shape.factor > 0.999 && shape.factor < 1.001;
  if (shape.rooted) return whole && !per_rank ? "broadcast" : "";
  if (whole && !per_rank) return "send_recv";
  if (blank_reduction_column || shape.in_place_unchecked) return "all_to_all";
  const std::string hinted = CollectiveNamed(name_hint);
  return hinted == "all_gather" || hinted == "all_to_all" ? hinted : "";
}

std::optional<int64_t> DeriveRankCount(const Shape& shape, const NcclTestsRow& row,
                                       absl::string_view collective) {
  if (shape.ratio > 1.5) {
    const double ranks = std::round(shape.ratio);
    if (std::abs(shape.ratio - ranks) < 1e-6 * ranks && ranks < 1e7) {
      return static_cast<int64_t>(ranks);
    }
    return std::nullopt;
  }
  if (collective != "all_reduce" || shape.factor < 1 || shape.factor >= 2) return std::nullopt;
  // factor = 2 (n - 1) / n; both bandwidths are rounded to 0.005.
  const NcclTiming& timing = *row.out_of_place;
  const double error = shape.factor * (0.005 / timing.algorithm_gigabytes_per_second +
                                       0.005 / timing.bus_gigabytes_per_second);
  if (shape.factor + error >= 2) return std::nullopt;
  const double low = 2 / (2 - (shape.factor - error));
  const double high = 2 / (2 - (shape.factor + error));
  const double ranks = std::round(2 / (2 - shape.factor));
  // Exactly one whole number may lie between the two.
  if (low <= ranks - 0.999 || high >= ranks + 0.999 || ranks < 2) return std::nullopt;
  return static_cast<int64_t>(ranks);
}

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view hint) : lines_(text), hint_(hint) {}

  NcclTestsReading Read() {
    while (lines_.Next()) ReadLine(lines_.line());
    FinishRun();
    return std::move(reading_);
  }

 private:
  void ReadLine(absl::string_view line) {
    const std::vector<absl::string_view> words = Words(line);
    if (const size_t start = RowStart(words); start < words.size()) {
      ReadRow(line, absl::MakeConstSpan(words).subspan(start));
      return;
    }
    ReadHeader(line, words);
  }

  void ReadRow(absl::string_view line, absl::Span<const absl::string_view> words) {
    NcclTestsRow row;
    row.line = lines_.number();
    row.bytes = *ParseCount(words[0]);
    row.element_count = *ParseCount(words[1]);
    row.data_type = std::string(words[2]);
    if (!ReadColumns(words.subspan(3), &row)) {
      reading_.refusals.Add("line is cut or glued to another", row.line, line);
      return;
    }
    // Ranks that print the same row print it to the last digit; two measurements do not.
    if (!seen_.insert(absl::StrJoin(words, " ")).second && row.bytes > 0) {
      reading_.refusals.Add("is a copy of a row before it", row.line, line);
      return;
    }
    if (row_count_ >= kNcclRowLimit) {
      reading_.refusals.Add(absl::StrCat("stands behind the first ", kNcclRowLimit, " rows"),
                            row.line, line);
      return;
    }
    ++row_count_;
    row.refusal = RefusalOf(row);
    if (!row.refusal.empty()) reading_.refusals.Add(row.refusal, row.line, line);
    run_.rows.push_back(std::move(row));
  }

  void ReadHeader(absl::string_view line, const std::vector<absl::string_view>& words) {
    if (absl::StrContains(line, "Collective test starting") ||
        (absl::StrContains(line, "nThread ") && absl::StrContains(line, "nGpus")) ||
        absl::StrContains(line, "Using devices")) {
      StartRun();
    }
    if (absl::StrContains(line, "algbw") && absl::StrContains(line, "busbw")) {
      StartRun();
      reduction_column_ = absl::StrContains(line, "redop");
      return;
    }
    if (absl::StrContains(line, "_perf")) {
      StartRun();
      if (std::string named = CollectiveNamed(line); !named.empty()) {
        run_.collective = std::move(named);
      }
    }
    ReadDevice(line, words);
    ReadVersion(line);
    if (const size_t at = line.find("Avg bus bandwidth"); at != absl::string_view::npos) {
      const size_t colon = line.find(':', at);
      if (colon != absl::string_view::npos) {
        run_.average_bus_gigabytes_per_second = LeadingNumber(line.substr(colon + 1));
      }
    }
    if (run_.origin.time.empty()) run_.origin.time = FindTimeStamp(line);
  }

  // "#  Rank  3 Group  0 Pid   6902 on node-1 device  3 [0000:0c:00] NVIDIA H100 80GB HBM3"
  void ReadDevice(absl::string_view line, const std::vector<absl::string_view>& words) {
    size_t at = 0;
    while (at < words.size() && words[at] != "Rank") ++at;
    if (at + 1 >= words.size()) return;
    const auto rank = ParseCount(words[at + 1]);
    const size_t bracket = line.find(']');
    if (!rank || bracket == absl::string_view::npos || !absl::StrContains(line, " device ")) return;
    if (!run_.rows.empty()) StartRun();
    ranks_.insert(*rank);
    for (size_t i = at; i + 2 < words.size(); ++i) {
      if (words[i] == "on" && words[i + 2] == "device") hosts_.insert(std::string(words[i + 1]));
    }
    // A second bus number may follow; the name is what stands behind the last bracket.
    const size_t last = line.rfind(']');
    if (run_.origin.device.empty()) {
      run_.origin.device = std::string(absl::StripAsciiWhitespace(line.substr(last + 1)));
    }
  }

  void ReadVersion(absl::string_view line) {
    for (absl::string_view label : {"NCCL version", "RCCL version"}) {
      const size_t at = line.find(label);
      if (at == absl::string_view::npos) continue;
      absl::string_view rest = line.substr(at + label.size());
      const size_t start = rest.find_first_of("0123456789");
      if (start == absl::string_view::npos || start > 4) continue;
      rest.remove_prefix(start);
      rest = rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size()));
      if (absl::StrContains(rest, ".")) {
        version_ = absl::StrCat(label.substr(0, 4), " ", rest.substr(0, 32));
      }
    }
    // "nccl-library=22703" is 2.27.3 (nccl.h: major x 10000 + minor x 100 + patch, from 2.9 on).
    const size_t at = line.find("nccl-library=");
    if (at == absl::string_view::npos) return;
    const auto code = LeadingNumber(line.substr(at + 13));
    if (code && *code >= 20900 && *code < 1e6) {
      const auto number = static_cast<int64_t>(*code);
      version_ = absl::StrCat("NCCL ", number / 10000, ".", number / 100 % 100, ".", number % 100);
    }
  }

  // What follows belongs to another table, if the current one has rows.
  void StartRun() {
    if (run_.rows.empty()) return;
    FinishRun();
    run_ = NcclTestsRun();
    ranks_.clear();
    hosts_.clear();
    reduction_column_ = false;
  }

  void FinishRun() {
    if (run_.rows.empty()) return;
    run_.origin.software = version_;
    if (!ranks_.empty()) {
      run_.rank_count = static_cast<int64_t>(ranks_.size());
      if (!hosts_.empty()) run_.node_count = static_cast<int64_t>(hosts_.size());
    }
    if (IsOneRank(run_)) {
      for (NcclTestsRow& row : run_.rows) {
        if (!row.refusal.empty()) continue;
        row.refusal = "one rank: nothing was communicated";
        reading_.refusals.Add(row.refusal, row.line);
      }
    }
    Derive();
    reading_.runs.push_back(std::move(run_));
    run_ = NcclTestsRun();
  }

  void Derive() {
    const NcclTestsRow* row = Fastest(run_);
    if (row == nullptr) return;
    const Shape shape = ShapeOf(*row);
    if (run_.collective.empty()) {
      const bool blank = reduction_column_ && row->reduction.empty();
      run_.collective = DeriveCollective(shape, blank, hint_);
      if (!run_.collective.empty()) {
        run_.collective_note = "collective not named: told by the columns of the table";
      }
    }
    if (!run_.rank_count) {
      run_.derived_rank_count = DeriveRankCount(shape, *row, run_.collective);
    }
  }

  LineReader lines_;
  absl::string_view hint_;
  NcclTestsReading reading_;
  NcclTestsRun run_;
  std::set<int64_t> ranks_;
  std::set<std::string> hosts_;
  absl::flat_hash_set<std::string> seen_;
  std::string version_;
  bool reduction_column_ = false;
  size_t row_count_ = 0;
};

}  // namespace

std::string CollectiveNamed(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text.substr(0, 4096));
  struct Name {
    absl::string_view spelled;
    absl::string_view collective;
  };
  // Longer names first: "reduce" is part of "all_reduce".
  constexpr std::array kNames = {Name{"reduce_scatter", "reduce_scatter"},
                                 Name{"reducescatter", "reduce_scatter"},
                                 Name{"reduce-scatter", "reduce_scatter"},
                                 Name{"all_reduce", "all_reduce"},
                                 Name{"allreduce", "all_reduce"},
                                 Name{"all-reduce", "all_reduce"},
                                 Name{"all_gather", "all_gather"},
                                 Name{"allgather", "all_gather"},
                                 Name{"all-gather", "all_gather"},
                                 Name{"alltoall", "all_to_all"},
                                 Name{"all_to_all", "all_to_all"},
                                 Name{"all2all", "all_to_all"},
                                 Name{"all-to-all", "all_to_all"},
                                 Name{"sendrecv", "send_recv"},
                                 Name{"send_recv", "send_recv"},
                                 Name{"broadcast", "broadcast"},
                                 Name{"reduce_perf", "reduce"},
                                 Name{"gather_perf", "gather"},
                                 Name{"scatter_perf", "scatter"},
                                 Name{"hypercube", "hypercube"}};
  for (const Name& name : kNames) {
    if (absl::StrContains(lower, name.spelled)) return std::string(name.collective);
  }
  return "";
}

bool IsNcclTestsRow(absl::string_view line) {
  const std::vector<absl::string_view> words = Words(line);
  const size_t start = RowStart(words);
  NcclTestsRow row;
  return start < words.size() && ReadColumns(absl::MakeConstSpan(words).subspan(start + 3), &row);
}

NcclTestsReading ReadNcclTests(absl::string_view text, absl::string_view name_hint) {
  return Reader(text, name_hint).Read();
}

}  // namespace sextant::ingest
