// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/trace.h"

#include "services/cli/render/json_writer.h"

namespace sextant::cli {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

}  // namespace

std::string ChromeTraceJson(const orchestrator::Trace& trace) {
  JsonWriter json;
  json.BeginObject();
  json.Field("displayTimeUnit", "ms");
  json.Key("traceEvents");
  json.BeginArray();
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    json.BeginLineObject();
    json.Field("ph", "M");
    json.Field("name", "thread_name");
    json.Field("pid", 1);
    json.Field("tid", static_cast<int>(t) + 1);
    json.Key("args");
    json.BeginObject();
    json.Field("name", trace.tracks[t]);
    json.EndObject();
    json.EndObject();
  }
  for (const orchestrator::TraceEvent& event : trace.events) {
    json.BeginLineObject();
    json.Field("ph", "X");
    json.Field("name", event.name);
    json.Field("pid", 1);
    json.Field("tid", event.track + 1);
    json.Field("ts", event.start_seconds * kMicrosecondsPerSecond);
    json.Field("dur", event.duration_seconds * kMicrosecondsPerSecond);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Finish();
}

}  // namespace sextant::cli
