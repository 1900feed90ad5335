// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_BASE_STATUS_MACROS_H_
#define SEXTANT_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define SEXTANT_CONCAT_INNER_(a, b) a##b
#define SEXTANT_CONCAT_(a, b) SEXTANT_CONCAT_INNER_(a, b)

// Leaves the function with the status of `expression` unless it is ok.
#define SEXTANT_RETURN_IF_ERROR(expression)          \
  do {                                               \
    absl::Status sextant_status = (expression);      \
    if (!sextant_status.ok()) return sextant_status; \
  } while (false)

// SEXTANT_ASSIGN_OR_RETURN(auto value, MaybeValue()) declares or assigns on success, leaves the
// function with the status otherwise.
#define SEXTANT_ASSIGN_OR_RETURN(lhs, expression) \
  SEXTANT_ASSIGN_OR_RETURN_IMPL_(SEXTANT_CONCAT_(sextant_statusor_, __LINE__), lhs, expression)
#define SEXTANT_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expression) \
  auto statusor = (expression);                                   \
  if (!statusor.ok()) return statusor.status();                   \
  lhs = std::move(statusor).value()

#endif  // SEXTANT_COMMON_BASE_STATUS_MACROS_H_
