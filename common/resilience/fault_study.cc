// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/fault_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/collectives/concurrent.h"
#include "common/network_sim/case_timer.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/placement.h"
#include "common/orchestrator/stage_layout.h"
#include "common/orchestrator/timeline_formula.h"

namespace sextant::resilience {
namespace {

using network_sim::Faults;
using network_sim::NetworkCase;
using network_sim::NetworkJob;
using network_sim::Topology;
using network_sim::TopologyKind;
using network_sim::TopologySpec;
using workload::Job;

// Loads of one kind of traffic that differ by less than this share of its largest count as alike.
constexpr double kLoadLevels = 16;
constexpr double kNormal90 = 1.645;  // two-sided 90 % of the normal distribution

int64_t StageSize(const workload::ParallelPlan& plan) {
  return plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size;
}

int64_t NodeCount(const Job& job) {
  return orchestrator::CeilDivide(job.gpu_count, job.cluster.gpus_per_node);
}

// The groups of `traffic` in a stage (-1: all), as a job on the GPUs that the ranks lie on.
NetworkJob PlaceOn(const Traffic& traffic, const std::vector<int64_t>& gpus, int64_t stage,
                   int64_t stage_size, int64_t gpus_per_node) {
  collectives::PlacedCollective placed{
      .name = traffic.parallelism, .kind = traffic.kind, .bytes = traffic.bytes};
  for (const std::vector<int64_t>& group : traffic.groups) {
    if (stage >= 0 && group.front() / stage_size != stage) continue;
    std::vector<int64_t>& ranks = placed.groups.emplace_back();
    for (const int64_t rank : group) ranks.push_back(gpus[static_cast<size_t>(rank)]);
  }
  return collectives::NetworkJobOf(placed, gpus_per_node);
}

std::string SwitchKind(const std::string& name) {
  return name.substr(0, std::min(name.size(), name.find_first_of("0123456789")));
}

absl::Status Validate(const Job& job, const Interconnect& interconnect) {
  SEXTANT_RETURN_IF_ERROR(workload::ValidateJob(job));
  base::Violations violations;
  if (!job.IsTraining()) {
    violations.Add("training", "is missing; faults are studied for training steps");
  }
  if (job.gpu_count < 2) {
    violations.Add("gpu_count", "is 1 but must be at least 2 for anything to be sent");
  }
  NetworkCase probe;
  probe.topology = interconnect.topology;
  probe.routing = interconnect.routing;
  NetworkJob& flow = probe.jobs.emplace_back();
  flow.name = "probe";
  flow.pattern = network_sim::Pattern::kFlows;
  flow.flows.push_back({0, 1, 1});
  violations.AddStatus("topology", network_sim::ValidateNetworkCase(probe));
  const int64_t endpoints = interconnect.topology.EndpointCount();
  if (violations.empty() && endpoints < job.gpu_count) {
    violations.Add("topology", absl::StrCat("has ", endpoints, " endpoints but the job has ",
                                            job.gpu_count, " GPUs; make it larger"));
  }
  return violations.ToStatus();
}

absl::Status Ask(const network_sim::ProgressCheck& check) {
  return check ? check(network_sim::Progress()) : absl::OkStatus();
}

}  // namespace

TopologySpec TorusOf(const Job& job, const std::vector<int64_t>& dimensions) {
  const TopologySpec own = collectives::TopologyOf(job.cluster, NodeCount(job));
  TopologySpec torus{.kind = TopologyKind::kTorus, .dimensions = dimensions};
  int64_t inside = 1;
  for (const int64_t size : dimensions) {
    inside *= size;
    const bool in_node = job.cluster.gpus_per_node % inside == 0;
    torus.links.push_back(in_node ? own.nvlink : own.nic);
  }
  return torus;
}

TopologySpec FatTreeOf(const Job& job) {
  TopologySpec tree = collectives::TopologyOf(job.cluster, NodeCount(job));
  tree.kind = TopologyKind::kNvSwitchLeafSpine;
  tree.servers_per_leaf = tree.server_count % 4 == 0 ? 4 : 1;
  tree.spine_count = tree.servers_per_leaf * tree.gpus_per_server;
  // A path between nodes has four links where rails have two.
  tree.nic.latency_seconds = job.cluster.network_latency_seconds / 4;
  tree.uplink = tree.nic;
  return tree;
}

double StepOnNetwork::Loaded::LinkSeconds(size_t link) const {
  double seconds = 0;
  for (const std::vector<double>& of_stage : link_seconds) seconds += of_stage[link];
  return seconds;
}

StepOnNetwork::StepOnNetwork(const Job& job, const Interconnect& interconnect, Topology topology)
    : job_(job), interconnect_(interconnect), topology_(std::move(topology)) {}

absl::StatusOr<StepOnNetwork> StepOnNetwork::Create(
    const Job& job, const Interconnect& interconnect,
    std::shared_ptr<const parameters::ParameterSet> parameters,
    const network_sim::ProgressCheck& check) {
  SEXTANT_RETURN_IF_ERROR(Validate(job, interconnect));
  StepOnNetwork step(job, interconnect, Topology::Create(interconnect.topology));
  step.parameters_ =
      orchestrator::ResolveFrameworkParameters(*parameters, job.cluster.accelerator, job.framework);
  step.graph_ =
      orchestrator::BuildTrainingGraph(job, orchestrator::OptionsFor(job, step.parameters_));
  orchestrator::LocalOperatorCost operator_cost(parameters);
  orchestrator::LocalNetworkTime network_time(parameters);
  SEXTANT_ASSIGN_OR_RETURN(step.answers_,
                           orchestrator::AskPorts(step.graph_, job, operator_cost, network_time));
  SEXTANT_RETURN_IF_ERROR(step.Load(check));
  return step;
}

absl::Status StepOnNetwork::Load(const network_sim::ProgressCheck& check) {
  const workload::ParallelPlan& plan = job_.plan;
  class_of_stage_ = orchestrator::ClassesOfRanks(job_);
  const int64_t per_node = job_.cluster.gpus_per_node;
  const Topology own = Topology::Create(collectives::TopologyOf(job_.cluster, NodeCount(job_)));
  const std::vector<int64_t> plain = GpusOfRanks(plan, kPlanMapping);
  const std::vector<int64_t> gpus = GpusOfRanks(plan, interconnect_.mapping);
  for (Traffic& traffic : TrafficOf(job_, graph_)) {
    SEXTANT_RETURN_IF_ERROR(Ask(check));
    Loaded loaded{std::move(traffic)};
    const auto place = [&](const std::vector<int64_t>& where, int64_t stage) {
      return PlaceOn(loaded, where, stage, StageSize(plan), per_node);
    };
    loaded.job = place(gpus, -1);
    SEXTANT_ASSIGN_OR_RETURN(loaded.base_seconds, SecondsOf(own, place(plain, -1)));
    SEXTANT_ASSIGN_OR_RETURN(loaded.healthy_seconds,
                             SecondsOf(topology_, loaded.job, &loaded.link_seconds.emplace_back()));
    const int64_t stages = plan.pipeline_parallel_size;
    if (loaded.of_one_stage && stages > 1) {
      loaded.link_seconds.clear();
      for (int64_t stage = 0; stage < stages; ++stage) {
        SEXTANT_RETURN_IF_ERROR(
            SecondsOf(topology_, place(gpus, stage), &loaded.link_seconds.emplace_back()).status());
      }
    }
    healthy_stretch_.push_back(
        loaded.base_seconds > 0 ? loaded.healthy_seconds / loaded.base_seconds : 1);
    traffic_.push_back(std::move(loaded));
  }
  healthy_seconds_ = StepSeconds(std::vector<std::vector<double>>(
      static_cast<size_t>(plan.pipeline_parallel_size), healthy_stretch_));
  return absl::OkStatus();
}

absl::StatusOr<double> StepOnNetwork::SecondsOf(const Topology& topology, const NetworkJob& job,
                                                std::vector<double>* link_seconds) const {
  NetworkCase alone;
  alone.routing = interconnect_.routing;
  alone.jobs.push_back(job);
  const network_sim::SimulationOptions options;
  const network_sim::CaseTimer timer(topology, alone, options);
  SEXTANT_ASSIGN_OR_RETURN(const network_sim::CaseTimes times, timer.Flow());
  if (link_seconds != nullptr) {
    link_seconds->resize(times.link_busy_seconds.size() / 2);
    for (size_t i = 0; i < link_seconds->size(); ++i) {
      (*link_seconds)[i] =
          std::max(times.link_busy_seconds[2 * i], times.link_busy_seconds[2 * i + 1]);
    }
  }
  return times.job_finish_seconds[0];
}

orchestrator::PricedTraining StepOnNetwork::Price(const std::vector<double>& stretch) const {
  orchestrator::PortAnswers answers = answers_;
  for (size_t t = 0; t < traffic_.size(); ++t) {
    for (const int index : traffic_[t].collectives) {
      const collectives::CollectiveEstimate& given =
          answers_.collectives[static_cast<size_t>(index)];
      answers.collectives[static_cast<size_t>(index)].seconds =
          given.latency_seconds + (given.seconds - given.latency_seconds) * stretch[t];
    }
  }
  return orchestrator::PriceTraining(graph_, answers, job_);
}

double StepOnNetwork::StepSeconds(absl::Span<const std::vector<double>> stretch) const {
  // Stages of equal work that are stretched alike.
  std::vector<std::pair<size_t, const std::vector<double>*>> kinds;
  orchestrator::PricedTraining step = Price(stretch.front());
  step.stages.clear();
  for (size_t s = 0; s < stretch.size(); ++s) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return kind.first == class_of_stage_[s] && *kind.second == stretch[s];
    });
    if (same != kinds.end()) {
      ++step.stages[static_cast<size_t>(same - kinds.begin())].rank_count;
      continue;
    }
    kinds.emplace_back(class_of_stage_[s], &stretch[s]);
    step.stages.push_back(Price(stretch[s]).stages[class_of_stage_[s]]);
    step.stages.back().rank_count = 1;
  }
  return orchestrator::TrainingStep(step, parameters_.training).Total();
}

absl::StatusOr<FaultyStep> StepOnNetwork::Step(const Faults& faults) const {
  SEXTANT_ASSIGN_OR_RETURN(const Topology faulty, topology_.WithFaults(faults));
  std::vector<size_t> broken;
  for (size_t i = 0; i < faulty.links().size(); i += 2) {
    if (faulty.links()[i].bandwidth_bytes_per_second <
        topology_.links()[i].bandwidth_bytes_per_second) {
      broken.push_back(i / 2);
    }
  }
  FaultyStep step;
  std::vector<std::vector<double>> stretch(class_of_stage_.size(), healthy_stretch_);
  std::set<std::string> crossed;
  for (size_t t = 0; t < traffic_.size(); ++t) {
    const Loaded& traffic = traffic_[t];
    const auto is_hit = [&](const std::vector<double>& link_seconds) {
      return std::any_of(broken.begin(), broken.end(),
                         [&](size_t link) { return link_seconds[link] > 0; });
    };
    if (std::none_of(traffic.link_seconds.begin(), traffic.link_seconds.end(), is_hit)) continue;
    crossed.insert(traffic.parallelism);
    const absl::StatusOr<double> seconds = SecondsOf(faulty, traffic.job);
    if (absl::IsUnavailable(seconds.status())) {
      step.unreachable = std::string(seconds.status().message());
      continue;
    }
    SEXTANT_RETURN_IF_ERROR(seconds.status());
    for (size_t s = 0; s < stretch.size(); ++s) {
      const bool per_stage = traffic.link_seconds.size() > 1;
      if (per_stage && !is_hit(traffic.link_seconds[s])) continue;
      stretch[s][t] = std::max(stretch[s][t], *seconds / traffic.base_seconds);
    }
  }
  step.crossed.assign(crossed.begin(), crossed.end());
  if (!step.unreachable.empty()) return step;
  step.seconds = StepSeconds(stretch);
  step.slowdown = step.seconds / healthy_seconds_;
  return step;
}

std::string StepOnNetwork::KindOf(int32_t link) const {
  const network_sim::DirectedLink& l = topology_.links()[static_cast<size_t>(link)];
  const int32_t endpoints = topology_.endpoint_count();
  const int32_t low = std::min(l.from, l.to);
  const int32_t high = std::max(l.from, l.to);
  if (low >= endpoints) return "uplink";
  if (high >= endpoints) {
    return SwitchKind(topology_.NodeName(high)) == "nvswitch" ? "nvlink" : "nic";
  }
  int64_t stride = 1;
  for (size_t d = 0; d < topology_.grid().size(); ++d) {
    const int64_t size = topology_.grid()[d];
    if (low / stride % size != high / stride % size) return absl::StrCat("dimension ", d);
    stride *= size;
  }
  return "link";
}

std::vector<StepOnNetwork::Part> StepOnNetwork::Parts() const {
  const size_t link_count = topology_.links().size() / 2;
  std::vector<double> most(traffic_.size(), 0);
  for (size_t t = 0; t < traffic_.size(); ++t) {
    for (size_t i = 0; i < link_count; ++i) {
      most[t] = std::max(most[t], traffic_[t].LinkSeconds(i));
    }
  }
  std::vector<Part> parts;
  std::map<std::string, size_t> known;  // what makes parts alike -> index
  const auto add = [&](const std::string& key, const auto& make) {
    const auto [place, fresh] = known.emplace(key, parts.size());
    if (fresh) parts.push_back(make());
    ++parts[place->second].count;
    return place->second;
  };
  std::map<int32_t, std::map<size_t, int64_t>> links_of_switch;  // part -> links
  for (size_t i = 0; i < link_count; ++i) {
    const network_sim::DirectedLink& l = topology_.links()[2 * i];
    std::string key = KindOf(static_cast<int32_t>(2 * i));
    std::set<std::string> crossed;
    for (size_t t = 0; t < traffic_.size(); ++t) {
      std::set<size_t> classes;
      for (size_t s = 0; s < traffic_[t].link_seconds.size(); ++s) {
        if (traffic_[t].link_seconds[s][i] > 0) classes.insert(class_of_stage_[s]);
      }
      const double load = traffic_[t].LinkSeconds(i);
      if (load > 0) crossed.insert(traffic_[t].parallelism);
      absl::StrAppend(&key, "|", load > 0 ? 1 + std::round(kLoadLevels * load / most[t]) : 0);
      for (const size_t c : classes) absl::StrAppend(&key, ",", c);
    }
    const size_t part = add(key, [&] {
      return Part{
          .kind = KindOf(static_cast<int32_t>(2 * i)),
          .example = absl::StrCat(topology_.NodeName(l.from), "-", topology_.NodeName(l.to)),
          .a = l.from,
          .b = l.to,
          .crossed = {crossed.begin(), crossed.end()}};
    });
    for (const int32_t node : {l.from, l.to}) {
      if (node >= topology_.endpoint_count()) ++links_of_switch[node][part];
    }
  }
  for (const auto& [node, links] : links_of_switch) {
    const std::string name = topology_.NodeName(node);
    std::string key = SwitchKind(name);
    std::set<std::string> crossed;
    for (const auto& [part, count] : links) {
      absl::StrAppend(&key, "|", part, "x", count);
      crossed.insert(parts[part].crossed.begin(), parts[part].crossed.end());
    }
    add(key, [&] {
      return Part{.kind = SwitchKind(name),
                  .example = name,
                  .is_switch = true,
                  .crossed = {crossed.begin(), crossed.end()}};
    });
  }
  return parts;
}

absl::StatusOr<std::vector<RankedFault>> RankSingleFaults(const StepOnNetwork& step,
                                                          absl::Span<const double> fractions,
                                                          const network_sim::ProgressCheck& check) {
  base::Violations violations;
  for (size_t i = 0; i < fractions.size(); ++i) {
    if (fractions[i] >= 0 && fractions[i] < 1) continue;
    violations.Add(absl::StrCat("fractions[", i, "]"),
                   absl::StrCat("is ", fractions[i], " but must be at least 0 and below 1"));
  }
  if (!violations.empty()) return violations.ToStatus();
  std::vector<RankedFault> ranked;
  for (const StepOnNetwork::Part& part : step.Parts()) {
    for (const double fraction : fractions) {
      SEXTANT_RETURN_IF_ERROR(Ask(check));
      Faults faults;
      if (!part.is_switch) {
        faults.links.push_back({.a = part.a, .b = part.b, .bandwidth_fraction = fraction});
      } else if (fraction > 0) {
        faults.patterns.push_back({.links = part.example, .bandwidth_fraction = fraction});
      } else {
        faults.dead_switches.push_back(part.example);
      }
      SEXTANT_ASSIGN_OR_RETURN(FaultyStep faulty, step.Step(faults));
      ranked.push_back({part, fraction, std::move(faulty)});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedFault& a, const RankedFault& b) {
    const bool cut_a = !a.step.unreachable.empty();
    const bool cut_b = !b.step.unreachable.empty();
    return cut_a != cut_b ? cut_a : a.step.seconds > b.step.seconds;
  });
  return ranked;
}

absl::StatusOr<RandomOutcome> DrawFaults(const StepOnNetwork& step, const RandomStudy& study,
                                         const network_sim::ProgressCheck& check) {
  base::Violations violations;
  const network_sim::RandomFaults& f = study.faults;
  if (study.draw_count < 1 || study.draw_count > 100'000) {
    violations.Add("draws", absl::StrCat("is ", study.draw_count, " but must be in [1, 100000]"));
  }
  const auto share = [&](absl::string_view field, double value) {
    if (value >= 0 && value <= 1) return;
    violations.Add(field, absl::StrCat("is ", value, " but must be between 0 and 1"));
  };
  share("dead_probability", f.dead_probability);
  share("derated_probability", f.derated_probability);
  share("bandwidth_fraction", f.bandwidth_fraction);
  if (!violations.empty()) return violations.ToStatus();
  RandomOutcome outcome{.draw_count = study.draw_count};
  std::vector<double> slowdowns;
  for (int64_t i = 0; i < study.draw_count; ++i) {
    SEXTANT_RETURN_IF_ERROR(Ask(check));
    Faults faults;
    faults.random.push_back(f);
    faults.random[0].seed += static_cast<uint64_t>(i);
    SEXTANT_ASSIGN_OR_RETURN(const FaultyStep faulty, step.Step(faults));
    if (faulty.unreachable.empty()) slowdowns.push_back(faulty.slowdown);
  }
  outcome.cut_off_count = study.draw_count - static_cast<int64_t>(slowdowns.size());
  if (slowdowns.empty()) return outcome;
  std::sort(slowdowns.begin(), slowdowns.end());
  const double n = static_cast<double>(slowdowns.size());
  double sum = 0;
  for (const double s : slowdowns) sum += s;
  double squares = 0;
  for (const double s : slowdowns) squares += (s - sum / n) * (s - sum / n);
  const double error = n > 1 ? kNormal90 * std::sqrt(squares / (n - 1) / n) : 0;
  outcome.mean_slowdown = sum / n;
  outcome.low_slowdown = outcome.mean_slowdown - error;
  outcome.high_slowdown = outcome.mean_slowdown + error;
  outcome.median_slowdown = slowdowns[slowdowns.size() / 2];
  outcome.p95_slowdown = slowdowns[static_cast<size_t>(0.95 * (n - 1))];
  outcome.worst_slowdown = slowdowns.back();
  return outcome;
}

absl::StatusOr<std::vector<MappingOutcome>> CompareMappings(
    const Job& job, const TopologySpec& topology, absl::Span<const network_sim::Routing> routings,
    const RandomStudy& study, std::shared_ptr<const parameters::ParameterSet> parameters,
    const network_sim::ProgressCheck& check) {
  std::vector<MappingOutcome> outcomes;
  for (const Mapping& mapping : MappingsOf(job.plan)) {
    for (const network_sim::Routing routing : routings) {
      SEXTANT_ASSIGN_OR_RETURN(
          const StepOnNetwork step,
          StepOnNetwork::Create(job, {topology, routing, mapping}, parameters, check));
      SEXTANT_ASSIGN_OR_RETURN(const RandomOutcome random, DrawFaults(step, study, check));
      outcomes.push_back({mapping, routing, step.healthy_seconds(), random});
    }
  }
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const MappingOutcome& a, const MappingOutcome& b) {
                     if (a.random.cut_off_count != b.random.cut_off_count) {
                       return a.random.cut_off_count < b.random.cut_off_count;
                     }
                     return a.FaultySeconds() < b.FaultySeconds();
                   });
  return outcomes;
}

}  // namespace sextant::resilience
