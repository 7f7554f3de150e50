-- SPDX-License-Identifier: MIT
--
-- alignment.lua - the cheapest way to turn one list of lines into another.

local alignment = {}

-- The costs of a line that a gap stands for, and of one without a partner. A
-- line stands for itself before a gap takes it.
local GAP, LONE = 1, 20

local LONGEST = 90000         -- lines times lines: beyond, there is no search

-- c[i][j]: the cost of what follows i and j.
local function costs(n, m, o)
  local c = {}
  for i = n + 1, 1, -1 do
    c[i] = {}
    local gap = i <= n and o.gap(i)
    for j = m + 1, 1, -1 do
      local best = (i > n and j > m) and 0 or math.huge
      local function take(cost) if cost < best then best = cost end end
      if i <= n then take(c[i + 1][j] + (gap and 0 or LONE)) end
      if j <= m then take(c[i][j + 1] + (gap and GAP or LONE)) end
      if i <= n and j <= m and not gap then
        take(c[i + 1][j + 1] + (o.same(i, j) and 0 or o.pair))
      end
      c[i][j] = best
    end
  end
  return c
end

local function search(steps, n, m, o)
  local c, i, j = costs(n, m, o), 1, 1
  while i <= n or j <= m do
    local gap, here = i <= n and o.gap(i), c[i][j]
    local both = i <= n and j <= m and not gap
    if both and here == c[i + 1][j + 1] + (o.same(i, j) and 0 or o.pair) then
      steps[#steps + 1] = {e = i, a = j, same = o.same(i, j)}
      i, j = i + 1, j + 1
    elseif gap and here == c[i + 1][j] then
      steps[#steps + 1] = {e = i, same = true}
      i = i + 1
    elseif i <= n and not gap and here == c[i + 1][j] + LONE then
      steps[#steps + 1] = {e = i}
      i = i + 1
    else
      steps[#steps + 1] = {a = j, gap = gap and i or nil}
      j = j + 1
    end
  end
end

local function line_by_line(steps, n, m, o)
  for i = 1, math.max(n, m) do
    local both = i <= n and i <= m
    steps[#steps + 1] = {e = i <= n and i or nil, a = i <= m and i or nil,
                         same = both and o.same(i, i) or nil}
  end
end

-- How many lines are the same at the start, or at the end, of both.
local function common(most, o, at)
  local k = 0
  while k < most do
    local i, j = at(k)
    if o.gap(i) or not o.same(i, j) then break end
    k = k + 1
  end
  return k
end

-- The rules for lists without their first `head' lines.
local function after(head, o)
  local known = {}
  return {pair = o.pair, gap = function(i) return o.gap(i + head) end,
          same = function(i, j)
    known[i] = known[i] or {}
    if known[i][j] == nil then known[i][j] = o.same(i + head, j + head) end
    return known[i][j]
  end}
end

-- The steps from a list of n lines to one of m: {same = true, e =, a =}, {e =}
-- for what is missing, {a =} for what is new, {gap = e, a =} for what a gap
-- stands for. Rules: same(i, j): are the lines equal?; gap(i): does line i
-- stand for any lines?; pair: the cost of two that differ but belong together.
function alignment.steps(n, m, o)
  local steps, most = {}, math.min(n, m)
  local head = common(most, o, function(k) return k + 1, k + 1 end)
  local tail = common(most - head, o, function(k) return n - k, m - k end)
  local left, right = n - head - tail, m - head - tail
  for i = 1, head do steps[i] = {e = i, a = i, same = true} end
  local way = left * right > LONGEST and line_by_line or search
  way(steps, left, right, after(head, o))
  for k = head + 1, #steps do
    local s = steps[k]
    s.e, s.a = s.e and s.e + head, s.a and s.a + head
    s.gap = s.gap and s.gap + head
  end
  for k = tail - 1, 0, -1 do
    steps[#steps + 1] = {e = n - k, a = m - k, same = true}
  end
  return steps
end

return alignment
