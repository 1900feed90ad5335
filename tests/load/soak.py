#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed load on the four servers while one after the other is killed: no wrong answer, no lost
measurement, only errors that say "try again", and memory that does not grow.

    tests/load/soak.py [--seconds 1800] [--kill_every 20] [--threads 4] [--calm 300]

The load ends with a calm part without kills, over which memory is compared. Prints what it measured;
exit code 1 where something does not hold. What took how long is printed and not judged: it depends on
the machine. Traffic goes to the loopback alone and ends by itself."""
import argparse
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "operations"))
import suite  # noqa: E402

LOAD = suite.BUILD / "tests/load/load"
# What a caller may try again.
RETRY = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
# Methods to which random bytes are sent; none of them takes an empty message.
METHODS = {
    "operator_cost": ["sextant.operator_cost.v1.OperatorCostService/EstimateOperators",
                      "sextant.operator_cost.v1.OperatorCostService/PushParameterSet"],
    "network_sim": ["sextant.network_sim.v1.NetworkSimService/EstimateCollectives",
                    "sextant.network_sim.v1.NetworkSimService/SimulateCase"],
    "orchestrator": ["sextant.orchestrator.v1.OrchestratorService/Predict",
                     "sextant.orchestrator.v1.OrchestratorService/PredictBatch"],
    "calibration": ["sextant.calibration.v1.CalibrationService/IngestMeasurements",
                    "sextant.calibration.v1.CalibrationService/CancelCalibrationJob"],
}


def stored_measurements(servers):
    """Rows in the store of the calibration service, read when it has stopped."""
    import sqlite3
    servers["calibration"].stop()
    database = sqlite3.connect(servers.folder / "calibration" / "calibration.sqlite")
    count, = database.execute("SELECT COUNT(*) FROM measurements").fetchone()
    database.close()
    return count


def malformed(servers, count, problems):
    """Random messages to every service. None is taken, and all servers live on."""
    seen = {}
    for name, methods in METHODS.items():
        for method in methods:
            done = subprocess.run([str(LOAD), "malformed", servers[name].address, f"/{method}",
                                   str(count // 8)], capture_output=True, text=True, timeout=300)
            for code, number in json.loads(done.stdout).items():
                seen[code] = seen.get(code, 0) + number
        if servers[name].process.poll() is not None:
            problems.append(f"{name} ended after malformed messages")
    # 0 OK: taken. 2 UNKNOWN, 4 DEADLINE_EXCEEDED, 14 UNAVAILABLE: a server that stumbled.
    for code in ("0", "2", "4", "14"):
        if seen.get(code):
            problems.append(f"{seen[code]} malformed messages ended with status {code}")
    return seen


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=int, default=1800, help="of load with kills")
    arguments.add_argument("--calm", type=int, default=300, help="seconds of load after the last kill")
    arguments.add_argument("--kill_every", type=float, default=20)
    arguments.add_argument("--threads", type=int, default=4)
    arguments.add_argument("--malformed", type=int, default=10_000)
    arguments.add_argument("--no-memory-limits", dest="memory_limits", action="store_false",
                           help="for sanitized builds, which keep what was freed")
    options = arguments.parse_args()
    problems, kills = [], []
    with suite.Suite(calibration=["--automatic=false"]) as servers:
        idle = {name: servers[name].resident_bytes() for name in suite.SERVICES}
        start = time.monotonic()
        load = subprocess.Popen(
            [str(LOAD), *(servers[name].address for name in
                          ("orchestrator", "operator_cost", "network_sim", "calibration")),
             str(options.seconds + options.calm), str(options.threads)],
            stdout=subprocess.PIPE, text=True)
        turn = 0
        while time.monotonic() - start + options.kill_every < options.seconds:
            time.sleep(options.kill_every)
            name = suite.SERVICES[turn % len(suite.SERVICES)]
            turn += 1
            begin = time.monotonic() - start
            servers[name].stop(signal.SIGKILL)
            servers.start(name)
            kills.append((begin, time.monotonic() - start))
        # Caches fill again after the last kill.
        time.sleep(max(0, start + options.seconds + options.calm / 3 - time.monotonic()))
        warm = {name: servers[name].resident_bytes() for name in suite.SERVICES}
        time.sleep(max(0, start + options.seconds + options.calm - 1 - time.monotonic()))
        after = {name: servers[name].resident_bytes() for name in suite.SERVICES}
        output, _ = load.communicate(timeout=60)
        result = json.loads(output)
        codes = malformed(servers, options.malformed, problems) if options.malformed else {}
        stored = stored_measurements(servers)

    seconds = result["seconds"]
    calls = sum(second["calls"] for second in seconds)
    errors = {}
    for second in seconds:
        for code, number in second["errors"].items():
            errors[code] = errors.get(code, 0) + number
    # A kill is felt until connections are made anew.
    quiet = [second for second in seconds if second["predict_p99_seconds"] is not None and not any(
        begin - 1 <= second["second"] <= end + 2 for begin, end in kills)]
    worst = sorted(second["predict_p99_seconds"] for second in quiet)
    print(json.dumps({
        "seconds": len(seconds), "kills": len(kills), "calls": calls, "errors": errors,
        "error_ratio": sum(errors.values()) / max(1, calls), "wrong": len(result["wrong"]),
        "acknowledged_measurements": result["acknowledged_measurements"],
        "stored_measurements": stored,
        "calls_per_second_outside_kills":
            sum(second["calls"] for second in quiet) / max(1, len(quiet)),
        "p99_seconds_outside_kills_median": worst[len(worst) // 2] if worst else None,
        "p99_seconds_outside_kills_worst_second": worst[-1] if worst else None,
        "idle_bytes": idle, "warm_bytes": warm, "after_bytes": after,
        "malformed_by_status": codes}, indent=1))

    if result["wrong"]:
        problems.append(f"wrong answers: {result['wrong'][:5]}")
    if set(errors) - RETRY:
        problems.append(f"errors other than {RETRY}: {errors}")
    if sum(errors.values()) > 0.01 * calls:
        problems.append(f"{sum(errors.values())} of {calls} calls failed")
    if calls == 0 or result["acknowledged_measurements"] == 0:
        problems.append("there was no load")
    if stored < result["acknowledged_measurements"]:
        problems.append("acknowledged measurements are lost")
    for name in suite.SERVICES if options.memory_limits else ():
        if idle[name] > 100e6:
            problems.append(f"{name} takes {idle[name]} bytes idle")
        # Over seconds a page cache or an arena shows as growth; a leak shows over minutes.
        if after[name] > 1.05 * warm[name] + 2e6:
            problems.append(f"{name} grew from {warm[name]} to {after[name]} bytes")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
