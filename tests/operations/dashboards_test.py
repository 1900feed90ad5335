# SPDX-License-Identifier: Apache-2.0
"""Every query of every panel returns data from a real Prometheus that scrapes the real servers."""
import concurrent.futures
import json
import math
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

import suite
from rules_test import RULES, known_metrics, metric_names

DASHBOARDS = sorted((suite.SOURCE / "deploy/grafana/dashboards").glob("*.json"))


def boards():
    return {path.stem: json.loads(path.read_text()) for path in DASHBOARDS}


def queries():
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield f"{name}: {panel['title']}", target["expr"].replace("$__rate_interval", "30s")


class Prometheus:
    """Debian's Prometheus with the shipped jobs and rules, once a second instead of 15 s."""

    def __init__(self, servers, folder):
        config = yaml.safe_load((suite.SOURCE / "deploy/prometheus/prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(path) for path in RULES]
        for job in config["scrape_configs"]:
            port = servers[job["job_name"]].metrics_port
            job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        port = suite.free_port()
        self.url = f"http://127.0.0.1:{port}"
        with open(folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                [suite.need("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
                 f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"],
                stdout=log, stderr=log)

    def query(self, expression):
        """Values now; None while Prometheus does not answer. An expression it refuses is an error."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise ValueError(f"{expression}: {error.read().decode()}") from error
        except urllib.error.URLError:
            return None
        return [float(series["value"][1]) for series in result]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


class Dashboards(unittest.TestCase):
    def test_there_is_one_for_the_suite_for_accuracy_and_for_each_service(self):
        self.assertEqual(set(boards()), {"suite", "accuracy", *suite.SERVICES})

    def test_panels_say_what_to_do_have_a_unit_and_do_not_overlap(self):
        uids = [board["uid"] for board in boards().values()]
        self.assertEqual(len(uids), len(set(uids)))
        for name, board in boards().items():
            taken = set()
            self.assertNotIn("id", board, "ids belong to one Grafana")
            for panel in board["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken, f"{name}: {panel['title']}")
                self.assertLessEqual(place["x"] + place["w"], 24)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertTrue(panel["description"], panel["title"])
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")

    def test_queries_use_only_what_is_exported_or_recorded(self):
        for where, expression in queries():
            self.assertFalse(metric_names(expression) - known_metrics(), f"{where}: {expression}")

    def test_every_query_returns_data_under_load(self):
        with suite.Suite() as servers, tempfile.TemporaryDirectory() as folder, \
                concurrent.futures.ThreadPoolExecutor(1) as pool:
            prometheus = Prometheus(servers, Path(folder))
            try:
                pending = dict.fromkeys(queries())  # in order
                self.assertGreater(len(pending), 60)

                def answered():
                    load = pool.submit(suite.exercise, servers)
                    suite.ingest(servers)
                    for where, expression in list(pending):
                        values = prometheus.query(expression)
                        # A percentile of a method that is not called now is no number.
                        if values and any(map(math.isfinite, values)):
                            del pending[where, expression]
                    load.result()
                    return not pending
                self.assertTrue(suite.within(60, answered),
                                "no data:\n" + "\n".join(map(": ".join, pending)))
                self.assertEqual(prometheus.query('count(up == 1)'), [4.0])
            finally:
                prometheus.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
