// SPDX-License-Identifier: Apache-2.0
#include "calibration/evaluate/validate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/evaluate/assumed_plan.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"

namespace sextant::calibration {
namespace {

// A port that failed as a whole, not because of what it was asked.
bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsInternal(status);
}

std::string OneLine(const absl::Status& status) {
  return absl::StrReplaceAll(status.message(), {{"\n", "; "}});
}

ValidationRow StartRow(const RowFacts& facts, absl::string_view kind, absl::string_view metric) {
  ValidationRow row;
  row.id = facts.id;
  row.kind = std::string(kind);
  row.metric = std::string(metric);
  row.suite = facts.suite;
  row.family = facts.family;
  row.source = facts.source;
  row.accelerator = facts.accelerator;
  row.quality = facts.quality;
  row.counted = facts.counted;
  row.warnings = facts.warnings;
  if (!facts.refusal.empty()) {
    row.status = RowStatus::kRefused;
    row.reason = facts.refusal;
  } else if (!facts.skip_reason.empty()) {
    row.status = RowStatus::kSkipped;
    row.reason = facts.skip_reason;
  }
  return row;
}

void Refuse(const absl::Status& status, ValidationRow* row) {
  row->status = RowStatus::kRefused;
  row->reason = OneLine(status);
}

void SetPrediction(double seconds, double low, double high, ValidationRow* row) {
  if (!std::isfinite(seconds) || seconds < 0) {
    Refuse(absl::InternalError(absl::StrCat("the prediction is ", seconds, " seconds")), row);
    return;
  }
  row->predicted_seconds = seconds;
  if (std::isfinite(low) && std::isfinite(high)) {
    row->interval_low_seconds = low;
    row->interval_high_seconds = high;
  }
  if (row->measured_seconds && *row->measured_seconds > 0) {
    row->error_percent = 100 * (seconds / *row->measured_seconds - 1);
  }
}

template <typename Estimate>
void SetKernelPrediction(const Estimate& estimate, ValidationRow* row) {
  row->extrapolated = row->extrapolated || estimate.extrapolated;
  row->interval_widening = parameters::Widening(estimate.extrapolated);
  SetPrediction(estimate.seconds, estimate.interval_low_seconds, estimate.interval_high_seconds,
                row);
}

// Profiles that the set knows for an accelerator, or for the one whose parameters stand in for it.
class KnownProfiles {
 public:
  explicit KnownProfiles(std::shared_ptr<const parameters::ParameterSet> set)
      : set_(std::move(set)) {}

  // `profile` where the set knows it, else "" (shared values); then the row says so.
  std::string Settle(const std::string& profile, const hardware::Accelerator& accelerator,
                     ValidationRow* row) const {
    if (profile.empty()) return profile;
    const auto source =
        parameters::ResolveSource(*set_, accelerator.name, accelerator.parameter_donor);
    if (set_->HasProfile(source.accelerator, profile)) return profile;
    row->extrapolated = true;
    if (set_->HasProfile(source.accelerator, parameters::ProfileFamily(profile))) return profile;
    row->warnings.push_back(absl::StrCat("profile \"", profile,
                                         "\" is not in the parameter set: the accelerator's "
                                         "shared values were used"));
    return "";
  }

  // Of whole answers on an accelerator.
  double Widening(const hardware::Accelerator& accelerator) const {
    return parameters::Widening(
        parameters::ResolveSource(*set_, accelerator.name, accelerator.parameter_donor)
            .transferred);
  }

  int64_t ResidentBytes(const workload::Job& job) const {
    const auto parameters =
        orchestrator::ResolveFrameworkParameters(*set_, job.cluster.accelerator, job.framework);
    return std::llround(orchestrator::ResidentTrainingBytes(job, parameters.memory));
  }

 private:
  std::shared_ptr<const parameters::ParameterSet> set_;
};

// Rows of one place (accelerator or cluster) and profile, asked in one batch.
template <typename Place, typename Item>
struct KernelBatch {
  const Place* place = nullptr;
  std::string profile;
  std::vector<Item> items;
  std::vector<size_t> rows;
};

// Asks `estimate(items, place, profile)` once per place and profile. A batch that is refused as a
// whole is asked again item by item, so that only the wrong rows are refused.
template <typename Place, typename Item, typename Row, typename PlaceOf, typename AcceleratorOf,
          typename ItemOf, typename Estimate>
absl::Status PredictKernels(absl::string_view kind, const std::vector<Row>& rows,
                            const KnownProfiles& profiles, const PlaceOf& place_of,
                            const AcceleratorOf& accelerator_of, const ItemOf& item_of,
                            const Estimate& estimate, std::vector<ValidationRow>* out) {
  using Batch = KernelBatch<Place, Item>;
  std::map<std::pair<const Place*, std::string>, Batch> batches;
  std::vector<const Batch*> order;
  for (const Row& row : rows) {
    ValidationRow result = StartRow(row.facts, std::string(kind), "latency");
    if (row.measured_seconds > 0) result.measured_seconds = row.measured_seconds;
    if (result.status == RowStatus::kOk) {
      const Place* place = place_of(row);
      const std::string profile = profiles.Settle(row.facts.profile, accelerator_of(row), &result);
      Batch& batch = batches[{place, profile}];
      if (batch.place == nullptr) {
        batch.place = place;
        batch.profile = profile;
        order.push_back(&batch);
      }
      batch.items.push_back(item_of(row));
      batch.rows.push_back(out->size());
    }
    out->push_back(std::move(result));
  }
  for (const Batch* batch : order) {
    const auto estimates =
        estimate(absl::Span<const Item>(batch->items), *batch->place, batch->profile);
    if (!estimates.ok() && IsOutage(estimates.status())) return estimates.status();
    for (size_t i = 0; i < batch->rows.size(); ++i) {
      ValidationRow& result = (*out)[batch->rows[i]];
      if (estimates.ok()) {
        SetKernelPrediction((*estimates)[i], &result);
        continue;
      }
      const auto alone =
          estimate(absl::Span<const Item>(&batch->items[i], 1), *batch->place, batch->profile);
      if (alone.ok()) {
        SetKernelPrediction((*alone)[0], &result);
      } else {
        Refuse(alone.status(), &result);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PredictOperators(const std::vector<OperatorRow>& rows, const KnownProfiles& profiles,
                              orchestrator::OperatorCostPort& port,
                              std::vector<ValidationRow>* out) {
  using hardware::Accelerator;
  using operator_cost::Operator;
  return PredictKernels<Accelerator, Operator>(
      "operator", rows, profiles, [](const OperatorRow& row) { return row.accelerator.get(); },
      [](const OperatorRow& row) -> const Accelerator& { return *row.accelerator; },
      [](const OperatorRow& row) { return row.op; },
      [&](absl::Span<const Operator> operators, const Accelerator& accelerator,
          const std::string& profile) {
        return port.EstimateOperators(operators, accelerator, profile);
      },
      out);
}

absl::Status PredictCollectives(const std::vector<CollectiveRow>& rows,
                                const KnownProfiles& profiles, orchestrator::NetworkTimePort& port,
                                std::vector<ValidationRow>* out) {
  using collectives::Collective;
  using hardware::Cluster;
  return PredictKernels<Cluster, Collective>(
      "collective", rows, profiles, [](const CollectiveRow& row) { return row.cluster.get(); },
      [](const CollectiveRow& row) -> const hardware::Accelerator& {
        return row.cluster->accelerator;
      },
      [](const CollectiveRow& row) { return row.collective; },
      [&](absl::Span<const Collective> items, const Cluster& cluster, const std::string& profile) {
        return port.EstimateCollectives(items, cluster, profile);
      },
      out);
}

void AddWarnings(const orchestrator::Prediction& prediction, ValidationRow* row) {
  row->extrapolated = row->extrapolated || prediction.extrapolated;
  row->warnings.insert(row->warnings.end(), prediction.warnings.begin(), prediction.warnings.end());
}

absl::Status PredictTraining(const std::vector<TrainingRow>& rows, const KnownProfiles& profiles,
                             orchestrator::OperatorCostPort& operator_cost,
                             orchestrator::NetworkTimePort& network_time,
                             std::vector<ValidationRow>* out) {
  for (const TrainingRow& row : rows) {
    ValidationRow result = StartRow(row.facts, "training", "step_time");
    result.measured_seconds = row.measured_seconds;
    result.measured_memory_bytes = row.measured_memory_bytes;
    result.measured_fits = row.measured_fits;
    if (result.status == RowStatus::kOk) {
      workload::Job job = row.job;
      job.framework = profiles.Settle(job.framework, job.cluster.accelerator, &result);
      const auto prediction =
          PredictAssumedPlan(row.unstated, operator_cost, network_time, &job, &result.warnings);
      if (!prediction.ok()) {
        if (IsOutage(prediction.status())) return prediction.status();
        Refuse(prediction.status(), &result);
      } else {
        AddWarnings(*prediction, &result);
        result.interval_widening = profiles.Widening(job.cluster.accelerator);
        result.predicted_memory_bytes = prediction->memory.total_bytes;
        if (row.memory_is_resident) {
          result.predicted_memory_bytes = profiles.ResidentBytes(job);
          result.warnings.push_back(
              "allocated memory of this framework is that of the optimizer step: predicted without "
              "activations");
        }
        result.predicted_fits = prediction->memory.fits;
        SetPrediction(prediction->total_seconds, prediction->interval_low_seconds,
                      prediction->interval_high_seconds, &result);
      }
    }
    out->push_back(std::move(result));
  }
  return absl::OkStatus();
}

// The same of a run of requests; throughput in seconds per counted token.
std::optional<double> ServedMetric(const serving::ServingReport& report, const InferenceRow& row,
                                   InferenceMetric metric) {
  const auto& work = std::get<workload::InferenceWorkload>(row.job.workload);
  const auto positive = [](double value) {
    return value > 0 ? std::optional<double>(value) : std::nullopt;
  };
  switch (metric) {
    case InferenceMetric::kTimeToFirstToken:
      return positive(report.time_to_first_token_seconds.mean);
    case InferenceMetric::kInterTokenLatency:
      return positive(report.inter_token_latency_seconds.mean);
    case InferenceMetric::kEndToEnd:
      // A batch has ended when its last request has.
      return positive(row.job.serving.has_value() ? report.end_to_end_seconds.mean
                                                  : report.makespan_seconds);
    case InferenceMetric::kThroughput: {
      const double tokens = static_cast<double>(
          work.output_tokens + (row.throughput_counts_prompt ? work.prompt_tokens : 0));
      const double rate = report.requests_per_second * tokens;
      return rate > 0 ? std::optional<double>(1 / rate) : std::nullopt;
    }
  }
  return std::nullopt;
}

// What a prediction says about one measured metric; nothing where it does not speak of it.
std::optional<double> PredictedMetric(const orchestrator::Prediction& prediction,
                                      const InferenceRow& row, InferenceMetric metric) {
  const auto& work = std::get<workload::InferenceWorkload>(row.job.workload);
  if (prediction.serving.has_value()) return ServedMetric(*prediction.serving, row, metric);
  switch (metric) {
    case InferenceMetric::kTimeToFirstToken:
      return prediction.time_to_first_token_seconds;
    case InferenceMetric::kInterTokenLatency:
      return prediction.inter_token_latency_seconds;
    case InferenceMetric::kEndToEnd:
      return prediction.total_seconds;
    case InferenceMetric::kThroughput: {
      const bool prompt = row.throughput_counts_prompt || work.output_tokens == 0;
      const double tokens =
          static_cast<double>(work.batch_size) *
          static_cast<double>(work.output_tokens + (prompt ? work.prompt_tokens : 0));
      if (!(tokens > 0)) return std::nullopt;
      const double gpus = row.throughput_per_gpu ? static_cast<double>(row.job.gpu_count) : 1.0;
      return gpus * prediction.total_seconds / tokens;
    }
  }
  return std::nullopt;
}

// Ends of the interval of one metric over its prediction. Throughput and whole latencies go with
// the total.
parameters::Interval RelativeInterval(const orchestrator::Prediction& prediction,
                                      InferenceMetric metric) {
  const auto over = [](const parameters::Interval& interval, double seconds) {
    return parameters::Interval{interval.low / seconds, interval.high / seconds};
  };
  if (metric == InferenceMetric::kTimeToFirstToken && prediction.time_to_first_token_interval) {
    return over(*prediction.time_to_first_token_interval, *prediction.time_to_first_token_seconds);
  }
  if (metric == InferenceMetric::kInterTokenLatency && prediction.inter_token_latency_interval) {
    return over(*prediction.inter_token_latency_interval, *prediction.inter_token_latency_seconds);
  }
  return over({prediction.interval_low_seconds, prediction.interval_high_seconds},
              prediction.total_seconds);
}

// All requests of a static batch at once, to an engine that batches continuously.
workload::Job AsBurst(workload::Job job) {
  const int64_t batch = std::get<workload::InferenceWorkload>(job.workload).batch_size;
  job.serving = serving::ServingLoad{.arrival = serving::Arrival::kBurst,
                                     .request_count = batch,
                                     .max_batch_sequences = std::max<int64_t>(256, batch)};
  return job;
}

absl::Status PredictInference(const std::vector<InferenceRow>& rows, const KnownProfiles& profiles,
                              orchestrator::OperatorCostPort& operator_cost,
                              orchestrator::NetworkTimePort& network_time,
                              std::vector<ValidationRow>* out) {
  for (const InferenceRow& row : rows) {
    ValidationRow start = StartRow(row.facts, "inference", "");
    std::optional<orchestrator::Prediction> answer;
    if (start.status == RowStatus::kOk) {
      workload::Job job = row.job;
      job.framework = profiles.Settle(job.framework, job.cluster.accelerator, &start);
      auto prediction = orchestrator::Predict(job, operator_cost, network_time);
      if (prediction.ok() && !prediction->memory.fits && !job.serving.has_value()) {
        // It ran all the same: engines serve in turns what their cache does not hold at once.
        auto turns = orchestrator::Predict(AsBurst(job), operator_cost, network_time);
        if (turns.ok() && turns->serving->refused_request_count == 0) {
          start.warnings.push_back(
              "the batch does not fit in memory: predicted as served in turns");
          prediction = std::move(turns);
        }
      }
      if (prediction.ok()) {
        AddWarnings(*prediction, &start);
        start.interval_widening = profiles.Widening(job.cluster.accelerator);
        start.predicted_memory_bytes = prediction->memory.total_bytes;
        start.predicted_fits = prediction->memory.fits;
        answer = *std::move(prediction);
      } else {
        if (IsOutage(prediction.status())) return prediction.status();
        Refuse(prediction.status(), &start);
      }
    }
    if (row.measured.empty()) {
      start.metric = InferenceMetricName(InferenceMetric::kEndToEnd).data();
      out->push_back(start);
    }
    for (const InferenceMeasurement& measured : row.measured) {
      ValidationRow result = start;
      result.metric = std::string(InferenceMetricName(measured.metric));
      result.measured_seconds = measured.seconds;
      if (!measured.skip_reason.empty() && result.status == RowStatus::kOk) {
        result.status = RowStatus::kSkipped;
        result.reason = measured.skip_reason;
      } else if (answer) {
        const auto seconds = PredictedMetric(*answer, row, measured.metric);
        if (seconds && answer->total_seconds > 0) {
          const parameters::Interval share = RelativeInterval(*answer, measured.metric);
          SetPrediction(*seconds, *seconds * share.low, *seconds * share.high, &result);
        } else {
          result.status = RowStatus::kSkipped;
          const bool refused =
              answer->serving.has_value() && answer->serving->completed_request_count == 0;
          result.reason = absl::StrCat(
              "the request has no ", result.metric,
              refused ? " (the engine's cache would not hold it)" : " (output_len of the row)");
        }
      }
      out->push_back(std::move(result));
    }
  }
  return absl::OkStatus();
}

// Nearest-rank quantile of values; they are reordered.
double Quantile(std::vector<double>& values, double share) {
  const size_t rank =
      std::min(values.size() - 1,
               static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))) -
                   (share > 0 ? 1 : 0));
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(rank), values.end());
  return values[rank];
}

double Median(std::vector<double>& values) {
  const double upper = Quantile(values, 0.5);
  if (values.size() % 2 == 1) return upper;
  const size_t rank = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(rank), values.end());
  return (upper + values[rank]) / 2;
}

struct GroupValues {
  ValidationGroup group;
  std::vector<double> errors;
  std::vector<double> widths;
  int64_t inside = 0;
};

std::vector<ValidationGroup> Group(const std::vector<ValidationRow>& rows) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, GroupValues> groups;
  for (const ValidationRow& row : rows) {
    const bool by_family = row.kind == "operator" || row.kind == "collective";
    GroupValues& values =
        groups[Key(row.suite, row.accelerator, row.kind, by_family ? row.family : "", row.metric)];
    ValidationGroup& group = values.group;
    if (row.status == RowStatus::kRefused) {
      ++group.refused;
    } else if (row.status == RowStatus::kSkipped) {
      ++group.skipped;
    } else if (!row.counted) {
      ++group.suspect;
    } else {
      ++group.count;
      if (!row.error_percent) continue;
      values.errors.push_back(*row.error_percent);
      if (row.interval_low_seconds && row.interval_high_seconds && *row.predicted_seconds > 0) {
        const double measured = *row.measured_seconds;
        values.inside +=
            measured >= *row.interval_low_seconds && measured <= *row.interval_high_seconds;
        values.widths.push_back(100 * (*row.interval_high_seconds - *row.interval_low_seconds) /
                                *row.predicted_seconds);
      }
    }
  }
  std::vector<ValidationGroup> result;
  for (auto& [key, values] : groups) {
    ValidationGroup& group = values.group;
    std::tie(group.suite, group.accelerator, group.kind, group.family, group.metric) = key;
    if (!values.errors.empty()) {
      const double count = static_cast<double>(values.errors.size());
      double sum = 0;
      double sum_absolute = 0;
      std::vector<double> absolute;
      for (const double error : values.errors) {
        sum += error;
        sum_absolute += std::fabs(error);
        absolute.push_back(std::fabs(error));
      }
      group.mape_percent = sum_absolute / count;
      group.bias_percent = sum / count;
      group.median_ape_percent = Median(absolute);
      group.p90_ape_percent = Quantile(absolute, 0.9);
    }
    if (!values.widths.empty()) {
      group.interval_coverage_percent =
          100 * static_cast<double>(values.inside) / static_cast<double>(values.widths.size());
      group.interval_width_percent = Median(values.widths);
    }
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace

absl::string_view RowStatusName(RowStatus status) {
  switch (status) {
    case RowStatus::kOk:
      return "ok";
    case RowStatus::kRefused:
      return "refused";
    case RowStatus::kSkipped:
      return "skipped";
  }
  return "ok";
}

absl::StatusOr<ValidationReport> Validate(const Measurements& measurements,
                                          orchestrator::OperatorCostPort& operator_cost,
                                          orchestrator::NetworkTimePort& network_time) {
  SEXTANT_ASSIGN_OR_RETURN(auto set, operator_cost.CurrentParameters());
  ValidationReport report;
  report.parameter_set = set->version();
  const KnownProfiles profiles(std::move(set));
  report.rows.reserve(measurements.size() + 3 * measurements.inference.size());
  SEXTANT_RETURN_IF_ERROR(
      PredictOperators(measurements.operators, profiles, operator_cost, &report.rows));
  SEXTANT_RETURN_IF_ERROR(
      PredictCollectives(measurements.collectives, profiles, network_time, &report.rows));
  SEXTANT_RETURN_IF_ERROR(
      PredictTraining(measurements.training, profiles, operator_cost, network_time, &report.rows));
  SEXTANT_RETURN_IF_ERROR(PredictInference(measurements.inference, profiles, operator_cost,
                                           network_time, &report.rows));
  report.groups = Group(report.rows);
  return report;
}

absl::StatusOr<ValidationReport> Validate(
    const Measurements& measurements, std::shared_ptr<const parameters::ParameterSet> parameters) {
  orchestrator::LocalOperatorCost operator_cost(parameters);
  orchestrator::LocalNetworkTime network_time(parameters);
  return Validate(measurements, operator_cost, network_time);
}

}  // namespace sextant::calibration
