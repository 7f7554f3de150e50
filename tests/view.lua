-- SPDX-License-Identifier: MIT
-- Views, and tensors joined: shapes, sharing, every message.
-- Run by: nacre tests/view.lua

local dtypes = { "bool", "uint8", "int8", "int16", "int32", "int64",
                 "float16", "bfloat16", "float32", "float64" }
local minint, maxint = math.mininteger, math.maxinteger
local odd = { 0, 1, -1, 2, -2, 9, -9, 127, 128, 255, 256, 65536, 1 << 31,
              -(1 << 31), 1 << 32, 1 << 61, 1 << 62, minint, minint + 1,
              maxint, maxint - 1 }

-- The call fails; its message has the text, its hint is this one.
local function fails(text, hint, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok, "no error; expected: " .. text)
  assert(tostring(e):find(text, 1, true),
         ("%q is not in %q"):format(text, tostring(e)))
  assert(not hint or e.hint == hint, ("hint: %q"):format(e.hint))
  return e
end

local function text(v)
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = text(x) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function shape(t, ...)
  assert(text(t:size()) == text { ... },
         ("shape %s, not %s"):format(text(t:size()), text { ... }))
end

-- The elements, as written without blanks.
local function is(t, want)
  local got = text(t:totable())
  assert(got == want, ("%s, not %s"):format(got, want))
end

local function shares(a, b)
  return nacre._storage_id(a) == nacre._storage_id(b)
end

-- y is a view of x: what is written to it, x has too.
local function view(x, y)
  assert(shares(x, y))
  if y:numel() > 0 then
    local keep = x:clone()
    y:fill_(-7)
    assert(not x:equal(keep))
    x:copy_(keep)
  end
  return y
end

local function range(...)
  local n = 1
  for _, s in ipairs { ... } do n = n * s end
  return nacre.arange(n):reshape(...)
end

local a = range(3, 4)
local scalar = nacre.tensor(5)
local empty = nacre.zeros(0, 3)
local eight = range(1, 2, 1, 2, 1, 2, 1, 2)

do -- view: sizes
  shape(view(a, a:view(4, 3)), 4, 3)
  shape(a:view { 2, 6 }, 2, 6)
  shape(a:view { shape = { 12 } }, 12)
  shape(a:view(2, -1), 2, 6)
  shape(a:view(-1), 12)
  shape(a:view(2, 1, 3, 1, 2), 2, 1, 3, 1, 2)
  shape(a:view(1, 1, 1, 1, 1, 1, 1, -1), 1, 1, 1, 1, 1, 1, 1, 12)
  is(a:view(2, 6), "{{0,1,2,3,4,5},{6,7,8,9,10,11}}")
  shape(scalar:view(1, 1), 1, 1)
  shape(scalar:view(-1), 1)
  shape(nacre.ones(1, 1):view {}, nil)
  shape(empty:view(3, 0), 3, 0)
  shape(empty:view(-1), 0)
  shape(empty:view(5, 0, 7), 5, 0, 7)
  shape(empty:view(2, -1), 2, 0)
  shape(eight:view(-1), 16)
end

do -- view: what does not fit
  local e = fails("view: 2x5 has 10 elements, the tensor has 12",
                  "self:view(2,6), or self:view(2,-1) to have it worked out",
                  a.view, a, 2, 5)
  assert(e.op == "view" and e.args[1].role == "self" and
         rawequal(e.args[1].tensor, a))
  fails("view: 5x2 has 10 elements, the tensor has 12",
        "self:view(6,2), or self:view(-1,2) to have it worked out",
        a.view, a, 5, 2)
  assert(fails("view: 5x7 has 35 elements, the tensor has 12", nil,
               a.view, a, 5, 7).hint == nil)
  fails("view: 5x-1: 12 elements do not divide by 5", nil, a.view, a, 5, -1)
  fails("view: 0x-1: 12 elements do not divide by 0", nil, a.view, a, 0, -1)
  fails("view: sizes 1 and 3 are both -1, one can be worked out", nil,
        a.view, a, -1, 2, -1)
  fails("view: size -2 of dim 2 is negative", nil, a.view, a, 6, -2)
  fails("view: 9 dimensions, the most is 8", nil,
        a.view, a, 1, 1, 1, 1, 1, 1, 1, 1, 12)
  fails("view: 0x-1: any size does for -1, as there are no elements", nil,
        empty.view, empty, 0, -1)
  fails("view: 4611686018427387904x4 has 1.84e+19 elements, the tensor has 12",
        nil, a.view, a, 1 << 62, 4)
  fails("view: 4611686018427387904x4x0: its sizes are too large", nil,
        empty.view, empty, 1 << 62, 4, 0)
  fails("view: [4x3] with strides 1,4 cannot be seen as [12] without a copy",
        "self:reshape(12)", function() a:t():view(12) end)
  fails("view: 2x3 has 6 elements, the tensor has 1", nil, scalar.view,
        scalar, 2, 3)
end

do -- view: strides that allow it, or not
  local b = range(4, 6)
  shape(view(b, b:narrow(1, 2, 2):view(12)), 12)
  shape(view(b, b:narrow(2, 1, 4):view(4, 2, 2)), 4, 2, 2)
  fails("cannot be seen as [16]", "self:reshape(16)", function()
    b:narrow(2, 1, 4):view(16)
  end)
  shape(view(b, b:t():view(2, 3, 4)), 2, 3, 4)
  is(b:t():view(2, 3, 4)[2], "{{3,9,15,21},{4,10,16,22},{5,11,17,23}}")
  shape(b:slice(2, 1, -1, 2):view(4, 3, 1), 4, 3, 1)
  shape(b:slice(2, 1, -1, 2):view(12), 12)   -- every second of all
  local e = nacre.tensor { 1, 2 }:expand(3, 2)
  fails("cannot be seen as [6]", nil, e.view, e, 6)
  shape(e:view(3, 1, 2), 3, 1, 2)
  shape(nacre.ones(1, 1):expand(3, 4):view(12), 12)
end

do -- reshape
  assert(shares(a, a:reshape(12)))
  local r = a:t():reshape(12)
  assert(not shares(a, r))
  is(r, "{0,4,8,1,5,9,2,6,10,3,7,11}")
  is(a:t():reshape(2, -1), "{{0,4,8,1,5,9},{2,6,10,3,7,11}}")
  fails("reshape: 2x5 has 10 elements, the tensor has 12",
        "self:reshape(2,6), or self:reshape(2,-1) to have it worked out",
        a.reshape, a, 2, 5)
  shape(a:reshape_as(nacre.zeros(6, 2)), 6, 2)
  shape(view(a, a:view_as(nacre.zeros(6, 2))), 6, 2)
  local e = fails("view_as: 5x2 has 10 elements, the tensor has 12", nil,
                  a.view_as, a, nacre.zeros(5, 2))
  assert(e.args[2].role == "arg 1" and text(e.args[2].shape) == "{5,2}")
  fails("reshape_as: 5 has 5 elements", nil, a.reshape_as, a, nacre.zeros(5))
  shape(nacre.reshape(a, { 4, 3 }), 4, 3)
end

do -- flatten, unflatten
  local b = range(2, 3, 4)
  shape(b:flatten(), 24)
  shape(view(b, b:flatten(2)), 2, 12)
  shape(b:flatten(1, 2), 6, 4)
  shape(b:flatten(-2, -1), 2, 12)
  shape(b:flatten { end_dim = 2 }, 6, 4)
  shape(b:flatten(2, 2), 2, 3, 4)
  shape(scalar:flatten(), 1)
  shape(empty:flatten(), 0)
  is(b:transpose(1, 3):flatten(1, 2)[3], "{8,20}")
  fails("flatten: start_dim 3 comes after end_dim 1", nil, b.flatten, b, 3, 1)
  fails("flatten: dim 4 is outside a tensor of 3 dimensions", nil,
        b.flatten, b, 1, 4)
  fails("flatten: dim 0: dimensions are counted from 1",
        "1 is the first dimension, -1 the last", b.flatten, b, 0)
  shape(view(b, b:unflatten(3, { 2, 2 })), 2, 3, 2, 2)
  shape(b:unflatten(-1, { -1, 2 }), 2, 3, 2, 2)
  shape(b:unflatten(2, { 3, 1 }), 2, 3, 1, 4)
  is(b:t_():size() and b or b, text(b:totable()))
end
