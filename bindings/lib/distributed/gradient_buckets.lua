-- SPDX-License-Identifier: MIT
-- gradient_buckets.lua - the gradients of all ranks averaged while backward
-- goes on, for nn.DistributedDataParallel.
--
-- Parameters belong to buckets, the last ones to the first, because backward
-- comes to them first. A bucket is one flat tensor of a dtype and a device. The
-- hook of a parameter, called when its grad has the sum, copies that into its
-- part of the bucket. A bucket is sent when it and all before it are complete,
-- so that every rank sends them in the same order; the end of backward waits.
local all = ...
local fail = all.fail

local OP = "DistributedDataParallel"
local FIRST = 2 ^ 20          -- bytes of the first bucket, which leaves early

local Buckets = {}
Buckets.__index = Buckets

-- Lists of parameters: one of about `room' bytes, others of about `cap'.
local function assign(params, cap)
  local list, open = {}, {}
  for i = #params, 1, -1 do
    local p = params[i]
    local key = p.dtype .. " " .. p.device
    local b = open[key]
    if not b then
      b = {params = {}, bytes = 0,
           room = #list == 0 and math.min(cap, FIRST) or cap}
      open[key], list[#list + 1] = b, b
    end
    b.params[#b.params + 1] = p
    b.bytes = b.bytes + p:numel() * p:element_size()
    if b.bytes >= b.room then open[key] = nil end
  end
  return list
end

-- Gives a bucket its memory, and each parameter its part of it.
local function lay_out(b, views)
  local n, at = 0, 1
  for _, p in ipairs(b.params) do n = n + p:numel() end
  b.flat = nacre.zeros(n, all.like(b.params[1]))
  for _, p in ipairs(b.params) do
    views[p] = b.flat:narrow(1, at, p:numel()):view(p:size())
    at = at + p:numel()
  end
end

-- The buckets of the parameters `named', a list of {name, tensor}. Options:
-- group, cap (bytes), as_views (grad is the part of the bucket), find_unused,
-- static (every backward uses the same parameters, which the first finds).
function all.gradient_buckets(named, options)
  local self = setmetatable({
    group = options.group, as_views = options.as_views,
    find_unused = options.find_unused or options.static,
    static = options.static, number = {}, params = {}, names = {}, views = {},
    bucket_of = {}, always = false, scale = 1}, Buckets)
  for i, pair in ipairs(named) do
    self.params[i], self.names[pair[2]], self.number[pair[2]] = pair[2],
                                                                pair[1], i
  end
  self.list = assign(self.params, options.cap)
  for _, b in ipairs(self.list) do
    lay_out(b, self.views)
    for _, p in ipairs(b.params) do self.bucket_of[p] = b end
  end
  for _, p in ipairs(self.params) do
    p:register_post_accumulate_grad_hook(function() self:arrive(p) end)
  end
  return self
end

-- A backward begins.
function Buckets:begin()
  self.pass = nacre.autograd._pass()
  self.averages, self.arrived = self.always, {}
  self.next, self.works = 1, {}
  for _, b in ipairs(self.list) do b.waiting = #b.params - (b.unused or 0) end
  nacre.autograd._at_end(function(ok)
    self.pass = nil
    -- what was sent before a failure is left to the group, which may be broken
    if ok and self.averages then nacre.no_grad(self.finish, self) end
    self.works, self.arrived = nil, nil
  end)
end

function Buckets:running()
  return self.pass == nacre.autograd._pass()
end

-- This backward goes through a result whose gradients are to be averaged.
function Buckets:expect()
  if not self:running() then self:begin() end
  if self.averages then return end
  self.averages = true
  for _, p in ipairs(self.params) do
    if self.arrived[p] then self:take(p) end
  end
end

-- What a communication hook gets.
local GradBucket = {}
GradBucket.__index = GradBucket
function GradBucket:buffer() return self.list[self.i].flat end
function GradBucket:index() return self.i end
function GradBucket:is_last() return self.i == #self.list end
function GradBucket:parameters() return self.list[self.i].params end
function GradBucket:gradients()
  local parts = {}
  for i, p in ipairs(self:parameters()) do parts[i] = self.views[p] end
  return parts
end
function GradBucket:__tostring()
  return ("gradients of %d parameters, bucket %d of %d"):format(
           #self:parameters(), self.i, #self.list)
end

-- Sends a bucket by the hook of the user; a work that puts what comes of it
-- into the bucket.
local function send_by_hook(self, i)
  local flat, state, hook = self.list[i].flat, self.hook[1], self.hook[2]
  local sent = hook(state, setmetatable({list = self.list, views = self.views,
                                         i = i}, GradBucket))
  return {wait = function()
    local t = sent
    if type(t) == "function" then t = t()
    elseif not nacre.is_tensor(t) and t then t = t:wait() end
    if not nacre.is_tensor(t) or t:numel() ~= flat:numel() then
      fail("register_comm_hook", "the hook must give the average of the bucket,"
                                 .. " as a tensor, a work or a function")
    end
    if not rawequal(t, flat) then flat:copy_(t:view(-1)) end
  end}
end

-- Sends the bucket with this number.
function Buckets:send(i)
  if self.hook then return send_by_hook(self, i) end
  return nacre.distributed.all_reduce(self.list[i].flat,
    {op = "mean", group = self.group, async_op = true})
end

-- Sends what is complete.
function Buckets:send_ready()
  while self.next <= #self.list and self.list[self.next].waiting == 0 do
    self.works[self.next] = self:send(self.next)
    self.next = self.next + 1
  end
end

-- The part of p is complete: sends what can be sent.
function Buckets:complete(p)
  local b = self.bucket_of[p]
  b.waiting = b.waiting - 1
  self:send_ready()
end

local function shares(a, b)
  local s, at = nacre._storage_id(a)
  local t, from = nacre._storage_id(b)
  return s == t and at == from
end

-- Puts the gradient of p, or zeros, into its part.
function Buckets:fill(p)
  local g, part = p.grad, self.views[p]
  if not g then part:zero_()
  elseif not shares(g, part) then part:copy_(g) end
end

function Buckets:take(p)
  nacre.no_grad(self.fill, self, p)
  if self.as_views then p.grad = self.views[p] end
  self:complete(p)
end

-- The hook of p.
function Buckets:arrive(p)
  if not self:running() then self:begin() end
  if self.arrived[p] then
    fail(OP, self.names[p] .. " has two gradients in one backward")
  end
  if self.used and self.used[self.number[p]] == 0 then
    fail(OP, self.names[p] .. " is used now, but was not before",
         "static_graph = false")
  end
  self.arrived[p] = true
  if self.averages then self:take(p) end
end

local function fail_unused(self)
  local list = {}
  for _, p in ipairs(self.params) do
    if not self.arrived[p] then list[#list + 1] = self.names[p] end
  end
  local more = #list > 3 and (" and %d more"):format(#list - 3) or ""
  fail(OP, ("this backward produced no gradient for %s%s"):format(
             table.concat(list, ", ", 1, math.min(#list, 3)), more),
       "find_unused_parameters = true, if that is intended")
end

-- Which parameters have a gradient on some rank, by position: a tensor under
-- way.
function Buckets:ask_used(arrived)
  local used = nacre.zeros(#self.params, {dtype = "uint8", device = "cpu"})
  for i, p in ipairs(self.params) do
    if arrived[p] then used[i] = 1 end
  end
  return used, nacre.distributed.all_reduce(used,
    {op = "max", group = self.group, async_op = true})
end

-- The average is in the part of p: gives it to p.
function Buckets:deliver(p)
  local part = self.views[p]
  if self.as_views then p.grad = part
  elseif p.grad then p.grad:copy_(part)
  else p.grad = part:clone() end
end

-- Of a graph that stays: parameters which no rank has used are not waited for.
function Buckets:keep_used(used)
  self.used = used
  for i, p in ipairs(self.params) do
    if used[i] == 0 then
      local b = self.bucket_of[p]
      b.unused = (b.unused or 0) + 1
      self.views[p]:zero_()
    end
  end
end

-- At the end of backward.
function Buckets:finish()
  local used, asked = self.used, nil
  if self.find_unused then
    for i, p in ipairs(self.params) do
      if not self.arrived[p] and not (used and used[i] == 0) then
        self:fill(p)
        self:complete(p)
      end
    end
    self:send_ready()
    if not used then used, asked = self:ask_used(self.arrived) end
  elseif self.next <= #self.list then fail_unused(self) end
  self:wait(self.works)
  if asked then asked:wait() end
  for i, p in ipairs(self.params) do
    if self.arrived[p] or used and used[i] == 1 then self:deliver(p) end
  end
  if self.static and asked then self:keep_used(used:tolist()) end
end

function Buckets:wait(works)
  for i, work in ipairs(works) do
    work:wait()
    if self.scale ~= 1 then self.list[i].flat:mul_(self.scale) end
  end
end

-- Takes part in the backward of other ranks without a gradient; delivers the
-- averages, if they are wanted.
function Buckets:shadow(wanted)
  local works, used, asked = {}, self.used, nil
  for i, b in ipairs(self.list) do
    b.flat:zero_()
    works[i] = self:send(i)
  end
  if self.find_unused and not used then used, asked = self:ask_used {} end
  self:wait(works)
  if asked then asked:wait() end
  for i, p in ipairs(wanted and self.params or {}) do
    if not used or used[i] == 1 then self:deliver(p) end
  end
  if self.static and asked then self:keep_used(used:tolist()) end
end
