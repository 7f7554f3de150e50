-- SPDX-License-Identifier: MIT
--
-- python_idioms.lua - methods of Python's lists and texts, and its functions,
-- as forms of Lua: python_methods.lua fills them.

local lexer = require "nacre.lexer"

local forms = {}

-- By the number of arguments: $x is the object, $y and $z are the arguments, $N
-- is the first of them counted from 1, $p a text that is written there as a
-- pattern. What a form with $t, $n, $f, $b or $s makes, a statement, is then in
-- that variable; $i, $k, $v and $w are variables of loops.
forms.lists = {
  sort = {[0] = "table.sort($x)"},
  reverse = {[0] = "for $i = 1, #$x // 2 do " ..
             "$x[$i], $x[#$x + 1 - $i] = $x[#$x + 1 - $i], $x[$i] end"},
  pop = {[0] = "table.remove($x)", "table.remove($x, $N)"},
  insert = {nil, "table.insert($x, $N, $z)"},
  remove = {"for $i, $v in ipairs($x) do " ..
            "if $v == $y then table.remove($x, $i) break end end"},
  index = {"$n = nil; for $i, $v in ipairs($x) do " ..
           "if $v == $y then $n = $i break end end"},
  count = {"$n = 0; for _, $v in ipairs($x) do " ..
           "if $v == $y then $n = $n + 1 end end"},
  extend = {"table.move($y, 1, #$y, #$x + 1, $x)"},
  clear = {[0] = "$x = {}"}, copy = {[0] = "table.move($x, 1, #$x, 1, {})"},
  get = {"$x[$y]", "$x[$y] or $z"},
  setdefault = {nil, "$b = $x[$y] or $z; $x[$y] = $b"},
  update = {"for $k, $v in pairs($y) do $x[$k] = $v end"}}

-- d.pop("a"), of a dictionary
forms.pop_key = "$b = $x[$y]; $x[$y] = nil"

forms.texts = {
  upper = {[0] = "$x:upper()"}, lower = {[0] = "$x:lower()"},
  replace = {nil, "($x:gsub($p, $z))"}, split = {
    [0] = '$t = {}; for $w in $x:gmatch "%S+" do $t[#$t + 1] = $w end',
    '$t = {}; for $w in ($x .. $y):gmatch("(.-)" .. $p) do ' ..
    "$t[#$t + 1] = $w end"},
  splitlines = {[0] =
    '$t = {}; for $w in $x:gmatch "[^\\n]+" do $t[#$t + 1] = $w end'},
  startswith = {"$x:sub(1, #$y) == $y"}, endswith = {"$x:sub(-#$y) == $y"},
  strip = {[0] = '$x:match "^%s*(.-)%s*$"'},
  lstrip = {[0] = '$x:match "^%s*(.*)$"'},
  rstrip = {[0] = '$x:match "^(.-)%s*$"'},
  find = {"$x:find($y, 1, true)"}, index = {"$x:find($y, 1, true)"},
  count = {"select(2, $x:gsub($p, $y))"},
  capitalize = {[0] = '($x:gsub("^%l", string.upper))'},
  title = {[0] = '($x:gsub("%f[%a]%l", string.upper))'},
  isdigit = {[0] = '$x:find "^%d+$" ~= nil'},
  isalpha = {[0] = '$x:find "^%a+$" ~= nil'},
  encode = {[0] = "$x", "$x"}, decode = {[0] = "$x", "$x"},
  zfill = {'("0"):rep($y - #$x) .. $x'}, ljust = {'$x .. (" "):rep($y - #$x)'},
  center = {'(" "):rep(($y - #$x) // 2) .. $x .. ' ..
            '(" "):rep(($y - #$x + 1) // 2)',
            "$z:rep(($y - #$x) // 2) .. $x .. $z:rep(($y - #$x + 1) // 2)"},
  rjust = {'(" "):rep($y - #$x) .. $x'}, join = {"table.concat($y, $x)"}}
-- Those that neither lists nor tensors have.
forms.of_text_alone = lexer.set [[upper lower strip lstrip rstrip startswith
  endswith center capitalize title isdigit isalpha encode zfill ljust rjust
  splitlines]]

-- Functions; $x is the first argument.
forms.functions = {
  sum = {"$n = 0; for _, $v in ipairs($x) do $n = $n + $v end"},
  max = {"math.max(table.unpack($x))"}, min = {"math.min(table.unpack($x))"},
  sorted = {"$t = table.move($x, 1, #$x, 1, {}); table.sort($t)"},
  any = {"$f = false; for _, $v in ipairs($x) do $f = $f or $v end"},
  all = {"$f = true; for _, $v in ipairs($x) do $f = $f and $v end"},
  set = {"$t = {}; local $k = {}; for _, $v in ipairs($x) do " ..
         "if not $k[$v] then $k[$v] = true; $t[#$t + 1] = $v end end"},
  Counter = {"$t = {}; for _, $v in ipairs($x) do " ..
             "$t[$v] = ($t[$v] or 0) + 1 end"},
  tuple = {"$x"}, eval = {'load("return " .. $x)()'},
  bin = {'$s = ""; local $n = $x; ' ..
         'repeat $s, $n = $n % 2 .. $s, $n // 2 until $n == 0'},
  oct = {'("%o"):format($x)'},
  round = {nil, 'tonumber(("%.$yf"):format($x))'}, pow = {nil, "$x ^ $y"},
  divmod = {nil, "$x // $y, $x % $y"}, ord = {"$x:byte()"},
  chr = {"string.char($x)"}, hex = {'("0x%x"):format($x)'},
  id = {'("%p"):format($x)'}, bool = {"$x ~= 0"},
  dir = {"for $k in pairs($x) do print($k) end"},
  input = {[0] = "io.read()", "io.write($x) and io.read()"}}

forms.libraries = {
  ["glob.glob"] = {'shell.lines("ls " .. $x)'},
  ["os.path.join"] = {nil, '$x .. "/" .. $y'},
  ["os.path.basename"] = {'$x:match "[^/]*$"'},
  ["Image.open"] = {"nacre.load($x)"},
  ["os.getcwd"] = {[0] = 'os.getenv "PWD"'},
  ["os.listdir"] = {[0] = 'shell.lines "ls"', 'shell.lines("ls " .. $x)'},
  ["os.path.exists"] = {"io.open($x) ~= nil"},
  ["os.getenv"] = {"os.getenv($x)"}, ["os.environ.get"] = {"os.getenv($x)",
  "os.getenv($x) or $y"}, ["sys.exit"] = {[0] = "os.exit()", "os.exit($x)"},
  ["os.makedirs"] = {'os.execute("mkdir -p " .. $x)',
                     'os.execute("mkdir -p " .. $x)'},
  ["os.mkdir"] = {'os.execute("mkdir " .. $x)'},
  ["collections.Counter"] = forms.functions.Counter,
  ["time.time"] = {[0] = "nacre.clock()"},
  ["time.perf_counter"] = {[0] = "nacre.clock()"},
  ["time.sleep"] = {"os.execute('sleep ' .. $x)"},
  ["math.factorial"] = {"$n = 1; for $i = 2, $x do $n = $n * $i end"},
  ["random.random"] = {[0] = "math.random()"},
  ["random.randint"] = {nil, "math.random($x, $y)"},
  ["random.choice"] = {"$x[math.random(#$x)]"},
  ["random.sample"] = {nil, "$t = {}; " ..
    "local $v = table.move($x, 1, #$x, 1, {}); for _ = 1, $y do " ..
    "$t[#$t + 1] = table.remove($v, math.random(#$v)) end"},
  ["os.path.splitext"] = {'{$x:match "^(.*)(%.[^./]*)$"}'},
  ["random.uniform"] = {nil, "$x + ($y - $x) * math.random()"},
  ["random.shuffle"] = {"for $i = #$x, 2, -1 do local $k = math.random($i); " ..
                        "$x[$i], $x[$k] = $x[$k], $x[$i] end"},
  ["np.random.default_rng"] = {[0] = "nacre.Generator()",
                              "nacre.Generator():manual_seed($x)"},
  ["np.random.choice"] = {"$x[math.random(#$x)]"},
  ["gc.collect"] = {[0] = "collectgarbage()"}}

-- The forms that give texts, and those without $t that give lists.
forms.gives_text = lexer.set [[upper lower replace strip lstrip rstrip title
  capitalize encode decode zfill ljust rjust center join input chr hex oct
  os.getcwd
  os.getenv os.path.join os.path.basename]]
forms.gives_list = lexer.set "os.listdir glob.glob copy os.path.splitext"

return forms
