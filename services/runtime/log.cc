// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/log.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace sextant::runtime {
namespace {

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += absl::StrFormat("\\u%04x", byte);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string& ServiceName() {
  static auto* name = new std::string("sextant");
  return *name;
}

spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("sextant", std::make_shared<spdlog::sinks::stdout_sink_mt>());
    // The payload is the rest of the JSON object; spdlog adds the time in UTC.
    made->set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v}", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

absl::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "info";
}

}  // namespace

void SetLogService(absl::string_view service) { ServiceName() = std::string(service); }

void Log(Severity severity, absl::string_view event, std::initializer_list<LogField> fields) {
  std::string line =
      absl::StrCat("\"severity\":", Quoted(SeverityName(severity)),
                   ",\"service\":", Quoted(ServiceName()), ",\"event\":", Quoted(event));
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&line, ",", Quoted(name), ":", Quoted(value));
  }
  Logger().log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sextant::runtime
