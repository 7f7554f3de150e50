-- SPDX-License-Identifier: MIT
-- A number beside integers does not wrap, except in sums and products, which
-- are modulo 2^bits. Every call that the examples of the reference make is made
-- with tensors of each integer dtype and, in each argument that takes a number,
-- one that the dtype does not hold, also in place: it is an error, or gives
-- what it gives for int64. Then isclose and random_ at such edges.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local each_call = dofile(here .. "../lib/example_calls.lua")

nacre.set_memory_limit(1 << 28)     -- 1 << 32 may also be a size

local outside = {
  uint8 = {-1, 256, 300, 1 << 32}, int8 = {-129, 128, 200, 256},
  int16 = {-32769, 32768, 65536},
  int32 = {-(1 << 31) - 1, 1 << 31, 1 << 32},
}

local function istensor(v) return nacre.is_tensor(v) end

-- Where a negative number beside uint8 stands for the one 256 above, as PyTorch
-- has it: factors, whose products wrap as its own do, bits, and what is stored.
local factors = {"^add", "^sub", "^index_add", "^b?addb?mm", "bitwise"}
local stores = {"fill", "full", "^copy_", "^pad$", "^scatter", "^index_put",
                "^new_full", "_copy_?$", "^normal"}

local function matches(name, patterns)
  for _, p in ipairs(patterns or {}) do
    if name:find(p) then return true end
  end
end

-- Sums and products, in each of their names.
local ring = {add = true, sub = true, subtract = true, mul = true,
              multiply = true, rsub = true}

-- The products that are added to a tensor.
local function is_added(name) return name:match "^b?addb?m[mv]_?$" end

local function inring(name, param)
  return param == "other" and ring[name:match "([%w_]-)_?$"] or
         param == "alpha" and name:find "^index_add" or
         (param == "alpha" or param == "beta") and is_added(name)
end

local function modular(name, param)
  return name:find "bitwise" or matches(name, stores) or
         (param == "alpha" or param == "beta" or param == "value") and
         matches(name, factors)
end

-- The arguments with tensors of type t, made by way of `by'; only the first
-- of them if lone.
local function converted(args, t, by, lone)
  local out, seen = {n = args.n}, false
  for i = 1, args.n do
    local v = args[i]
    if istensor(v) and v.dtype ~= "bool" and not (seen and lone) then
      v, seen = v:detach():to(by):to(t), true
    elseif istensor(v) then v = v:detach():clone() end
    out[i] = v
  end
  return out
end

local function same(got, want, wraps)
  if not istensor(got) then return got == want end
  if not istensor(want) or got:dim() ~= want:dim() then return false end
  if got:is_floating_point() then
    return got:allclose(want:to(got.dtype), 1e-3, 1e-6, true)
  end
  if wraps then want = want:to(got.dtype) end
  return got:to "int64":equal(want:to "int64")
end

local tried, refused, right = 0, 0, 0

local function compare(what, f, small, large, wraps)
  local ok, got = O.try(f, table.unpack(small, 1, small.n))
  tried = tried + 1
  if not ok then refused = refused + 1 return end
  local sure, want = O.try(f, table.unpack(large, 1, large.n))
  if not sure then return end
  right = right + 1
  O.check(same(got, want, wraps), "%s gives %s, not %s", what, got, want)
end

-- Puts v in place i of both lists of arguments; i may be the name of an
-- option, which the last one holds.
local function put(list, i, v)
  if math.type(i) then list[i] = v return end
  local options = {}
  for key, old in pairs(list[list.n]) do options[key] = old end
  options[i], list[list.n] = v, options
end

local function attempt(name, f, args, i, param)
  for t, numbers in pairs(outside) do
    for _, v in ipairs(numbers) do
      -- with the others of int64 the operation is, and narrows in place
      for _, lone in ipairs(name:find "_$" and {false} or {false, true}) do
        local small = converted(args, t, t, lone)
        local large = converted(args, "int64", t, lone)
        put(small, i, v)
        put(large, i, v)
        local wraps = inring(name, param) or
                      t == "uint8" and v < 0 and modular(name, param)
        compare(("%s of %s, %s = %d"):format(name, t, param, v), f, small,
                large, wraps)
      end
    end
  end
end

local numeric = {operand = true, num = true}

local function calls(name, f, info, args)
  local tensor = false
  for i = 1, args.n do tensor = tensor or istensor(args[i]) end
  if not tensor then return end
  local last = args[args.n]
  for i, p in ipairs(info.params) do
    if numeric[p.type] and type(args[i]) == "number" then
      attempt(name, f, args, i, p.name)
    end
    if numeric[p.type] and type(last) == "table" and
       type(last[p.name]) == "number" then
      attempt(name, f, args, p.name, p.name)
    end
  end
end

-- ---- the calls of the examples

local seen = {}
local fills = {uniform_ = true, normal_ = true, fill_ = true}
each_call(function(path, f, info, args)
  local name = path:match "[%w_]+$"
  seen[name] = (seen[name] or 0) + 1
  if seen[name] > 5 or name == "result_type" -- it looks at dtypes alone
     or path:find "^autograd" or path:find "^cuda" then
    return
  end
  if fills[name] then
    nacre.no_grad(args[1].zero_, args[1])    -- new: it has no values yet
  end
  calls(name, f, info, args)
  local into = nacre._methods[name .. "_"]
  if into then calls(name .. "_", into, info, args) end
end, {files = true, images = true})
O.check(refused > 1500 and right > 800, "%d errors and %d results, of %d calls",
        refused, right, tried)

-- ---- the places that are known to take a number, one by one

local F = nacre.nn.functional
local five = nacre.tensor({5}, {dtype = "uint8"})
local no = nacre.tensor {false}
for what, f in pairs {
  clamp = function(v) return five:clamp(0, v) end,
  clamp_min = function(v) return five:clamp_min(v) end,
  clamp_max = function(v) return five:clamp_max(v) end,
  clamp_ = function(v) return five:clone():clamp_(0, v) end,
  ["clamp out"] = function(v)
    return five:clamp(0, v, {out = five:clone()})
  end,
  maximum = function(v) return five:maximum(v) end,
  minimum = function(v) return nacre.minimum(v, five) end,
  fmax = function(v) return five:fmax(v) end,
  where = function(v) return nacre.where(no, five, v) end,
  threshold = function(v) return F.threshold(five, 6, v) end,
  threshold_ = function(v) return F.threshold(five, v, 0) end,
  pow = function(v) return five:pow(v) end,
  rpow = function(v) return v ^ five end,
  mod = function(v) return five % v end,
  alpha = function(v) return five:add(five, {alpha = v}) end,
  addcmul = function(v) return five:addcmul(five, five, {value = v}) end,
  heaviside = function(v) return five:heaviside(v) end,
  lcm = function(v) return five:lcm(v) end,
  fill_ = function(v) return five:clone():fill_(v) end,
  masked_fill = function(v) return five:masked_fill(no, v) end,
} do
  fails("EVALUE: 300 does not fit in uint8", f, 300)
end
for _, v in ipairs {-1, 256} do
  fails("EVALUE: does not fit", five.clamp_min, five, v)
  fails("EVALUE: does not fit", nacre.where, no, five, v)
end
O.check((five & ~1)[1] == 4 and (five & -1)[1] == 5, "bits of uint8")
O.check(five:add(five, {alpha = -1})[1] == 0, "5 - 5")
O.check(five:lt(300)[1] and five:gt(-1)[1] and not five:eq(261)[1],
        "comparisons are exact")

-- ---- int64 is compared exactly

local big, far = 1 << 53, math.maxinteger
for _, c in ipairs {
  {big + 1, big, 0, 0, false}, {big, big, 0, 0, true},
  {big + 1, big, 0, 1, true}, {big + 3, big, 0, 2, false},
  {-big - 3, -big, 0, 3, true}, {big + 1, -big, 2, 0, false},
  {big - 1, -big, 2, 0, true}, {far, ~far, 0, 0, false},
  {far, ~far, 2, 0, true}, {far, ~far, 1.5, 0, false},
  {~far, ~far, 0, 0, true},
} do
  local a, b = nacre.tensor {c[1]}, nacre.tensor {c[2]}
  O.check(a:isclose(b, c[3], c[4])[1] == c[5] and
          a:allclose(b, c[3], c[4]) == c[5], "%d close to %d by %s, %s", c[1],
          c[2], c[3], c[4])
end

-- ---- random_ draws what the type holds

local function draw(t, ...)
  return nacre.zeros(300, {dtype = t}):random_(...)
end
fails("EVALUE: does not fit in float16", draw, "float16", 0, 100000)
fails("EVALUE: -65505 does not fit", draw, "float16", -65505, 0)
fails("EVALUE: -1 does not fit", draw, "uint8", -1, 5)
fails("EVALUE: 2 does not fit in bool", draw, "bool", 0, 3)
O.check(not draw("float16", 0, 65505):isinf():any():item(),
        "float16 holds 65504")
O.check(not draw("bfloat16", 0, far):isinf():any():item(),
        "bfloat16 is wide")
O.done "integer_bounds"
