-- SPDX-License-Identifier: MIT
-- complex.lua - complex numbers and tensors from parts, and their angles.

local all = ...
local define, fail = all.define, all.fail

local function tensors_of(name, re, im)
  if nacre.is_tensor(re) and nacre.is_tensor(im) then
    if re.dtype == im.dtype and
       (re.dtype == "float32" or re.dtype == "float64") then
      return nacre.broadcast_tensors {re, im}
    end
    fail(name, ("needs two float32 or two float64 tensors, not %s and %s")
         :format(re.dtype, im.dtype))
  end
  fail(name, "needs two numbers or two tensors")
end

define("complex", "real:any, imag:any",
       "a complex number of two numbers, a complex tensor of two tensors",
function(re, im)
  if math.type(re) and math.type(im) then
    return nacre._complex_number(re, im)
  end
  return nacre.view_as_complex(nacre.stack(tensors_of("complex", re, im), -1))
end)

define("polar", "abs:any, angle:any",
       "the complex number, or tensor, of this absolute value and angle",
function(abs, angle)
  if math.type(abs) and math.type(angle) then
    return nacre._complex_number(abs * math.cos(angle), abs * math.sin(angle))
  end
  local both = tensors_of("polar", abs, angle)
  return nacre.complex(both[1] * both[2]:cos(), both[1] * both[2]:sin())
end)

define("angle", "self",
       "the angle of complex numbers, in (-pi, pi]; of real ones 0 or pi",
function(self)
  if self:is_complex() then return nacre.atan2(self.imag, self.real) end
  local x = self:is_floating_point() and self or
            self:to(nacre.get_default_dtype())
  return nacre.where(x:isnan(), x, nacre.where(x:lt(0), nacre.pi, x * 0))
end)

define("isreal", "self", "true where the imaginary part is 0",
function(self)
  if self:is_complex() then return self.imag:eq(0) end
  return nacre.ones_like(self, {dtype = "bool"})
end)

-- The conjugate is a copy here, never a mark on a view.
define("is_conj", "self -> boolean",
       "false: a conjugate is a copy, not a mark on a view",
       function() return false end)
define("resolve_conj", "self", "self: see is_conj",
       function(self) return self end)
define("conj_physical", "self:inplace", "another name of conj",
       function(self) return self:conj() end)
