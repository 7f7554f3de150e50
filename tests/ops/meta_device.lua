-- SPDX-License-Identifier: MIT
-- A dry run gives what the operation gives, except the values: shapes,
-- dtypes and devices of every operation; and it changes nothing.

local here = arg[0]:match("^(.*/)") or "./"
local calls = dofile(here .. "../lib/small_calls.lua")

local function dry(f, ...)
  nacre._watch("dry")
  local results = table.pack(pcall(f, ...))
  nacre._watch("")
  return results
end

local function kind(v)
  if not nacre.is_tensor(v) then return type(v) end
  return v.dtype .. "[" .. table.concat(v:size(), "x") .. "] " ..
         table.concat(v:stride(), ",") .. " " .. tostring(v.device)
end

local function kinds(results)
  local list = {}
  for i = 2, results.n do
    local v = results[i]
    if type(v) == "table" then
      for k = 1, #v do list[#list + 1] = kind(v[k]) end
    else
      list[#list + 1] = kind(v)
    end
  end
  return table.concat(list, "; ")
end

local function bits(args)
  local list = {}
  local function add(v)
    if nacre.is_tensor(v) then list[#list + 1] = tostring(v:contiguous())
    elseif type(v) == "table" then for k = 1, #v do add(v[k]) end end
  end
  add(args)
  return table.concat(list, "\n")
end

-- What depends on values, or is worked out on the host alone.
local stops = {}
for name in ([[
  nonzero argwhere masked_select masked_scatter masked_scatter_ unique
  unique_consecutive bincount histc histogram poisson equal allclose
  quantile nanquantile linspace binomial _standard_gamma _standard_gamma_grad
]]):gmatch "%S+" do
  stops[name] = true
end

local tried, stopped = 0, {}
for _, op in ipairs(calls.all()) do
  local f = op.f or op.method
  local real = f and table.pack(pcall(f, table.unpack(calls.sample(op))))
  if real and real[1] then
    local args = calls.sample(op)
    local before = bits(args)
    local given = dry(f, table.unpack(args))
    assert(bits(args) == before, op.name .. " changed an operand")
    if given[1] then
      local a, b = kinds(real), kinds(given)
      assert(a == b, ("%s: %s, dry %s"):format(op.name, a, b))
      assert(not stops[op.name], op.name .. " does not stop a dry run")
      tried = tried + 1
    else
      local text = tostring(given[2])
      assert(text:find "dry run", op.name .. ": " .. text)
      stopped[#stopped + 1] = op.name
    end
  end
end
for _, name in ipairs(stopped) do
  assert(stops[name], name .. " stops a dry run")
end
assert(tried > 250, tried)

-- In place, by index, into another tensor: what exists stays as it is.
local a = nacre.ones(2, 3)
local r = nacre.zeros(2, 3)
local results = dry(function()
  a:add_(1)
  a[1] = 5
  a[{1, 1}] = 6
  a[a:gt(0)] = 7
  a:copy_(r)
  nacre.add(a, a, {out = r})
  return a, r, a:t() .. a:t()
end)
assert(results[1], not results[1] and tostring(results[2]))
assert(rawequal(results[2], a) and rawequal(results[3], r))
assert(kind(results[4]):find("float32[6x2] 2,1 ", 1, true),
       kind(results[4]))
assert(a:sum():item() == 6 and r:sum():item() == 0)

-- More than there is memory for is no matter, and none is taken.
local live = nacre._memory().live
results = dry(function()
  local big = nacre.zeros(1 << 20, 1 << 20)
  return (big + 1):matmul(big):sum()
end)
assert(results[1], not results[1] and tostring(results[2]))
assert(nacre._memory().live - live < 1 << 16)
local place = nacre.get_default_device()
local _, peak = nacre._drymemory(place)
assert(peak - 3 * (4 << 40) < 1 << 16, peak)

-- Devices are told apart as they are without it; errors name the operands.
results = dry(function() return a:mm(a) end)
assert(not results[1] and results[2].args[1].tensor == a)

-- Random numbers go on as if nothing had been; the default device too.
nacre.manual_seed(3)
local x = nacre.rand(4)
nacre.manual_seed(3)
dry(nacre.rand, 100)
assert(nacre.rand(4) == x)
assert(nacre.get_default_device() == place)

-- Nothing is written: a file needs values, and keeps what it has.  What is
-- read from one has its shape.
local path = os.tmpname()
for extension, what in pairs {npy = a, csv = a, safetensors = {a = a},
                              npz = {a = a}, png = a} do
  local name = path .. "." .. extension
  local write = extension == "png" and nacre.png or nacre.save
  if pcall(write, name, what) then      -- libraries may not be there
    local file = assert(io.open(name, "rb"))
    local before = file:read "a"
    file:close()
    results = dry(function()
      local big = nacre.ones(3000, 3000)
      write(name, type(what) == "table" and {a = big} or big)
    end)
    assert(not results[1] and tostring(results[2]):find "dry run",
           extension .. ": " .. tostring(results[2]))
    file = assert(io.open(name, "rb"))
    assert(file:read "a" == before, extension)
    file:close()
    os.remove(name)
  end
end
nacre.save(path, nacre.ones(2, 3))
results = dry(function() return nacre.load(path) + 1 end)
assert(results[1] and kind(results[2]):find("float32[2x3]", 1, true))
os.remove(path)

-- Gradients are not for it.
local w = nacre.ones(2, {requires_grad = true})
local loss = (w * w):sum()
results = dry(loss.backward, loss)
assert(not results[1] and tostring(results[2]):find "cannot run backward")
loss:backward()
assert(w.grad:sum():item() == 4)
