// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/catalog.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Catalog& Shipped() {
  static const Catalog catalog = *Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  return catalog;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "/sextant_catalog_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
  }

 private:
  std::string path_;
};

TEST(Catalog, EveryShippedEntryIsValidAndNamedByItsFile) {
  for (const std::string& name : Shipped().AcceleratorNames()) {
    const auto found = Shipped().FindAccelerator(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->name, name);
  }
  for (const std::string& name : Shipped().ClusterNames()) {
    const auto found = Shipped().FindCluster(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->name, name);
  }
  for (const std::string& name : Shipped().ModelNames()) {
    const auto found = Shipped().FindModel(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->name, name);
  }
}

TEST(Catalog, EveryAcceleratorHasADefaultClusterOfItsKindAndAKnownDonor) {
  for (const std::string& name : Shipped().AcceleratorNames()) {
    const auto cluster_name = Shipped().DefaultClusterName(name);
    ASSERT_TRUE(cluster_name.ok()) << cluster_name.status().message();
    const auto cluster = Shipped().FindCluster(*cluster_name);
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    EXPECT_EQ(cluster->accelerator.name, name);
    const std::string donor = Shipped().FindAccelerator(name)->parameter_donor;
    if (!donor.empty()) {
      EXPECT_THAT(Shipped().AcceleratorNames(), Contains(donor));
    }
  }
}

// What the catalog remembers of a name is the first entry that claims it: the lists in the files
// show a second claim.
TEST(Catalog, NoNameMeansTwoEntries) {
  for (const char* folder : {"hardware", "models", "clusters"}) {
    std::map<std::string, std::string> claimed;
    for (const auto& file : std::filesystem::directory_iterator(
             absl::StrCat(SEXTANT_SOURCE_DIR, "/datasets/", folder))) {
      if (file.path().extension() != ".yaml") continue;
      const std::string id = file.path().stem().string();
      std::vector<std::string> names = AliasesAtHead(*ReadTextFile(file.path().string()));
      names.push_back(id);
      for (const std::string& name : names) {
        const auto [at, is_new] = claimed.emplace(CanonicalName(name), id);
        EXPECT_TRUE(is_new) << folder << ": " << name << " is " << at->second << " and " << id;
      }
    }
  }
}

TEST(Catalog, EveryAliasOfAModelIsFound) {
  for (const auto& [alias, id] : Shipped().ModelAliases()) {
    const auto found = Shipped().FindModel(alias);
    ASSERT_TRUE(found.ok()) << alias;
    EXPECT_EQ(found->name, id);
  }
}

TEST(AliasesAtHead, ReadsAFlowListOverLines) {
  EXPECT_THAT(AliasesAtHead("# c\naliases: [a, \"b c\",\n          d/e]\nname: x\n"),
              ElementsAre("a", "b c", "d/e"));
  EXPECT_THAT(AliasesAtHead("name: x\n"), IsEmpty());
  EXPECT_THAT(AliasesAtHead("aliases: [a, b"), IsEmpty());
}

TEST(Catalog, NamesAreMatchedWithoutRegardToCaseBlanksAndUnderscores) {
  EXPECT_EQ(Shipped().FindModel("meta-llama/Llama-2-7b-hf")->name, "llama-2-7b");
  EXPECT_EQ(Shipped().FindModel("Llama2-7B")->name, "llama-2-7b");
  EXPECT_EQ(Shipped().FindModel("megatron-22B")->name, "gpt3-22b");
  EXPECT_EQ(Shipped().FindModel("turing-530B")->name, "mt-nlg-530b");
  EXPECT_EQ(Shipped().FindModel("LLAMA3_70B")->name, "llama-3-70b");
  EXPECT_EQ(Shipped().FindModel("GPT 175B h=12288 L=96 heads=96")->name, "gpt3-175b");
  EXPECT_EQ(Shipped().FindAccelerator("A100")->name, "a100-sxm4-80gb");
  EXPECT_EQ(Shipped().FindAccelerator("h100")->name, "h100-sxm5-80gb");
  EXPECT_EQ(*Shipped().DefaultClusterName("H100"), "dgx-h100");
}

TEST(Catalog, UnknownNamesAreNotFoundWithTheNearest) {
  const absl::Status accelerator = Shipped().FindAccelerator("h100-sxm5-80g").status();
  EXPECT_EQ(accelerator.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(accelerator.message()), HasSubstr("h100-sxm5-80gb"));
  EXPECT_EQ(Shipped().FindAccelerator("A40").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Shipped().FindModel("").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Shipped().FindCluster("../hardware/a100").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Shipped().FindModel(std::string(100'000, 'x')).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Shipped().FindParameterSet("no-such-set").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Catalog::Open("/nonexistent").status().code(), absl::StatusCode::kNotFound);
}

TEST(Catalog, ABrokenFileIsNamedWithItsFields) {
  TemporaryFolder folder;
  folder.Write("hardware/broken.yaml", "name: broken\nhbm_bites: 3\nboost_clock_hz: -1\n");
  folder.Write("models/list.yaml", "- 1\n");
  const Catalog catalog = *Catalog::Open(folder.path());
  const absl::Status status = catalog.FindAccelerator("broken").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken.yaml: hbm_bites"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("boost_clock_hz: is -1"));
  EXPECT_EQ(catalog.FindModel("list").status().code(), absl::StatusCode::kInvalidArgument);
}

// Published parameter counts: model cards, configuration repositories and the papers that
// datasets/models/SOURCES.md lists; rounded ones as published. Within 0.5 %.
TEST(Models, HaveTheirPublishedParameterCounts) {
  const std::map<std::string, double> published = {
      {"gpt3-22b", 22000000000},
      {"gpt3-175b", 174600000000},
      {"mt-nlg-530b", 529600000000},
      {"gpt3-1t", 1008000000000},
      {"megatron-18.4b", 18400000000},
      {"megatron-39.1b", 39100000000},
      {"megatron-76.1b", 76100000000},
      {"megatron-145.6b", 145600000000},
      {"megatron-310.1b", 310100000000},
      {"gpt2", 124439808},
      {"gpt2-large", 774030080},
      {"bert-large", 335141888},
      {"llama-7b", 6738415616},
      {"llama-65b", 65285660672},
      {"llama-2-7b", 6738415616},
      {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},
      {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},
      {"llama-3.1-8b", 8030261248},
      {"llama-3.1-70b", 70553706496},
      {"llama-3.1-405b", 405853388800},
      {"llama-3.2-1b", 1235814400},
      {"llama-3.3-70b", 70553706496},
      {"decilm-7b", 7043551232},
      {"mistral-7b", 7241732096},
      {"mistral-nemo-12b", 12247782400},
      {"mixtral-8x7b", 46702792704},
      {"mixtral-8x22b", 140620634112},
      {"bloom-176b", 176247271424},
      {"bloom-7b1", 7069016064},
      {"opt-1.3b", 1315758080},
      {"opt-6.7b", 6658473984},
      {"opt-13b", 12853473280},
      {"opt-30b", 29974540288},
      {"opt-66b", 65700000000},
      {"opt-175b", 174600000000},
      {"gpt-j-6b", 6050882784},
      {"falcon-7b", 6921720704},
      {"falcon-40b", 41303293952},
      {"falcon-180b", 179522565120},
      {"qwen1.5-7b", 7721324544},
      {"qwen2-7b", 7615616512},
      {"qwen2-72b", 72706203648},
      {"qwen2.5-7b", 7615616512},
      {"qwen2.5-32b", 32763876352},
      {"qwen2.5-72b", 72706203648},
      {"qwen3-32b", 32762123264},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-235b-a22b", 235093634560},
      {"deepseek-v3", 671026419200},
      {"deepseek-v2-lite", 15706484224},
      {"kimi-k2", 1026408232448},
      {"gpt-oss-120b", 116829156672},
      {"gpt-oss-20b", 20914757184},
      {"gemma-3-27b", 27009002240},
      {"qwen3-next-80b-a3b", 79674391296},
      {"mpt-7b", 6649286656},
      {"mpt-30b", 29958537216},
      {"nemotron-4-340b", 340000000000},
      {"internlm-20b", 20090000000},
      {"yi-34b", 34388917248},
      {"phi-3-mini", 3821079552},
      {"nanotron-1.34g", 1340000000},
      {"nanotron-3.57g", 3570000000},
      {"nanotron-8.86g", 8860000000},
      {"nanotron-80g", 80000000000},
      {"nanotron-469g", 469000000000},
  };
  for (const auto& [name, count] : published) {
    const auto model = Shipped().FindModel(name);
    ASSERT_TRUE(model.ok()) << name;
    const double ours = static_cast<double>(workload::CountParameters(*model).Total());
    EXPECT_LT(std::abs(ours / count - 1), 0.005) << name << " has " << ours << ", not " << count;
  }
}

TEST(ParameterSets, ComeBackFromDiskWithTheSameVersion) {
  TemporaryFolder folder;
  parameters::AcceleratorParameters a;
  a.shared["gemm.16bit.peak_efficiency"] = {0.1 + 0.2, 1e-300};
  a.profiles["megatron-lm"]["step_seconds"] = {1.0 / 3, std::nullopt};
  a.domain.push_back({"gemm.16bit", "m", 1, 65536});
  const parameters::ParameterSet set({"test", {}, {"rows.csv: 3 rows"}}, {{"a100-sxm4-80gb", a}});
  const std::string path = folder.path() + "/set.yaml";
  ASSERT_TRUE(SaveParameterSet(set, path).ok());
  const auto back = Shipped().FindParameterSet(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->version(), set.version());
  EXPECT_EQ(back->accelerators(), set.accelerators());
  const std::string first = *ReadTextFile(path);
  ASSERT_TRUE(SaveParameterSet(*back, path).ok());
  EXPECT_EQ(*ReadTextFile(path), first);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(ParameterSets, ASetThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(SaveParameterSet(parameters::ParameterSet(), "/nonexistent/set.yaml").ok());
}

TEST(ParameterSets, UncalibratedIsBuiltIn) {
  EXPECT_EQ(Shipped().FindParameterSet("uncalibrated")->version(),
            parameters::ParameterSet().version());
  EXPECT_THAT(Shipped().ParameterSetNames(), Contains("uncalibrated"));
}

}  // namespace
}  // namespace sextant::catalog
