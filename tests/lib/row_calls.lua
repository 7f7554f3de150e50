-- SPDX-License-Identifier: MIT
-- The operations that work along a dimension, found in the library's tables:
-- those of which a tensor and dim are all that is needed, or what `needed' has.
--   local calls = dofile(here .. "row_calls.lua")
-- is a list of {name=, draw=}: draw() chooses options by chance and gives a
-- function f(x) whose results, a list, have a row for each row of a matrix x.

-- What other parameters are given: of x, row by row.
local needed = {
  q = function() return 0.3 end,
  k = function(x) return (x:size(2) + 1) // 2 end,
  other = function(x) return x:flip(2) end,
  p = function() return 3 end, maxnorm = function() return 1.5 end,
}
needed.x2, needed.y, needed.src = needed.other, needed.other, needed.other
function needed.index(x) return x:argsort(2) end
needed.indices = needed.index
function needed.shifts() return 2 end
function needed.split_size() return 3 end
needed.chunks, needed.indices_or_sections = needed.split_size, needed.split_size

-- What looks at other rows, draws, or takes positions or dimensions of another
-- kind.
local skip = {}
for name in ([[unique unique_consecutive renorm gumbel_softmax index_select
  index_add index_copy index_fill index_reduce select_scatter slice_scatter
  select tensordot permute tile rot90]]):gmatch "%S+" do
  skip[name] = true
end
local spaces = {[""] = nacre._functions, ["linalg."] = nacre.linalg,
                ["nn.functional."] = nacre.nn.functional}

-- The parameters of a function of rows, or nil.
local function parameters(f)
  local info = nacre._info(f)
  local params = info and info.params or {}
  local along = false
  for i, p in ipairs(params) do
    if p.name == "dim" or p.name == "dims" then along = p.name
    elseif i > 1 and not (p.optional or p.choices or needed[p.name]) then
      return
    end
  end
  local first = params[1] and params[1].type
  return (first == "tensor" or first == "inplace") and along and params, along
end

-- A value for an option by chance; nil for most.
local function chosen(p)
  if p.type == "bool" then return math.random(2) == 1 end
  if p.choices and not (p.optional and math.random(2) == 1) then
    local words = {}
    for word in p.choices:gmatch "[^|]+" do words[#words + 1] = word end
    return words[math.random(#words)]
  end
end

local function flat(list, v)
  if nacre.is_tensor(v) then list[#list + 1] = v
  elseif type(v) == "table" then
    for _, x in ipairs(v) do flat(list, x) end
  end
  return list
end

local function draw(f, params, along)
  local options = {}
  for _, p in ipairs(params) do options[p.name] = chosen(p) end
  options[along] = 2
  return function(x)
    local given = {}
    for key, v in pairs(options) do given[key] = v end
    for i = 2, #params do
      local p = params[i]
      if needed[p.name] and not (p.optional or options[p.name]) then
        given[p.name] = needed[p.name](x)
      end
    end
    return flat({}, table.pack(f(x, given)))
  end, options
end

local calls = {}
for prefix, space in pairs(spaces) do
  for name, f in next, space do
    local params, along = nil, nil
    if type(f) == "function" and not skip[name] and not name:find "^_" and
       not name:find "_$" then
      params, along = parameters(f)
    end
    if params then
      calls[#calls + 1] = {name = prefix .. name, f = f, draw = function()
        return draw(f, params, along)
      end}
    end
  end
end

-- Those whose dimension is the first, or that put one before it.
local others = {msort = function(x) return {x:t():msort():t()} end}
for _, name in ipairs {"quantile", "nanquantile"} do
  others[name .. " of several"] = function(x)
    local q = nacre.tensor({0, 0.5, 1}, {dtype = x.dtype})
    return {x[name](x, q, 2, {interpolation = "higher"}):movedim(1, -1)}
  end
end
for name, f in pairs(others) do
  calls[#calls + 1] = {name = name, draw = function() return f, {} end}
end
table.sort(calls, function(a, b) return a.name < b.name end)
return calls
