// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/request_id.h"

#include <set>

#include "gtest/gtest.h"

namespace sextant::runtime {
namespace {

TEST(RequestId, NewOnesDifferAndAreWellFormed) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewRequestId());
  EXPECT_EQ(ids.size(), 1000);
  for (const std::string& id : ids) {
    EXPECT_EQ(id.size(), 16);
    EXPECT_TRUE(IsRequestId(id)) << id;
  }
}

TEST(RequestId, WhatCouldWriteIntoALogIsNone) {
  EXPECT_TRUE(IsRequestId("job-42.step_7"));
  EXPECT_TRUE(IsRequestId(std::string(64, 'a')));
  for (const std::string& text :
       {std::string(), std::string(65, 'a'), std::string("a\nb"), std::string("a b"),
        std::string("\"},{"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(IsRequestId(text)) << text;
  }
}

}  // namespace
}  // namespace sextant::runtime
