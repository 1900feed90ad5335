// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/measured_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/ingest/row_builder.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

// Everything that a run of nccl-tests says: small times alone repeat between machines.
std::string Fingerprint(const NcclTestsRun& run) {
  RowFingerprint print;
  print.Add("nccl-tests");
  print.Add(run.collective);
  print.Add(run.origin.device);
  print.Add(run.origin.software);
  print.Add(run.origin.time);
  print.Add(static_cast<double>(run.rank_count.value_or(0)));
  print.Add(static_cast<double>(run.node_count.value_or(0)));
  for (const NcclTestsRow& row : run.rows) {
    print.Add(static_cast<double>(row.bytes));
    print.Add(row.data_type);
    for (const auto& timing : {row.out_of_place, row.in_place}) {
      if (timing) print.Add(timing->time_us);
    }
  }
  return print.Hex();
}

void SetCollectiveSite(std::optional<int64_t> gpus, std::optional<int64_t> nodes,
                       const IngestContext& context, RowBuilder* row) {
  row->Merge("gpus", gpus, context.gpu_count);
  row->Require("gpus", "--gpus");
  std::optional<int64_t> given = context.node_count;
  const std::optional<int64_t> count = gpus ? gpus : context.gpu_count;
  if (!nodes && !given && count && context.job && context.job->cluster.gpus_per_node > 0) {
    given = (*count + context.job->cluster.gpus_per_node - 1) / context.job->cluster.gpus_per_node;
  }
  row->Merge("nodes", nodes, given);
  row->Require("nodes", "--nodes");
  // The file never says what lies between the nodes; a cluster that was named does.
  row->Set("fabric_stated", row->Has("cluster") ? "1" : "0");
}

}  // namespace

std::vector<MeasuredRow> RowsOf(const NcclTestsReading& reading, const IngestContext& context,
                                Refusals* refusals) {
  std::vector<MeasuredRow> rows;
  for (const NcclTestsRun& run : reading.runs) {
    const std::string print = Fingerprint(run);
    for (size_t i = 0; i < run.rows.size(); ++i) {
      const NcclTestsRow& measured = run.rows[i];
      if (!measured.refusal.empty()) continue;
      RowBuilder row(RowKind::kCollectives, context);
      row.SetOrigin(run.origin);
      row.Set("software", context.software.empty() ? run.origin.software : context.software);
      row.Merge("collective", run.collective, context.collective);
      row.Require("collective", "--collective");
      SetCollectiveSite(run.rank_count ? run.rank_count : run.derived_rank_count, run.node_count,
                        context, &row);
      row.Set("bytes", absl::StrCat(measured.bytes));
      row.Set("time_us", measured.out_of_place->time_us);
      row.Set("algbw_GBps", measured.out_of_place->algorithm_gigabytes_per_second);
      row.Set("busbw_GBps", measured.out_of_place->bus_gigabytes_per_second);
      row.Note(absl::StrCat("dtype=", measured.data_type));
      if (measured.in_place) {
        row.Note(absl::StrCat("in_place_us=", NumberText(measured.in_place->time_us)));
      }
      if (!run.collective_note.empty()) row.Note(run.collective_note);
      if (!run.rank_count && run.derived_rank_count) row.Note("ranks derived from the bandwidths");
      if (auto done = row.Finish(absl::StrCat("nccl-", print, "-", i + 1), refusals)) {
        rows.push_back(std::move(*done));
      }
    }
  }
  return rows;
}

std::vector<MeasuredRow> RowsOf(const KinetoReading& reading, const IngestContext& context,
                                Refusals* refusals) {
  std::vector<MeasuredRow> rows;
  RowFingerprint print;
  print.Add("kineto");
  print.Add(reading.origin.device);
  print.Add(reading.origin.time);
  print.Add(static_cast<double>(reading.rank.value_or(-1)));
  print.Add(static_cast<double>(reading.kernel_count));
  print.Add(reading.kernel_seconds);
  int64_t tied = 0;
  for (size_t i = 0; i < reading.gemms.size(); ++i) {
    const KinetoGemm& gemm = reading.gemms[i];
    tied += gemm.count;
    RowBuilder row(RowKind::kOperators, context);
    row.SetOrigin(reading.origin);
    row.Set("software", context.software);
    row.Set("family", "gemm");
    row.Set("op", gemm.batch_count > 1 ? "bmm" : "gemm");
    row.Set("dtype", gemm.data_type);
    row.Set("m", absl::StrCat(gemm.m));
    row.Set("n", absl::StrCat(gemm.n));
    row.Set("k", absl::StrCat(gemm.k));
    if (gemm.batch_count > 1) row.Set("batch", absl::StrCat(gemm.batch_count));
    row.Set("layout", gemm.layout);
    row.Set("latency_us", gemm.median_seconds * 1e6);
    row.Note(absl::StrCat("kernels of a PyTorch trace; median of ", gemm.count, " calls"));
    if (auto done = row.Finish(absl::StrCat("kineto-", print.Hex(), "-g", i + 1), refusals)) {
      rows.push_back(std::move(*done));
    }
  }
  for (size_t i = 0; i < reading.collectives.size(); ++i) {
    const KinetoCollective& call = reading.collectives[i];
    RowBuilder row(RowKind::kCollectives, context);
    row.SetOrigin(reading.origin);
    row.Set("software", context.software.empty() ? reading.origin.software : context.software);
    row.Set("collective", call.collective);
    // The group, not the job: a trace holds collectives of several groups.
    IngestContext group = context;
    group.gpu_count.reset();
    SetCollectiveSite(call.group_size, std::nullopt, group, &row);
    row.Set("bytes", absl::StrCat(call.bytes));
    row.Set("time_us", call.shortest_seconds * 1e6);
    row.Set("quality", "suspect: one rank's kernel time includes waiting for the other ranks");
    row.Note(absl::StrCat("shortest of ", call.count, " calls"));
    if (auto done = row.Finish(absl::StrCat("kineto-", print.Hex(), "-c", i + 1), refusals)) {
      rows.push_back(std::move(*done));
    }
  }
  if (reading.kernel_count == 0) refusals->Add("the trace holds no kernels");
  if (reading.kernel_count > tied && rows.empty()) {
    refusals->Add("kernels without recorded shapes cannot be priced");
  }
  return rows;
}

std::vector<MeasuredRow> RowsOf(const NsysReading& reading, const IngestContext&,
                                Refusals* refusals) {
  if (!reading.kernels.empty()) {
    refusals->Add("a kernel summary names kernels without shapes: none can be priced", 0,
                  reading.kernels[0].name);
  }
  return {};
}

namespace {

// The columns that calibration/measurements asks of each kind, in the order of its tables.
constexpr absl::string_view kColumns[] = {
    "id,suite,role,quality,source,accelerator,software,family,op,dtype,m,k,n,batch,heads,kv_heads,"
    "head_dim,seq_q,seq_kv,causal,kv_dtype,experts,topk,moe_tp,moe_ep,expert_distribution,groups,"
    "layout,latency_us,notes",
    "id,suite,role,quality,source,accelerator,cluster,fabric_stated,software,gpus,nodes,collective,"
    "bytes,time_us,algbw_GBps,busbw_GBps,interconnect,notes",
    "id,suite,role,quality,source,accelerator,cluster,framework,gpus,gpus_per_node,model,hidden,"
    "layers,heads,kv_heads,ffn,gated_ffn,vocab,tied_embeddings,seq,params_b,experts,topk,precision,"
    "gbs,mbs,tp,sp,pp,vpp,schedule,cp,ep,dp,zero,recompute,step_time_s,tokens_per_s_per_gpu,"
    "tflops_per_gpu,mfu,mem_gb,mem_alloc_gb,status,notes,derived_fields",
    "id,suite,role,quality,source,accelerator,cluster,load,disaggregated,gpus,framework,model,"
    "precision,tp,pp,ep,dp,batch_or_concurrency,input_len,output_len,ttft_ms,itl_ms,e2e_s,"
    "throughput_tok_s,metric_notes"};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string RowsCsv(RowKind kind, absl::Span<const MeasuredRow> rows) {
  const absl::string_view header = kColumns[static_cast<size_t>(kind)];
  std::vector<std::string> columns;
  for (size_t at = 0; at <= header.size();) {
    const size_t end = std::min(header.find(',', at), header.size());
    columns.emplace_back(header.substr(at, end - at));
    at = end + 1;
  }
  std::string csv;
  for (const MeasuredRow& row : rows) {
    if (row.kind != kind) continue;
    if (csv.empty()) absl::StrAppend(&csv, header, "\n");
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto field = row.columns.find(columns[i]);
      absl::StrAppend(&csv, i == 0 ? "" : ",",
                      field == row.columns.end() ? "" : CsvField(field->second));
    }
    csv.push_back('\n');
  }
  return csv;
}

}  // namespace sextant::ingest
