// SPDX-License-Identifier: Apache-2.0
// docker-compose.yml is valid for docker-compose itself; running it needs a container engine.
#include <cstdlib>

#include "gtest/gtest.h"

namespace sextant {
namespace {

TEST(Compose, ConfigIsClean) {
  if (std::system("command -v docker-compose >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "docker-compose is not installed";
  }
  EXPECT_EQ(
      std::system("docker-compose -f " SEXTANT_SOURCE_DIR "/docker-compose.yml config >/dev/null"),
      0);
}

}  // namespace
}  // namespace sextant
