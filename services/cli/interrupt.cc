// SPDX-License-Identifier: Apache-2.0
#include "services/cli/interrupt.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "services/cli/exit_code.h"

namespace sextant::cli {
namespace {

// A handler may only call what POSIX lists as async-signal-safe: write and _exit are.
void ExitWith(const char* message, ExitCode code) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(static_cast<int>(code));
}

volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) { ExitWith("sextant: interrupted\n", ExitCode::kInterrupted); }

void OnFirstInterrupt(int) {
  if (interrupted != 0) OnInterrupt(0);
  interrupted = 1;
}

void OnDeadline(int) {
  ExitWith("sextant: error: not done within --timeout\nhint: give it more seconds\n",
           ExitCode::kUnavailable);
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

void ExitOnInterrupt() {
  Handle(SIGINT, OnInterrupt);
  Handle(SIGTERM, OnInterrupt);
}

void NoteInterrupts() {
  Handle(SIGINT, OnFirstInterrupt);
  Handle(SIGTERM, OnFirstInterrupt);
}

bool Interrupted() { return interrupted != 0; }

void ExitAfter(double seconds) {
  Handle(SIGALRM, OnDeadline);
  const double whole = std::floor(std::min(seconds, 1e9));
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  // A timer of zero would be off; the shortest is one microsecond.
  timer.it_value.tv_usec = static_cast<suseconds_t>(std::max(1.0, (seconds - whole) * 1e6));
  timer.it_value.tv_usec = std::min<suseconds_t>(timer.it_value.tv_usec, 999999);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace sextant::cli
