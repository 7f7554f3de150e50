-- SPDX-License-Identifier: MIT
-- Gradients of the operations that are no rows: each family of
-- core/operators.def that has a gradient is checked against differences, once
-- and once more for second derivatives; so is indexing.
-- Run by: nacre tests/autograd/grad_operators.lua [operation]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local grad = nacre.autograd

nacre.manual_seed(7)

local function x(...)
  return nacre.randn({...}, {dtype = "float64", requires_grad = true})
end

-- name -> list of { function, inputs }
local cases = {}
local function case(name, f, ...)
  cases[name] = cases[name] or {}
  table.insert(cases[name], {f, {...}})
end
local function method(name, ...)
  local args = table.pack(...)
  return function(t) return t[name](t, table.unpack(args, 1, args.n)) end
end
local function list(name, ...)        -- of an operation that takes a list
  local args = table.pack(...)
  return function(...)
    return nacre[name]({...}, table.unpack(args, 1, args.n))
  end
end
local function all(name, ...)         -- of one that gives a list
  local f = method(name, ...)
  return function(t)
    local y = f(t)
    for i = 1, #y do y[i] = y[i] * i end
    return table.unpack(y)
  end
end

-- views
case("view", method("view", 3, 4), x(2, 6))
case("view", method("view", -1), x(2, 3))
case("reshape", method("reshape", 6), x(2, 3))
case("reshape", function(t) return t:t():reshape(6) end, x(2, 3))
case("transpose", method("transpose", 1, 3), x(2, 3, 2))
case("t", method("t"), x(2, 3))
case("permute", method("permute", 3, 1, 2), x(2, 3, 2))
case("movedim", method("movedim", 1, -1), x(2, 3, 2))
case("narrow", method("narrow", 2, 2, 2), x(2, 3))
case("narrow", function(t) return t:expand(3, 4):narrow(1, 2, 2) end, x(3, 1))
case("select", method("select", 1, -1), x(2, 3))
case("select", function(t) return t:expand(3, 4):select(1, 2) end, x(4))
case("slice", method("slice", 1, 1, -1, 2), x(5, 2))
case("squeeze", method("squeeze"), x(1, 3, 1))
case("unsqueeze", method("unsqueeze", 2), x(2, 3))
case("expand", method("expand", 2, 3, 4), x(3, 1))
case("expand", method("expand", 3), x())
case("expand_as", function(t) return t:expand_as(nacre.ones(2, 3)) end, x(3))
case("broadcast_to", method("broadcast_to", 2, 3), x(1, 3))
case("view_as", function(t) return t:view_as(nacre.ones(3, 2)) end, x(6))
case("reshape_as", function(t) return t:t():reshape_as(nacre.ones(6)) end, x(2, 3))
case("flatten", method("flatten", 2), x(2, 3, 2))
case("flatten", function(t) return t:t():flatten() end, x(2, 3))
case("unflatten", method("unflatten", 2, {2, -1}), x(2, 6))
case("diagonal", method("diagonal"), x(3, 4))
case("diagonal", method("diagonal", -1, 2, 3), x(2, 3, 3))
case("unbind", all("unbind", 2), x(2, 3))
case("chunk", all("chunk", 2, -1), x(2, 5))
case("split", all("split", {1, 3, 2}), x(6, 2))
case("contiguous", function(t) return t:t():contiguous() end, x(2, 3))
-- joined
case("cat", list("cat", 2), x(2, 3), x(2, 1), x(2, 2))
case("cat", list("cat"), x(0), x(2, 2))
case("stack", list("stack", -1), x(2, 3), x(2, 3))
case("tile", method("tile", 2, 1, 3), x(2, 2))
case("tile", method("tile", 2), x(3))
case("tile", method("tile", 2, 2), x())
-- along dimensions
case("max", method("max", 2), x(3, 4))
case("max", method("max", 1, true), x(3, 4))
case("max", method("max"), x(3, 4))
case("max", nacre.max, x(3, 4), x(4))
case("min", method("min", -1), x(3, 4))
case("min", method("min"), x(3, 4))
case("min", nacre.min, x(3, 4), x(3, 1))
case("_extreme", function(t) return (nacre._extreme(t, 2, false, true)) end, x(3, 4))
for _, name in ipairs {"var", "std"} do
  case(name, method(name), x(3, 4))
  case(name, method(name, 1), x(3, 4))
  case(name, method(name, {1, 3}, false, true), x(2, 3, 2))
  case(name, method(name, {dim = 2, correction = 0.5}), x(3, 4))
end
for _, p in ipairs {1, 2, 3, 0.5, -1, math.huge, -math.huge} do
  case("norm", method("norm", p), x(3, 2))
  case("norm", method("norm", p, 1, true), x(3, 2))
end
case("logsumexp", method("logsumexp", 2), x(3, 4))
case("logsumexp", method("logsumexp", {1, 2}, true), x(3, 4))
case("cumsum", method("cumsum", 2), x(3, 4))
case("cumsum", method("cumsum", 1), x())
for _, name in ipairs {"softmax", "log_softmax"} do
  case(name, method(name, 2), x(3, 4))
  case(name, method(name, 1), x(3, 4))
  case(name, method(name, 1), x())
end
-- products
case("mm", nacre.mm, x(2, 3), x(3, 4))
case("mm", function(a, b) return a:t():mm(b:t()) end, x(3, 2), x(4, 3))
case("bmm", nacre.bmm, x(2, 2, 3), x(2, 3, 2))
case("mv", nacre.mv, x(2, 3), x(3))
case("dot", nacre.dot, x(3), x(3))
case("outer", nacre.outer, x(2), x(3))
local steps = {2, 1, 1, 0, 1, 2, 4, 5}   -- stride, padding, dilation, size
for name, sizes in pairs {_conv = {{2, 2, 4, 5}, {4, 1, 3, 2}},
                          _conv_input = {{2, 4, 2, 3}, {4, 1, 3, 2}}} do
  case(name, function(a, b) return nacre[name](a, b, steps, 2) end,
       x(table.unpack(sizes[1])), x(table.unpack(sizes[2])))
end
case("_conv_weight", function(a, b)
  return nacre._conv_weight(a, b, {2, 1, 1, 0, 1, 2, 3, 2}, 2)
end, x(2, 4, 2, 3), x(2, 2, 4, 5))
case("_unfold", function(a)
  return nacre._unfold(a, {2, 1}, {2, 1}, {1, 0}, {1, 2})
end, x(2, 2, 3, 3))
case("_fold", function(a)
  return nacre._fold(a, {3, 3}, {2, 1}, {2, 1}, {1, 0}, {1, 2})
end, x(2, 4, 6))
case("_max_pool", function(a)
  return (nacre._max_pool(a, 2, 1, 0, 1))
end, x(1, 2, 3, 3))
case("_max_pool_back", function(a)
  local at = nacre.tensor {{{{1, 2}, {5, 5}}}}
  return nacre._max_pool_back(a, at, {3, 3}, 2, 1, 0, 1)
end, x(1, 1, 2, 2))
-- rows with a weight an element, a weight a piece, none; over the batch
for _, s in ipairs {{{3, 4}, {4, 1, 1}}, {{3, 4}, {4, 1, 2}},
                    {{2, 4, 3}, {4, 3, 2}}, {{2, 2, 3}, {2, 3, 2}},
                    {{3, 2, 17}, {2, 17, 2}, true},
                    {{3, 2, 2}, {2, 2, 2}, true}} do
  local size, geometry, batch = table.unpack(s)
  for centered = 0, batch and 0 or 1 do
    case("_norm", function(a, w, b)
      return (nacre._norm(a, w, b, geometry, 0.1, centered == 0, batch))
    end, x(table.unpack(size)), x(geometry[1]), x(geometry[1]))
    case("_norm", function(a)
      return (nacre._norm(a, nil, nil, geometry, 0.1, centered == 0, batch))
    end, x(table.unpack(size)))
  end
end
case("addmm", nacre.addmm, x(2, 4), x(2, 3), x(3, 4))
case("addmm", function(a, b, c) return nacre.addmm(a, b, c, {beta = 2, alpha = 3}) end,
     x(4), x(2, 3), x(3, 4))
case("addmm", function(a, b, c) return nacre.addmm(a, b, c, {beta = 0}) end,
     x(1, 1), x(2, 3), x(3, 4))
for _, s in ipairs {{{3}, {3}}, {{2, 3}, {3}}, {{3}, {3, 2}},
                    {{2, 3}, {3, 2}}, {{3}, {2, 3, 2}},
                    {{2, 2, 3}, {3}}, {{2, 2, 3}, {3, 2}},
                    {{2, 1, 2, 3}, {2, 3, 2}}, {{2, 3}, {2, 3, 2}}} do
  case("matmul", nacre.matmul, x(table.unpack(s[1])), x(table.unpack(s[2])))
end
-- the rest
case("div", nacre.div, x(2, 3), x(3))
case("div", function(a, b) return nacre.div(a, b, {rounding_mode = "floor"}) end,
     x(2, 3), x(3))
case("clamp", method("clamp", -0.5, 0.5), x(3, 4))
case("clamp", method("clamp", {max = 0.5}), x(3, 4))
case("clamp", nacre.clamp, x(3, 4), x(4), x(3, 1))
case("copy_", function(a, b) return (a * 1):copy_(b * b) end, x(2, 3), x(3))
case("fill_", function(a) return (a * 2):fill_(3) + a end, x(2, 3))
case("zero_", function(a) return (a * 2):zero_() + a * a end, x(2, 3))

-- order statistics, scans, special functions
local function positive(...) return (x(...):detach():abs() + 0.6):requires_grad_() end
for _, name in ipairs {"sort", "topk", "kthvalue", "median", "nanmedian", "cummax",
                       "cummin", "mode"} do
  local k = (name == "topk" or name == "kthvalue") and {2} or {}
  k[#k + 1] = 2
  case(name, function(t) return (nacre[name](t, table.unpack(k))) end, x(3, 4))
end
case("median", method("median"), x(3, 3))
case("nanmedian", method("nanmedian"), x(3, 4))
case("msort", method("msort"), x(4, 2))
for _, name in ipairs {"quantile", "nanquantile"} do
  case(name, method(name, 0.4), x(3, 4))
  case(name, method(name, 0.7, 2, true), x(3, 4))
end
case("cumprod", method("cumprod", 2), x(3, 4))
case("logcumsumexp", method("logcumsumexp", 1), x(3, 4))
case("diff", method("diff"), x(3, 4))
case("diff", method("diff", 2, 1), x(4, 2))
case("nanmean", method("nanmean", 1), x(3, 4))
for _, name in ipairs {"var_mean", "std_mean"} do
  case(name, method(name, 1), x(3, 4))
end
case("aminmax", method("aminmax"), x(3, 4))
case("dist", nacre.dist, x(3, 2), x(3, 2))
case("trapezoid", method("trapezoid"), x(3, 4))
case("cumulative_trapezoid", method("cumulative_trapezoid"), x(3, 4))
case("nan_to_num", method("nan_to_num"), x(3))
case("float_power", nacre.float_power, positive(3), x(3))
case("polygamma", method("polygamma", 1), positive(3))
case("mvlgamma", method("mvlgamma", 2), positive(3))
case("threshold", method("threshold", 0.1, 2), x(3, 2))
case("glu", method("glu", 2), x(3, 4))
case("prelu", nacre.prelu, x(3, 4), x(4))
case("softmin", method("softmin", 2), x(3, 4))

-- of a type or a device
case("double", method("double"), x(2))

-- indexing
local at, again = nacre.tensor {2, 1, 2, 2}, nacre.tensor {{1, 3}, {3, 3}}
case("[]", function(t) return t[2] end, x(3, 2))
case("[]", function(t) return t[{{}, {1, 3, 2}}] end, x(3, 4))
case("[]", function(t) return t["2:3, -1"] end, x(3, 4))
case("[]", function(t) return t["..., newaxis, 1"] end, x(3, 4))
case("[]", function(t) return t[at] end, x(3, 2))
case("[]", function(t) return t[again] end, x(3, 2))
case("[]", function(t) return t[{{}, again}] end, x(2, 3))
case("[]", function(t) return t[{at, at}] end, x(3, 2))
case("[]", function(t) return t[{at, {}, at}] end, x(3, 2, 2))
case("[]", function(t) return t:t()[{at, 1}] end, x(3, 2))
case("[]", function(t) return t[t:gt(0)] end, x(3, 4))
case("[]", function(t) return t[{{1, 2}, nacre.tensor {true, false, true}}] end,
     x(3, 3))
case("[]=", function(t, v)
  local y = t * 1
  y[1] = v
  return y
end, x(3, 2), x(2))
case("[]=", function(t, v)
  local y = t * 1
  y[{{}, 2}] = v * v
  y[{1, 1}] = 5
  return y
end, x(3, 2), x())
case("[]=", function(v)
  local y = nacre.zeros(3, {dtype = "float64"})
  y["2:3"] = v
  return y * y
end, x(1, 2))
case("[]=", function(t, v)
  local y = t * t
  y[nacre.tensor {3, 1}] = v
  return y * y
end, x(4, 2), x(2, 2))
case("[]=", function(t, v)
  local y = t * t
  y[{{}, nacre.tensor {1, 2}}] = v
  return y * y
end, x(3, 2), x(2))
case("[]=", function(t, v)
  local y = t * t
  y[t:gt(0)] = v
  return y * y
end, x(3, 2), x())
case("[]=", function(t, v)
  local y = t * t
  y:t()[2] = v
  y[1]:mul_(v["1:1"])
  return y * t
end, x(3, 2), x(3))
case("[]=", function(t) local y = t * t; y[t:lt(0)] = 2; return y * t end, x(3, 2))

-- in place, on tensors and on views
for _, name in ipairs {"exp", "sin", "square", "tanh", "sigmoid", "reciprocal"} do
  case(name .. "_", function(t) local y = t * 2; y[name .. "_"](y); return y * t end,
       x(2, 3))
  case(name .. "_", function(t)
    local y = t * 2
    local row = y[1]
    row[name .. "_"](row)
    return y * t, row
  end, x(2, 3))
end
for _, name in ipairs {"add", "mul", "sub", "true_divide", "atan2"} do
  case(name .. "_", function(t, u)
    local y = t * 2
    y[name .. "_"](y, u)
    return y * t
  end, x(2, 3), x(3))
  case(name .. "_", function(t, u)
    local y = t * 2
    local part = y["1:2, 2:3"]
    local other = y:t()
    part[name .. "_"](part, u)
    return y * y, other * 2, part * 3
  end, x(2, 3), x(2))
end
case("mul_", function(t) local y = t * 1; y:mul_(y); return y end, x(3))
case("cumsum_", function(t) local y = t * t; y:cumsum_(1); return y * t end, x(3))
case("clamp_", function(t) local y = t * t; y[1]:clamp_(0.2, 0.6); return y * t end, x(2, 3))
case("out", function(t, u)
  local y = nacre.zeros(2, 3, {dtype = "float64"})
  nacre.mul(t, u, {out = y})
  return y
end, x(2, 3), x(3))

dofile(here .. "grad_index_cases.lua")(case, x, method, list, all)

-- ---- the walk

local unsmooth = {copy_ = false}
local chosen = arg and arg[1]
local done = {}
for name, of in pairs(cases) do
  done[name] = true
  if not chosen or chosen == name then
    for i, c in ipairs(of) do
      local what = ("%s, case %d"):format(name, i)
      local ok, e = pcall(grad.gradcheck, c[1], c[2])
      check(ok, "%s: %s", what, tostring(e))
      ok, e = pcall(grad.gradgradcheck, c[1], c[2])
      check(ok or unsmooth[name], "%s, second order: %s", what, tostring(e))
    end
  end
end

-- Every family with a gradient has a case; the others give none.
local function families()
  local file = assert(io.open(here .. "../../core/operators.def"))
  local text = file:read("a")
  file:close()
  return text:gmatch("OPERATOR%(([%w_]+),%s*(%u+),")
end
local random = {uniform_ = true, normal_ = true, bernoulli_ = true,
                exponential_ = true, cauchy_ = true, log_normal_ = true,
                geometric_ = true, random_ = true}
for name, class in families() do
  if class ~= "NOGRAD" and not random[name] then
    check(done[name], "no case for the gradient of %s", name)
  end
end

local t = x(3)
for _, y in ipairs {t:argmax(), t:isclose(t), t:zeros_like(), t:nonzero(), t:gt(0),
                    t:randn_like(), nacre.tensor(t), t:detach()} do
  check(not y.requires_grad, "%s requires a gradient", tostring(y))
end

O.done("grad_families")
