-- SPDX-License-Identifier: MIT
-- plateaus.lua - nacre.optim.lr_scheduler.ReduceLROnPlateau: rates that a
-- measure decides.
local all = ...
all.require("nacre.cyclic_schedules", "nacre.schedules")
local fail, schedule, of_group = all.fail, all.schedule, all.of_group

-- Is `value' better than the best so far?
local function is_better(self, value)
  local rel, t = self.threshold_mode == "rel", self.threshold
  if self.best == nil then return true end
  if self.mode == "min" then
    return value < (rel and self.best * (1 - t) or self.best - t)
  end
  return value > (rel and self.best * (1 + t) or self.best + t)
end

-- Fails unless min_lr is a number, or a number for each group.
local function check_min_lr(self, name)
  local n, low = #self.optimizer.param_groups, self.min_lr
  if type(low) == "table" and #low ~= n then
    fail(name, ("min_lr has %d numbers, but the optimizer has %d groups")
               :format(#low, n))
  end
  for i = 1, n do
    if type(of_group(low, i)) ~= "number" then
      fail(name, "min_lr is a number, or a list with one for each group")
    end
  end
end

local function reduce(self)
  for i, group in ipairs(self.optimizer.param_groups) do
    local new = math.max(group.lr * self.factor, of_group(self.min_lr, i))
    if group.lr - new > self.eps then group.lr = new end
  end
end

schedule("ReduceLROnPlateau",
  "mode:min|max=min, factor:num=0.1, patience:int=10, threshold:num=1e-4, "
  .. "threshold_mode:rel|abs=rel, cooldown:int=0, min_lr:any=0, eps:num=1e-8",
  "times factor when a measure has not improved for more than patience epochs; "
  .. "step(measure)", {
  _prepare = function(self, name)
    if self.factor >= 1 then fail(name, "factor must be below 1") end
    check_min_lr(self, name)
    self.last_epoch, self.num_bad_epochs, self.cooldown_counter = 0, 0, 0
  end,
  step = function(self, measure)
    if nacre.is_tensor(measure) then measure = measure:item() end
    if type(measure) ~= "number" then
      fail("ReduceLROnPlateau", "step takes the measure: schedule:step(loss)")
    end
    self.last_epoch = self.last_epoch + 1
    local bad = self.num_bad_epochs + 1
    if is_better(self, measure) then self.best, bad = measure, 0 end
    if self.cooldown_counter > 0 then
      self.cooldown_counter, bad = self.cooldown_counter - 1, 0
    end
    if bad > self.patience then
      check_min_lr(self, "ReduceLROnPlateau")
      self.cooldown_counter, bad = self.cooldown, 0
      reduce(self)
    end
    self.num_bad_epochs = bad
  end})
