// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/job_reader.h"
#include "common/collectives/concurrent.h"
#include "common/network_sim/case_reader.h"
#include "common/resilience/fault_study.h"
#include "common/wire/convert_resilience.h"
#include "services/cli/library.h"
#include "services/cli/render/message_json.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using network_sim::Routing;
using network_sim::TopologySpec;
using workload::Job;

absl::Status Refuse(absl::string_view field, absl::string_view message) {
  base::Violations violations;
  violations.Add(field, message);
  return violations.ToStatus();
}

absl::StatusOr<TopologySpec> TopologyNamed(const std::string& name, const Job& job,
                                           Terminal& terminal) {
  const int64_t nodes = (job.gpu_count + job.cluster.gpus_per_node - 1) / job.cluster.gpus_per_node;
  if (name == "own") return collectives::TopologyOf(job.cluster, nodes);
  if (name == "fat-tree") return resilience::FatTreeOf(job);
  absl::string_view sizes = name;
  if (absl::ConsumePrefix(&sizes, "torus:")) {
    std::vector<int64_t> dimensions;
    for (const absl::string_view size : absl::StrSplit(sizes, 'x')) {
      if (absl::SimpleAtoi(size, &dimensions.emplace_back())) continue;
      return Refuse("--topology", absl::StrCat("is \"", name.substr(0, 64),
                                               "\" but sizes must be counts: torus:8x16x8"));
    }
    return resilience::TorusOf(job, dimensions);
  }
  if (name.find('/') == std::string::npos && name.find(".json") == std::string::npos) {
    return Refuse("--topology", absl::StrCat("is \"", name.substr(0, 64),
                                             "\" but must be own, fat-tree, torus:8x16x8, or the "
                                             "path of a network case (JSON)"));
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(name));
  SEXTANT_ASSIGN_OR_RETURN(network_sim::NetworkCase network_case,
                           network_sim::ParseNetworkCase(text, name));
  return std::move(network_case.topology);
}

std::string FractionText(double fraction) {
  return fraction > 0 ? absl::StrCat("at ", FormatShare(fraction)) : "dead";
}

std::string SlowdownText(double slowdown) { return absl::StrFormat("%.4f", slowdown); }

std::string OutcomeText(const types::v1::RandomFaultOutcome& o) {
  std::string text = absl::StrCat(
      SlowdownText(o.mean_slowdown()), " (90 % interval ", SlowdownText(o.low_slowdown()), " to ",
      SlowdownText(o.high_slowdown()), "), median ", SlowdownText(o.median_slowdown()),
      ", one in twenty above ", SlowdownText(o.p95_slowdown()));
  if (o.cut_off_count() > 0) {
    absl::StrAppend(&text, "; ", o.cut_off_count(), " of ", o.draw_count(), " draws cut ranks off");
  }
  return text;
}

// Rows of single faults that a person is shown; JSON has all.
constexpr int kShownFaults = 40;

std::string ReportText(const types::v1::FaultReport& r) {
  Table head({{""}, {""}});
  head.AddRow({"model", absl::StrCat(Printable(r.model()), ", ", r.gpu_count(), " GPUs")});
  head.AddRow({"interconnect",
               absl::StrCat(r.topology(), ", routing ", r.routing(), ", mapping ", r.mapping())});
  head.AddRow({"step", FormatSeconds(r.healthy_seconds())});
  if (r.has_random_faults()) {
    head.AddRow({"random faults", absl::StrCat("slow-down ", OutcomeText(r.random_faults()))});
  }
  std::string text = head.ToText();
  Table faults({{"one of"},
                {"like"},
                {"is"},
                {"step", Align::kRight},
                {"slow-down", Align::kRight},
                {"on it"}});
  for (int i = 0; i < std::min(kShownFaults, r.single_faults_size()); ++i) {
    const types::v1::PartFault& f = r.single_faults(i);
    faults.AddRow(
        {absl::StrCat(f.count(), " ", f.part()), f.example(), FractionText(f.bandwidth_fraction()),
         f.has_step_seconds() ? FormatSeconds(f.step_seconds()) : "cut off",
         f.has_slowdown() ? SlowdownText(f.slowdown()) : "-", absl::StrJoin(f.crossed(), ", ")});
  }
  absl::StrAppend(&text, "\n", faults.ToText());
  if (r.single_faults_size() > kShownFaults) {
    absl::StrAppend(&text, "and ", r.single_faults_size() - kShownFaults,
                    " milder ones (--output json has all)\n");
  }
  if (r.mappings_size() == 0) return text;
  Table mappings({{"mapping"},
                  {"routing"},
                  {"healthy", Align::kRight},
                  {"expected", Align::kRight},
                  {"slow-down under random faults"}});
  for (const types::v1::MappingRobustness& m : r.mappings()) {
    mappings.AddRow({m.mapping(), m.routing(), FormatSeconds(m.healthy_seconds()),
                     FormatSeconds(m.expected_seconds()), OutcomeText(m.random_faults())});
  }
  return absl::StrCat(text, "\n", mappings.ToText());
}

}  // namespace

absl::StatusOr<ExitCode> StudyFaults(const CommonOptions& common, const FaultsOptions& options,
                                     Terminal& terminal) {
  if (!common.server.empty()) {
    return Refuse("--server", "has no part in faults: the embedded library answers; leave it out");
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.job_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(
      const Job job, catalog::ReadJob(text, options.job_file == "-" ? "stdin" : options.job_file,
                                      options.overrides, catalog));
  resilience::Interconnect interconnect;
  SEXTANT_ASSIGN_OR_RETURN(interconnect.topology, TopologyNamed(options.topology, job, terminal));
  SEXTANT_ASSIGN_OR_RETURN(interconnect.routing, network_sim::ParseRouting(options.routing));
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
  SEXTANT_ASSIGN_OR_RETURN(const resilience::StepOnNetwork step,
                           resilience::StepOnNetwork::Create(job, interconnect, parameters));
  types::v1::FaultReport report;
  report.set_model(job.model.name);
  report.set_gpu_count(job.gpu_count);
  report.set_parameter_set(parameters->version());
  report.set_topology(std::string(network_sim::TopologyKindName(interconnect.topology.kind)));
  report.set_routing(options.routing);
  report.set_mapping(resilience::MappingName(job.plan, interconnect.mapping));
  report.set_healthy_seconds(step.healthy_seconds());
  SEXTANT_ASSIGN_OR_RETURN(const auto ranked,
                           resilience::RankSingleFaults(step, options.fractions));
  for (const resilience::RankedFault& fault : ranked) {
    *report.add_single_faults() = wire::ToProto(fault);
  }
  resilience::RandomStudy study{.draw_count = options.draw_count};
  study.faults.seed = options.seed;
  study.faults.dead_probability = options.dead_probability;
  study.faults.derated_probability = options.derated_probability;
  if (options.draw_count != 0) {
    SEXTANT_ASSIGN_OR_RETURN(const auto outcome, resilience::DrawFaults(step, study));
    *report.mutable_random_faults() = wire::ToProto(outcome);
  }
  if (options.compare_mappings) {
    if (study.draw_count == 0) study.draw_count = 20;
    constexpr Routing kRoutings[] = {Routing::kAutomatic, Routing::kShortest, Routing::kHashed,
                                     Routing::kAdaptive};
    SEXTANT_ASSIGN_OR_RETURN(
        const auto outcomes,
        resilience::CompareMappings(job, interconnect.topology, kRoutings, study, parameters));
    for (const resilience::MappingOutcome& outcome : outcomes) {
      *report.add_mappings() = wire::ToProto(outcome, job.plan);
    }
  }
  terminal.Print(common.output == "json" ? MessageJson(report) : ReportText(report));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
