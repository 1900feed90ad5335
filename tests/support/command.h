// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_TESTS_SUPPORT_COMMAND_H_
#define SEXTANT_TESTS_SUPPORT_COMMAND_H_

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sextant::test_support {

// A folder of its own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes `text` as the file `name` of the folder and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string ReadWholeFile(const std::filesystem::path& path);

struct CommandOutcome {
  int exit_code = -1;  // 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

// Runs the built `sextant` to its end with `input` on its stdin and `environment` on top of ours.
CommandOutcome RunSextant(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::vector<std::pair<std::string, std::string>>& environment = {});

// The built `sextant` while it runs. Killed when destroyed.
class StartedSextant {
 public:
  explicit StartedSextant(const std::vector<std::string>& arguments, const std::string& input = "",
                          const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~StartedSextant();
  StartedSextant(const StartedSextant&) = delete;
  StartedSextant& operator=(const StartedSextant&) = delete;

  // Sends `signal` once the command has written `text` to stderr; false where it ends before that.
  bool SignalAfter(const std::string& text, int signal) const;
  CommandOutcome Wait();

 private:
  TemporaryFolder folder_;
  pid_t child_ = -1;
};

}  // namespace sextant::test_support

#endif  // SEXTANT_TESTS_SUPPORT_COMMAND_H_
