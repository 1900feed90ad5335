// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/training_log.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "calibration/ingest/test_samples.h"
#include "calibration/ingest/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<double> Milliseconds(const TrainingLogReading& reading) {
  std::vector<double> times;
  for (const TrainingStep& step : reading.steps) times.push_back(step.seconds.value_or(0) * 1e3);
  return times;
}

std::string MegatronLine(int iteration, double ms) {
  return absl::StrCat(" iteration ", iteration, "/ 1000 | consumed samples: ", iteration * 1024,
                      " | elapsed time per iteration (ms): ", absl::StrFormat("%.1f", ms),
                      " | learning rate: 0.000E+00 | global batch size:  1024 | loss scale: 1.0 | "
                      "number of skipped iterations:   0 | number of nan iterations:   0 |\n");
}

TEST(MegatronLog, StepTimeIsTheMedianWithoutTheFirst) {
  const auto reading = ReadTrainingLog(MegatronLine(1, 155484.2) + MegatronLine(2, 129000) +
                                       "time (ms) | forward-compute: 31749.74\n" +
                                       MegatronLine(3, 128000) + MegatronLine(4, 131000));
  EXPECT_THAT(Milliseconds(reading),
              ElementsAre(DoubleNear(155484.2, 1e-6), 129000, 128000, 131000));
  EXPECT_DOUBLE_EQ(*reading.step_seconds, 129.0);
  EXPECT_EQ(reading.facts.global_batch_size, 1024);
}

TEST(MegatronLog, OneStepIncludesStartUpAndGivesNoTime) {
  const auto reading = ReadTrainingLog(MegatronLine(1, 20289.1));
  EXPECT_THAT(reading.steps, SizeIs(1));
  EXPECT_FALSE(reading.step_seconds.has_value());
  EXPECT_THAT(reading.step_refusal, HasSubstr("start-up"));
}

TEST(MegatronLog, GluedIterationsAreBothReadAndCutOnesRefused) {
  std::string glued = MegatronLine(1, 100) + MegatronLine(2, 101);
  glued.erase(glued.find('\n'), 1);
  EXPECT_THAT(Milliseconds(ReadTrainingLog(glued)), ElementsAre(100, 101));
  // The first line stops inside its time: 20289.1 may be 20 there.
  const std::string cut =
      " iteration 1/ 10 | consumed samples: 128 | elapsed time per iteration "
      "(ms): 20" +
      MegatronLine(2, 101);
  const auto reading = ReadTrainingLog(cut);
  EXPECT_THAT(Milliseconds(reading), ElementsAre(101));
  EXPECT_EQ(reading.refusals.Count("step line is cut or glued to another"), 1);
}

TEST(MegatronLog, CopiesFromOtherRanksCountOnce) {
  const auto reading = ReadTrainingLog("0: " + MegatronLine(7, 100) + "1: " + MegatronLine(7, 100));
  EXPECT_THAT(reading.steps, SizeIs(1));
  EXPECT_EQ(reading.refusals.Count("copy of a step: another rank's, or repeated after a restart"),
            1);
}

TEST(MegatronLog, ArgumentsAreReadFromTablesAndCommandLines) {
  // The table of Megatron-LM's print_args; the command line of the DeepSpeed launcher.
  const auto table = ReadTrainingLog(
      "using world size: 64, data-parallel-size: 1, tensor-model-parallel size: 4, "
      "pipeline-model-parallel size: 16 \n"
      "  fp16 ............................................ True\n"
      "  hidden_size ..................................... 8192updated\n"
      "  checkpoint_activations .......................... True\n" +
      MegatronLine(1, 2));
  EXPECT_EQ(table.facts.gpu_count, 64);
  EXPECT_EQ(table.facts.tensor_parallel_size, 4);
  EXPECT_EQ(table.facts.pipeline_parallel_size, 16);
  EXPECT_EQ(table.facts.data_parallel_size, 1);
  EXPECT_EQ(table.facts.hidden_size, 8192);
  EXPECT_EQ(table.facts.precision, "fp16");
  EXPECT_EQ(table.facts.recompute, "full");
  const auto command = ReadTrainingLog(
      "cmd = pdsh python x.py --micro-batch-size '2' --num-layers=32 --sequence-parallel --bf16 "
      "['--zero-stage', '1']\n" +
      MegatronLine(1, 2));
  EXPECT_EQ(command.facts.micro_batch_size, 2);
  EXPECT_EQ(command.facts.layer_count, 32);
  EXPECT_EQ(command.facts.sequence_parallel, true);
  EXPECT_EQ(command.facts.precision, "bf16");
  EXPECT_EQ(command.facts.zero_stage, 1);
}

TEST(NanotronLog, SuffixesAreReadAndTheSequenceFollowsFromTheTokens) {
  // The form of nanotron's LogItem; 4.19M is 1024 x 4096 rounded.
  const auto reading = ReadTrainingLog(
      "[INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 4.19M | "
      "elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec: 891K | global_batch_size: 1.02K | "
      "lm_loss: 5.3\n"
      "[INFO|DP=0|PP=0|TP=0]: iteration: 2 / 15 | consumed_tokens: 1.02K | "
      "time_per_iteration_ms: 11.8 | tokens_per_sec: 43.2K | global_batch_size: 2 | lm_loss: "
      "5.3\n");
  EXPECT_EQ(reading.framework, "nanotron");
  EXPECT_THAT(Milliseconds(reading), ElementsAre(4710, 11.8));
  EXPECT_EQ(reading.steps[1].tokens_per_second, 43200);
}

TEST(TorchtitanLog, ColoursSeparatorsAndRanksGiveOneStep) {
  const std::string line =
      ": 2025-03-04 00:44:44,441 - root - INFO - \x1b[36mstep: 1990  \x1b[32mloss:  3.4370  "
      "\x1b[33mmemory: 68.57GiB(86.69%)  \x1b[34mtps: 6,785  \x1b[35mmfu: 39.73%\x1b[39m\n";
  const auto reading = ReadTrainingLog(
      "0: CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
      "0: Training starts at step 1, with local batch size 1, global batch size 64, sequence "
      "length 8192, total steps 1000\n0" +
      line + "1" + line);
  EXPECT_EQ(reading.origin.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(reading.facts.sequence_length, 8192);
  EXPECT_EQ(reading.facts.global_batch_size, 64);
  ASSERT_THAT(reading.steps, SizeIs(1));
  EXPECT_EQ(reading.steps[0].tokens_per_second_per_gpu, 6785);
  EXPECT_THAT(reading.step_refusal, HasSubstr("no step time"));
}

TEST(NemoLog, ProgressBarsAndEpochLinesAreRead) {
  const auto bar = ReadTrainingLog(
      "Epoch 0: :   1%| | 1/100 [00:13<22:00, reduced_train_loss=10.90, global_step=0.000, "
      "consumed_samples=128.0, train_step_timing in s=13.20]\r"
      "Epoch 0: :   2%| | 2/100 [00:24<22:00, reduced_train_loss=10.90, global_step=1.000, "
      "consumed_samples=256.0, train_step_timing in s=11.20]\n");
  EXPECT_EQ(bar.framework, "NeMo");
  EXPECT_THAT(Milliseconds(bar), ElementsAre(13200, 11200));
  const auto lines = ReadTrainingLog(
      "Training epoch 0, iteration 3/99 | lr: 2e-05 | global_batch_size: 512 | global_step: 3 | "
      "reduced_train_loss: 11.0 | train_step_timing in s: 12.5 | consumed_samples: 2048\n");
  ASSERT_THAT(lines.steps, SizeIs(1));
  EXPECT_EQ(lines.steps[0].iteration, 3);
  EXPECT_EQ(lines.facts.global_batch_size, 512);
}

TEST(DlloggerLog, StampsAreTrustedOverRunningMeans) {
  std::string text =
      "DLLL {\"step\": \"PARAMETER\", \"data\": {\"cfg/global_batch_size\": 2048, "
      "\"cfg/fp8\": true, \"cfg/precision\": \"bf16-mixed\", \"cfg/optim/name\": \"x\"}}\n";
  // Steps of 10 s; the printed times still carry the first one of 100 s.
  for (int i = 0; i < 5; ++i) {
    absl::StrAppend(&text, "DLLL {\"timestamp\": \"",
                    absl::StrFormat("%.6f", 1727486904.5 + 10 * i), "\", \"step\": ", i,
                    ", \"data\": {\"train_step_timing in s\": ", 100.0 / (i + 1), "}}\n");
  }
  const auto reading = ReadTrainingLog(text + "DLLL {\"timestamp\": \"17274");
  EXPECT_THAT(reading.steps, SizeIs(5));
  EXPECT_NEAR(*reading.step_seconds, 10.0, 1e-5);
  EXPECT_EQ(reading.facts.precision, "fp8");
  EXPECT_EQ(reading.facts.global_batch_size, 2048);
  EXPECT_EQ(reading.refusals.Count("line is cut or glued to another"), 1);
}

TEST(Mllog, TheRecordNamedStepCountsSamples) {
  std::string text =
      "0: :::MLLOG {\"time_ms\": 1744812036337, \"key\": \"global_batch_size\", \"value\": 1152}\n";
  for (int i = 1; i <= 3; ++i) {
    absl::StrAppend(&text,
                    "0: :::MLLOG {\"key\": \"tracked_stats\", \"value\": "
                    "{\"train_step_time\": ",
                    50 + i,
                    ", \"reduced_train_loss\": NaN}, "
                    "\"metadata\": {\"step\": ",
                    1152.0 * i, "}}\n");
  }
  const auto reading = ReadTrainingLog(text);
  ASSERT_THAT(reading.steps, SizeIs(3));
  EXPECT_EQ(reading.steps[2].iteration, 3);
  EXPECT_FALSE(reading.steps[2].loss.has_value());
  EXPECT_DOUBLE_EQ(*reading.step_seconds, 52.5);
  EXPECT_EQ(reading.origin.time, "2025-04-16 14:00:36");
}

TEST(TrainingLogSamples, MegatronFilesGiveTheirTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  const auto glued =
      ReadTrainingLog(ReadSample("training-logs/megatron_bridge_llama3_8b_glued.log"));
  EXPECT_EQ(glued.framework, "Megatron-Bridge");
  EXPECT_THAT(Milliseconds(glued), ElementsAre(DoubleNear(20289.1, 1e-6)));
  EXPECT_EQ(glued.facts.global_batch_size, 128);
  EXPECT_NEAR(*glued.facts.parameter_count, 8.03e9, 1);
  EXPECT_NEAR(*glued.allocated_memory_bytes, 194.41e9, 1);
  EXPECT_EQ(glued.origin.time, "2025-12-19 10:49:15");
  EXPECT_FALSE(glued.step_seconds.has_value());

  const auto prefixed =
      ReadTrainingLog(ReadSample("training-logs/megatron_deepspeed_2nodes_prefixed.log"));
  EXPECT_EQ(prefixed.framework, "Megatron-DeepSpeed");
  EXPECT_THAT(
      Milliseconds(prefixed),
      ElementsAre(DoubleNear(76015.3, 0.05), DoubleNear(75254, 0.05), DoubleNear(75249.6, 0.05),
                  DoubleNear(75182.4, 0.05), DoubleNear(74494.9, 0.05)));
  EXPECT_NEAR(*prefixed.step_seconds, 75.216, 0.0005);
  EXPECT_EQ(prefixed.steps[0].samples_per_second, 26.942);
  EXPECT_EQ(prefixed.steps[4].samples_per_second, 27.492);
  EXPECT_EQ(prefixed.steps[4].teraflop_per_second_per_gpu, 150.62);
  EXPECT_EQ(prefixed.facts.global_batch_size, 2048);
  EXPECT_EQ(prefixed.facts.sequence_length, 2048);
  EXPECT_EQ(prefixed.facts.gpu_count, 16);

  const auto gpt2 = ReadTrainingLog(ReadSample("training-logs/megatron_gpt2_tp4_pp16_2021.out"));
  EXPECT_THAT(Milliseconds(gpt2), ElementsAre(DoubleNear(155484, 0.5), DoubleNear(129029, 0.5),
                                              DoubleNear(128892, 0.5)));
  EXPECT_NEAR(*gpt2.step_seconds, 128.960, 0.0005);
  EXPECT_EQ(gpt2.facts.global_batch_size, 1024);
  EXPECT_EQ(gpt2.facts.gpu_count, 64);
  EXPECT_EQ(gpt2.facts.data_parallel_size, 1);
  EXPECT_EQ(gpt2.facts.tensor_parallel_size, 4);
  EXPECT_EQ(gpt2.facts.pipeline_parallel_size, 16);
  for (const TrainingStep& step : gpt2.steps) {
    EXPECT_EQ(step.skipped_count, 1);
    EXPECT_FALSE(step.samples_per_second || step.teraflop_per_second_per_gpu);
  }
}

TEST(TrainingLogSamples, NanotronAndTorchtitanFilesGiveTheirTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  const auto nanotron =
      ReadTrainingLog(ReadSample("training-logs/nanotron_tiny_llama_suffixes.log"));
  const std::vector<double> expected = {4710, 11.8, 10,   10.2, 9.15, 9.09, 8.93, 8.95,
                                        8.73, 673,  11.1, 9.3,  9.04, 9.02, 9.41};
  ASSERT_THAT(nanotron.steps, SizeIs(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(*nanotron.steps[i].seconds * 1e3, expected[i], 1e-6);
  }
  EXPECT_EQ(nanotron.steps.back().tokens_per_second, 54400);
  EXPECT_EQ(nanotron.steps.back().teraflop_per_second_per_gpu, 0.00936);
  EXPECT_EQ(nanotron.facts.global_batch_size, 2);
  EXPECT_EQ(nanotron.facts.sequence_length, 256);

  const auto titan =
      ReadTrainingLog(ReadSample("training-logs/torchtitan_ansi_colours_4nodes.log"));
  ASSERT_THAT(titan.steps, SizeIs(1));
  const TrainingStep& step = titan.steps[0];
  EXPECT_EQ(step.iteration, 1990);
  EXPECT_EQ(step.tokens_per_second_per_gpu, 6785);
  EXPECT_EQ(step.model_flops_utilization_percent, 39.73);
  EXPECT_NEAR(*step.memory_bytes, 68.57 * 1024 * 1024 * 1024, 1);
  EXPECT_EQ(step.memory_share_percent, 86.69);
  EXPECT_EQ(step.loss, 3.4370);
  EXPECT_FALSE(step.seconds.has_value());
}

TEST(TrainingLogSamples, LogsOfJsonLinesGiveTheirTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  const auto mllog = ReadTrainingLog(ReadSample("training-logs/mlperf_llama31_405b_mllog.txt"));
  std::vector<double> times = Milliseconds(mllog);
  ASSERT_THAT(times, SizeIs(40));
  EXPECT_NEAR(times[0], 54712.7, 0.05);
  EXPECT_NEAR(times[1], 57626.8, 0.05);
  EXPECT_NEAR(times.back(), 54956.1, 0.05);
  EXPECT_NEAR(*std::min_element(times.begin(), times.end()), 54712.7, 0.05);
  EXPECT_NEAR(*std::max_element(times.begin(), times.end()), 57626.8, 0.05);
  EXPECT_NEAR(*mllog.step_seconds, 54.937, 0.0005);
  EXPECT_EQ(mllog.facts.global_batch_size, 1152);
  EXPECT_EQ(mllog.facts.sequence_length, 8192);
  EXPECT_EQ(mllog.steps.back().iteration, 40);

  const auto nemo = ReadTrainingLog(ReadSample("training-logs/nemo_dllogger.json"));
  times = Milliseconds(nemo);
  ASSERT_THAT(times, SizeIs(50));
  EXPECT_NEAR(times[0], 107355, 0.5);
  EXPECT_NEAR(times[1], 66421.5, 0.05);
  EXPECT_NEAR(times.back(), 32895.6, 0.05);
  EXPECT_NEAR(*Median({times.begin() + 1, times.end()}), 25384.9, 0.05);
  EXPECT_NEAR(*std::min_element(times.begin(), times.end()), 24736.6, 0.05);
  EXPECT_NEAR(*nemo.step_seconds, 25.39, 0.005);
  EXPECT_EQ(nemo.facts.global_batch_size, 2048);
  EXPECT_EQ(nemo.facts.tensor_parallel_size, 4);
  EXPECT_EQ(nemo.facts.pipeline_parallel_size, 8);
  EXPECT_EQ(nemo.facts.virtual_pipeline_size, 2);
}

}  // namespace
}  // namespace sextant::ingest
