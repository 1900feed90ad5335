# SPDX-License-Identifier: Apache-2.0
"""The manifests fit each other, the servers and the protos. Rendered by kubectl or kustomize where
one is installed (Debian 12 has neither); else the base is read as it lies."""
import re
import shutil
import subprocess
import unittest

import yaml

import deployed
import suite

ROOT = suite.SOURCE / "deploy/kubernetes"
OVERLAYS = ("dev", "prod")


def read(folder):
    """All resources of a kustomization, without its patches."""
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = folder / name
        if path.is_dir():
            yield from read(path)
        else:
            yield from yaml.safe_load_all(path.read_text())


def render(overlay):
    for program in (["kubectl", "kustomize"], ["kustomize", "build"]):
        if shutil.which(program[0]):
            done = subprocess.run([*program, str(ROOT / "overlays" / overlay)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            return list(yaml.safe_load_all(done.stdout))
    return None


def matches(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def proto_services():
    for path in (suite.SOURCE / "protos/sextant").glob("*/v1/*_service.proto"):
        text = path.read_text()
        package = re.search(r"^package (\S+);", text, re.M)[1]
        yield from (f"{package}.{name}" for name in re.findall(r"^service (\w+)", text, re.M))


class Manifests(unittest.TestCase):
    def every(self, kind):
        """(where, resource) of that kind in the base and in every overlay that could be rendered."""
        for where, resources in self.sets.items():
            for resource in resources:
                if resource["kind"] == kind:
                    yield f"{where} {resource['metadata']['name']}", resource, resources

    @classmethod
    def setUpClass(cls):
        cls.sets = {"base": list(read(ROOT / "base"))}
        for overlay in OVERLAYS:
            rendered = render(overlay)
            if rendered is not None:
                cls.sets[overlay] = rendered
        print("checked:", ", ".join(cls.sets), flush=True)

    def deployments(self, resources):
        return [r for r in resources if r["kind"] == "Deployment"]

    def test_every_overlay_names_what_exists(self):
        for overlay in OVERLAYS:
            folder = ROOT / "overlays" / overlay
            names = {(r["kind"], r["metadata"]["name"]) for r in read(folder)}
            for patch in yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]:
                target = patch["target"]
                self.assertTrue([n for n in names if n[0] == target["kind"]
                                 and target.get("name", n[1]) == n[1]], target)

    def test_each_service_has_all_that_it_needs(self):
        for where, resources in self.sets.items():
            for kind in ("Deployment", "Service", "PodDisruptionBudget", "ServiceMonitor"):
                found = {r["metadata"]["labels"]["app.kubernetes.io/component"]
                         for r in resources if r["kind"] == kind}
                self.assertEqual(found, set(suite.SERVICES), f"{where}: {kind}")

    def test_selectors_find_exactly_one_deployment(self):
        def selector(resource):
            spec = resource["spec"]
            if resource["kind"] == "Service":
                return spec["selector"]
            if resource["kind"] == "NetworkPolicy":
                return spec["podSelector"]["matchLabels"]
            return spec["selector"]["matchLabels"]
        for kind in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"):
            for where, resource, resources in self.every(kind):
                found = [d for d in self.deployments(resources) if matches(
                    selector(resource), d["spec"]["template"]["metadata"]["labels"])]
                expected = 4 if resource["metadata"]["name"] == "default-deny" else 1
                self.assertEqual(len(found), expected, f"{where} {kind}")
        for where, monitor, resources in self.every("ServiceMonitor"):
            found = [r for r in resources if r["kind"] == "Service" and matches(
                selector(monitor), r["metadata"]["labels"])]
            self.assertEqual(len(found), 1, where)
            ports = {port["name"] for port in found[0]["spec"]["ports"]}
            self.assertLessEqual({e["port"] for e in monitor["spec"]["endpoints"]}, ports)
            self.assertIn(monitor["spec"]["jobLabel"], found[0]["metadata"]["labels"])

    def test_services_are_headless_and_their_ports_are_those_of_the_container(self):
        for where, service, resources in self.every("Service"):
            self.assertEqual(service["spec"]["clusterIP"], "None", where)
            pod = next(d for d in self.deployments(resources) if matches(
                service["spec"]["selector"], d["spec"]["template"]["metadata"]["labels"]))
            ports = {p["name"]: p["containerPort"] for p in
                     pod["spec"]["template"]["spec"]["containers"][0]["ports"]}
            # Without a cluster address nothing translates ports.
            self.assertEqual({p["targetPort"]: p["port"] for p in service["spec"]["ports"]}, ports)

    def test_autoscalers_scale_what_exists_and_replicas_are_theirs(self):
        for where, scaler, resources in self.every("HorizontalPodAutoscaler"):
            target = scaler["spec"]["scaleTargetRef"]
            found = [d for d in self.deployments(resources) if d["metadata"]["name"] == target["name"]]
            self.assertEqual(len(found), 1, where)
            self.assertNotIn("replicas", found[0]["spec"], where)
            self.assertLessEqual(scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"])

    def test_containers(self):
        known_services = set(proto_services())
        for where, deployment, resources in self.every("Deployment"):
            pod = deployment["spec"]["template"]["spec"]
            container, = pod["containers"]
            component = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
            with self.subTest(where):
                image = container["image"].rsplit("/", 1)[1].split(":")[0]
                self.assertEqual(image, component)
                self.assertIn(image, deployed.docker_targets())
                ports = {p["name"]: p["containerPort"] for p in container["ports"]}
                for flag, port in (("listen", "grpc"), ("metrics_listen", "metrics")):
                    self.assertIn(f"--{flag}=0.0.0.0:{ports[port]}", container["args"])
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    self.assertEqual(container[probe]["grpc"]["port"], ports["grpc"])
                    service = container[probe]["grpc"].get("service")
                    if probe == "livenessProbe":
                        self.assertIsNone(service, "alive, though perhaps not ready")
                    else:
                        self.assertIn(service, known_services)
                        self.assertIn(f".{component}.", service)
                resources_of = container["resources"]
                self.assertEqual(resources_of["limits"]["memory"], resources_of["requests"]["memory"])
                self.assertIn("cpu", resources_of["requests"])
                security = container["securityContext"]
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                self.assertTrue(security["readOnlyRootFilesystem"])
                self.assertFalse(security["allowPrivilegeEscalation"])
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                drain = next(int(a.split("=")[1]) for a in container["args"]
                             if a.startswith("--drain_seconds="))
                self.assertGreater(pod["terminationGracePeriodSeconds"], drain)
                volumes = {v["name"]: v for v in pod.get("volumes", [])}
                self.assertEqual(set(volumes), {m["name"] for m in container.get("volumeMounts", [])})
                claims = {r["metadata"]["name"] for r in resources
                          if r["kind"] == "PersistentVolumeClaim"}
                for volume in volumes.values():
                    if "persistentVolumeClaim" in volume:
                        self.assertIn(volume["persistentVolumeClaim"]["claimName"], claims)

    def test_every_address_is_a_service_that_both_network_policies_let_through(self):
        def policy(resources, labels):
            return next(r["spec"] for r in resources if r["kind"] == "NetworkPolicy"
                        and r["metadata"]["name"] != "default-deny"
                        and matches(r["spec"]["podSelector"]["matchLabels"], labels))

        def lets(rules, side, labels, port):
            return any(matches(peer["podSelector"]["matchLabels"], labels)
                       and {"port": port, "protocol": "TCP"} in rule["ports"]
                       for rule in rules for peer in rule[side] if set(peer) == {"podSelector"})
        arrows = 0
        for where, deployment, resources in self.every("Deployment"):
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            for argument in deployment["spec"]["template"]["spec"]["containers"][0]["args"]:
                peer = re.match(r"--\w+=(?:dns:)?([a-z-]+):(\d+)$", argument)
                if not peer:
                    continue
                arrows += 1
                service, = [r for r in resources if r["kind"] == "Service"
                            and r["metadata"]["name"] == peer[1]]
                port = int(peer[2])
                self.assertIn(port, [p["port"] for p in service["spec"]["ports"]])
                target = service["spec"]["selector"]
                self.assertTrue(lets(policy(resources, labels)["egress"], "to", target, port), argument)
                self.assertTrue(lets(policy(resources, target)["ingress"], "from", labels, port),
                                f"{where}: {argument}")
        self.assertEqual(arrows, 4 * len(self.sets))

    def test_what_no_policy_allows_is_denied(self):
        for where in self.sets:
            deny = [r for w, r, _ in self.every("NetworkPolicy") if w == f"{where} default-deny"]
            self.assertEqual(deny[0]["spec"]["policyTypes"], ["Ingress", "Egress"])

    def test_servers_start_as_they_are_configured(self):
        configured = set()
        for _, deployment, _ in self.every("Deployment"):
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            configured.add((deployment["metadata"]["labels"]["app.kubernetes.io/component"],
                            tuple(container["args"]),
                            tuple((item["name"], item["value"]) for item in container["env"])))
        for name, arguments, environment in configured:
            deployed.start_as_configured(name, arguments, dict(environment))


if __name__ == "__main__":
    unittest.main(verbosity=2)
