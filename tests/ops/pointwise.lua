-- SPDX-License-Identifier: MIT
-- Every pointwise operation of core/ops.def is compared with its own text, in
-- every dtype. A new operation needs no line here.
-- Run by: nacre tests/ops/pointwise.lua [operation ...]; NACRE_ULP=1 prints the
-- errors seen.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check
local inf, nan = math.huge, 0 / 0

-- ---- samples

local floats = {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -7.25,
  0.1, -0.3, 1e-3, -1e-3, 1e-10, 7.0, -10.0, 20.5, -31.0, 50.0, -50.0, 88.0,
  -88.0, 103.0, -104.0, 1e4, -12345.678, 1e7, -3e9, 1e30, -1e30, 3.3e38,
  -3.3e38, 1.18e-38, 1e-44, -1e-40, inf, -inf, nan, math.pi, -1.9, 0.99,
  -0.999, 0.4999999, 5.96e-8, 65504.0, 1e300, -1e-300, 720.0}
local floats2 = {0.0, -0.0, 0.5, -0.75, 1.0, -1.0, 2.0, 2.5, -3.0, 0.1, 7.0,
  -10.5, 88.0, -1e4, 1e-3, 1e30, 1e-40, inf, -inf, nan}
local floats3 = {0.0, 0.25, -0.5, 1.0, -2.0, 3.5, 0.7, 1e6, inf, nan}
local ints = {0, 1, -1, 2, -2, 3, 5, 7, -7, 8, 10, 31, 32, 33, 63, 64, 100,
  127, -128, 128, 200, 255, -100, 32767, -32768, 65535, 2147483647,
  -2147483648, 4294967296, 16777217, math.maxinteger, math.mininteger}
local ints3 = {0, 1, -1, 2, 3, -5, 7, 100, 127, -128, 255, 2147483647}

local function fits(v, t)
  return t ~= "bool" and O.wrap(v, t) == v
end

-- The sample values of a type, for an operation of so many operands.
local function samples(t, arity)
  if t == "bool" then return {false, true} end
  if O.isfloat(t) then
    return arity == 1 and floats or arity == 2 and floats2 or floats3
  end
  local list = {}
  for _, v in ipairs(arity == 3 and ints3 or ints) do
    if fits(v, t) then list[#list + 1] = v end
  end
  return list
end

-- All combinations of samples, as one list for each operand.
local function grid(lists)
  local n, out = 1, {}
  for i = #lists, 1, -1 do
    local list, column = lists[i], {}
    out[i] = column
    lists[i] = {list = list, every = n}
    n = n * #list
  end
  for i, l in ipairs(lists) do
    for k = 0, n - 1 do
      out[i][k + 1] = l.list[k // l.every % #l.list + 1]
    end
  end
  return out, n
end

local function number(v)
  if v == true then return 1 elseif v == false then return 0 end
  return v
end

-- ---- comparison

local worst = {}              -- by operation and type, in ulp

local function same(got, want)
  if want ~= want then return got ~= got end
  return got == want and (want ~= 0 or math.type(want) == "integer" or
                          1 / got == 1 / want)
end

-- The error of a float, in ulp of its type, or of `least' where it is smaller.
local function ulps(got, want, t, least)
  if same(got, want) or got == want then return 0 end
  if got ~= got or want ~= want then return inf end
  if got - got ~= 0 then        -- it overflowed: so must what is wanted nearly
    want = math.abs(want) > O.largest[t] * (1 - 1e-6) and got or want
    return got == want and 0 or inf
  end
  local d = math.abs(got - want) - 0x1p-1022 * 2.0 ^ (O.lowexp[t] + 1022)
  return d <= 0 and 0 or d / O.ulp(math.max(math.abs(want), least or 0), t)
end

-- Is `got' what the operation gives if it is evaluated in type t, where each
-- step rounds?
local function tolerable(op, got, t, out, args)
  local words = op.tracking[t]
  local lifted = {}
  for i = 1, 3 do lifted[i] = args[i] and words.number(args[i] * 1.0) end
  local f = op.tracked[t]
  local r = f(lifted[1], lifted[1], lifted[2], lifted[3], op.p, op.q)
  if type(r) == "number" then r = words.number(r * 1.0) end
  local want, slack = r[1], r[2]
  if slack < inf and want == want and
     math.abs(got - want) <= slack + O.ulp(want, out) then
    return true
  end
  if slack == 0 then return false end
  local near = O.round(r[3], out)
  return ulps(got, near, out) <= 8
end

-- The ulp that an operation may be off in float32. On a device, where the
-- functions of core/pointwise/special.inc are in float32 too, there are more of
-- them; and CUDA's own acosh, erfc and tan may be 4 ulp off the rounded values.
-- CUDA's lgamma counts in ulp of 1 near the roots of lgamma(x < 0).
local special = O.device ~= "cpu" and {
  erfinv = 8, digamma = 24, _trigamma = 8, zeta = 16, lgamma = 16,
  i0 = 8, i1 = 8, i0e = 8, i1e = 8, acosh = 4.5, erfc = 4.5, tan = 4.5,
  bessel_j0 = 16, bessel_j1 = 16, bessel_y0 = 16, bessel_y1 = 16,
  modified_bessel_k0 = 32, modified_bessel_k1 = 32,
  scaled_modified_bessel_k0 = 32, scaled_modified_bessel_k1 = 32,
  airy_ai = 64, erfcx = 16, ndtri = 8, gammainc = 400, gammaincc = 400
} or {}
-- and what is counted as ulp of a number of this size at least: of what cancels
-- near a root, or of where a term of the result underflows
local atleast = {digamma = 1, lgamma = 1, zeta = 1e-34}
local rooted = {_stirling = 1, bessel_j0 = 1, bessel_j1 = 1, bessel_y0 = 1,
                bessel_y1 = 1, airy_ai = 0.5}          -- on the CPU, too
local function least_size(op)
  return rooted[op.name] or special[op.name] and atleast[op.name] or 0
end
-- Below 0 what cancels in digamma is as large as log(-x).
local terms = {digamma = function(x) return x:abs():log1p() end}

local function limitof(op) return special[op.name] or 4 end
-- What rounding of the argument of a sine or an exponential costs, in ulp of
-- float64.
local steep = {airy_ai = function(x) return 4 * (x * x) ^ 0.75 end,
               ndtr = function(x) return x * x end,
               log_ndtr = function(x) return x * x end}

-- One result of an operation against its text.
local function compare(op, got, want, work, out, args)
  if not O.isfloat(out) then
    if out == "bool" then want = want ~= 0 else want = O.wrap(want, out) end
    return got == want
  end
  want = want * 1.0
  local off = ulps(got, O.round(want, out), out,
                   out == work and least_size(op))
  local limit = out ~= work and 1 or out == "float64" and 45 or
                out == "float32" and limitof(op) or 1
  if steep[op.name] then
    local own = out == "float64" or O.device ~= "cpu"
    local part = own and 1 or 2.0 ^ -29
    limit = limit + part * steep[op.name](args[1])
  end
  if off <= limit and (want ~= 0 or same(got, want)) then
    local key = op.name .. " " .. out
    worst[key] = math.max(worst[key] or 0, off)
    return true
  end
  if got == 0 and want == 0 then return false end     -- of another sign
  local as = work == "float64" and work or "float32"
  if tolerable(op, got, as, out, args) then
    local key = op.name .. " " .. out .. " *"
    worst[key] = math.max(worst[key] or 0, off)
    return true
  end
  return false
end

-- ---- values

-- What an operation that computes in `work' reads of elements of type t.
local function seen(v, work)
  v = number(v)
  if O.isfloat(work) then return O.round(v * 1.0, work) end
  return work == "bool" and v or O.wrap(v, work)
end

local function prepare(op)
  op.parameter = O.parameters(op)
  op.tracking, op.tracked = {}, {}
  op.f = {}
  for _, t in ipairs {"float32", "float64", "bool", "int32", "int64"} do
    if not (O.isfloat(t) and op.class:find("^IN")) and
       not (not O.isfloat(t) and op.class:find("^FL")) then
      op.f[t] = O.compile(op.value, O.words(t), "x, a, b, c, p, q")
    end
    if O.isfloat(t) and op.f[t] then
      op.tracking[t] = O.tracked(t)
      op.tracked[t] = O.compile(op.value, op.tracking[t], "x, a, b, c, p, q")
    end
  end
end

local function refused(op, types, work)
  if op.kind == "choose" then return types[1] ~= "bool" end
  return work == nil
end

-- Zero divisors, which are refused, leave the samples.
local function divisors(op, list, t)
  if op.class ~= "DIVISION" or O.isfloat(t) then return list end
  local out = {}
  for _, v in ipairs(list) do if v ~= 0 then out[#out + 1] = v end end
  return out
end

-- par: values of p and q by name, or nil.
local function values(op, types, par)
  local skip = op.kind == "choose" and 1 or 0
  local kinds, bools = {}, false
  for i = 1 + skip, #types do
    kinds[#kinds + 1] = {dtype = types[i], dim = 1}
    bools = bools or types[i] == "bool"
  end
  local t = O.resulttype(kinds)
  local work = O.worktype(op.class, op.kind, t, bools)
  local lists, x = {}, {}
  for i = 1, #types do
    lists[i] = samples(types[i], op.arity)
    if i == 2 then lists[i] = divisors(op, lists[i], t) end
  end
  local columns, n = grid(lists)
  for i = 1, #types do
    x[i] = nacre.tensor(columns[i], {dtype = types[i]})
    columns[i] = x[i]:totable()
  end
  local what = op.name .. "(" .. table.concat(types, ", ") .. ")"
  local f = nacre[op.name]
  if refused(op, types, work) then
    fails("EDTYPE: " .. op.name .. ": ", f, table.unpack(x))
    return
  end
  if par then x[#x + 1] = par end
  local y = f(table.unpack(x))
  local out = O.outtype(op.class, op.kind, t, work)
  check(y.dtype == out, "%s gives %s, not %s", what, y.dtype, out)
  local got = y:totable()
  local of = op.f[O.isfloat(work) and (work == "float64" and work or "float32")
                   or (work == "int64" or work == "bool") and work or "int32"]
  local whole = op.class == "ROUNDING" and not O.isfloat(work)
  -- the conversion of a GPU gives one nan for all
  local of_sign = op.name == "copysign" and 2 or op.name == "signbit" and 1
  local loses_sign = of_sign and types[of_sign] == "float16" and
                     y.device ~= "cpu"
  for k = 1, n do
    local args = {}
    for i = 1, #types do
      local as = i <= skip and "int32" or work
      args[i] = seen(columns[i][k], as)
    end
    local want = whole and args[1] or
                 of(args[1], args[1], args[2], args[3], op.p, op.q)
    local any = loses_sign and args[of_sign] ~= args[of_sign]
    if not any and not compare(op, got[k], want, work, out, args) then
      check(false, "%s of %s %s %s is %s, not %s", what, args[1], args[2],
            args[3], got[k], want)
    else
      check(true)
    end
  end
end

local function setparameters(op, t, chosen)
  local list = op.parameter
  op.p, op.q = 1, 0
  for i, p in ipairs(list) do
    local v = chosen and chosen[p.name] or p.default
    if type(v) == "string" then
      for k, w in ipairs(p.words) do if w == v then v = k - 1 end end
    end
    if O.isfloat(t) then
      v = O.round(v * 1.0, t == "float64" and t or "float32")
    end
    op[i == 1 and "p" or "q"] = v
  end
end

-- Another value for each parameter.
local function others(op)
  local par = {}
  for _, p in ipairs(op.parameter) do
    par[p.name] = p.words and p.words[#p.words] or 2
  end
  return next(par) and par
end

local function everytype(op)
  for _, t in ipairs(O.dtypes) do
    local types = {}
    for i = 1, op.arity do types[i] = t end
    if op.kind == "choose" then types[1] = "bool" end
    setparameters(op, t)
    values(op, types)
    if (t == "float32" or t == "float64" or t == "int16") and others(op) and
       O.worktype(op.class, op.kind, t, false) then
      setparameters(op, t, others(op))
      values(op, types, others(op))
    end
  end
  if op.kind == "choose" then
    values(op, {"float32", "float32", "float32"})
  elseif op.arity == 2 then        -- some mixtures
    for _, m in ipairs {{"int32", "float32"}, {"float16", "bfloat16"},
                        {"uint8", "int8"}, {"float32", "float64"},
                        {"int64", "float16"}, {"int8", "int64"}} do
      local t = O.resulttype {{dtype = m[1], dim = 1},
                              {dtype = m[2], dim = 1}}
      setparameters(op, t)
      values(op, m)
    end
  end
end

-- ---- gradients: the text against differences of the value's

local function gradients(op)
  local words = O.vocabulary.float
  local points = {0.3, -0.45, 0.7, 1.6, -2.3, 4.1, 0.05, -3.7}
  local names = {"a", "b", "c"}
  if not next(op.grad) or op.kind == "reduce" then return end
  setparameters(op, "float64")
  local value = O.compile(op.value, words, "x, a, b, c, p, q")
  for i, text in pairs(op.grad) do
    local grad = O.compile(text, words, "g, x, a, b, c, y, p, q")
    local lists = {}
    for k = 1, op.arity do
      lists[k] = {}                 -- no ties
      for j, v in ipairs(points) do lists[k][j] = v + 0.011 * k end
      if op.kind == "choose" and k == 1 then lists[k] = {0, 1} end
    end
    local columns, n = grid(lists)
    for k = 1, n do
      local at = {}
      for j = 1, op.arity do at[j] = columns[j][k] end
      local function f(h)
        local z = {table.unpack(at)}
        z[i] = z[i] + h
        return value(z[1], z[1], z[2], z[3], op.p, op.q) + 0.0
      end
      local h = 1e-4 * math.max(1, math.abs(at[i]))
      local y = f(0)
      local left, right = (y - f(-h)) / h, (f(h) - y) / h
      local d = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
      local smooth = math.abs(left - right) < 0.02 * (math.abs(d) + 1) and
                     math.abs((f(2 * h) - f(-2 * h)) / (4 * h) - d) <
                     0.02 * (math.abs(d) + 1)
      if y == y and d == d and smooth then
        local want = grad(1.5, at[1], at[1], at[2], at[3], y, op.p, op.q)
        check(math.abs(want - 1.5 * d) <= 2e-5 * (1 + math.abs(want)),
              "%s: gradient %d (%s) at %s %s %s is %s, differences say %s",
              op.name, i, text, at[1], at[2], at[3], want, 1.5 * d)
      end
    end
  end
end

-- ---- many float32 numbers against float64, whose values are tested above

local many

local function sweep(op, name, f)
  if many == nil then
    local u = (nacre.arange(60000) * 40503 % 65536):to("float64") / 65536
    many = nacre.cat {u * 2 - 1, u * 20 - 10, u * 200 - 100,
                      (u * 170 - 85):exp(), -(u * 170 - 85):exp()}
    many = many:to("float32")
  end
  local want = f(many:to("float64"))
  local got = f(many):to("float64")
  local normal = want:isfinite() & want:abs():gt(1.2e-38) & want:abs():lt(
      3.4e38)
  local size = want:abs():clamp(least_size(op))
  if special[op.name] and terms[op.name] then
    size = size:maximum(terms[op.name](many:to("float64")))
  end
  local off = ((got - want) / size):abs() * 0x1p23  -- in ulp, at most
  if steep[op.name] and O.device ~= "cpu" then
    off = off - steep[op.name](many:to("float64"))
  end
  off = nacre.where(normal, off, 0)
  local most, at = off:max(1)
  local key = name .. " float32"
  worst[key] = math.max(worst[key] or 0, most:item())
  local odd = got:isnan():ne(want:isnan()) |
              got:isfinite() & want:abs():gt(3.41e38)
  check(not odd:any():item(), "%s is a number where it is none", name)
  check(most:item() <= limitof(op), "%s(%.9g) is off by %.2f ulp", name,
        many[at:item()], most:item())
end

local function sweeps(op)
  if op.kind == "unary" and op.class == "FLOAT" then
    sweep(op, op.name, nacre[op.name])
  elseif op.name == "zeta" then
    for _, s in ipairs {1.5, 2, 8, 30} do
      sweep(op, ("zeta(%g, ...)"):format(s), function(x)
        return nacre.zeta(s, x)
      end)
    end
  end
end

-- ---- the walk

nacre.manual_seed(1)
local wanted = {}
for _, name in ipairs(arg or {}) do wanted[name] = true end
for _, op in ipairs(O.operations()) do
  if op.kind ~= "reduce" and (not next(wanted) or wanted[op.name]) then
    prepare(op)
    everytype(op)
    sweeps(op)
    gradients(op)
  end
end

-- ---- powers that a cheaper operation does, to the last bit: their gradients,
-- too, and whether the elements are dense or not

if not next(wanted) then
  local cheaper = {[2] = "square", [1] = "positive", [-1] = "reciprocal"}
  for by, name in pairs(cheaper) do
    for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
      local x = (nacre.randn(40, 7) * 10):to(dtype)
      for _, v in ipairs {x, x:t(), x[{{1, 40, 3}}], x[1]} do
        local what = ("%s of %s"):format(name, dtype)
        O.check(v:pow(by):equal(v[name](v)), what)
        O.check((v ^ by):equal(v[name](v)), what)
        local a, b = v:clone():requires_grad_(), v:clone():requires_grad_()
        a:pow(by):sum():backward()
        b[name](b):sum():backward()
        O.check(by == -1 or a.grad:equal(b.grad), "the gradient of " .. what)
      end
    end
  end
end

-- 0.5 and 3: as for a tensor of them, to a few ulp, and the exact values where
-- pow and sqrt differ; a limit that is nan, and a minimum above the maximum

if not next(wanted) then
  local inf, nan = math.huge, 0 / 0
  local edges = {0.0, -0.0, inf, -inf, nan, -8.0, 4.0, 1e-30}
  local want = {[0.5] = {0, 0, inf, inf, nan, nan, 2, 1e-15},
                [3] = {0, -0.0, inf, -inf, nan, -512, 64, 1e-90}}
  for by, values in pairs(want) do
    local x = nacre.tensor(edges, {dtype = "float64"})
    local y = nacre.tensor(values, {dtype = "float64"})
    local what = "edges of pow by " .. by
    O.check(nacre.allclose(x:pow(by), y, {rtol = 1e-15, atol = 0,
                                          equal_nan = true}), what)
    O.check((1 / x:pow(by)[{{1, 2}}]):equal(1 / y[{{1, 2}}]), what)
    for dtype, most in pairs {float32 = 3e-7, float64 = 1e-15,
                              float16 = 2e-3, bfloat16 = 1e-2} do
      local v = (nacre.rand(40, 7) * 10):to(dtype)
      local other = v:pow(nacre.tensor(by, {dtype = dtype}):expand(40, 7))
      for _, z in ipairs {v, v:t()} do
        local full = z:dim() == 2 and z:size(1) == 7 and other:t() or other
        O.check(nacre.allclose(z:pow(by), full, {rtol = most, atol = 0}),
                ("pow by %g of %s"):format(by, dtype))
      end
    end
  end
  local x = nacre.tensor {-2.0, 0.0, 2.0, nan}
  local function is(y, ...)
    O.check(nacre.allclose(y, nacre.tensor {...}, {equal_nan = true}), "clamp")
  end
  is(x:clamp(-1, 1), -1, 0, 1, nan)
  is(x:clamp(1, -1), -1, -1, -1, nan)
  is(x:clamp(nan, 1), nan, nan, nan, nan)
  is(x:clamp(-1, nan), nan, nan, nan, nan)
  is(nacre.randn(70):clamp(0.5, 0.5), table.unpack(nacre.full({70}, 0.5)
                                                   :tolist()))
end

if os.getenv("NACRE_ULP") then
  local list = {}
  for key, off in pairs(worst) do
    if off > 0 then list[#list + 1] = ("%-30s %.2f"):format(key, off) end
  end
  table.sort(list)
  print(table.concat(list, "\n"))
end
O.done "pointwise"
