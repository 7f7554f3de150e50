-- SPDX-License-Identifier: MIT
-- Checkpoints: nested tables in .safetensors files come back as they were, and
-- training goes on bit for bit; a broken file gives an error and runs nothing.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn, optim, data = nacre.nn, nacre.optim, nacre.utils.data

local base = os.tmpname()
local path = base .. ".safetensors"

-- ---- values

local t = nacre.ones(2)
local saved = {a = {b = {c = nacre.arange(3)}}, ["x.y"] = t, again = t,
               n = 3, f = 3.0, third = 1 / 3, tiny = 5e-324, big = 1 << 62,
               inf = math.huge, minus = -math.huge, [7] = "seven", [-1] = true,
               yes = true, no = false, s = "q\"\\\n\t\u{e4}", raw = "\xff\0",
               empty = {}, list = {1, "two", {3.5}}, mixed = {1, 2, x = 3}}
nacre.save(path, saved)
local got = nacre.load(path)

local function same(a, b, where)
  if nacre.is_tensor(a) then
    return assert(a.dtype == b.dtype and nacre.equal(a, b), where)
  end
  assert(math.type(a) == math.type(b) and type(a) == type(b), where)
  if type(a) ~= "table" then return assert(a == b, where) end
  for key, v in pairs(a) do same(v, b[key], where .. "." .. tostring(key)) end
  for key in pairs(b) do assert(a[key] ~= nil, tostring(key)) end
end
same(saved, got, "")
assert(rawequal(got["x.y"], got.again))
nacre.save(path, {nan = 0 / 0})
assert(nacre.load(path).nan ~= nacre.load(path).nan)

-- metadata of one's own goes along; names= gives tensors alone
nacre.save(path, {a = {b = t}, n = 1}, {metadata = {by = "me"}})
local value, about = nacre.load(path)
assert(value.n == 1 and about.by == "me" and about.nacre == nil)
assert(nacre.load(path, {names = {"a.b"}})["a.b"])
assert(nacre.deserialize(nacre.serialize({a = {t}, k = 2})).k == 2)

-- a flat table is written as before
nacre.save(path, {w = t})
value, about = nacre.load(path)
assert(value.w and about == nil)

-- two tensors whose names would be equal
nacre.save(path, {a = {["b.c"] = t}, ["a.b"] = {c = nacre.zeros(1)}})
value = nacre.load(path)
assert(value.a["b.c"]:numel() == 2 and value["a.b"].c:numel() == 1)

-- ---- what cannot be saved leaves the old file

local before = C.read(path)
local loop = {}
loop.loop = loop
fails("is nested too deep, or contains itself", nacre.save, path, loop)
fails("f is a function, which a file cannot hold", nacre.save, path,
      {f = print})
fails("the table has a table as a key", nacre.save, path, {[{}] = 1})
assert(C.read(path) == before)

-- ---- a module without its structure

do
  local from = nn.Sequential(nn.Linear(2, 1))
  local to = nn.Sequential(nn.Linear(2, 1))
  nacre.save(base .. ".npz", from)
  to:load_state_dict(base .. ".npz")
  assert(to[1].weight:equal(from[1].weight))
  os.remove(base .. ".npz")
end

-- ---- what was written by others

local function broken(text, message)
  nacre.save(path, {w = t}, {metadata = {nacre = text}})
  fails("load: the structure in the metadata is broken: " .. message,
        nacre.load, path)
end
broken("", "''")
broken("[", "''")
broken('["d","a"]', "a key without a value")
broken('["t","v"]', "no tensor v")
broken('["q",1]', "no kind q")
broken('["l",1', "a list has no end")
broken('["l"]x', "text after its end")
broken('"abc', "a string has no end")
broken("os.exit()", "os.exit")
broken(("["):rep(5000), "nested too deep")

-- ---- training goes on

local function make()
  nacre.manual_seed(1)
  local net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(),
                            nn.Dropout(0.3), nn.Linear(8, 3))
  local opt = optim.AdamW(net, {lr = 1e-2})
  return net, opt, optim.lr_scheduler.CosineAnnealingLR(opt, 10)
end

nacre.manual_seed(7)
local X, y = nacre.randn(24, 4), nacre.randint(1, 4, {24})
local function train(net, opt, schedule, epochs)
  local losses = {}
  for _ = 1, epochs do
    for a, b in data.DataLoader({X, y}, {batch_size = 8, shuffle = true}) do
      local loss = nn.CrossEntropyLoss()(net(a), b)
      opt:zero_grad()
      loss:backward()
      nn.utils.clip_grad_norm_(net, 1)
      opt:step()
      losses[#losses + 1] = loss:item()
    end
    schedule:step()
  end
  return losses
end

local net, opt, schedule = make()
train(net, opt, schedule, 2)
nacre.save(path, {net = net, opt = opt, schedule = schedule, epoch = 2,
                  rng = nacre.get_rng_state()})
local whole = train(net, opt, schedule, 3)

local state = nacre.load(path)
net, opt, schedule = make()
net:load_state_dict(state.net)
opt:load_state_dict(state.opt)
schedule:load_state_dict(state.schedule)
nacre.set_rng_state(state.rng)
local resumed = train(net, opt, schedule, 3)
for i, loss in ipairs(whole) do assert(loss == resumed[i], "step " .. i) end
assert(state.epoch == 2)

os.remove(base)
os.remove(path)
