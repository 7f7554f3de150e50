-- SPDX-License-Identifier: MIT
-- Huge, negative and odd numbers in every numeric argument of every
-- operation: a result or an error, no crash, no overflow (run it under UBSan),
-- nothing huge allocated. Generated from the signatures.
-- Run by: nacre tests/ops/extreme_arguments.lua [some]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local C = dofile(here .. "../lib/small_calls.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check

local LIMIT = 1 << 28
nacre.set_memory_limit(LIMIT)

local values = {0, 1, -1, 2, -2, 7, 8, 9, -8, -9, 63, 64, 65, 1 << 62,
                math.maxinteger, math.maxinteger - 1, math.mininteger,
                math.mininteger + 1, 1.5, -1.5, 2.0, 1e300, -1e300, 0x1p63,
                -0x1p63, 0 / 0, math.huge, -math.huge}
for _, k in ipairs {31, 32, 53} do
  for d = -1, 1 do
    values[#values + 1] = (1 << k) + d
    values[#values + 1] = -(1 << k) + d
  end
end
local fewer = {0, 1, -1, 2, 1 << 31, 1 << 32, 1 << 62, math.maxinteger,
               math.mininteger}
if arg and arg[1] == "some" then values = fewer end

local calls, results = 0, 0

-- The call gives a result or a plain error.
local function try(what, f, ...)
  calls = calls + 1
  local ok, e = O.try(f, ...)
  if ok then
    results = results + 1
    if nacre.is_tensor(e) then
      check(e.ndim <= 8, "%s: %d dims", what, e.ndim)
      for d = 1, e.ndim do
        check(e:size(d) >= 0, "%s: size %d", what, e:size(d))
      end
    end
    return
  end
  check(type(e) == "table" and type(e.message) == "string" and
        e.code ~= "EINTR",
        "%s: %s", what, tostring(e))
end

local numeric = {dim = true, dims = true, index = true, int = true,
                 ints = true,
                 size = true, num = true, operand = true, dimortensor = true}

-- What a parameter may hold that is made of v.
local function forms(p, v)
  if p.type == "size" then
    return {v, {v}, {v, v}, {0, v}, {v, 0}, {2, v}, {v, 2},
            {1, v, 1}, {v, -1}, {-1, v}, {-1, -1}, {0, -1},
            {v, v, v, v, v, v, v, v},
            {1, 1, 1, 1, 1, 1, 1, 1, v}, {0, v, v, v}}
  elseif p.type == "dims" or p.type == "ints" then
    return {v, {v}, {v, v}, {1, v}, {v, 1}}
  end
  return {v}
end

-- Operands in place of the usual 2x2.
local shapes = {
  function(t) return t end,
  function(t) return t.ndim == 2 and t:select(1, 1):select(1, 1) or t end,
  function(t) return t.ndim == 2 and t:narrow(1, 1, 0) or t end,
  function(t) return t.ndim == 2 and t:t() or t end,
  function(t) return t.ndim == 2 and t:narrow(1, 1, 1):expand(5, 2) or t end,
}

local function samples(op, shape)
  local args = C.sample(op, true)
  for i, v in ipairs(args) do
    if nacre.is_tensor(v) then args[i] = shape(v) end
  end
  return args
end

local function positional(op, shape, list)
  local args, f = samples(op, shape), op.f or op.method
  for i, p in ipairs(op.params) do
    if numeric[p.type] and i <= #args then
      for _, v in ipairs(list) do
        for _, form in ipairs(forms(p, v)) do
          local z = table.move(args, 1, #args, 1, {})
          z[i] = form
          local what = ("%s: %s = %s"):format(op.name, p.name, tostring(v))
          try(what, f, table.unpack(z))
          try(what, f, table.unpack(z, 1, i))
        end
      end
    end
  end
end

local function named(op, list)
  local f = op.f or op.method
  for _, p in ipairs(op.params) do
    if p.byname and numeric[p.type] then
      for _, v in ipairs(list) do
        local z = C.sample(op)
        z[#z + 1] = {[p.name] = v}
        try(op.name .. ": " .. p.name, f, table.unpack(z))
      end
    end
  end
end

-- Two arguments at once.
local function pairwise(op)
  local f = op.f or op.method
  local args = C.sample(op, true)
  for i, p in ipairs(op.params) do
    for j = i + 1, #args do
      local q = op.params[j]
      if numeric[p.type] and q and numeric[q.type] then
        for _, v in ipairs(fewer) do
          for _, w in ipairs(fewer) do
            local z = table.move(args, 1, #args, 1, {})
            z[i], z[j] = v, w
            try(op.name .. " of two", f, table.unpack(z))
          end
        end
      end
    end
  end
end

collectgarbage()
collectgarbage()
nacre.empty_cache()
for _, op in ipairs(C.all()) do
  for i, shape in ipairs(shapes) do
    positional(op, shape, i == 1 and values or fewer)
  end
  named(op, values)
  pairwise(op)
end
check(nacre._memory().peak <= LIMIT, "peak: %d", nacre._memory().peak)
check(calls > 20000 and results > 2000, "%d calls, %d results", calls, results)

-- ---- numbers in rows of every type, and their parameters

for _, dtype in ipairs(O.dtypes) do
  local t = nacre.ones(3, {dtype = dtype})
  for _, v in ipairs(values) do
    for _, name in ipairs {"add", "sub", "mul", "div", "floor_divide",
                           "remainder",
                           "fmod", "pow", "maximum", "eq", "lt", "bitwise_and",
                           "bitwise_left_shift", "bitwise_right_shift",
                               "where",
                           "trunc_divide", "addcmul"} do
      local f = nacre[name]
      if name == "where" then try(name, f, t:ne(0), t, v)
      elseif name == "addcmul" then try(name, f, t, t, t, {value = v})
      else
        try(name, f, t, v)
        try(name, f, v, t)
      end
    end
    try("add alpha", t.add, t, t, {alpha = v})
    try("fill_", t.fill_, t:clone(), v)
    try("full", nacre.full, 3, v, {dtype = dtype})
    try("tensor", nacre.tensor, {v}, {dtype = dtype})
    try("clamp", t.clamp, t, v, v)
  end
end

-- ---- indexing

local t = nacre.arange(6):view(2, 3)
for _, v in ipairs(values) do
  try("t[v]", function() return t[v] end)
  try("t[v] = 1", function() t[v] = 1 end)
  try("t[{v, v}]", function() return t[{v, v}] end)
  try("t(v, v)", function() return t(v, v) end)
  try("t:size(v)", t.size, t, v)
  try("t:stride(v)", t.stride, t, v)
  for _, w in ipairs(fewer) do
    try("t[{{v, w}}]", function() return t[{{v, w}}] end)
    try("t[{{}, {v, w, v}}]", function() return t[{{}, {v, w, v}}] end)
    try("t[{{1, 2, v}}]", function() return t[{{1, 2, v}}] end)
    try("t['v:w']", function() return t[("%s:%s"):format(v, w)] end)
    try("t['::v']", function() return t[("::%s, %s"):format(v, w)] end)
    try("t[{{v, w}}] = 0", function() t[{{v, w}}] = 0 end)
  end
  local ok, index = pcall(nacre.tensor, {v, 1})
  if ok then
    try("t[tensor]", function() return t[index] end)
    try("t[tensor] = 1", function() t[index] = 1 end)
  end
end
try("9 indices", function() return t(1, 1, 1, 1, 1, 1, 1, 1, 1) end)
try("long text", function() return t[("1,"):rep(1000) .. "1"] end)

-- ---- shapes

fails("ones", nacre.ones, 1 << 31, 1 << 31)
fails("ones", nacre.ones, 1 << 32, 1 << 32)
fails("", nacre.ones, 0, 1 << 62, 1 << 62)
fails("", nacre.tensor, {{{{{{{{{1}}}}}}}}})
check(nacre.zeros(0, 1 << 40):numel() == 0, "a zero dim beside a huge one")
local wide = nacre.ones(1):expand(1 << 58)
check(wide:numel() == 1 << 58, "an expanded view may be huge")
for _, name in ipairs {"clone", "contiguous", "exp", "neg", "nonzero",
                       "cumsum"} do
  if name ~= "nonzero" then
    fails(name, wide[name], wide, name == "cumsum" and 1 or nil)
  end
end
fails("", wide.to, wide, "float64")
fails("add", wide.add, wide, wide)
fails("", wide.reshape, wide, 1 << 30, 1 << 30, 3)
fails("cat", nacre.cat, {wide, wide})
fails("cat", nacre.cat,
       (function()
         local list = {}
         for i = 1, 40 do list[i] = wide end
         return list
       end)())
fails("outer", wide.outer, wide, wide)
fails("", wide.totable, wide)
check(wide:narrow(1, 1 << 57, 3):sum():item() == 3, "a part of a huge view")
check(wide[1 << 58] == 1 and wide[-1] == 1, "ends of a huge view")
fails("ENOMEM: zeros", nacre.zeros, 1 << 28)
check(nacre._memory().peak <= LIMIT, "peak: %d", nacre._memory().peak)
nacre.set_memory_limit(0)

O.done "extreme_arguments"
