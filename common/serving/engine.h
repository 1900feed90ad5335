// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_ENGINE_H_
#define SEXTANT_COMMON_SERVING_ENGINE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "common/serving/serving_load.h"
#include "common/serving/speculation.h"
#include "common/serving/step_cost.h"

namespace sextant::serving {

struct EngineLimits {
  int64_t kv_capacity_tokens = 0;
  int64_t page_tokens = 16;
  EngineSchedule schedule;
  int64_t shared_prefix_tokens = 0;
  Speculation speculation;
  int64_t seed = 1;  // of what drafts are accepted
  Adapters adapters;
  int64_t images_per_request = 0;  // encoded with the first piece of a prompt
  bool prefill_only = false;       // of a pool that hands sequences on after their first token
};

// What came out of a step for one request.
struct StepEvent {
  int64_t request = 0;
  bool first_token = false;
  bool finished = false;
};

// One replica that batches continuously. A step is planned by StartStep, which tells how long it
// takes, and ended by FinishStep. Invariant: pages of running sequences never exceed the capacity.
class Engine {
 public:
  // `requests` and `cost` outlive the engine.
  Engine(const EngineLimits& limits, const std::vector<Request>& requests, const StepCost& cost);

  // Whether the request fits when it is alone.
  bool CanServe(int64_t request) const;
  // Puts it into the queue; `prefilled`: with its prompt's cache and its first token.
  void Submit(int64_t request, bool prefilled = false);

  bool HasWork() const { return !waiting_.empty() || !running_.empty(); }
  int64_t UnfinishedCount() const {
    return static_cast<int64_t>(waiting_.size() + running_.size());
  }
  // Plans a step and returns its seconds. Needs HasWork(). O(running sequences).
  double StartStep();
  // Ends the planned step; appends what it produced, in order of the batch.
  void FinishStep(std::vector<StepEvent>* events);

  int64_t preemption_count() const { return preemption_count_; }
  int64_t peak_pages() const { return peak_pages_; }
  // Sequences that decoded in a step, and the tokens that this yielded; summed over steps.
  int64_t decoded_sequences() const { return decoded_sequences_; }
  int64_t decoded_tokens() const { return decoded_tokens_; }
  int64_t adapter_load_count() const { return adapter_load_count_; }
  int64_t total_pages() const { return total_pages_; }
  const StepLoad& last_step() const { return step_; }

 private:
  struct Sequence {
    int64_t request = 0;
    int64_t computed = 0;   // tokens in the cache
    int64_t generated = 0;  // output tokens so far
    int64_t pages = 0;      // of its own
    int64_t shared = 0;     // tokens found in the shared prefix
    int64_t planned = 0;    // tokens of the step under way
  };

  int64_t Known(const Sequence& s) const;  // prompt and output tokens so far
  bool Decodes(const Sequence& s) const { return s.generated > 0 && s.computed + 1 == Known(s); }
  // New tokens that a step may give it: the rest of what is known, and drafts where it decodes.
  int64_t Wanted(const Sequence& s) const;
  // Drafts of a decoding sequence's planned tokens that stand. A function of seed, request and
  // place: what else runs does not change it.
  int64_t Accepted(const Sequence& s) const;
  int64_t PagesFor(const Sequence& s, int64_t tokens) const;
  bool Before(const Sequence& a, const Sequence& b) const;  // by priority, then arrival
  bool Reserve(Sequence& s, int64_t tokens);
  void Preempt();
  // Makes the adapter of a request one of the resident ones, in the place of that which was used
  // longest ago; false where running sequences use all of them.
  bool HoldAdapter(int64_t request);
  void ReleaseAdapter(int64_t request);
  void PlanRunning(int64_t* budget, bool prompts_only);
  void Admit(int64_t* budget);
  void Plan(Sequence& s, int64_t tokens, int64_t* budget);

  const EngineLimits limits_;
  const std::vector<Request>& requests_;
  const StepCost& cost_;
  std::deque<Sequence> waiting_;   // in order
  std::vector<Sequence> running_;  // in order
  int64_t total_pages_ = 0;        // beside those of the shared prefix
  int64_t free_pages_ = 0;
  int64_t prefix_tokens_ = 0;  // whole pages of the shared prefix
  bool prefix_cached_ = false;
  bool preempted_in_step_ = false;
  int64_t preemption_count_ = 0;
  int64_t peak_pages_ = 0;
  struct AdapterState {
    int64_t users = 0;       // running sequences
    int64_t last_step = -1;  // that used it; -1: not resident
  };
  std::vector<AdapterState> adapters_;
  int64_t resident_adapters_ = 0;
  int64_t adapter_loads_in_step_ = 0;
  int64_t adapter_load_count_ = 0;
  int64_t step_index_ = 0;
  int64_t decoded_sequences_ = 0;
  int64_t decoded_tokens_ = 0;
  StepLoad step_;
};

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_ENGINE_H_
