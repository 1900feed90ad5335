// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_ESTIMATE_CACHE_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_ESTIMATE_CACHE_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/collectives/collective.h"
#include "common/operator_cost/operator.h"

namespace sextant::orchestrator_service {

// All fields of an operator or a collective as integers: equal exactly where the values are.
using OperatorKey = std::array<int64_t, 13>;
using CollectiveKey = std::array<int64_t, 5>;
OperatorKey KeyOf(const operator_cost::Operator& op);
CollectiveKey KeyOf(const collectives::Collective& collective);

// Answers by key within a context (accelerator or cluster, profile, parameter set). An answer is a
// pure function of both, so that entries are never wrong; those of a set that nobody asks for again
// are dropped. At most `capacity` entries: when full,
// everything is dropped, which costs one batch of questions and needs no order of use.
// Thread-safe.
template <typename Key, typename Value>
class EstimateCache {
 public:
  explicit EstimateCache(size_t capacity) : capacity_(capacity) {}

  // Writes the answers that are known to `values`; returns the indices of the others.
  std::vector<size_t> Find(const std::string& context, absl::Span<const Key> keys,
                           std::vector<Value>* values) const {
    values->resize(keys.size());
    std::vector<size_t> missing;
    const std::lock_guard lock(mutex_);
    const auto known = contexts_.find(context);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (known != contexts_.end()) {
        if (const auto found = known->second.find(keys[i]); found != known->second.end()) {
          (*values)[i] = found->second;
          continue;
        }
      }
      missing.push_back(i);
    }
    return missing;
  }

  void Insert(const std::string& context, const Key& key, const Value& value) {
    const std::lock_guard lock(mutex_);
    if (size_ >= capacity_) {
      contexts_.clear();
      size_ = 0;
    }
    if (contexts_[context].emplace(key, value).second) ++size_;
  }

  // Drops the answers of all contexts that `stale` holds for.
  template <typename Stale>
  void Drop(const Stale& stale) {
    const std::lock_guard lock(mutex_);
    absl::erase_if(contexts_, [&](const auto& entry) {
      if (!stale(entry.first)) return false;
      size_ -= entry.second.size();
      return true;
    });
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return size_;
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  size_t size_ = 0;
  absl::flat_hash_map<std::string, absl::flat_hash_map<Key, Value>> contexts_;
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_ESTIMATE_CACHE_H_
