-- SPDX-License-Identifier: MIT
-- For the tests of parity: is the result of a call on a device the same as that
-- on the CPU? Integers are the same; floats are off by a few steps of their
-- dtype, relative to the largest that is around.
--   local same = dofile(here .. "compare.lua")
--   why = same.results(want, got, device, scale)   -- without scale: exactly

local S = {}

local STEP = {float16 = 2.0 ^ -10, bfloat16 = 2.0 ^ -7, float32 = 2.0 ^ -23,
              float64 = 2.0 ^ -52, complex64 = 2.0 ^ -23,
              complex128 = 2.0 ^ -52}
local NEAR, ROUNDED = 16, 64  -- steps of an element, and of the largest
local LOOKED = 1 << 20        -- elements of larger tensors are not compared
local SUMMED = 128            -- elements that may add another ROUNDED steps

local function largest(x)
  if x:numel() == 0 then return 0 end
  return nacre.where(x:isfinite(), x:abs(), 0.0):max():item()
end

-- The scale of rounding: the largest finite number of tensors, how often many
-- of them are more than a few, and the coarsest of their steps.
function S.scale(tensors)
  local most, n, step = 0, 0, 0
  for _, t in ipairs(tensors) do
    n = n + t:numel()
    step = math.max(step, STEP[t.dtype] or 0)
    t = t:detach():cpu()
    if t:is_complex() then t = nacre.view_as_real(t:reshape(-1)) end
    most = math.max(most, largest(t:double()))
  end
  return {most = most, terms = 1 + n // SUMMED, step = step}
end

local function text(v)
  return "{" .. table.concat(v, ",") .. "}"
end

local function first(want, got, bad)
  local at = bad:reshape(-1):nonzero()[{1, 1}]
  return ("%s, not %s, at %d of %d"):format(
    got:reshape(-1)[at], want:reshape(-1)[at], at, want:numel())
end

-- Elements of two tensors of the CPU, of one shape and dtype.
local elements

-- The parts of complex numbers; of some that are finite, as large as the larger
-- part allows. The sign of a part that is 0 depends on the order of a sum: a
-- transform, a product.
local function parts(want, got, scale)
  local known = S.scale {want}
  scale = scale and {most = math.max(scale.most, known.most),
                     terms = scale.terms, step = scale.step}
  want, got = nacre.view_as_real(want:reshape(-1)),
              nacre.view_as_real(got:reshape(-1))
  if scale then want, got = want + 0.0, got + 0.0 end
  return elements(want, got, scale)
end

function elements(want, got, scale)
  if want:is_complex() then return parts(want, got, scale) end
  if not STEP[want.dtype] then
    if nacre.equal(want, got) then return end
    return first(want, got, want:ne(got))
  end
  local step = math.max(STEP[want.dtype], scale and scale.step or 0)
  local a, b = want:double(), got:double()
  local fine = a:eq(b) | a:isnan() & b:isnan()
  if scale then
    local most = math.max(scale.most, largest(a)) * scale.terms
    local limit = a:abs() * (NEAR * step) + ROUNDED * step * most
    fine = fine | (a - b):abs():le(limit)
  end
  fine = fine & (a:ne(0) | b:ne(0) | a:signbit():eq(b:signbit()))
  if not fine:all():item() then return first(want, got, fine:logical_not()) end
end

local function onething(what, a, b)
  if a ~= b then return ("%s %s, not %s"):format(what, b, a) end
end

function S.tensors(want, got, device, scale)
  local away = want.device ~= "cpu" and want.device or device
  local why = onething("dtype", want.dtype, got.dtype) or
    onething("size", text(want:size()), text(got:size())) or
    onething("strides", text(want:stride()), text(got:stride())) or
    onething("offset", want:storage_offset(), got:storage_offset()) or
    onething("device", away, got.device) or
    onething("requires_grad", want.requires_grad, got.requires_grad)
  if why or want:numel() > LOOKED then return why end
  return elements(want:detach(), got:detach():cpu(), scale)
end

local function number(want, got, scale)
  local off = math.abs(want - got)
  if want == got or want ~= want and got ~= got or
     scale and math.type(want) == "float" and
     off <= 1e-5 * scale.terms * math.max(scale.most, math.abs(want)) then
    return
  end
  return ("%s, not %s"):format(got, want)
end

-- As if of the CPU, without the memory that things are at or that is left, and
-- how often something was written to.
local function plain(s)
  return (s:gsub("cuda:0", "cpu"):gsub("0x%x+", "0x"):gsub("; cpu has .*", "")
           :gsub(": it is at version %d+, expected %d+", ""))
end

function S.results(want, got, device, scale)
  if type(want) ~= type(got) then
    return ("%s, not %s"):format(tostring(got), tostring(want))
  elseif nacre.is_tensor(want) then
    if not nacre.is_tensor(got) then return "no tensor" end
    return S.tensors(want, got, device, scale)
  elseif type(want) == "number" then
    return number(want, got, scale)
  elseif type(want) == "table" then
    for key, v in pairs(want) do
      local why = S.results(v, got[key], device, scale)
      if why then return ("%s: %s"):format(key, why) end
    end
    for key in pairs(got) do
      if want[key] == nil then return ("%s: one more"):format(key) end
    end
  elseif type(want) == "string" then
    return onething("text", plain(want), plain(got))
  elseif type(want) == "boolean" then
    return onething("value", want, got)
  end
end

-- What an error says, without where it happened.
function S.message(e)
  local s = type(e) == "table" and e.message or tostring(e)
  return (plain(s):gsub("^[^ ]+%.lua:%d+: ", ""))
end

return S
