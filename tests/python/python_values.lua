-- SPDX-License-Identifier: MIT
-- Values, calls, objects, iteration and errors between Lua and Python.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails

local ok, py = pcall(nacre.python)
if not ok then skip(tostring(py)) end
assert(py == nacre.python(), "there is one table")
assert(tostring(py):find "^Python 3%.%d+")
assert(py.version:find "^3%.")

local id = py.eval "lambda x: x"
local kind = py.eval "lambda x: type(x).__name__"

-- ---- values, there and back

for _, v in ipairs {true, false, 0, -1, math.mininteger, math.maxinteger, 0.5,
                    -0.0, 1e308, 1 / 0, "", "text", "\u{e9}\u{1F600}",
                    "a\0b", "\xff\xfe"} do
  local got = id(v)
  assert(got == v and math.type(got) == math.type(v), v)
end
assert(id(nil) == nil and select("#", id(nil)) == 0)
assert(id(0 / 0) ~= id(0 / 0))
assert(kind(1) == "int" and kind(1.0) == "float" and kind(true) == "bool")
assert(kind "x" == "str" and kind "\xff" == "bytes" and kind(nil) == "NoneType")
assert(kind(py.bytes "x") == "bytes" and kind(py.none) == "NoneType")
assert(kind {1, 2} == "list" and kind {x = py.none} ~= "list")
assert(kind(py.dict {x = 1}) == "dict" and kind({}) == "list")
assert(kind(py.tuple {1}) == "tuple" and kind(py.set {1, 1}) == "set")
assert(#py.set {1, 1} == 1 and #py.list() == 0 and #py.list "abc" == 3)
assert(py.none == py.none and py.none ~= py.list {})
assert(py.eval "b'\\xff\\x00'" == "\xff\0")
assert(py.eval "'\\ud800'".encode, "what is not UTF-8 stays an object")
fails("a thread cannot be passed to Python", id, coroutine.create(print))
fails("elements and other keys, or gaps", id, {1, x = 2})
fails("nested too deeply, or contain themselves", id, (function()
  local t = {}
  t[1] = t
  return t
end)())

-- integers of more than 64 bits stay objects, and are exact
local big = py.int "123456789012345678901234567890"
assert(tostring(big) == "123456789012345678901234567890")
assert(tostring(big * 2) == "246913578024691357802469135780")
assert(big - big == 0 and big // big == 1)
assert(py.float(big) == 1.2345678901234568e29)
assert(py.eval "2**63" > py.eval "2**63 - 1")
assert(py.eval "2**63 - 1" == math.maxinteger)
assert(py.int "7" == 7 and py.int(7.9) == 7 and py.str(7) == "7")
assert(py.eval "-2**63" == math.mininteger)
local z = py.complex(1, -2)
assert(tostring(z * z) == "(-3-4j)" and z.real == 1 and z.imag == -2)

-- ---- calls

py.exec [[
def f(*args, **kwargs):
    return (args, sorted(kwargs.items()))
class Thing:
    count = 0
    def __init__(self, size=1): self.size = size
    def grow(self, by): self.size += by; return self.size
    def same(self, other): return other is self
    @staticmethod
    def double(x): return 2 * x
    def __call__(self, x): return x + self.size
]]
local main = py.main
local f = main.f
assert(tostring(f()) == "((), [])")
assert(tostring(f(1, {k = 2, j = "x"})) == "((1,), [('j', 'x'), ('k', 2)])")
assert(tostring(f({1, 2})) == "(([1, 2],), [])")
assert(tostring(f(py.dict {k = 1})) == "(({'k': 1},), [])")
assert(tostring(f(1, py.kwargs {})) == "((1,), [])")
assert(tostring(f(nil, 1, nil)) == "((None, 1, None), [])")
fails("the names of a table must be strings", py.kwargs, {1})
fails("names must be a table", py.kwargs, 1)
fails("names must be a table or a dict", py.eval, "1", 1)
fails("re must be a number, not a table", py.complex, {})
local thing = main.Thing({size = 3})
assert(thing:grow(2) == 5 and thing.grow(1) == 6, "colon or dot")
assert(thing:same(thing) and thing.same(thing), "a dot passes its arguments")
assert(pcall(thing.grow, thing, 1) and thing.size == 7)
assert(thing.double(4) == 8 and thing:double(4) == 8)
assert(thing(3) == 10)
local function tail() return thing.same(thing) end
assert(tail())
assert(select("#", py.unpack(py.tuple {1, py.none, 3})) == 3)
local a, b, c = py.unpack(py.eval "(1, None, 'x')")
assert(a == 1 and b == nil and c == "x")
assert(py.eval("x + y", {x = 1, y = 2}) == 3)
local names = py.dict {}
py.exec("q = 5", names)
assert(names.q == 5)
assert(py.import "math".floor(2.5) == 2)
assert(py.import "os.path".basename "a/b" == "b")

-- ---- attributes, keys, positions

thing.size = 9
assert(thing.size == 9)
thing.fresh = "new"
assert(thing.fresh == "new")
local d = py.dict {a = 1, items = 2}
assert(d.a == 1 and d["items"] == 2 and py.item(d, "items") == 2)
assert(#d:keys() == 2, "what is not a key is an attribute")
d.items = nil
assert(#d:items() == 1, "nil has removed the key")
d.none = nil
d.x, d[7] = py.none, "seven"
assert(d.x == nil and d[7] == "seven" and #d == 3)
fails("AttributeError: 'dict' object has no attribute 'zzz'",
      function() return d.zzz end)
fails("KeyError: 5", function() return d[5] end)
local l = py.list {"a", "b", "c"}
assert(l[0] == "a" and l[-1] == "c" and l[1.0] == "b")
l[0] = nil
assert(l[0] == nil and #l == 3)
assert(tostring(l[py.slice(1, nil)]) == "['b', 'c']")
assert(tostring(l[py.slice(2)]) == "[None, 'b']")
assert(tostring(l[py.slice(nil, nil, -1)]) == "['c', 'b', None]")
fails("IndexError: list index out of range", "positions count from 0 in " ..
      "Python: for x in py.iter(object) do iterates over them",
      function() return l[3] end)
fails("TypeError", function() return l[nil] end)

-- ---- iteration, operators, text

local seen = {}
for x in py.iter(py.list {1, py.none, "x"}) do seen[#seen + 1] = tostring(x) end
assert(table.concat(seen, " ") == "1 None x")
for i, x in pairs(py.tuple {"a", "b"}) do seen[i] = x end
assert(seen[0] == "a" and seen[1] == "b")
for k, v in pairs(py.dict {k = "v"}) do seen[k] = v end
assert(seen.k == "v")
local sum = 0
for x in py.iter(py.eval "(i * i for i in range(4))") do sum = sum + x end
assert(sum == 14)
fails("ZeroDivisionError", function()
  for _ in py.iter(py.eval "(1 // i for i in (1, 0))") do end
end)
fails("TypeError: 'int' object is not iterable", py.iter, 5)
fails("TypeError: 'list' object is not callable", "for x in py.iter(object) " ..
      "do goes through the values of an object of Python",
      function() for _ in l do end end)
local following = py.iter(l)
fails("this is not an iterator", following, l)
fails("must be an object of Python, not nil", following)
assert(tostring(py.list {1} + py.list {2}) == "[1, 2]")
assert(tostring(py.list {1} * 2) == "[1, 1]")
local three = py.import "fractions".Fraction(3)
assert(three + 1 == py.import "fractions".Fraction(4))
assert(tostring(1 / three) == "1/3" and three ^ 2 == three * three)
assert(three % 2 == py.import "fractions".Fraction(1) and -three < three)
assert(three <= three and three > 2 and not (three < 3))
assert(tostring(py.set {1, 2} & py.set {2}) == "{2}")
assert(tostring(py.set {1} | py.set {2}) == "{1, 2}")
assert(tostring(py.set {1} ~ py.set {1, 2}) == "{2}")
assert(tostring(big << 1) == "246913578024691357802469135780")
assert(tostring(~big) == "-123456789012345678901234567891")
assert(tostring(big >> 90) == "99" and "n=" .. big:bit_length() == "n=97")
assert("<" .. l .. ">" == "<[None, 'b', 'c']>")
fails("TypeError: can only concatenate", function() return l + 1 end)
fails("TypeError: '<' not supported", function() return l < thing end)

-- ---- tables

local t = py.table(py.eval "{'a': [1, (2, 3)], 'b': None, 5: {'x': 'y'}}")
assert(t.a[1] == 1 and t.a[2][2] == 3 and t.b == py.none and t[5].x == "y")
assert(#py.table(py.eval "range(4)") == 4 and #py.table(py.set {1, 2}) == 2)
fails("nested too deeply, or contains itself", py.table,
      py.eval "(lambda l: (l.append(l), l)[1])([])")

-- ---- functions of Lua in Python

local apply = py.eval "lambda f, *a, **k: f(*a, **k)"
assert(apply(function(x, y) return x + y end, 1, 2) == 3)
assert(apply(function() end) == nil)
assert(tostring(apply(function() return 1, nil, "x" end)) == "(1, None, 'x')")
assert(apply(function(o) return o.k end, {k = "v"}) == "v")
local function minus(x) return -x end
assert(tostring(py.builtins.sorted({3, 1, 2}, {key = minus})) == "[3, 2, 1]")
local function own() end
assert(id(own) == own and id(print) == print, "a function comes back as itself")
assert(py.builtins.repr(own):find "^<Lua function at .*values%.lua:%d+>$")
assert(py.import "copy".deepcopy(py.list {own})[0] == own, "a copy is the same")
assert(py.import "copy".copy(own) == own)
fails("a function of Lua cannot be pickled", py.import "pickle".dumps, own)
local net = nacre.nn.Linear(2, 1)
assert(id(net) == net, "what can be called is a function")
local wrapped = coroutine.wrap(function()
  return apply(function() return coroutine.isyieldable() end)
end)
assert(wrapped() == false)
fails("attempt to yield across a C-call boundary", coroutine.wrap(function()
  apply(coroutine.yield)
end))

-- ---- errors, both ways

local e = fails("ValueError: math domain error", py.import "math".sqrt, -1)
assert(e.class == "ValueError" and e.code == "EVALUE")
assert(e.exception.args[0] == "math domain error" and e.line)
py.exec [[
def inner(): return 1 / 0
def outer(): return inner()
def catch(f):
    try: return f()
    except Exception as e: return type(e).__name__ + ": " + str(e)
class Odd(Exception):
    def __str__(self): return "first\nsecond \u00e9"
def odd(): raise Odd
def unspeakable():
    class E(Exception):
        def __str__(self): raise ValueError
    raise E
]]
e = fails("ZeroDivisionError: division by zero", main.outer)
assert(e.traceback == "<lua>:2, in outer\n<lua>:1, in inner", e.traceback)
e = fails("Odd: first\nsecond \u{e9}", main.odd)
fails("E: (its message cannot be read)", main.unspeakable)
e = fails("SyntaxError: ", py.exec, "x = = 1")
assert(e.traceback == "<lua>:1   x = = 1")
fails("'return' outside function", py.exec, "return 1")
fails("NameError: name 'nothing' is not defined", py.eval, "nothing")
local found = fails("ModuleNotFoundError: No module named 'no_such'", py.import,
                    "no_such.part")
assert(found.hint:find("pip install no_such", 1, true) and
       found.hint:find(py.import "sys".executable, 1, true), found.hint)
assert(found.traceback == "", "those of importlib tell nothing")
found = fails("No module named 'sklearnn'", py.exec, "import sklearnn.svm")
assert(found.hint:find("pip install sklearnn", 1, true))
found = fails("No module named 'json.no_such'", py.import, "json.no_such")
assert(not found.hint, "the package is there")
fails("KeyError: 'k'", py.eval, "{}['k']")
fails("SystemExit: 3", "os.exit() ends the program", py.import "sys".exit, 3)
fails("ValueError: \\udcff", py.exec, "raise ValueError('\\udcff')")
fails("py has no 'len'", "py.builtins.len", function() return py.len end)
fails("import: module is missing: a string expected", py.import)
fails("NameError: name 'of_lua' is not defined", "py.main.of_lua = of_lua " ..
      "gives Python a variable of Lua", py.eval, "of_lua + 1")
nacre.python(py.executable)
fails("Python is already running: ", nacre.python, "/no/such")
fails("py has no 'numpie'", "py.import \"numpie\" if it is a module",
      function() return py.numpie end)
fails("missing", "a last table of names gives keyword arguments; " ..
      "py.dict{...} is a dict", py.import "json".dumps, {a = 1})
fails("code has no zero bytes", py.eval, "1\0")
-- an error of Lua is itself again, and is seen by Python as an exception
local object = {}
local good, got = pcall(apply, function() error(object) end)
assert(not good and got == object)
fails("python_values.lua:" .. debug.getinfo(1, "l").currentline + 1 .. ": boom",
      apply, function() error "boom" end)
assert(main.catch(function() error("boom", 0) end) == "LuaError: boom")
assert(main.catch(function() error() end) == "LuaError: nil")
assert(main.catch(function() return nacre.ones(2, 3):mm(nacre.ones(2, 3)) end)
       :find "LuaError: .*mm: inner sizes differ")
-- an exception of Python that goes through Lua is itself again
assert(main.catch(main.outer) == "ZeroDivisionError: division by zero")
assert(main.catch(function() return main.outer() end) ==
       "ZeroDivisionError: division by zero")
-- where Python has no frame left, an exception has its class at least
py.exec [[
def deep(n, f): return deep(n - 1, f) if n else f()
def bad(): raise ValueError("deep down")
]]
for n = 900, 1000 do
  local _, text = pcall(main.deep, n, function()
    return tostring(select(2, pcall(main.bad)))
  end)
  assert(tostring(text):find "ValueError" or
         tostring(text):find "RecursionError", text)
end
-- deep mutual recursion ends in an error, not in a crash
fails("C stack overflow", (function()
  local function deep(n) return apply(deep, n + 1) end
  return deep
end)(), 1)

-- ---- managers, and what is freed

py.exec [[
class Manager:
    log = []
    def __enter__(self): self.log.append("in"); return 5
    def __exit__(self, *e): self.log.append("out " + str(e[0] is None))
]]
local manager = main.Manager()
assert(py.with(manager, function(x) return x + 1 end) == 6)
fails("inside", py.with, manager, function() error "inside" end)
assert(tostring(manager.log) == "['in', 'out True', 'in', 'out False']")
local weak = py.import "weakref"
local function watched(make)
  local w = weak.ref(make())
  collectgarbage()
  collectgarbage()
  return w()
end
assert(watched(function() return main.Thing() end) == nil,
       "an object without users is freed")
local held = setmetatable({}, {__mode = "k"})
local keep = main.Thing()
do
  local f2 = function() return keep end
  held[f2] = true
  keep.f = f2
end
collectgarbage()
assert(next(held), "Python holds the function")
assert(keep.f() == keep)
keep.f = nil
collectgarbage()
collectgarbage()
assert(not next(held), "Python has dropped the function")

-- ---- code that runs while something else does

-- a dict that changes while it is copied
py.exec [[
class Key(float):
    def __hash__(self): return 1
    def item(self):
        changing.clear()
        return 1.0
changing = {Key(1): [1, 2, 3]}
]]
local copied = py.table(main.changing)
assert(#copied[next(copied)] == 3)
-- what the collector destroys may call Lua, also an error there is no harm
py.exec [[
class Last:
    def __init__(self, f): self.f = f
    def __del__(self): self.f()
import sys
sys.unraisablehook = lambda args: unraised.append(str(args.exc_value))
unraised = []
]]
local last = 0
local function collected()
  for _ = 1, 3 do
    main.Last(function() last = last + py.eval "1" end)
  end
  main.Last(function() error("late", 0) end)
  collectgarbage()
  collectgarbage()
end
collected()
coroutine.wrap(collected)()
apply(collected)
apply(function() coroutine.wrap(collected)() end)
assert(last == 12, last)
assert(tostring(main.unraised) == "['late', 'late', 'late', 'late']")
py.exec "sys.unraisablehook = sys.__unraisablehook__"
-- what only the bridge calls checks what it is given
for _, code in ipairs {"call()", "call(1, 2, 3)", "write()", "write(1, 2)",
                       "dlpack()", "dlpack(1, 2)", "Function(1, 2)()",
                       "call(Function.__call__, 3, 4)"} do
  fails("", py.exec, "import _nacre\nfrom _nacre import *\n_nacre." .. code)
end
py.exec "kept = [None]"
main.kept[0] = own
fails("", py.exec, "_nacre.call(kept[0]._value, 5, {})")
