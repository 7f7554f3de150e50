-- SPDX-License-Identifier: MIT
--
-- run_alone.lua - runs tests of a *_test.lua that failed once more, without the
-- others of their file. One that passes then depends on them.

local jobs = require "nacre.job_pool"
local outcomes = require "nacre.outcomes"

local run_alone = {}

local MOST <const>, SECONDS <const> = 5, 10

local SAYS <const> = "it passes alone: it depends on the tests before it"

-- The failures to try: not the first test of a file, nothing that takes long.
local function candidates(results)
  local list, seen = {}, {}
  for _, r in ipairs(results) do
    local job = r.job
    if r.status == "fail" and r.name and seen[job] and not job.pdb and
       r.time < SECONDS and #list < MOST then
      list[#list + 1] = r
    end
    seen[job] = true
  end
  return list
end

-- Says so in the reasons of failures that pass alone.
function run_alone.judge(results, o)
  local list, of = {}, {}
  for k, r in ipairs(candidates(results)) do
    local copy = {}
    for field, v in pairs(r.job) do copy[field] = v end
    local name = r.name:gsub("%c", " ")
    copy.only = {[name] = true}
    list[k], of[copy] = copy, r
  end
  jobs.run(list, o, function(outcome)
    local r, again = of[outcome.job], outcomes.results(outcome)
    if #again == 1 and again[1].status == "pass" then
      r.reason = r.reason and r.reason .. "\n" .. SAYS or SAYS
    end
  end)
end

return run_alone
