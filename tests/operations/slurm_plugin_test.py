# SPDX-License-Identifier: Apache-2.0
"""The submit plugin under a bare Lua interpreter with a made-up Slurm: no description and no answer
makes it fail, or lets it say more than a few lines."""
import pathlib
import subprocess
import tempfile

import suite

ROUNDS = 300

DRIVER = r"""
local folder, plugin, rounds = arg[1], arg[2], tonumber(arg[3])
math.randomseed(20261207)
local said = {}
slurm = { SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294,
  log_user = function(form, ...) said[#said + 1] = string.format(form, ...) end,
  log_info = function(form, ...) string.format(form, ...) end,
  log_error = function(form, ...) string.format(form, ...) end }
dofile(plugin)

local function bytes(most)
  local out = {}
  for i = 1, math.random(0, most) do out[i] = string.char(math.random(0, 255)) end
  return table.concat(out)
end
local pieces = { "sextant ", "sextant", "steps=", "steps=10 ", "{", "}", "model: ", "@/etc/shadow", "'; touch ",
  folder .. "/owned", "$(touch " .. folder .. "/owned)", "`touch " .. folder .. "/owned`", "\n", "\0", "job\n",
  "server ", "gres:gpu:", "gpu:", ":", "99999999999999999999", "-1", "%s%d%n", string.rep("x", 20000),
  "SEXTANT_FEASIBLE=", "SEXTANT_ERROR=", "SEXTANT_GPU_COUNT=", "SEXTANT_TIME_LIMIT_MINUTES=", "1", "1e999", "nan" }
local function text()
  if math.random(10) == 1 then return bytes(200) end
  local out = {}
  for i = 1, math.random(0, 8) do out[i] = pieces[math.random(#pieces)] end
  return table.concat(out)
end
local function value()
  local kind = math.random(6)
  if kind == 1 then return nil end
  if kind == 2 then return math.random(0, 4294967295) end
  if kind == 3 then return -1.5 end
  return text()
end
local results = {}
for round = 1, rounds do
  local answer = io.open(folder .. "/answer", "w")
  answer:write(text(), "\n", text(), "\n")
  answer:close()
  said = {}
  local comment = value()
  if round % 2 == 0 then comment = "sextant steps=5 {" .. text() end
  local result = slurm_job_submit({ comment = comment, partition = value(), time_limit = value(),
    tres_per_job = value(), tres_per_node = value(), tres_per_task = value(), tres_per_socket = value(),
    min_nodes = value(), num_tasks = value(), environment = {} }, {}, 0)
  assert(math.type(result) == "integer", "round " .. round)
  results[result] = (results[result] or 0) + 1
  assert(#said <= 1, "more than one message in round " .. round)
  for _, line in ipairs(said) do
    assert(#line <= 900 and not line:find("%c"), "message of round " .. round)
  end
end
-- Every way out was seen: passed, refused as wrong, refused as not fitting.
assert(results[0] and results[-1] and results[2014], "a way out was never taken")
"""

FAKE_ADVISE = """#!/bin/sh
cat "$(dirname "$0")/answer"
"""


def main():
    lua = suite.need("lua5.3")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "scratch").mkdir()
        (folder / "driver.lua").write_text(DRIVER)
        fake = folder / "advise"
        fake.write_text(FAKE_ADVISE)
        fake.chmod(0o755)
        config = folder / "config.lua"
        config.write_text(f'return {{ advise = "{fake}", sextant = "/bin/false", server = "none",'
                          f' scratch = "{folder}/scratch", counters = "{folder}/counters",'
                          " failures_to_open = 1000000 }\n")
        plugin = suite.SOURCE / "deploy/slurm/job_submit.lua"
        done = subprocess.run([lua, str(folder / "driver.lua"), name, str(plugin), str(ROUNDS)],
                              env={"SEXTANT_SLURM_CONFIG": str(config), "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr
        assert not (folder / "owned").exists(), "what a user wrote was run"
        assert not list((folder / "scratch").iterdir()), "questions were left behind"
        assert 'sextant_slurm_jobs_total{result="does_not_fit"}' in (folder / "counters").read_text()


main()
