-- SPDX-License-Identifier: MIT
-- Nacre's side of suite.py; suite_python.py is the other one.
--
--   nacre suite.lua THREADS FOLDER    FOLDER has the numbers of suite.py
--
-- Reads requests from stdin, a line each with tabs between the words, and
-- answers each with a line: "ok", numbers, or "error: " and the reason.
--
--   row N                             forgets the last row; n is N
--   let NAME KIND DTYPE LIMIT SIZES SEED    an operand
--   setup TEXT                        runs statements
--   forward TEXT                      what is measured, an expression or more
--   gradient NAMES                    the gradient of that to these operands
--   check COUNT                       what the first COUNT results are
--   time CALLS                        seconds of the processor, and of the wall

local folder = arg[2]
local base = {normal = nacre.load(folder .. "/normal.npy"),
              whole = nacre.load(folder .. "/whole.npy")}
local values, measured

nacre.set_num_threads(tonumber(arg[1]))
nacre.manual_seed(1)

-- COUNT numbers of those that were loaded, from a place that SEED says on.
local function numbers(kind, count, seed)
  local from = base[kind]
  local length = from:numel()
  local first = seed * 7919 % length
  local copies = (first + count + length - 1) // length
  return from:tile(copies):narrow(1, first + 1, count)
end

local function operand(kind, dtype, limit, sizes, seed)
  local size, count = {}, 1
  for n in sizes:gmatch "%d+" do
    size[#size + 1] = math.tointeger(n)
    count = count * size[#size]
  end
  local x = numbers(kind == "normal" and "normal" or "whole", count, seed)
  if kind == "whole" or kind == "position" then x = x % limit + 1 end
  if kind == "positive" then x = (x % 1000 + 1) / 500 end
  return x:to(nacre[dtype]):reshape(size):clone()
end

-- The weights of a network become the same on both sides.
local function same(net)
  local list = net.parameters and net:parameters() or net
  for i, p in ipairs(list) do
    local x = numbers("normal", p:numel(), i):reshape(p:size()) * 0.1
    p:detach():copy_(x)
  end
  return net
end

-- "dtype sizes mean" and up to some thousand of the elements of y.
local function summary(y)
  if type(y) ~= "userdata" then y = nacre.tensor(y) end
  y = y:detach()
  local count, flat = y:numel(), y:reshape(-1)
  local words = {tostring(y.dtype), table.concat(y:size(), ",")}
  if count == 0 then return table.concat(words, " ") .. " 0" end
  local step = count // 1000 | 1
  local some = flat:index_select(1, nacre.arange(1, count, step)):double()
  words[#words + 1] = ("%.9g"):format(flat:double():mean():item())
  for _, v in ipairs(some:tolist()) do
    words[#words + 1] = ("%.9g"):format(v)
  end
  return table.concat(words, " ")
end

local answer = {}

function answer.row(n)
  values, measured = nil, nil
  collectgarbage()
  collectgarbage()
  values = setmetatable({nacre = nacre, n = math.tointeger(n),
                         F = nacre.nn.functional, nn = nacre.nn,
                         linalg = nacre.linalg, optim = nacre.optim,
                         same = same}, {__index = _G})
  return "ok"
end

function answer.let(name, kind, dtype, limit, sizes, seed)
  values[name] = operand(kind, dtype, tonumber(limit), sizes, tonumber(seed))
  return "ok"
end

function answer.setup(text)
  assert(load(text, "=setup", "t", values))()
  return "ok"
end

function answer.forward(text)
  measured = load("return " .. text, "=row", "t", values) or
             assert(load(text, "=row", "t", values))
  return "ok"
end

function answer.gradient(names)
  local leaves, forward = {}, measured
  for name in names:gmatch "%w+" do
    leaves[#leaves + 1] = values[name]:requires_grad_()
  end
  local y = (forward())
  local options = {grad_outputs = numbers("normal", y:numel(), 99)
                                  :reshape(y:size()):clone()}
  function measured()
    return nacre.autograd.grad((forward()), leaves, options)
  end
  return "ok"
end

function answer.check(count)
  local found, results = {}, table.pack(measured())
  if type(results[1]) == "table" then results = results[1] end
  for i = 1, math.min(tonumber(count), #results) do
    found[i] = summary(results[i])
  end
  return table.concat(found, "\t")
end

function answer.time(calls)
  local f, y = measured, nil
  local wall, processor = nacre.clock(), os.clock()
  for _ = 1, tonumber(calls) do y = f() end
  processor, wall = os.clock() - processor, nacre.clock() - wall
  return y ~= 0 and ("%.9g %.9g"):format(processor, wall)
end

for line in io.lines() do
  local words = {}
  for word in (line .. "\t"):gmatch "([^\t]*)\t" do
    words[#words + 1] = word
  end
  local done, text = pcall(answer[words[1]], table.unpack(words, 2))
  if not done then text = "error: " .. tostring(text):gsub("\n.*", "") end
  print(text)
  io.stdout:flush()
end
