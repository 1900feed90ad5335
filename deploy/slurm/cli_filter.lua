-- SPDX-License-Identifier: Apache-2.0
-- Slurm command line filter: puts the file of `--comment='sextant steps=10000 @job.yaml'` into the
-- comment, where job_submit.lua reads it. Runs as the user, beside sbatch, srun and salloc: slurmctld
-- never opens a file that a user names.

local MOST_BYTES = 16384

local function with_file(comment)
  local words, name = comment:match("^(sextant%s[^{@]*)@(.+)$")
  if not words then return comment end
  local file, problem = io.open(name, "r")
  if not file then return nil, problem end
  local text = file:read(MOST_BYTES + 1) or ""
  file:close()
  if #text > MOST_BYTES then
    return nil, name .. " has more than " .. MOST_BYTES .. " bytes"
  end
  -- One mapping, as job_submit.lua wants it; JSON and flow YAML have braces already.
  if text:match("^%s*{") then return words .. text:match("^%s*(.*)$") end
  return nil, name .. " must be one mapping in braces: {model: NAME, cluster: NAME, ...}"
end

function slurm_cli_setup_defaults(options, early_pass) return slurm.SUCCESS end

function slurm_cli_pre_submit(options, pack_offset)
  local comment = options["comment"]
  if type(comment) ~= "string" then return slurm.SUCCESS end
  local done, new, problem = pcall(with_file, comment)
  if not done then return slurm.SUCCESS end
  if not new then
    slurm.log_error("%s", "sextant: " .. tostring(problem):gsub("%c", " "))
    return slurm.ERROR
  end
  if new ~= comment then options["comment"] = new end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end

return slurm.SUCCESS
