// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/sharing/max_min.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

struct Network {
  std::vector<double> capacity;
  std::vector<std::vector<int32_t>> paths;
  std::vector<double> caps;
};

std::vector<double> Solve(const Network& network) {
  std::vector<int32_t> offsets = {0};
  std::vector<int32_t> links;
  for (const std::vector<int32_t>& path : network.paths) {
    links.insert(links.end(), path.begin(), path.end());
    offsets.push_back(static_cast<int32_t>(links.size()));
  }
  MaxMinSolver solver;
  const absl::Span<const double> rates =
      solver.Solve({network.capacity, offsets, links, network.caps});
  return {rates.begin(), rates.end()};
}

Network RandomNetwork(std::mt19937& random) {
  std::uniform_int_distribution<int> links(1, 12);
  std::uniform_int_distribution<int> flows(1, 30);
  std::uniform_real_distribution<double> capacity(0.1, 10);
  Network network;
  network.capacity.resize(static_cast<size_t>(links(random)));
  for (double& c : network.capacity) c = capacity(random);
  network.paths.resize(static_cast<size_t>(flows(random)));
  for (std::vector<int32_t>& path : network.paths) {
    for (size_t l = 0; l < network.capacity.size(); ++l) {
      if (random() % 3 == 0) path.push_back(static_cast<int32_t>(l));
    }
    if (path.empty()) path.push_back(static_cast<int32_t>(random() % network.capacity.size()));
  }
  if (random() % 2 == 0) {
    for (size_t f = 0; f < network.paths.size(); ++f) {
      network.caps.push_back(random() % 2 == 0 ? capacity(random) / 4
                                               : std::numeric_limits<double>::infinity());
    }
  }
  return network;
}

std::vector<double> Loads(const Network& network, const std::vector<double>& rates) {
  std::vector<double> loads(network.capacity.size(), 0.0);
  for (size_t f = 0; f < rates.size(); ++f) {
    for (const int32_t link : network.paths[f]) loads[static_cast<size_t>(link)] += rates[f];
  }
  return loads;
}

TEST(MaxMin, TheTextbookExample) {
  // Link 0 (capacity 1) carries flows 0, 1, 2; link 1 (capacity 2) carries flows 2, 3. Link 0
  // fills at 1/3 each; flow 3 then takes what flow 2 leaves of link 1: 2 - 1/3.
  const Network network = {{1, 2}, {{0}, {0}, {0, 1}, {1}}, {}};
  EXPECT_THAT(Solve(network), ElementsAre(DoubleNear(1.0 / 3, 1e-12), DoubleNear(1.0 / 3, 1e-12),
                                          DoubleNear(1.0 / 3, 1e-12), DoubleNear(5.0 / 3, 1e-12)));
}

TEST(MaxMin, ACapLeavesItsShareToTheOthers) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Solve({{9}, {{0}, {0}, {0}}, {1, infinity, infinity}}),
              ElementsAre(DoubleNear(1, 1e-12), DoubleNear(4, 1e-12), DoubleNear(4, 1e-12)));
}

TEST(MaxMin, NoLinkIsOverfullAndEveryFlowHasABottleneck) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Network network = RandomNetwork(random);
    const std::vector<double> rates = Solve(network);
    const std::vector<double> loads = Loads(network, rates);
    for (size_t l = 0; l < loads.size(); ++l) {
      ASSERT_LE(loads[l], network.capacity[l] * (1 + 1e-9)) << "round " << round;
    }
    for (size_t f = 0; f < rates.size(); ++f) {
      ASSERT_GT(rates[f], 0);
      // Bertsekas and Gallager: a full link on which no flow is faster, or the flow's own cap.
      bool bound = !network.caps.empty() && rates[f] >= network.caps[f] * (1 - 1e-9);
      for (const int32_t link : network.paths[f]) {
        const size_t l = static_cast<size_t>(link);
        if (loads[l] < network.capacity[l] * (1 - 1e-9)) continue;
        double fastest = 0;
        for (size_t other = 0; other < rates.size(); ++other) {
          if (std::count(network.paths[other].begin(), network.paths[other].end(), link) > 0) {
            fastest = std::max(fastest, rates[other]);
          }
        }
        bound |= rates[f] >= fastest * (1 - 1e-9);
      }
      ASSERT_TRUE(bound) << "flow " << f << " in round " << round;
    }
  }
}

TEST(MaxMin, RatesScaleWithCapacities) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    Network network = RandomNetwork(random);
    const std::vector<double> before = Solve(network);
    for (double& c : network.capacity) c *= 8;
    for (double& c : network.caps) c *= 8;
    const std::vector<double> after = Solve(network);
    for (size_t f = 0; f < before.size(); ++f) EXPECT_DOUBLE_EQ(after[f], 8 * before[f]);
  }
}

TEST(MaxMin, TheOrderOfFlowsDoesNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Network network = RandomNetwork(random);
    const std::vector<double> before = Solve(network);
    std::reverse(network.paths.begin(), network.paths.end());
    std::reverse(network.caps.begin(), network.caps.end());
    std::vector<double> after = Solve(network);
    std::reverse(after.begin(), after.end());
    for (size_t f = 0; f < before.size(); ++f) EXPECT_NEAR(after[f], before[f], 1e-9 * before[f]);
  }
}

}  // namespace
}  // namespace sextant::network_sim
