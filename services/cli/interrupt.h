// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_INTERRUPT_H_
#define SEXTANT_SERVICES_CLI_INTERRUPT_H_

namespace sextant::cli {

// From now on SIGINT and SIGTERM end the process with ExitCode::kInterrupted and a line on stderr.
// Only for verbs that answer and end; `serve` drains instead.
void ExitOnInterrupt();

// From now on the first SIGINT or SIGTERM only makes Interrupted() true, so that what is done can
// still be answered; the second ends the process as above.
void NoteInterrupts();
bool Interrupted();

// The process ends with ExitCode::kUnavailable unless it is done in `seconds` (> 0).
void ExitAfter(double seconds);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_INTERRUPT_H_
