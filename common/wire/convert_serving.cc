// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

void Fill(const serving::Percentiles& p, types::v1::Percentiles& proto) {
  proto.set_mean(p.mean);
  proto.set_p50(p.p50);
  proto.set_p90(p.p90);
  proto.set_p99(p.p99);
}

void Fill(const serving::Adapters& a, types::v1::Adapters& proto) {
  proto.set_count(a.count);
  proto.set_rank(a.rank);
  proto.set_resident_count(a.resident_count);
  proto.set_popularity_exponent(a.popularity_exponent);
}

serving::Adapters ReadAdapters(Reader& reader, const types::v1::Adapters& proto) {
  serving::Adapters a;
  a.count = proto.count();
  if (proto.has_rank()) a.rank = proto.rank();
  a.resident_count = proto.resident_count();
  a.popularity_exponent =
      reader.Finite("adapters.popularity_exponent", proto.popularity_exponent());
  return a;
}

void Fill(const serving::Images& i, types::v1::Images& proto) {
  proto.set_per_request(i.per_request);
  proto.set_prompt_tokens(i.prompt_tokens);
  proto.set_encoder_layer_count(i.encoder_layer_count);
  proto.set_encoder_hidden_size(i.encoder_hidden_size);
  proto.set_encoder_ffn_size(i.encoder_ffn_size);
  proto.set_encoder_head_count(i.encoder_head_count);
  proto.set_encoder_tokens(i.encoder_tokens);
  proto.set_encoder_gpu_count(i.encoder_gpu_count);
}

serving::Images ReadImages(const types::v1::Images& proto) {
  serving::Images i;
  i.per_request = proto.per_request();
  if (proto.has_prompt_tokens()) i.prompt_tokens = proto.prompt_tokens();
  if (proto.has_encoder_layer_count()) i.encoder_layer_count = proto.encoder_layer_count();
  if (proto.has_encoder_hidden_size()) i.encoder_hidden_size = proto.encoder_hidden_size();
  if (proto.has_encoder_ffn_size()) i.encoder_ffn_size = proto.encoder_ffn_size();
  if (proto.has_encoder_head_count()) i.encoder_head_count = proto.encoder_head_count();
  if (proto.has_encoder_tokens()) i.encoder_tokens = proto.encoder_tokens();
  i.encoder_gpu_count = proto.encoder_gpu_count();
  return i;
}

serving::Percentiles ReadPercentiles(Reader& reader, absl::string_view field,
                                     const types::v1::Percentiles& proto) {
  return {.mean = reader.Finite(absl::StrCat(field, ".mean"), proto.mean()),
          .p50 = reader.Finite(absl::StrCat(field, ".p50"), proto.p50()),
          .p90 = reader.Finite(absl::StrCat(field, ".p90"), proto.p90()),
          .p99 = reader.Finite(absl::StrCat(field, ".p99"), proto.p99())};
}

}  // namespace

types::v1::ServingLoad ToProto(const serving::ServingLoad& load) {
  types::v1::ServingLoad proto;
  proto.set_arrival(std::string(serving::ArrivalName(load.arrival)));
  proto.set_concurrency(load.concurrency);
  proto.set_requests_per_second(load.requests_per_second);
  proto.set_request_count(load.request_count);
  proto.set_seed(load.seed);
  proto.set_length_spread(load.length_spread);
  for (const serving::Request& request : load.trace) {
    types::v1::ServingRequest& out = *proto.add_trace();
    out.set_arrival_seconds(request.arrival_seconds);
    out.set_prompt_tokens(request.prompt_tokens);
    out.set_output_tokens(request.output_tokens);
    out.set_priority(request.priority);
  }
  if (load.max_batch_tokens) proto.set_max_batch_tokens(*load.max_batch_tokens);
  if (load.max_batch_sequences) proto.set_max_batch_sequences(*load.max_batch_sequences);
  if (load.chunked_prefill) proto.set_chunked_prefill(*load.chunked_prefill);
  if (load.prefill_first) proto.set_prefill_first(*load.prefill_first);
  proto.set_think_seconds(load.think_seconds);
  proto.set_shared_prefix_tokens(load.shared_prefix_tokens);
  proto.set_prefill_replica_count(load.prefill_replica_count);
  Fill(load.adapters, *proto.mutable_adapters());
  Fill(load.images, *proto.mutable_images());
  proto.set_time_to_first_token_limit_seconds(load.time_to_first_token_limit_seconds);
  proto.set_inter_token_latency_limit_seconds(load.inter_token_latency_limit_seconds);
  return proto;
}

absl::StatusOr<serving::ServingLoad> FromProto(const types::v1::ServingLoad& proto) {
  Reader reader;
  serving::ServingLoad load;
  load.arrival =
      reader.Word("arrival", proto.arrival(), serving::ParseArrival, serving::Arrival::kClosedLoop);
  if (proto.has_concurrency()) load.concurrency = proto.concurrency();
  load.requests_per_second = reader.Finite("requests_per_second", proto.requests_per_second());
  load.request_count = proto.request_count();
  if (proto.has_seed()) load.seed = proto.seed();
  load.length_spread = reader.Finite("length_spread", proto.length_spread());
  for (int i = 0; i < proto.trace_size(); ++i) {
    const types::v1::ServingRequest& request = proto.trace(i);
    load.trace.push_back(
        {.arrival_seconds = reader.Finite(absl::StrCat("trace[", i, "].arrival_seconds"),
                                          request.arrival_seconds()),
         .prompt_tokens = request.prompt_tokens(),
         .output_tokens = request.output_tokens(),
         .priority = request.priority()});
  }
  if (proto.has_max_batch_tokens()) load.max_batch_tokens = proto.max_batch_tokens();
  if (proto.has_max_batch_sequences()) load.max_batch_sequences = proto.max_batch_sequences();
  if (proto.has_chunked_prefill()) load.chunked_prefill = proto.chunked_prefill();
  if (proto.has_prefill_first()) load.prefill_first = proto.prefill_first();
  load.think_seconds = proto.think_seconds();
  load.shared_prefix_tokens = proto.shared_prefix_tokens();
  load.prefill_replica_count = proto.prefill_replica_count();
  load.adapters = ReadAdapters(reader, proto.adapters());
  load.images = ReadImages(proto.images());
  load.time_to_first_token_limit_seconds =
      reader.Finite("time_to_first_token_limit_seconds", proto.time_to_first_token_limit_seconds());
  load.inter_token_latency_limit_seconds =
      reader.Finite("inter_token_latency_limit_seconds", proto.inter_token_latency_limit_seconds());
  return reader.Finish(std::move(load));
}

types::v1::ServingReport ToProto(const serving::ServingReport& r) {
  types::v1::ServingReport proto;
  proto.set_offered_request_count(r.offered_request_count);
  proto.set_completed_request_count(r.completed_request_count);
  proto.set_refused_request_count(r.refused_request_count);
  proto.set_preemption_count(r.preemption_count);
  proto.set_step_count(r.step_count);
  proto.set_makespan_seconds(r.makespan_seconds);
  Fill(r.time_to_first_token_seconds, *proto.mutable_time_to_first_token_seconds());
  Fill(r.inter_token_latency_seconds, *proto.mutable_inter_token_latency_seconds());
  Fill(r.end_to_end_seconds, *proto.mutable_end_to_end_seconds());
  proto.set_requests_per_second(r.requests_per_second);
  proto.set_output_tokens_per_second(r.output_tokens_per_second);
  proto.set_goodput_requests_per_second(r.goodput_requests_per_second);
  proto.set_utilization(r.utilization);
  proto.set_peak_kv_fraction(r.peak_kv_fraction);
  proto.set_prefill_seconds(r.prefill_seconds);
  proto.set_mixed_seconds(r.mixed_seconds);
  proto.set_decode_seconds(r.decode_seconds);
  proto.set_idle_seconds(r.idle_seconds);
  if (r.capacity_requests_per_second.has_value()) {
    proto.set_capacity_requests_per_second(*r.capacity_requests_per_second);
  }
  if (r.load_fraction.has_value()) proto.set_load_fraction(*r.load_fraction);
  proto.set_saturated(r.saturated);
  proto.set_adapter_load_count(r.adapter_load_count);
  if (r.encoder_utilization.has_value()) proto.set_encoder_utilization(*r.encoder_utilization);
  if (r.tokens_per_decode_step.has_value()) {
    proto.set_tokens_per_decode_step(*r.tokens_per_decode_step);
  }
  return proto;
}

absl::StatusOr<serving::ServingReport> FromProto(const types::v1::ServingReport& proto) {
  Reader reader;
  serving::ServingReport r;
  r.offered_request_count = proto.offered_request_count();
  r.completed_request_count = proto.completed_request_count();
  r.refused_request_count = proto.refused_request_count();
  r.preemption_count = proto.preemption_count();
  r.step_count = proto.step_count();
  r.makespan_seconds = reader.Finite("makespan_seconds", proto.makespan_seconds());
  r.time_to_first_token_seconds =
      ReadPercentiles(reader, "time_to_first_token_seconds", proto.time_to_first_token_seconds());
  r.inter_token_latency_seconds =
      ReadPercentiles(reader, "inter_token_latency_seconds", proto.inter_token_latency_seconds());
  r.end_to_end_seconds = ReadPercentiles(reader, "end_to_end_seconds", proto.end_to_end_seconds());
  const auto finite = [&](absl::string_view field, double value) {
    return reader.Finite(field, value);
  };
  r.requests_per_second = finite("requests_per_second", proto.requests_per_second());
  r.output_tokens_per_second = finite("output_tokens_per_second", proto.output_tokens_per_second());
  r.goodput_requests_per_second =
      finite("goodput_requests_per_second", proto.goodput_requests_per_second());
  r.utilization = finite("utilization", proto.utilization());
  r.peak_kv_fraction = finite("peak_kv_fraction", proto.peak_kv_fraction());
  r.prefill_seconds = finite("prefill_seconds", proto.prefill_seconds());
  r.mixed_seconds = finite("mixed_seconds", proto.mixed_seconds());
  r.decode_seconds = finite("decode_seconds", proto.decode_seconds());
  r.idle_seconds = finite("idle_seconds", proto.idle_seconds());
  if (proto.has_capacity_requests_per_second()) {
    r.capacity_requests_per_second =
        finite("capacity_requests_per_second", proto.capacity_requests_per_second());
  }
  if (proto.has_load_fraction()) {
    r.load_fraction = finite("load_fraction", proto.load_fraction());
  }
  r.saturated = proto.saturated();
  r.adapter_load_count = proto.adapter_load_count();
  if (proto.has_encoder_utilization()) {
    r.encoder_utilization = finite("encoder_utilization", proto.encoder_utilization());
  }
  if (proto.has_tokens_per_decode_step()) {
    r.tokens_per_decode_step = finite("tokens_per_decode_step", proto.tokens_per_decode_step());
  }
  return reader.Finish(std::move(r));
}

}  // namespace sextant::wire
