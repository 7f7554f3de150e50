-- SPDX-License-Identifier: MIT
-- Errors of the library as values: they answer as texts do, and what writes
-- texts about them or about tensors does not fail itself.

local function raised(f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok)
  return e
end
local function broken() nacre.ones(2):mm(5) end
local e = raised(broken)

-- ---- methods of strings
assert(type(e) == "table" and e.code == "EVALUE" and e.op == "mm")
assert(e:match "mm: (.*)" == "mat2 must be a tensor, not an integer")
assert(e:find("mat2", 1, true) and not e:find "mat3")
assert(e:gsub("mat2", "it") == tostring(e):gsub("mat2", "it"))
assert(e:upper() == tostring(e):upper() and e:len() == #tostring(e))
assert(e:sub(-7) == "integer" and e:rep(2) == tostring(e):rep(2))
assert(("%s"):format(e) == tostring(e) and e .. "!" == tostring(e) .. "!")
local words = 0
for _ in e:gmatch "%a+" do words = words + 1 end
assert(words > 5)
assert(e.foo == nil and e.rule == nil and e[1] == nil)

-- ---- tracebacks
do
  local _, text = xpcall(broken, debug.traceback)
  assert(type(text) == "string" and text:find("mm: mat2 must be", 1, true))
  assert(text:find "\nstack traceback:\n" and text:find "error_values.lua:%d+")
  local _, same = xpcall(error, debug.traceback, {})
  assert(type(same) == "table")
  assert(debug.traceback("x"):find "^x\nstack traceback:\n\t[^\n]*error_values")
  assert(debug.traceback("x", 0):find "^x\nstack traceback:\n\t%[C%]")
  assert(debug.traceback():find "^stack traceback:\n\t[^\n]*error_values")
  local co = coroutine.create(function() coroutine.yield() end)
  coroutine.resume(co)
  assert(debug.traceback(co, "x"):find "^x\nstack traceback:\n\t%[C%]")
  assert(debug.traceback(co, e):find "stack traceback:")
  assert(debug.traceback(print) == print and debug.traceback(12):find "^12\n")
  local _, named = xpcall(function() nacre.ones(-1, {}, {}) end,
                          debug.traceback)
  assert(named:find "'nacre.ones'" and not named:find "torch", named)
end

-- ---- tostring of what is not well
do
  local t <const> = nacre.ones(2)
  local had = nacre._tostring
  nacre._tostring = function() error "cannot" end
  assert(tostring(t) == "float32[2] cpu")
  nacre._tostring = function(v) v:free() return v:sum() end
  assert(tostring(nacre.ones(2)) == "a freed tensor")
  nacre._tostring = function() return 5 end
  assert(tostring(t) == "5")
  nacre._tostring = function() return {} end
  assert(tostring(t) == "float32[2] cpu")
  nacre._tostring = had
end

-- ---- scripts may use the names of Lua's functions before a tensor is shown
do
  local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
  local run = dofile(here .. "../lib/program.lua")
  local text = run [[-e 'type, table, pcall = 1, 2
print(nacre.ones(2), nacre.linalg.norm(nacre.ones(4)):item())']]
  assert(text == "float32[2] cpu  8 B\n  1.0  1.0\t2.0\n", text)
end

-- ---- the metatable of tensors is out of reach
assert(getmetatable(nacre.ones(1)) == "tensor")
assert(not pcall(setmetatable, {}, getmetatable(nacre.ones(1))))

-- ---- Lua's own functions name themselves
assert(raised(ipairs) == "bad argument #1 to 'ipairs' (value expected)" or
       raised(ipairs):find "ipairs")
assert(select(2, load("return 1", "x", "b")) ==
       "mode is 'b', and binary chunks are not loaded")
do
  local seen = {}
  for entry in package.path:gmatch "[^;]+" do
    assert(not seen[entry], entry .. " twice in package.path")
    seen[entry] = true
  end
end

-- ---- events and private functions look at what they are given
do
  local function values()
    return {false, 1, -1, 1.5, "", "abc", {}, {1, 2}, type, io.stdout,
            coroutine.create(type), nacre.ones(2), nacre.tensor(3),
            nacre.ones(2).shape, nacre.Generator(),
            (nacre.ones(1, {requires_grad = true}) * 2).grad_fn}
  end
  local skip = {_fail_alloc = true, _tostring = true, _watch = true}
  local function calls(f)
    local odd = values()
    pcall(f)
    for _, a in ipairs(odd) do
      pcall(f, a)
      for _, b in ipairs(odd) do
        pcall(f, a, b)
        pcall(f, a, b, -1)
        pcall(f, a, b, b, a)
      end
    end
  end
  local function events(meta)
    for event, f in pairs(meta) do
      if type(f) == "function" and event ~= "__gc" then calls(f) end
    end
  end
  local tables = {}
  for name, v in pairs(debug.getregistry()) do
    if type(v) == "table" and tostring(name):find "^nacre%." and
       rawget(v, "__name") then
      tables[name] = v
    end
  end
  for _, v in ipairs {nacre.ones(2):unbind(), nacre.ones(1),
                      nacre.ones(1).shape, nacre, nacre.nn,
                      nacre.nn.functional, nacre.linalg, nacre.cuda,
                      nacre.autograd, nacre.backends,
                      nacre.backends.cuda.matmul, e} do
    tables[#tables + 1] = debug.getmetatable(v)
  end
  for _, meta in pairs(tables) do events(meta) end
  for _, space in ipairs {nacre, nacre.autograd} do
    for name, f in pairs(space) do
      if type(f) == "function" and name:find "^_" and not skip[name] then
        calls(f)
      end
    end
  end
end

do -- a long message is cut between characters
  local ok, err = pcall(nacre.ones, 2, {[("\u{e9}"):rep(300)] = 1})
  assert(not ok and #err.message > 400 and utf8.len(err.message))
end
