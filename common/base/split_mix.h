// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_BASE_SPLIT_MIX_H_
#define SEXTANT_COMMON_BASE_SPLIT_MIX_H_

#include <cstdint>

namespace sextant::base {

// One step of SplitMix64: well mixed bits of any 64, the same on every machine. Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014.
inline uint64_t SplitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace sextant::base

#endif  // SEXTANT_COMMON_BASE_SPLIT_MIX_H_
