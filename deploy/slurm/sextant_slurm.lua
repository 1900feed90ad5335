-- SPDX-License-Identifier: Apache-2.0
-- Settings of job_submit.lua. Install as /etc/slurm/sextant_slurm.lua, or name another file in the
-- environment of slurmctld: SEXTANT_SLURM_CONFIG. Read again every minute.
return {
  advise = "/usr/lib/sextant/slurm/advise.sh",
  sextant = "/usr/bin/sextant",
  server = "127.0.0.1:50053",      -- the orchestrator
  budget_seconds = 0.2,            -- of one submission, everything included
  on_failure = "pass",             -- "refuse": no job without an answer
  failures_to_open = 3,            -- this many failures in a row, and nobody is asked ...
  open_seconds = 30,               -- ... for so long
  time_limit_margin = 0.1,         -- over the high end of the predicted run time
  max_gpus = 0,                    -- where a job asks for none; 0: the gpu_count of its description
  scratch = "/run/sextant",        -- a folder of SlurmUser alone (mode 0700)
  counters = "/run/sextant/slurm.prom", -- for the textfile collector of node_exporter; nil: none
  clusters = {},                   -- partition = "name of a cluster in the catalog", where a job names none
}
