// SPDX-License-Identifier: Apache-2.0
#include "common/serving/engine.h"

#include <algorithm>

#include "common/base/split_mix.h"

namespace sextant::serving {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Engine::Engine(const EngineLimits& limits, const std::vector<Request>& requests,
               const StepCost& cost)
    : limits_(limits), requests_(requests), cost_(cost) {
  total_pages_ = limits.kv_capacity_tokens / limits.page_tokens;
  const int64_t prefix_pages =
      std::min(total_pages_, limits.shared_prefix_tokens / limits.page_tokens);
  prefix_tokens_ = prefix_pages * limits.page_tokens;
  total_pages_ -= prefix_pages;
  free_pages_ = total_pages_;
  adapters_.resize(static_cast<size_t>(limits.adapters.count));
}

bool Engine::HoldAdapter(int64_t request) {
  if (adapters_.empty()) return true;
  AdapterState& wanted =
      adapters_[static_cast<size_t>(requests_[static_cast<size_t>(request)].adapter)];
  if (wanted.last_step < 0) {
    if (resident_adapters_ >= limits_.adapters.Resident()) {
      AdapterState* oldest = nullptr;
      for (AdapterState& a : adapters_) {
        if (a.last_step < 0 || a.users > 0) continue;
        if (oldest == nullptr || a.last_step < oldest->last_step) oldest = &a;
      }
      if (oldest == nullptr) return false;
      oldest->last_step = -1;
      --resident_adapters_;
    }
    ++resident_adapters_;
    ++adapter_loads_in_step_;
    ++adapter_load_count_;
  }
  wanted.last_step = step_index_;
  ++wanted.users;
  return true;
}

void Engine::ReleaseAdapter(int64_t request) {
  if (adapters_.empty()) return;
  AdapterState& used =
      adapters_[static_cast<size_t>(requests_[static_cast<size_t>(request)].adapter)];
  --used.users;
  used.last_step = step_index_;
}

int64_t Engine::Known(const Sequence& s) const {
  return requests_[static_cast<size_t>(s.request)].prompt_tokens + s.generated;
}

int64_t Engine::Wanted(const Sequence& s) const {
  const int64_t left = Known(s) - s.computed;
  if (limits_.speculation.draft_tokens == 0 || !Decodes(s)) return left;
  // The last token is never a draft: it would be thrown away.
  const int64_t missing = requests_[static_cast<size_t>(s.request)].output_tokens - s.generated - 1;
  return left + std::clamp<int64_t>(missing, 0, limits_.speculation.draft_tokens);
}

int64_t Engine::Accepted(const Sequence& s) const {
  const uint64_t place = base::SplitMix64(static_cast<uint64_t>(limits_.seed)) +
                         base::SplitMix64(static_cast<uint64_t>(s.request) << 32) +
                         static_cast<uint64_t>(s.generated);
  const double uniform = static_cast<double>(base::SplitMix64(place) >> 11) * 0x1.0p-53;
  return AcceptedTokens(limits_.speculation, s.planned - 1, uniform);
}

int64_t Engine::PagesFor(const Sequence& s, int64_t tokens) const {
  return CeilDivide(tokens - s.shared, limits_.page_tokens);
}

bool Engine::Before(const Sequence& a, const Sequence& b) const {
  const Request& ra = requests_[static_cast<size_t>(a.request)];
  const Request& rb = requests_[static_cast<size_t>(b.request)];
  if (ra.priority != rb.priority) return ra.priority < rb.priority;
  return a.request < b.request;  // requests are numbered in order of arrival
}

// The last token is never cached: it is sampled from the one before.
bool Engine::CanServe(int64_t request) const {
  const Request& r = requests_[static_cast<size_t>(request)];
  const int64_t shared =
      std::min(prefix_tokens_, (r.prompt_tokens - 1) / limits_.page_tokens * limits_.page_tokens);
  const int64_t output = limits_.prefill_only ? 1 : std::max<int64_t>(r.output_tokens, 1);
  if (!limits_.schedule.chunked_prefill &&
      limits_.schedule.max_batch_tokens < r.prompt_tokens + output - 1) {
    // A prompt that was pre-empted comes back with its output and has to go through in one piece.
    return false;
  }
  return CeilDivide(r.prompt_tokens + output - 1 - shared, limits_.page_tokens) <= total_pages_;
}

void Engine::Submit(int64_t request, bool prefilled) {
  Sequence s{.request = request};
  if (prefilled) {
    s.generated = 1;
    s.computed = Known(s) - 1;
  }
  const auto at =
      std::upper_bound(waiting_.begin(), waiting_.end(), s,
                       [this](const Sequence& a, const Sequence& b) { return Before(a, b); });
  waiting_.insert(at, s);
}

bool Engine::Reserve(Sequence& s, int64_t tokens) {
  const int64_t more = PagesFor(s, tokens) - s.pages;
  if (more > free_pages_) return false;
  if (more > 0) {
    s.pages += more;
    free_pages_ -= more;
    peak_pages_ = std::max(peak_pages_, total_pages_ - free_pages_);
  }
  return true;
}

// Gives up the cache of the last running sequence; it is computed again later.
void Engine::Preempt() {
  Sequence s = running_.back();
  running_.pop_back();
  ReleaseAdapter(s.request);
  free_pages_ += s.pages;
  s.pages = 0;
  s.computed = 0;
  s.shared = 0;
  s.planned = 0;
  const auto at =
      std::lower_bound(waiting_.begin(), waiting_.end(), s,
                       [this](const Sequence& a, const Sequence& b) { return Before(a, b); });
  waiting_.insert(at, s);
  ++preemption_count_;
  preempted_in_step_ = true;
}

void Engine::Plan(Sequence& s, int64_t tokens, int64_t* budget) {
  s.planned = tokens;
  *budget -= tokens;
}

void Engine::PlanRunning(int64_t* budget, bool prompts_only) {
  for (size_t i = 0; i < running_.size() && *budget > 0; ++i) {
    const bool decodes = Decodes(running_[i]);
    if (prompts_only && decodes) continue;
    const int64_t left = Wanted(running_[i]);
    const bool cut = decodes || limits_.schedule.chunked_prefill;
    const int64_t tokens = cut ? std::min(left, *budget) : left;
    if (tokens > *budget) continue;
    while (!Reserve(running_[i], running_[i].computed + tokens) && running_.size() > i + 1) {
      Preempt();
    }
    if (!Reserve(running_[i], running_[i].computed + tokens)) {
      Preempt();  // itself: those before it need what there is
      return;
    }
    Plan(running_[i], tokens, budget);
  }
}

void Engine::Admit(int64_t* budget) {
  while (!waiting_.empty() && *budget > 0 &&
         static_cast<int64_t>(running_.size()) < limits_.schedule.max_batch_sequences) {
    Sequence s = waiting_.front();
    if (prefix_cached_ && s.computed == 0) {
      const int64_t whole = (Known(s) - 1) / limits_.page_tokens * limits_.page_tokens;
      s.shared = std::min(prefix_tokens_, whole);
      s.computed = s.shared;
    }
    const int64_t left = Known(s) - s.computed;
    const int64_t tokens = limits_.schedule.chunked_prefill ? std::min(left, *budget) : left;
    if (tokens > *budget || PagesFor(s, Known(s)) > free_pages_) return;
    if (!HoldAdapter(s.request)) return;
    waiting_.pop_front();
    Reserve(s, Known(s));
    const auto at =
        std::upper_bound(running_.begin(), running_.end(), s,
                         [this](const Sequence& a, const Sequence& b) { return Before(a, b); });
    Plan(*running_.insert(at, s), tokens, budget);
  }
}

double Engine::StartStep() {
  int64_t budget = limits_.schedule.max_batch_tokens;
  preempted_in_step_ = false;
  adapter_loads_in_step_ = 0;
  ++step_index_;
  for (Sequence& s : running_) s.planned = 0;
  if (limits_.schedule.prefill_first) {
    PlanRunning(&budget, /*prompts_only=*/true);
    if (!preempted_in_step_) Admit(&budget);
    if (budget == limits_.schedule.max_batch_tokens) PlanRunning(&budget, /*prompts_only=*/false);
  } else {
    PlanRunning(&budget, /*prompts_only=*/false);
    if (!preempted_in_step_) Admit(&budget);
  }

  step_ = {.adapter_loads = adapter_loads_in_step_};
  std::vector<int64_t> used;
  for (const Sequence& s : running_) {
    if (s.planned == 0) continue;
    if (!adapters_.empty()) used.push_back(requests_[static_cast<size_t>(s.request)].adapter);
    if (Decodes(s)) {
      ++step_.decode_sequences;
      step_.decode_tokens += s.planned;
      step_.sampled_tokens += s.planned;
      step_.decode_context_tokens += s.computed + 1;
    } else {
      if (s.computed + s.planned == Known(s)) ++step_.sampled_tokens;
      const StepCost::Attention attention = cost_.PromptAttention(s.planned, s.computed);
      if (s.computed == s.shared) step_.images += limits_.images_per_request;
      step_.prompt_tokens += s.planned;
      step_.prompt_attention_seconds += attention.filled;
      step_.longest_prompt_attention_seconds =
          std::max(step_.longest_prompt_attention_seconds, attention.alone);
    }
  }
  std::sort(used.begin(), used.end());
  step_.adapters = std::unique(used.begin(), used.end()) - used.begin();
  return cost_.Seconds(step_);
}

void Engine::FinishStep(std::vector<StepEvent>* events) {
  size_t kept = 0;
  for (Sequence& s : running_) {
    bool finished = false;
    if (s.planned > 0) {
      int64_t yielded = 1;
      if (Decodes(s)) {
        yielded += Accepted(s);
        s.computed += yielded;
        ++decoded_sequences_;
        decoded_tokens_ += yielded;
      } else {
        s.computed += s.planned;
      }
      s.planned = 0;
      if (s.computed >= prefix_tokens_) prefix_cached_ = prefix_tokens_ > 0;
      if (s.computed >= Known(s)) {
        const Request& r = requests_[static_cast<size_t>(s.request)];
        s.generated += yielded;
        finished = limits_.prefill_only || s.generated >= r.output_tokens;
        const bool first = s.generated == yielded;
        if (first || finished) events->push_back({s.request, first, finished});
      }
    }
    if (finished) {
      free_pages_ += s.pages;
      ReleaseAdapter(s.request);
    } else {
      running_[kept++] = s;
    }
  }
  running_.resize(kept);
}

}  // namespace sextant::serving
