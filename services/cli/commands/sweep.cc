// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/sweep.h"

#include <chrono>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/sweep_reader.h"
#include "common/sweep/report.h"
#include "services/cli/interrupt.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/sweep.h"
#include "services/cli/render/sweep_html.h"

namespace sextant::cli {
namespace {

using Clock = std::chrono::steady_clock;

absl::StatusOr<sweep::Shard> ParseShard(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  sweep::Shard shard;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &shard.index) &&
      absl::SimpleAtoi(parts[1], &shard.count) && shard.count >= 1 && shard.count <= 1'000'000 &&
      shard.index >= 0 && shard.index < shard.count) {
    return shard;
  }
  base::Violations violations;
  violations.Add("--shard", absl::StrCat("is \"", text.substr(0, 64),
                                         "\" but must be I/N with I from 0 to N-1, for example "
                                         "0/4, 1/4, 2/4 and 3/4"));
  return violations.ToStatus();
}

// Tells a person how far a sweep is: a line a second on a terminal, every ten seconds in a log.
class ProgressNotes {
 public:
  ProgressNotes(const sweep::SweepSpec& spec, Terminal& terminal)
      : spec_(spec), terminal_(terminal), start_(Clock::now()), last_(start_) {}

  void Say(const sweep::Progress& progress) {
    if (progress.improved != nullptr) {
      best_ = absl::StrCat(FormatBest(*progress.improved));
    }
    const Clock::time_point now = Clock::now();
    if (!begun_) {
      begun_ = true;
      terminal_.Note(absl::StrCat("sweeping ", progress.candidate_count, " points"));
    }
    const auto gap = terminal_.err_is_terminal() ? std::chrono::seconds(1) : std::chrono::seconds(10);
    if (now - last_ < gap || progress.done_count == 0) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(progress.done_count) / seconds;
    const double left =
        static_cast<double>(progress.candidate_count - progress.done_count) / rate;
    terminal_.Note(absl::StrFormat(
        "%d of %d points (%.0f %%), %s, %s left%s", progress.done_count, progress.candidate_count,
        100.0 * static_cast<double>(progress.done_count) /
            static_cast<double>(progress.candidate_count),
        FormatRate(rate, "points"), FormatSeconds(left), best_));
  }

 private:
  std::string FormatBest(const sweep::Point& point) const {
    sweep::ReportRow row;
    row.point = point;
    row.settings = spec_.scenarios[point.scenario].settings;
    return absl::StrCat("; best so far ",
                        FormatRate(point.metrics[sweep::Metric::kTokensPerSecond], "tokens"), ": ",
                        RowText(row));
  }

  const sweep::SweepSpec& spec_;
  Terminal& terminal_;
  const Clock::time_point start_;
  Clock::time_point last_;
  std::string best_;
  bool begun_ = false;
};

absl::StatusOr<ExitCode> PrintReport(const CommonOptions& common, const std::string& html_file,
                                     const sweep::SweepReport& report, Terminal& terminal) {
  if (!html_file.empty()) {
    std::ofstream page(html_file, std::ios::binary);
    page << SweepHtml(report);
    page.close();
    if (!page) return absl::InvalidArgumentError(absl::StrCat("cannot write ", html_file));
    terminal.Note(absl::StrCat("wrote the page ", html_file));
  }
  terminal.Print(common.output == "json"  ? SweepJson(report)
                 : common.output == "csv" ? SweepCsv(report)
                                          : SweepText(report));
  if (report.counts.accepted_count > 0 || report.shard.count > 1) return ExitCode::kOk;
  terminal.Error(report.counts.candidate_count == 0
                     ? "the space is empty: no plan of that GPU count is legal"
                     : "no point fits and meets every limit; 'nearest' has the best of the others");
  return ExitCode::kModelSaysNo;
}

absl::StatusOr<sweep::SweepReport> SweepEmbedded(const CommonOptions& common,
                                                 const sweep::SweepSpec& spec,
                                                 const sweep::RunOptions& options,
                                                 const catalog::Catalog& catalog,
                                                 Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
  SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepResult result,
                           sweep::RunSweep(spec, parameters, options));
  return sweep::ReportOf(spec, result, options.shard, parameters);
}

// A sweep takes longer than the usual call.
client::Client SweepServer(const CommonOptions& common, Terminal& terminal) {
  const client::Client client = ConnectedClient(common, terminal);
  return common.timeout_seconds > 0 ? client : client.WithTimeout(std::chrono::hours(1));
}

}  // namespace

absl::StatusOr<ExitCode> RunSweepFile(const CommonOptions& common, const SweepOptions& options,
                                      Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const sweep::Shard shard, ParseShard(options.shard));
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.sweep_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  std::vector<std::string> notes;
  SEXTANT_ASSIGN_OR_RETURN(
      sweep::SweepSpec spec,
      catalog::ReadSweep(text, options.sweep_file == "-" ? "stdin" : options.sweep_file,
                         options.overrides, catalog, &notes));
  for (const std::string& note : notes) terminal.Note(note);
  if (options.top_count.has_value()) {
    spec.summary.top_count = static_cast<size_t>(*options.top_count);
  }
  NoteInterrupts();
  ProgressNotes progress(spec, terminal);
  const auto on_progress = [&](const sweep::Progress& p) {
    progress.Say(p);
    return !Interrupted();
  };
  SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepReport report,
                           common.server.empty()
                               ? SweepEmbedded(common, spec, {.shard = shard,
                                                              .thread_count = options.thread_count,
                                                              .on_progress = on_progress},
                                               catalog, terminal)
                               : SweepServer(common, terminal).Sweep(spec, shard, on_progress));
  SEXTANT_ASSIGN_OR_RETURN(const ExitCode code,
                           PrintReport(common, options.html_file, report, terminal));
  if (report.complete) return code;
  terminal.Error(absl::StrCat("interrupted after ", report.counts.candidate_count,
                              " points; the answer is of those"));
  return ExitCode::kInterrupted;
}

absl::StatusOr<ExitCode> MergeSweeps(const CommonOptions& common,
                                     const std::vector<std::string>& files,
                                     const std::string& html_file, Terminal& terminal) {
  std::vector<sweep::SweepReport> reports;
  base::Violations failures;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = terminal.Read(file);
    absl::StatusOr<sweep::SweepReport> report =
        text.ok() ? ParseSweepJson(*text) : absl::StatusOr<sweep::SweepReport>(text.status());
    if (report.ok()) {
      reports.push_back(*std::move(report));
    } else {
      AddFailure(file, report.status(), &failures);
      code = report.status().code();
    }
  }
  if (!failures.empty()) return failures.ToStatus(code);
  SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepReport merged, sweep::MergeReports(reports));
  if (!merged.complete) {
    terminal.Warn(absl::StrCat("the reports hold ", merged.counts.candidate_count, " of ",
                               merged.whole_candidate_count, " points: a shard is missing"));
  }
  return PrintReport(common, html_file, merged, terminal);
}

}  // namespace sextant::cli
