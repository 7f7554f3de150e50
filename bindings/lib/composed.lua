-- SPDX-License-Identifier: MIT
-- composed.lua - defines operations that are written in Lua over those of the
-- core. composed.c loads it first and passes the table that it fills, which has
-- the functions of lua_values.c (parse, read), and the function that raises
-- errors:
--
-- all.define("linalg.inv", "A:tensor", "the inverse", function(A) ... end)
--
-- The signature has the syntax of operators.def. The function receives its
-- arguments in that order, checked, with defaults. An operation whose first
-- parameter is called self is also a method; "self:inplace" adds the in-place
-- form name_.
local all, fail = ...

all.functions, all.methods, all.info, all.fail = {}, {}, {}, fail
local spaces = {}

local parse, read = all.parse, all.read

-- The position of each parameter of a signature, by its name.
function all.positions(s)
  local positions = {}
  for i, p in ipairs(s.params) do positions[p.name] = i end
  return positions
end

-- A list of the tensors among the arguments, and of out if that is not self:
-- name, tensor, name, tensor, ...
local function operands(s, v, out)
  local list = {}
  for i, p in ipairs(s.params) do
    if nacre.is_tensor(v[i]) then
      list[#list + 1] = p.name
      list[#list + 1] = v[i]
    elseif p.type == "tensors" then
      for k, t in ipairs(v[i] or {}) do
        list[#list + 1] = ("%s %d"):format(p.name, k)
        list[#list + 1] = t
      end
    end
  end
  if out and not rawequal(out, v[1]) then
    table.move({"out", out}, 1, 2, #list + 1, list)
  end
  return list
end

-- The template with the placeholders of the operands at[j] in place of \2j;
-- nil if it mentions another one.
local function about(text, at)
  local known = text ~= nil
  text = (text or ""):gsub("\2(%d)", function(j)
    known = known and at[j] ~= nil
    return at[j] and "\2" .. at[j].fills
  end)
  return known and text or nil
end

-- A hint for operands on different devices: how to move one to the device of
-- the other.
local function moved(args)
  for i = 2, #args do
    if args[i].device ~= args[1].device then
      return ('\2%d:to("%s"), or \0020:to("%s")'):format(i - 1,
               args[1].device, args[i].device)
    end
  end
end

-- The hint of the operation `inner' as one of an operation that calls it: no
-- call of `inner', which is not what the user calls; a conversion of its
-- argument stays.
local function hint_for_caller(hint, inner)
  if not hint or not inner or not hint:find("\2%d[^\2]*:" .. inner .. "%(") then
    return hint
  end
  return hint:match "%((\2%d:to%b())%)$" or hint:match "^(\2%d:to%b()):%w+%(\2"
end

-- A hint for an operation that refuses complex numbers, of which the user gave
-- one of these operands.
local function real_parts(args)
  for i, a in ipairs(args) do
    if a.tensor:is_complex() then
      return ("\2x:abs(), \2x.real and \2x.imag are real"):gsub("x", i - 1)
    end
  end
end

-- The operand of the list that is the tensor of the operand a: the one for
-- placeholder j, if a tensor is there twice.
local function find_operand(list, a, j)
  local same = list[tonumber(j) + 1]
  if same and rawequal(same.tensor, a.tensor) then return same end
  for _, own in ipairs(list) do
    if rawequal(own.tensor, a.tensor) then return own end
  end
end

-- Makes an error of an operation that `name' calls an error of `name' itself,
-- with the arguments of the user as operands, unless the message is about
-- another tensor. `out' is the tensor to which the operation was writing,
-- `copy' the one that fn got in place of self.
local function renamed(err, name, s, v, out, copy)
  local far = type(err) == "table" and err.code == "EDEVICE"
  if type(err) ~= "table" or type(err.template) ~= "table" or
     not (err.args[1] or far) or err.first or err.op == name or
     err.code == "EINTR" then
    return err
  end
  local _, own = pcall(fail, name, "", nil, table.unpack(operands(s, v, out)))
  local old, args, at = err.template, own.args, {}
  for _, a in ipairs(err.args) do
    if copy and rawequal(a.tensor, copy) then a.tensor = v[1] end
    for j in a.fills:gmatch "%d" do at[j] = find_operand(args, a, j) end
  end
  local new = {message = about(old.message, at), rule = old.rule,
               hint = far and moved(args) or
                      about(hint_for_caller(old.hint, err.op), at)}
  if not new.hint and err.message:find("complex tensors", 1, true) then
    new.hint = real_parts(args)
  end
  err.op = name
  if not args[1] or not new.message then return err end
  err.args, err.template, err.hint = args, new, nil
  for key, text in pairs(new) do
    err[key] = text:gsub("\2(%d)", function(j) return args[j + 1].role end)
  end
  return err
end

-- What fn may read while self is overwritten: a copy if the operation is
-- recorded, because the tape saves its values.
local function unwritten(self)
  local recorded = self.requires_grad and nacre.is_grad_enabled()
  return recorded and self:clone() or self
end

-- Functions that autocast gives operands in float32, as core/trace/autocast.c
-- does for operations of the core.
local in_float32 = {}
for name in ([[
  binary_cross_entropy binary_cross_entropy_with_logits cdist
  cosine_embedding_loss cosine_similarity ctc_loss gaussian_nll_loss
  hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss
  multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
  normalize pdist poisson_nll_loss renorm smooth_l1_loss soft_margin_loss
  triplet_margin_loss]]):gmatch "%S+" do
  in_float32[name] = true
end

-- Replaces tensors in the lower dtype of a region of autocast by float32.
local function widen_in_region(v, n)
  for i = 1, n do
    local t = v[i]
    if nacre.is_tensor(t) and
       (t.dtype == "float16" or t.dtype == "bfloat16") and
       nacre._autocast_dtype(t.is_cuda) then
      v[i] = t:to "float32"
    end
  end
end

-- Is this an error of Lua in a file of the library? Users do not see those.
function all.is_internal(e)
  return type(e) == "string" and (e:find "^nacre%.[%w_]+:%d+: " or
                                  e:find "^attempt to ") ~= nil
end

local function fail_unfit(name, s, v)
  local list = {}
  for i, p in ipairs(s.params) do
    if v[i] ~= nil then
      list[#list + 1] = ("%s is a %s"):format(p.name, nacre.is_tensor(v[i]) and
                                              "tensor" or type(v[i]))
    end
  end
  fail(name, "cannot work with these arguments: " .. table.concat(list, ", "))
end

-- The outcome of pcall(fn, first, ...); of fn for each sample of vmap, if it
-- asked for values, which differ from sample to sample.
local function or_by_sample(fn, first, v, n, ok, e, ...)
  if not ok and type(e) == "table" and e.cause == "mapped" then
    return pcall(nacre.autograd._each_sample, fn, first,
                 table.unpack(v, 2, n))
  end
  return ok, e, ...
end

-- The function that the user calls: reads the arguments, calls fn in a
-- protected call, copies the first result to out or, in place, to self, and
-- converts errors.
local function wrap(name, s, fn, inplace)
  local short = name:find "^linalg%." and name or name:match "[^.]+$"
  local widens = in_float32[short]
  local function finish(v, out, copy, ok, y, ...)
    if not ok then
      if all.is_internal(y) then fail_unfit(short, s, v) end
      error(renamed(y, short, s, v, nil, copy), 0)
    end
    if s.results == "" then return end
    if not out then return y, ... end
    local copied, err = pcall(nacre.clone, y, {out = out})
    if not copied then error(renamed(err, short, s, v, out), 0) end
    return out, ...
  end
  return function(...)
    local v, out = read(name, s, ...)
    if widens then widen_in_region(v, #s.params) end
    local first, copy = v[1], nil
    if inplace then
      copy = unwritten(first)
      first, out = copy, first
    end
    local n = #s.params
    return finish(v, out, copy, or_by_sample(fn, first, v, n,
                  pcall(fn, first, table.unpack(v, 2, n))))
  end
end

-- The table for a path: "nn.functional" is nacre.nn.functional.
local function space(path)
  if path == "" then return all.functions end
  if spaces[path] then return spaces[path] end
  local parent, last = path:match "^(.-)%.?([^.]+)$"
  local t = {}
  space(parent)[last] = t
  spaces[path] = t
  return t
end
all.space = space

-- Describes f, which has this name and signature.
function all.describe(name, f, doc, s)
  local info = {name = name, kind = "function", doc = doc,
                method = false, inplace = false, ["function"] = true,
                signature = s.signature, params = s.params,
                results = s.results,
                into = s.inplace, out = s.results == "tensor"}
  all.info[name] = info
  all.info[f] = all.info[f] or info
  return info
end

-- Stores f under its name and its description under its name and under f.
local function register(name, f, doc, s)
  local path, last = name:match "^(.-)%.?([^.]+)$"
  local method = path == "" and s.method
  space(path)[last] = f
  if method then all.methods[last] = f end
  all.describe(name, f, doc, s).method = method
end

-- Defines an operation, which gives a tensor if the signature does not say what
-- it gives; returns the function.
function all.define(name, signature, doc, fn)
  local gives = signature:find "%->" and "" or " -> tensor"
  local s = parse(name, signature .. gives, true)
  local f = wrap(name, s, fn)
  register(name, f, doc, s)
  if s.inplace then
    local into = wrap(name .. "_", s, fn, true)
    all.methods[name .. "_"] = into
    local info = setmetatable({inplace = true}, {__index = all.info[name]})
    all.info[into] = info
  end
  return f
end

-- An alias for a function of Lua or of the core.
function all.alias(name, f)
  local path, last = name:match "^(.-)%.?([^.]+)$"
  space(path)[last] = f
  local info = all.info[f]
  if info then
    local copy = {}
    for k, v in pairs(info) do copy[k] = v end
    copy.name, copy.alias = name, info.alias or info.name
    all.info[name] = copy
  end
end
