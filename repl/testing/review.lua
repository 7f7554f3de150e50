-- SPDX-License-Identifier: MIT
--
-- review.lua - --review shows each difference and asks what to do about it.

local outcomes = require "nacre.outcomes"
local match = require "nacre.match_output"
local report = require "nacre.text_report"

local review = {}

local function say(...) io.stdout:write(...) end

-- The expected lines with a tolerance where only numbers differ from all runs:
-- the given one, or the smallest that covers them. Nil if more differs.
local function tolerant(expect, all, given)
  local at, widest = {}, 0
  local new = table.move(expect, 1, #expect, 1, {})
  for _, print in ipairs(all) do
    local options, got = outcomes.ofprint(print), print[2]
    for _, s in ipairs(match.align(expect, got, options)) do
      if not s.same and not s.gap then
        local least = s.e and s.a and
                      match.covers(s, options)
        if not least then return nil end
        widest, at[s.e] = math.max(widest, tonumber(least)), true
      end
    end
  end
  if not next(at) then return nil end -- it is the values that differ
  local rtol = given or ("%.0e"):format(widest):gsub("e([+-])0", "e%1")
  for k in pairs(at) do
    new[k] = ("%s  #~ rtol=%s"):format(match.note(new[k]), rtol)
  end
  return new, rtol
end

local function show(unit, one)
  say("\n", unit.path, ":", one.step.line, "  > ",
      one.step.text:match "[^\n]*", "\n")
  local options = outcomes.ofprint(one.all[1])
  for _, s in ipairs(match.align(one.step.expect, one.all[1][2], options)) do
    if s.e and not s.same then
      say(report.painted("-  " .. one.step.expect[s.e]), "\n")
    end
    if s.a and not s.same and not s.gap then
      say(report.painted("+  " .. one.all[1][2][s.a]), "\n")
    end
  end
  for _, value in ipairs(one.all[1][1].values[one.all[1][3]] or {}) do
    say("values: ", value.text, "\n")
  end
end

-- Each row: the key, the name of the choice, what it does.
local CHOICES = {
  {"a", "[a]ccept", "write what there is now into the file"},
  {"t", "[t]olerance rtol=%s covers it", "keep the numbers, note that rtol"},
  {"e", "[e]dit tolerance", "keep the numbers, note an rtol of your own"},
  {"r", "[r]eject", "what was expected is right: leave it"},
  {"s", "[s]kip", "leave it for another time"},
  {"q", "[q]uit", "leave this and the rest; what was accepted is written"},
}

local function line(prompt)
  say(prompt)
  io.stdout:flush()
  local text = io.read "l"
  return text and text:match "^%s*(.-)%s*$"
end

local function explain(able)
  for _, choice in ipairs(CHOICES) do
    if able[choice[1]] then say("  ", choice[1], "  ", choice[3], "\n") end
  end
end

-- An rtol of at least `least`, or nil.
local function ownrtol(least)
  local x = line "rtol="
  if tonumber(x) and tonumber(x) >= tonumber(least) then return x end
  say("it takes at least ", least, "\n")
end

-- Asks until a valid key is typed; returns it.
local function choose(able, rtol)
  local choices = {}
  for _, choice in ipairs(CHOICES) do
    choices[#choices + 1] = able[choice[1]] and choice[2]:format(rtol) or nil
  end
  local prompt = table.concat(choices, "  ") .. "  [?] "
  while true do
    local key = line(prompt) or "q"
    if able[key] then return key end
    explain(able)
  end
end

-- The lines chosen for one difference, or nil; and should the review end?
local function ask(one)
  local noted, rtol = tolerant(one.step.expect, one.all)
  local able = {a = not one.refused, t = noted, e = noted, r = true, s = true,
                q = true}
  while true do
    local key = choose(able, rtol)
    local own = key == "e" and ownrtol(rtol)
    if key == "a" then return one.new end
    if key == "t" then return noted end
    if own then return (tolerant(one.step.expect, one.all, own)) end
    if key ~= "e" then return nil, key == "q" end
  end
end

-- Asks about each change; returns the accepted ones, and whether any was not.
-- refuse(unit, change) returns why one is impossible.
function review.take(unit, list, o, refuse)
  local accepted = {}
  for _, one in ipairs(list) do
    if o.quit then break end
    show(unit, one)
    if one.refused then refuse(unit, one) end
    local new
    new, o.quit = ask(one)
    if new then accepted[#accepted + 1] = {step = one.step, new = new} end
  end
  return accepted, #accepted < #list
end

-- The same for values of t.golden: {key =, says =, line =}.
function review.goldens(unit, list, o)
  local accepted = {}
  for _, one in ipairs(list) do
    if o.quit then break end
    say("\n", unit.path, ":", one.line, "  t.golden  ", one.key, "\n  ",
        (one.says:gsub("\n", "\n  ")), "\n")
    local key = choose {a = true, r = true, s = true, q = true}
    o.quit = key == "q"
    if key == "a" then accepted[#accepted + 1] = one end
  end
  return accepted, #accepted < #list
end

return review
