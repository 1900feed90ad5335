// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_MODEL_COLUMNS_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_MODEL_COLUMNS_H_

#include "calibration/measurements/row_reader.h"
#include "common/workload/model_architecture.h"

namespace sextant::calibration {

// The model of a row: sizes from its own columns (hidden, layers, heads, kv_heads, ffn, gated_ffn,
// vocab, tied_embeddings, experts, topk), what they leave open from the catalog by its name.
// A violation of "model" where neither gives the shape.
workload::ModelArchitecture ReadModel(RowReader& row, Lookups& lookups, RowFacts* facts);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_MODEL_COLUMNS_H_
