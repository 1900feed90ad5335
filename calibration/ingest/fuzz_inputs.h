// SPDX-License-Identifier: Apache-2.0
// Small texts of every format, from which tests and fuzzers start.
#ifndef SEXTANT_CALIBRATION_INGEST_FUZZ_INPUTS_H_
#define SEXTANT_CALIBRATION_INGEST_FUZZ_INPUTS_H_

#include <cstddef>

namespace sextant::ingest {

inline constexpr const char* kFuzzInputs[] = {
    // nccl-tests
    "#  Rank  0 Group  0 Pid 1 on node-1 device  0 [0x1a] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid 2 on node-2 device  0 [0x1a] NVIDIA H100 80GB HBM3\n"
    "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n"
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "[1,0]<stdout>:   0  0  half sum -1 12.1 0.00 0.00 N/A 12.1 0.00 0.00 N/A\n"
    "3:   22020096 11010048 half sum -1 147.7 149.08 260.89 0 146.4 150.46 263.30 0\n"
    "   8589934592 134217728 float none -1 42713 201.11 188.54 N/A 42701 201.16 188.59 N/A\n"
    "# Avg bus bandwidth    : 70.742\n",
    // PyTorch trace
    R"({"deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}], "distributedInfo": {"rank": 0,
"world_size": 8}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k\u00e9\"x", "ts": 1.5,
"dur": 2.5, "args": {"External id": 3, "correlation": 4, "stream": 7, "device": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "args": {"External id": 3,
"Input type": ["float", "float"], "Input Strides": [[4, 1], [8, 1]],
"Input Dims": [[2, 4], [4, 8]]}}, {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_X", "ts": 5,
"dur": 7, "args": {"Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10,
"Group size": 8, "dtype": "Half"}}, {"ph": "X", "cat": "gpu_user_annotation", "name": "nccl:x",
"ts": 5, "dur": NaN}], "baseTimeNanoseconds": 1751410836000000000})",
    // Megatron
    "node-0: cmd = x --micro-batch-size '2' --num-layers 32 --fp16 a=b\n"
    "using world size: 64, data-parallel-size: 1, tensor-model-parallel size: 4\n"
    "  hidden_size ..................................... 8192\n"
    "[2025-12-19 10:49:15] iteration 1/ 2 | consumed samples: 128 | elapsed time per iteration "
    "(ms): 20289.1 | global batch size:   128 | lm loss: 1.2E+01 | number of skipped iterations: "
    "  0 |Number of parameters in transformer layers in billions:  6.98\n"
    " iteration 2/ 2 | elapsed time per iteration (ms): 1,289.1 | iteration 3/ 2 | elapsed\n"
    "[Rank 0] (after 1 iterations) memory (GB) | mem-max-allocated-gigabytes: 194.41 |\n",
    // nanotron
    "08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 4.19M | "
    "elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec: 109 | global_batch_size: 1.02K\n",
    // torchtitan
    "0: CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n"
    "1: \x1b[36mstep: 1990  \x1b[32mloss:  3.4370  \x1b[33mmemory: 68.57GiB(86.69%)  \x1b[34mtps: "
    "6,785  \x1b[35mmfu: 39.73%\x1b[39m\n",
    // NeMo
    "Epoch 0: | 1/100 [00:13<22:00, reduced_train_loss=10.90, global_step=0.000, "
    "train_step_timing in s=13.20]\rEpoch 0: | 2/100 [global_step=1.0, train_step_timing in "
    "s=11.2]\n",
    // DLLogger
    "DLLL {\"timestamp\": \"1727486904.61\", \"step\": 0, \"data\": {\"train_step_timing in s\": "
    "107.3}}\nDLLL {\"timestamp\": \"1727486914.61\", \"step\": 1, \"data\": {\"train_step_timing "
    "in s\": 10.3}}\nDLLL {\"step\": \"PARAMETER\", \"data\": {\"cfg/fp8\": true}}\n",
    // MLPerf
    ":::MLLOG {\"time_ms\": 1744812036337, \"key\": \"global_batch_size\", \"value\": 1152}\n"
    ":::MLLOG {\"key\": \"tracked_stats\", \"value\": {\"train_step_time\": 54.7}, \"metadata\": "
    "{\"step\": 1152.0}}\n",
    // vLLM
    R"({"date": "20250530-203916", "gpu": "4xNVIDIA_L40S", "num_prompts": 900, "completed": 900,
"request_rate": Infinity, "max_concurrency": null, "input_len": "1000", "mean_ttft_ms": 73.2,
"request_throughput": 22.1, "mean_tpot_ms": 23.5, "itls": [[0.1], [0.2, 1e999]]})",
    // inference-perf
    R"({"load_summary": {"requested_rate": 1.0}, "successes": {"count": 60, "latency":
{"time_to_first_token": {"mean": 0.03}}, "throughput": {"requests_per_sec": 1.0}, "prompt_len":
{"mean": 201.6}}, "failures": {"count": 0}})",
    // genai-perf, AIPerf
    R"({"records": {"request_latency": {"unit": "ms", "avg": "1,500.0"}, "inter_token_latency":
{"unit": "us", "avg": 4}}, "input_config": {"loadgen": {"concurrency": 8}, "model": ["x"]}})",
    // records of requests
    "{\"input_toks\": 10, \"output_toks\": 5, \"queued_ts\": 100.0, \"first_token_ts\": 100.5, "
    "\"last_token_ts\": 102.5}\n{\"metadata\": {\"request_start_ns\": 1}, \"metrics\": "
    "{\"request_latency\": {\"unit\": \"ms\", \"value\": 3}}, \"error\": null}\n{\"start_time\": 1,"
    " \"end_time\": 2, \"info\": {\"output_tokens\": 2, \"output_token_times\": [1.5, 2]}}\n",
    // summary text
    "============ Serving Benchmark Result ============\nSuccessful requests:   1,648\n"
    "Max reqeuest concurrency:  not set\nRequest rate: inf\nMean TTFT (ms):  44294.80\n"
    "==================================================\n",
    // nsys
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n90.0,9000,3,3000.0,2900.0,\"void "
    "f<a, b>(\"\"x\"\")\"\n\nTime (%),Total Time (ns),Num Calls,Avg (ns),Name\n9,5,2,2.5,cudaX\n",
    " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n Time (%)  Total Time (ns)  Instances  Avg "
    "(ns)  Name\n --------  -----  ---  ---  ----\n  46.3  10,327,352,338  17,505  589,965.9  "
    "sm90_x\xE2\x80\xA6\n  ...\n",
    "accelerator: h100-sxm5-80gb\ngpus: 16 # x\nrole: fit\n"};

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_FUZZ_INPUTS_H_
