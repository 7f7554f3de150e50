-- SPDX-License-Identifier: MIT
-- checks.lua - what the operations written in Lua share: checks of dtypes and
-- dimensions, computing in float32, options for new tensors. `op' is the
-- operation that an error names, `name' what the tensor is called.

local all = ...
local fail = all.fail

-- A define for the functions of a table: definer "linalg." (name, ...).
function all.definer(prefix)
  return function(name, ...) return all.define(prefix .. name, ...) end
end

-- "1 element", "2 elements"
function all.elements(n)
  return ("%d element%s"):format(n, n == 1 and "" or "s")
end

-- The options for a tensor with the dtype and on the device of t.
function all.like(t) return {dtype = t.dtype, device = t.device} end

-- A list of the dimensions of t that are given: nil (all), a number or a list.
-- Those that count from the end are counted from the start. Fails for one that
-- is there twice.
function all.list_dims(op, t, dims)
  local list, seen = {}, {}
  if dims == nil then
    for d = 1, t:dim() do list[d] = d end
    return list
  end
  for i, d in ipairs(type(dims) == "table" and dims or {dims}) do
    d = d < 0 and d + t:dim() + 1 or d
    if seen[d] then fail(op, ("dimension %d is given twice"):format(d)) end
    list[i], seen[d] = d, true
  end
  return list
end

-- Fails unless the argument called `name' is a tensor.
function all.check_tensor(op, t, name)
  if nacre.is_tensor(t) then return end
  local kind = t == nil and "nothing" or "a " .. type(t)
  fail(op, ("%s must be a tensor, not %s"):format(name, kind),
       {cause = "tensor", name = name, got = type(t)})
end

-- A hint for a tensor that must not be complex.
all.real_hint = "{%s}:abs(), {%s}.real and {%s}.imag are real"

function all.check_float(op, t, name)
  if not t:is_floating_point() then
    fail(op, ("{%s} is %s, expected a float dtype"):format(name, t.dtype),
         t:is_complex() and all.real_hint:gsub("%%s", name) or nil, name, t)
  end
end

-- Fails for a complex tensor.
function all.check_real(op, t, name)
  if t:is_complex() then
    fail(op, ("{%s} is %s, but must be real"):format(name, t.dtype),
         (all.real_hint:gsub("%%s", name)), name, t)
  end
end

-- The norms of order p of a - b + eps along the last dimension.
function all.distance(a, b, p, eps, keepdim)
  if not (a:is_complex() or b:is_complex()) then
    return nacre._distance(a, b, p, eps, keepdim)
  end
  return nacre.norm(a - b + eps, p, -1, keepdim)
end

-- Fails unless t has one of these numbers of dimensions.
function all.check_dims(op, t, name, ...)
  local want = {...}
  all.check_tensor(op, t, name)
  for _, n in ipairs(want) do if t:dim() == n then return end end
  fail(op, ("{%s} has %d dimensions, not %s"):format(name, t:dim(),
            table.concat(want, " or ")), nil, name, t)
end

function all.check_min_dims(op, t, name, n)
  all.check_tensor(op, t, name)
  if t:dim() < n then
    fail(op, ("{%s} has %d dimension%s, at least %d are needed")
             :format(name, t:dim(), t:dim() == 1 and "" or "s", n), nil, name,
         t)
  end
end

local half = {float16 = true, bfloat16 = true}
all.is_half = half

-- The dtype, or nil, to which a region of autocast lowers t.
local function lower_dtype(t)
  local casts = t.dtype == "float32" or half[t.dtype]
  return casts and nacre._autocast_dtype(t.is_cuda) or nil
end

-- A region of autocast converts float32 and halves.
function all.check_same_dtype(op, name_a, a, name_b, b)
  if a.dtype ~= b.dtype and not (lower_dtype(a) and lower_dtype(b)) then
    fail(op, ("dtypes differ: {%s} is %s, {%s} is %s")
             :format(name_a, a.dtype, name_b, b.dtype), nil, name_a, a, name_b,
         b)
  end
end

-- t, or in a region of autocast its lower dtype, for operations that check
-- dtypes before the products that they are made of.
function all.lowered(t)
  local lower = lower_dtype(t)
  return lower and t:to(lower) or t
end

-- t, or float16 and bfloat16 as float32, for a computation; and its result y in
-- the dtype of t.
function all.widen(t) return half[t.dtype] and t:to("float32") or t end
function all.convert_back(y, t) return y:to(t.dtype) end

-- Are its elements integers? Those of bool are not.
function all.is_exact(t)
  return not t:is_floating_point() and t.dtype ~= "bool"
end

-- Raises an error for more layers than any network has: making them would not
-- end.
function all.check_layers(op, name, n)
  if n <= 65536 then return end
  fail(op, ("%s is %d, but can be at most 65536"):format(name, n))
end

-- Is an element of t, of bool, true? Yes, too, where the program would have to
-- wait for the answer, on a device, and in a dry run, which has none.
function all.may_be(t)
  if t.is_cuda then return true end
  local ok, some = pcall(t.item, t:any())
  return not ok or some
end

-- Is an element of t infinite or nan? Yes, too, where their sum overflows, and
-- where may_be says so.
function all.may_be_infinite(t)
  return all.may_be(t:detach():sum():isfinite():logical_not())
end

-- Raises an error if there is no memory for a tensor of this size on the device
-- of `like'. An operation that builds its result from parts calls it first, so
-- that it fails before it has created many of them.
function all.room(op, like, size, dtype)
  local ok, t = pcall(nacre.empty, size, {dtype = dtype or like.dtype,
                                          device = like.device})
  if ok then return t:free() end
  if type(t) == "table" then t.op = op end
  error(t, 0)
end

-- What methods of Python are called here.
local methods = {__init__ = "init", __init = "init", __call__ = "forward",
                 __len__ = "len", __getitem__ = "get"}

-- Fails if a class of the user gets a method under a name that is never called.
function all.check_method_name(class, key)
  if methods[key] then
    fail(class, ("nothing calls %s"):format(key),
         ("function %s:%s(...)"):format(class, methods[key]))
  end
end
