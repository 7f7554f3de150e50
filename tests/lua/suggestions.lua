-- SPDX-License-Identifier: MIT
-- "did you mean" of names: slips of the keyboard are understood, and no name
-- of another library leads to a function of another meaning.

local x = nacre.zeros(2)

local function meant(owner, name)
  local ok, e = pcall(function() return owner[name] end)
  assert(not ok, name)
  return e.message:match "did you mean '([%w_.:]+)'"
end

for slip, name in pairs {
  zeors = "nacre.zeros", linspase = "nacre.linspace", rndn = "nacre.randn",
  reshpae = "nacre.reshape", flaot32 = "nacre.float32", ones_lik =
  "nacre.ones_like", softmaxx = "nacre.softmax", arnage = "nacre.arange",
} do
  assert(meant(nacre, slip) == name, slip)
end
for slip, name in pairs {
  summ = "sum", meen = "mean", grd = "grad", reshap = "reshape",
  abss = "abs", requires_gard = "requires_grad", fil_ = "fill_",
  is_contigous = "is_contiguous",
} do
  assert(meant(x, slip) == name, slip)
end

-- other things, however near
for name in ([[fillna rint gamma rank beta map ma zscore hermite r_ c_
    hub copy mod modf tri isnat expm logm conv sgd
    butter disp insert invert around fabs number os resize tail hist block
    random intc uint bool_ float_ gru len]]):gmatch "%S+" do
  assert(not meant(nacre, name), name)
end
for name in ("fillna copy fill resize lu svd new len smm ipu r_ rint"):gmatch
    "%S+" do
  assert(not meant(x, name), name)
end
