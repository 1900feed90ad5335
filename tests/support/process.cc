// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace sextant::test_support {
namespace {

int NumberAfter(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + key.size());
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
  ReadUntilListening();
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) Stop(SIGKILL);
  if (output_ >= 0) close(output_);
}

std::string ServerProcess::address() const { return absl::StrCat("127.0.0.1:", port_); }

void ServerProcess::ReadUntilListening() {
  char buffer[4096];
  while (port_ == 0) {
    const ssize_t count = read(output_, buffer, sizeof buffer);
    if (count <= 0) return;
    log_.append(buffer, static_cast<size_t>(count));
    const size_t event = log_.find("\"event\":\"listening\"");
    if (event == std::string::npos || log_.find('\n', event) == std::string::npos) continue;
    port_ = NumberAfter(log_, "\"grpc_port\":\"");
    metrics_port_ = NumberAfter(log_, "\"metrics_port\":\"");
  }
}

int ServerProcess::Stop(int signal) {
  kill(pid_, signal);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string HttpGet(int port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
    if (write(connection, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t count; (count = read(connection, buffer, sizeof buffer)) > 0;) {
        answer.append(buffer, static_cast<size_t>(count));
      }
    }
  }
  close(connection);
  return answer;
}

}  // namespace sextant::test_support
