// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_ADMISSION_H_
#define SEXTANT_SERVICES_RUNTIME_ADMISSION_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"

namespace sextant::runtime {

// Most calls from outside that one process works on at a time. Fewer than gRPC's threads, so that
// whoever is too many gets an answer that says when to come back. Default 192. Thread-safe.
void SetMaxCallsInProgress(int count);

// A call's place among them, kept until it ends. Calls between services of one process have a place
// already: their caller's.
class Admission {
 public:
  explicit Admission(const grpc::ServerContext& context);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // RESOURCE_EXHAUSTED, with the time to wait (RetryLater), where there was no place.
  absl::Status status() const;

 private:
  bool counted_ = false;
  bool admitted_ = true;
};

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_ADMISSION_H_
