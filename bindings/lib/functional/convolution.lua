-- SPDX-License-Identifier: MIT
-- convolution.lua - convolutions of nacre.nn.functional, unfold and fold. The
-- core computes convolutions of planes (_conv, _conv_input); a signal is a
-- plane with one row, and a volume is computed plane by plane.
--
-- All inputs are of one float dtype, with or without a batch dimension. The
-- functions fail for other numbers of dimensions, for different dtypes, and for
-- sizes that do not match; the error names both sizes. pooling.lua
-- uses all.image.

local all = ...
all.require "nacre.checks"
local fail, like = all.fail, all.like
local check_float, check_dims = all.check_float, all.check_dims
local check_same_dtype = all.check_same_dtype

local define = all.definer "nn.functional."

-- The integer v, or the list v of 1 or n integers, as a list of n. Fails if one
-- is less than `least'.
local function several(op, name, v, n, least)
  local list = {}
  if type(v) == "table" and #v ~= n and #v ~= 1 then
    fail(op, ("%s has %d numbers, not %d"):format(name, #v, n))
  end
  for i = 1, n do
    local n = type(v) == "table" and (v[i] or v[1]) or v
    list[i] = type(n) == "number" and math.tointeger(n)
    if not list[i] then fail(op, name .. " must be an integer or a list") end
    if list[i] < least then
      fail(op,
           ("%s is %d, but must be %d or more"):format(name, list[i], least))
    end
  end
  return list
end

-- Applies f to a tensor of nd dimensions. One of nd - 1 dimensions becomes a
-- batch of one, and the results lose that dimension again.
local function batched(t, nd, f)
  if t:dim() == nd then return f(t) end
  local y, at = f(t:unsqueeze(1))
  -- return one value, not a second one that is nil
  if not at then return y:squeeze(1) end
  return y:squeeze(1), at:squeeze(1)
end

-- t followed by n zeros along dim.
local function extended(t, dim, n)
  if n == 0 then return t end
  local size = t:size()
  size[dim] = n
  return nacre.cat({t, nacre.zeros(size, like(t))}, dim)
end

-- ---- convolutions

-- Checks dtypes, dimensions and channels of a convolution, of nd spatial
-- dimensions.
local function checkconv(op, x, w, bias, nd, groups, transposed)
  check_dims(op, x, "input", nd + 1, nd + 2)
  check_dims(op, w, "weight", nd + 2)
  check_float(op, x, "input")
  check_same_dtype(op, "input", x, "weight", w)
  if bias then check_same_dtype(op, "input", x, "bias", bias) end
  if groups < 1 then
    fail(op, ("groups is %d, but must be 1 or more"):format(groups))
  end
  local have, want = x:size(-nd - 1),
    transposed and w:size(1) or w:size(2) * groups
  if have ~= want then
    fail(op, ("{input} has %d channel%s, the {weight} takes %d in %d group%s")
             :format(have, have == 1 and "" or "s", want, groups,
                     groups == 1 and "" or "s"),
         nil, "input", x, "weight", w)
  end
  local out = transposed and w:size(2) * groups or w:size(1)
  if not transposed and out % groups ~= 0 then
    fail(op, ("{weight} has %d kernels, not divisible by %d groups")
             :format(out, groups), nil, "weight", w)
  end
  if bias and (bias:dim() ~= 1 or bias:size(1) ~= out) then
    fail(op, "{bias} must have " .. all.elements(out), nil, "bias", bias)
  end
end

-- The padding that keeps the size, for stride 1. An odd total is padded by one
-- more zero at the end.
local function same_padding(op, x, w, stride, dilation, nd)
  local padding = {}
  for i = 1, nd do
    if stride[i] ~= 1 then
      fail(op, 'padding "same" needs stride 1, not ' .. stride[i])
    end
    local total = dilation[i] * (w:size(2 + i) - 1)
    padding[i] = total // 2
    if total % 2 == 1 then
      x = extended(x, x:dim() - nd + i, 1)
    end
  end
  return x, padding
end

local function add_bias(y, bias, nd)
  if not bias then return y end
  local size = {-1}
  for i = 1, nd do size[i + 1] = 1 end
  return y:add_(bias:reshape(size))
end

local function plane(list, fill)          -- a signal as a plane with one row
  return #list == 2 and list or {fill, list[1]}
end

-- Stride, padding, dilation and output size, interleaved by dimension, for the
-- core.
local function geometry(stride, padding, dilation, size)
  local list = {}
  for i, two in ipairs {stride, padding, dilation, size or {1, 1}} do
    two = plane(two, i == 2 and 0 or 1)
    list[2 * i - 1], list[2 * i] = two[1], two[2]
  end
  return list
end

-- Fails if a kernel of extent `reach' exceeds the padded input.
local function checkfit(op, x, dim, reach, padding)
  local n = x:size(dim)
  if n + 2 * padding < reach then
    fail(op, ("a kernel that reaches over %d does not fit in %d elements "
              .. "with padding %d"):format(reach, n, padding), nil, "input", x)
  end
end

-- The checked arguments of a convolution: the input, which "same" may extend,
-- and stride, padding and dilation as lists.
local function convarguments(op, nd, x, w, bias, stride, padding, dilation,
                             groups)
  checkconv(op, x, w, bias, nd, groups)
  stride = several(op, "stride", stride, nd, 1)
  dilation = several(op, "dilation", dilation, nd, 1)
  if padding == "same" then
    x, padding = same_padding(op, x, w, stride, dilation, nd)
  elseif padding == "valid" then padding = several(op, "padding", 0, nd, 0)
  elseif type(padding) == "string" then
    fail(op, ("padding must be numbers, \"same\" or \"valid\", not '%s'")
             :format(padding))
  else padding = several(op, "padding", padding, nd, 0) end
  return x, stride, padding, dilation
end

-- x [n x c x ...], w [o x c/groups x k...] give [n x o x ...], each spatial
-- size (size + 2 padding - dilation (k - 1) - 1) // stride + 1.
local function convolution(op, nd, x, w, bias, stride, padding, dilation,
                           groups)
  x, stride, padding, dilation =
    convarguments(op, nd, x, w, bias, stride, padding, dilation, groups)
  for i = 1, nd do
    checkfit(op, x, i - nd - 1, dilation[i] * (w:size(2 + i) - 1) + 1,
             padding[i])
  end
  return batched(x, nd + 2, function(t)
    if nd == 1 then t, w = t:unsqueeze(-2), w:unsqueeze(-2) end
    local y = nacre._conv(t, w, geometry(stride, padding, dilation), groups,
                          bias)
    return nd == 1 and y:squeeze(-2) or y
  end)
end

-- A 3-d convolution as one of planes: the planes that a kernel covers along the
-- depth become additional channels.
local function volume(op, nd, x, w, bias, stride, padding, dilation, groups)
  x, stride, padding, dilation =
    convarguments(op, nd, x, w, bias, stride, padding, dilation, groups)
  return batched(x, nd + 2, function(t)
    local k = w:size(3)
    local reach = dilation[1] * (k - 1) + 1
    if padding[1] > 0 then
      t = t:pad({0, 0, 0, 0, padding[1], padding[1]})
    end
    checkfit(op, t, 3, reach, 0)
    -- [n x c x d x h x w x k], then [n*d x c*k x h x w]
    t = t:unfold(3, reach, stride[1]):slice(6, 1, -1, dilation[1])
    local n, d = t:size(1), t:size(3)
    t = t:permute(1, 3, 2, 6, 4, 5)
         :reshape(n * d, t:size(2) * k, t:size(4), t:size(5))
    local planes = w:reshape(w:size(1), w:size(2) * k, w:size(4), w:size(5))
    local y = convolution(op, 2, t, planes, bias, {stride[2], stride[3]},
      {padding[2], padding[3]}, {dilation[2], dilation[3]}, groups)
    return y:reshape(n, d, y:size(2), y:size(3), y:size(4)):transpose(2, 3)
  end)
end

-- The inverse of `volume': planes with additional channels, added where they
-- overlap along the depth.
local function transposed_volume(t, w, stride, padding, dilation, size, groups)
  local n, d, o, k = t:size(1), t:size(3), w:size(2) * groups, w:size(3)
  local plane = size[2] * size[3]
  local y = nacre._conv_input(
    t:transpose(2, 3):reshape(n * d, t:size(2), t:size(4), t:size(5)),
    w:reshape(w:size(1), w:size(2) * k, w:size(4), w:size(5)),
    geometry({stride[2], stride[3]}, {padding[2], padding[3]},
             {dilation[2], dilation[3]}, {size[2], size[3]}), groups)
  y = y:reshape(n, d, o, k, plane):permute(1, 3, 4, 2, 5)
  return nacre._fold(y:reshape(n, o * k, d * plane), {size[1], plane},
                     {k, 1}, {dilation[1], 1}, {padding[1], 0},
                     {stride[1], 1})
         :reshape(n, o, size[1], size[2], size[3])
end

-- x [n x c x ...], w [c x o/groups x k...] give [n x o x ...], each spatial
-- size (size - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.
local function conv_transpose(op, nd, x, w, bias, stride, padding, extra,
                              groups, dilation)
  checkconv(op, x, w, bias, nd, groups, true)
  stride = several(op, "stride", stride, nd, 1)
  padding = several(op, "padding", padding, nd, 0)
  extra = several(op, "output_padding", extra, nd, 0)
  dilation = several(op, "dilation", dilation, nd, 1)
  local size, behind, longer = {}, {}, false
  for i = 1, nd do
    if extra[i] >= math.max(stride[i], dilation[i]) then
      fail(op, ("output_padding %d must be below stride %d or dilation %d")
               :format(extra[i], stride[i], dilation[i]))
    end
    size[i] = (x:size(-nd - 1 + i) - 1) * stride[i] - 2 * padding[i]
              + dilation[i] * (w:size(2 + i) - 1) + extra[i] + 1
    if size[i] < 1 then
      fail(op, ("the result would have size %d in dimension %d")
               :format(size[i], i + 2),
           nil, "input", x, "weight", w)
    end
    -- so much output_padding is that of zeros behind the input
    local at = 2 * (nd - i)
    behind[at + 1], behind[at + 2] = 0, extra[i] // stride[i]
    longer = longer or extra[i] >= stride[i]
  end
  return batched(x, nd + 2, function(t)
    if longer then t = nacre.nn.functional.pad(t, behind) end
    if nd == 3 then
      return add_bias(transposed_volume(t, w, stride, padding, dilation, size,
                                  groups), bias, nd)
    end
    if nd == 1 then t, w = t:unsqueeze(-2), w:unsqueeze(-2) end
    local y = nacre._conv_input(t, w, geometry(stride, padding, dilation, size),
                                groups)
    if nd == 1 then y = y:squeeze(-2) end
    return add_bias(y, bias, nd)
  end)
end

-- compute, which convolves real numbers, also for complex ones: by the four
-- products of their parts.
local function for_complex(compute)
  return function(op, nd, x, w, bias, ...)
    if not x:is_complex() and not w:is_complex() then
      return compute(op, nd, x, w, bias, ...)
    end
    check_same_dtype(op, "input", x, "weight", w)
    if bias then check_same_dtype(op, "input", x, "bias", bias) end
    local re = compute(op, nd, x.real, w.real, bias and bias.real, ...)
    local im = compute(op, nd, x.real, w.imag, bias and bias.imag, ...)
    return nacre.complex(re - compute(op, nd, x.imag, w.imag, nil, ...),
                         im + compute(op, nd, x.imag, w.real, nil, ...))
  end
end
local transposed = for_complex(conv_transpose)

for nd = 1, 3 do
  local name, back = ("conv%dd"):format(nd), ("conv_transpose%dd"):format(nd)
  local size = ({"l", "h x w", "d x h x w"})[nd]
  local kernel = ({"k", "kh x kw", "kd x kh x kw"})[nd]
  local compute = for_complex(nd == 3 and volume or convolution)
  define(name, "input:tensor, weight:tensor, bias:tensor=nil, stride:ints=1, "
         .. "padding:any|same|valid=0, dilation:ints=1, groups:int=1",
         ("convolution [n x c x %s] with kernels [o x c/groups x %s]; padding "
          .. "may be \"same\" or \"valid\""):format(size, kernel),
         function(...) return compute(name, nd, ...) end)
  define(back, "input:tensor, weight:tensor, bias:tensor=nil, stride:ints=1, "
         .. "padding:ints=0, output_padding:ints=0, groups:int=1, "
         .. "dilation:ints=1",
         ("transposed convolution: the gradient of %s to its input; weight "
          .. "[c x o/groups x %s]"):format(name, kernel),
         function(...) return transposed(back, nd, ...) end)
end

-- f of both parts of x, if it is complex.
local function of_parts(x, f)
  if not x:is_complex() then return f(x) end
  return nacre.complex(f(x.real), f(x.imag))
end

define("unfold",
       "input:tensor, kernel_size:ints, dilation:ints=1, padding:ints=0, "
       .. "stride:ints=1",
       "the patches that a kernel sees, one a column: [n x c*kh*kw x places]",
function(x, k, dilation, padding, stride)
  local op = "unfold"
  check_dims(op, x, "input", 3, 4)
  k = several(op, "kernel_size", k, 2, 1)
  if x.dtype ~= "bool" and not x:is_complex() then
    check_float(op, x, "input")
  end
  stride = several(op, "stride", stride, 2, 1)
  padding = several(op, "padding", padding, 2, 0)
  dilation = several(op, "dilation", dilation, 2, 1)
  for i = 1, 2 do
    checkfit(op, x, i - 3, dilation[i] * (k[i] - 1) + 1, padding[i])
  end
  return batched(x, 4, function(t)
    local numbers = t.dtype == "bool" and t:float() or t  -- masks are few
    return of_parts(numbers, function(part)
      return nacre._unfold(part, k, dilation, padding, stride)
    end):to(t.dtype)
  end)
end)

define("fold",
       "input:tensor, output_size:ints, kernel_size:ints, dilation:ints=1, "
       .. "padding:ints=0, stride:ints=1",
       "patches, one a column, added up where they come from: the reverse of "
       .. "unfold",
function(x, size, k, dilation, padding, stride)
  local op = "fold"
  check_dims(op, x, "input", 2, 3)
  if not x:is_complex() then check_float(op, x, "input") end
  size = several(op, "output_size", size, 2, 1)
  k = several(op, "kernel_size", k, 2, 1)
  dilation = several(op, "dilation", dilation, 2, 1)
  padding = several(op, "padding", padding, 2, 0)
  stride = several(op, "stride", stride, 2, 1)
  local n, out, l = k[1] * k[2], {}, 1
  for i = 1, 2 do
    for _, v in ipairs {size[i], k[i], dilation[i], padding[i], stride[i]} do
      if v > 1 << 30 then fail(op, ("%d is too large"):format(v)) end
    end
    out[i] = (size[i] +
        2 * padding[i] - dilation[i] * (k[i] - 1) - 1) // stride[i] + 1
    l = l * out[i]
  end
  if x:size(-2) % n ~= 0 or x:size(-1) ~= l or out[1] < 1 then
    fail(op, ("{input} must have a multiple of %d rows and %d columns")
             :format(n, l),
         nil, "input", x)
  end
  return batched(x, 3, function(t)
    return of_parts(t, function(part)
      return nacre._fold(part, size, k, dilation, padding, stride)
    end)
  end)
end)

all.image = {several = several, batched = batched, extended = extended,
             geometry = geometry, plane = plane}
