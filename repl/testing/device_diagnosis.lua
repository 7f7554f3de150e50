-- SPDX-License-Identifier: MIT
--
-- device_diagnosis.lua - explains a step that differs on one device only: the
-- tensor it shows, or the one that its last methods were called on, is
-- computed again on both devices and compared element by element.

local closeness = require "nacre.closeness"
local jobs = require "nacre.job_pool"
local process = require "nacre.process"
local run = require "nacre.run_test"

local diagnosis = {}

-- "a:mm(b)" of "a:mm(b):sum()"; nil if the text ends in no method call.
local function method_object(text)
  return text:match "^(.+):%s*[%a_][%w_]*%s*%b()%s*$"
end

local function large(text)
  local f = load("return " .. text, "=stdin", "t")
  local ok, v = pcall(f or error)
  return ok and type(v) == "userdata" and nacre.is_tensor(v) and
         v:numel() > 1 and v
end

-- Runs the steps before the one at `index`, then saves the tensor in it.
local function save_process(job, index, path)
  return function(tell)
    run.prepare(job)
    local shell = require "nacre.shell"
    shell.start(true)
    for i = 1, index - 1 do shell.submit(job.steps[i].text) end
    local text = job.steps[index].text
    while text do
      local v = large(text)
      if v then
        nacre.save(path, v:detach():cpu())
        return tell("made", text)
      end
      text = method_object(text)
    end
  end
end

local function compare_process(job, one, other)
  return function(tell)
    local a, b = nacre.load(one), nacre.load(other)
    tell("found", closeness.worst(a, b, {rtol = job.rtol, atol = job.atol}))
  end
end

-- Runs f, which sends a message `word`; returns its text, or nil.
local function run_and_hear(job, f, word)
  local outcome = jobs.alone({timeout = job.timeout, unit = job.unit}, f)
  for _, m in ipairs(outcome.messages) do
    if m[1] == word then return m[2] end
  end
end

-- A line on failure f of result r, whose peer on the CPU passed there; nil if
-- nothing can be compared.
function diagnosis.line(r, peer, f)
  local folder = process.folder "diagnosis"
  local mine, other = folder .. "/mine", folder .. "/other"
  local text = run_and_hear(r.job, save_process(r.job, f.index, mine), "made")
  local same = text and
    run_and_hear(r.job, save_process(peer.job, f.index, other), "made") == text
  local found = same and
                run_and_hear(r.job, compare_process(r.job, mine, other),
                             "found")
  process.remove(folder)
  return found and ("tensor %s: %s"):format(text, found)
end

return diagnosis
