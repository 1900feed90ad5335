// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/job_reader.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/hugging_face.h"
#include "common/catalog/job_node_reader.h"
#include "common/catalog/technology.h"
#include "common/hardware/what_if.h"
#include "common/wire/convert.h"
#include "common/wire/convert_technology.h"
#include "common/wire/yaml_node.h"

namespace sextant::catalog {
namespace {

namespace fs = std::filesystem;

// The value at `key` of a mapping; a null node where it is absent.
YAML::Node ValueAt(const YAML::Node& map, const char* key) {
  const YAML::Node value = map[key];
  return value.IsDefined() ? value : YAML::Node();
}

class JobReader {
 public:
  JobReader(absl::string_view file_name, const Catalog& catalog, PlanIs plan,
            std::vector<std::string>* notes)
      : file_name_(file_name), catalog_(catalog), plan_(plan), notes_(notes) {}

  absl::StatusOr<workload::Job> Read(YAML::Node root, const std::vector<std::string>& overrides) {
    for (const std::string& text : overrides) ApplyOverride(root, text);
    RefuseRepeated(root);
    if (!violations_.empty()) return violations_.ToStatus();

    types::v1::Job proto;
    const YAML::Node model = ValueAt(root, "model");
    const YAML::Node cluster = ValueAt(root, "cluster");
    const YAML::Node what_if = ValueAt(root, "what_if");
    root.remove("model");
    root.remove("cluster");
    root.remove("what_if");
    wire::FillMessage(root, "", file_name_, &proto, &violations_);
    const bool model_read = ReadModel(model, proto);
    const bool cluster_read = ReadCluster(cluster, proto);
    FillDefaults(proto);

    absl::StatusOr<workload::Job> job = wire::FromProto(proto);
    if (job.ok() && cluster_read && !what_if.IsNull()) ChangeHardware(what_if, job->cluster);
    const absl::Status checked = !job.ok()                   ? job.status()
                                 : plan_ == PlanIs::kChosen ? workload::ValidateJob(*job)
                                                             : workload::ValidateOpenJob(*job);
    AddWhatFollows(checked, model_read, cluster_read);
    if (violations_.empty()) return job;
    const bool only_unknown_names = violations_.items().size() == not_found_count_;
    return violations_.ToStatus(only_unknown_names ? absl::StatusCode::kNotFound
                                                   : absl::StatusCode::kInvalidArgument);
  }

 private:
  // "faults[2]" is the name "faults" and the index 2.
  struct Step {
    std::string name;
    std::optional<size_t> index;
  };

  static std::optional<std::vector<Step>> ParsePath(absl::string_view path) {
    std::vector<Step> steps;
    for (absl::string_view part : absl::StrSplit(path, '.')) {
      Step step{std::string(part.substr(0, part.find('['))), std::nullopt};
      if (const size_t open = part.find('['); open != absl::string_view::npos) {
        size_t index = 0;
        if (part.back() != ']' ||
            !absl::SimpleAtoi(part.substr(open + 1, part.size() - open - 2), &index)) {
          return std::nullopt;
        }
        step.index = index;
      }
      if (step.name.empty() || steps.size() > 16) return std::nullopt;
      steps.push_back(std::move(step));
    }
    return steps;
  }

  void ApplyOverride(const YAML::Node& root, absl::string_view text) {
    const size_t equals = text.find('=');
    const absl::string_view path = text.substr(0, equals);
    const auto steps = ParsePath(path);
    if (equals == absl::string_view::npos || !steps.has_value()) {
      violations_.Add("--set", absl::StrCat("is \"", text.substr(0, 128),
                                            "\" but must be path=value, for example "
                                            "plan.micro_batch_size=2"));
      return;
    }
    const absl::StatusOr<YAML::Node> value =
        wire::LoadYaml(text.substr(equals + 1), absl::StrCat("--set ", path));
    if (!value.ok()) {
      violations_.AddStatus("--set", value.status());
      return;
    }
    Assign(root, *steps, 0, path, *value);
  }

  void Assign(YAML::Node parent, const std::vector<Step>& steps, size_t at, absl::string_view path,
              const YAML::Node& value) {
    const Step& step = steps[at];
    const bool last = at + 1 == steps.size();
    if (!step.index.has_value() && last) {
      parent[step.name] = value;
      return;
    }
    YAML::Node child = ValueAt(parent, step.name.c_str());
    if (step.index.has_value()) {
      if (child.IsNull()) {
        YAML::Node list(YAML::NodeType::Sequence);
        parent[step.name] = list;
        AssignElement(list, steps, at, path, value);
      } else {
        AssignElement(child, steps, at, path, value);
      }
      return;
    }
    if (child.IsMap()) return Assign(child, steps, at + 1, path, value);
    if (!child.IsNull() && !child.IsScalar()) {
      violations_.Add(path, absl::StrCat("cannot be set: ", step.name, " is a list"));
      return;
    }
    YAML::Node fresh(YAML::NodeType::Map);
    // "model: llama-2-7b" and one field more is that model with the field changed.
    if (child.IsScalar()) fresh["name"] = child.Scalar();
    parent[step.name] = fresh;
    Assign(fresh, steps, at + 1, path, value);
  }

  void AssignElement(YAML::Node list, const std::vector<Step>& steps, size_t at,
                     absl::string_view path, const YAML::Node& value) {
    const size_t index = *steps[at].index;
    if (!list.IsSequence() || index > list.size()) {
      violations_.Add(path, absl::StrCat("cannot be set: ", steps[at].name, " has ",
                                         list.IsSequence() ? list.size() : 0, " elements"));
      return;
    }
    if (at + 1 == steps.size()) {
      if (index == list.size()) {
        list.push_back(value);
      } else {
        list[index] = value;
      }
      return;
    }
    if (index == list.size()) list.push_back(YAML::Node(YAML::NodeType::Map));
    YAML::Node element = list[index];
    if (!element.IsMap()) {
      violations_.Add(path, "cannot be set: the element is not a mapping");
      return;
    }
    Assign(element, steps, at + 1, path, value);
  }

  void RefuseRepeated(const YAML::Node& root) {
    std::set<std::string> seen;
    for (const auto& item : root) {
      if (!item.first.IsScalar() || seen.insert(item.first.Scalar()).second) continue;
      violations_.Add(
          item.first.Scalar().substr(0, 128),
          absl::StrCat("is given twice; keep one", wire::PlaceOf(item.first, file_name_)));
    }
  }

  void AddLookupFailure(absl::string_view field, const absl::Status& status) {
    const size_t before = violations_.items().size();
    const std::vector<base::Violation> carried = base::ViolationsOf(status);
    for (const base::Violation& v : carried) {
      violations_.Add(absl::StrCat(field, ".", v.field), v.description);
    }
    if (carried.empty()) violations_.Add(field, status.message());
    if (absl::IsNotFound(status)) not_found_count_ += violations_.items().size() - before;
  }

  // The file that `name` means, if there is one.
  std::optional<std::string> PathOf(const std::string& name) const {
    std::error_code error;
    for (const fs::path& candidate :
         {fs::path(name), fs::path(std::string(file_name_)).parent_path() / name}) {
      if (fs::is_regular_file(candidate, error)) return candidate.string();
      if (fs::is_regular_file(candidate / "config.json", error)) {
        return (candidate / "config.json").string();
      }
    }
    return std::nullopt;
  }

  static bool LooksLikeFile(const std::string& name) {
    return absl::EndsWith(name, ".json") || absl::EndsWith(name, ".yaml") ||
           absl::EndsWith(name, ".yml") || absl::StartsWith(name, "/") ||
           absl::StartsWith(name, ".");
  }

  // A document that stands for an entry: the node, and the file to name in errors.
  struct Document {
    YAML::Node node;
    std::string text;
    std::string path;
  };
  absl::StatusOr<Document> LoadFile(const std::string& path) const {
    SEXTANT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
    SEXTANT_ASSIGN_OR_RETURN(YAML::Node node, wire::LoadYaml(text, path));
    if (!node.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" must hold a mapping"));
    }
    return Document{node, std::move(text), path};
  }

  // An entry by catalog name or by file, as a message.
  absl::StatusOr<types::v1::ModelArchitecture> NamedModel(const std::string& name) {
    absl::StatusOr<workload::ModelArchitecture> found = catalog_.FindModel(name);
    if (found.ok()) return wire::ToProto(*found);
    if (!absl::IsNotFound(found.status())) return found.status();
    const std::optional<std::string> path = PathOf(name);
    if (!path.has_value()) {
      if (!LooksLikeFile(name)) return found.status();
      return absl::NotFoundError(absl::StrCat("no file \"", name.substr(0, 256), "\""));
    }
    SEXTANT_ASSIGN_OR_RETURN(Document document, LoadFile(*path));
    for (const char* key : {"model_type", "text_config", "architectures"}) {
      if (ValueAt(document.node, key).IsNull()) continue;
      SEXTANT_ASSIGN_OR_RETURN(HuggingFaceModel read, ReadHuggingFaceConfig(document.text, *path));
      if (notes_ != nullptr) {
        for (const std::string& note : read.notes) {
          notes_->push_back(absl::StrCat("model ", read.model.name, ": ", note));
        }
      }
      return wire::ToProto(read.model);
    }
    types::v1::ModelArchitecture proto;
    base::Violations violations;
    document.node.remove("aliases");
    wire::FillMessage(document.node, "", *path, &proto, &violations);
    if (!violations.empty()) return violations.ToStatus();
    return proto;
  }

  bool ReadModel(const YAML::Node& node, types::v1::Job& job) {
    types::v1::ModelArchitecture& model = *job.mutable_model();
    if (node.IsNull()) {
      violations_.Add("model", "is missing; give a model by name, by file or as a mapping");
      return false;
    }
    const size_t before = violations_.items().size();
    if (node.IsScalar()) {
      Start("model", NamedModel(node.Scalar()), model);
    } else if (node.IsMap()) {
      if (const YAML::Node name = ValueAt(node, "name"); name.IsScalar()) {
        absl::StatusOr<types::v1::ModelArchitecture> base = NamedModel(name.Scalar());
        // An unknown name with fields beside it is a label.
        if (base.ok() || node.size() == 1 || !absl::IsNotFound(base.status())) {
          Start("model", std::move(base), model);
        }
      }
      const std::string label = model.name();
      wire::FillMessage(node, "model", file_name_, &model, &violations_);
      if (!label.empty()) model.set_name(label);
    } else {
      violations_.Add("model", "is a list but must be a name, a file or a mapping");
    }
    return violations_.items().size() == before;
  }

  template <typename Message>
  void Start(absl::string_view field, absl::StatusOr<Message> base, Message& message) {
    if (base.ok()) {
      message = *std::move(base);
    } else {
      AddLookupFailure(field, base.status());
    }
  }

  // Fills `cluster` from a mapping whose accelerator may be a name.
  void FillCluster(const YAML::Node& node, absl::string_view path, absl::string_view file_name,
                   types::v1::Cluster& cluster) {
    const std::string accelerator_path =
        path.empty() ? "accelerator" : absl::StrCat(path, ".accelerator");
    YAML::Node rest = YAML::Clone(node);
    rest.remove("aliases");
    const YAML::Node accelerator = ValueAt(node, "accelerator");
    const YAML::Node name =
        accelerator.IsMap() ? ValueAt(accelerator, "name") : YAML::Node(accelerator);
    if (name.IsScalar()) {
      const absl::StatusOr<hardware::Accelerator> found = catalog_.FindAccelerator(name.Scalar());
      if (found.ok()) {
        *cluster.mutable_accelerator() = wire::ToProto(*found);
      } else if (accelerator.IsScalar() || accelerator.size() == 1 ||
                 !absl::IsNotFound(found.status())) {
        AddLookupFailure(accelerator_path, found.status());
      } else {
        cluster.clear_accelerator();
      }
    }
    if (accelerator.IsScalar()) rest.remove("accelerator");
    wire::FillMessage(rest, path, file_name, &cluster, &violations_);
    if (cluster.has_accelerator() && accelerator.IsMap() && name.IsScalar()) {
      // The alias in the file stands for the id that parameters are keyed by.
      if (const auto found = catalog_.FindAccelerator(name.Scalar()); found.ok()) {
        cluster.mutable_accelerator()->set_name(found->name);
      }
    }
  }

  // Starts `cluster` from an entry; false where the name is not known.
  bool StartCluster(const std::string& name, bool must_exist, types::v1::Cluster& cluster) {
    const absl::StatusOr<hardware::Cluster> found = catalog_.FindCluster(name);
    if (found.ok()) {
      cluster = wire::ToProto(*found);
      return true;
    }
    if (!absl::IsNotFound(found.status())) {
      AddLookupFailure("cluster", found.status());
      return true;
    }
    if (const std::optional<std::string> path = PathOf(name); path.has_value()) {
      absl::StatusOr<Document> document = LoadFile(*path);
      if (document.ok()) {
        FillCluster(document->node, "cluster", *path, cluster);
      } else {
        AddLookupFailure("cluster", document.status());
      }
      return true;
    }
    if (must_exist) {
      AddLookupFailure("cluster", LooksLikeFile(name)
                                      ? absl::NotFoundError(
                                            absl::StrCat("no file \"", name.substr(0, 256), "\""))
                                      : found.status());
    }
    return false;
  }

  bool ReadCluster(const YAML::Node& node, types::v1::Job& job) {
    types::v1::Cluster& cluster = *job.mutable_cluster();
    if (node.IsNull()) {
      violations_.Add("cluster", "is missing; give a cluster by name, by file or as a mapping");
      return false;
    }
    const size_t before = violations_.items().size();
    if (node.IsScalar()) {
      StartCluster(node.Scalar(), true, cluster);
    } else if (node.IsMap()) {
      if (const YAML::Node name = ValueAt(node, "name"); name.IsScalar()) {
        StartCluster(name.Scalar(), node.size() == 1, cluster);
      }
      const std::string label = cluster.name();
      FillCluster(node, "cluster", file_name_, cluster);
      if (!label.empty()) cluster.set_name(label);
      if (!cluster.has_accelerator() && violations_.items().size() == before) {
        violations_.Add("cluster.accelerator", "is missing; give the accelerator of the nodes");
      }
    } else {
      violations_.Add("cluster", "is a list but must be a name, a file or a mapping");
    }
    return violations_.items().size() == before;
  }

  void ChangeHardware(const YAML::Node& node, hardware::Cluster& cluster) {
    types::v1::WhatIf proto;
    wire::FillMessage(node, "what_if", file_name_, &proto, &violations_);
    const absl::StatusOr<hardware::Technologies> technologies = DefaultTechnologies(catalog_);
    if (!technologies.ok()) return AddLookupFailure("what_if", technologies.status());
    const absl::Status status = hardware::Apply(wire::FromProto(proto), *technologies, cluster);
    if (!status.ok()) AddLookupFailure("what_if", status);
  }

  static void FillDefaults(types::v1::Job& job) {
    const types::v1::ParallelPlan& plan = job.plan();
    const auto size = [](bool given, int64_t value) {
      return given ? static_cast<double>(value) : 1.0;
    };
    // In double: products of what a person may type exceed 64 bits.
    const double model_ranks =
        size(plan.has_tensor_parallel_size(), plan.tensor_parallel_size()) *
        size(plan.has_pipeline_parallel_size(), plan.pipeline_parallel_size()) *
        size(plan.has_context_parallel_size(), plan.context_parallel_size());
    constexpr double kLargest = 2147483648.0;
    if (!job.has_gpu_count()) {
      const double product =
          model_ranks * size(plan.has_data_parallel_size(), plan.data_parallel_size());
      if (product >= 1 && product <= kLargest) job.set_gpu_count(static_cast<int64_t>(product));
    } else if (!plan.has_data_parallel_size() && model_ranks >= 1 && model_ranks <= kLargest &&
               job.gpu_count() >= 1 && job.gpu_count() % static_cast<int64_t>(model_ranks) == 0) {
      job.mutable_plan()->set_data_parallel_size(job.gpu_count() /
                                                 static_cast<int64_t>(model_ranks));
    }
    if (job.has_inference() && job.inference().kv_cache_precision().empty() &&
        job.precision() == "fp16") {
      job.mutable_inference()->set_kv_cache_precision("fp16");
    }
  }

  // Adds the violations of `checked` that do not merely repeat or follow from one that stands.
  void AddWhatFollows(const absl::Status& checked, bool model_read, bool cluster_read) {
    std::set<std::string> reported;
    for (const base::Violation& v : violations_.items()) reported.insert(v.field);
    for (const base::Violation& v : base::ViolationsOf(checked)) {
      const bool of_model = absl::StartsWith(v.field, "model") ||
                            absl::StartsWith(v.field, "plan.") ||
                            v.field == "training.sequence_length";
      const bool of_cluster = absl::StartsWith(v.field, "cluster") || v.field == "precision";
      if ((of_model && !model_read) || (of_cluster && !cluster_read)) continue;
      if (reported.count(v.field) > 0) continue;
      violations_.Add(v.field, v.description);
    }
  }

  absl::string_view file_name_;
  const Catalog& catalog_;
  const PlanIs plan_;
  std::vector<std::string>* notes_;
  base::Violations violations_;
  size_t not_found_count_ = 0;
};

}  // namespace

absl::StatusOr<workload::Job> ReadJobNode(YAML::Node root, absl::string_view file_name,
                                          const std::vector<std::string>& set_overrides,
                                          const Catalog& catalog, PlanIs plan,
                                          std::vector<std::string>* notes) {
  if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
  if (!root.IsMap()) {
    base::Violations violations;
    violations.Add(file_name, "must be a mapping with model, cluster and training or inference");
    return violations.ToStatus();
  }
  return JobReader(file_name, catalog, plan, notes).Read(root, set_overrides);
}

absl::StatusOr<workload::Job> ReadJob(absl::string_view yaml_text, absl::string_view file_name,
                                      const std::vector<std::string>& set_overrides,
                                      const Catalog& catalog, std::vector<std::string>* notes) {
  SEXTANT_ASSIGN_OR_RETURN(YAML::Node root, wire::LoadYaml(yaml_text, file_name));
  return ReadJobNode(root, file_name, set_overrides, catalog, PlanIs::kChosen, notes);
}

absl::StatusOr<workload::Job> ReadOpenJob(absl::string_view yaml_text, absl::string_view file_name,
                                          const std::vector<std::string>& set_overrides,
                                          const Catalog& catalog,
                                          std::vector<std::string>* notes) {
  SEXTANT_ASSIGN_OR_RETURN(YAML::Node root, wire::LoadYaml(yaml_text, file_name));
  return ReadJobNode(std::move(root), file_name, set_overrides, catalog, PlanIs::kOpen, notes);
}

}  // namespace sextant::catalog
