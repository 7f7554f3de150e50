-- SPDX-License-Identifier: MIT
-- Runs the calls that diff_torch.py made in a folder: each is
--   { f = function(a, b, ...) return ... end, inputs, grad =, second = }
-- Results, and for grad the gradients of the inputs, go to .npy files there;
-- a line says "ok" ("ok+" with gradients) and their dtypes, or the error. All
-- tensors are on the default device, and so must be the results.

local folder = arg[1]
local device = nacre.get_default_device()
local recorded = pcall(function() nacre.ones(1):requires_grad_() end)

-- Element type and layout are not the file's: bfloat16 comes as float32, and
-- what is strided is cut out of a larger tensor.
local function input(of)
  local t = nacre.load(("%s/%d.npy"):format(folder, of.file)):to(device)
  if of.dtype then t = t:to(of.dtype) end
  if of.view then t = of.view(t) end
  return t
end

local function save(name, t)
  if t.dtype == "bfloat16" then t = t:to("float32") end
  nacre.save(("%s/%s.npy"):format(folder, name), t, {atomic = false})
end

-- A loss that tells elements apart: their sum, weighted.
local function loss(results)
  local sum
  for _, y in ipairs(results) do
    if y.requires_grad then
      local dtype = y.dtype:gsub("^complex64", "float32"):gsub("^complex128",
                                                              "float64")
      local w = nacre.arange(y:numel(), {dtype = dtype}):reshape(y:size())
      local part = (y * (w % 7 + 1)):sum()
      if y:is_complex() then part = part.real + 2 * part.imag end
      sum = sum and sum + part or part
    end
  end
  return sum
end

-- The gradients of y, recorded; those that there are.
local function gradients(y, given)
  local leaves, list = {}, {}
  for _, x in ipairs(given) do
    if x.requires_grad then leaves[#leaves + 1] = x end
  end
  local all = table.pack(nacre.autograd.grad(y, leaves, {
    create_graph = true, allow_unused = true}))
  if #leaves > 1 and type(all[1]) == "table" then
    all = all[1]
    all.n = #leaves
  end
  for k = 1, all.n do
    if nacre.is_tensor(all[k]) then list[#list + 1] = all[k] end
  end
  return list
end

local function run(i, case)
  local grad = case.grad and recorded
  local given, dtypes = {}, {}
  for k, of in ipairs(case.inputs) do
    given[k] = input(of)
    if grad and given[k].dtype:find "float" or
       grad and given[k]:is_complex() then
      given[k] = given[k]:detach():requires_grad_()
    end
  end
  local results = {case.f(table.unpack(given))}
  if type(results[1]) == "table" and not nacre.is_tensor(results[1]) then
    results = results[1]
  end
  for k, y in ipairs(results) do
    if not nacre.is_tensor(y) then y = nacre.tensor(y) end
    assert(y.device == device, "the result is on another device")
    results[k] = y
    dtypes[k] = y.dtype
    save(("out%d_%d"):format(i, k), grad and y:detach() or y)
  end
  if grad then
    local sum = loss(results)
    if sum and case.second then sum = loss(gradients(sum, given)) end
    if sum then sum:backward() end
    for k, x in ipairs(given) do
      if x.grad then save(("grad%d_%d"):format(i, k), x.grad) end
    end
  end
  return (grad and "ok+ " or "ok ") .. table.concat(dtypes, " ")
end

for i, case in ipairs(dofile(folder .. "/cases.lua")) do
  local ok, y = pcall(run, i, case)
  print((tostring(y):gsub("\n", " ")))
end
