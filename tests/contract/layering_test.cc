// SPDX-License-Identifier: Apache-2.0
// The walls of ARCHITECTURE.md, held by reading every #include of the tree against layers.txt.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SEXTANT_SOURCE_DIR;
const std::vector<std::string> kCodeRooms = {"common", "calibration", "services"};

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> SourcesUnder(const std::string& room) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / room)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cc") files.push_back(fs::relative(entry.path(), kRoot));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> AllSources() {
  std::vector<fs::path> files;
  for (const std::string& room : kCodeRooms) {
    const std::vector<fs::path> some = SourcesUnder(room);
    files.insert(files.end(), some.begin(), some.end());
  }
  return files;
}

struct Includes {
  std::vector<std::string> quoted;
  std::vector<std::string> angled;
};

Includes IncludesOf(const fs::path& file) {
  static const std::regex kInclude("#include ([<\"])([^>\"]+)[>\"]");
  Includes includes;
  const std::string text = ReadFile(kRoot / file);
  for (std::sregex_iterator it(text.begin(), text.end(), kInclude), end; it != end; ++it) {
    ((*it)[1] == "<" ? includes.angled : includes.quoted).push_back((*it)[2]);
  }
  return includes;
}

bool Under(const std::string& path, const std::string& prefix) {
  return path == prefix || absl::StartsWith(path, prefix + "/");
}

struct Layer {
  std::string room;
  std::vector<std::string> allowed;
};

std::vector<Layer> ReadLayers() {
  std::vector<Layer> layers;
  for (absl::string_view line :
       absl::StrSplit(ReadFile(kRoot / "tests/contract/layers.txt"), '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    Layer layer{parts[0], absl::StrSplit(absl::StrReplaceAll(parts[1], {{"|", " "}}), ' ',
                                         absl::SkipEmpty())};
    layer.allowed.push_back(layer.room);
    layers.push_back(layer);
  }
  return layers;
}

const Layer* LayerOf(const std::vector<Layer>& layers, const std::string& file) {
  const Layer* best = nullptr;
  for (const Layer& layer : layers) {
    if (Under(file, layer.room) && (best == nullptr || layer.room.size() > best->room.size())) {
      best = &layer;
    }
  }
  return best;
}

// A test beside its code may use its support and the test libraries on top of its room's layer.
bool AllowedInTest(const std::string& include) {
  for (const char* prefix : {"gtest", "gmock", "tests/support", "benchmark"}) {
    if (Under(include, prefix)) return true;
  }
  return false;
}

TEST(Layering, EveryIncludeIsAllowedByTheTable) {
  const std::vector<Layer> layers = ReadLayers();
  std::vector<std::string> broken;
  for (const fs::path& file : AllSources()) {
    const std::string name = file.generic_string();
    const Layer* layer = LayerOf(layers, name);
    ASSERT_NE(layer, nullptr) << name << " lies in no room of layers.txt";
    const bool is_test = absl::EndsWith(name, "_test.cc") || absl::EndsWith(name, "_benchmark.cc");
    const Includes includes = IncludesOf(file);
    std::vector<std::string> all = includes.quoted;
    for (const std::string& angled : includes.angled) {
      // <vector> and <sys/stat.h> are the platform; <grpcpp/x.h> is a third party.
      if (angled.find('/') != std::string::npos && !Under(angled, "sys")) all.push_back(angled);
    }
    for (const std::string& include : all) {
      if (is_test && AllowedInTest(include)) continue;
      const bool allowed =
          std::any_of(layer->allowed.begin(), layer->allowed.end(),
                      [&](const std::string& prefix) { return Under(include, prefix); });
      if (!allowed) broken.push_back(absl::StrCat(name, " includes ", include));
    }
  }
  EXPECT_TRUE(broken.empty()) << absl::StrJoin(broken, "\n");
}

TEST(Layering, TheModelLibraryReadsNoClockAndNoEnvironment) {
  std::vector<std::string> broken;
  for (const fs::path& file : SourcesUnder("common")) {
    const std::string name = file.generic_string();
    if (Under(name, "common/catalog") || absl::EndsWith(name, "_test.cc") ||
        absl::EndsWith(name, "_benchmark.cc")) {
      continue;  // the catalog reads files and the folder's name from the environment
    }
    const std::string text = ReadFile(kRoot / file);
    for (const char* word :
         {"<chrono>", "absl/time/clock.h", "std::getenv", "<ctime>", "::now()"}) {
      if (absl::StrContains(text, word)) broken.push_back(absl::StrCat(name, " uses ", word));
    }
  }
  EXPECT_TRUE(broken.empty()) << absl::StrJoin(broken, "\n");
}

TEST(Headers, GuardsSpellThePath) {
  std::vector<std::string> broken;
  for (const fs::path& file : AllSources()) {
    if (file.extension() != ".h") continue;
    std::string guard = absl::StrCat("SEXTANT_", file.generic_string(), "_");
    std::transform(guard.begin(), guard.end(), guard.begin(), [](unsigned char c) {
      return std::isalnum(c) ? static_cast<char>(std::toupper(c)) : '_';
    });
    if (!absl::StrContains(ReadFile(kRoot / file), absl::StrCat("#ifndef ", guard, "\n"))) {
      broken.push_back(absl::StrCat(file.generic_string(), " lacks the guard ", guard));
    }
  }
  EXPECT_TRUE(broken.empty()) << absl::StrJoin(broken, "\n");
}

TEST(Headers, LicenceIsTheFirstLine) {
  for (const fs::path& file : AllSources()) {
    EXPECT_TRUE(
        absl::StartsWith(ReadFile(kRoot / file), "// SPDX-License-Identifier: Apache-2.0\n"))
        << file;
  }
}

TEST(Strings, OneStringViewType) {
  for (const fs::path& file : AllSources()) {
    EXPECT_FALSE(absl::StrContains(ReadFile(kRoot / file), "std::string_view"))
        << file << " uses std::string_view; absl::string_view is the one type here";
  }
}

TEST(Build, EverySourceIsListedInItsRoomsCMakeLists) {
  for (const fs::path& file : AllSources()) {
    if (file.extension() != ".cc") continue;
    bool listed = false;
    for (fs::path folder = file.parent_path(); !folder.empty() && !listed;
         folder = folder.parent_path()) {
      const fs::path lists = kRoot / folder / "CMakeLists.txt";
      if (!fs::exists(lists)) continue;
      const std::string relative = fs::relative(file, folder).generic_string();
      listed = absl::StrContains(ReadFile(lists), relative);
    }
    EXPECT_TRUE(listed) << file << " is in no CMakeLists.txt";
  }
}

TEST(Rooms, EveryRoomOfTheModelExplainsItself) {
  for (const auto& entry : fs::directory_iterator(kRoot / "common")) {
    if (!entry.is_directory() || entry.path().filename() == "cmake") continue;
    EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path();
  }
}

}  // namespace
}  // namespace sextant
