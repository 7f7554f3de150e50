-- SPDX-License-Identifier: MIT
--
-- rank_prompt.lua - nacre --ranks N, --launch COMMAND: one prompt for all ranks
-- of a job. It is a reader of the shell, which stays outside of the job.

local job = require "nacre.rank_job"
local host = require "nacre.host"
local process = require "nacre.process"
local completion = require "nacre.completion"
local quoted = require "nacre.files".quoted
local shell = require "nacre.shell"
local takes_lua = require "nacre.commands".takes_lua
local input_block = require "nacre.input_block"

local rank_prompt = {}

local PRINTED = 1  -- the first byte of what a line prints meanwhile
local ASK = 0      -- the first byte of a request for candidates, not a line

local exit_status               -- of the job, after its end

-- Waits for the end of the job; says so if it failed.
local function finish()
  if exit_status then return end
  exit_status = job.finish()
  if exit_status ~= 0 then
    shell.fail(("the job has ended with status %d"):format(exit_status))
  end
end

local function ended()
  shell.reader, shell.leaving = nil, true
  finish()
end

-- The answer to a line. What rank 0 prints before that is shown meanwhile.
local function receive_answer()
  local answer, printed = job.receive(), false
  while answer and answer:byte() == PRINTED do
    if not printed then io.stdout:write "[0]\n" end
    printed = true
    io.stdout:write(answer:sub(2))
    io.stdout:flush()
    answer = job.receive()
  end
  return answer
end

-- What rank 0 would complete, which has the variables; after :local, what this
-- process would.
local function candidates(left, right)
  if left:find "^%s*:local%s" then return completion.candidates(left, right) end
  left = left:gsub("^%s*@[%d,%-]+%s", function(own) return (" "):rep(#own) end)
  local answer = job.send(string.pack("Bs4s4", ASK, left, right)) and
                 receive_answer()
  if not answer then return completion.candidates(left, right) end
  local start, head, count, at = string.unpack("I4s4I4", answer, 2)
  local list = {start = start, head = head ~= "" and head or nil}
  for i = 1, count do
    local text, note
    text, note, at = string.unpack("s4s4", answer, at)
    list[i] = note ~= "" and {text, note} or text
  end
  return list
end

local function submit(text)
  local own = text:match "^%s*:local%s+(.*)$"
  if own then return shell.dispatch(own) end
  if not text:find "%S" then return end
  local answer = job.send(text) and receive_answer()
  if not answer then return ended() end
  local flags, at = string.unpack("B", answer, 2)
  shell.failed = flags & 1 ~= 0
  io.stdout:write(answer:sub(at))
  io.stdout:flush()
  if flags & 2 ~= 0 then ended() end
end

-- For Open MPI 4, and 5: more ranks than cores are no mistake at a prompt. For
-- MPICH: its transport UCX need not list at the end what renewals have left.
local OVERSUBSCRIBE = "OMPI_MCA_rmaps_base_oversubscribe=1 " ..
  "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"
local QUIET = "UCX_LOG_LEVEL=${UCX_LOG_LEVEL:-error}"

local function command(launch, words)
  local list = {launch, quoted(process.real_path "/proc/self/exe" or "nacre")}
  for _, word in ipairs(words) do list[#list + 1] = quoted(word) end
  return table.concat(list, " ")
end

-- Starts the job; the lines of the prompt go there. `words' of the command line
-- are for each rank. Returns false after saying why there is none.
function rank_prompt.start(launch, words)
  table.insert(words, 1, "--worker")
  job.start(("COLUMNS=%d %s %s exec %s"):format(host.columns(), OVERSUBSCRIBE,
                                                QUIET, command(launch, words)))
  local size = job.receive()
  if not size then
    exit_status = job.finish()
    io.stderr:write(("the job did not start: %s (status %d)\n")
                    :format(launch, exit_status))
    return false
  end
  shell.provide("dist", nacre.distributed) -- for Tab and signatures
  shell.reader = {
    prompt = size .. "> ",
    leave = ":quit",
    alone = true,
    own = function(text) return text:find "^%s*@" ~= nil end,
    submit = submit,
    candidates = candidates,
    ready = function(text)
      return input_block.ready(text:gsub("^%s*@[%d,%-]+%s", "", 1), takes_lua)
    end,
  }
  return true
end

-- Runs what -e, -l and -p ask for, a list {option, value, ...}, as lines, then
-- the script, a list with its arguments. Stops at the first failure, and then
-- returns false.
function rank_prompt.run(options, script)
  local lines = {}
  for i = 1, #options, 2 do
    local text = options[i + 1]
    if options[i] == "l" then
      local name, module = text:match "^(.-)=(.*)$"
      text = ("%s = require %q"):format(name or text, module or text)
    end
    lines[#lines + 1] = text
  end
  if script[1] then
    local words = {}
    for i, word in ipairs(script) do
      words[i] = ("[%d] = %q"):format(i - 1, word)
    end
    local folder = script[1]:match "^(.*)/" or "."
    local path = ("%s/?.lua;%s/?/init.lua;"):format(folder, folder)
    lines[#lines + 1] = ("package.path = %q .. package.path; arg = {%s}; " ..
                         "assert(loadfile(arg[0]))(table.unpack(arg))")
                        :format(path, table.concat(words, ", "))
  end
  for _, line in ipairs(lines) do
    shell.failed = false
    shell.protected(submit, line)
    if shell.failed or not shell.reader then return not shell.failed end
  end
  return true
end

-- A script without a prompt: the launcher takes the place of this program.
function rank_prompt.become(launch, words)
  job.become(OVERSUBSCRIBE .. " exec " .. command(launch, words))
end

-- The end of the input: the job ends, too. Gives its status.
function rank_prompt.finish()
  finish()
  return exit_status
end

return rank_prompt
