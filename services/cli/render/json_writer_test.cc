// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/json_writer.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

template <typename T>
std::string Written(const T& value) {
  JsonWriter json;
  json.Value(value);
  return json.Finish();
}

TEST(JsonWriter, KeepsTheOrderOfKeysAndNests) {
  JsonWriter json;
  json.BeginObject();
  json.Field("zebra", 1);
  json.Key("ape");
  json.BeginArray();
  json.Value(true);
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.EndObject();
  EXPECT_EQ(json.Finish(), "{\n  \"zebra\": 1,\n  \"ape\": [\n    true,\n    {}\n  ]\n}\n");
}

TEST(JsonWriter, RowsOfLongListsTakeOneLineEach) {
  JsonWriter json;
  json.BeginArray();
  for (int i = 0; i < 2; ++i) {
    json.BeginLineObject();
    json.Field("id", i);
    json.Field("warnings", std::vector<std::string>{"a", "b"});
    json.EndObject();
  }
  json.Value(3);
  json.EndArray();
  EXPECT_EQ(json.Finish(),
            "[\n  {\"id\": 0, \"warnings\": [\"a\", \"b\"]},\n"
            "  {\"id\": 1, \"warnings\": [\"a\", \"b\"]},\n  3\n]\n");
}

TEST(JsonWriter, SixtyFourBitIntegersAreExactNumbers) {
  EXPECT_EQ(Written(std::numeric_limits<int64_t>::max()), "9223372036854775807\n");
  EXPECT_EQ(Written(std::numeric_limits<int64_t>::min()), "-9223372036854775808\n");
}

TEST(JsonWriter, DoublesReadBackToTheSameBits) {
  for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 123456789.125}) {
    EXPECT_EQ(nlohmann::json::parse(Written(value)).get<double>(), value) << value;
  }
  EXPECT_EQ(Written(0.1), "0.1\n");
}

TEST(JsonWriter, WhatJsonCannotSayIsNull) {
  EXPECT_EQ(Written(std::nan("")), "null\n");
  EXPECT_EQ(Written(std::numeric_limits<double>::infinity()), "null\n");
  EXPECT_EQ(Written(std::optional<double>()), "null\n");
  EXPECT_EQ(Written(std::optional<int64_t>(7)), "7\n");
}

TEST(JsonWriter, AnyBytesGiveValidJson) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  EXPECT_TRUE(nlohmann::json::accept(Written(every_byte)));
  // A surrogate, an overlong slash and a cut sequence are not UTF-8; the euro sign is.
  EXPECT_TRUE(nlohmann::json::accept(Written(std::string("\xED\xA0\x80 \xC0\xAF \xE2\x82"))));
  EXPECT_EQ(Written(std::string("\xE2\x82\xAC \"q\"\n")), "\"\xE2\x82\xAC \\\"q\\\"\\n\"\n");
}

}  // namespace
}  // namespace sextant::cli
