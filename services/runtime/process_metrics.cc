// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/process_metrics.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "prometheus/metric_family.h"

namespace sextant::runtime {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Family(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  prometheus::ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
  return family;
}

// Fields of /proc/self/stat behind the program's name, which may hold spaces: "state" is field 0,
// as man 5 proc has it at number 3.
std::vector<std::string> StatFields() {
  std::ifstream stream("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
}

class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families = {Family("process_start_time_seconds",
                                                 "Start of the process, seconds since 1970.",
                                                 MetricType::Gauge, start_seconds_)};
    const std::vector<std::string> fields = StatFields();
    const auto number = [&](size_t index) {
      double value = 0;
      if (index < fields.size()) (void)absl::SimpleAtod(fields[index], &value);
      return value;
    };
    const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    families.push_back(Family("process_cpu_seconds_total", "User and system CPU time spent.",
                              MetricType::Counter, (number(11) + number(12)) / ticks_per_second));
    families.push_back(Family("process_threads", "Threads.", MetricType::Gauge, number(17)));
    families.push_back(Family("process_resident_memory_bytes", "Resident memory.",
                              MetricType::Gauge, number(21) * page_bytes));
    std::error_code error;
    const std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
    if (!error) {
      families.push_back(
          Family("process_open_fds", "Open file descriptors.", MetricType::Gauge,
                 static_cast<double>(std::distance(begin(descriptors), end(descriptors)))));
    }
    return families;
  }

 private:
  const double start_seconds_ = UnixSeconds();
};

}  // namespace

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::shared_ptr<prometheus::Collectable> NewProcessMetrics() {
  return std::make_shared<ProcessMetrics>();
}

}  // namespace sextant::runtime
