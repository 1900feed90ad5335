// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/collectives.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/number.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using collectives::ConcurrentCollectives;
using collectives::ConcurrentTimes;
using collectives::PlacedCollective;

std::optional<double> Slowdown(const ConcurrentTimes::Times& times) {
  if (!(times.alone_seconds > 0)) return std::nullopt;
  return times.seconds / times.alone_seconds;
}

// What every form shows of one collective.
template <typename Visit>
void ForEach(const ConcurrentCollectives& question, const CollectivesAnswer& answer, Visit visit) {
  for (size_t i = 0; i < question.collectives.size(); ++i) {
    visit(question.collectives[i], answer.times.collectives[i]);
  }
}

}  // namespace

std::string CollectivesJson(const ConcurrentCollectives& question,
                            const CollectivesAnswer& answer) {
  JsonWriter json;
  json.BeginObject();
  json.Field("cluster", question.cluster.name);
  json.Field("gpu_count", question.gpu_count);
  json.FieldOrNull("profile", question.profile);
  json.Field("parameter_set", answer.parameter_set);
  json.FieldOrNull("limiting_link", answer.times.limiting_link);
  json.Key("collectives");
  json.BeginArray();
  ForEach(question, answer, [&](const PlacedCollective& placed, const ConcurrentTimes::Times& t) {
    json.BeginObject();
    json.Field("name", placed.name);
    json.Field("kind", collectives::CollectiveKindName(placed.kind));
    json.Field("bytes", placed.bytes);
    json.Field("group_count", placed.groups.size());
    json.Field("group_size", placed.groups.front().size());
    json.Field("start_seconds", placed.start_seconds);
    json.Field("seconds", t.seconds);
    json.Field("alone_seconds", t.alone_seconds);
    json.Field("slowdown", Slowdown(t));
    json.EndObject();
  });
  json.EndArray();
  json.EndObject();
  return json.Finish();
}

std::string CollectivesCsv(const ConcurrentCollectives& question, const CollectivesAnswer& answer) {
  std::string csv =
      "name,kind,bytes,group_count,group_size,start_seconds,seconds,alone_seconds,slowdown\n";
  ForEach(question, answer, [&](const PlacedCollective& placed, const ConcurrentTimes::Times& t) {
    absl::StrAppend(&csv, CsvField(placed.name), ",", collectives::CollectiveKindName(placed.kind),
                    ",", ShortestNumber(placed.bytes), ",", placed.groups.size(), ",",
                    placed.groups.front().size(), ",", ShortestNumber(placed.start_seconds), ",");
    const std::optional<double> slowdown = Slowdown(t);
    absl::StrAppend(&csv, ShortestNumber(t.seconds), ",", ShortestNumber(t.alone_seconds), ",",
                    slowdown.has_value() ? ShortestNumber(*slowdown) : "", "\n");
  });
  return csv;
}

std::string CollectivesText(const ConcurrentCollectives& question,
                            const CollectivesAnswer& answer) {
  Table table({{"collective"},
               {"kind"},
               {"groups", Align::kRight},
               {"start", Align::kRight},
               {"time", Align::kRight},
               {"alone", Align::kRight},
               {"slow-down", Align::kRight}});
  ForEach(question, answer, [&](const PlacedCollective& placed, const ConcurrentTimes::Times& t) {
    const std::optional<double> slowdown = Slowdown(t);
    table.AddRow({placed.name, std::string(collectives::CollectiveKindName(placed.kind)),
                  absl::StrCat(placed.groups.size(), " x ", placed.groups.front().size()),
                  FormatSeconds(placed.start_seconds), FormatSeconds(t.seconds),
                  FormatSeconds(t.alone_seconds),
                  slowdown.has_value() ? absl::StrFormat("%.2fx", *slowdown) : "-"});
  });
  return absl::StrCat(table.ToText(), "\nLimiting link ", answer.times.limiting_link,
                      "; parameter set ", answer.parameter_set, "\n");
}

}  // namespace sextant::cli
