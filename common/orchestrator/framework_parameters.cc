// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/framework_parameters.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace sextant::orchestrator {
namespace {

template <template <typename> class Block, size_t N>
Block<double> Resolve(const parameters::ParameterSet& set,
                      const parameters::ParameterSource& source, absl::string_view profile,
                      absl::string_view block,
                      const std::array<parameters::ParameterDescriptor, N>& descriptors) {
  return Block<double>::FromArray(
      parameters::BlockValues(set, source, profile, block, descriptors.data(), static_cast<int>(N))
          .data());
}

template <size_t N>
void Append(std::vector<parameters::KeyedDescriptor>& keyed, absl::string_view block,
            const std::array<parameters::ParameterDescriptor, N>& descriptors) {
  for (const parameters::ParameterDescriptor& descriptor : descriptors) {
    keyed.push_back({absl::StrCat(block, ".", descriptor.name), descriptor});
  }
}

}  // namespace

Answer TotalAnswer(const workload::Job& job) {
  if (!job.IsTraining()) return job.serving.has_value() ? Answer::kServingRun : Answer::kBatch;
  return job.plan.tensor_parallel_size > job.cluster.gpus_per_node
             ? Answer::kTrainingStepTensorAcrossNodes
             : Answer::kTrainingStep;
}

FrameworkParameters<double> ResolveFrameworkParameters(const parameters::ParameterSet& set,
                                                       const hardware::Accelerator& accelerator,
                                                       absl::string_view profile) {
  const parameters::ParameterSource source =
      parameters::ResolveSource(set, accelerator.name, accelerator.parameter_donor);
  FrameworkParameters<double> resolved;
  resolved.training =
      Resolve<TrainingParameters>(set, source, profile, kTrainingBlock, kTrainingDescriptors);
  resolved.inference =
      Resolve<InferenceParameters>(set, source, profile, kInferenceBlock, kInferenceDescriptors);
  resolved.memory =
      Resolve<MemoryParameters>(set, source, profile, kMemoryBlock, kMemoryDescriptors);
  resolved.scheduler =
      Resolve<SchedulerParameters>(set, source, profile, kSchedulerBlock, kSchedulerDescriptors);
  for (size_t i = 0; i < kAnswerCount; ++i) {
    resolved.spread[i] =
        parameters::FindSpread(set, source, profile, kAnswers[i].block, kAnswers[i].unmeasured);
  }
  resolved.transferred = source.transferred;
  return resolved;
}

FrameworkParameters<double> ParametersOf(const parameters::ParameterSet& set,
                                         const workload::Job& job) {
  FrameworkParameters<double> resolved =
      ResolveFrameworkParameters(set, job.cluster.accelerator, job.framework);
  const auto* work = std::get_if<workload::InferenceWorkload>(&job.workload);
  if (work == nullptr || !work->captured_graphs.has_value()) return resolved;
  InferenceParameters<double>& p = resolved.inference;
  const double captured = kInferenceDescriptors[kDispatchParameter].initial;
  p.dispatch_seconds = *work->captured_graphs
                           ? std::min(p.dispatch_seconds, captured)
                           : std::max(p.dispatch_seconds, p.eager_dispatch_seconds);
  return resolved;
}

std::vector<std::string> FrameworkProfiles(const parameters::ParameterSet& set,
                                           absl::string_view accelerator) {
  std::set<std::string> keys;
  for (const parameters::KeyedDescriptor& keyed : FrameworkDescriptors()) keys.insert(keyed.key);
  std::vector<std::string> names;
  const auto found = set.accelerators().find(accelerator);
  if (found == set.accelerators().end()) return names;
  for (const auto& [name, values] : found->second.profiles) {
    if (std::any_of(values.begin(), values.end(),
                    [&](const auto& value) { return keys.count(value.first) > 0; })) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<parameters::KeyedDescriptor> FrameworkDescriptors() {
  std::vector<parameters::KeyedDescriptor> keyed;
  Append(keyed, kTrainingBlock, kTrainingDescriptors);
  Append(keyed, kInferenceBlock, kInferenceDescriptors);
  Append(keyed, kMemoryBlock, kMemoryDescriptors);
  Append(keyed, kSchedulerBlock, kSchedulerDescriptors);
  for (const AnswerDescriptor& answer : kAnswers) {
    parameters::AppendSpreadDescriptors(answer.block, answer.unmeasured, keyed);
  }
  return keyed;
}

}  // namespace sextant::orchestrator
