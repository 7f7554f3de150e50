-- SPDX-License-Identifier: MIT
-- state_dict and load_state_dict: what they copy, and what they say of a state
-- that does not fit.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn = nacre.nn

local function make()
  return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
end
local a, b = make(), make()
local state = a:state_dict()
assert(not state["0.weight"].requires_grad)
assert(C.shares(state["0.weight"], a[1].weight))

local weight = b[1].weight
local result = b:load_state_dict(state)
assert(#result.missing_keys == 0 and #result.unexpected_keys == 0)
assert(rawequal(weight, b[1].weight) and weight == a[1].weight)
assert(weight.requires_grad and not C.shares(weight, a[1].weight))

-- ---- what does not fit

local e = fails("Sequential and the state do not match\n" ..
                "  only in the module: 0.weight, 0.bias, 1.weight, 1.bias " ..
                "and 3 more\n  only in the state: x", b.load_state_dict, b,
                {x = nacre.ones(1)})
assert(e.op == "load_state_dict")

local parallel = {}
for name, t in pairs(state) do parallel["module." .. name] = t end
fails("only in the state: module.0.bias",
      'the names begin with "module.": it was saved from a DataParallel',
      b.load_state_dict, b, parallel)
parallel.n_averaged = nacre.ones({})
fails("only in the state: module.0.bias",
      'the names begin with "module.": it is the state of an AveragedModel',
      b.load_state_dict, b, parallel)
local inner = {}
for name, t in pairs(state) do inner["backbone.net." .. name] = t end
fails("only in the state", 'the names begin with "backbone.net."',
      b.load_state_dict, b, inner)

local wrong = {}
for name, t in pairs(state) do wrong[name] = t end
wrong["0.weight"] = nacre.ones(3, 2)
fails("other shape: 0.weight is [2x3], but that of the state is [3x2]",
      "the matrices are transposed", b.load_state_dict, b, wrong)
fails("other shape", b.load_state_dict, b, wrong, {strict = false})
wrong["0.weight"] = 3
fails("0.weight is a number, not a tensor", b.load_state_dict, b, wrong)
fails("a table of tensors or the name of a file is expected, not a number",
      b.load_state_dict, b, 3)

-- ---- options

local part = {["0.bias"] = nacre.zeros(2), extra = nacre.ones(1)}
result = b:load_state_dict(part, false)
assert(#result.missing_keys > 0)
fails("load_state_dict: takes at most 2 arguments, got 3", b.load_state_dict, b,
      part, false, true, 1)
fails("no argument 'stict'", b.load_state_dict, b, part, {stict = false})
result = b:load_state_dict(part, {strict = false})
assert(result.unexpected_keys[1] == "extra" and #result.missing_keys == 6)
C.is(b[1].bias:detach(), "{0.0,0.0}")
local new = nacre.ones(2, 3)
b:load_state_dict({["0.weight"] = new}, {strict = false, assign = true})
assert(C.shares(b[1].weight, new) and b[1].weight.requires_grad)
assert(#b:parameters() == 4)

-- a failure changes nothing
local before = b[1].bias:detach():clone()
pcall(b.load_state_dict, b, wrong)
assert(b[1].bias == before)

-- ---- by a file

local path = os.tmpname()
nacre.save(path .. ".safetensors", a)
local c = make()
c:load_state_dict(path .. ".safetensors")
assert(c[1].weight == a[1].weight)
os.remove(path)
os.remove(path .. ".safetensors")
