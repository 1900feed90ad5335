// SPDX-License-Identifier: Apache-2.0
// Laws of every reader under damaged input: nothing crashes (AddressSanitizer and
// UndefinedBehaviorSanitizer watch in the asan preset), what comes out is finite and bounded, and a
// row that is taken can be read back. Seeded: a failure repeats.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/fuzz_inputs.h"
#include "calibration/ingest/gunzip.h"
#include "calibration/ingest/ingest.h"
#include "calibration/measurements/csv.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

constexpr absl::string_view kTokens[] = {
    "\n",
    "\r",
    absl::string_view("\0", 1),
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "|",
    ":",
    "NaN",
    "-1",
    "1e999",
    "0",
    "1e308",
    "inf",
    "N/A",
    "\x1b[",
    "\xFF",
    "\\",
    "\\u12",
    "iteration 1/ 2 |",
    "step: 1 loss: 1 tps: 1",
    "DLLL {",
    ":::MLLOG {",
    "9223372036854775807",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Next() {
    std::string text = Pick();
    const size_t changes = Below(8);
    for (size_t i = 0; i < changes; ++i) Change(&text);
    return text;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  std::string Pick() { return kFuzzInputs[Below(std::size(kFuzzInputs))]; }

  void Change(std::string* text) {
    const size_t at = Below(text->size() + 1);
    switch (Below(7)) {
      case 0:
        if (at < text->size()) (*text)[at] = static_cast<char>(random_());
        break;
      case 1:
        text->erase(at, Below(40));
        break;
      case 2: {
        const absl::string_view token = kTokens[Below(std::size(kTokens))];
        text->insert(at, token.data(), token.size());
        break;
      }
      case 3:
        text->insert(at, text->substr(Below(text->size() + 1), Below(200)));
        break;
      case 4:
        text->resize(at);
        break;
      case 5:
        text->insert(at, Pick());
        break;
      default: {
        // Another number in the place of one.
        const size_t digit = text->find_first_of("0123456789", at);
        if (digit != std::string::npos) {
          text->replace(digit, Below(4) + 1, absl::StrCat(random_() >> Below(64)));
        }
      }
    }
  }

  std::mt19937_64 random_;
};

IngestContext FullContext() {
  IngestContext context;
  context.accelerator = "h100-sxm5-80gb";
  context.cluster = "dgx-h100";
  workload::Job job;
  job.model.name = "m";
  job.gpu_count = 8;
  job.workload = workload::InferenceWorkload{100, 10, 1};
  context.job = job;
  return context;
}

void ExpectSound(const Ingested& ingested) {
  EXPECT_LE(ingested.refusals.items().size(), Refusals::kReasonLimit);
  for (const RowKind kind :
       {RowKind::kOperators, RowKind::kCollectives, RowKind::kTraining, RowKind::kInference}) {
    const std::string csv = RowsCsv(kind, ingested.rows);
    if (csv.empty()) continue;
    const auto table = calibration::ParseCsv(csv, "rows");
    ASSERT_TRUE(table.ok()) << table.status() << "\n" << csv;
    for (const char* column : {"latency_us", "time_us", "step_time_s", "ttft_ms", "itl_ms"}) {
      const int at = table->Column(column);
      if (at < 0) continue;
      for (const auto& row : table->rows) {
        const std::string& text = row[static_cast<size_t>(at)];
        double value = 0;
        if (text.empty()) continue;
        EXPECT_TRUE(absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0)
            << column << " " << text;
      }
    }
  }
}

// SEXTANT_FUZZ_ROUNDS multiplies the work, for long runs by hand.
int Rounds(int rounds) {
  const char* factor = std::getenv("SEXTANT_FUZZ_ROUNDS");
  return rounds * std::max(1, factor == nullptr ? 1 : std::atoi(factor));
}

TEST(IngestFuzz, NoMutationOfAnyFormatBreaksAReader) {
  const IngestContext bare;
  const IngestContext full = FullContext();
  Mutator mutator(20251204);
  int known = 0;
  const int rounds = Rounds(6000);
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    const std::string text = mutator.Next();
    SCOPED_TRACE(absl::StrCat("round ", i));
    const auto ingested = Ingest(text, "fuzz", i % 2 == 0 ? bare : full);
    if (!ingested.ok()) continue;
    ++known;
    ExpectSound(*ingested);
  }
  EXPECT_GT(known, rounds / 2);  // the mutations are not so wild that nothing is read
}

// Each reader also gets what the detector would not give it.
TEST(IngestFuzz, EveryReaderTakesEveryFormat) {
  Mutator mutator(8);
  const int rounds = Rounds(1500);
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutator.Next();
    for (const NcclTestsRun& run : ReadNcclTests(text).runs) {
      for (const NcclTestsRow& row : run.rows) {
        if (row.refusal.empty()) {
          EXPECT_GT(row.out_of_place->time_us, 0);
        }
      }
    }
    EXPECT_TRUE(std::isfinite(ReadKineto(text).kernel_seconds));
    const auto log = ReadTrainingLog(text);
    EXPECT_GT(log.step_seconds.value_or(1), 0);
    for (const NsysKernel& kernel : ReadNsys(text).kernels) EXPECT_GT(kernel.total_seconds, 0);
    for (const ServingRun& run : ReadServing(text).runs) {
      EXPECT_FALSE(run.refusal.empty() && run.request_count.value_or(1) <= 0);
    }
    IngestContext context;
    std::string job;
    ReadContextText(text, "x", &context, &job).IgnoreError();
    Gunzip(absl::StrCat("\x1f\x8b\x08", text), 1 << 20).IgnoreError();
  }
}

}  // namespace
}  // namespace sextant::ingest
