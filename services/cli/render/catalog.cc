// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/catalog.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using hardware::Accelerator;
using hardware::Cluster;
using hardware::Precision;
using parameters::AcceleratorParameters;
using parameters::ParameterSet;
using parameters::ParameterValues;
using workload::ModelArchitecture;

void WriteAccelerator(const Accelerator& accelerator, JsonWriter* json) {
  json->BeginObject();
  json->Field("name", accelerator.name);
  json->FieldOrNull("architecture", accelerator.architecture);
  json->FieldOrNull("parameter_donor", accelerator.parameter_donor);
  json->Field("sm_count", accelerator.sm_count);
  json->Field("boost_clock_hz", accelerator.boost_clock_hz);
  json->Key("matrix_flop_per_second");
  json->BeginObject();
  for (int i = 0; i < hardware::kPrecisionCount; ++i) {
    const Precision precision = static_cast<Precision>(i);
    json->Field(hardware::PrecisionName(precision),
                accelerator.Supports(precision) ? std::optional(accelerator.MatrixRate(precision))
                                                : std::nullopt);
  }
  json->EndObject();
  json->Field("vector_flop_per_second", accelerator.vector_flop_per_second);
  json->Field("shared_memory_bytes_per_sm", accelerator.shared_memory_bytes_per_sm);
  json->Field("l2_bytes", accelerator.l2_bytes);
  json->Field("l2_bandwidth_bytes_per_second", accelerator.l2_bandwidth_bytes_per_second);
  json->Field("hbm_bytes", accelerator.hbm_bytes);
  json->Field("hbm_bandwidth_bytes_per_second", accelerator.hbm_bandwidth_bytes_per_second);
  json->Field("nvlink_bandwidth_bytes_per_second", accelerator.nvlink_bandwidth_bytes_per_second);
  json->Field("pcie_bandwidth_bytes_per_second", accelerator.pcie_bandwidth_bytes_per_second);
  json->Field("power_watts", accelerator.power_watts);
  json->EndObject();
}

void WriteValues(const ParameterValues& values, JsonWriter* json) {
  json->BeginObject();
  for (const auto& [key, value] : values) {
    json->Key(key);
    json->BeginObject();
    json->Field("value", value.value);
    json->Field("standard_error", value.standard_error);
    json->EndObject();
  }
  json->EndObject();
}

void WriteAcceleratorParameters(const AcceleratorParameters& parameters, JsonWriter* json) {
  json->BeginObject();
  json->Key("shared");
  WriteValues(parameters.shared, json);
  json->Key("profiles");
  json->BeginObject();
  for (const auto& [profile, values] : parameters.profiles) {
    json->Key(profile);
    WriteValues(values, json);
  }
  json->EndObject();
  json->Key("domain");
  json->BeginArray();
  for (const parameters::DomainRange& range : parameters.domain) {
    json->BeginObject();
    json->Field("block", range.block);
    json->Field("dimension", range.dimension);
    json->Field("minimum", range.minimum);
    json->Field("maximum", range.maximum);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void AddFields(const nlohmann::ordered_json& value, const std::string& path, Table* table) {
  const bool is_record = value.is_object() || (value.is_array() && !value.empty() &&
                                               (value[0].is_object() || value[0].is_array()));
  if (!is_record) {
    std::string text = value.is_string() ? value.get<std::string>()
                       : value.is_null() ? "-"
                                         : value.dump();
    if (value.is_array()) {
      text = absl::StrJoin(value, ", ", [](std::string* out, const nlohmann::ordered_json& item) {
        absl::StrAppend(out, item.is_string() ? item.get<std::string>() : item.dump());
      });
    }
    table->AddRow({path, text});
    return;
  }
  for (auto it = value.begin(); it != value.end(); ++it) {
    const std::string key =
        value.is_object() ? it.key() : absl::StrCat("[", std::distance(value.begin(), it), "]");
    AddFields(*it, path.empty() || value.is_array() ? path + key : absl::StrCat(path, ".", key),
              table);
  }
}

}  // namespace

std::string AcceleratorJson(const Accelerator& accelerator) {
  JsonWriter json;
  WriteAccelerator(accelerator, &json);
  return json.Finish();
}

std::string ClusterJson(const Cluster& cluster) {
  JsonWriter json;
  json.BeginObject();
  json.Field("name", cluster.name);
  json.Field("gpus_per_node", cluster.gpus_per_node);
  json.Field("node_count",
             cluster.node_count > 0 ? std::optional(cluster.node_count) : std::nullopt);
  json.Field("node_fabric", hardware::NodeFabricName(cluster.node_fabric));
  json.Field("node_bandwidth_bytes_per_second", cluster.node_bandwidth_bytes_per_second);
  json.Field("node_latency_seconds", cluster.node_latency_seconds);
  json.Field("network_bandwidth_bytes_per_second", cluster.network_bandwidth_bytes_per_second);
  json.Field("network_latency_seconds", cluster.network_latency_seconds);
  json.Field("oversubscription", cluster.oversubscription);
  json.Field("network_stated", cluster.network_stated);
  json.Key("accelerator");
  WriteAccelerator(cluster.accelerator, &json);
  json.EndObject();
  return json.Finish();
}

std::string ModelJson(const ModelArchitecture& model) {
  JsonWriter json;
  json.BeginObject();
  json.Field("name", model.name);
  json.Field("parameter_count", workload::CountParameters(model).Total());
  json.Field("hidden_size", model.hidden_size);
  json.Field("layer_count", model.layer_count);
  json.Field("attention_head_count", model.attention_head_count);
  json.Field("kv_head_count", model.kv_head_count);
  json.Field("head_size", model.head_size);
  json.Field("ffn_size", model.ffn_size);
  json.Field("gated_ffn", model.gated_ffn);
  json.Field("vocabulary_size", model.vocabulary_size);
  json.Field("tied_embeddings", model.tied_embeddings);
  json.Field("learned_position_count", model.learned_position_count);
  json.Field("linear_bias", model.linear_bias);
  json.Field("qkv_bias", model.qkv_bias);
  json.Field("layer_norm", model.layer_norm);
  json.Field("causal", model.causal);
  json.Field("sliding_window", model.sliding_window);
  json.Field("full_attention_interval", model.full_attention_interval);
  json.Field("gated_attention", model.gated_attention);
  json.Key("latent_attention");
  if (model.IsLatent()) {
    json.BeginObject();
    json.Field("query_lora_rank", model.latent_attention.query_lora_rank);
    json.Field("kv_lora_rank", model.latent_attention.kv_lora_rank);
    json.Field("rope_head_size", model.latent_attention.rope_head_size);
    json.Field("nope_head_size", model.latent_attention.nope_head_size);
    json.Field("value_head_size", model.latent_attention.value_head_size);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("linear_attention");
  if (model.linear_attention != workload::LinearAttention()) {
    json.BeginObject();
    json.Field("key_head_count", model.linear_attention.key_head_count);
    json.Field("value_head_count", model.linear_attention.value_head_count);
    json.Field("key_head_size", model.linear_attention.key_head_size);
    json.Field("value_head_size", model.linear_attention.value_head_size);
    json.Field("convolution_size", model.linear_attention.convolution_size);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("experts");
  if (model.IsMixture()) {
    json.BeginObject();
    json.Field("expert_count", model.experts.expert_count);
    json.Field("experts_per_token", model.experts.experts_per_token);
    json.Field("expert_ffn_size", model.experts.expert_ffn_size);
    json.Field("shared_expert_count", model.experts.shared_expert_count);
    json.Field("dense_layer_count", model.experts.dense_layer_count);
    json.EndObject();
  } else {
    json.Null();
  }
  json.EndObject();
  return json.Finish();
}

std::string ParameterSetJson(const ParameterSet& set) {
  JsonWriter json;
  json.BeginObject();
  json.Field("version", set.version());
  json.Field("name", set.provenance().name);
  json.Field("parents", set.provenance().parents);
  json.Field("measurements", set.provenance().measurements);
  json.Key("accelerators");
  json.BeginObject();
  for (const auto& [name, parameters] : set.accelerators()) {
    json.Key(name);
    WriteAcceleratorParameters(parameters, &json);
  }
  json.EndObject();
  json.EndObject();
  return json.Finish();
}

std::string FieldsText(const std::string& json) {
  const auto document = nlohmann::ordered_json::parse(json, nullptr, /*allow_exceptions=*/false);
  Table table({{""}, {""}});
  AddFields(document, "", &table);
  return table.ToText();
}

std::string ParameterSetText(const ParameterSet& set,
                             const std::vector<parameters::KeyedDescriptor>& descriptors) {
  std::map<std::string, absl::string_view> meanings;
  for (const parameters::KeyedDescriptor& keyed : descriptors) {
    meanings[keyed.key] = keyed.descriptor.meaning;
  }
  Table table({{"accelerator"},
               {"profile"},
               {"parameter"},
               {"value", Align::kRight},
               {"standard error", Align::kRight},
               {"meaning"}});
  const auto add = [&](const std::string& accelerator, const std::string& profile,
                       const ParameterValues& values) {
    for (const auto& [key, value] : values) {
      const auto meaning = meanings.find(key);
      table.AddRow({accelerator, profile, key, FormatNumber(value.value),
                    value.standard_error.has_value() ? FormatNumber(*value.standard_error) : "-",
                    meaning == meanings.end() ? "" : std::string(meaning->second)});
    }
  };
  for (const auto& [name, parameters] : set.accelerators()) {
    add(name, "(all)", parameters.shared);
    for (const auto& [profile, values] : parameters.profiles) add(name, profile, values);
  }
  std::string text =
      absl::StrCat("parameter set ", set.provenance().name, ", version ", set.version(), "\n");
  if (!set.provenance().parents.empty()) {
    absl::StrAppend(&text, "fitted from ", absl::StrJoin(set.provenance().parents, ", "), "\n");
  }
  for (const std::string& measurements : set.provenance().measurements) {
    absl::StrAppend(&text, "measured by ", Printable(measurements), "\n");
  }
  if (table.empty())
    return absl::StrCat(text, "no fitted values: every formula uses its initial ones\n");
  return absl::StrCat(text, "\n", table.ToText());
}

}  // namespace sextant::cli
