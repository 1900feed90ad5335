# SPDX-License-Identifier: Apache-2.0
"""docker-compose.yml is clean for docker-compose, and what it names exists. A container engine is
not needed: servers are started as they are configured, outside of containers."""
import re
import subprocess
import unittest

import yaml

import deployed
import suite

FILE = suite.SOURCE / "docker-compose.yml"


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compose = yaml.safe_load(FILE.read_text())
        cls.services = cls.compose["services"]

    def test_docker_compose_accepts_every_profile(self):
        for profiles in ([], ["observability"], ["tools"], ["observability", "tools"]):
            done = subprocess.run([suite.need("docker-compose"), "-f", str(FILE),
                                   *(word for p in profiles for word in ("--profile", p)),
                                   "config", "--services"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in suite.SERVICES:
                self.assertIn(name, done.stdout.split())

    def test_every_service_has_a_health_check_and_waits_for_healthy_ones(self):
        for name, service in self.services.items():
            if service.get("profiles") != ["tools"]:
                self.assertIn("test", service["healthcheck"], name)
            for other, condition in service.get("depends_on", {}).items():
                self.assertEqual(condition, {"condition": "service_healthy"})
                self.assertIn("healthcheck", self.services[other])

    def test_our_containers_are_read_only_without_rights(self):
        for name in (*suite.SERVICES, "sextant"):
            service = self.services[name]
            self.assertTrue(service["read_only"])
            self.assertEqual(service["cap_drop"], ["ALL"])
            self.assertNotIn(service["user"].split(":")[0], ("0", "root"))

    def test_what_is_mounted_exists_and_what_is_published_is_on_the_loopback(self):
        for name, service in self.services.items():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((suite.SOURCE / source).exists(), volume)
                else:
                    self.assertIn(source, self.compose["volumes"])
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")

    def test_every_image_is_a_target_of_the_dockerfile(self):
        targets = deployed.docker_targets()
        for name, service in self.services.items():
            if "build" in service:
                self.assertIn(service["build"]["target"], targets, name)

    def test_prometheus_scrapes_every_service_where_it_answers(self):
        config = yaml.safe_load((suite.SOURCE / "deploy/prometheus/prometheus.yml").read_text())
        scraped = {job["job_name"]: job["static_configs"][0]["targets"]
                   for job in config["scrape_configs"]}
        self.assertEqual(scraped, {name: [f"{name}:9090"] for name in suite.SERVICES})
        for name in suite.SERVICES:
            self.assertEqual(self.services[name]["environment"]["SEXTANT_METRICS_LISTEN"],
                             "0.0.0.0:9090")

    def test_addresses_between_services_are_where_they_listen(self):
        listens = {name: re.search(r":(\d+)", self.services[name]["command"][0])[1]
                   for name in suite.SERVICES}
        for name in suite.SERVICES:
            service = self.services[name]
            self.assertEqual(service["healthcheck"]["test"][-1], f"localhost:{listens[name]}")
            for argument in service["command"]:
                if peer := re.match(r"--\w+=(operator_cost|network_sim):(\d+)$", argument):
                    self.assertEqual(peer[2], listens[peer[1]], argument)

    def test_servers_start_as_they_are_configured(self):
        for name in suite.SERVICES:
            service = self.services[name]
            deployed.start_as_configured(name, service["command"], service["environment"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
