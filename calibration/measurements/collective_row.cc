// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "calibration/measurements/row_reader.h"

namespace sextant::calibration {

namespace {
// What stands for software that is not stated: benchmarks that launch every call from the host.
constexpr absl::string_view kBenchmarkProfile = "nccl-tests";

// Fabrics between nodes as sources describe them, and the cluster of the catalog that has them.
struct NamedFabric {
  absl::string_view words;
  absl::string_view accelerator;
  absl::string_view cluster;
};
constexpr NamedFabric kFabrics[] = {
    {"GPUDirect-TCPXO", "h100-sxm5-80gb", "gcp-a3-mega"},
    {"GPUDirect-TCPX", "h100-sxm5-80gb", "gcp-a3-high"},
    {"EFAv2 32x100Gb/s", "h100-sxm5-80gb", "aws-p5"},
    {"EFA 4x100Gb/s", "a100-sxm4-40gb", "aws-p4d"},
    {"EFA 4x100Gb/s", "a100-sxm4-80gb", "aws-p4de"},
    {"4x 200Gb/s IB", "a100-sxm4-80gb", "a100-4xhdr"},
    {"8x 400Gb/s IB", "h100-sxm5-80gb", "dgx-h100"},
};

// Empty where the fabric is none of these.
absl::string_view ClusterOfFabric(absl::string_view interconnect, absl::string_view accelerator) {
  for (const NamedFabric& fabric : kFabrics) {
    if (fabric.accelerator == accelerator && absl::StrContains(interconnect, fabric.words)) {
      return fabric.cluster;
    }
  }
  return "";
}

// The number after "name=" in notes such as "tokens=1;hidden=2048;topk=8"; 0 where there is none.
double NoteNumber(absl::string_view notes, absl::string_view name) {
  for (const absl::string_view item : absl::StrSplit(notes, absl::ByAnyChar("; "))) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(item, '=');
    double value = 0;
    if (pair.first == name && absl::SimpleAtod(pair.second, &value)) return value;
  }
  return 0;
}

// Bytes that each rank sends in a low-latency exchange with experts: every token goes to each of
// its experts, out as fp8 with a 4-byte scale per 128 values, back as bf16.
double ExpertExchangeBytes(absl::string_view kind, absl::string_view notes) {
  const double values =
      NoteNumber(notes, "tokens") * NoteNumber(notes, "topk") * NoteNumber(notes, "hidden");
  return values * (kind == "moe_dispatch_ll" ? 1 + 4.0 / 128 : 2);
}
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
  result.cluster = ReadCluster(row, lookups, 0, &facts,
                               ClusterOfFabric(row.Text("interconnect"), facts.accelerator));

  const double exchanged =
      absl::EndsWith(name, "_ll") ? ExpertExchangeBytes(name, row.Text("notes")) : 0;
  const bool routed = absl::StartsWith(name, "moe_") && !(exchanged > 0);
  if (name.empty()) {
    row.Missing("collective");
  } else if (exchanged > 0) {
    result.collective.kind = collectives::CollectiveKind::kAllToAll;
    facts.warnings.push_back(
        "an exchange with experts is taken as an all-to-all of the bytes that tokens, topk and "
        "hidden give");
  } else if (!routed) {
    const auto kind = collectives::ParseCollectiveKind(name == "send_recv" ? "send_receive" : name);
    if (kind.ok()) {
      result.collective.kind = *kind;
    } else {
      row.violations().Add("collective", OneLine(kind.status()));
    }
  }
  const auto stated_bytes = row.Positive("bytes");
  const std::optional<double> bytes = exchanged > 0 ? exchanged : stated_bytes;
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
