// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_TESTS_SUPPORT_PROCESS_H_
#define SEXTANT_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace sextant::test_support {

// A server program of this build, as a process of its own. Killed when destroyed.
class ServerProcess {
 public:
  // Starts `arguments[0]` and reads its log until it is listening; `port()` is 0 where it ended
  // before.
  explicit ServerProcess(const std::vector<std::string>& arguments);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return port_; }
  int metrics_port() const { return metrics_port_; }
  std::string address() const;
  const std::string& log() const { return log_; }  // what was read so far

  // Sends `signal` and waits for the end. Exit code, or -signal where a signal ended it.
  int Stop(int signal);

 private:
  void ReadUntilListening();

  pid_t pid_ = -1;
  int output_ = -1;
  int port_ = 0;
  int metrics_port_ = 0;
  std::string log_;
};

// What `GET path` on 127.0.0.1:`port` answers, headers included; empty where nothing answers.
std::string HttpGet(int port, const std::string& path);

}  // namespace sextant::test_support

#endif  // SEXTANT_TESTS_SUPPORT_PROCESS_H_
