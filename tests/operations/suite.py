# SPDX-License-Identifier: Apache-2.0
"""Real servers of this build for tests: started on free ports, stopped when the test ends."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SEXTANT_BINARY_DIR", SOURCE / "build/release"))
SEXTANT = BUILD / "services/cli/sextant"
SERVICES = ("operator_cost", "network_sim", "orchestrator", "calibration")


def need(program):
    """Path of `program`; ends the test where it is not installed."""
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not installed; deploy/packages.txt names what tests need")
    return path


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def within(seconds, holds, pause=0.1):
    """Whether `holds()` becomes true in time; its last value."""
    end = time.monotonic() + seconds
    while True:
        value = holds()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


def _without_size_signal():
    # Tests make a full disk of RLIMIT_FSIZE; a real one sends no signal.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


class Server:
    """One server program. `log` is the file that holds its output."""

    def __init__(self, name, arguments, log, environment=None):
        self.name, self.log = name, pathlib.Path(log)
        command = [BUILD / f"services/{name}/{name}_server", *arguments]
        # A clean environment: a flag's twin must not change what is tested.
        own = {k: v for k, v in os.environ.items() if not k.startswith("SEXTANT_")}
        plaintext = {"SEXTANT_INSECURE": "true"}  # on the loopback
        start = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen([str(part) for part in command], stdout=output,
                                            stderr=output, env={**own, **(environment or plaintext)},
                                            preexec_fn=_without_size_signal)
        event = within(30, lambda: self._listening(start))
        if not isinstance(event, dict):
            raise RuntimeError(f"{name} does not listen:\n{self.log.read_text()[start:]}")
        self.port = int(event["grpc_port"])
        self.metrics_port = int(event["metrics_port"])
        self.address = f"127.0.0.1:{self.port}"

    def _listening(self, start):
        if self.process.poll() is not None:
            return "ended"
        with open(self.log, "rb") as stream:
            stream.seek(start)
            for line in stream:
                if b'"event":"listening"' in line and line.endswith(b"\n"):
                    return json.loads(line)
        return None

    def metrics(self):
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self, number=signal.SIGTERM):
        """Exit code; negative where a signal ended it."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"{self.name} did not end within 20 s of signal {number}")


class Suite:
    """The four servers as they are deployed, in a folder of their own. Use with `with`."""

    def __init__(self, **more):
        self.more = more  # by service: further flags

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sextant_suite_"))
        self.servers = {}
        try:
            for name in SERVICES:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            if server.process.poll() is None:
                # A stopped process takes no other signal.
                server.process.kill()
                server.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __getitem__(self, name):
        return self.servers[name]

    def arguments(self, name):
        datasets = [f"--datasets_dir={SOURCE / 'datasets'}",
                    f"--state_directory={self.folder / name}"]
        lower = [self.servers[s].address for s in ("operator_cost", "network_sim")
                 if s in self.servers]
        if name == "orchestrator":
            return [f"--operator_cost={lower[0]}", f"--network_sim={lower[1]}"]
        if name == "calibration":
            return datasets + [f"--push_target={target}" for target in lower]
        return datasets

    def start(self, name):
        """Starts a service; one that was started before gets its ports again."""
        old = self.servers.get(name)
        ports = (old.port, old.metrics_port) if old else (0, 0)
        self.servers[name] = Server(
            name, [f"--listen=127.0.0.1:{ports[0]}", f"--metrics_listen=127.0.0.1:{ports[1]}",
                   *self.arguments(name), *self.more.get(name, [])],
            self.folder / f"{name}.log")
        return self.servers[name]


def sextant(*arguments, check=True):
    """Runs the built command; its stdout."""
    done = subprocess.run([str(SEXTANT), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)
    if check and done.returncode != 0:
        raise RuntimeError(f"sextant {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def measurement_rows(name, count):
    """The first `count` rows of a shipped measurement file, with the header."""
    with open(SOURCE / "datasets/measurements" / name) as stream:
        return "".join(line for line, _ in zip(stream, range(count + 1)))


def exercise(suite, rounds=1):
    """Asks every service something, good and bad, so that every metric moves."""
    orchestrator = suite["orchestrator"].address
    scenarios = SOURCE / "datasets/scenarios"
    for _ in range(rounds):
        for job in ("llama-3.1-70b-64xh100", "llama-2-70b-inference-dgx-a100",
                    "llama-3.1-8b-serving-h100"):
            sextant("predict", scenarios / f"{job}.yaml", "--server", orchestrator)
        # There is nothing to roll back to.
        sextant("parameters", "rollback", suite["operator_cost"].address, check=False)
        sextant("network", SOURCE / "common/network_sim/reference_cases/ring16_ar_64k.json", "--server",
                suite["network_sim"].address)


def ingest(suite):
    """Sends some measurements and waits until they are judged."""
    inbox = suite.folder / "inbox"
    inbox.mkdir(exist_ok=True)
    (inbox / "collectives.csv").write_text(measurement_rows("collectives.csv", 60))
    sextant("calibrate", "--watch", inbox, "--once", "--server", suite["calibration"].address)
    if not within(30, lambda: "sextant_calibration_rolling_mape_ratio{"
                  in suite["calibration"].metrics()):
        raise RuntimeError("measurements were not judged:\n"
                           + (suite.folder / "calibration.log").read_text())
