-- SPDX-License-Identifier: MIT
-- guards.lua - methods of the classes of the library check what they are given,
-- as functions do: that they are called with a colon, on an instance, and their
-- arguments, by a signature.
local all = ...
local fail, parse, read = all.fail, all.parse, all.read

-- The method that each guard calls, for callers that have checked.
local unguarded = setmetatable({}, {__mode = "k"})
all.unguarded = unguarded

-- What a class keeps as it is: constructors, which have a signature or are the
-- user's, and what is called on a class.
local OPEN = {extend = true, init = true, is = true}

-- Fails for a key that no table has.
function all.check_key(name, key)
  if key == nil or key ~= key then
    fail(name, ("a field cannot be called %s"):format(key))
  end
end

-- Is v an instance of this class, or of one derived from it?
function all.is_instance(v, class)
  local of = type(v) == "table" and getmetatable(v)
  while type(of) == "table" do
    if rawequal(of, class) then return true end
    local meta = getmetatable(of)
    of = type(meta) == "table" and rawget(meta, "__index")
  end
  return false
end

local function fail_self(name, object, most)
  fail(name, "a method is called with a colon",
       ("%s:%s(%s)"):format(object, name, most == 0 and "" or "..."))
end

-- Is this field of a class one of its methods?
function all.is_method(name, method)
  return type(method) == "function" and type(name) == "string" and
         name:find "^%l" and not OPEN[name] and not unguarded[method]
end

-- A function of a class, which has no self: class.name(...).
function all.class_function(class, name, signature, f)
  local s = parse(name, signature)
  rawset(class, name, function(...)
    return f(table.unpack(read(name, s, ...), 1, #s.params))
  end)
end

-- The method, which fails for a self that is(self) refuses, and for arguments
-- that the signature, if there is one, does not have, or else for more of them
-- than it takes. `object' is what a hint calls self.
function all.guard_method(name, method, is, object, signature)
  local info = debug.getinfo(method, "u")
  local most = info.isvararg and math.huge or info.nparams - 1
  local s, guard = signature and parse(name, signature), nil
  if s then
    function guard(self, ...)
      if not is(self) then fail_self(name, object, #s.params) end
      return method(self, table.unpack(read(name, s, ...), 1, #s.params))
    end
  else
    function guard(self, ...)
      if not is(self) then fail_self(name, object, most) end
      if select("#", ...) > most then
        fail(name, ("takes %s, got %d"):format(
          most == 0 and "no argument" or most == 1 and "at most 1 argument" or
          ("at most %d arguments"):format(most), select("#", ...)))
      end
      return method(self, ...)
    end
  end
  unguarded[guard] = method
  return guard
end

-- Guards the methods of a class that begin with a small letter; signatures are
-- by name.
function all.guard_methods(class, is, object, signatures)
  for name, method in pairs(class) do
    if all.is_method(name, method) then
      class[name] = all.guard_method(name, method, is, object,
                                     signatures and signatures[name])
    end
  end
end
