// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_TESTS_REPORTED_REPORTED_JOBS_H_
#define SEXTANT_TESTS_REPORTED_REPORTED_JOBS_H_

#include <memory>
#include <string>
#include <vector>

#include "common/catalog/catalog.h"
#include "common/catalog/job_reader.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "gtest/gtest.h"

// Jobs as people write them, read with the shipped catalog, priced without fitted values.
namespace sextant::reported {

inline const catalog::Catalog& Shipped() {
  static const catalog::Catalog shipped = *catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  return shipped;
}

inline absl::StatusOr<workload::Job> TryRead(const std::string& yaml,
                                             const std::vector<std::string>& overrides = {}) {
  return catalog::ReadJob(yaml, "job.yaml", overrides, Shipped());
}

inline workload::Job Read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<workload::Job> job = TryRead(yaml, overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *std::move(job) : workload::Job{};
}

class Ports {
 public:
  absl::StatusOr<orchestrator::Prediction> TryPredict(const workload::Job& job) {
    return orchestrator::Predict(job, operators, network);
  }
  orchestrator::Prediction Predict(const workload::Job& job) {
    absl::StatusOr<orchestrator::Prediction> prediction = TryPredict(job);
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    return prediction.ok() ? *std::move(prediction) : orchestrator::Prediction{};
  }
  orchestrator::PortAnswers Ask(const orchestrator::Graph& graph, const workload::Job& job) {
    absl::StatusOr<orchestrator::PortAnswers> answers =
        orchestrator::AskPorts(graph, job, operators, network);
    EXPECT_TRUE(answers.ok()) << answers.status();
    return answers.ok() ? *std::move(answers) : orchestrator::PortAnswers{};
  }

  std::shared_ptr<const parameters::ParameterSet> set =
      std::make_shared<const parameters::ParameterSet>();
  orchestrator::LocalOperatorCost operators{set};
  orchestrator::LocalNetworkTime network{set};
};

inline double PartOf(const orchestrator::Prediction& prediction, const std::string& name) {
  for (const orchestrator::TimePart& part : prediction.breakdown) {
    if (part.name == name) return part.seconds;
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

inline double BytesOf(const orchestrator::Prediction& prediction, const std::string& name) {
  for (const orchestrator::MemoryPart& part : prediction.memory.breakdown) {
    if (part.name == name) return static_cast<double>(part.bytes);
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

}  // namespace sextant::reported

#endif  // SEXTANT_TESTS_REPORTED_REPORTED_JOBS_H_
