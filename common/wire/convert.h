// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_H_
#define SEXTANT_COMMON_WIRE_CONVERT_H_

#include "absl/status/statusor.h"
#include "common/collectives/collective.h"
#include "common/hardware/accelerator.h"
#include "common/hardware/cluster.h"
#include "common/operator_cost/operator.h"
#include "common/orchestrator/prediction.h"
#include "common/parameters/parameter_set.h"
#include "common/serving/serving_load.h"
#include "common/serving/serving_simulation.h"
#include "common/workload/job.h"
#include "common/workload/model_architecture.h"
#include "sextant/types/v1/accelerator.pb.h"
#include "sextant/types/v1/cluster.pb.h"
#include "sextant/types/v1/collective.pb.h"
#include "sextant/types/v1/job.pb.h"
#include "sextant/types/v1/model_architecture.pb.h"
#include "sextant/types/v1/operator.pb.h"
#include "sextant/types/v1/parameter_set.pb.h"
#include "sextant/types/v1/prediction.pb.h"
#include "sextant/types/v1/serving.pb.h"

namespace sextant::wire {

// Domain values to messages and back; FromProto(ToProto(x)) equals x, bit for bit.
//
// FromProto applies the defaults that the .proto comments state, and reports at once, by proto
// field path ("plan.schedule", "faults[1].bandwidth_fraction"), everything that has no domain
// value: unknown words, integers out of range, numbers that are not finite, missing messages and
// oneofs. Rules between values are the domain's: call ValidateJob, ValidateOperator, ... on the
// result. All functions are pure, thread-safe and linear in the size of the message.

types::v1::Accelerator ToProto(const hardware::Accelerator& accelerator);
absl::StatusOr<hardware::Accelerator> FromProto(const types::v1::Accelerator& proto);

types::v1::Cluster ToProto(const hardware::Cluster& cluster);
absl::StatusOr<hardware::Cluster> FromProto(const types::v1::Cluster& proto);

types::v1::ModelArchitecture ToProto(const workload::ModelArchitecture& model);
absl::StatusOr<workload::ModelArchitecture> FromProto(const types::v1::ModelArchitecture& proto);

types::v1::ParallelPlan ToProto(const workload::ParallelPlan& plan);
absl::StatusOr<workload::ParallelPlan> FromProto(const types::v1::ParallelPlan& proto);

types::v1::Job ToProto(const workload::Job& job);
absl::StatusOr<workload::Job> FromProto(const types::v1::Job& proto);

types::v1::ServingLoad ToProto(const serving::ServingLoad& load);
absl::StatusOr<serving::ServingLoad> FromProto(const types::v1::ServingLoad& proto);

types::v1::ServingReport ToProto(const serving::ServingReport& report);
absl::StatusOr<serving::ServingReport> FromProto(const types::v1::ServingReport& proto);

types::v1::Prediction ToProto(const orchestrator::Prediction& prediction);
absl::StatusOr<orchestrator::Prediction> FromProto(const types::v1::Prediction& proto);

types::v1::Operator ToProto(const operator_cost::Operator& op);
absl::StatusOr<operator_cost::Operator> FromProto(const types::v1::Operator& proto);

types::v1::OperatorEstimate ToProto(const operator_cost::OperatorEstimate& estimate);
absl::StatusOr<operator_cost::OperatorEstimate> FromProto(const types::v1::OperatorEstimate& proto);

types::v1::Collective ToProto(const collectives::Collective& collective);
absl::StatusOr<collectives::Collective> FromProto(const types::v1::Collective& proto);

types::v1::CollectiveEstimate ToProto(const collectives::CollectiveEstimate& estimate);
absl::StatusOr<collectives::CollectiveEstimate> FromProto(
    const types::v1::CollectiveEstimate& proto);

types::v1::ParameterSet ToProto(const parameters::ParameterSet& set);
// A version that is given must be the hash of the content.
absl::StatusOr<parameters::ParameterSet> FromProto(const types::v1::ParameterSet& proto);

// The words of operator messages. Parse...: INVALID_ARGUMENT lists the known ones.
absl::string_view AttentionPhaseName(operator_cost::AttentionPhase phase);
absl::StatusOr<operator_cost::AttentionPhase> ParseAttentionPhase(absl::string_view name);
absl::string_view MemoryBoundKindName(operator_cost::MemoryBoundKind kind);
absl::StatusOr<operator_cost::MemoryBoundKind> ParseMemoryBoundKind(absl::string_view name);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_H_
