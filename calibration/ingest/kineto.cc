// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/kineto.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/kineto_calls.h"
#include "calibration/ingest/nsys.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

constexpr size_t kNameLimit = 200'000;
constexpr size_t kNameLength = 2000;
constexpr size_t kCopyLimit = 4'000'000;  // events that are remembered to find copies
constexpr double kMicrosecond = 1e-6;

struct Event {
  std::string phase;
  std::string category;
  std::string name;
  std::optional<double> start_us;
  std::optional<double> duration_us;
  absl::string_view args;  // JSON text
};

std::optional<int64_t> WholeNumber(const JsonValue& value, absl::string_view name) {
  const auto number = value.Number(name);
  if (!number || *number < 0 || *number > 1e15) return std::nullopt;
  return static_cast<int64_t>(*number);
}

class Reader {
 public:
  explicit Reader(absl::string_view text) : json_(text) {}

  KinetoReading Read() {
    if (json_.AtArray()) {
      ReadEvents();
    } else if (json_.EnterObject()) {
      std::string key;
      while (json_.NextMember(&key)) ReadMember(key);
    }
    Finish();
    return std::move(reading_);
  }

 private:
  void ReadMember(const std::string& key) {
    if (key == "traceEvents" && json_.AtArray()) {
      ReadEvents();
    } else if (key == "deviceProperties") {
      const JsonValue devices = json_.Read();
      if (!devices.items.empty()) {
        reading_.origin.device = std::string(devices.items[0].Text("name").substr(0, 100));
      }
    } else if (key == "distributedInfo") {
      const JsonValue info = json_.Read();
      reading_.rank = WholeNumber(info, "rank");
      reading_.world_size = WholeNumber(info, "world_size");
      const absl::string_view version = info.Text("nccl_version");
      if (!version.empty()) nccl_version_ = absl::StrCat("NCCL ", version.substr(0, 20));
    } else if (key == "baseTimeNanoseconds") {
      base_seconds_ = json_.Read().AsNumber().value_or(0) * 1e-9;
    } else if (key == "pytorch_version" || key == "torch_version") {
      reading_.origin.software = absl::StrCat("PyTorch ", json_.Read().text.substr(0, 40));
    } else {
      json_.Skip();
    }
  }

  void ReadEvents() {
    json_.EnterArray();
    while (json_.NextElement()) {
      if (!json_.AtObject()) {
        json_.Skip();
        continue;
      }
      if (ReadEvent()) TakeEvent();
    }
  }

  // False where the event is cut off.
  bool ReadEvent() {
    event_ = Event();
    std::string key;
    json_.EnterObject();
    while (json_.NextMember(&key)) {
      if (key == "ph") {
        event_.phase = json_.Read().text;
      } else if (key == "cat") {
        event_.category = absl::AsciiStrToLower(json_.Read().text);
      } else if (key == "name") {
        event_.name = json_.Read().text;
      } else if (key == "ts") {
        event_.start_us = json_.Read().AsNumber();
      } else if (key == "dur") {
        event_.duration_us = json_.Read().AsNumber();
      } else if (key == "args") {
        event_.args = json_.Skip();
      } else {
        json_.Skip();
      }
    }
    return json_.ok();
  }

  void TakeEvent() {
    if (event_.phase != "X") return;
    // "Kernel" and "Memcpy" before PyTorch 1.12.
    if (event_.category == "kernel") {
      TakeKernel();
    } else if (event_.category == "gpu_memcpy" || event_.category == "gpu_memset" ||
               event_.category == "memcpy" || event_.category == "memset") {
      if (!HasDuration()) return;
      ++reading_.copy_count;
      reading_.copy_seconds += *event_.duration_us * kMicrosecond;
    } else if (event_.category == "cpu_op") {
      if (IsMatrixProduct(event_.name)) products_.AddOperator(event_.name, Args());
    } else if (event_.category == "cuda_profiler_range") {
      reading_.refusals.Add("is a range of the profiler, not a kernel", 0, event_.name);
    } else if (absl::EndsWith(event_.category, "user_annotation")) {
      const std::string name = absl::AsciiStrToLower(absl::string_view(event_.name).substr(0, 200));
      if (absl::StrContains(name, "nccl") || absl::StrContains(name, "rccl") ||
          absl::StrContains(name, "kernel")) {
        reading_.refusals.Add("is an annotation that bears the name of a kernel", 0, event_.name);
      }
    }
  }

  bool HasDuration() {
    if (event_.duration_us && *event_.duration_us >= 0 && *event_.duration_us < 1e15) return true;
    reading_.refusals.Add("event has no duration", 0, event_.name);
    return false;
  }

  JsonValue Args() const { return JsonReader(event_.args).Read(); }

  void TakeKernel() {
    if (!HasDuration()) return;
    const double seconds = *event_.duration_us * kMicrosecond;
    const JsonValue args = event_.args.empty() ? JsonValue() : Args();
    if (IsCopy(args)) {
      reading_.refusals.Add("is a copy of an event before it", 0, event_.name);
      return;
    }
    ++reading_.kernel_count;
    reading_.kernel_seconds += seconds;
    if (event_.start_us && (!first_us_ || *event_.start_us < *first_us_)) {
      first_us_ = event_.start_us;
    }
    AddTotal(seconds);
    if (IsCommunicationKernel(event_.name)) {
      ++reading_.communication_kernel_count;
      reading_.communication_kernel_seconds += seconds;
      collectives_.AddKernel(args, seconds, &reading_.refusals);
    } else if (const auto id = args.Number("External id"); id && *id > 0 && *id < 1e15) {
      products_.AddKernel(static_cast<int64_t>(*id), seconds);
    }
  }

  // The same launch at the same time on the same stream: a trace that was merged with itself.
  bool IsCopy(const JsonValue& args) {
    const auto correlation = args.Number("correlation");
    if (!correlation || !event_.start_us || !(*event_.duration_us > 0)) return false;
    if (events_.size() >= kCopyLimit) return false;
    return !events_
                .insert(absl::HashOf(*correlation, *event_.start_us, *event_.duration_us,
                                     args.Number("stream").value_or(-1),
                                     args.Number("device").value_or(-1), event_.name))
                .second;
  }

  void AddTotal(double seconds) {
    const absl::string_view name = absl::string_view(event_.name).substr(0, kNameLength);
    auto known = index_.find(name);
    if (known == index_.end()) {
      if (reading_.kernels.size() >= kNameLimit) {
        reading_.refusals.Add("name stands behind the first 200000", 0, name);
        return;
      }
      known = index_.emplace(name, reading_.kernels.size()).first;
      reading_.kernels.push_back({std::string(name), 0, 0});
    }
    KernelTotal& total = reading_.kernels[known->second];
    ++total.count;
    total.total_seconds += seconds;
  }

  void Finish() {
    reading_.truncated = json_.truncated();
    reading_.error = json_.error();
    if (!json_.ok()) {
      reading_.refusals.Add(absl::StrCat("the rest of the trace cannot be read: ", json_.error()));
    }
    std::stable_sort(reading_.kernels.begin(), reading_.kernels.end(),
                     [](const KernelTotal& a, const KernelTotal& b) {
                       return a.total_seconds > b.total_seconds;
                     });
    reading_.gemms = products_.Summary();
    reading_.collectives = collectives_.Summary();
    // Newer traces count from a base, older ones from 1970.
    if (first_us_) {
      reading_.origin.time = TimeStampOf(base_seconds_ + *first_us_ * kMicrosecond);
    }
    if (reading_.origin.software.empty()) reading_.origin.software = nccl_version_;
  }

  JsonReader json_;
  KinetoReading reading_;
  Event event_;
  std::optional<double> first_us_;
  double base_seconds_ = 0;
  std::string nccl_version_;
  absl::flat_hash_map<std::string, size_t> index_;
  absl::flat_hash_set<size_t> events_;
  MatrixProducts products_;
  CollectiveCalls collectives_;
};

}  // namespace

KinetoReading ReadKineto(absl::string_view text) { return Reader(text).Read(); }

}  // namespace sextant::ingest
