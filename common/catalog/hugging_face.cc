// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/hugging_face.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/yaml_node.h"

namespace sextant::catalog {
namespace {

enum class Positions { kNone, kLearned, kLearnedOffset2 };

// What the code of a family fixes and its configuration does not say.
struct Family {
  absl::string_view model_type;
  bool gated = true;
  bool layer_norm = false;
  bool linear_bias = false;
  bool qkv_bias = false;
  bool tied_by_default = false;
  bool ffn_is_4_hidden_by_default = false;
  Positions positions = Positions::kNone;
  bool causal = true;
};

// From the configuration classes of Hugging Face transformers 4.5x.
constexpr auto kFamilies = std::to_array<Family>({
    {.model_type = "llama"},
    {.model_type = "llama4_text"},
    {.model_type = "mistral"},
    {.model_type = "ministral"},
    {.model_type = "mixtral"},
    {.model_type = "qwen2", .qkv_bias = true},
    {.model_type = "qwen2_vl", .qkv_bias = true},
    {.model_type = "qwen2_5_vl", .qkv_bias = true},
    {.model_type = "qwen2_moe", .qkv_bias = true},
    {.model_type = "qwen3"},
    {.model_type = "qwen3_moe"},
    {.model_type = "qwen3_next"},
    {.model_type = "deepseek_v2"},
    {.model_type = "deepseek_v3"},
    {.model_type = "kimi_k2"},
    {.model_type = "gpt_oss"},
    {.model_type = "minimax_m2"},
    {.model_type = "phi3"},
    {.model_type = "gemma", .tied_by_default = true},
    {.model_type = "gemma2", .tied_by_default = true},
    {.model_type = "gemma3_text", .tied_by_default = true},
    {.model_type = "exaone4"},
    {.model_type = "internlm2"},
    {.model_type = "chatglm"},
    {.model_type = "dbrx"},
    {.model_type = "gpt2",
     .gated = false,
     .layer_norm = true,
     .linear_bias = true,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true,
     .positions = Positions::kLearned},
    {.model_type = "gpt_neox", .gated = false, .layer_norm = true, .linear_bias = true},
    {.model_type = "gptj", .gated = false, .layer_norm = true, .ffn_is_4_hidden_by_default = true},
    {.model_type = "opt",
     .gated = false,
     .layer_norm = true,
     .linear_bias = true,
     .tied_by_default = true,
     .positions = Positions::kLearnedOffset2},
    {.model_type = "bloom",
     .gated = false,
     .layer_norm = true,
     .linear_bias = true,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true},
    {.model_type = "falcon",
     .gated = false,
     .layer_norm = true,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true},
    {.model_type = "RefinedWeb",
     .gated = false,
     .layer_norm = true,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true},
    {.model_type = "RefinedWebModel",
     .gated = false,
     .layer_norm = true,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true},
    {.model_type = "mpt",
     .gated = false,
     .tied_by_default = true,
     .ffn_is_4_hidden_by_default = true},
    {.model_type = "bert",
     .gated = false,
     .layer_norm = true,
     .linear_bias = true,
     .tied_by_default = true,
     .positions = Positions::kLearned,
     .causal = false},
});

const Family* FindFamily(absl::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

using Names = std::initializer_list<const char*>;

class ConfigReader {
 public:
  ConfigReader(const YAML::Node& config, absl::string_view file_name, std::string prefix)
      : config_(config), file_name_(file_name), prefix_(std::move(prefix)) {}

  absl::StatusOr<HuggingFaceModel> Read(const Family& family) {
    workload::ModelArchitecture& m = result_.model;
    family_ = family.model_type;
    m.gated_ffn = family.gated;
    m.layer_norm = family.layer_norm;
    m.causal = family.causal;
    m.hidden_size = Required({"hidden_size", "n_embd", "n_embed", "d_model"});
    m.layer_count = Required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
    m.attention_head_count = Required({"num_attention_heads", "n_head", "n_heads"});
    m.vocabulary_size = Required({"vocab_size", "padded_vocab_size"});
    m.tied_embeddings = Flag("tie_word_embeddings").value_or(family.tied_by_default);
    ReadBiases(family);
    ReadAttention();
    ReadFeedForward(family);
    ReadPositions(family);
    ReadWindow();
    ReadLinearAttention();
    RefuseWhatHasNoPlace();
    if (violations_.empty()) violations_.AddStatus("", workload::ValidateModelArchitecture(m));
    if (!violations_.empty()) return violations_.ToStatus();
    return std::move(result_);
  }

 private:
  bool Has(const char* name) const {
    const YAML::Node node = config_[name];
    return node.IsDefined() && !node.IsNull();
  }

  void Refuse(absl::string_view name, absl::string_view why) {
    violations_.Add(absl::StrCat(prefix_, name), absl::StrCat(why, " (", file_name_, ")"));
  }

  std::optional<int64_t> WholeOf(const YAML::Node& node, absl::string_view name) {
    if (!node.IsDefined() || node.IsNull()) return std::nullopt;
    int64_t value = 0;
    if (node.IsScalar() && absl::SimpleAtoi(node.Scalar(), &value) && value >= 0) return value;
    Refuse(name, "must be a whole number of at least 0");
    return std::nullopt;
  }

  // The first of `names` that is there and not null.
  std::optional<int64_t> Whole(Names names) {
    for (const char* name : names) {
      if (Has(name)) return WholeOf(config_[name], name);
    }
    return std::nullopt;
  }

  int64_t Required(Names names) {
    const size_t before = violations_.items().size();
    const std::optional<int64_t> value = Whole(names);
    if (value.has_value() && *value > 0) return *value;
    if (violations_.items().size() == before) {
      Refuse(*names.begin(), value.has_value() ? "is 0 but must be at least 1"
                                               : "is missing; it cannot be guessed");
    }
    return 0;
  }

  std::optional<bool> Flag(const char* name) {
    if (!Has(name)) return std::nullopt;
    const std::string text = config_[name].IsScalar() ? config_[name].Scalar() : "";
    if (text == "true") return true;
    if (text == "false") return false;
    Refuse(name, "must be true or false");
    return std::nullopt;
  }

  std::string Text(const char* name) const {
    return Has(name) && config_[name].IsScalar() ? config_[name].Scalar() : std::string();
  }

  void Note(absl::string_view note) { result_.notes.emplace_back(note); }

  void ReadBiases(const Family& family) {
    workload::ModelArchitecture& m = result_.model;
    m.linear_bias = family.linear_bias;
    m.qkv_bias = family.qkv_bias;
    for (const char* name : {"enable_bias", "bias", "add_bias_linear"}) {
      if (const std::optional<bool> bias = Flag(name)) m.linear_bias = *bias;
    }
    if (const std::optional<bool> none = Flag("no_bias")) m.linear_bias = !*none;
    if (const std::optional<bool> bias = Flag("add_qkv_bias")) m.qkv_bias = *bias;
    if (Flag("attention_bias").value_or(false)) {
      // gpt-oss puts biases on its experts as well.
      (family_ == "gpt_oss" ? m.linear_bias : m.qkv_bias) = true;
    }
  }

  int64_t KvHeads() {
    const int64_t heads = result_.model.attention_head_count;
    if (family_ == "chatglm") {
      return Flag("multi_query_attention").value_or(false)
                 ? Whole({"multi_query_group_num"}).value_or(heads)
                 : heads;
    }
    if (family_ == "falcon" || family_ == "RefinedWeb" || family_ == "RefinedWebModel") {
      const bool grouped = Flag("new_decoder_architecture").value_or(false) || Has("n_head_kv");
      if (grouped) return Whole({"num_kv_heads", "n_head_kv"}).value_or(heads);
      return Flag("multi_query").value_or(true) ? 1 : heads;
    }
    const YAML::Node attention = config_["attn_config"];
    if (attention.IsDefined() && attention.IsMap()) {
      const std::optional<int64_t> nested =
          WholeOf(attention["kv_n_heads"], "attn_config.kv_n_heads");
      if (nested.has_value()) return *nested;
    }
    return Whole({"num_key_value_heads", "num_kv_heads"}).value_or(heads);
  }

  void ReadAttention() {
    workload::ModelArchitecture& m = result_.model;
    if (Whole({"kv_lora_rank"}).value_or(0) > 0) {
      m.latent_attention = {.query_lora_rank = Whole({"q_lora_rank"}).value_or(0),
                            .kv_lora_rank = Required({"kv_lora_rank"}),
                            .rope_head_size = Required({"qk_rope_head_dim"}),
                            .nope_head_size = Required({"qk_nope_head_dim"}),
                            .value_head_size = Required({"v_head_dim"})};
      return;
    }
    m.kv_head_count = KvHeads();
    m.head_size = Whole({"head_dim", "attention_head_dim", "kv_channels"}).value_or(0);
    if (m.head_size == 0 && m.attention_head_count > 0) {
      if (m.hidden_size % m.attention_head_count == 0) {
        m.head_size = m.hidden_size / m.attention_head_count;
      } else {
        Refuse("head_dim",
               absl::StrCat("is missing and hidden size ", m.hidden_size, " is not a multiple of ",
                            m.attention_head_count, " heads; give head_dim"));
      }
    }
  }

  void ReadFeedForward(const Family& family) {
    workload::ModelArchitecture& m = result_.model;
    const YAML::Node nested = config_["ffn_config"];
    const bool has_nested = nested.IsDefined() && nested.IsMap();
    std::optional<int64_t> width =
        Whole({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"});
    if (!width.has_value() && has_nested) {
      width = WholeOf(nested["ffn_hidden_size"], "ffn_config.ffn_hidden_size");
    }
    if (!width.has_value() && Has("expansion_ratio")) {
      width = Whole({"expansion_ratio"}).value_or(0) * m.hidden_size;
    }
    if (!width.has_value() && family.ffn_is_4_hidden_by_default) width = 4 * m.hidden_size;
    std::optional<int64_t> experts =
        Whole({"num_local_experts", "num_experts", "n_routed_experts"});
    if (!experts.has_value() && has_nested) {
      experts = WholeOf(nested["moe_num_experts"], "ffn_config.moe_num_experts");
    }
    if (experts.value_or(0) == 0) {
      m.ffn_size = width.value_or(0);
      if (m.ffn_size == 0) Refuse("intermediate_size", "is missing; it cannot be guessed");
      return;
    }
    m.experts.expert_count = *experts;
    m.experts.experts_per_token =
        has_nested ? WholeOf(nested["moe_top_k"], "ffn_config.moe_top_k").value_or(0)
                   : Required({"num_experts_per_tok", "experts_per_token", "top_k_experts"});
    m.experts.expert_ffn_size = Whole({"moe_intermediate_size"}).value_or(width.value_or(0));
    if (m.experts.expert_ffn_size == 0) {
      Refuse("moe_intermediate_size", "is missing; it cannot be guessed");
    }
    m.experts.dense_layer_count = Whole({"first_k_dense_replace"}).value_or(0);
    if (m.experts.dense_layer_count > 0) m.ffn_size = width.value_or(0);
    ReadSharedExperts();
    for (const char* step :
         {"moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step"}) {
      if (Whole({step}).value_or(1) != 1) {
        Refuse(step, "is not 1: a mixture on some layers only cannot be represented");
      }
    }
    if (Has("mlp_only_layers") && config_["mlp_only_layers"].size() > 0) {
      Refuse("mlp_only_layers", "lists dense layers between mixture layers; not represented");
    }
  }

  void ReadSharedExperts() {
    workload::MixtureOfExperts& e = result_.model.experts;
    e.shared_expert_count = Whole({"n_shared_experts"}).value_or(family_ == "llama4_text" ? 1 : 0);
    for (const char* name : {"shared_expert_intermediate_size", "shared_intermediate_size"}) {
      const int64_t shared_width = Whole({name}).value_or(0);
      if (shared_width == 0 || e.expert_ffn_size == 0) continue;
      if (shared_width % e.expert_ffn_size == 0) {
        e.shared_expert_count = shared_width / e.expert_ffn_size;
      } else {
        Refuse(name, absl::StrCat("is ", shared_width, " but must be a multiple of the experts' ",
                                  e.expert_ffn_size));
      }
    }
  }

  void ReadPositions(const Family& family) {
    if (family.positions == Positions::kNone) return;
    result_.model.learned_position_count =
        Required({"max_position_embeddings", "n_positions", "n_ctx"}) +
        (family.positions == Positions::kLearnedOffset2 ? 2 : 0);
  }

  void ReadWindow() {
    workload::ModelArchitecture& m = result_.model;
    std::set<std::string> kinds;
    if (Has("layer_types") && config_["layer_types"].IsSequence()) {
      const YAML::Node types = config_["layer_types"];
      for (const auto& type : types) kinds.insert(type.IsScalar() ? type.Scalar() : "?");
      if (static_cast<int64_t>(types.size()) != m.layer_count && m.layer_count > 0) {
        Refuse("layer_types", absl::StrCat("has ", types.size(), " entries but there are ",
                                           m.layer_count, " layers"));
      }
    }
    for (const std::string& kind : kinds) {
      if (kind == "linear_attention" && family_ == "qwen3_next") continue;
      if (kind != "full_attention" && kind != "sliding_attention" && kind != "chunked_attention") {
        Refuse("layer_types", absl::StrCat("holds \"", kind.substr(0, 64),
                                           "\" layers, which cannot be represented"));
      }
    }
    if (Has("attention_chunk_size")) Note("chunked attention is taken as full attention");
    const int64_t window = Whole({"sliding_window"}).value_or(0);
    if (window == 0 || !Flag("use_sliding_window").value_or(true)) return;
    if (kinds.size() == 1 && kinds.count("full_attention") > 0) return;
    m.sliding_window = window;
    m.full_attention_interval = Interval(kinds.count("full_attention") > 0);
  }

  // Layers from one that sees all keys to the next: as listed, as named, or as the family's code
  // has it (Gemma 2 alternates, Gemma 3 has five sliding layers to one full).
  int64_t Interval(bool listed) {
    if (listed) {
      const YAML::Node types = config_["layer_types"];
      int64_t first = 1;
      while (types[static_cast<size_t>(first - 1)].Scalar() != "full_attention") ++first;
      for (size_t i = 0; i < types.size(); ++i) {
        const bool full = (static_cast<int64_t>(i) + 1) % first == 0;
        if (full != (types[i].Scalar() == "full_attention")) {
          Note("layers that see all keys are taken at equal distances");
          break;
        }
      }
      if (first > 1) return first;
      int64_t count = 0;
      for (const auto& type : types) count += type.Scalar() == "full_attention" ? 1 : 0;
      return std::max<int64_t>(2, static_cast<int64_t>(types.size()) / count);
    }
    if (Has("sliding_window_pattern")) return Whole({"sliding_window_pattern"}).value_or(1);
    if (family_ == "gemma2") return 2;
    if (family_ == "gemma3_text") return 6;
    return 1;
  }

  void ReadLinearAttention() {
    if (family_ != "qwen3_next") return;
    workload::ModelArchitecture& m = result_.model;
    m.gated_attention = true;
    m.full_attention_interval = Whole({"full_attention_interval"}).value_or(4);
    m.linear_attention = {.key_head_count = Required({"linear_num_key_heads"}),
                          .value_head_count = Required({"linear_num_value_heads"}),
                          .key_head_size = Required({"linear_key_head_dim"}),
                          .value_head_size = Required({"linear_value_head_dim"}),
                          .convolution_size = Whole({"linear_conv_kernel_dim"}).value_or(0)};
  }

  void RefuseWhatHasNoPlace() {
    for (const char* name : {"hybrid_override_pattern", "attn_layer_period",
                             "full_attention_interval", "mamba_d_state", "ssm_state_size"}) {
      if (Has(name) && family_ != "qwen3_next") {
        Refuse(name, "describes layers without attention, which cannot be represented");
      }
    }
    const int64_t projection = Whole({"word_embed_proj_dim"}).value_or(result_.model.hidden_size);
    if (projection != result_.model.hidden_size) {
      Refuse("word_embed_proj_dim",
             "differs from hidden_size; such embeddings cannot be represented");
    }
    if (Whole({"num_nextn_predict_layers", "num_mtp_modules"}).value_or(0) > 0) {
      Note("layers of multi-token prediction are left out");
    }
  }

  const YAML::Node config_;
  absl::string_view file_name_;
  std::string prefix_;
  absl::string_view family_;
  base::Violations violations_;
  HuggingFaceModel result_;
};

std::string ScalarAt(const YAML::Node& node, const char* name) {
  const YAML::Node value = node[name];
  return value.IsDefined() && value.IsScalar() ? value.Scalar() : std::string();
}

absl::Status OneViolation(absl::string_view field, absl::string_view description) {
  base::Violations violations;
  violations.Add(field, description);
  return violations.ToStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceModel> ReadHuggingFaceConfig(absl::string_view text,
                                                       absl::string_view file_name) {
  SEXTANT_ASSIGN_OR_RETURN(const YAML::Node root, wire::LoadYaml(text, file_name));
  if (!root.IsMap()) return OneViolation(file_name, "must be an object, as a config.json is");
  const YAML::Node nested = root["text_config"];
  const bool is_nested = nested.IsDefined() && nested.IsMap();
  const YAML::Node config = is_nested ? nested : root;
  std::string type = ScalarAt(config, "model_type");
  if (type.empty()) type = ScalarAt(root, "model_type");
  if (type.empty()) {
    return OneViolation("model_type", absl::StrCat("is missing in ", file_name,
                                                   "; it names the family of the model"));
  }
  const Family* family = FindFamily(type);
  if (family == nullptr) {
    std::vector<std::string> known;
    for (const Family& f : kFamilies) known.emplace_back(f.model_type);
    return OneViolation(
        "model_type",
        absl::StrCat("is \"", type.substr(0, 64),
                     "\", a family that cannot be represented; describe the model as a mapping, or "
                     "use a known family such as ",
                     absl::StrJoin(base::NearestNames(type, known), ", ")));
  }
  absl::StatusOr<HuggingFaceModel> result =
      ConfigReader(config, file_name, is_nested ? "text_config." : "").Read(*family);
  if (!result.ok()) return result;
  const std::string label = ScalarAt(root, "_name_or_path");
  result->model.name = (label.empty() ? type : label).substr(0, 128);
  const YAML::Node vision = root["vision_config"];
  if (vision.IsDefined() && vision.IsMap()) {
    result->notes.push_back("the vision part is left out: only the language model is predicted");
  }
  return result;
}

}  // namespace sextant::catalog
