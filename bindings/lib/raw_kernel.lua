-- SPDX-License-Identifier: MIT
-- raw_kernel.lua - nacre.cuda.kernel: a kernel of the user's own CUDA C++. Its
-- parameters are read in the text, so that a call can be checked: a kernel that
-- gets a wrong pointer or number of bytes ends the use of the device.

local core = ...
local OP = "cuda.kernel"

local function fail(text, hint, ...) core.fail(OP, text, hint, ...) end

-- Types of numbers: how they are passed (cuda_kernels.c), and the dtype of
-- tensors whose elements they are.
local types = {
  ["bool"] = {"b", "bool"}, ["char"] = {"c", "int8"},
  ["signed char"] = {"c", "int8"}, ["unsigned char"] = {"C", "uint8"},
  ["short"] = {"h", "int16"}, ["unsigned short"] = {"H"},
  ["int"] = {"i", "int32"}, ["unsigned"] = {"I"}, ["unsigned int"] = {"I"},
  ["long"] = {"l", "int64"}, ["long long"] = {"l", "int64"},
  ["unsigned long"] = {"L"}, ["unsigned long long"] = {"L"},
  ["size_t"] = {"L"}, ["ptrdiff_t"] = {"l", "int64"},
  ["int8_t"] = {"c", "int8"}, ["uint8_t"] = {"C", "uint8"},
  ["int16_t"] = {"h", "int16"}, ["uint16_t"] = {"H"},
  ["int32_t"] = {"i", "int32"}, ["uint32_t"] = {"I"},
  ["int64_t"] = {"l", "int64"}, ["uint64_t"] = {"L"},
  ["float"] = {"f", "float32"}, ["double"] = {"d", "float64"},
  ["__half"] = {nil, "float16"}, ["half"] = {nil, "float16"},
  ["__nv_bfloat16"] = {nil, "bfloat16"},
}
local least = {c = -128, C = 0, h = -32768, H = 0, i = -2147483648, I = 0,
               L = 0}
local most = {c = 127, C = 255, h = 32767, H = 65535, i = 2147483647,
              I = 4294967295}

-- ---- prototypes

-- The text without comments and texts in quotes, of the same length.
local function without_comments(source)
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  return (source:gsub('"[^"\n]*"', blank):gsub("/%*.-%*/", blank)
                :gsub("//[^\n]*", blank))
end

-- The parameters of the kernel, as texts; nil if the text has no such kernel.
local function parameter_texts(source, name)
  local plain, text = name:match "^[%w_:]+", without_comments(source)
  plain = plain and plain:match "[%w_]+$"
  local at = 1
  while plain do
    local from, to = text:find("__global__%f[^%w_][^;{}]-%f[%w_]" .. plain ..
                               "%s*%b()", at)
    if not from then return nil end
    local list = text:sub(from, to):match("%f[%w_]" .. plain .. "%s*(%b())$")
    if list then
      local items, depth, item = {}, 0, ""
      for c in (list:sub(2, -2) .. ","):gmatch "." do
        if c == "<" or c == "(" then depth = depth + 1 end
        if c == ">" or c == ")" then depth = depth - 1 end
        if c == "," and depth == 0 then
          if item:find "%S" then items[#items + 1] = item end
          item = ""
        else item = item .. c end
      end
      return items
    end
    at = to + 1
  end
end

-- A parameter: its name, its type, and how it is passed; pointers with `write'
-- if the kernel may write there.
local function read_parameter(text)
  local p = {name = text:match "([%a_][%w_]*)%s*$" or "it",
             text = text:match "^%s*(.-)%s*$":gsub("%s+", " ")}
  local own = text:sub(1, #text - #text:match "[%w_]*%s*$")
  local pointer, constant = own:find "%*" ~= nil,
                            own:match "^[^*]*":find "%f[%w]const%f[%W]"
  local kind = own:gsub("%*", " "):gsub("%f[%w_]const%f[^%w_]", " ")
                  :gsub("%f[%w_]volatile%f[^%w_]", " ")
                  :gsub("__restrict__", " "):gsub("__grid_constant__", " ")
                  :gsub("%f[%w_]struct%f[^%w_]", " "):gsub("std::", "")
                  :gsub("%s+", " "):match "^%s*(.-)%s*$"
  local known = types[kind] or {}
  if pointer then
    p.kind, p.dtype = constant and "p" or "P", known[2]
  else
    p.kind, p.type = known[1], kind
  end
  return p
end

local function read_parameters(source, name)
  local texts = parameter_texts(source, name)
  if not texts then
    fail(("the text has no kernel '%s'"):format(name),
         'extern "C" __global__ void ' .. name .. "(...)")
  end
  local list = {}
  for i, text in ipairs(texts) do list[i] = read_parameter(text) end
  return list
end

-- ---- errors of the compiler

-- What the compiler says, an error a line, with the lines of the text below.
local function marked(log, source)
  local lines, out, shown = {}, {}, 0
  for line in (source .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  for line in log:gmatch "[^\n]+" do
    local n, text = line:match "^[^%s(]+%((%d+)%)%s*:%s*(.*)$"
    if not n then n, text = line:match "^[^:]*:(%d+):%d+: (.*)$" end
    if n and text:find "error" and shown < 5 then
      shown = shown + 1
      out[#out + 1] = ("line %d: %s"):format(n, (text:gsub("^error: ", "")))
      out[#out + 1] = ("  %s"):format(
        (lines[tonumber(n)] or ""):match "^%s*(.-)%s*$")
    end
  end
  return shown > 0 and table.concat(out, "\n") or log:sub(1, 400)
end

-- ---- calls

local Kernel = {__name = "nacre.cuda.kernel"}
Kernel.__index = Kernel

-- Three sizes from a number or a list, which may hold `shared' as well.
local function sizes(v, what)
  local list = type(v) == "table" and v or {v}
  local r = {}
  for i = 1, 3 do
    local n = list[i] == nil and i > 1 and 1 or list[i]
    n = math.tointeger(n)
    if not n or n < 1 then
      fail(("%s must be an integer of 1 or more, or up to three of them")
           :format(what), "k(grid, block, ...), as in k(64, 256, x)")
    end
    r[i] = n
  end
  return r, list.shared or 0
end

local function check_tensor(p, i, v)
  if not nacre.is_tensor(v) then
    fail(("argument %d, '%s', must be a tensor, not a %s")
         :format(i, p.text, type(v)))
  end
  if not v.is_cuda then
    fail(("{%s} is on the %s, but a kernel takes tensors of a CUDA device")
         :format(p.name, tostring(v.device)), ("{%s}:cuda()"):format(p.name),
         p.name, v)
  end
  if p.dtype and v.dtype ~= p.dtype and
     not (p.dtype == "bool" and v.dtype == "uint8") then
    fail(("{%s} is %s, but '%s' points to %s")
         :format(p.name, tostring(v.dtype), p.text, p.dtype),
         ('{%s}:to("%s")'):format(p.name, p.dtype), p.name, v)
  end
  if not v:is_contiguous() then
    fail(("the elements of {%s} do not lie row by row"):format(p.name),
         ("{%s}:contiguous()"):format(p.name), p.name, v)
  end
end

local function check_number(p, i, v)
  if not p.kind then
    fail(("argument %d: Nacre cannot pass a '%s'"):format(i, p.type),
         "pointers and numbers of C can be passed")
  end
  local n = v
  if p.kind == "b" and type(v) == "boolean" then return v and 1 or 0 end
  if p.kind == "f" or p.kind == "d" then n = type(v) == "number" and v
  else n = type(v) == "number" and math.tointeger(v) end
  if not n then
    fail(("argument %d, '%s', must be a %s, not %s"):format(
      i, p.text,
      (p.kind == "f" or p.kind == "d") and "number" or "whole number",
      nacre.is_tensor(v) and "a tensor" or
      type(v) == "number" and tostring(v) or "a " .. type(v)))
  end
  if least[p.kind] and n < least[p.kind] or most[p.kind] and n > most[p.kind]
  then
    fail(("argument %d: '%s' cannot be %s"):format(i, p.text, tostring(v)))
  end
  return n
end

function Kernel:__call(grid, block, ...)
  local list, n = self.parameters, select("#", ...)
  if grid == nil or block == nil then
    fail("the grid and the block are missing", "k(grid, block, ...)")
  end
  local g = sizes(grid, "the grid")
  local b, shared = sizes(block, "the block")
  if b[1] * b[2] * b[3] > 1024 then
    fail(("a block has at most 1024 threads, not %d"):format(b[1]*b[2]*b[3]))
  end
  if n ~= #list then
    local names = {}
    for i, p in ipairs(list) do names[i] = p.text end
    fail(("%d argument%s for %d parameter%s: %s"):format(
      n, n == 1 and "" or "s", #list, #list == 1 and "" or "s",
      table.concat(names, ", ")))
  end
  local kinds, values, first = {}, {...}, nil
  for i, p in ipairs(list) do
    kinds[i] = p.kind
    if p.kind == "p" or p.kind == "P" then
      check_tensor(p, i, values[i])
      first = first or values[i]
      if values[i].device ~= first.device then
        fail(("{%s} is on %s, but another tensor is on %s"):format(
          p.name, tostring(values[i].device), tostring(first.device)), nil,
          p.name, values[i])
      end
    else values[i] = check_number(p, i, values[i]) end
  end
  core.launch(self.box, g[1], g[2], g[3], b[1], b[2], b[3], shared,
              table.concat(kinds), table.unpack(values, 1, n))
end

function Kernel:attributes(threads)
  local names = {"registers", "local_bytes", "shared_bytes", "constant_bytes",
                 "max_threads", "blocks_per_multiprocessor"}
  local values, t = {core.facts(self.box, threads or 256)}, {}
  for i, name in ipairs(names) do t[name] = values[i] end
  t.threads = threads or 256
  return t
end

function Kernel:ptx() return core.ptx(self.box) end

function Kernel:__tostring()
  local names = {}
  for i, p in ipairs(self.parameters) do names[i] = p.text end
  return ("kernel %s(%s)"):format(self.name, table.concat(names, ", "))
end

return function(source, name, ...)
  local options = {...}
  if type(options[1]) == "table" then options = options[1] end
  if type(source) ~= "string" or type(name) ~= "string" then
    fail("takes a text and the name of the kernel in it",
         "nacre.cuda.kernel(source, \"name\")")
  end
  for i, o in ipairs(options) do
    if type(o) ~= "string" then
      fail(("option %d is not a string"):format(i), "for example {\"-DN=4\"}")
    end
  end
  local self = {name = name, parameters = read_parameters(source, name)}
  local box, log = core.compile(source, name, options)
  if not box then fail(marked(log, source)) end
  self.box = box
  return setmetatable(self, Kernel)
end
