-- SPDX-License-Identifier: Apache-2.0
-- Slurm job submit plugin: asks Sextant about jobs that say what they run, in their comment:
--
--   sextant steps=10000 {model: llama-3.1-8b, cluster: dgx-h100, training: {...}}
--
-- Sets the time limit and GPU count that a job leaves open, gives it the environment of its layout,
-- and refuses it where it cannot fit. Never in the way: a question ends within its budget; without
-- an answer the job goes on unchanged, and a log line and a counter say so.
--
-- What users write goes to Sextant through a file. Commands are made of the settings alone.

local NO_VAL = slurm.NO_VAL or 4294967294
local DOES_NOT_FIT = 2014 -- ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
local REFUSED = slurm.ERROR or -1
local MOST_DESCRIPTION_BYTES = 16384
local MOST_ANSWER_BYTES = 65536
local MOST_MESSAGE_BYTES = 800
local CONFIG_SECONDS = 60

local config, config_time = nil, -1
local state = { failures = 0, open_until = 0, request = 0, counts = {} }

-- One printable line of bounded length.
local function line(text)
  text = tostring(text):gsub("[%c\127-\255]+", " "):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
  if #text > MOST_MESSAGE_BYTES then text = text:sub(1, MOST_MESSAGE_BYTES) .. " ..." end
  return text
end

local function say_to_user(text) slurm.log_user("%s", "sextant: " .. line(text)) end
local function say_to_log(text) slurm.log_info("%s", "sextant: " .. line(text)) end

local function settings()
  local now = os.time()
  if config and now - config_time < CONFIG_SECONDS then return config end
  local name = os.getenv("SEXTANT_SLURM_CONFIG") or "/etc/slurm/sextant_slurm.lua"
  local chunk, problem = loadfile(name, "t", {})
  if not chunk then error(problem, 0) end
  local read = chunk()
  if type(read) ~= "table" then error(name .. " must return a table", 0) end
  for _, key in ipairs({ "advise", "sextant", "server", "scratch" }) do
    if type(read[key]) ~= "string" then error(name .. ": " .. key .. " must be a text", 0) end
  end
  config, config_time = read, now
  return config
end

-- Counts what became of a job and writes all counts for Prometheus.
local function count(what)
  state.counts[what] = (state.counts[what] or 0) + 1
  if not config or type(config.counters) ~= "string" then return end
  local new = config.counters .. ".new"
  local file = io.open(new, "w")
  if not file then return end
  file:write("# HELP sextant_slurm_jobs_total Jobs that describe themselves, by what became of them.\n",
             "# TYPE sextant_slurm_jobs_total counter\n")
  for result, number in pairs(state.counts) do
    file:write(string.format('sextant_slurm_jobs_total{result="%s"} %d\n', result, number))
  end
  file:close()
  os.rename(new, config.counters)
end

-- Settings and the description of a comment; nil where it is about something else.
local function description_of(comment)
  if type(comment) ~= "string" then return nil end
  local words, text = comment:match("^sextant([%s][^{]*)({.*)$")
  if not words then
    if comment:match("^sextant[%s{:]") or comment == "sextant" then
      return nil, "the comment must be: sextant steps=COUNT {model: NAME, cluster: NAME, training: {...}}"
    end
    return nil
  end
  if #text > MOST_DESCRIPTION_BYTES then
    return nil, "the job description has " .. #text .. " bytes but may have at most "
        .. MOST_DESCRIPTION_BYTES
  end
  local description = { text = text }
  for word in words:gmatch("%S+") do
    local steps = word:match("^steps=(%d+)$")
    if not steps or #steps > 12 then
      return nil, '"' .. word:sub(1, 64) .. '" is not known; known is steps=COUNT'
    end
    description.steps = steps
  end
  return description
end

-- GPUs in a request such as "gres:gpu:h100:4,gres:other:1"; 0 where there are none, nil where the
-- number cannot be read.
local function gpus_in(text)
  if type(text) ~= "string" then return 0 end
  local sum = 0
  for entry in text:gmatch("[^,]+") do
    local rest = entry:match("^gres[:/]gpu(.*)$") or entry:match("^gpu(.*)$")
    if rest then
      local number = rest == "" and 1 or tonumber(rest:match(":(%d+)$"))
      if not number and rest:match("^:[%a][%w_.-]*$") then number = 1 end -- a type alone
      if not number or number > 1000000 then return nil end
      sum = sum + number
    end
  end
  return sum
end

local function number_or(value, default)
  if type(value) ~= "number" or value == NO_VAL or value < 1 then return default end
  return value
end

-- GPUs that the job asks for in all; 0: none, nil: not known before it is placed.
local function gpus_wanted(job)
  local of_job = gpus_in(job.tres_per_job)
  if of_job ~= 0 then return of_job end
  local of_node = gpus_in(job.tres_per_node)
  if of_node ~= 0 then return of_node and of_node * number_or(job.min_nodes, 1) end
  local of_task = gpus_in(job.tres_per_task)
  if of_task ~= 0 then
    local tasks = number_or(job.num_tasks, nil)
    return of_task and tasks and of_task * tasks
  end
  if gpus_in(job.tres_per_socket) ~= 0 then return nil end
  return 0
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Asks; the answer's lines by key, or nil and why not.
local function ask(request)
  state.request = state.request + 1
  local name = string.format("%s/request-%d-%d", config.scratch, os.time(), state.request)
  local file, problem = io.open(name, "w")
  if not file then return nil, problem end
  file:write(request)
  file:close()
  local pipe = io.popen(quoted(config.advise) .. " " .. quoted(name) .. " 2>/dev/null", "r")
  local text = pipe and pipe:read(MOST_ANSWER_BYTES) or ""
  if pipe then pipe:close() end
  os.remove(name)
  local answer = {}
  for key, value in (text or ""):gmatch("(SEXTANT_[%u_]+)=([^\n]*)\n") do answer[key] = value end
  if answer.SEXTANT_ERROR then return answer end
  if not answer.SEXTANT_FEASIBLE then return nil, answer.SEXTANT_FAILURE or "no answer in time" end
  return answer
end

local function request_for(job, description, wanted)
  local partition = type(job.partition) == "string" and job.partition or ""
  local cluster = (config.clusters or {})[partition]
  local lines = {
    "sextant " .. config.sextant,
    "server " .. config.server,
    "budget " .. tostring(config.budget_seconds or 0.2),
    "margin " .. tostring(config.time_limit_margin or 0.1),
    "steps " .. (description.steps or "0"),
    "min_gpus " .. (wanted > 0 and math.floor(wanted) or 0),
    "max_gpus " .. (wanted > 0 and math.floor(wanted) or math.floor(config.max_gpus or 0)),
  }
  if cluster then lines[#lines + 1] = "cluster " .. cluster end
  lines[#lines + 1] = "job"
  return table.concat(lines, "\n") .. "\n" .. description.text
end

-- Without an answer.
local function fail(why)
  state.failures = state.failures + 1
  if state.failures >= (config and config.failures_to_open or 3) then
    state.failures = 0
    state.open_until = os.time() + (config and config.open_seconds or 30)
    say_to_log("nobody is asked for a while, after failures in a row")
  end
  local refuse = config and config.on_failure == "refuse"
  count(refuse and "failed_refused" or "failed_passed")
  say_to_log((refuse and "job refused" or "job passed unchanged") .. ": " .. why)
  if not refuse then return slurm.SUCCESS end
  say_to_user("no advice could be had, and this cluster takes no job without: " .. why)
  return REFUSED
end

local LAYOUT = {
  "SEXTANT_TENSOR_PARALLEL_SIZE", "SEXTANT_SEQUENCE_PARALLEL", "SEXTANT_PIPELINE_PARALLEL_SIZE",
  "SEXTANT_VIRTUAL_PIPELINE_SIZE", "SEXTANT_CONTEXT_PARALLEL_SIZE",
  "SEXTANT_EXPERT_PARALLEL_SIZE", "SEXTANT_DATA_PARALLEL_SIZE", "SEXTANT_MICRO_BATCH_SIZE",
  "SEXTANT_ZERO_STAGE", "SEXTANT_SCHEDULE", "SEXTANT_RECOMPUTE", "SEXTANT_GPU_COUNT",
  "SEXTANT_STEP_SECONDS", "SEXTANT_PARAMETER_SET",
}

-- Writes the answer into the job.
local function apply(job, answer, wanted)
  local minutes = tonumber(answer.SEXTANT_TIME_LIMIT_MINUTES or "")
  local said = {}
  if minutes and minutes > 0 and minutes < 1e8 then
    if job.time_limit == nil or job.time_limit == NO_VAL then
      job.time_limit = math.floor(minutes)
      said[#said + 1] = "time limit " .. math.floor(minutes) .. " min"
    elseif job.time_limit * 60 < (tonumber(answer.SEXTANT_RUN_SECONDS or "") or 0) then
      said[#said + 1] = string.format("the time limit of %d min is below the predicted run of %d min",
                                      job.time_limit, math.ceil(answer.SEXTANT_RUN_SECONDS / 60))
    end
  end
  local gpus = tonumber(answer.SEXTANT_GPU_COUNT or "")
  if wanted == 0 and gpus and gpus >= 1 and gpus <= 1000000 then
    job.tres_per_job = "gres:gpu:" .. math.floor(gpus)
    said[#said + 1] = math.floor(gpus) .. " GPUs"
  end
  if job.environment then
    for _, key in ipairs(LAYOUT) do
      local value = answer[key]
      if value and value ~= "" and #value < 64 then job.environment[key] = value end
    end
  end
  -- The epilog finds there what was predicted.
  if answer.SEXTANT_JOB and #answer.SEXTANT_JOB < MOST_DESCRIPTION_BYTES then
    job.admin_comment = answer.SEXTANT_JOB
  end
  if #said > 0 then say_to_user(table.concat(said, ", ")) end
end

local function submit(job)
  local comment = job.comment
  if type(comment) ~= "string" or comment:sub(1, 7) ~= "sextant" then return slurm.SUCCESS end
  settings()
  local description, problem = description_of(comment)
  if problem then
    count("wrong_description")
    say_to_user(problem)
    return REFUSED
  end
  if not description then return slurm.SUCCESS end
  local wanted = gpus_wanted(job)
  if not wanted then
    count("passed")
    return slurm.SUCCESS
  end
  if os.time() < state.open_until then
    count(config.on_failure == "refuse" and "failed_refused" or "failed_passed")
    say_to_log("nobody was asked: the last answers failed")
    if config.on_failure ~= "refuse" then return slurm.SUCCESS end
    say_to_user("no advice can be had now, and this cluster takes no job without")
    return REFUSED
  end
  local answer, why = ask(request_for(job, description, wanted))
  if not answer then return fail(why) end
  state.failures = 0
  if answer.SEXTANT_ERROR then
    count("wrong_description")
    say_to_user("the job description is wrong: " .. answer.SEXTANT_ERROR)
    return REFUSED
  end
  if answer.SEXTANT_FEASIBLE ~= "1" then
    count("does_not_fit")
    say_to_user("the job cannot run: " .. (answer.SEXTANT_REASON or "it does not fit"))
    return DOES_NOT_FIT
  end
  apply(job, answer, wanted)
  count("advised")
  return slurm.SUCCESS
end

function slurm_job_submit(job, partitions, user_id)
  local done, result = pcall(submit, job)
  if done then return result end
  local handled, failed = pcall(fail, tostring(result))
  return handled and failed or slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, user_id) return slurm.SUCCESS end

return slurm.SUCCESS
