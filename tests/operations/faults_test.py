# SPDX-License-Identifier: Apache-2.0
"""What breaks around the suite must not break it: hung services, full disks, hostile connections.
Each test starts servers of its own, and sends bounded traffic to the loopback alone."""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import yaml

import suite

JOB = suite.SOURCE / "datasets/scenarios/llama-3.1-70b-64xh100.yaml"
OTHER_JOB = suite.SOURCE / "datasets/scenarios/gpt3-175b-64xa100.yaml"


def ask(*arguments):
    """(exit code, seconds, stderr) of the command."""
    start = time.monotonic()
    done = subprocess.run([str(suite.SEXTANT), *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, time.monotonic() - start, done.stderr


class HungService(unittest.TestCase):
    def test_a_stopped_service_costs_its_callers_their_timeout_and_no_more(self):
        with suite.Suite() as servers:
            orchestrator = servers["orchestrator"].address
            self.assertEqual(ask("predict", JOB, "--server", orchestrator)[0], 0)
            servers["network_sim"].process.send_signal(signal.SIGSTOP)
            code, seconds, text = ask("predict", OTHER_JOB, "--server", orchestrator, "--timeout", 2)
            self.assertEqual(code, 5, text)
            self.assertLess(seconds, 10)
            # What is known already needs nobody.
            self.assertEqual(ask("predict", JOB, "--server", orchestrator)[0], 0)
            servers["network_sim"].process.send_signal(signal.SIGCONT)
            self.assertTrue(suite.within(
                20, lambda: ask("predict", OTHER_JOB, "--server", orchestrator)[0] == 0))

    def test_a_killed_service_is_named_and_back_at_once_when_it_is_back(self):
        with suite.Suite() as servers:
            orchestrator = servers["orchestrator"].address
            servers["network_sim"].stop(signal.SIGKILL)
            code, _, text = ask("predict", JOB, "--server", orchestrator, "--timeout", 5)
            self.assertEqual(code, 5)
            self.assertIn("network_sim", text)
            servers.start("network_sim")
            self.assertTrue(suite.within(
                20, lambda: ask("predict", JOB, "--server", orchestrator)[0] == 0))


class FullDisk(unittest.TestCase):
    def test_a_set_that_cannot_be_stored_is_refused_and_the_old_one_served(self):
        with suite.Suite() as servers:
            server = servers["operator_cost"]
            before = version(server)
            # What a full disk does to writers, for this process alone.
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
            code, _, text = ask("parameters", "push", another_set(servers.folder), server.address)
            self.assertNotEqual(code, 0)
            self.assertIsNone(server.process.poll(), "the server must not end:\n" + text)
            self.assertEqual(version(server), before)
            self.assertEqual(ask("predict", JOB, "--server", servers["orchestrator"].address)[0], 0)
            # Nothing half-written is taken up.
            server.stop(signal.SIGKILL)
            self.assertEqual(version(servers.start("operator_cost")), before)

    def test_a_folder_that_cannot_be_made_is_said_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(RuntimeError) as refused:
            suite.Server("operator_cost", ["--listen=127.0.0.1:0", "--metrics_listen=127.0.0.1:0",
                                           "--state_directory=/proc/sextant"],
                         f"{folder}/log")
        self.assertIn("state_directory", str(refused.exception))
        self.assertIn("cannot start", str(refused.exception))


class HostileConnections(unittest.TestCase):
    FLOOD = 500

    def test_idle_and_endless_connections_do_not_keep_others_out(self):
        with suite.Suite() as servers, contextlib.ExitStack() as sockets:
            server = servers["orchestrator"]

            def connect(start):
                link = sockets.enter_context(socket.create_connection(("127.0.0.1", server.port), 5))
                link.sendall(start)
                return link
            for _ in range(self.FLOOD):
                connect(b"")
            # An HTTP/2 preface that comes byte by byte.
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            slow = [connect(preface[:1]) for _ in range(100)]
            for byte in range(1, 6):
                for link in slow:
                    with contextlib.suppress(OSError):
                        link.sendall(preface[byte:byte + 1])
                code, seconds, text = ask("predict", JOB, "--server", server.address, "--timeout", 10)
                self.assertEqual(code, 0, text)
            held = descriptors(server)
            self.assertGreater(held, self.FLOOD)
            sockets.close()
            self.assertTrue(suite.within(20, lambda: descriptors(server) < held - self.FLOOD))
            self.assertEqual(server.stop(), 0)

    def test_what_is_no_http2_is_dropped(self):
        with suite.Suite() as servers:
            server = servers["orchestrator"]
            for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096, b"\xff" * 65536,
                         b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 4096):
                for _ in range(50):
                    with socket.create_connection(("127.0.0.1", server.port), 5) as link:
                        with contextlib.suppress(OSError):
                            link.sendall(text)
            self.assertEqual(ask("predict", JOB, "--server", server.address)[0], 0)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def version(server):
    return re.search(r'sextant_parameter_set_info\{.*version="(\w+)"', server.metrics())[1]


def another_set(folder):
    """A valid set that no server has: the default one with one number a little changed."""
    content = yaml.safe_load((suite.SOURCE / "datasets/parameters/default.yaml").read_text())
    content.pop("version", None)
    shared = next(iter(content["accelerators"].values()))["shared"]
    key = next(key for key in shared if key.endswith("peak_efficiency"))
    shared[key]["value"] *= 0.99
    path = folder / "another.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


if __name__ == "__main__":
    unittest.main(verbosity=2)
