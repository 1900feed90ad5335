// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/routing.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace sextant::network_sim {
namespace {

constexpr int64_t kUnreachable = std::numeric_limits<int64_t>::max();

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
uint64_t SplitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

Router::Router(const Topology& topology, uint64_t ecmp_seed)
    : topology_(topology),
      mixed_seed_(SplitMix64(ecmp_seed)),
      distance_(static_cast<size_t>(topology.node_count()), kUnreachable) {}

std::vector<int32_t> Router::DimensionOrdered(int32_t source, int32_t destination) const {
  std::vector<int32_t> path;
  int64_t node = source;
  int64_t stride = 1;
  for (const int64_t size : topology_.grid()) {
    const int64_t target = destination / stride % size;
    int64_t position = node / stride % size;
    int64_t step = target > position ? 1 : -1;
    if (topology_.wraps()) {
      const int64_t ahead = (target - position + size) % size;
      step = 2 * ahead <= size ? 1 : -1;  // half way round: the positive direction
    }
    while (position != target) {
      const int64_t next = (position + step + size) % size;
      const int64_t next_node = node + (next - position) * stride;
      const int32_t link =
          topology_.FindLink(static_cast<int32_t>(node), static_cast<int32_t>(next_node));
      if (link < 0) return {};
      path.push_back(link);
      position = next;
      node = next_node;
    }
    stride *= size;
  }
  return path;
}

void Router::StartFrom(int32_t destination) {
  if (distances_to_ == destination) return;
  distances_to_ = destination;
  for (const int32_t node : touched_) distance_[static_cast<size_t>(node)] = kUnreachable;
  touched_.assign(1, destination);
  for (std::vector<int32_t>& bucket : buckets_) bucket.clear();
  settled_ = 0;
  queued_ = 1;
  distance_[static_cast<size_t>(destination)] = 0;
  buckets_[0].push_back(destination);
}

// Dial's algorithm: costs are small integers, so a ring of buckets is the queue. Stops as soon as
// the node's distance is final, which makes all nearer ones final too.
void Router::Settle(int32_t node) {
  while (queued_ > 0 && distance_[static_cast<size_t>(node)] > settled_) {
    std::vector<int32_t>& bucket = buckets_[static_cast<size_t>(settled_ % kBuckets)];
    for (size_t i = 0; i < bucket.size(); ++i) {
      --queued_;
      if (distance_[static_cast<size_t>(bucket[i])] == settled_) Relax(bucket[i]);
    }
    bucket.clear();
    ++settled_;
  }
}

void Router::Relax(int32_t node) {
  for (const int32_t index : topology_.LinksFrom(node)) {
    const DirectedLink& link = topology_.links()[static_cast<size_t>(index)];
    int64_t& known = distance_[static_cast<size_t>(link.to)];
    const int64_t through = settled_ + link.cost;  // links cost the same both ways
    if (through >= known) continue;
    // A node with one link forwards for nobody; Route steps over it where it is the source.
    if (topology_.LinksFrom(link.to).size() == 1) continue;
    if (known == kUnreachable) touched_.push_back(link.to);
    known = through;
    buckets_[static_cast<size_t>(through % kBuckets)].push_back(link.to);
    ++queued_;
  }
}

absl::StatusOr<std::vector<int32_t>> Router::Route(int32_t source, int32_t destination) {
  const bool grid = !topology_.grid().empty();
  if (grid) {
    std::vector<int32_t> path = DimensionOrdered(source, destination);
    if (!path.empty()) return path;
  }
  StartFrom(destination);
  std::vector<int32_t> path;
  int32_t node = source;
  if (source != destination && topology_.LinksFrom(source).size() == 1) {
    path.push_back(topology_.LinksFrom(source)[0]);
    node = topology_.links()[static_cast<size_t>(path[0])].to;
  }
  Settle(node);
  if (distance_[static_cast<size_t>(node)] == kUnreachable) {
    return absl::UnavailableError(absl::StrCat("unreachable: no surviving path from ",
                                               topology_.NodeName(source), " to ",
                                               topology_.NodeName(destination)));
  }
  std::vector<int32_t> next;
  while (node != destination) {
    next.clear();
    for (const int32_t index : topology_.LinksFrom(node)) {
      const DirectedLink& link = topology_.links()[static_cast<size_t>(index)];
      const int64_t beyond = distance_[static_cast<size_t>(link.to)];
      if (beyond != kUnreachable && beyond + link.cost == distance_[static_cast<size_t>(node)]) {
        next.push_back(index);
      }
    }
    size_t pick = 0;
    if (!grid && next.size() > 1) {
      const uint64_t key = (static_cast<uint64_t>(source) << 40) |
                           (static_cast<uint64_t>(destination) << 20) | static_cast<uint64_t>(node);
      pick = SplitMix64(mixed_seed_ ^ key) % next.size();
    }
    path.push_back(next[pick]);
    node = topology_.links()[static_cast<size_t>(next[pick])].to;
  }
  return path;
}

}  // namespace sextant::network_sim
