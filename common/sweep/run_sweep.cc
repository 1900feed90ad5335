// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/run_sweep.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/sweep/evaluate.h"
#include "oneapi/tbb/enumerable_thread_specific.h"
#include "oneapi/tbb/info.h"
#include "oneapi/tbb/parallel_pipeline.h"
#include "oneapi/tbb/task_arena.h"

namespace sextant::sweep {
namespace {

// Points that one task evaluates: some milliseconds of work.
constexpr int64_t kBlockCount = 1024;
constexpr size_t kMaxViolations = 100;  // of scenarios, which mostly repeat each other

struct Block {
  uint32_t scenario = 0;
  Cell cell;
  int64_t begin = 0;  // of the cell's layouts
  int64_t end = 0;
  uint64_t first_id = 0;  // of the cell
};

struct Partition {
  std::vector<Block> blocks;
  int64_t candidate_count = 0;  // in them
  int64_t whole_count = 0;      // of all shards
};

Partition BlocksOf(const SweepSpec& spec, const Shard& shard) {
  Partition partition;
  uint64_t id = 0;
  int64_t cell_number = 0;
  for (size_t s = 0; s < spec.scenarios.size(); ++s) {
    const workload::Job& job = spec.scenarios[s].job;
    for (const Cell& cell : EnumerateCells(spec.plan, job)) {
      const int64_t count = CountLayouts(spec.plan, job, cell);
      const bool mine = cell_number++ % shard.count == shard.index;
      for (int64_t begin = 0; mine && begin < count; begin += kBlockCount) {
        partition.blocks.push_back(
            {static_cast<uint32_t>(s), cell, begin, std::min(count, begin + kBlockCount), id});
      }
      if (mine) partition.candidate_count += count;
      id += static_cast<uint64_t>(count);
    }
  }
  partition.whole_count = static_cast<int64_t>(id);
  return partition;
}

// One run: tasks evaluate blocks, a serial end merges them in the order of the space.
class Runner {
 public:
  Runner(const SweepSpec& spec, std::shared_ptr<const parameters::ParameterSet> set,
         const RunOptions& options)
      : spec_(spec),
        options_(options),
        partition_(BlocksOf(spec, options.shard)),
        evaluators_([this, set] { return std::make_unique<Evaluator>(spec_, contexts_, set); }),
        summary_(spec.summary) {
    for (const Scenario& scenario : spec.scenarios) contexts_.push_back(ContextOf(scenario, *set));
  }

  absl::StatusOr<SweepResult> Run() {
    const int threads = options_.thread_count > 0 ? options_.thread_count
                                                  : oneapi::tbb::info::default_concurrency();
    oneapi::tbb::task_arena arena(threads);
    arena.execute([&] { RunPipeline(static_cast<size_t>(threads) * 4); });
    if (!error_.ok()) return error_;
    SweepResult result{.summary = std::move(summary_),
                       .complete = !stopped_.load(),
                       .whole_candidate_count = partition_.whole_count};
    return result;
  }

 private:
  struct Done {
    Summary summary;
    absl::Status status;
  };

  void RunPipeline(size_t tokens) {
    namespace tbb = oneapi::tbb;
    size_t next = 0;
    const auto feed = [&](tbb::flow_control& flow) {
      if (next == partition_.blocks.size() || stopped_) flow.stop();
      return next++;
    };
    const auto work = [this](size_t block) { return Work(partition_.blocks[block]); };
    const auto take = [this](const std::shared_ptr<Done>& done) { Take(*done); };
    tbb::parallel_pipeline(
        tokens,
        tbb::make_filter<void, size_t>(tbb::filter_mode::serial_in_order, feed) &
            tbb::make_filter<size_t, std::shared_ptr<Done>>(tbb::filter_mode::parallel, work) &
            tbb::make_filter<std::shared_ptr<Done>, void>(tbb::filter_mode::serial_in_order, take));
  }

  std::shared_ptr<Done> Work(const Block& block) {
    auto done = std::make_shared<Done>(Done{Summary(spec_.summary), absl::OkStatus()});
    if (stopped_) return done;
    const std::vector<Layout> layouts =
        EnumerateLayouts(spec_.plan, spec_.scenarios[block.scenario].job, block.cell);
    done->status = evaluators_.local()->Evaluate(
        block.scenario,
        absl::MakeConstSpan(layouts).subspan(static_cast<size_t>(block.begin),
                                             static_cast<size_t>(block.end - block.begin)),
        block.first_id + static_cast<uint64_t>(block.begin), done->summary);
    return done;
  }

  void Take(const Done& done) {
    if (!done.status.ok()) {
      if (error_.ok()) error_ = done.status;
      stopped_ = true;
      return;
    }
    summary_.Merge(done.summary);
    if (!options_.on_progress) return;
    const std::vector<Point> top = summary_.Top();
    const bool improved = !top.empty() && (!has_best_ || top.front().id != best_id_);
    if (improved) {
      best_id_ = top.front().id;
      has_best_ = true;
    }
    const Progress progress{.done_count = summary_.counts().candidate_count,
                            .candidate_count = partition_.candidate_count,
                            .predicted_count = summary_.counts().predicted_count,
                            .improved = improved ? &top.front() : nullptr};
    if (!options_.on_progress(progress)) stopped_ = true;
  }

  const SweepSpec& spec_;
  const RunOptions& options_;
  const Partition partition_;
  std::vector<ScenarioContext> contexts_;
  oneapi::tbb::enumerable_thread_specific<std::unique_ptr<Evaluator>> evaluators_;
  std::atomic<bool> stopped_ = false;
  Summary summary_;
  absl::Status error_;
  uint64_t best_id_ = 0;
  bool has_best_ = false;
};

void AddSetting(std::vector<std::string>& settings, absl::string_view path,
                absl::string_view value) {
  settings.push_back(absl::StrCat("plan.", path, "=", value));
}

}  // namespace

absl::Status ValidateSweep(const SweepSpec& spec) {
  base::Violations violations;
  violations.AddStatus("vary", ValidatePlanSpace(spec.plan));
  violations.AddStatus("economics", energy::ValidateEconomics(spec.economics));
  if (spec.scenarios.empty() || spec.scenarios.size() > kMaxScenarios) {
    violations.Add("vary", absl::StrCat("makes ", spec.scenarios.size(),
                                        " combinations outside the plan but must make between 1 "
                                        "and ",
                                        kMaxScenarios));
  }
  for (size_t i = 0; i < spec.scenarios.size() && violations.items().size() < kMaxViolations; ++i) {
    const absl::Status valid = workload::ValidateOpenJob(spec.scenarios[i].job);
    for (const base::Violation& v : base::ViolationsOf(valid)) {
      violations.Add(absl::StrCat("scenarios[", i, "].job.", v.field), v.description);
    }
  }
  for (const Limit& limit : spec.limits) {
    if (std::isfinite(limit.bound)) continue;
    violations.Add(absl::StrCat("limits.", std::string(MetricName(limit.metric))),
                   absl::StrCat("is ", limit.bound, " but must be a finite number"));
  }
  const size_t axes = spec.summary.pareto.size();
  if (axes != 2 && axes != 3) {
    violations.Add("pareto", absl::StrCat("names ", axes, " metrics but must name 2 or 3"));
  }
  return violations.ToStatus();
}

absl::StatusOr<SweepResult> RunSweep(const SweepSpec& spec,
                                     std::shared_ptr<const parameters::ParameterSet> parameters,
                                     const RunOptions& options) {
  SEXTANT_RETURN_IF_ERROR(ValidateSweep(spec));
  const Shard& shard = options.shard;
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", shard.index, " of ", shard.count,
                                                   " must be between 0 and the count minus 1"));
  }
  const std::string version = parameters->version();
  Runner runner(spec, std::move(parameters), options);
  SEXTANT_ASSIGN_OR_RETURN(SweepResult result, runner.Run());
  result.parameter_set = version;
  for (const Scenario& scenario : spec.scenarios) {
    for (std::string& sentence : ExplainExclusions(spec.plan, scenario.job)) {
      if (std::find(result.excluded.begin(), result.excluded.end(), sentence) ==
          result.excluded.end()) {
        result.excluded.push_back(std::move(sentence));
      }
    }
  }
  return result;
}

workload::Job JobOf(const SweepSpec& spec, const Point& point) {
  workload::Job job = spec.scenarios[point.scenario].job;
  point.layout.ApplyTo(job.plan);
  return job;
}

absl::StatusOr<std::vector<Row>> PredictPoints(
    const SweepSpec& spec, const std::vector<Point>& points,
    std::shared_ptr<const parameters::ParameterSet> parameters) {
  orchestrator::LocalOperatorCost operator_cost(parameters);
  orchestrator::LocalNetworkTime network_time(parameters);
  std::vector<Row> rows;
  rows.reserve(points.size());
  for (const Point& point : points) {
    SEXTANT_ASSIGN_OR_RETURN(
        orchestrator::Prediction prediction,
        orchestrator::Predict(JobOf(spec, point), operator_cost, network_time));
    rows.push_back({point, std::move(prediction)});
  }
  return rows;
}

std::vector<std::string> OverridesOf(const SweepSpec& spec, const Point& point) {
  std::vector<std::string> settings;
  for (const auto& [path, value] : spec.scenarios[point.scenario].settings) {
    settings.push_back(absl::StrCat(path, "=", value));
  }
  const Layout& l = point.layout;
  AddSetting(settings, "tensor_parallel_size", absl::StrCat(l.tensor));
  AddSetting(settings, "sequence_parallel", l.sequence_parallel != 0 ? "true" : "false");
  AddSetting(settings, "pipeline_parallel_size", absl::StrCat(l.pipeline));
  AddSetting(settings, "virtual_pipeline_size", absl::StrCat(l.chunks));
  AddSetting(settings, "context_parallel_size", absl::StrCat(l.context));
  AddSetting(settings, "expert_parallel_size", absl::StrCat(l.expert));
  AddSetting(settings, "data_parallel_size", absl::StrCat(l.data));
  AddSetting(settings, "micro_batch_size", absl::StrCat(l.micro_batch));
  AddSetting(settings, "zero_stage", absl::StrCat(l.zero));
  AddSetting(settings, "schedule",
             workload::PipelineScheduleName(static_cast<workload::PipelineSchedule>(l.schedule)));
  AddSetting(settings, "recompute",
             workload::RecomputeName(static_cast<workload::Recompute>(l.recompute)));
  return settings;
}

}  // namespace sextant::sweep
