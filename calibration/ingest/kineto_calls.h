// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_KINETO_CALLS_H_
#define SEXTANT_CALIBRATION_INGEST_KINETO_CALLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/kineto.h"

namespace sextant::ingest {

// Whether a host operator is a matrix product whose shapes can be read.
bool IsMatrixProduct(absl::string_view operator_name);

// Ties matrix products of the host ("Input Dims") to the kernels that they launched, by the
// "External id" that both carry. Events may come in any order. Thread-compatible.
class MatrixProducts {
 public:
  static constexpr size_t kCallLimit = 1'000'000;

  void AddOperator(absl::string_view operator_name, const JsonValue& args);
  void AddKernel(int64_t external_id, double seconds);
  std::vector<KinetoGemm> Summary() const;

 private:
  // m, n, k, batch, data type, layout
  using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t, std::string, std::string>;

  absl::flat_hash_map<int64_t, size_t> shape_of_call_;
  std::vector<Shape> shapes_;
  std::map<Shape, size_t> index_;
  absl::flat_hash_map<int64_t, double> seconds_of_call_;
};

// Collectives by size, from the arguments of NCCL kernels. Thread-compatible.
class CollectiveCalls {
 public:
  static constexpr size_t kCallLimit = 1'000'000;

  // Takes a kernel that says which collective it ran; one that cannot be a measurement is refused.
  // A kernel without those arguments is passed over.
  void AddKernel(const JsonValue& args, double seconds, Refusals* refusals);
  std::vector<KinetoCollective> Summary() const;

 private:
  // collective, bytes, group size
  using Key = std::tuple<std::string, int64_t, int64_t>;

  std::map<Key, std::vector<double>> seconds_;
  size_t count_ = 0;
};

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_KINETO_CALLS_H_
