// SPDX-License-Identifier: Apache-2.0
#include "tests/support/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sextant::test_support {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string path = (fs::temp_directory_path() / "sextant_test_XXXXXX").string();
  if (mkdtemp(path.data()) != nullptr) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) fs::remove_all(path_);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& text) const {
  const fs::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string ReadWholeFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

StartedSextant::StartedSextant(
    const std::vector<std::string>& arguments, const std::string& input,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  const std::string program = SEXTANT_BINARY_DIR "/services/cli/sextant";
  const std::string in = folder_.Write("stdin", input);
  const std::string out = folder_.path() / "stdout";
  const std::string err = folder_.path() / "stderr";
  child_ = fork();
  if (child_ != 0) return;
  dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

StartedSextant::~StartedSextant() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

bool StartedSextant::SignalAfter(const std::string& text, int signal) const {
  while (ReadWholeFile(folder_.path() / "stderr").find(text) == std::string::npos) {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == child_) return false;
    usleep(1000);
  }
  return kill(child_, signal) == 0;
}

CommandOutcome StartedSextant::Wait() {
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          ReadWholeFile(folder_.path() / "stdout"), ReadWholeFile(folder_.path() / "stderr")};
}

CommandOutcome RunSextant(const std::vector<std::string>& arguments, const std::string& input,
                          const std::vector<std::pair<std::string, std::string>>& environment) {
  return StartedSextant(arguments, input, environment).Wait();
}

}  // namespace sextant::test_support
