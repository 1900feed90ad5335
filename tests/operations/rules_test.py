# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own checks of its configuration and rules, and that rules, metrics and runbook fit."""
import re
import subprocess
import unittest

import yaml

import suite
from metrics_test import golden

FOLDER = suite.SOURCE / "deploy/prometheus"
RULES = sorted((FOLDER / "rules").glob("*.yml"))


def rules():
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def metric_names(expression):
    """What an expression selects: words that are neither functions, keywords, labels nor strings."""
    text = re.sub(r'"[^"]*"', "", expression)
    text = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", text)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", text)
    words = re.findall(r"[a-zA-Z_][a-zA-Z0-9_:]*\b(?!\s*\()", text)
    return {word for word in words if word not in {"or", "and", "unless", "bool", "offset"}}


def known_metrics():
    names = {"up"} | {rule["record"] for rule in rules() if "record" in rule}
    for name, (kind, _, _) in golden().items():
        names.add(name)
        if kind == "histogram":
            names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    return names


class Rules(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run([suite.need("promtool"), *map(str, arguments)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_accepts_the_configuration(self):
        self.promtool("check", "config", FOLDER / "prometheus.yml")

    def test_promtool_accepts_the_rules(self):
        self.promtool("check", "rules", *RULES)

    def test_rules_do_what_their_tests_say(self):
        self.promtool("test", "rules", FOLDER / "rules_test.yml")

    def test_rules_use_only_what_is_exported_or_recorded(self):
        for rule in rules():
            unknown = metric_names(rule["expr"]) - known_metrics()
            self.assertFalse(unknown, rule)

    def test_every_alert_is_tested_and_has_its_page_in_the_runbook(self):
        runbook = (suite.SOURCE / "docs/runbook.md").read_text()
        sections = {title.lower() for title in re.findall(r"^## (\w+)$", runbook, re.M)}
        tests = (FOLDER / "rules_test.yml").read_text()
        alerts = [rule for rule in rules() if "alert" in rule]
        self.assertTrue(alerts)
        for rule in alerts:
            path, anchor = rule["annotations"]["runbook"].split("#")
            self.assertEqual(path, "docs/runbook.md")
            self.assertEqual(anchor, rule["alert"].lower())
            self.assertIn(anchor, sections)
            self.assertIn(rule["alert"], tests)
            self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
        self.assertEqual(sections, {rule["alert"].lower() for rule in alerts},
                         "a page of the runbook without an alert")


if __name__ == "__main__":
    unittest.main(verbosity=2)
