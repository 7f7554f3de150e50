-- SPDX-License-Identifier: MIT
-- Optimizers: groups, states, errors; clipping. Their numbers are compared with
-- PyTorch's in tests/torch/optimizers_torch.py.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn, optim = nacre.nn, nacre.optim

local function near(got, want)
  assert(math.abs(got - want) <= 1e-6 * math.max(1, math.abs(want)),
         ("%.17g, not %.17g"):format(got, want))
end

local function parameter(...)
  return nacre.tensor({...}, {dtype = "float64"}):requires_grad_()
end

-- One step with these gradients.
local function step(opt, p, ...)
  p.grad = nacre.tensor({...}, {dtype = "float64"})
  opt:step()
end

-- ---- what is given

local net = nn.Linear(2, 2)
assert(#optim.SGD(net).param_groups[1].params == 2)
assert(optim.SGD(net:parameters(), 0.5).param_groups[1].lr == 0.5)
assert(#optim.SGD(net:named_parameters()).param_groups[1].params == 2)
assert(#optim.SGD {{params = net:named_parameters(), lr = 1}}
       .param_groups[1].params == 2)
fails("SGD: params must be a list of tensors, a module or groups, not a tensor",
      optim.SGD, net.weight)
local p, q = parameter(1.0), parameter(2.0)
local opt = optim.SGD({{params = {p}, lr = 0.1}, {params = q}},
                      {lr = 0.2, momentum = 0.9})
assert(opt.param_groups[1].lr == 0.1 and opt.param_groups[2].lr == 0.2)
assert(opt.param_groups[1].momentum == 0.9)
opt:add_param_group {params = {parameter(3.0)}, weight_decay = 0.5}
assert(opt.param_groups[3].weight_decay == 0.5)
fails("param is given twice", opt.add_param_group, opt, {params = {p}})
fails("SGD: no argument 'mommentum'", opt.add_param_group, opt,
      {params = {parameter(1.0)}, mommentum = 1})
fails("SGD: there are no parameters", optim.SGD, {})
fails("SGD: element 1 of params is a string", optim.SGD, {"x"})
fails("SGD: param does not require a gradient", "param:requires_grad_()",
      optim.SGD,
      {nacre.ones(1)})
fails("SGD: param is a result, not a leaf", optim.SGD, {p * 2})
fails("no argument 'momentun', did you mean 'momentum'?", optim.SGD, {p},
      {momentun = 1})
fails("lr is -1, but must be a number of 0 or more", optim.Adam, {p}, {lr = -1})
fails("betas[2] is 1, but must be from 0 to below 1", optim.Adam, {p},
      {betas = {0.9, 1}})
fails("nesterov needs a momentum", optim.SGD, {p}, {nesterov = true})
fails("rho is 1, but must be a number from 0 to below 1", optim.Adadelta, {p},
      {rho = 1})
fails("etas must be a number from 0 to 1 and one above 1", optim.Rprop, {p},
      {etas = {0.5, 0.9}})
fails("step_sizes must be a list of two numbers", optim.Rprop, {p},
      {step_sizes = {1}})
fails("eps must be a list of two numbers", optim.Adafactor, {p}, {eps = {1}})
fails("d must be at least 1", optim.Adafactor, {p}, {d = 0.5})
fails("beta2_decay must not be above 0", optim.Adafactor, {p},
      {beta2_decay = 0.5})

fails("step: takes at most 1 argument, got 2", opt.step, opt, nil, 1)
fails("step: takes a function that computes the loss, not a number", opt.step,
      opt, 1)
fails("zero_grad: a method is called with a colon", "opt:zero_grad(...)",
      opt.zero_grad)
q.grad = parameter(1.0)
opt:zero_grad {set_to_none = false}
assert(q.grad:item() == 0)
opt:zero_grad(true)
assert(q.grad == nil)

-- a frozen parameter is passed over
local frozen = nn.Linear(2, 2):requires_grad_(false)
optim.SGD(frozen):step()

-- ---- steps

p = parameter(1.0, 2.0)
opt = optim.SGD({p}, {lr = 0.1, momentum = 0.5})
step(opt, p, 1.0, -1.0)
step(opt, p, 1.0, -1.0)
C.is(p:detach(), "{0.75,2.25}")
opt:zero_grad()
assert(p.grad == nil)
local loss = opt:step(function()
  opt:zero_grad()
  local y = (p * p):sum()
  y:backward()
  return y
end)
near(loss:item(), 0.75 ^ 2 + 2.25 ^ 2)
assert(p.is_leaf and p.requires_grad)

p = parameter(1.0)
opt = optim.Adam({p}, {lr = 0.1})
step(opt, p, 3.0)                       -- the first step is lr whatever g is
near(p:item(), 0.9)
opt = optim.SGD({p}, {lr = 0.1, maximize = true})
step(opt, p, 1.0)
near(p:item(), 1.0)
assert(tostring(opt):find("lr=0.1", 1, true))

-- a dry run leaves nothing in the state
p = nacre.ones(2):requires_grad_()
p.grad = nacre.ones(2)
opt = optim.Adam({p})
nacre._watch "dry"
local ok, e = pcall(opt.step, opt)
nacre._watch("")
assert(not ok and tostring(e):find "dry run", tostring(e))
assert(next(opt.state) == nil)

-- ---- all parameters as one operation: the same as by the Lua text

local function same(t) return t end
local function transposed(t) return t:t():contiguous():t() end

local device = nacre.cuda.is_available() and "cuda" or "cpu"

local function train(name, options, dtype, fused, layout)
  nacre.manual_seed(4)
  local params = {}
  for i, n in ipairs {1, 7, 0, 300} do
    params[i] = layout(nacre.randn(n, 3):to(device, dtype)):requires_grad_()
  end
  local o = optim[name](params, options)
  if not fused then o.fused = false end
  for t = 1, 4 do
    for i, v in ipairs(params) do
      -- parameters of one age are one operation, others are not
      v.grad = nil
      if layout == same or i ~= t then
        v.grad = nacre.randn(v:size()):to(device, dtype)
      end
    end
    o:step()
  end
  return params, o
end

for _, case in ipairs {
  {"SGD", {lr = 0.1}}, {"SGD", {lr = 0.1, momentum = 0.9}},
  {"SGD", {lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.1}},
  {"SGD", {lr = 0.1, momentum = 0.9, dampening = 0.5, maximize = true}},
  {"Adam", {}}, {"Adam", {weight_decay = 0.1, maximize = true}},
  {"Adam", {amsgrad = true}}, {"AdamW", {betas = {0.5, 0.9}}},
  {"Adamax", {weight_decay = 0.1}}, {"Adamax", {eps = 1, maximize = true}},
  {"NAdam", {weight_decay = 0.1}}, {"NAdam", {decoupled_weight_decay = true}},
  {"RAdam", {weight_decay = 0.1}},      -- betas: rectified from step 2 on
  {"RAdam", {betas = {0.5, 0.8}, decoupled_weight_decay = true,
             weight_decay = 0.1}},
  {"RMSprop", {}}, {"RMSprop", {centered = true}},
  {"RMSprop", {momentum = 0.5, weight_decay = 0.1}},
  {"RMSprop", {centered = true, momentum = 0.5, maximize = true}},
  {"Adagrad", {lr_decay = 0.1, weight_decay = 0.1}},
  {"Adagrad", {initial_accumulator_value = 0.5}},
  {"Adadelta", {weight_decay = 0.1}}, {"Adadelta", {rho = 0.5}},
} do
  for dtype, rtol in pairs {float32 = 1e-5, float64 = 1e-13, float16 = 0} do
    for _, layout in ipairs {same, transposed} do
      local one, a = train(case[1], case[2], dtype, true, layout)
      local two = train(case[1], case[2], dtype, false, layout)
      for i in ipairs(one) do
        assert(nacre.allclose(one[i], two[i], rtol, rtol / 10, true),
               ("%s %s parameter %d"):format(case[1], dtype, i))
      end
      assert(a.state[one[2]].step == (layout == same and 4 or 3))
    end
  end
end
-- Before RAdam knows the variance it does not read it: the square of a gradient
-- may be infinite.
for _, big in ipairs {1e30, -1e30} do
  local x = nacre.zeros(40):requires_grad_()
  local o = optim.RAdam({x}, {lr = 1e-3})
  for _ = 1, 5 do
    x.grad = nacre.full({40}, big)
    o:step()
  end
  near(x[40]:item() / (-5e-3 * big), 1)
end
local counted = parameter(1.0)
local version = counted * 2             -- saves nothing of it
counted.grad = nacre.ones(1, {dtype = "float64"})
local product = counted * counted
optim.SGD({counted}, 0.1):step()
fails("was changed in place", product.backward, product)
assert(version)

-- ---- limits

-- RAdam reads no second mean before it knows its variance
for _, fused in ipairs {true, false} do
  local r = nacre.tensor {1.0, 1.0}:to(device):requires_grad_()
  local o = optim.RAdam({r}, {lr = 1e-3, maximize = true})
  if not fused then o.fused = false end
  for _ = 1, 2 do
    r.grad = nacre.tensor {1e30, -2e25}:to(device)
    o:step()
  end
  assert(nacre.allclose(r:cpu(), nacre.tensor {2e27, -4e22}))
end

-- a step of half parameters is that of float32, rounded once: also of gradients
-- whose squares are 0 in half, or infinite
for _, name in ipairs {"SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam",
                       "RMSprop", "Adagrad", "Adadelta", "Rprop", "ASGD"} do
  for _, dtype in ipairs {"float16", "bfloat16"} do
    local start = nacre.tensor({1.0, 1, 1, 1, -2}):to(device, dtype)
    local narrow = start:clone():requires_grad_()
    local o = optim[name]({narrow}, name == "SGD" and {momentum = 0.9} or {})
    local wide, wanted = start:float():requires_grad_(), nil
    wanted = optim[name]({wide}, name == "SGD" and {momentum = 0.9} or {})
    for _ = 1, 3 do
      narrow.grad = nacre.tensor({0, 1e-6, 1e-3, 300, 6e4}):to(device, dtype)
      wide.grad = narrow.grad:float()
      nacre.no_grad(wide.copy_, wide, narrow)
      o:step()
      wanted:step()
      assert(nacre.equal(narrow, wide:to(dtype)), name .. " " .. dtype)
    end
    assert(narrow.dtype == dtype and narrow:isfinite():all():item())
    for key, v in pairs(o.state[narrow]) do
      assert(not nacre.is_tensor(v) or v.dtype == "float32", key)
    end
  end
end

-- the norm of halves is in the range of float32
for _, dtype in ipairs {"float16", "bfloat16"} do
  local h = nacre.ones(65536):to(device, dtype):requires_grad_()
  local f = nacre.ones(4):to(device):requires_grad_()
  h.grad, f.grad = h:detach() * 300, nacre.zeros(4, {device = device})
  for norm_type, total in pairs {[1] = 300 * 65536, [2] = 76800} do
    h.grad = h:detach() * 300
    local norm = nn.utils.clip_grad_norm_({h, f}, norm_type == 1 and 65536 or
                                                  256, norm_type, true)
    assert(math.abs(norm:item() / total - 1) < 0.01, tostring(norm))
    assert(math.abs(h.grad[1] - 1) < 0.01, dtype)
  end
end

-- ---- state: it follows its parameter

for _, name in ipairs {"SGD", "Adam", "Adadelta", "LBFGS"} do
  local layer = nn.Linear(2, 2)
  local o = optim[name](layer, name == "SGD" and {momentum = 0.9} or {})
  local function learn(there)
    local x = nacre.ones(3, 2, there or {})
    o:step(function()
      o:zero_grad()
      local l = (layer(x) ^ 2):sum()
      l:backward()
      return l
    end)
  end
  learn()
  layer:double()
  learn {dtype = "float64"}
  for _, v in pairs(o.state[layer.weight]) do
    assert(not nacre.is_tensor(v) or v.dtype == "float64", name)
  end
  layer:float():to(device)
  learn {device = device}
  layer:cpu()
  learn()
end

-- ---- state: going on is the same as not having stopped

for _, name in ipairs {"SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam",
                       "RMSprop", "Adagrad", "Adadelta"} do
  local options = name == "SGD" and {momentum = 0.9} or {}
  local a, b = parameter(1.0, -2.0), parameter(0.0, 0.0)
  local one, two = optim[name]({a}, options), optim[name]({b}, options)
  for i = 1, 3 do step(one, a, i, -i) end
  nacre.no_grad(b.copy_, b, a)
  two:load_state_dict(one:state_dict())
  step(one, a, 1.0, 2.0)
  step(two, b, 1.0, 2.0)
  assert(a == b, name)
  assert(one.state[a].step == 4 and two.state[b].step == 4)
end
local other = optim.Adam({parameter(1.0), parameter(1.0)})
fails("group 1 has 2 parameters, but that of the state has 1",
      other.load_state_dict,
      other, optim.Adam({parameter(1.0)}):state_dict())
fails("a table of state_dict is expected", other.load_state_dict, other, {})

-- the state follows the dtype of the parameters
local single = nacre.ones(2):requires_grad_()
local adam = optim.Adam({single})
p = parameter(1.0, 1.0)
opt = optim.Adam({p})
step(opt, p, 1.0, 1.0)
adam:load_state_dict(opt:state_dict())
assert(adam.state[single].exp_avg.dtype == "float32")

-- ---- Muon: matrices only, whose update has singular values of about 1

do
  nacre.manual_seed(2)
  for _, size in ipairs {{6, 4}, {4, 6}, {5, 5}} do
    local m = nacre.randn(size[1], size[2], {dtype = "float64"}):to(device)
    m:requires_grad_()
    local before = m:detach():clone()
    local muon = optim.Muon({m}, {lr = 1, weight_decay = 0})
    m.grad = nacre.randn(m:size()):to(device, "float64")
    muon:step()
    local ratio = math.sqrt(math.max(1, size[1] / size[2]))
    local s = nacre.linalg.svdvals((before - m):detach():cpu()) / ratio
    assert(s:max():item() < 1.3 and s:min():item() > 0.5, tostring(s))
    -- the same directions as those of the gradient
    local along = ((before - m) * m.grad):sum():item()
    local nuclear = nacre.linalg.svdvals(m.grad:cpu()):sum():item()
    assert(along > 0.6 * ratio * nuclear)
    near(muon.state[m].momentum_buffer:sub(m.grad * 0.05):abs():max():item(), 0)
  end
  local w = nacre.zeros(8, 2):to(device):requires_grad_()
  local function moved(options)
    nacre.no_grad(w.zero_, w)
    w.grad = nacre.ones(8, 2, {device = device})
    optim.Muon({w}, options):step()
    return -w[1][1]:item()
  end
  local one = moved {lr = 1}
  near(moved {lr = 1, adjust_lr_fn = "spectral_unclamped"}, one)
  near(moved {lr = 1, adjust_lr_fn = "match_rms_adamw"},
       one / 2 * 0.2 * math.sqrt(8), 1e-6)
  near(moved {lr = 1, adjust_lr_fn = "original"}, one)
  fails("Muon: it optimizes matrices, and param is none", optim.Muon,
        {nacre.ones(3):requires_grad_()})
  fails("adjust_lr_fn is one of original, match_rms_adamw, spectral_unclamped, "
        .. "not 'orignal'", optim.Muon, {w}, {adjust_lr_fn = "orignal"})
  fails("ns_coefficients must be a list of three numbers", optim.Muon, {w},
        {ns_coefficients = {1, 2}})
  fails("ns_steps is 100, but must be from 0 to below 100", optim.Muon, {w},
        {ns_steps = 100})
  fails("momentum is -1", optim.Muon, {w}, {momentum = -1})
end

-- ---- LBFGS

-- Rosenbrock's valley, whose floor is 0 at (1, 1), split over two parameters
local function valley(options)
  local u, v = parameter(-1.2), parameter(1.0)
  local o = optim.LBFGS({u, v}, options)
  return u, o, function()
    o:zero_grad()
    local y = (100 * (v - u * u) ^ 2 + (1 - u) ^ 2):sum()
    y:backward()
    return y
  end
end

local u, lbfgs, closure = valley {line_search_fn = "strong_wolfe",
                                  max_iter = 100}
near(lbfgs:step(closure):item(), 24.2)      -- the loss before the step
assert(math.abs(u:item() - 1) < 1e-3)
local s = lbfgs.state[u]
assert(s.n_iter > 10 and s.func_evals >= s.n_iter and #s.old_dirs < 100)
assert(lbfgs.param_groups[1].max_eval == 125)
u, lbfgs, closure = valley {lr = 0.1, max_iter = 3, max_eval = 9,
                           history_size = 1}
lbfgs:step(closure)
assert(#lbfgs.state[u].old_dirs == 1 and lbfgs.state[u].n_iter == 3)
u, lbfgs, closure = valley {max_eval = 1}
lbfgs:step(closure)
assert(lbfgs.state[u].n_iter == 1)
u, lbfgs, closure = valley {tolerance_grad = 1e9}
lbfgs:step(closure)
assert(u:item() == -1.2 and lbfgs.state[u].n_iter == 0)

-- going on from a state is the same as not having stopped
local wolfe = {line_search_fn = "strong_wolfe", max_iter = 4}
u, lbfgs, closure = valley(wolfe)
lbfgs:step(closure)
local w, going_on, closure2 = valley(wolfe)
for i, to in ipairs(going_on.param_groups[1].params) do
  nacre.no_grad(to.copy_, to, lbfgs.param_groups[1].params[i])
end
going_on:load_state_dict(lbfgs:state_dict())
lbfgs:step(closure)
going_on:step(closure2)
assert(u == w and u:item() ~= -1.2)

fails("LBFGS computes the loss several times", lbfgs.step, lbfgs)
fails("all parameters are one group", lbfgs.add_param_group, lbfgs,
      {params = {parameter(1.0)}})
fails("line_search_fn is nil or 'strong_wolfe'", optim.LBFGS, {p},
      {line_search_fn = "wolfe"})
fails("history_size is 0, but must be a number of 1 or more", optim.LBFGS, {p},
      {history_size = 0})
nacre._watch "dry"
ok, e = pcall(lbfgs.step, lbfgs, closure)
nacre._watch("")
assert(not ok and tostring(e):find "dry run", tostring(e))

fails("SGD: lr is an option of the groups",
      function() optim.SGD({parameter(1.0)}).lr = 0.5 end)

-- options of PyTorch that change nothing
opt = optim.AdamW({parameter(1.0)}, {fused = true, foreach = false})
assert(opt.param_groups[1].fused == nil)

-- ---- gradients

local a, b = nacre.ones(2):requires_grad_(), nacre.ones(1):requires_grad_()
a.grad, b.grad = nacre.tensor {3.0, 0.0}, nacre.tensor {4.0}
local norm = nn.utils.clip_grad_norm_({a, b}, 1)
assert(nacre.is_tensor(norm))
near(norm:item(), 5)
near(a.grad[1], 0.6)
near(nn.utils.clip_grad_norm_({a, b}, 10):item(), 1)
near(b.grad:item(), 0.8)
-- of several dtypes, layouts and devices: each is scaled by the same number
local devices = {"cpu"}
for i = 1, nacre.cuda.is_available() and nacre.cuda.device_count() or 0 do
  devices[i] = "cuda:" .. i - 1
end
local mixed, before = {}, {}
for i, dtype in ipairs {"float32", "float64", "float16", "float32",
                        "float32"} do
  local t = nacre.ones(3, i, {dtype = dtype}):to(devices[i % #devices + 1])
  t = i == 5 and t:expand(3, 5):t():contiguous():t() or t
  mixed[i] = t:clone():requires_grad_()
  mixed[i].grad = t * i
  before[i] = mixed[i].grad:clone()
end
mixed[6], before[6] = nacre.ones(0):requires_grad_(), nacre.ones(0)
mixed[6].grad = nacre.ones(0)
local squares = 0
for _, g in ipairs(before) do
  squares = squares + (g:double() ^ 2):sum():item()
end
norm = nn.utils.clip_grad_norm_(mixed, 2)
assert(norm.device == mixed[1].device)
near(norm:item(), math.sqrt(squares))
for i, g in ipairs(before) do
  local rtol = g.dtype == "float16" and 2e-3 or 1e-6
  assert(nacre.allclose(mixed[i].grad, g * (2 / math.sqrt(squares)), rtol, 0))
end

-- norms of all elements; 0 counts the tensors that are not 0
local three = {nacre.tensor {3.0, -4, 0}, nacre.zeros(2), nacre.ones(2, 2)}
for p_, want in pairs {[0] = 2, [1] = 11, [2] = math.sqrt(29),
                       [math.huge] = 4, [-math.huge] = 0} do
  near(nn.utils.get_total_norm(three, p_):item(), want)
end
local large = nacre.full({1 << 17}, 2.0)
near(nn.utils.get_total_norm({three[1], large, large}):item(),
     math.sqrt(25 + 2 * 4 * (1 << 17)))

a.grad, b.grad = nacre.tensor {0.6, 0.0}, nacre.tensor {0.8}
nn.utils.clip_grad_value_({a, b}, 0.5)
near(a.grad[1], 0.5)
b.grad = nacre.tensor {0 / 0}
fails("the norm of the gradients is not finite", nn.utils.clip_grad_norm_,
      {a, b}, 1, {error_if_nonfinite = true})
local v = nn.utils.parameters_to_vector(net)
nn.utils.vector_to_parameters(v:detach() * 2, net)
assert(nn.utils.parameters_to_vector(net) == v * 2)
