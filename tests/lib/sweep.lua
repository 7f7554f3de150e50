-- SPDX-License-Identifier: MIT
-- Sweeps: tests of very many small cases, of which a test takes every Nth and
-- a long run all. The arguments of the test are
--   part=N        every Nth case; part=1 all
--   seed=N        other numbers, and others of the cases
--   only=PATTERN  those whose name matches
-- and its own, with their defaults:
--   local sweep = dofile(here .. "../lib/sweep.lua") {part = 31}
--   sweep.wanted(text)     is it one of only=?
--   for a, b in sweep.cases(list, other) do
--                          every Nth of all combinations
--   sweep.check(why, ...)  counts a check, which failed if why is not nil;
--                          the rest is a format and what it takes
--   sweep.finish(least)    says how many checks there were

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local read = dofile(here .. "options.lua")
local S = {same = dofile(here .. "../parity/compare.lua")}
local MOST = 20               -- failures that are shown

local checks, failed = 0, 0

function S.wanted(text) return text:find(S.option.only) ~= nil end

function S.cases(...)
  local lists, n, part = {...}, 1, S.option.part
  for _, list in ipairs(lists) do n = n * #list end
  local i = S.option.seed % part - part
  return function()
    i = i + part
    if i >= n then return end
    local at, one = i, {}
    for k = #lists, 1, -1 do
      one[k] = lists[k][at % #lists[k] + 1]
      at = at // #lists[k]
    end
    return table.unpack(one)
  end
end

function S.check(why, form, ...)
  checks = checks + 1
  if why == nil then return end
  failed = failed + 1
  if failed <= MOST then print(form:format(...) .. ": " .. why) end
end

-- Values, in tables too, as dense tensors of the CPU without a past.
function S.plain(v)
  if nacre.is_tensor(v) then
    return nacre.empty(v:size(), {dtype = v.dtype, device = "cpu"})
           :copy_(v:detach())
  elseif type(v) ~= "table" then
    return v
  end
  local plain = {}
  for key, x in next, v do plain[key] = S.plain(x) end
  return plain
end

-- What differs between values, by more than rounding if there is a scale.
function S.differs(want, got, scale)
  return S.same.results(S.plain(want), S.plain(got), "cpu", scale)
end

-- What of a tensor is off by more than this share of 1 and the largest of
-- another.
function S.off(want, got, share)
  want, got = S.plain(want), S.plain(got):double()
  local most = want:nan_to_num(0, 0, 0):abs():max():item()
  local same = want:eq(got) | (want:isnan() & got:isnan())
  local off = nacre.where(same, 0.0, got - want):abs():max():item()
  if off <= share * (most + 1) then return end     -- nan is not
  return ("off by %g of %g"):format(off, most)
end

-- A tensor that lies in one of several ways, equal to t.
S.layouts = {
  dense = function(t) return t:contiguous():clone() end,
  transposed = function(t)
    return t:transpose(1, -1):contiguous():clone():transpose(1, -1)
  end,
  stepped = function(t) return nacre.stack({t, t}, -1):select(-1, 2) end,
}

function S.finish(least)
  if failed > 0 then
    error(("%s: %d of %d checks failed, seed=%d part=%d"):format(S.test,
          failed, checks, S.option.seed, S.option.part), 0)
  end
  assert(S.option.only ~= "" or checks * S.option.part >= least,
         ("%d checks"):format(checks))
  print(("%s: ok, %d checks"):format(S.test, checks))
end

return function(options)
  options.seed, options.only = options.seed or 1, ""
  S.option, S.test = read(options), arg[0]:match "([%w_]+)%.lua$"
  nacre.manual_seed(S.option.seed)
  math.randomseed(S.option.seed)
  return S
end
