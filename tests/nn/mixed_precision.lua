-- SPDX-License-Identifier: MIT
-- autocast: which dtype each operation gets, regions in regions, errors,
-- gradients; GradScaler. Runs on the CPU, and on a device if that is the
-- default.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn, F = nacre.nn, nacre.nn.functional
local device = nacre.zeros(1).device
local lower = device == "cpu" and "bfloat16" or "float16"
local function region(...) return nacre.autocast(device, ...) end

-- ---- dtypes

local x, w = nacre.randn(4, 4), nacre.randn(4, 4)
local low = x:to(lower)
local image, kernel = nacre.randn(1, 2, 5, 5), nacre.randn(3, 2, 3, 3)
local bias, batch = nacre.randn(3), nacre.randn(2, 4, 4)
local wants = {
  [lower] = {
    mm = function() return x:mm(w) end,
    matmul = function() return x:matmul(w[1]) end,
    linear = function() return F.linear(x, w, w[1]) end,
    addmm = function() return w:addmm(x, x) end,
    conv2d = function() return F.conv2d(image, kernel) end,
    -- what one layer gave in the lower dtype, and the weight of the next
    conv2d_of_low = function()
      return F.conv2d(image:to(lower), kernel, bias)
    end,
    conv1d_of_low = function()
      return F.conv1d(image[{{}, {}, 1}]:to(lower), kernel[{{}, {}, 1}], bias)
    end,
    conv3d_of_low = function()
      return F.conv3d(image:unsqueeze(3):to(lower), kernel:unsqueeze(3), bias)
    end,
    conv_transpose2d_of_low = function()
      return F.conv_transpose2d(image:to(lower), kernel:transpose(1, 2), bias)
    end,
    einsum = function() return nacre.einsum("ij,jk->ik", x, w) end,
    einsum_of_low = function() return nacre.einsum("ij,jk->ik", low, w) end,
    bilinear_of_low = function() return F.bilinear(low, w, batch) end,
    baddbmm = function() return batch:baddbmm(batch:to(lower), batch) end,
    addbmm = function() return w:addbmm(batch, batch:to(lower)) end,
    addmv = function() return w[1]:addmv(low, w[1]) end,
    attention = function()
      return F.scaled_dot_product_attention(x:view(1, 4, 4), w:view(1, 4, 4),
                                            w:view(1, 4, 4))
    end,
    relu = function() return low:relu() end,
    add = function() return low + low end,
    dot = function() return nacre.dot(low[1], low[2]) end,
  },
  float32 = {
    exp = function() return low:exp() end,
    pow = function() return low ^ 2 end,
    sum = function() return low:sum() end,
    softmax = function() return low:softmax(1) end,
    layer_norm = function() return F.layer_norm(low, 4) end,
    mse_loss = function() return F.mse_loss(low, low) end,
    cross_entropy = function()
      return F.cross_entropy(low, nacre.tensor{1, 2, 3, 4})
    end,
    mixed = function() return low + x end,
    mixed_grid_sample = function()
      return F.grid_sample(image:to(lower), nacre.rand(1, 2, 2, 2))
    end,
    lu_solve = function()
      local LU, p = nacre.linalg.lu_factor(x)
      return nacre.linalg.lu_solve(LU, p, w)
    end,
    mixed_dot = function() return nacre.dot(low[1], x[1]) end,
    mixed_scatter_add = function()
      return x:scatter_add(1, nacre.ones(1, 4, {dtype = "int64"}), low)
    end,
    lstm = function() return (nn.LSTM(4, 3)(x)) end,
    given = function() return x:relu() end,
  },
  float64 = {
    double = function() return x:double():mm(w:double()) end,
  },
}
for dtype, calls in pairs(wants) do
  for name, f in pairs(calls) do
    local y = region(f)
    check(y.dtype == dtype, "%s gives %s, not %s", name, y.dtype, dtype)
  end
end
check(x:mm(w).dtype == "float32", "outside of a region nothing is cast")
fails("input is float32, weight is float64", region, function()
  return F.conv2d(image, kernel:double())
end)

-- The list in_float32 of composed.lua has no effect on operators of the core:
-- what becomes one belongs in core/trace/autocast.c.
local source = C.read(here .. "../../bindings/lib/composed.lua")
local listed = source:match "\nfor name in %(%[%[(.-)%]%]%)"
for name in listed:gmatch "%S+" do
  local info = nacre._info(name) or nacre._info("nn.functional." .. name)
  check(info and info.kind == "function", "%s is not composed", name)
end

-- ---- regions

local function enabled() return nacre.is_autocast_enabled(device) end
check(not enabled() and region(enabled), "is_autocast_enabled")
region(function()
  check(x:mm(w).dtype == lower, "a region")
  region({enabled = false}, function()
    check(x:mm(w).dtype == "float32" and not enabled(), "turned off inside")
  end)
  check(nacre.no_grad(function() return x:mm(w) end).dtype == lower,
        "no_grad keeps the region")
  check(x:mm(w).dtype == lower, "and on again")
end)
check(not pcall(region, error, "x") and not enabled(), "an error ends it")
local other = device == "cpu" and "cuda" or "cpu"
check(nacre.autocast(other, function() return x:mm(w) end).dtype == "float32",
      "a region of the other kind of device")
fails('device_type is "cuda" or "cpu"', nacre.autocast, "gpu", print)
fails("no argument 'dtpe'", nacre.autocast, "cpu", {dtpe = 1}, print)
fails("dtype is float16 or bfloat16", nacre.autocast, "cpu",
      {dtype = "float32"}, print)
fails("takes a function", nacre.autocast, "cpu")

-- ---- gradients arrive in float32, and are those of the cast operands

do
  local a = nacre.randn(3, 4):requires_grad_()
  local y = region(function() return a:mm(w) + a:mm(w) end)
  check(y.dtype == lower, "the sum of two products")
  y:sum():backward()
  local b = a:detach():to(lower):requires_grad_()
  local v = w:to(lower)
  ;(b:mm(v) + b:mm(v)):sum():backward()
  check(a.grad.dtype == "float32" and a.grad:equal(b.grad:float()),
        "the gradient of a cast operand")
  -- a leaf that changes in a region is cast again
  region(function()
    local before = a:mm(w)
    nacre.no_grad(function() a:mul_(2) end)
    check(not before:equal(a:mm(w)), "a cast of an old value")
  end)
  local live = dofile(here .. "../lib/common.lua").live
  region(function() return a:mm(w) end)
  collectgarbage()
  local bytes = live()
  for _ = 1, 3 do region(function() return a:mm(w) end) end
  collectgarbage()
  check(live() == bytes, "a region keeps memory")
end

-- ---- GradScaler

local function scaled(options)
  local p = nacre.ones(2):requires_grad_()
  local opt = nacre.optim.SGD({p}, {lr = 0.5})
  return p, opt, nacre.amp.GradScaler(options)
end

do
  local p, opt, scaler = scaled {init_scale = 8, growth_interval = 2}
  local function step(factor)
    opt:zero_grad()
    scaler:scale((p * p * factor):sum()):backward()
    scaler:step(opt)
    scaler:update()
  end
  step(1)
  check(p:eq(0):all():item() and scaler:get_scale() == 8, "a step")
  nacre.no_grad(function() p:fill_(1) end)
  step(1)
  check(scaler:get_scale() == 16, "the scale grows")
  nacre.no_grad(function() p:fill_(1) end)
  step(math.huge)
  check(p:eq(1):all():item() and scaler:get_scale() == 8,
        "a step that is left out")

  local state = scaler:state_dict()
  local _, _, again = scaled()
  again:load_state_dict(state)
  check(again:get_scale() == 8 and tostring(again) == "GradScaler(scale 8)",
        "state")

  opt:zero_grad()
  scaler:scale((p * p):sum()):backward()
  scaler:unscale_(opt)
  check(p.grad:eq(2):all():item(), "unscale_")
  fails("it was already called since the last update", scaler.unscale_, scaler,
        opt)
  scaler:step(opt)
  fails("it was already called since the last update", scaler.step, scaler, opt)
  scaler:update()
  fails("no step was taken", scaler.update, scaler)
  opt:zero_grad()
  fails("no parameter of the optimizer has a gradient", scaler.step, scaler,
        opt)
end
do
  local p, opt, scaler = scaled {enabled = false}
  local loss = (p * p):sum()
  check(rawequal(scaler:scale(loss), loss) and scaler:get_scale() == 1,
        "a scaler that is off")
  loss:backward()
  scaler:step(opt)
  scaler:update()
  check(p:eq(0):all():item() and next(scaler:state_dict()) == nil, "its step")
end
-- gradients of several dtypes, layouts and devices; one that is not finite
-- leaves out the step, wherever it is
do
  local devices = {"cpu"}
  for i = 1, nacre.cuda.is_available() and nacre.cuda.device_count() or 0 do
    devices[i] = "cuda:" .. i - 1
  end
  local function parameters()
    local list = {}
    for i, dtype in ipairs {"float32", "float64", "float16", "float32",
                            "bfloat16", "float32"} do
      local t = nacre.ones(3, i, {dtype = dtype}):to(devices[i % #devices + 1])
      t = i == 4 and t:t():contiguous():t() or t
      list[i] = t:clone():requires_grad_()
      list[i].grad = t * 2 ^ -3 * i
    end
    list[7] = nacre.ones(0):requires_grad_()
    list[7].grad = nacre.ones(0)
    return list
  end
  -- takes a step of a scale that float16 holds only in part
  local function step(list)
    local scaler = nacre.amp.GradScaler {init_scale = 2 ^ 20}
    local opt = nacre.optim.SGD(list, {lr = 2.0 ^ 18})
    scaler:step(opt)
    scaler:update()
    return scaler:get_scale()
  end
  local list, waits = parameters(), 0
  local methods, item = nacre._made, nacre.zeros(1).item
  methods.item = function(t)
    waits = waits + 1
    return item(t)
  end
  check(step(list) == 2 ^ 20, "gradients are finite")
  methods.item = item
  check(waits == 1, waits .. " waits in a step")
  for i = 1, 6 do
    check(list[i]:detach():double():sub(1 - i / 32):abs():max():item() < 2e-3,
          "a step of gradient " .. i)
  end
  for bad = 1, 6 do
    for _, value in ipairs {math.huge, -math.huge, 0 / 0} do
      list = parameters()
      nacre.no_grad(function() list[bad].grad[3][bad] = value end)
      check(step(list) == 2 ^ 19, "gradient " .. bad .. " is not finite")
      for i = 1, 6 do check(list[i]:eq(1):all():item(), "no step") end
    end
  end
end
check(nacre.GradScaler("cpu", {init_scale = 4}):get_scale() == 4, "a device")
fails("init_scale is given by name", nacre.amp.GradScaler, 1024)
fails('device_type is "cuda" or "cpu", not tpu', nacre.amp.GradScaler, "tpu")
fails("growth_factor must be above 1", nacre.amp.GradScaler,
      {growth_factor = 1})

O.done "mixed_precision"
