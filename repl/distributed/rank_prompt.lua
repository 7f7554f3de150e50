-- SPDX-License-Identifier: MIT
--
-- rank_prompt.lua - nacre --ranks N, --launch COMMAND: one prompt for all ranks
-- of a job. It is a reader of the shell, which stays outside of the job.

local job = require "nacre.rank_job"
local host = require "nacre.host"
local process = require "nacre.process"
local shell = require "nacre.shell"
local input_block = require "nacre.input_block"

local rank_prompt = {}

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function ended()
  shell.reader, shell.leaving = nil, true
  local status = job.finish()
  if status ~= 0 then
    shell.fail(("the job has ended with status %d"):format(status))
  end
end

local function submit(text)
  local own = text:match "^%s*:local%s+(.*)$"
  if own then return shell.dispatch(own) end
  if not text:find "%S" then return end
  local answer = job.send(text) and job.receive()
  if not answer then return ended() end
  local flags, names, at = string.unpack("Bs4", answer)
  local list = {}
  for name in names:gmatch "%S+" do list[#list + 1] = name end
  if shell.reader then shell.reader.names = list end
  shell.failed = flags & 1 ~= 0
  io.stdout:write(answer:sub(at))
  io.stdout:flush()
  if flags & 2 ~= 0 then ended() end
end

-- More ranks than cores are no mistake at a prompt: for Open MPI 4, and 5.
local OVERSUBSCRIBE = "OMPI_MCA_rmaps_base_oversubscribe=1 " ..
  "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"

-- Starts the job; the lines of the prompt go there. Returns false after saying
-- why there is none.
function rank_prompt.start(launch)
  local program = process.real_path "/proc/self/exe" or "nacre"
  job.start(("COLUMNS=%d %s exec %s %s --worker")
            :format(host.columns(), OVERSUBSCRIBE, launch, quoted(program)))
  local size = job.receive()
  if not size then
    local status = job.finish()
    io.stderr:write(("the job did not start: %s (status %d)\n")
                    :format(launch, status))
    return false
  end
  rawset(_G, "dist", nacre.distributed) -- for Tab and signatures
  shell.reader = {
    names = {"rank", "size"},
    prompt = size .. "> ",
    leave = ":quit",
    alone = true,
    own = function(text) return text:find "^%s*@" ~= nil end,
    submit = submit,
    ready = function(text)
      return input_block.ready(text:gsub("^%s*@[%d,%-]+%s", "", 1), shell.islua)
    end,
  }
  return true
end

-- The end of the input: the job ends, too.
function rank_prompt.finish()
  job.finish()
end

return rank_prompt
