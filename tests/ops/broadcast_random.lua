-- SPDX-License-Identifier: MIT
-- Operations of broadcast, permuted and narrowed operands of random shapes,
-- large enough for blocks and threads, give what dense operands give.
-- Run by: nacre tests/ops/broadcast_random.lua [seed [rounds]]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local seed = tonumber(arg[1]) or 1
local rounds = tonumber(arg[2]) or
               nacre.get_default_device() == "cpu" and 600 or 60
nacre.manual_seed(seed)
math.randomseed(seed)
local random, unpack = math.random, table.unpack

local DTYPES <const> = {"float32", "float32", "float64", "bfloat16", "float16",
                        "int64", "int32", "uint8"}

local function any_dtype() return DTYPES[random(#DTYPES)] end

local function any_size()
  return random(1, ({3, 40, 40, 300, 300, 3000})[random(6)])
end

local function any_shape(most)
  local shape, n
  repeat
    shape, n = {}, 1
    for i = 1, random(4) do
      shape[i] = any_size()
      n = n * shape[i]
    end
  until n <= most
  return shape
end

local function permuted(shape, dtype)
  local order, back, sizes = {}, {}, {}
  for i = 1, #shape do
    local at = random(i)
    order[i] = order[at]
    order[at] = i
  end
  for i, d in ipairs(order) do sizes[i], back[d] = shape[d], i end
  return nacre.randint(0, 100, sizes):to(dtype):permute(unpack(back))
end

local function narrowed(shape, dtype)
  local d, sizes = random(#shape), {unpack(shape)}
  sizes[d] = sizes[d] + random(5)
  local t = nacre.randint(0, 100, sizes):to(dtype)
  return t:narrow(d, random(sizes[d] - shape[d] + 1), shape[d])
end

-- Of the shape, or one that broadcasts to it, in some layout.
local function operand(shape, dtype)
  local sizes, from = {}, random(4) == 1 and random(#shape) or 1
  for i = from, #shape do
    sizes[#sizes + 1] = random(3) == 1 and 1 or shape[i]
  end
  local how = random(5)
  if how == 1 then return permuted(sizes, dtype) end
  if how == 2 then return narrowed(sizes, dtype) end
  return nacre.randint(0, 100, sizes):to(dtype)
end

local function shape_of(...)
  return nacre.broadcast_tensors {...}[1].shape
end

local CALLS <const> = {
  add = function(a, b) return a + b end,
  mul_add = function(a, b, c) return a + b * c end,
  where = function(a, b, c) return nacre.where(a:lt(50), b, c) end,
  lt = function(a, b) return a:lt(b) end,
  clamp = function(a, b) return nacre.clamp(a, nil, b) end,
  addcmul = function(a, b, c) return nacre.addcmul(a, b, c) end,
}

local function check(round, a, b, c)
  local shape = shape_of(a, b, c)
  local dense = {}
  for i, t in ipairs {a, b, c} do
    dense[i] = t:expand(unpack(shape)):contiguous()
  end
  nacre.set_num_threads(random(3))
  for name, f in pairs(CALLS) do
    O.check(nacre.equal(f(a, b, c):expand(unpack(shape)), f(unpack(dense))),
            "seed %d, round %d, %s: [%s] [%s] [%s]", seed, round, name,
            table.concat(a.shape, "x"), table.concat(b.shape, "x"),
            table.concat(c.shape, "x"))
  end
  O.check(nacre.equal(dense[1]:clone():copy_(c), dense[3]),
          "seed %d, round %d: copy_", seed, round)
end

for round = 1, rounds do
  local shape = any_shape(random(3) == 1 and 2000000 or 200000)
  local dtype = any_dtype()
  local other = random(5) == 1 and any_dtype() or dtype
  check(round, operand(shape, dtype), operand(shape, other),
        operand(shape, dtype))
end

O.done "broadcast_random"
