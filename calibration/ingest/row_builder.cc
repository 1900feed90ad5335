// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/row_builder.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "calibration/ingest/device_names.h"

namespace sextant::ingest {

void RowFingerprint::Add(absl::string_view text) {
  constexpr uint64_t kPrime = 1099511628211u;
  for (const char c : text) state_ = (state_ ^ static_cast<unsigned char>(c)) * kPrime;
  state_ = (state_ ^ 0xffu) * kPrime;  // ends each text
}

void RowFingerprint::Add(double value) { Add(absl::StrFormat("%.17g", value)); }

std::string RowFingerprint::Hex() const { return absl::StrFormat("%016x", state_); }

std::string NumberText(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

RowBuilder::RowBuilder(RowKind kind, const IngestContext& context) : context_(context) {
  row_.kind = kind;
}

void RowBuilder::Set(absl::string_view column, absl::string_view value) {
  if (!value.empty()) row_.columns[std::string(column)] = std::string(value);
}

void RowBuilder::Set(absl::string_view column, double value) { Set(column, NumberText(value)); }

void RowBuilder::Set(absl::string_view column, std::optional<double> value) {
  if (value) Set(column, *value);
}

void RowBuilder::SetOrigin(const Origin& origin) {
  Set("suite", context_.suite);
  Set("role", context_.role);
  Set("source", context_.source);
  const hardware::Cluster* cluster = context_.job ? &context_.job->cluster : nullptr;
  const std::string by_file = AcceleratorOfDevice(origin.device);
  std::string by_context = context_.accelerator;
  if (by_context.empty() && cluster != nullptr) by_context = cluster->accelerator.name;
  if (!by_file.empty() && !by_context.empty() && by_file != by_context) {
    // A capped or otherwise special part carries the plain name in its driver.
    if (context_.accelerator.empty()) {
      AddGap(absl::StrCat("accelerator is \"", origin.device, "\" in the file but ", by_context,
                          " in the job"));
    } else {
      Note(absl::StrCat("device=", origin.device));
    }
  }
  Set("accelerator", by_context.empty() ? by_file : by_context);
  if (!Has("accelerator")) {
    AddGap(origin.device.empty() ? std::string("accelerator is not stated: give --accelerator")
                                 : absl::StrCat("accelerator \"", origin.device,
                                                "\" is not known: give --accelerator"));
  }
  Set("cluster", context_.cluster.empty() && cluster != nullptr ? cluster->name : context_.cluster);
  if (!origin.time.empty()) Note(absl::StrCat("measured=", origin.time));
}

void RowBuilder::Merge(absl::string_view column, std::optional<int64_t> of_file,
                       std::optional<int64_t> of_context) {
  Merge(column, of_file ? absl::StrCat(*of_file) : std::string(),
        of_context ? absl::StrCat(*of_context) : std::string());
}

void RowBuilder::Merge(absl::string_view column, absl::string_view of_file,
                       absl::string_view of_context) {
  if (!of_file.empty() && !of_context.empty() && of_file != of_context) {
    AddGap(
        absl::StrCat(column, " is ", of_file, " in the file but ", of_context, " in the context"));
  }
  Set(column, of_file.empty() ? of_context : of_file);
}

void RowBuilder::Require(absl::string_view column, absl::string_view remedy) {
  if (!Has(column)) AddGap(absl::StrCat(column, " is not stated: give ", remedy));
}

void RowBuilder::Note(absl::string_view note) {
  absl::StrAppend(&notes_, notes_.empty() ? "" : "; ", note);
}

bool RowBuilder::Has(absl::string_view column) const {
  return row_.columns.find(std::string(column)) != row_.columns.end();
}

std::optional<MeasuredRow> RowBuilder::Finish(const std::string& id, Refusals* refusals) {
  if (!gaps_.empty()) {
    refusals->Add(absl::StrCat("is not a complete row: ", absl::StrJoin(gaps_, "; ")));
    return std::nullopt;
  }
  Set("id", id);
  Set(row_.kind == RowKind::kInference ? "metric_notes" : "notes", notes_);
  return std::move(row_);
}

}  // namespace sextant::ingest
