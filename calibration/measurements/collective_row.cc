// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/measurements/row_reader.h"

namespace sextant::calibration {

namespace {
// What stands for software that is not stated: benchmarks that launch every call from the host.
constexpr absl::string_view kBenchmarkProfile = "nccl-tests";
}  // namespace

CollectiveRow ReadCollectiveRow(RowReader& row, Lookups& lookups) {
  CollectiveRow result;
  result.facts = ReadFacts(row, "software");
  RowFacts& facts = result.facts;
  const absl::string_view name = row.Text("collective");
  facts.family = std::string(name);
  if (facts.profile.empty()) facts.profile = std::string(kBenchmarkProfile);

  const int64_t gpus = row.RequiredInteger("gpus");
  const int64_t nodes = row.RequiredInteger("nodes");
  int64_t per_node = 0;
  if (gpus > 0 && nodes > 0) {
    if (gpus % nodes != 0) {
      row.violations().Add("nodes", absl::StrCat("is ", nodes, " but must divide gpus ", gpus));
    }
    per_node = gpus / nodes;
  }
  result.cluster = ReadCluster(row, lookups, 0, &facts);

  bool routed = absl::StartsWith(name, "moe_");
  if (name.empty()) {
    row.Missing("collective");
  } else if (!routed) {
    const auto kind = collectives::ParseCollectiveKind(name == "send_recv" ? "send_receive" : name);
    if (kind.ok()) {
      result.collective.kind = *kind;
    } else {
      row.violations().Add("collective", OneLine(kind.status()));
    }
  }
  const auto bytes = row.Positive("bytes");
  const auto time_us = row.Positive("time_us");
  result.collective.bytes = bytes.value_or(0);
  result.collective.group_size = gpus;
  result.collective.ranks_per_node = per_node;
  result.measured_seconds = time_us.value_or(0) * 1e-6;

  if (nodes > 1 && row.Text("fabric_stated") == "0") {
    facts.counted = false;
    facts.warnings.push_back(
        "the fabric between nodes is not stated: predicted on the assumed cluster, not counted");
  }
  if (row.violations().empty() && routed) {
    facts.skip_reason =
        "routed expert exchange: its kernels and padding are not those of a collective";
  } else if (row.violations().empty() && (!bytes || !time_us)) {
    facts.skip_reason =
        absl::StrCat(!bytes ? "bytes" : "time_us", " is not stated: an anchor for bandwidth only");
  }
  if (row.violations().empty() && facts.skip_reason.empty()) {
    const absl::Status valid = collectives::ValidateCollective(result.collective, *result.cluster);
    for (const base::Violation& violation : base::ViolationsOf(valid)) {
      row.violations().Add(violation.field, violation.description);
    }
  }
  facts.refusal = row.Refusal();
  return result;
}

}  // namespace sextant::calibration
