// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/size_serving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;

// From this share of capacity on latencies are bounds (common/serving).
constexpr double kLargestLoad = 0.95;

struct Layout {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t Gpus() const { return tensor * pipeline; }
};

Job WithLayout(const Job& job, const Layout& layout, int64_t replicas) {
  Job sized = job;
  sized.plan.tensor_parallel_size = layout.tensor;
  sized.plan.pipeline_parallel_size = layout.pipeline;
  sized.plan.expert_parallel_size = job.plan.expert_parallel_size > 1 ? layout.tensor : 1;
  sized.plan.data_parallel_size = replicas;
  sized.gpu_count = layout.Gpus() * replicas;
  return sized;
}

// Tokens that the cache must hold for the longest request alone.
int64_t LongestRequest(const Job& job) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  return std::llround(static_cast<double>(work.prompt_tokens + work.output_tokens) *
                      (1 + job.serving->length_spread));
}

// The largest ratio of what nine of ten requests see to its limit; at least that of the load to
// what a fleet may carry. At most 1: all limits are met.
double WorstRatio(const serving::ServingLoad& load, const serving::ServingReport& report,
                  std::string* what) {
  double worst = report.load_fraction.value_or(0) / kLargestLoad;
  *what = absl::StrFormat("the load is %.0f %% of the capacity of %.4g requests a second",
                          100 * report.load_fraction.value_or(0),
                          report.capacity_requests_per_second.value_or(0));
  const auto compare = [&](double seconds, double limit, const char* name) {
    if (limit <= 0 || seconds / limit <= worst) return;
    worst = seconds / limit;
    *what = absl::StrFormat("%s of nine of ten requests is %.4g s, %.2f times the limit of %.4g s",
                            name, seconds, worst, limit);
  };
  compare(report.time_to_first_token_seconds.p90, load.time_to_first_token_limit_seconds,
          "the time to the first token");
  compare(report.inter_token_latency_seconds.p90, load.inter_token_latency_limit_seconds,
          "the time between tokens");
  // Requests that can never be served are no matter of size, but of capacity for each.
  if (report.completed_request_count == 0) return std::numeric_limits<double>::infinity();
  return worst;
}

class Search {
 public:
  Search(const Job& job, int64_t max_gpu_count, OperatorCostPort& operator_cost,
         NetworkTimePort& network_time)
      : job_(job),
        max_gpu_count_(max_gpu_count),
        operator_cost_(operator_cost),
        network_time_(network_time) {}

  absl::StatusOr<ServingSize> Run() {
    SEXTANT_ASSIGN_OR_RETURN(const auto set, operator_cost_.CurrentParameters());
    const FrameworkParameters<double> parameters = ParametersOf(*set, job_);
    absl::Status wrong = absl::OkStatus();
    bool valid = false;
    for (const Layout& layout : Layouts()) {
      const Job one = WithLayout(job_, layout, 1);
      const absl::Status status = workload::ValidateJob(one);
      if (!status.ok()) {
        if (wrong.ok()) wrong = status;  // of the smallest layout
        continue;
      }
      valid = true;
      if (KvCacheCapacityTokens(one, parameters.memory) < LongestRequest(one)) continue;
      SEXTANT_RETURN_IF_ERROR(Try(layout));
    }
    if (!valid) return wrong;
    if (!best_.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no replica of at most ", max_gpu_count_, " GPUs of ", job_.cluster.accelerator.name,
          " holds the weights of ", job_.model.name, " and the cache of its longest request (",
          LongestRequest(job_), " tokens); allow more GPUs, fewer bits or shorter requests"));
    }
    best_->evaluated_count = evaluated_count_;
    return *std::move(best_);
  }

 private:
  std::vector<Layout> Layouts() const {
    std::vector<Layout> layouts;
    for (int64_t tensor = 1;
         tensor <= std::min<int64_t>(job_.cluster.gpus_per_node, max_gpu_count_); tensor *= 2) {
      for (int64_t pipeline = 1; tensor * pipeline <= max_gpu_count_; pipeline *= 2) {
        if (pipeline <= job_.model.layer_count) layouts.push_back({tensor, pipeline});
      }
    }
    return layouts;
  }

  struct Tried {
    Job job;
    Prediction prediction;
    double ratio = 0;
    std::string what;
  };
  absl::StatusOr<Tried> Evaluate(const Layout& layout, int64_t replicas) {
    Tried tried{.job = WithLayout(job_, layout, replicas)};
    SEXTANT_ASSIGN_OR_RETURN(tried.prediction, Predict(tried.job, operator_cost_, network_time_));
    tried.ratio = WorstRatio(*job_.serving, *tried.prediction.serving, &tried.what);
    ++evaluated_count_;
    return tried;
  }

  // The fewest replicas of a layout that meet the limits, or as many as are allowed. More replicas
  // are never worse, so that halving finds them.
  absl::Status Try(const Layout& layout) {
    int64_t high = max_gpu_count_ / layout.Gpus();
    // No more than what already answers can be better.
    if (best_.has_value() && best_->meets_limits) {
      high = std::min(high, best_->job.gpu_count / layout.Gpus());
    }
    if (high < 1) return absl::OkStatus();
    SEXTANT_ASSIGN_OR_RETURN(Tried most, Evaluate(layout, high));
    Keep(most);
    if (most.ratio > 1) return absl::OkStatus();
    int64_t low = 0;  // too few
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      SEXTANT_ASSIGN_OR_RETURN(Tried tried, Evaluate(layout, middle));
      if (tried.ratio <= 1) {
        high = middle;
        Keep(tried);
      } else {
        low = middle;
      }
    }
    return absl::OkStatus();
  }

  void Keep(const Tried& tried) {
    const bool meets = tried.ratio <= 1;
    if (best_.has_value()) {
      if (best_->meets_limits && !meets) return;
      if (best_->meets_limits == meets) {
        const int64_t gpus = best_->job.gpu_count;
        const bool better =
            meets ? std::pair(tried.job.gpu_count, tried.ratio) < std::pair(gpus, best_ratio_)
                  : tried.ratio < best_ratio_;
        if (!better) return;
      }
    }
    best_ = ServingSize{.meets_limits = meets,
                        .job = tried.job,
                        .prediction = tried.prediction,
                        .reason = meets ? "" : tried.what};
    best_ratio_ = tried.ratio;
  }

  const Job& job_;
  const int64_t max_gpu_count_;
  OperatorCostPort& operator_cost_;
  NetworkTimePort& network_time_;
  std::optional<ServingSize> best_;
  double best_ratio_ = 0;
  int64_t evaluated_count_ = 0;
};

}  // namespace

absl::StatusOr<ServingSize> SizeServing(const Job& job, int64_t max_gpu_count,
                                        OperatorCostPort& operator_cost,
                                        NetworkTimePort& network_time) {
  if (job.IsTraining() || !job.serving.has_value() ||
      job.serving->arrival != serving::Arrival::kPoisson) {
    return absl::InvalidArgumentError(
        "serving.arrival: must be poisson with requests_per_second; the size follows from a rate");
  }
  if (max_gpu_count < 1 || max_gpu_count > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_gpu_count: is ", max_gpu_count, " but must be between 1 and 4096"));
  }
  return Search(job, max_gpu_count, operator_cost, network_time).Run();
}

}  // namespace sextant::orchestrator
