// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_concurrent.h"

#include <string>
#include <utility>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

constexpr int64_t kMaxGpuCount = int64_t{1} << 19;

void ReadGroups(const std::string& path, const types::v1::PlacedCollective& proto,
                int64_t gpu_count, collectives::PlacedCollective& placed, Reader& reader) {
  const bool strided = proto.has_group_size() || proto.has_stride();
  if (proto.groups_size() > 0) {
    if (strided) reader.Add(path + ".groups", "are listed: leave out group_size and stride");
    for (const types::v1::RankGroup& group : proto.groups()) {
      placed.groups.emplace_back(group.ranks().begin(), group.ranks().end());
    }
    return;
  }
  if (gpu_count < 1 || gpu_count > kMaxGpuCount) return;  // reported by TimeConcurrent
  const int64_t size = proto.has_group_size() ? proto.group_size() : gpu_count;
  const int64_t stride = proto.has_stride() ? proto.stride() : 1;
  if (size < 1 || size > gpu_count) {
    reader.Add(path + ".group_size",
               absl::StrCat("is ", size, " but must be between 1 and ", gpu_count));
  } else if (stride < 1 || stride > gpu_count || gpu_count % (size * stride) != 0) {
    reader.Add(path + ".stride",
               absl::StrCat("is ", stride, " but must be at least 1, and group_size ", size,
                            " times it must divide the ", gpu_count, " GPUs; or list the groups"));
  } else {
    placed.groups = collectives::StridedGroups(gpu_count, size, stride);
  }
}

}  // namespace

types::v1::ConcurrentCollectives ToProto(const collectives::ConcurrentCollectives& question) {
  types::v1::ConcurrentCollectives proto;
  *proto.mutable_cluster() = ToProto(question.cluster);
  proto.set_gpu_count(question.gpu_count);
  proto.set_profile(question.profile);
  for (const collectives::PlacedCollective& placed : question.collectives) {
    types::v1::PlacedCollective& out = *proto.add_collectives();
    out.set_name(placed.name);
    out.set_kind(std::string(collectives::CollectiveKindName(placed.kind)));
    out.set_bytes(placed.bytes);
    for (const std::vector<int64_t>& group : placed.groups) {
      out.add_groups()->mutable_ranks()->Assign(group.begin(), group.end());
    }
    out.set_start_seconds(placed.start_seconds);
  }
  for (const network_sim::FaultPattern& pattern : question.faults.patterns) {
    types::v1::DeratedLinks& out = *proto.add_derated_links();
    out.set_links(pattern.links);
    out.set_bandwidth_fraction(pattern.bandwidth_fraction);
  }
  for (const std::string& name : question.faults.dead_switches) proto.add_dead_switches(name);
  return proto;
}

absl::StatusOr<collectives::ConcurrentCollectives> FromProto(
    const types::v1::ConcurrentCollectives& proto) {
  Reader reader;
  collectives::ConcurrentCollectives question;
  if (proto.has_cluster()) {
    question.cluster = reader.Nested("cluster", FromProto(proto.cluster()));
  } else {
    reader.Missing("cluster", "give the cluster");
  }
  question.gpu_count = proto.gpu_count();
  question.profile = proto.profile();
  for (int i = 0; i < proto.collectives_size(); ++i) {
    const types::v1::PlacedCollective& in = proto.collectives(i);
    const std::string path = absl::StrCat("collectives[", i, "]");
    collectives::PlacedCollective placed;
    if (in.kind().empty()) {
      reader.Missing(path + ".kind", "say which collective, for example all_reduce");
    }
    placed.kind = reader.Word(path + ".kind", in.kind(), collectives::ParseCollectiveKind,
                              collectives::CollectiveKind::kAllReduce);
    placed.name = in.name().empty() ? in.kind() : in.name();
    placed.bytes = reader.Finite(path + ".bytes", in.bytes());
    placed.start_seconds = reader.Finite(path + ".start_seconds", in.start_seconds());
    ReadGroups(path, in, question.gpu_count, placed, reader);
    question.collectives.push_back(std::move(placed));
  }
  for (int i = 0; i < proto.derated_links_size(); ++i) {
    const types::v1::DeratedLinks& in = proto.derated_links(i);
    question.faults.patterns.push_back(
        {.links = in.links(),
         .bandwidth_fraction = reader.Finite(
             absl::StrCat("derated_links[", i, "].bandwidth_fraction"), in.bandwidth_fraction())});
  }
  question.faults.dead_switches.assign(proto.dead_switches().begin(), proto.dead_switches().end());
  return reader.Finish(std::move(question));
}

types::v1::ConcurrentTimes ToProto(const collectives::ConcurrentTimes& times) {
  types::v1::ConcurrentTimes proto;
  for (const collectives::ConcurrentTimes::Times& one : times.collectives) {
    types::v1::ConcurrentTime& out = *proto.add_collectives();
    out.set_seconds(one.seconds);
    out.set_alone_seconds(one.alone_seconds);
  }
  proto.set_limiting_link(times.limiting_link);
  return proto;
}

absl::StatusOr<collectives::ConcurrentTimes> FromProto(const types::v1::ConcurrentTimes& proto) {
  Reader reader;
  collectives::ConcurrentTimes times;
  for (int i = 0; i < proto.collectives_size(); ++i) {
    const std::string path = absl::StrCat("collectives[", i, "]");
    const types::v1::ConcurrentTime& in = proto.collectives(i);
    times.collectives.push_back(
        {.seconds = reader.Finite(path + ".seconds", in.seconds()),
         .alone_seconds = reader.Finite(path + ".alone_seconds", in.alone_seconds())});
  }
  times.limiting_link = proto.limiting_link();
  return reader.Finish(std::move(times));
}

}  // namespace sextant::wire
