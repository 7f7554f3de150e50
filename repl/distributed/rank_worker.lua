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

-- "@0,2-3 LINE": the set of its ranks, and LINE; nil and what is wrong with it.
local function addressed(text)
  local who, line = text:match "^%s*@([%d,%-]+)%s+(.*)$"
  if not who then return nil, "@ needs ranks and a line, as in @0,2 LINE" end
  local ranks = {}
  for part in who:gmatch "[^,]+" do
    local first, last = part:match "^(%d+)%-?(%d*)$"
    first, last = tonumber(first), tonumber(last) or tonumber(first)
    if not first or first > last then
      return nil, ("'%s' is neither a rank nor a range"):format(part)
    elseif last >= size then
      return nil, ("there is no rank %d: they are 0 to %d"):format(last,
                                                                   size - 1)
    end
    for r = first, last do ranks[r] = true end
  end
  return ranks, line
end

-- What became of a line of the prompt here.
local function answer_of(text)
  if not text:find "^%s*@" then return run(text) end
  local ranks, line = addressed(text)
  if not ranks then return {text = "error: " .. line .. "\n", failed = true} end
  return ranks[rank] and run(line) or {text = ""}
end

-- What other ranks are told: the error, which stands behind what was printed.
local function reason(answer)
  local text = "\n" .. answer.text
  return text:match "\nerror: ([^\n]+)" or text:match "\n(interrupted[^\n]*)"
         or "an error without a message"
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

-- The variables of this rank, which Tab completes at the prompt.
local function variables()
  local names = {}
  for name in next, _G do
    if type(name) == "string" and not shell.isbuiltin(name) then
      names[#names + 1] = name
    end
  end
  return table.concat(names, " ")
end

-- Runs one line on the ranks that it is for; false at the end.
local function step()
  local text = rank == 0 and job.receive() or nil
  local request = dist.broadcast_object(text and {text = text}, 0, control)
  if not request then return false end
  local answer = answer_of(request.text)
  if answer.failed then dist._tell(reason(answer)) end
  local answers = dist.all_gather_object(answer, control)
  local failed, quit
  for _, a in ipairs(answers) do
    failed, quit = failed or a.failed, quit or a.quit
  end
  if failed then dist.renew() end
  if rank == 0 then
    job.send(string.pack("Bs4", (failed and 1 or 0) + (quit and 2 or 0),
                         variables()) .. merged(answers))
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
