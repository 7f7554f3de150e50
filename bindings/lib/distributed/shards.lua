-- SPDX-License-Identifier: MIT
-- shards.lua - nacre.distributed.shard: a tensor of which each rank keeps a
-- part along one dimension. Elementwise operations, reductions and some
-- products work on the parts; what would move many elements is an error.
local all = ...
all.require "nacre.guards"
local fail = all.fail

local Shard = {}
local is_shard = function(v)
  return type(v) == "table" and getmetatable(v) == Shard
end
all.is_shard = is_shard

-- First and number of the elements of rank r of `size' along a dimension of n.
local function range(n, size, r)
  local each = (n + size - 1) // size
  local first = math.min(r * each, n)
  return first + 1, math.min(each, n - first)
end

local function own_range(n, group)
  local dist = nacre.distributed
  return range(n, dist.get_world_size(group), dist.get_rank(group))
end

-- The part of this rank of a tensor that is whole.
local function cut(t, dim, group)
  local first, count = own_range(t:size(dim), group)
  return t:narrow(dim, count > 0 and first or 1, count)
end

local function new(part, dim, n, group)
  return setmetatable({part = part, dim = dim, n = n, group = group}, Shard)
end

all.define("distributed.shard",
  "input:tensor, dim:dim=1, group:any=nil -> shard",
  "input, of which each rank keeps a part along dim",
function(t, dim, group)
  all.check_group("shard", group)
  if t.requires_grad then
    fail("shard", "gradients do not go through a sharded tensor",
         "{input}:detach()", "input", t)
  elseif t:dim() == 0 then
    fail("shard", "{input} has no dimension to cut along", nil, "input", t)
  end
  dim = dim < 0 and dim + t:dim() + 1 or dim
  return new(cut(t, dim, group):clone(), dim, t:size(dim), group)
end)

-- ---- one element at a time

local UNARY = [[abs ceil cos exp floor log neg reciprocal relu round rsqrt
                sigmoid sign sin sqrt square tanh]]
local BINARY = {add = "__add", sub = "__sub", mul = "__mul", div = "__div",
                pow = "__pow", maximum = false, minimum = false}

local function shape_text(s) return table.concat(s:size(), "x") end

-- What s has of the operand v, and how many dimensions v has more than s.
local function beside(op, s, v)
  if not is_shard(v) and not nacre.is_tensor(v) then return v, 0 end
  local nd, from_end = s.part:dim(), s.part:dim() - s.dim
  if is_shard(v) then
    if v.dim ~= s.dim or v.n ~= s.n or v.part:dim() ~= nd or
       v.group ~= s.group then
      fail(op, ("[%s] along dim %d and [%s] along dim %d are sharded "
        .. "differently")
               :format(shape_text(s), s.dim, shape_text(v), v.dim),
           ("redistribute(%d) of one of them"):format(s.dim))
    end
    return v.part, 0
  end
  local at = v:dim() - from_end
  if at >= 1 and v:size(at) ~= 1 then
    if v:size(at) ~= s.n then
      fail(op, ("{other} does not match [%s]"):format(shape_text(s)), nil,
           "other", v)
    end
    v = cut(v, at, s.group)
  end
  return v, math.max(v:dim() - nd, 0)
end

local function binary(op)
  return function(a, b)
    local s = is_shard(a) and a or b
    if not is_shard(s) then fail(op, "takes a sharded tensor") end
    local x, more = beside(op, s, a)
    local y, others = beside(op, s, b)
    local f = type(x) == "number" and nacre[op] or x[op]
    return new(nacre.no_grad(f, x, y), s.dim + more + others, s.n, s.group)
  end
end

for op, event in pairs(BINARY) do
  Shard[op] = binary(op)
  if event then Shard[event] = Shard[op] end
end
for op in UNARY:gmatch "%S+" do
  Shard[op] = function(s)
    return new(nacre.no_grad(s.part[op], s.part), s.dim, s.n, s.group)
  end
end
Shard.__unm = Shard.neg

-- f of each part, which must keep the sizes.
function Shard:map(f)
  local part = f(self.part)
  if not nacre.is_tensor(part) or not part:is_same_size(self.part) then
    fail("map", "the function must give a tensor of the size of the part")
  end
  return new(part, self.dim, self.n, self.group)
end

-- ---- reductions

-- The value that changes no result, for a rank without elements.
local function neutral(op, t)
  if op == "sum" then return 0 elseif op == "prod" then return 1 end
  local least = op == "amax"
  if t:is_floating_point() then return least and -math.huge or math.huge end
  if t.dtype == "bool" then return not least end
  local info = nacre.iinfo(t.dtype)
  return least and info.min or info.max
end

local function reduce_part(op, t, dim, keep, n)
  if n == 0 and t:numel() == 0 and (op == "amax" or op == "amin") then
    local size = {}
    for d = 1, dim and t:dim() or 0 do
      if d ~= dim then size[#size + 1] = t:size(d)
      elseif keep then size[#size + 1] = 1 end
    end
    return t:new_full(size, neutral(op, t))
  end
  if dim then return t[op](t, dim, keep) end
  return t[op](t)
end

local function reduction(op, fold)
  return function(s, dim, keep)
    if dim ~= nil and not math.tointeger(dim) then
      fail(op, "dim must be an integer")
    end
    local part, nd = s.part, s.part:dim()
    if dim and (dim < -nd or dim == 0 or dim > nd) then
      fail(op, ("dim %d of %d dimensions"):format(dim, nd))
    end
    dim = dim and dim < 0 and dim + nd + 1 or dim
    local y = nacre.no_grad(reduce_part, op, part, dim, keep or false,
                            part:size(s.dim))
    if dim and dim ~= s.dim then
      return new(y, s.dim - ((dim < s.dim and not keep) and 1 or 0), s.n,
                 s.group)
    end
    return nacre.distributed.all_reduce(y:contiguous(),
                                        {op = fold, group = s.group})
  end
end

Shard.sum, Shard.prod = reduction("sum", "sum"), reduction("prod", "prod")
Shard.max, Shard.min = reduction("amax", "max"), reduction("amin", "min")

-- ---- products

-- The product of matrices of which one or both are sharded, where little moves.
-- A sharded tensor is a table, so all.define would take the last for options.
local function matmul(a, b)
  local x, y = is_shard(a) and a.part or a, is_shard(b) and b.part or b
  if not (nacre.is_tensor(x) and nacre.is_tensor(y) and x:dim() == 2 and
          y:dim() == 2) then
    fail("matmul", "takes two matrices")
  end
  local rows, columns = is_shard(a) and a.dim, is_shard(b) and b.dim
  if rows == 1 and not columns then
    return new(x:matmul(y), 1, a.n, a.group)
  elseif not rows and columns == 2 then
    return new(x:matmul(y), 2, b.n, b.group)
  elseif rows == 2 and columns == 1 and a.n == b.n then
    return nacre.distributed.all_reduce(x:matmul(y), "sum", a.group)
  elseif not rows and not columns then return x:matmul(y) end
  fail("matmul", ("%s and %s: many elements would move"):format(
         rows and "dim " .. rows or "a whole matrix",
         columns and "dim " .. columns or "a whole matrix"),
       "redistribute(dim) or gather() of one of them")
end
Shard.matmul, all.space("distributed").matmul = matmul, matmul
all.describe("distributed.matmul", matmul,
  "the product of two matrices, sharded so that little has to move: rows with "
  .. "a whole matrix, a whole matrix with columns, columns with rows",
  all.parse("distributed.matmul", "input:any, other:any -> any"))

-- ---- the whole

function Shard:size(dim)
  local size = self.part:size()
  size[self.dim] = self.n
  if dim then return size[dim] end
  return size
end

-- The whole tensor on every rank.
function Shard:gather()
  local dist = nacre.distributed
  local size = dist.get_world_size(self.group)
  local each = (self.n + size - 1) // size
  local part = self.part:transpose(1, self.dim):contiguous()
  local shape = part:size()
  local have = shape[1]
  shape[1] = each
  local padded = part:new_zeros(shape)
  if have > 0 then padded:narrow(1, 1, have):copy_(part) end
  local whole = dist.all_gather(padded, {group = self.group}):flatten(1, 2)
  return whole:narrow(1, 1, self.n):transpose(1, self.dim):contiguous()
end

function Shard:redistribute(dim)
  return nacre.distributed.shard(self:gather(), dim, self.group)
end

-- Takes the part of this rank of a whole tensor.
function Shard:load_whole(t)
  if table.concat(t:size(), "x") ~= shape_text(self) then
    fail("load", ("a sharded tensor is [%s], but that of the state is {input}")
                 :format(shape_text(self)), nil, "input", t)
  end
  nacre.no_grad(self.part.copy_, self.part, cut(t, self.dim, self.group))
end

function Shard:__tostring()
  local first, count = own_range(self.n, self.group)
  return ("%s[%s] sharded along dim %d, here %s\n%s"):format(
    self.part.dtype, shape_text(self), self.dim,
    count > 0 and ("%d to %d"):format(first, first + count - 1) or "nothing",
    self.part)
end

function Shard:__index(key)
  local v = rawget(Shard, key)
  if v ~= nil or type(key) ~= "string" then return v end
  if key == "shape" then return self:size() end
  if key == "dtype" or key == "device" then return self.part[key] end
  if key == "group" or key:find "^_" or key:find "state_dict$" then
    return nil
  end
  fail("shard", ("a sharded tensor has no '%s'"):format(key),
       ("s:gather():%s(...), or s:map(f) for the parts"):format(key))
end

all.guard_methods(Shard, is_shard, "s", {redistribute = "dim:int",
                                         size = "dim:int=nil",
                                         load_whole = "whole:tensor",
                                         map = "fn:fn"})
