-- SPDX-License-Identifier: MIT
-- Storage dtypes: what makes, moves, shows and saves their elements does, what
-- computes refuses them and says what to do. storage_torch.py compares the
-- conversions.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local calls = dofile(here .. "../lib/small_calls.lua")
local fails, is = C.fails, C.is

local floats = {"float8_e4m3fn", "float8_e5m2"}
local integers = {uint16 = "int16", uint32 = "int32", uint64 = "int64"}
local bits = {float8_e4m3fn = "uint8", float8_e5m2 = "uint8"}
for k, v in pairs(integers) do bits[k] = v end

local function T(v, dtype) return nacre.tensor(v, {dtype = dtype}) end
local function same_bits(a, b)
  return a.dtype == b.dtype and
         a:cpu():view(bits[a.dtype]):equal(b:cpu():view(bits[b.dtype]))
end

-- ---- the dtypes themselves

for dtype, of in pairs(bits) do
  assert(nacre[dtype] == dtype)
  local x = T({1, 2, 3}, dtype)
  assert(x.dtype == dtype and x.device == nacre.ones(1).device)
  assert(x:element_size() == nacre.zeros(1, {dtype = of}):element_size())
  assert(x:is_floating_point() == (dtype:find "float" ~= nil))
  assert(x:is_signed() == (dtype:find "float" ~= nil))
  assert(dtype.itemsize == x:element_size())
  assert(dtype.is_floating_point == x:is_floating_point())
  assert(dtype.is_signed == x:is_signed())
  assert(not x.requires_grad)
  fails("can require a gradient, this is " .. dtype, nacre.zeros, 2,
        {dtype = dtype, requires_grad = true})
  fails("is not a float dtype", nacre.set_default_dtype, dtype)
  for _, name in ipairs {"zeros", "ones", "empty"} do
    assert(nacre[name](2, 3, {dtype = dtype}).dtype == dtype)
    assert(nacre[name .. "_like"](x).dtype == dtype)
    assert(x["new_" .. name](x, 2).dtype == dtype)
  end
  is(nacre.ones(2, {dtype = dtype}):double(), "{1.0,1.0}")
  is(nacre.full({2}, 3, {dtype = dtype}):double(), "{3.0,3.0}")
  is(nacre.full_like(x, 2):double(), "{2.0,2.0,2.0}")
  is(nacre.eye(2, {dtype = dtype}):double(), "{{1.0,0.0},{0.0,1.0}}")
  is(x:to "float32", "{1.0,2.0,3.0}")
  is(x:long(), "{1,2,3}")
  is(x:bool(), "{true,true,true}")
  assert(x:half().dtype == "float16" and x:to "complex64" == T({1, 2, 3},
                                                               "complex64"))
end

-- ---- numbers that have no place

fails("300 does not fit in uint8", nacre.full, {1}, 300, {dtype = "uint8"})
fails("65536 does not fit in uint16", nacre.full, {1}, 65536,
      {dtype = "uint16"})
fails("4294967296 does not fit in uint32", T, {1 << 32}, "uint32")
fails("does not fit in uint64", T, {2.0 ^ 64}, "uint64")
fails("500 does not fit in float8_e4m3fn", nacre.full, {1}, 500,
      {dtype = "float8_e4m3fn"})
fails("60000 does not fit in float8_e5m2", nacre.zeros(2, {dtype =
      "float8_e5m2"}).fill_, nacre.zeros(2, {dtype = "float8_e5m2"}), 60000)
is(T({500, -500, math.huge, 464, 0.0009765625, 0.000977}, "float8_e4m3fn"),
   "{448.0,-448.0,448.0,448.0,0.0,0.001953125}")
is(T({60000, -1e30, math.huge, 57344}, "float8_e5m2"),
   "{57344.0,-inf,inf,57344.0}")
fails("have no float8_e5m2 form", function()
  return nacre.tensor{nacre.i}:to "float8_e5m2"
end)

-- ---- the greatest numbers, to the last digit

local most = T({-1, 1, math.maxinteger, math.mininteger}, "uint64")
is(most:view "int64", "{-1,1,9223372036854775807,-9223372036854775808}")
for _, text in ipairs {" 18446744073709551615 ", " 1 ",
                       " 9223372036854775807\n", " 9223372036854775808"} do
  assert(tostring(most):find(text, 1, true), most)
end
assert(nacre.summary(most):find("min 1  max 18446744073709551615", 1, true))
assert(tostring(nacre.full({200}, -1, {dtype = "uint64"}))
       :find("all 18446744073709551615", 1, true))
assert(tostring(T(-1, "uint64"))
       :find("18446744073709551615  uint64[]", 1, true))
assert(most[1] == 2.0 ^ 64 and math.type(most[3]) == "integer")
assert(most:double():equal(nacre.tensor({2.0 ^ 64, 1, 2.0 ^ 63, 2.0 ^ 63},
                                        {dtype = "float64"})))
is(T({-1, 3}, "uint32"):long(), "{4294967295,3}")
is(T({-1, 3}, "uint16"), "{65535,3}")
is(T({2.0 ^ 63, 2.0 ^ 64 - 2048, 1e30, -5, 0 / 0}, "float64"):to "uint64"
     :view "int64", "{-9223372036854775808,-2048,-1,0,0}")
assert(nacre.iinfo "uint64".max == 2.0 ^ 64 and nacre.iinfo "uint64".min == 0)
assert(nacre.iinfo "uint32".max == 4294967295)

-- ---- what computes refuses them

-- Names that core/operators.def marks, and those of ops.def that take them.
local takes = {clone = true, where = true, eq = true, ne = true,
               not_equal = true}
for line in io.lines(here .. "../../core/operators.def") do
  local name, class = line:match "^OPERATOR%(([%w_]+), ([%u()]+)"
  if not name then
    name, class = line:match "^OPERATOR_AS%([%w_]+, ([%w_]+), ([%u()]+)"
  end
  if name then takes[name] = class:find "MOVES" or class:find "VIEW" or nil end
end

local function converted(v, dtype)
  if nacre.is_tensor(v) and v.dtype:find "float" then return v:to(dtype) end
  if type(v) ~= "table" then return v end
  local list = {}
  for k, x in pairs(v) do list[k] = converted(x, dtype) end
  return list
end

local function has(v, dtype)
  if nacre.is_tensor(v) then return v.dtype == dtype end
  for _, x in pairs(type(v) == "table" and v or {}) do
    if has(x, dtype) then return true end
  end
  return false
end

local refused, taken = 0, 0
for _, op in ipairs(calls.all()) do
  for dtype in pairs(bits) do
    local args = converted(calls.sample(op), dtype)
    -- the samples of these have another operand, or reduce
    local left_out = op.name == "where" or op.name == "_scatter"
    if op.f and not left_out and has(args, dtype) then
      local ok, e = pcall(op.f, table.unpack(args))
      if takes[op.name] then
        taken = taken + 1
        assert(ok, ("%s of %s: %s"):format(op.name, dtype, e))
      else
        refused = refused + 1
        assert(not ok, op.name .. " takes " .. dtype)
        assert(tostring(e):find(dtype .. ", which is a storage dtype", 1, true)
               and e.hint:find(":float()", 1, true),
               ("%s of %s: %s"):format(op.name, dtype, e))
      end
    end
  end
end
assert(refused > 800 and taken > 60, refused .. ", " .. taken)

for dtype in pairs(bits) do
  local x = T({1, 2}, dtype)
  for name, f in pairs {
    ["+"] = function() return x + 1 end, ["*"] = function() return 2 * x end,
    [".."] = function() return x .. nacre.ones(2) end,
    ["-"] = function() return -x end, ["@"] = function() return x:dot(x) end,
    lt = function() return x:lt(x) end, sum = function() return x:sum() end,
    max = function() return x:max() end, sort = function() return x:sort() end,
    rand = function() return nacre.rand(2, {dtype = dtype}) end,
    arange = function() return nacre.arange(2, {dtype = dtype}) end,
    ["+="] = function() return x:add_(1) end,
    accumulate = function()
      return x:index_put({nacre.tensor{1}}, x[{{1, 1}}], true)
    end,
    scatter_add = function()
      return x:scatter_add(1, nacre.tensor{1}, x[{{1, 1}}])
    end,
  } do
    local ok, e = pcall(f)
    assert(not ok and tostring(e):find(dtype, 1, true), name .. " " ..
           tostring(e))
  end
  is(x:sum {dtype = "float64"}, "3.0")
end

-- ---- what moves elements moves their bits

local moves = {
  clone = function(x) return x:clone() end,
  transposed = function(x) return x:t():contiguous() end,
  cat = function(x) return nacre.cat({x, x:t()}, 1) end,
  stack = function(x) return nacre.stack {x, x} end,
  tile = function(x) return x:tile(2, 3) end,
  flip = function(x) return x:flip(1) end,
  roll = function(x) return x:roll(3, 2) end,
  rot90 = function(x) return x:rot90() end,
  tril = function(x) return x:tril() end,
  diag = function(x) return x:diag() end,
  diag_embed = function(x) return x:diag_embed() end,
  expand = function(x) return x[1]:expand(5, 16):contiguous() end,
  index = function(x)
    return x[{nacre.tensor{3, 1, 3}, nacre.tensor{1, 2, 9}}]
  end,
  rows = function(x) return x[nacre.tensor{3, 1, 3}] end,
  slice = function(x) return x[{{1, -1, 2}, {2, 9, 3}}]:contiguous() end,
  mask = function(x) return x[nacre.eye(16):bool()] end,
  index_select = function(x) return x:index_select(2, nacre.tensor{9, 1}) end,
  gather = function(x)
    return x:gather(2, nacre.arange(1, 17):unsqueeze(2))
  end,
  take = function(x) return x:take(nacre.tensor{256, 1, 77}) end,
  scatter = function(x)
    return x:scatter(1, nacre.full({1, 16}, 2, {dtype = "int64"}), x)
  end,
  index_copy = function(x)
    return x:index_copy(1, nacre.tensor{5, 2}, x[{{1, 2}}])
  end,
  index_put = function(x)
    return x:index_put({nacre.tensor{5, 2}}, x[{{1, 2}}])
  end,
  masked_scatter = function(x)
    return x:masked_scatter(nacre.eye(16):bool(), x:t():contiguous())
  end,
  assignment = function(x)
    local y = x:clone()
    y[{{2, 5}}] = x[{{7, 10}}]
    y[nacre.tensor{9, 12}] = x[nacre.tensor{1, 2}]
    return y
  end,
  where = function(x) return nacre.where(nacre.eye(16):bool(), x, x:t()) end,
  repeat_interleave = function(x) return x:repeat_interleave(2, 1) end,
  unfold = function(x) return x:unfold(2, 3, 2):contiguous() end,
  movedim = function(x) return x:view(4, 4, 16):movedim(1, 3):contiguous() end,
  set = function(x) return x:clone():copy_(x:t()) end,
  pad = function(x) return x:pad {1, 2} end,
}
for dtype, of in pairs(bits) do
  local size = nacre.zeros(1, {dtype = of}):element_size()
  local raw = nacre.arange(256 * size):to "uint8":mul(67):view(16, -1)
                   :view(of)
  local x = raw:view(dtype)
  assert(x:dim() == 2 and x:size(2) == 16 and x.dtype == dtype)
  for name, f in pairs(moves) do
    local got, want = f(x), f(raw)
    assert(got.dtype == dtype and got:view(of):equal(want),
           name .. " of " .. dtype)
  end
  -- numbers
  local y = nacre.zeros(3, {dtype = dtype})
  y[2] = 3
  y:masked_fill_(nacre.tensor{true, false, false}, 2)
  y:index_fill_(1, nacre.tensor{3}, 1)
  is(y:double(), "{2.0,3.0,1.0}")
  is(nacre.where(nacre.tensor{true, false, true}, y, 5):double(),
     "{2.0,5.0,1.0}")
  assert(y[2] == 3 and y[{2}] == 3 and y:sum{dtype = "int64"}:item() == 6)
  is(y, dtype:find "float" and "{2.0,3.0,1.0}" or "{2,3,1}")
  is(y:zero_():double(), "{0.0,0.0,0.0}")
  assert(y:copy_(nacre.tensor{1, 2, 3}):eq(nacre.tensor{1, 2, 3}:to(dtype))
          :all():item())
  fails("does not join " .. dtype .. " and float32", nacre.cat,
        {y, nacre.ones(1)})
  -- aliasing views
  local v = x:clone()
  v:view(of):fill_(1)
  assert(v:view(of):eq(1):all():item() and C.shares(v, v:view(of)))
  -- the meta device
  assert(nacre.empty(2, {dtype = dtype, device = "meta"}):float().device ==
         "meta")
end

-- ---- equality

for _, dtype in ipairs(floats) do
  local x = T({0.0, -0.0, 1, 0 / 0}, dtype)
  is(x:eq(x), "{true,true,true,false}")
  is(x:ne(x), "{false,false,false,true}")
  is(x:eq(0), "{true,true,false,false}")
  is(x:eq(nacre.tensor{0, 1, 1, 1}), "{true,false,true,false}")
  assert(not x:equal(x) and x[{{1, 3}}]:equal(x[{{1, 3}}]))
end
is(most:eq(most), "{true,true,true,true}")
is(most:eq(1), "{false,true,false,false}")
is(most:ne(2.0 ^ 63), "{true,true,true,false}")
fails("-1 does not fit in uint64", most.eq, most, -1)
fails("does not compare uint64 with int64", most.eq, most, most:view "int64")
is(T({-1, 1}, "uint16"):eq(65535), "{true,false}")
is(T({-1, 1}, "uint32"):ne(nacre.tensor{4294967295, 1}), "{false,false}")

-- ---- bytes as elements of another dtype

local x = nacre.arange(24):float():view(2, 3, 4)
assert(x:view "int32":view "float32":equal(x))
assert(x:view {dtype = "int16"}:size(3) == 8)
assert(x:view "complex64":equal(nacre.view_as_complex(x:view(2, 3, 2, 2))))
assert(x:permute(2, 1, 3):view "uint8":contiguous()
        :equal(x:permute(2, 1, 3):contiguous():view "uint8"))
assert(x:view "uint8":view "float64":view "float32":equal(x))
fails("do not lie side by side", x:permute(3, 1, 2).view, x:permute(3, 1, 2),
      "int16")
fails("must be a multiple of 2", x[{{}, {}, {1, 3}}]:contiguous().view,
      x[{{}, {}, {1, 3}}]:contiguous(), "float64")
fails("do not lie as such elements do", x[{{}, {}, {2, 3}}].view,
      x[{{}, {}, {2, 3}}], "float64")
fails("without dimensions has 4 bytes, int64 has 8", nacre.ones({}).view,
      nacre.ones {}, "int64")
assert(nacre.ones({}):view "int32":item() == 0x3f800000)
fails("bytes of uint8 cannot be viewed as bool", x:view "uint8".view,
      x:view "uint8", "bool")
fails("no dtype 'int3'", x.view, x, "int3")
local leaf = nacre.ones(2, {requires_grad = true})
assert(not leaf:view "int32".requires_grad)

-- ---- at the prompt

assert(tostring(T({1, -448}, "float8_e4m3fn")):find "1%.0  %-448%.0")
assert(tostring(nacre.zeros(5, {dtype = "float8_e5m2"})):find "  5 B")
assert(tostring(nacre.zeros(5, {dtype = "uint16"})):find "  10 B")
assert(nacre.summary(nacre.arange(40):to "float8_e5m2"):find "min 0  max 40")

-- ---- files

local path = os.tmpname()
local all = {}
for dtype, of in pairs(bits) do
  local size = nacre.zeros(1, {dtype = of}):element_size()
  all[dtype] = nacre.arange(256 * size):to "uint8":mul(67):view(of):view(dtype)
                    :view(16, 16)
  all[dtype .. "_t"] = all[dtype]:t()
  all[dtype .. "_scalar"] = nacre.ones({}, {dtype = dtype})
  all[dtype .. "_none"] = nacre.ones({0, 3}, {dtype = dtype})
end
all.other = nacre.ones(3)
for _, format in ipairs {"safetensors", "pt"} do
  nacre.save(path, all, {format = format})
  for _, mmap in ipairs {false, true} do
    local back = nacre.load(path, {format = format, mmap = mmap})
    for name, t in pairs(all) do
      local got = back[name]
      assert(got.dtype == t.dtype and C.text(got:size()) == C.text(t:size()))
      if bits[t.dtype] then
        assert(same_bits(got, t), format .. " " .. name)
      end
    end
    assert(back.other:cpu():equal(nacre.ones(3, {device = "cpu"})))
  end
end
for dtype in pairs(integers) do
  local x = all[dtype]
  for _, format in ipairs {"npy", "npz"} do
    nacre.save(path, format == "npz" and {x = x:t()} or x:t(),
               {format = format})
    local back = nacre.load(path, {format = format})
    assert(same_bits(format == "npz" and back.x or back, x:t()))
  end
  nacre.save(path, x, {format = "csv"})
  local back = nacre.load(path, {format = "csv", dtype = "float64"})
  assert(back:cpu():equal(x:double():cpu()))
end
for _, format in ipairs {"npy", "npz", "idx", "h5"} do
  local t = T({1, 2}, "float8_e5m2")
  local archive = format == "npz" or format == "h5"
  local ok, e = pcall(nacre.save, path, archive and {t = t} or t,
                      {format = format})
  assert(not ok and (tostring(e):find "has no float8_e5m2" or
         tostring(e):find "library, which was not found"), e)
end
nacre.save(path, T({-1}, "uint64"), {format = "csv"})
assert(C.read(path) == "18446744073709551615\n", C.read(path))
nacre.save(path, T({{0.1015625, -448}}, "float8_e4m3fn"), {format = "csv"})
assert(C.read(path) == "0.1015625,-448.0\n", C.read(path))
for dtype in pairs(bits) do
  local x = all[dtype]
  x:tofile(path)
  assert(same_bits(nacre.fromfile(path, dtype, {shape = {16, 16}}), x))
  assert(same_bits(nacre.frombuffer(x:tobytes(), dtype):view(16, 16), x))
end
os.remove(path)
