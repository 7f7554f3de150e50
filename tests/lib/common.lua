-- SPDX-License-Identifier: MIT
-- What several tests share: assertions about tensors and failures, dtypes, and
-- numbers that are no good as sizes or indices.
--   local C = dofile(here .. "common.lua")

local ints = {"uint8", "int8", "int16", "int32", "int64"}
local floats = {"float16", "bfloat16", "float32", "float64"}
local dtypes = {"bool", table.unpack(ints)}
table.move(floats, 1, #floats, #dtypes + 1, dtypes)
local minint, maxint = math.mininteger, math.maxinteger
local odd = {0, 1, -1, 2, -2, 9, -9, 127, 128, 255, 256, 65536, 1 << 31,
             -(1 << 31), 1 << 32, 1 << 61, 1 << 62, minint, minint + 1,
             maxint, maxint - 1}

-- A device may find out later what is wrong.
local function call_and_wait(f, ...)
  f(...)
  nacre.synchronize()
end

local function works(f, ...) return (pcall(call_and_wait, f, ...)) end

-- fails(text, [hint,] f, ...): the call fails with a message that has the
-- text, and with this hint; a text "ECODE: ..." begins with the error's code.
-- The error.
local function fails(text, hint, ...)
  if hint ~= nil and type(hint) ~= "string" then
    return fails(text, nil, hint, ...)
  end
  local ok, e = pcall(call_and_wait, ...)
  assert(not ok, "no error; expected: " .. text)
  local code, rest = text:match "^(E%u+): (.*)$"
  assert(not code or e.code == code, ("%s wanted: %s"):format(code, e))
  text = rest or text
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

-- The same value?
local function eq(got, want)
  assert(got == want, ("%s, not %s"):format(got, want))
end

local function shape(t, ...)
  assert(text(t:size()) == text {...},
         ("shape %s, not %s"):format(text(t:size()), text {...}))
end

-- The elements, as written without blanks.
local function is(t, want)
  local got = text(t:totable())
  assert(got == want, ("%s, not %s"):format(got, want))
end

-- Tensors of one dtype and shape with the same elements, or within a tolerance;
-- with `nan', one is like another.
local function same(got, want, what, tolerance, nan)
  local e = tolerance or 0
  local exact = want:is_complex() and "complex128" or "float64"
  assert(nacre.is_tensor(got) and got.dtype == want.dtype and
         text(got:size()) == text(want:size()) and
         nacre.allclose(got:to(want.device, exact), want:to(exact), e, e,
                        nan == true),
         ("%s: %s, not %s"):format(what or "values", got, want))
end

-- A tensor of float64 that gets a gradient.
local function leaf(v)
  return nacre.tensor(v, {dtype = "float64", requires_grad = true})
end

local function shares(a, b)
  return nacre._storage_id(a) == nacre._storage_id(b)
end

-- The gradients of f at these tensors, and theirs, are as differences say.
local function grads(what, f, ...)
  local grad = nacre.autograd
  local ok, e = pcall(grad.gradcheck, f, {...})
  assert(ok, what .. ": " .. tostring(e))
  ok, e = pcall(grad.gradgradcheck, f, {...})
  assert(ok, what .. ", second: " .. tostring(e))
end

-- Bytes that tensors hold, on all devices.
local function live()
  collectgarbage()
  collectgarbage()
  nacre.empty_cache()
  local n = 0
  for _, m in ipairs(nacre._devices()) do n = n + m.live end
  return n
end

-- 0, 1, 2, ... in the given shape.
local function range(...)
  local n = 1
  for _, s in ipairs {...} do n = n * s end
  return nacre.arange(n):reshape(...)
end

-- The bytes of a file.
local function write(name, bytes)
  local f <close> = assert(io.open(name, "wb"))
  assert(f:write(bytes))
end

local function read(name)
  local f <close> = assert(io.open(name, "rb"))
  return f:read "a"
end

return {dtypes = dtypes, ints = ints, floats = floats, odd = odd, eq = eq,
        fails = fails, works = works, text = text, range = range, read = read,
        write = write, live = live, shape = shape, is = is, shares = shares,
        grads = grads, same = same, leaf = leaf}
