-- SPDX-License-Identifier: MIT
-- ctc_loss.lua - nacre.nn.functional.ctc_loss: connectionist temporal
-- classification (Graves et al. 2006), computed with logarithms.
--
-- A target is extended by a blank before, between and after its classes; its
-- elements are the states. In each step a path stays in its state, moves to the
-- next one, or skips a blank between two different classes. log(0) is replaced
-- by NEVER, a number so small that it has no effect and that no operation turns
-- into NaN.
local all = ...
local fail = all.fail
local op, NEVER = "ctc_loss", -1e30

-- The tensor, list or integer v as a list of n integers; fails unless they are
-- from least to most.
local function lengths(name, v, n, least, most)
  if nacre.is_tensor(v) then v = v:reshape(-1):totable() end
  if type(v) == "number" then v = {v} end
  if type(v) ~= "table" or #v ~= n then
    fail(op, ("%s must be %d integer%s, one for each sequence")
             :format(name, n, n == 1 and "" or "s"))
  end
  local list = {}
  for i, k in ipairs(v) do
    list[i] = math.tointeger(k)
    if not list[i] or k < least or k > most then
      fail(op, ("%s %d is %s, not from %d to %d"):format(name, i, tostring(k),
                                                        least, most))
    end
  end
  return list
end

-- For each sequence: the class of each state, up to the width of the longest
-- target; and 0 where a path may skip from two states before, NEVER elsewhere.
-- Fails for a class out of range.
local function states(targets, counts, n, blank, width, classes, t)
  local label, over, from = {}, {}, 0
  for i = 1, n do
    local row, skip = {}, {}
    for s = 1, width do row[s], skip[s] = blank, NEVER end
    for k = 1, counts[i] do
      local class = targets[from + k]
      if class < 1 or class > classes or class == blank then
        fail(op, class == 0 and "class 0: classes count from 1" or
             class == blank and ("class %d is the blank"):format(class) or
             ("class %d is outside the %d classes"):format(class, classes),
             nil, "targets", t)
      end
      row[2 * k] = class
      if k > 1 and targets[from + k - 1] ~= class then skip[2 * k] = 0 end
    end
    label[i], over[i] = row, skip
    from = from + (t:dim() == 2 and t:size(2) or counts[i])
  end
  return label, over
end

-- Checks dtypes and shapes. x is [t x n x c]; t is the argument of the caller,
-- for messages.
local function check_inputs(x, targets, t)
  all.check_float(op, t, "log_probs")
  all.check_dims(op, t, "log_probs", 2, 3)
  if targets.dtype ~= "int64" and targets.dtype ~= "int32" then
    fail(op, ("classes must be int64 or int32, not %s"):format(targets.dtype),
         nil, "targets", targets)
  end
  if targets:dim() ~= 1 and
     (targets:dim() ~= 2 or targets:size(1) ~= x:size(2)) then
    fail(op, ("{targets} must be a vector, or %d rows"):format(x:size(2)), nil,
         "log_probs", t, "targets", targets)
  end
  if x:numel() == 0 then
    fail(op, "{log_probs} has no elements", nil, "log_probs", t)
  end
end

-- The forward recursion: the log probability of each state after the last step
-- of each sequence. e: [t x n x width].
local function forward_pass(e, over, steps)
  local T, width = e:size(1), e:size(3)
  local first, none = {}, {}
  for s = 1, width do
    first[s], none[s] = s < 3 and 0 or NEVER, s < 2 and 0 or NEVER
  end
  local a, least, ends = e[1] + nacre.tensor(first, all.like(e)), T, {}
  for i, n in ipairs(steps) do
    least = math.min(least, n)
    ends[i] = {n}
  end
  local ragged = least < T
  ends = nacre.tensor(ends, {device = e.device})
  if least == 0 then        -- without steps there is the first blank alone
    a = nacre.where(ends:ge(1), a, nacre.tensor(none, all.like(e)))
  end
  for t = 2, T do
    local before = a:pad({2, 0}, "constant", NEVER)
    local b = a:logaddexp(before:narrow(2, 2, width))
               :logaddexp(before:narrow(2, 1, width) + over) + e[t]
    a = ragged and nacre.where(ends:ge(t), b, a) or b
  end
  return a
end

-- the element k[i] of row i
local function element_of_rows(a, k)
  local at = {}
  for i, place in ipairs(k) do at[i] = {place} end
  return a:gather(2, nacre.tensor(at, {device = a.device})):squeeze(2)
end

-- The losses [n]: minus the log of the sum over the last two states.
local function loss(x, targets, steps, counts, blank)
  local T, n, c = x:size(1), x:size(2), x:size(3)
  local longest = 0
  for _, k in ipairs(counts) do longest = math.max(longest, k) end
  local width = 2 * longest + 1
  local label, over = states(targets:reshape(-1):totable(), counts, n, blank,
                             width, c, targets)
  label = nacre.tensor(label, {device = x.device})
  local a = forward_pass(x:clamp {min = NEVER}
                      :gather(3, label:unsqueeze(1):expand(T, n, width)),
                     nacre.tensor(over, all.like(x)), steps)
  local last, before, none = {}, {}, {}
  for i, k in ipairs(counts) do
    last[i], before[i] = 2 * k + 1, math.max(2 * k, 1)
    none[i] = k == 0 and NEVER or 0
  end
  return -element_of_rows(a, last):logaddexp(element_of_rows(a, before) +
                                    nacre.tensor(none, all.like(x)))
end

-- Zeros [n], whose gradient is nan for the steps of the lost sequences: without
-- a path there is no direction in which the loss would fall.
local function nan_gradient(x, lost, steps)
  local ends = nacre.tensor(steps, {device = x.device})
  local step = nacre.arange(1, x:size(1) + 1, {device = x.device}):unsqueeze(2)
  local at = step:le(ends):logical_and(lost):unsqueeze(3)
  local finite = x:clamp {min = NEVER}
  local zero = nacre.where(at, finite - finite:detach(), 1):sqrt()
  return nacre.where(at, zero, 0):sum({1, 3})
end

-- log_probs [t x n x c] or [t x c] of a float dtype, logarithms of
-- probabilities; targets [n x s], or concatenated, int64 or int32. Result [n],
-- or 0-d; a loss without a possible path is inf and its gradient nan, or both
-- are 0 with zero_infinity.
-- "mean" divides each loss by the length of its target. Float16 and bfloat16
-- are computed in float32.
all.define("nn.functional.ctc_loss",
           "log_probs:tensor, targets:tensor, input_lengths:any, "
           .. "target_lengths:any, blank:int=1, reduction:none|mean|sum=mean, "
           .. "zero_infinity:bool=false",
           "-log of the probability of targets (sequences of classes), summed "
             .. "over all alignments with log_probs [t x n x c]; classes and "
             .. "blank count from 1",
function(t, targets, steps, counts, blank, reduction, zero)
  local x = t:dim() == 2 and t:unsqueeze(2) or t
  check_inputs(x, targets, t)
  local n, classes = x:size(2), x:size(3)
  local most = targets:size(-1)
  steps = lengths("input_lengths", steps, n, 0, x:size(1))
  counts = lengths("target_lengths", counts, n, 0, most)
  if blank < 1 or blank > classes then
    fail(op, ("blank is %d, but must be from 1 to %d"):format(blank, classes))
  end
  local sum, divisor = 0, {}
  for i, k in ipairs(counts) do
    sum, divisor[i] = sum + k, math.max(k, 1)
  end
  if targets:dim() == 1 and sum ~= most then
    fail(op, ("target_lengths add up to %d, but {targets} has %d classes")
             :format(sum, most), nil, "targets", targets)
  end
  local y = loss(all.widen(x), targets, steps, counts, blank)
  local lost = y:gt(-NEVER / 10)
  y = nacre.where(lost, zero and 0 or math.huge, y)
  if not zero and x.requires_grad and lost:any():item() then
    y = y + nan_gradient(all.widen(x), lost, steps)
  end
  if reduction == "mean" then
    y = (y / nacre.tensor(divisor, all.like(y))):mean()
  elseif reduction == "sum" then y = y:sum()
  elseif t:dim() == 2 then y = y:squeeze(1) end
  return all.convert_back(y, t)
end)
