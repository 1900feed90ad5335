// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/table.h"

#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({{"name"}, {"time", Align::kRight}});
  table.AddRow({"a", "1.5 s"});
  table.AddRow({"longer", ""});
  EXPECT_EQ(table.ToText(),
            "name     time\n"
            "------  -----\n"
            "a       1.5 s\n"
            "longer\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{""}, {""}});
  table.AddRow({"\xC3\xA9", "x"});  // one letter, two bytes
  table.AddRow({"ab", "y"});
  EXPECT_EQ(table.ToText(), "\xC3\xA9   x\nab  y\n");
}

TEST(Table, AFileCannotDriveTheTerminal) {
  Table table({{""}});
  table.AddRow({"\033[2J\nx"});
  EXPECT_EQ(table.ToText(), "?[2J?x\n");
}

TEST(CsvField, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField("a,\"b\""), "\"a,\"\"b\"\"\"");
}

}  // namespace
}  // namespace sextant::cli
