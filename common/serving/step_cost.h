// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_STEP_COST_H_
#define SEXTANT_COMMON_SERVING_STEP_COST_H_

#include <cstdint>
#include <vector>

namespace sextant::serving {

// y over x, straight between its points and beyond the last two; constant before the first.
class Line {
 public:
  Line() = default;
  // `x` increasing, as many as `y`, at least one.
  Line(std::vector<double> x, std::vector<double> y);
  double At(double x) const;

 private:
  std::vector<double> x_;
  std::vector<double> y_;
};

// z over (x, y): bilinear inside its grid, straight beyond it, constant before it.
class Plane {
 public:
  Plane() = default;
  // z[i * y.size() + j] belongs to (x[i], y[j]).
  Plane(std::vector<double> x, std::vector<double> y, std::vector<double> z);
  double At(double x, double y) const;

 private:
  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<double> z_;
};

// What one engine step does.
struct StepLoad {
  int64_t prompt_tokens = 0;            // new tokens of prompts
  double prompt_attention_seconds = 0;  // sum of PromptAttention(...).filled over its chunks
  double longest_prompt_attention_seconds = 0;  // largest PromptAttention(...).alone
  int64_t decode_sequences = 0;
  int64_t decode_tokens = 0;          // of them; more than one each where drafts are checked
  int64_t decode_context_tokens = 0;  // keys that they attend to, summed
  int64_t sampled_tokens = 0;         // whose successors are asked for at the end of the step
  int64_t adapters = 0;               // different ones of its sequences
  int64_t adapter_loads = 0;          // that had to be fetched to the device first
  int64_t images = 0;                 // encoded
};

// Times of a step as tables over its size; all in seconds, over all layers and stages.
struct StepTables {
  Line prompt_pass;        // over tokens of the step, without attention cores and head
  Line decode_pass;        // the same where no prompt is in the step (latent attention absorbs)
  Line head;               // over sampled tokens
  Plane decode_attention;  // over sequences and keys of each, with their drafts
  Plane prompt_attention_alone;   // one chunk: over its tokens and the tokens before it
  Plane prompt_attention_filled;  // the same as a share of a device full of such chunks
  double prompt_attention_floor = 0;
  double dispatch = 0;  // host time to issue a pass; the device's time hides it or not
  double engine_step = 0;
  double engine_prefill = 0;       // more in a step with a prompt
  double engine_per_sequence = 0;  // more for each decoding sequence
  int64_t pipeline_stages = 1;     // a step is spread over them as micro-batches
  double adapter_kernels = 0;      // of a step with adapters, however many
  double adapter_read = 0;         // more for each different adapter
  double adapter_token = 0;        // and for each token
  double adapter_load = 0;         // for each that is fetched; steps wait for it
  Line images;                     // over images that are encoded together
  double draft_share = 0;          // time of a step's drafts over that of the pass that checks them
  double stretch = 1;              // of every step, by a job beside this one
};

// Seconds of one engine step. Immutable.
class StepCost {
 public:
  explicit StepCost(StepTables tables) : tables_(std::move(tables)) {}

  struct Attention {
    double filled = 0;
    double alone = 0;
  };
  // Of one chunk of `tokens` new prompt tokens after `before` tokens.
  Attention PromptAttention(int64_t tokens, int64_t before) const;
  // O(log of the tables' points).
  double Seconds(const StepLoad& load) const;

 private:
  StepTables tables_;
};

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_STEP_COST_H_
