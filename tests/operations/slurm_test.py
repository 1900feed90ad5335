# SPDX-License-Identifier: Apache-2.0
"""The Slurm integration against a real Slurm: munged, slurmctld and slurmd on this machine, with the
plugins of deploy/slurm, and the four servers of the suite. Skipped where Slurm or root are missing."""
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import suite

SKIPPED = 77
PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PLUGINS = suite.SOURCE / "deploy/slurm"
STEPS = 1000
# Llama-2-7B on eight A100s; 64 sequences divide over every power of two.
JOB = ("{model: llama-2-7b, cluster: dgx-a100, gpu_count: 8, framework: megatron-lm, "
       "training: {global_batch_size: 64, sequence_length: 2048}}")
TOO_LARGE = ("{model: llama-3.1-70b, cluster: dgx-a100, gpu_count: 8, "
             "training: {global_batch_size: 64, sequence_length: 2048}}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


class Slurm:
    """One controller and one node with eight GPUs that are files. Use with `with`."""

    def __init__(self, folder, orchestrator):
        self.folder, self.orchestrator = folder, orchestrator
        self.host = socket.gethostname().split(".")[0]
        self.processes = []
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("S")}
        self.environment.update(SLURM_CONF=str(folder / "slurm.conf"),
                                SEXTANT_SLURM_CONFIG=str(folder / "sextant_slurm.lua"),
                                SEXTANT_EPILOG_CONFIG=str(folder / "sextant_epilog.conf"))

    def write_files(self):
        f = self.folder
        for name in ("state", "spool", "scratch", "steps", "measured", "munge"):
            (f / name).mkdir(mode=0o700)
        (f / "munge/key").write_bytes(os.urandom(128))
        (f / "munge/key").chmod(0o600)
        for gpu in range(8):
            (f / f"gpu{gpu}").touch()
        for plugin in ("job_submit.lua", "cli_filter.lua"):
            shutil.copy(PLUGINS / plugin, f)
        (f / "sextant_slurm.lua").write_text(
            f'return {{ advise = "{PLUGINS}/advise.sh", sextant = "{suite.SEXTANT}",\n'
            f'  server = "{self.orchestrator}", budget_seconds = 20, failures_to_open = 2,\n'
            f'  open_seconds = 600, scratch = "{f}/scratch", counters = "{f}/counters",\n'
            '  clusters = { pool = "dgx-a100" } }\n')
        (f / "sextant_epilog.conf").write_text(
            f"SEXTANT_STEPS_DIRECTORY={f}/steps\nSEXTANT_SPOOL={f}/measured\n")
        # The epilog's own environment is Slurm's.
        epilog = f / "epilog.sh"
        epilog.write_text(f"#!/bin/sh\nSEXTANT_EPILOG_CONFIG={f}/sextant_epilog.conf "
                          f"SLURM_CONF={f}/slurm.conf PATH=/usr/sbin:/usr/bin:/sbin:/bin "
                          f"exec {PLUGINS}/epilog.sh\n")
        epilog.chmod(0o755)
        (f / "gres.conf").write_text(f"NodeName={self.host} Name=gpu File={f}/gpu[0-7]\n")
        (f / "slurm.conf").write_text(f"""ClusterName=test
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={suite.free_port()}
SlurmdPort={suite.free_port()}
AuthType=auth/munge
AuthInfo=socket={f}/munge/socket
CredType=cred/munge
StateSaveLocation={f}/state
SlurmdSpoolDir={f}/spool
SlurmctldPidFile={f}/slurmctld.pid
SlurmdPidFile={f}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobSubmitPlugins=lua
CliFilterPlugins=lua
GresTypes=gpu
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
Epilog={epilog}
NodeName={self.host} NodeAddr=127.0.0.1 CPUs=1 Gres=gpu:8 State=UNKNOWN
PartitionName=pool Nodes={self.host} Default=YES MaxTime=INFINITE State=UP
""")

    def start(self, *command):
        log = open(self.folder / (pathlib.Path(command[0]).name + ".log"), "wb")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log,
                                               env=self.environment, start_new_session=True))

    def __enter__(self):
        self.write_files()
        f = self.folder / "munge"
        self.start("/usr/sbin/munged", "--foreground", "--force", f"--key-file={f}/key",
                   f"--socket={f}/socket", f"--pid-file={f}/pid", f"--log-file={f}/log",
                   f"--seed-file={f}/seed", "--num-threads=1")
        if not suite.within(20, lambda: (f / "socket").exists()):
            raise RuntimeError("munged does not start:\n" + self.log("munged"))
        self.start("/usr/sbin/slurmctld", "-D", "-i")
        self.start("/usr/sbin/slurmd", "-D", "-N", self.host)
        if not suite.within(60, lambda: self.run("sinfo", "-h", "-o", "%t").stdout.strip() == "idle",
                            pause=0.5):
            raise RuntimeError("no idle node:\n" + self.run("sinfo").stderr + self.log("slurmctld")
                               + self.log("slurmd"))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def run(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env=self.environment,
                              cwd=self.folder, timeout=60)

    def submit(self, comment, *options, script="#!/bin/sh\nenv\n"):
        (self.folder / "job.sh").write_text(script)
        return self.run("sbatch", f"--output={self.folder}/job-%j.out", f"--comment={comment}",
                        *options, "job.sh")

    def job(self, number):
        """What Slurm says of a job: name to value."""
        text = self.run("scontrol", "show", "job", number).stdout
        facts = dict(re.findall(r"(\w+)=(\S*)", text))
        facts["text"] = text
        return facts

    def ended(self, number):
        assert suite.within(60, lambda: self.job(number)["JobState"] == "COMPLETED", pause=0.5), \
            self.job(number)["text"] + self.log("slurmctld")[-4000:] + self.log("slurmd")[-4000:]
        return (self.folder / f"job-{number}.out").read_text()


def number_of(submitted):
    assert submitted.returncode == 0, submitted.stderr
    return re.search(r"job (\d+)", submitted.stdout).group(1)


def advised(orchestrator):
    file = pathlib.Path(tempfile.gettempdir()) / f"sextant_slurm_{os.getpid()}.yaml"
    file.write_text(JOB)
    try:
        return json.loads(suite.sextant("advise", file, "--server", orchestrator, "--steps", STEPS,
                                        "--min-gpus", 8, "--max-gpus", 8, "--output", "json"))
    finally:
        file.unlink()


def slurm_minutes(text):
    """Minutes of "[days-]hours:minutes:seconds"."""
    days, _, clock = text.rpartition("-")
    hours, minutes, _ = clock.split(":")
    return (int(days or 0) * 24 + int(hours)) * 60 + int(minutes)


def an_open_job_gets_time_limit_and_layout(slurm, advice):
    # The job's log: what Megatron-LM writes, ten steps that take 3 % more than foreseen.
    milliseconds = advice["prediction"]["total_seconds"] * 1030
    line = (" iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): "
            f"{milliseconds:.1f} | learning rate: 1.0E-04 | global batch size:    64 | "
            "lm loss: 1.0E+00 | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations: "
            "  0 | number of nan iterations:   0 |")
    lines = "\n".join(line % (i, 64 * i) for i in range(1, 11))
    script = (f"#!/bin/sh\nenv\ncat >{slurm.folder}/steps/sextant-$SLURM_JOB_ID.log <<'END'\n"
              f"{lines}\nEND\n")
    submitted = slurm.submit(f"sextant steps={STEPS} {JOB}", "--gpus=8", script=script)
    number = number_of(submitted)
    minutes = advice["suggested_time_limit_seconds"] // 60
    assert f"time limit {minutes} min" in submitted.stderr, submitted.stderr
    assert slurm_minutes(slurm.job(number)["TimeLimit"]) == minutes, slurm.job(number)["text"]
    output = slurm.ended(number)
    for name, value in (("TENSOR_PARALLEL_SIZE", advice["plan"]["tensor_parallel_size"]),
                        ("PIPELINE_PARALLEL_SIZE", advice["plan"]["pipeline_parallel_size"]),
                        ("DATA_PARALLEL_SIZE", advice["plan"]["data_parallel_size"]),
                        ("GPU_COUNT", 8)):
        assert f"SEXTANT_{name}={value}\n" in output, output
    return number


def a_job_without_gpus_gets_the_fewest_and_a_file_is_read_beside_sbatch(slurm):
    (slurm.folder / "job.yaml").write_text(JOB)
    submitted = slurm.submit("sextant steps=10 @job.yaml", "--hold")
    number = number_of(submitted)
    gpus = int(re.search(r"(\d+) GPUs", submitted.stderr).group(1))
    assert 2 <= gpus <= 8, "126 GB of state do not fit on one"
    assert f"TresPerJob=gres:gpu:{gpus}" in slurm.job(number)["text"], slurm.job(number)["text"]
    slurm.run("scancel", number)
    missing = slurm.submit("sextant @nowhere.yaml")
    assert missing.returncode != 0 and "nowhere.yaml" in missing.stderr, missing.stderr


def wrong_jobs_are_refused_with_one_clear_message(slurm):
    too_large = slurm.submit(f"sextant {TOO_LARGE}", "--gpus=8")
    assert too_large.returncode != 0
    said = [line for line in too_large.stderr.splitlines() if "sextant:" in line]
    assert len(said) == 1 and re.search(r"lacks \d+ bytes", said[0]), too_large.stderr
    for comment, word in (("sextant {model: no-such-model, cluster: dgx-a100}", "no-such-model"),
                          ("sextant {model: [", "sextant:"),
                          ("sextant steps=many " + JOB, "steps=many"),
                          ("sextant " + JOB.replace("64", "-1"), "global_batch_size")):
        wrong = slurm.submit(comment)
        assert wrong.returncode != 0, comment
        said = [line for line in wrong.stderr.splitlines() if "sextant:" in line]
        assert len(said) == 1 and word in said[0], wrong.stderr
    # Nothing that users write is run by a shell.
    slurm.submit(f"sextant {{'; touch {slurm.folder}/owned; $(touch {slurm.folder}/owned)")
    assert not (slurm.folder / "owned").exists()
    # Other comments are nobody's business.
    slurm.run("scancel", number_of(slurm.submit("for the paper", "--hold")))


def without_an_orchestrator_jobs_pass_unchanged(slurm, orchestrator):
    orchestrator.stop()
    for _ in range(3):
        number = number_of(slurm.submit(f"sextant steps={STEPS} {JOB}", "--hold", "--gpus=8"))
        assert slurm.job(number)["TimeLimit"] == "UNLIMITED", slurm.job(number)["text"]
        slurm.run("scancel", number)
    assert 'sextant_slurm_jobs_total{result="failed_passed"} 3' in (slurm.folder / "counters").read_text()
    log = slurm.log("slurmctld")
    assert "job passed unchanged" in log
    # Two failures opened the breaker: the third job was not asked about.
    assert "nobody was asked" in log


def the_epilog_brings_the_measurement(slurm, number, servers):
    calibration = servers["calibration"]
    measured = slurm.folder / "measured"
    assert suite.within(30, lambda: list(measured.glob(f"slurm-{number}-*.log"))), \
        f"{list(measured.iterdir())}\n{slurm.log('slurmd')}"
    said = subprocess.run([str(suite.SEXTANT), "calibrate", "--watch", str(measured), "--once",
                           "--server", calibration.address], capture_output=True, text=True, timeout=60)
    assert "1 taken" in said.stderr, said.stderr
    assert 'sextant_calibration_measurements_total{result="taken"} 1' in calibration.metrics(), \
        calibration.metrics()
    # Measured 3 % above what was predicted: that is what the watch says of this prediction.
    pattern = (r'sextant_calibration_rolling_bias_ratio\{[^}]*kind="training"[^}]*\} (\S+)')
    found = suite.within(60, lambda: re.search(pattern, calibration.metrics()))
    assert found, calibration.metrics()
    assert math.isclose(abs(float(found.group(1))), 0.03, abs_tol=0.002), found.group(0)


def main():
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None and not pathlib.Path("/usr/sbin", program).exists():
            skip(f"{program} is not installed; `apt-get install slurm-wlm` brings it ({package})")
    if os.getuid() != 0:
        skip("slurmd runs jobs as their users, for which it needs root")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sextant_slurm_"))
    try:
        with suite.Suite() as servers, Slurm(folder, servers["orchestrator"].address) as slurm:
            advice = advised(servers["orchestrator"].address)
            number = an_open_job_gets_time_limit_and_layout(slurm, advice)
            a_job_without_gpus_gets_the_fewest_and_a_file_is_read_beside_sbatch(slurm)
            wrong_jobs_are_refused_with_one_clear_message(slurm)
            the_epilog_brings_the_measurement(slurm, number, servers)
            without_an_orchestrator_jobs_pass_unchanged(slurm, servers["orchestrator"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
