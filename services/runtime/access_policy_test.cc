// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/access_policy.h"

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::runtime {
namespace {

constexpr char kPredict[] = "/sextant.orchestrator.v1.OrchestratorService/Predict";
constexpr char kPush[] = "/sextant.operator_cost.v1.OperatorCostService/PushParameterSet";
constexpr char kGet[] = "/sextant.operator_cost.v1.OperatorCostService/GetParameterSet";

// printf %s open-sesame | sha256sum
constexpr char kTokenSha256[] = "d7ecdf25eaf3deba0f2628771dbdd22d4138ab6cf38f91ed02a2ca0dec7c8ab7";

AccessPolicy Parsed(const std::string& text) {
  auto policy = AccessPolicy::Parse(text);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

TEST(AccessPolicyTest, GrantsWhatACallerMayAndNothingElse) {
  const AccessPolicy policy = Parsed(absl::StrCat(R"(
callers:
  - {name: scheduler, certificate: scheduler.example.org, may: [predict, read]}
  - {name: calibration, token_sha256: )",
                                                  kTokenSha256, R"(, may: [publish]}
)"));
  EXPECT_TRUE(policy.Authorize(kPredict, {"other", "scheduler.example.org"}, "").ok());
  EXPECT_TRUE(policy.Authorize(kGet, {"scheduler.example.org"}, "").ok());
  EXPECT_TRUE(policy.Authorize(kPush, {}, "open-sesame").ok());

  const absl::Status denied = policy.Authorize(kPush, {"scheduler.example.org"}, "");
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_THAT(std::string(denied.message()), testing::HasSubstr("scheduler may not call"));
  EXPECT_TRUE(absl::IsPermissionDenied(policy.Authorize(kPredict, {}, "open-sesame")));
  // Both proofs add up.
  EXPECT_TRUE(policy.Authorize(kPush, {"scheduler.example.org"}, "open-sesame").ok());
}

TEST(AccessPolicyTest, RefusesStrangers) {
  const AccessPolicy policy = Parsed(
      absl::StrCat("callers: [{name: a, token_sha256: ", kTokenSha256, ", may: [predict]}]"));
  for (const char* token : {"", "open-sesam", "Open-Sesame", kTokenSha256}) {
    EXPECT_TRUE(absl::IsUnauthenticated(policy.Authorize(kPredict, {"a"}, token))) << token;
  }
  EXPECT_TRUE(policy.Authorize("/grpc.health.v1.Health/Check", {}, "").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Parsed("{}").Authorize(kPredict, {}, "")));
}

TEST(AccessPolicyTest, AnyoneMayDoWhatTheFileSays) {
  const AccessPolicy policy = Parsed("anyone: [read]");
  EXPECT_TRUE(policy.Authorize(kGet, {}, "").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(policy.Authorize(kPredict, {}, "")));
}

TEST(AccessPolicyTest, NamesEveryViolation) {
  const auto policy = AccessPolicy::Parse(R"(
caller: []
anyone: [push]
callers:
  - {certificate: a, may: [predict]}
  - {name: b, may: predict}
  - {name: c, token_sha256: my-secret-token, may: [fly]}
)");
  std::vector<std::string> fields;
  for (const auto& violation : base::ViolationsOf(policy.status())) {
    fields.push_back(violation.field);
    EXPECT_THAT(violation.description, testing::Not(testing::HasSubstr("my-secret-token")));
  }
  EXPECT_THAT(fields, testing::UnorderedElementsAre(
                          "caller", "anyone[0]", "callers[0].name", "callers[1].may", "callers[1]",
                          "callers[2].token_sha256", "callers[2].may[0]"));
  EXPECT_FALSE(AccessPolicy::Parse("[").ok());
  EXPECT_FALSE(AccessPolicy::Parse("just text").ok());
}

TEST(AccessPolicyTest, UnclassifiedMethodsAreRefusedToAll) {
  EXPECT_FALSE(PermissionOf("/sextant.orchestrator.v1.OrchestratorService/Reboot").has_value());
  EXPECT_FALSE(PermissionOf("/other.Service/GetThing").has_value());
  const AccessPolicy policy =
      Parsed(absl::StrCat("anyone: [read, predict, measure, calibrate, publish]\n"
                          "callers: [{name: a, token_sha256: ",
                          kTokenSha256, ", may: [read, predict, measure, calibrate, publish]}]"));
  EXPECT_TRUE(absl::IsPermissionDenied(
      policy.Authorize("/sextant.orchestrator.v1.OrchestratorService/Reboot", {}, "open-sesame")));
}

}  // namespace
}  // namespace sextant::runtime
