-- SPDX-License-Identifier: MIT
-- Each operation either takes complex tensors or says that it does not, and
-- what to call: all that the library has are called with small real operands,
-- and if that succeeds with the same as complex numbers. A new operation needs
-- no line here.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local S = dofile(here .. "../lib/small_calls.lua")

local function as_complex(v)
  if nacre.is_tensor(v) then
    return v:is_floating_point() and v:to "complex64" or v
  end
  if type(v) ~= "table" then return v end
  local list = {}
  for key, e in pairs(v) do list[key] = as_complex(e) end
  return list
end

local taken, refused, wrong = 0, 0, {}

-- arguments: a function that makes them, since a call may write to them
local function try(name, f, arguments)
  local ok, args = pcall(arguments)
  if not ok or not pcall(f, table.unpack(args)) then return end
  local done, e = pcall(f, table.unpack(as_complex(arguments())))
  local text = type(e) == "table" and e.message or tostring(e)
  if done or text:find "is not positive definite" then
    taken = taken + 1
    return
  end
  refused = refused + 1
  if not (text:find "complex" and type(e) == "table" and
          (e.hint or text:find "; nacre%.")) then
    wrong[#wrong + 1] = ("%s: %s [%s]"):format(
      name, text, type(e) == "table" and e.hint or "no hint")
  end
end

local seen = {}
for _, op in ipairs(S.all()) do
  if op.f then
    seen[op.f] = true
    try(op.name, op.f, function() return S.sample(op) end)
  end
end

-- What is written in Lua, with the arguments that are needed.
local shapes = {{4}, {2, 2}, {1, 2, 4}, {1, 2, 4, 4}}
local function arguments(params, shape)
  return function()
    local args = {}
    for i, p in ipairs(params) do
      if p.optional or p.byname then break end
      local t = p.type
      args[i] = (t == "tensor" or t == "operand" or t == "inplace") and
                nacre.rand(shape) + 0.5 or S.value(p, "float32")
    end
    return args
  end
end

for _, space in ipairs {nacre._functions, nacre.linalg, nacre.nn.functional,
                        nacre.fft, nacre.special} do
  for name, f in next, space do
    local info = type(f) == "function" and nacre._info(f)
    local first = info and info.params and info.params[1]
    if first and not seen[f] and not name:find "^_" and
       (first.type == "tensor" or first.type == "operand" or
        first.type == "inplace") then
      for _, shape in ipairs(shapes) do
        try(("%s of [%s]"):format(name, table.concat(shape, "x")), f,
            arguments(info.params, shape))
      end
    end
  end
end

assert(taken > 200 and refused > 100,
       ("%d take complex tensors, %d do not"):format(taken, refused))
table.sort(wrong)
assert(#wrong == 0, ("%d of %d refusals do not say what to call:\n%s"):format(
       #wrong, refused, table.concat(wrong, "\n")))
print(("complex_refusals: passed (%d take them, %d do not)"):format(taken,
                                                                    refused))
