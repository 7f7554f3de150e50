-- SPDX-License-Identifier: MIT
--
-- rank_worker.lua - nacre --worker: a rank of a session with one prompt. Rank 0
-- reads the lines of the prompt; all ranks run them, and their answers go back.
--
-- A rank whose line fails tells the others, which may wait for it. At the end
-- of a line all ranks exchange what became of it, in a group that is deaf to
-- failures and to Ctrl-C; after a failure they renew the world.

local job = require "nacre.rank_job"
local host = require "nacre.host"
local shell = require "nacre.shell"

local worker = {}

local dist, control           -- the group of the session itself
local rank, size

-- Runs a line as the prompt would; gives what was printed.
local function run(line)
  host.divert_stdout()
  shell.submit(line)
  return {text = host.diverted_text(), failed = shell.failed,
          quit = shell.leaving}
end

local function is_listed(ranks)
  if not ranks then return true end
  for _, r in ipairs(ranks) do
    if r == rank then return true end
  end
  return false
end

-- "0-3", "0,2", of ranks in ascending order.
local function rank_text(list)
  if #list > 2 and list[#list] - list[1] == #list - 1 then
    return ("%d-%d"):format(list[1], list[#list])
  end
  return table.concat(list, ",")
end

-- What the prompt shows: equal answers once.
local function merged(answers)
  local order, of, out = {}, {}, {}
  for r = 1, size do
    local a = answers[r]
    local text = a and a.text:gsub("\n$", "") or ""
    if text ~= "" and not of[text] then
      of[text] = {}
      order[#order + 1] = text
    end
    if text ~= "" then table.insert(of[text], r - 1) end
  end
  for i, text in ipairs(order) do
    out[i] = ("[%s]%s%s\n"):format(rank_text(of[text]),
                                   text:find "\n" and "\n" or " ", text)
  end
  return table.concat(out)
end

-- Runs one line on the ranks that it is for; false at the end.
local function step()
  local text = rank == 0 and job.receive() or nil
  local request = dist.broadcast_object(text and {text = text}, 0, control)
  if not request then return false end
  local ranks, line = nil, request.text
  local who, rest = line:match "^%s*@([%d,]+)%s+(.*)$"
  if who then
    ranks, line = {}, rest
    for r in who:gmatch "%d+" do ranks[#ranks + 1] = tonumber(r) end
  end
  local answer = is_listed(ranks) and run(line) or {text = ""}
  if answer.failed then
    dist._tell((answer.text:match "^[^\n]*":gsub("^error: ", "")))
  end
  local answers = dist.all_gather_object(answer, control)
  local failed, quit
  for _, a in ipairs(answers) do
    failed, quit = failed or a.failed, quit or a.quit
  end
  if failed then dist.renew() end
  if rank == 0 then
    job.send((failed and "1" or "0") .. (quit and "1" or "0") ..
             merged(answers))
  end
  return not quit
end

function worker.run()
  dist = nacre.distributed
  dist.init_process_group()
  rank, size = dist.get_rank(), dist.get_world_size()
  job.serve()
  control = dist.split(0, rank)
  dist._deafen(control)
  rawset(_G, "dist", dist)
  rawset(_G, "rank", rank)
  rawset(_G, "size", size)
  if rank == 0 then job.send(("%d"):format(size)) end
  while step() do end
end

return worker
