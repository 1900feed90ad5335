# SPDX-License-Identifier: Apache-2.0
"""What the four servers export is what deploy/prometheus/metrics.txt says, and nothing else is."""
import collections
import re
import unittest

import suite

GOLDEN = suite.SOURCE / "deploy/prometheus/metrics.txt"


def golden():
    """Name -> (type, labels, services)."""
    metrics = {}
    for line in GOLDEN.read_text().splitlines():
        if line and not line.startswith("#"):
            name, kind, labels, services = line.split()
            metrics[name] = (kind, frozenset() if labels == "-" else frozenset(labels.split(",")),
                             suite.SERVICES if services == "all" else tuple(services.split(",")))
    return metrics


def exported(text):
    """Name -> (type, set of label sets) of a /metrics page; `le` belongs to the type. Without what
    prometheus-cpp says of itself (exposer_...)."""
    kinds, labels = {}, collections.defaultdict(set)
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        elif line and not line.startswith("#"):
            name, block = re.match(r"([a-z_0-9]+)(?:\{(.*)\})? ", line).groups()
            base = re.sub("_(bucket|sum|count)$", "", name)
            family = base if kinds.get(base) == "histogram" else name
            labels[family].add(frozenset(re.findall(r'([a-z_]+)="', block or "")) - {"le"})
    return {name: (kind, labels[name]) for name, kind in kinds.items()
            if labels[name] and not name.startswith("exposer_")}


class Metrics(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with suite.Suite() as servers:
            suite.exercise(servers)
            suite.ingest(servers)
            cls.pages = {name: servers[name].metrics() for name in suite.SERVICES}

    def test_every_server_exports_exactly_what_the_golden_list_says(self):
        for service, page in self.pages.items():
            expected = {name: (kind, {labels}) for name, (kind, labels, services)
                        in golden().items() if service in services}
            self.assertEqual(exported(page), expected, service)

    def test_names_carry_prefix_and_base_unit(self):
        unit = r"_(seconds|bytes|ratio|total|seconds_total|info|timestamp_seconds)$"
        countless = {"process_open_fds", "process_threads", "sextant_calibration_drift_p_value",
                     "sextant_calibration_drifted", "sextant_calibration_push_target_current",
                     "sextant_calibration_unused_measurements"}
        for name, (kind, labels, _) in golden().items():
            self.assertRegex(name, r"^(sextant|grpc_server|process)_[a-z_]+$")
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
            if name not in countless:
                self.assertRegex(name, unit)
            self.assertFalse(labels & {"model", "job", "instance", "request_id", "service"}, name)

    def test_a_prediction_is_counted_by_kind_and_a_known_answer_as_a_hit(self):
        page = self.pages["orchestrator"]
        counts = {kind: sum(float(value) for value in re.findall(
            r'sextant_orchestrator_predictions_total\{kind="%s",result="(?:inside_domain|'
            r'extrapolated)"\} (\S+)' % kind, page))
            for kind in ("training", "inference", "serving")}
        self.assertEqual(counts, {"training": 1, "inference": 1, "serving": 1})
        self.assertIn('sextant_orchestrator_cache_requests_total{result="hit"}', page)

    def test_a_refused_request_counts_under_its_status(self):
        self.assertRegex(self.pages["operator_cost"],
                         r'grpc_server_call_duration_seconds_count\{grpc_method="[^"]*/Rollback'
                         r'ParameterSet",grpc_status="FAILED_PRECONDITION"\} 1')

    def test_memory_is_read_from_the_system(self):
        for service, page in self.pages.items():
            resident = float(re.search(r"^process_resident_memory_bytes (\S+)", page, re.M)[1])
            self.assertTrue(1e6 < resident < 1e9, f"{service}: {resident}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
