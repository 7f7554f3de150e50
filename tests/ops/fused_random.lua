-- SPDX-License-Identifier: MIT
-- Random functions give the same bits fused and unfused: chains of pointwise
-- operations, casts, comparisons, reductions, views, operators along lines and
-- writes in place, over several dtypes, layouts and broadcast shapes, with and
-- without gradients, second derivatives, for one thread and several.
-- Run by: nacre tests/ops/fused_random.lua [functions [seed]]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check, bits = O.check, O.bits

local count, first = tonumber(arg[1]) or 1500, tonumber(arg[2]) or 1
local random = math.random

local function pick(list) return list[random(#list)] end

local unary, binary = {}, {}
for _, op in ipairs(O.operations()) do
  if op.kind ~= "reduce" and op.kind ~= "choose" then
    if op.arity == 1 then unary[#unary + 1] = op.name
    elseif op.arity == 2 then binary[#binary + 1] = op.name end
  end
end
local common = {"exp", "tanh", "sigmoid", "square", "abs", "neg", "sqrt",
                "rsqrt", "relu", "log1p", "sin", "erf"}
local reductions = {"sum", "mean", "amax", "amin", "sum", "mean", "prod",
                    "nansum", "var", "std", "norm", "logsumexp"}

local F = nacre.nn.functional

-- A function's text, line by line; v is the list of the names of its values.
local Maker = {}
Maker.__index = Maker

function Maker:any() return self.v[random(#self.v)] end

function Maker:add(text, ...)
  local name = "v" .. #self.v + 1
  self.lines[#self.lines + 1] = ("  local %s = %s")
                                :format(name, text:format(...))
  self.v[#self.v + 1] = name
end

function Maker:say(text, ...)
  self.lines[#self.lines + 1] = "  " .. text:format(...)
end

local number = function() return pick {"2", "0.5", "1.7", "-3", "0.25", "k"} end

local statements = {
  function(m) m:add("nacre.%s(%s)", pick(unary), m:any()) end,
  function(m) m:add("%s:%s()", m:any(), pick(common)) end,
  function(m) m:add("%s:%s()", m:any(), pick(common)) end,
  function(m)
    m:add("%s %s %s", m:any(), pick {"+", "-", "*", "/"}, m:any())
  end,
  function(m)
    m:add("%s %s %s", m:any(), pick {"+", "-", "*", "/"}, m:any())
  end,
  function(m) m:add("%s %s %s", m:any(), pick {"+", "-", "*"}, number()) end,
  function(m) m:add("%s %s %s", number(), pick {"-", "*", "/"}, m:any()) end,
  function(m) m:add("nacre.%s(%s, %s)", pick(binary), m:any(), m:any()) end,
  function(m)
    m:add("nacre.where(%s:%s(%s), %s, %s)", m:any(),
          pick {"gt", "le", "ne"}, number(), m:any(), m:any())
  end,
  function(m)
    m:add("%s:clamp(%s)", m:any(),
          pick {"0", "nil, 1", "-0.5, 0.5", "k", "0, k", "k, 2", m:any(),
                m:any() .. ", 1"})
  end,
  function(m) m:add("nacre.addcmul(%s, %s, %s)", m:any(), m:any(), m:any()) end,
  function(m) m:add("%s:%s(-1, %s)", m:any(), pick(reductions),
                    pick {"true", "false"}) end,
  function(m)
    local x = m:any()
    m:add("%s:%s(-1, true)", x, pick(reductions))
    m:add("%s %s v%d", x, pick {"-", "*", "/"}, #m.v)
  end,
  function(m) m:add("%s:%s(-1)", m:any(), pick {"softmax", "log_softmax"}) end,
  function(m)
    local x = m:any()
    m:add("F.layer_norm(%s, {%s:size(-1)})", x, x)
  end,
  function(m) m:add("%s:%s", m:any(), pick {
    "unsqueeze(1)", "unsqueeze(-1)", "flatten()", "squeeze()", "view(-1)",
    "reshape(-1, 64)", "t()", "narrow(1, 1, 2)", "select(1, 1)",
    "expand(3, -1, -1)", "contiguous()", "transpose(1, 2)"}) end,
  function(m) m:add("%s:to(%q)", m:any(), pick {
    "float32", "float64", "float16", "bfloat16", "int32", "bool"}) end,
  function(m) m:add("%s:float()", m:any()) end,
  function(m)
    if not m.grad then
      m:say("%s:%s(%s)", m:any(), pick {"add_", "mul_", "sub_"}, m:any())
    else m:add("%s:clone():%s(%s)", m:any(), pick {"add_", "mul_"}, m:any())
    end
  end,
  function(m) m:add("F.dropout(%s, 0.3)", m:any()) end,
  function(m)
    m:add("%s:%s(-1, true)", m:any(), pick {"max", "min"})
    m:add("%s %s v%d", m:any(), pick {"-", "*", "/"}, #m.v)
  end,
  function(m)
    local x = m:any()
    m:add("%s(%s:size())", pick {"nacre.rand", "nacre.randn"}, x)
    m:add("%s %s v%d", x, pick {"-", "*", "+"}, #m.v)
  end,
  function(m)                                  -- once more, maybe in place
    for i = #m.lines, 1, -1 do
      local text = m.lines[i]:match "^  local v%d+ = (.*)$"
      if text then
        m:add("%s", text)
        return
      end
    end
  end,
  function(m)
    local x, k = m:any(), number()
    m:add("%s * %s", x, k)
    if not m.grad then m:say("%s:mul_(%s)", x, k) end
  end,
  function(m) m:add("%s:detach()", m:any()) end,
  function(m)
    if m.grad then return end
    m:say("nacre.add(%s, %s, {out = %s})", m:any(), m:any(), m:any())
  end,
}

-- A random function of three tensors and a number that runs on these, built
-- line by line: a line that fails is left out.
local function make(grad, x)
  local m = setmetatable({lines = {}, v = {"a", "b", "c"}, grad = grad}, Maker)
  local function compiled()
    -- in the order in which they are made, which is that of the sums of the
    -- gradients of an operand
    local n, results, early = #m.v, {}, random(#m.v)
    for i = 4, n do
      if i == early or i > n - 4 then results[#results + 1] = m.v[i] end
    end
    if not results[1] then results[1] = "a + b" end
    return ("local F = ...\nreturn function(a, b, c, k)\n%s\n  return %s\nend")
           :format(table.concat(m.lines, "\n"), table.concat(results, ", "))
  end
  local wanted = random(3, 14)
  for _ = 1, 4 * wanted do
    local lines, values = #m.lines, #m.v
    pick(statements)(m)
    local f = load(compiled())(F)
    local y = {}
    for i = 1, 3 do y[i] = x[i]:clone() end
    local results = table.pack(pcall(f, y[1], y[2], y[3], 0.37))
    local large = false
    for i = 2, results.n do
      large = large or results[1] and results[i]:numel() > 300000
    end
    if not results[1] or large then
      for i = #m.lines, lines + 1, -1 do m.lines[i] = nil end
      for i = #m.v, values + 1, -1 do m.v[i] = nil end
    end
    if #m.lines >= wanted then break end
  end
  return compiled()
end

local shapes = {
  {{300}, {300}, {1}}, {{7, 64}, {7, 64}, {64}}, {{5, 100}, {5, 1}, {100}},
  {{3, 4, 50}, {3, 4, 50}, {3, 4, 1}}, {{40, 33}, {40, 33}, {40, 33}},
  {{2000}, {2000}, {2000}}, {{2, 3}, {2, 3}, {3}},
  {{2, 1100}, {2, 1100}, {1100}},
  {{4, 4}, {4, 1}, {1, 4}}, {{64, 64}, {64, 1}, {64}},
}

local places = {
  function(t) return t end, function(t) return t end,
  function(t)
    return t.ndim == 2 and t:t():contiguous():t() or t
  end,
  function(t)
    return t:unsqueeze(1):expand(2, table.unpack(t:size())):contiguous()
            :select(1, 2)
  end,
  function(t)
    local wide = nacre.cat({t, t}, t.ndim)
    return wide:slice(wide.ndim, 1, -1, 2)
  end,
}

local function operands(t)
  local x, place = {}, pick(places)
  for i, s in ipairs(pick(shapes)) do
    local y = (nacre.rand(s) * 2.2 - 0.7):to(t)
    x[i] = place(y)
  end
  return x
end

local function call(f, x)
  nacre.manual_seed(x.seed or 1)
  local r = table.pack(pcall(f, x[1], x[2], x[3], x[4]))
  r.exact = r.n - 1                            -- results of these bits
  return r
end

-- true and the gradients; or false and the error.
local function grad(y, leaves, create)
  local r = table.pack(pcall(nacre.autograd.grad, {y}, leaves,
                             {allow_unused = true, create_graph = create}))
  if not r[1] then return false, r[2] end
  return true, {table.unpack(r, 2, r.n)}
end

local function copies(x, k)
  local y = {x[1]:clone(), x[2]:clone(), x[3]:clone(), k}
  for i = 1, 3 do                              -- in the layout of x
    if not x[i]:is_contiguous() then
      y[i] = nacre.empty(2 * x[i]:numel(), {dtype = x[i].dtype})
                  :as_strided(x[i]:size(), x[i]:stride()):copy_(x[i])
    end
  end
  return y
end

local fused_parts, several = 0, 0
-- Is the function a single part, without results that share memory?
local function note(fused, x)
  local text = tostring(fused:explain(table.unpack(x)))
  local _, n = text:gsub("fused over", "")
  fused_parts = fused_parts + n
  if not text:find "^part 1, fused" or text:find "part 2" then return false end
  several = several + 1
  return true
end

local function complain(what, text)
  error(("%s differs in\n%s"):format(what, text), 0)
end

-- A sum in another order: an operand is used by several parts, or a result and
-- a view of it.
local function is_near(a, b, text)
  local halves = text:find "float16"
  if not (nacre.is_tensor(a) and nacre.is_tensor(b)) then return false end
  if a.dtype ~= b.dtype or not nacre.equal(nacre.tensor(a:size()),
                                           nacre.tensor(b:size())) then
    return false
  end
  -- the gradient of x/x is a rest of numbers as large as 1/x
  if halves and text:find "%f[%w](%w+) / %1%f[%W]" then return true end
  local narrow = a.dtype == "float32" or text:find "float%(" or
                 text:find "float32"
  local tolerance = halves and 5e-2 or narrow and 1e-4 or 1e-7
  a, b = a:detach():double(), b:detach():double()
  local finite = a:isfinite():logical_and(b:isfinite())
  a, b = nacre.where(finite, a, 0), nacre.where(finite, b, 0)
  if a:numel() == 0 then return true end
  if a:abs():max():item() > 1e8 then return true end  -- divided by a rest
  return (a - b):abs():max():item() <= tolerance * (a:abs():max():item() + 1)
end

local function compare(text, what, want, got, near)
  if want[1] ~= got[1] then complain(what .. ": " .. tostring(got[2]), text) end
  if not want[1] then return false end
  for i = 2, want.n do
    local same = bits(want[i]) == bits(got[i])
    if not same and i > want.exact + 1 then
      same = near and is_near(want[i], got[i], text)
    end
    if not same then
      complain(("%s: result %d"):format(what, i - 1), text)
    end
  end
  return true
end

local function plain(seed, t)
  local x = operands(t)
  local text = make(false, x) .. " -- of " .. t
  local f = load(text)(F)
  local fused = nacre.fuse(f)
  for turn = 1, 3 do
    local k = 0.1 + turn / 7
    local xs, ys = copies(x, k), copies(x, k)
    nacre.set_num_threads(turn)
    compare(text, ("%d, %s, turn %d"):format(seed, t, turn), call(f, xs),
            call(fused, ys))
    for i = 1, 3 do
      if bits(xs[i]) ~= bits(ys[i]) then
        complain(("%d: operand %d"):format(seed, i), text)
      end
    end
  end
  note(fused, copies(x, 0.3))
end

local function gradients(f, x, wanted, create)
  local leaves, y = {}, copies(x, x[4])
  for i = 1, 3 do
    if wanted[i] then
      y[i]:requires_grad_()
      leaves[#leaves + 1] = y[i]
    end
  end
  local r = call(f, y)
  if not r[1] then return r end
  local total
  for i = 2, r.n do
    if nacre.is_tensor(r[i]) and r[i].requires_grad then
      local w = nacre.linspace(-1, 1.3, r[i]:numel(), {dtype = r[i].dtype})
                :view(r[i]:size())
      local one = i == 2 and wanted.plain and r[i]:sum() or (r[i] * w):sum()
      total = total and total + one:double() or one:double()
    end
  end
  if not total then return r end
  local ok, g = grad(total, leaves, create)
  if not ok then return {false, g, n = 2, exact = 0} end
  for i = 1, #leaves do
    r.n = r.n + 1
    r[r.n] = g[i] or "none"
  end
  if not create then return r end
  local second
  for i = 1, #leaves do
    if g[i] and g[i].requires_grad then
      local s = (g[i] * g[i]):sum()
      second = second and second + s or s
    end
  end
  if not second then return r end
  ok, g = grad(second, leaves)
  if not ok then return {false, g, n = 2, exact = 0} end
  for i = 1, #leaves do
    r.n = r.n + 1
    r[r.n] = g[i] or "none"
  end
  return r
end

local function differentiable(seed, t)
  local x = operands(t)
  local text = make(true, x)
  -- may two results be one memory?
  local shares = text:find(t .. "\"", 1, true)
  for _, name in ipairs {"view", "squeeze", "reshape", "flatten", "float%(%)",
                         "contiguous", ":t%(%)", "narrow"} do
    shares = shares or text:find(name)
  end
  -- second derivatives of differences of nearly equal values are noise
  local exact = t == "float64" and not text:find "float"
  text = text .. " -- of " .. t
  local f = load(text)(F)
  local fused = nacre.fuse(f)
  local wanted = {random() < 0.8, random() < 0.5, random() < 0.4,
                  plain = random() < 0.4}
  if not (wanted[2] or wanted[3]) then wanted[1] = true end
  x[4] = 0.1 + 1 / 7                           -- 0.3 is in dropout
  local one = note(fused, x) and not shares
  for turn = 1, 3 do
    nacre.set_num_threads(turn)
    x[4] = 0.1 + turn / 7
    compare(text, ("%d, %s, gradients, turn %d"):format(seed, t, turn),
            gradients(f, x, wanted, turn == 3 and exact),
            gradients(fused, x, wanted, turn == 3 and exact),
            not one or turn == 3)
  end
end

local failed
for i = first, first + count - 1 do
  math.randomseed(i)
  nacre.manual_seed(i)
  local ok, e
  if i % 2 == 0 then
    ok, e = pcall(differentiable, i,
                  pick {"float32", "float64", "float32", "float16"})
  else
    ok, e = pcall(plain, i,
                  pick {"float32", "float64", "int32", "bfloat16", "bool"})
  end
  if not ok then
    failed = (failed or 0) + 1
    print(e)
    if failed == 8 then break end
  end
end
check(not failed, "%s functions differ", failed)
check(fused_parts > count / 2, "only %d parts were fused", fused_parts)
print(("%d fused parts, %d functions in one pass"):format(fused_parts, several))
O.done("fused_random")
