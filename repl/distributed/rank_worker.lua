-- SPDX-License-Identifier: MIT
--
-- rank_worker.lua - nacre --worker: a rank of a session with one prompt. Rank 0
-- reads the lines of the prompt; all ranks run them, and their answers go back.
--
-- A rank whose line fails tells the others, which may wait for it. At the end
-- of a line all ranks exchange what became of it, in a group that ignores
-- failures and Ctrl-C; after a failure they renew the world.

local completion = require "nacre.completion"
local job = require "nacre.rank_job"
local host = require "nacre.host"
local shell = require "nacre.shell"

local worker = {}

local dist, control           -- the group of the session itself
local rank, size

local ANSWER, ASK = 0, 0      -- the first bytes of an answer, and a question
local MOST = 64 * 1024        -- bytes that a rank but 0 gives for a line

-- The beginning and the end of a text that is longer than that.
local function shortened(text)
  if #text <= MOST then return text end
  return ("%s\n... %d bytes left out ...\n%s"):format(
           text:sub(1, MOST // 2), #text - MOST, text:sub(-MOST // 2))
end

-- Runs a line as the prompt would; gives what was printed, of which rank 0 has
-- shown some bytes already.
local function run(line)
  local live = host.divert_stdout() and rank == 0
  if live then job.begin_line() end
  shell.submit(line)
  local shown = live and job.end_line() or 0
  return {text = host.diverted_text(), failed = shell.failed,
          quit = shell.leaving, shown = shown}
end

-- "@0,2-3 LINE": the set of its ranks, and LINE; nil and what is wrong with it.
local function addressed(text)
  local who, line = text:match "^%s*@([%d,%-]+)%s+(.*)$"
  if not who then return nil, "@ needs ranks and a line, for example @0,2 "
    .. "LINE" end
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
  if not ranks then
    return {text = "error: " .. line .. "\n", failed = true, shown = 0}
  end
  return ranks[rank] and run(line) or {text = "", shown = 0}
end

-- The error, which comes after what was printed, for the other ranks.
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

-- What the prompt shows: equal answers once. What rank 0 has shown before
-- comes first, and those who say the same are named after it.
local function merged(answers, own)
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
  if own.shown > 0 then
    local said = of[table.remove(order, 1)]
    out[1] = own.text:sub(own.shown + 1):gsub("([^\n])$", "%1\n")
    table.remove(said, 1)
    if #said > 0 then
      out[1] = ("%s[%s] the same\n"):format(out[1], rank_text(said))
    end
  end
  for _, text in ipairs(order) do
    local ranks = of[text]
    if ranks[1] == 0 then text = own.text:gsub("\n$", "") end
    out[#out + 1] = ("[%s]%s%s\n"):format(rank_text(ranks),
                                          text:find "\n" and "\n" or " ", text)
  end
  return table.concat(out)
end

-- What Tab shows at the prompt: the candidates of this rank.
local function answer_candidates(question)
  local left, right = string.unpack("s4s4", question, 2)
  local ok, list = pcall(completion.candidates, left, right)
  if not ok then list = {start = #left} end
  local parts = {string.pack("BI4s4I4", ANSWER, list.start or #left,
                             list.head or "", #list)}
  for _, found in ipairs(list) do
    local text, note = found, ""
    if type(found) == "table" then text, note = found[1], found[2] end
    parts[#parts + 1] = string.pack("s4s4", text, note or "")
  end
  job.send(table.concat(parts))
end

-- The next line of the prompt.
local function next_line()
  local text = job.receive()
  while text and text:byte() == ASK do
    answer_candidates(text)
    text = job.receive()
  end
  return text
end

-- Runs one line on the ranks that it is for; false at the end.
local function step()
  local text = rank == 0 and next_line() or nil
  local request = dist.broadcast_object(text and {text = text}, 0, control)
  if not request then return false end
  local answer = answer_of(request.text)
  if answer.failed then dist._tell(reason(answer)) end
  local answers = dist.all_gather_object({
    text = shortened(answer.text), failed = answer.failed, quit = answer.quit},
    control)
  local failed, quit
  for _, a in ipairs(answers) do
    failed, quit = failed or a.failed, quit or a.quit
  end
  if failed then dist.renew() end
  if rank == 0 then
    job.send(string.pack("BB", ANSWER, (failed and 1 or 0) + (quit and 2 or 0))
             .. merged(answers, answer))
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
  shell.provide("dist", dist)
  shell.provide("rank", rank)
  shell.provide("size", size)
  if rank == 0 then job.send(("%d"):format(size)) end
  while step() do end
end

return worker
