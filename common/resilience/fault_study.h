// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_RESILIENCE_FAULT_STUDY_H_
#define SEXTANT_COMMON_RESILIENCE_FAULT_STUDY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/progress.h"
#include "common/network_sim/topology/topology.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/predict.h"
#include "common/parameters/parameter_set.h"
#include "common/resilience/step_traffic.h"
#include "common/workload/job.h"

namespace sextant::resilience {

// Where a job runs: GPU g is endpoint g of the topology, rank r of the plan lies on a GPU as the
// mapping says.
struct Interconnect {
  network_sim::TopologySpec topology;
  network_sim::Routing routing = network_sim::Routing::kAutomatic;
  Mapping mapping = kPlanMapping;
};

// A torus of the job's GPUs: links of the first dimensions that lie in one node are the node's
// fabric, the others have a GPU's share of the node's network. `dimensions` multiply to the GPUs.
network_sim::TopologySpec TorusOf(const workload::Job& job, const std::vector<int64_t>& dimensions);
// Nodes of NVSwitch under a two-level fat tree: four nodes to a leaf, spines without blocking.
network_sim::TopologySpec FatTreeOf(const workload::Job& job);

// What a step takes with some faults.
struct FaultyStep {
  double seconds = 0;
  double slowdown = 1;               // over the step without faults on the same interconnect
  std::vector<std::string> crossed;  // parallelisms with traffic on a faulty link
  std::string unreachable;           // why there is no time: ranks are cut off; else empty
};

// A training step on an explicit interconnect. Calibrated times of collectives (those of `predict`)
// are stretched, in the part that grows with bytes, as much as flows over this interconnect take
// longer than over the cluster's own without faults. Stages of the pipeline whose ranks a fault
// reaches are slowed, the others wait for them. Each kind of traffic is timed alone. Immutable and
// thread-safe; Create: one simulation for each kind of traffic and stage.
class StepOnNetwork {
 public:
  // INVALID_ARGUMENT with every violation of the job, of the topology, or where the job does not
  // train or the topology has fewer endpoints than GPUs; errors of simulations pass through.
  static absl::StatusOr<StepOnNetwork> Create(
      const workload::Job& job, const Interconnect& interconnect,
      std::shared_ptr<const parameters::ParameterSet> parameters,
      const network_sim::ProgressCheck& check = {});

  double healthy_seconds() const { return healthy_seconds_; }
  const network_sim::Topology& topology() const { return topology_; }

  // INVALID_ARGUMENT where a fault names no link. Simulates only what crosses a faulty link.
  absl::StatusOr<FaultyStep> Step(const network_sim::Faults& faults) const;

  // Links of one kind that carry alike, and switches whose links do: one of them stands for all.
  struct Part {
    std::string kind;     // "nvlink", "nic", "uplink", "dimension 0", "rail", "leaf", ...
    std::string example;  // name of a link, or of a switch
    bool is_switch = false;
    int32_t a = 0;  // ends of the example link
    int32_t b = 0;
    int64_t count = 0;
    std::vector<std::string> crossed;
  };
  // Every link and switch belongs to exactly one part. O(links x traffic).
  std::vector<Part> Parts() const;

 private:
  struct Loaded : Traffic {
    network_sim::NetworkJob job;
    double base_seconds = 0;     // on the cluster's own interconnect
    double healthy_seconds = 0;  // on this one
    // Seconds that each physical link is busy, per stage (one entry where groups span stages).
    std::vector<std::vector<double>> link_seconds;

    double LinkSeconds(size_t link) const;
  };

  StepOnNetwork(const workload::Job& job, const Interconnect& interconnect,
                network_sim::Topology topology);
  absl::Status Load(const network_sim::ProgressCheck& check);
  absl::StatusOr<double> SecondsOf(const network_sim::Topology& topology,
                                   const network_sim::NetworkJob& job,
                                   std::vector<double>* link_seconds = nullptr) const;
  // Step time where stage s sees traffic t stretched by stretch[s][t].
  double StepSeconds(absl::Span<const std::vector<double>> stretch) const;
  orchestrator::PricedTraining Price(const std::vector<double>& stretch) const;
  std::string KindOf(int32_t link) const;

  workload::Job job_;
  Interconnect interconnect_;
  network_sim::Topology topology_;
  orchestrator::FrameworkParameters<double> parameters_;
  orchestrator::TrainingGraph graph_;
  orchestrator::PortAnswers answers_;
  std::vector<Loaded> traffic_;
  std::vector<size_t> class_of_stage_;
  std::vector<double> healthy_stretch_;  // per traffic
  double healthy_seconds_ = 0;
};

// One part of the interconnect broken to some extent.
struct RankedFault {
  StepOnNetwork::Part part;
  double bandwidth_fraction = 0;  // that remains; 0: dead
  FaultyStep step;
};
// Every part with each of the fractions, worst first (cut off, then slowest). Switches are derated
// in all their links. The status of `check`, asked between simulations, where that stops it.
absl::StatusOr<std::vector<RankedFault>> RankSingleFaults(
    const StepOnNetwork& step, absl::Span<const double> fractions,
    const network_sim::ProgressCheck& check = {});

// Faults drawn at random. Draw i uses the seed plus i.
struct RandomStudy {
  int64_t draw_count = 100;
  network_sim::RandomFaults faults;
};
struct RandomOutcome {
  int64_t draw_count = 0;
  int64_t cut_off_count = 0;  // draws in which ranks are cut off: no step at all
  double mean_slowdown = 1;   // of the others
  double low_slowdown = 1;    // 90 % confidence interval of the mean
  double high_slowdown = 1;
  double median_slowdown = 1;
  double p95_slowdown = 1;
  double worst_slowdown = 1;
};
absl::StatusOr<RandomOutcome> DrawFaults(const StepOnNetwork& step, const RandomStudy& study,
                                         const network_sim::ProgressCheck& check = {});

// How well one mapping under one routing bears random faults.
struct MappingOutcome {
  Mapping mapping;
  network_sim::Routing routing;
  double healthy_seconds = 0;
  RandomOutcome random;

  // Expected step with faults.
  double FaultySeconds() const { return healthy_seconds * random.mean_slowdown; }
};
// The same draws under every mapping (MappingsOf) and routing, shortest expected step first.
absl::StatusOr<std::vector<MappingOutcome>> CompareMappings(
    const workload::Job& job, const network_sim::TopologySpec& topology,
    absl::Span<const network_sim::Routing> routings, const RandomStudy& study,
    std::shared_ptr<const parameters::ParameterSet> parameters,
    const network_sim::ProgressCheck& check = {});

}  // namespace sextant::resilience

#endif  // SEXTANT_COMMON_RESILIENCE_FAULT_STUDY_H_
