-- SPDX-License-Identifier: MIT
--
-- foreign_calls.lua - translates calls: torch.cat([x, y], dim=0) is
-- torch.cat({x, y}, {dim=1}), x.sum(1) is x:sum(2), len(x) is #x. The parser of
-- foreign_expressions.lua calls it behind the parenthesis that opens.

local expressions = require "nacre.expression_at"
local foreign_loops = require "nacre.foreign_loops"
local index_base = require "nacre.index_base"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local names = require "nacre.python_names"
local other_libraries = require "nacre.other_libraries"
local python_methods = require "nacre.python_methods"
local python_truth = require "nacre.python_truth"
local unknown_names = require "nacre.unknown_names"

local nacre = package.loaded.nacre or _G.nacre

local foreign_calls = {}

local of_library

-- The arguments up to the parenthesis that closes: {name =, node =, star =}.
function foreign_calls.arguments(p)
  local list = {}
  local condition, index = p.in_condition, p.in_index
  p.in_condition, p.in_index = nil, nil
  while not p:take ")" do
    if list[1] then p:expect "," end
    if p:take ")" then break end
    local t = p:token() or p.fail()
    local item = {space = t.space, star = p:take "*" ~= nil,
                  named = p:take "**" ~= nil}
    if (t.kind == "name" or t.text == "end") and p:at("=", 1) then
      item.name, p.i, p.found.python = t.text, p.i + 2, true
    end
    local counted, whole = p.found.counted, nil
    item.node, whole = p:element ")"
    if item.star then p.found.counted = counted end
    list[#list + 1] = item
    if whole then break end
  end
  p.in_condition, p.in_index = condition, index
  return list
end

-- A dimension or a list of them, counted from 1 if the parameter is one.
local function counted(p, info, name, n)
  local text, any = n.text, false
  if n.kind == "number" then
    text, any = index_base.argument(info, name, text)
  elseif n.items and not text:find "[^%d%s,{}]" then
    text = text:gsub("%d+", function(digits)
      local own, mine = index_base.argument(info, name, digits)
      any = any or mine
      return own
    end)
  end
  p.found.counted = p.found.counted or any
  p.found.from_zero = p.found.from_zero or any and n.text == "0"
  return text
end

-- net.children(), list(net.children())[:-1] behind a star
local function unpacked(text)
  local list, n = text:match "^(.*)%[\":%-(%d+)\"%]$"
  if not list then return ("table.unpack(%s)"):format(text) end
  return ("table.unpack(%s, 1, #%s - %d)"):format(list, list, n - 1)
end

local of_floats = lexer.set "mean std var"

-- A list where an operation takes a tensor, np.mean(losses), or nil
local function for_tensor(p, info, n, i)
  local first = info and info.params and info.params[i]
  local v = n.path and p.value(n.path)
  if not first or first.type ~= "tensor" then return nil end
  if n.kind == "list" and not info.name:find "tensor" then
    local whole = of_floats[info.name] and not n.text:find "[.e]"
    return ("nacre.tensor(%s)%s"):format(n.text, whole and ":float()" or "")
  end
  if type(v) ~= "table" or type(v[1]) ~= "number" or
     debug.getmetatable(v) ~= nil then return nil end
  local float = of_floats[info.name] and math.type(v[1]) == "integer"
  return ("nacre.tensor(%s)%s"):format(n.text, float and ":float()" or "")
end

-- f(*args, **options), which Lua has only for the last argument: one list.
local function spread(p, list)
  return p:settle(p:made(function(target)
    local texts = {("%s = {}"):format(target)}
    for _, item in ipairs(list) do
      local x = p.enclosed(item.node) and item.node.text
      if item.name then p.fail() end
      texts[#texts + 1] = item.star and
        ("table.move(%s, 1, #%s, #%s + 1, %s)"):format(
          x, p.enclosed(item.node), target, target) or
        ("%s[#%s + 1] = %s"):format(target, target, x)
    end
    return table.concat(texts, "; ")
  end))
end

-- The arguments as text; the calls that a layer's device= and dtype= become.
local function arguments_text(p, info, list, skip, counts)
  local given, named, moves = {}, {}, ""
  for i, item in ipairs(list) do
    if item.star and list[i + 1] then
      return ("table.unpack(%s)"):format(spread(p, list).text), ""
    end
  end
  for i, item in ipairs(list) do
    local n = p:settle(item.node)
    if n.text == "" or n.kind == "append" then p.fail() end
    local ours = info and names.arguments[item.name] or item.name
    local dtype = (info or ours == "dtype") and names.dtypes[n.path]
    if dtype and p.value(n.path) == nil then n.text = ('"%s"'):format(dtype) end
    if info and info.results == "module" and
       (ours == "device" or ours == "dtype") then
      moves = ("%s:to(%s)"):format(moves, n.text)
    elseif ours then
      named[#named + 1] = ("%s=%s"):format(ours, counted(p, info, ours, n))
    else
      local name = counts and index_base.parameter(info, i + skip)
      local text = name and counted(p, info, name, n) or n.text
      text = skip == 0 and for_tensor(p, info, n, i) or text
      given[#given + 1] = (given[1] and "," or "") .. item.space ..
                          (item.star and unpacked(text) or text)
    end
  end
  local text = table.concat(given)
  if named[1] then
    text = ("%s%s{%s}"):format(text, given[1] and ", " or "",
                               table.concat(named, ", "))
  end
  return text, moves
end

-- Of several results, the one that [1] or .indices selects; nil if none does.
function foreign_calls.result(call, which)
  if which == "0" or which == "values" then return "(" .. call.text .. ")" end
  if which == "1" or which == "indices" then
    return ("(select(2, %s))"):format(call.text)
  end
end

local function call_node(p, info, callee, list, skip, counts)
  local first = list[1] and list[1].node
  if first and first.text == 'nacre.device "auto"' and
     callee:find "%.device$" then return first end
  if callee:find "init_process_group$" then
    return p.node "nacre.distributed.init_process_group()"
  end
  local args, moves = arguments_text(p, info, list, skip, counts)
  local results = info and info.results or ""
  return p.node(("%s(%s)%s"):format(callee, args, moves), nil,
                {tensor = results:find "^tensor" ~= nil and
                          not results:find "^tensors",
                 results = results:find(",", 1, true) and results or nil,
                 many = results:find "^tensors" ~= nil,
                 callee = callee, list = list})
end

-- The info of the operation or layer that a path calls, or nil.
local function info_of(path)
  local f = unknown_names.of_library(path) or lookup.value(path)
  if type(f) == "function" or type(f) == "table" then return nacre._info(f) end
end

-- Says what is known of a name that has no counterpart, if the line is not Lua.
function foreign_calls.say(p, name)
  local entry = other_libraries.find(name)
  p.found.said = names.modules[name] or
                 entry and not entry.code and other_libraries.text(entry) or nil
  p.fail()
end

local function say(p, name)
  return p.found.python and foreign_calls.say(p, name) or nil
end

-- The path here of a function of another library, np.array or DataLoader; the
-- path itself if it is known or no name of a library.
local function here(p, path)
  local root, rest = path:match "^([%a_][%w_]*)%.?(.*)$"
  local numpy = (root == "np" or root == "numpy") and names.numpy[rest]
  if numpy then return "nacre." .. numpy end
  local ours = rawequal(p.value(root), nacre)
  if root == "self" or p.value(root) ~= nil and
     (not ours or unknown_names.of_library(path)) then return path end
  if path == "random.seed" then return "nacre.manual_seed" end
  local entry = other_libraries.find(root)
  local module = ours or names.modules[root] or entry
  if entry and not entry.code and not names.modules[root] and rest ~= "" then
    say(p, root)
  end
  if rest == "" then
    local place = path:find "%u" and unknown_names.elsewhere(path)
    if place and place:find("%." .. path .. "$") then return place end
    return path:find "%u" and module and say(p, root) or path
  end
  if root == "F" then rest = "nn.functional." .. rest
  elseif root == "nn" or root == "optim" then rest = path
  elseif not module then return path end
  entry = other_libraries.find(rest) or
                module and other_libraries.find(rest:match "[%w_]+$")
  local same = entry and entry.same and entry.code:match "^(nacre[%w_.]+)%("
  if same then return same end
  if entry and ours then return path end
  if entry then p.fail() end
  return unknown_names.of_library("nacre." .. rest) and "nacre." .. rest or
         unknown_names.elsewhere(rest:match "[%w_]+$") or say(p, root) or path
end

local types = {int = 'math.type(%s) == "integer"', str = 'type(%s) == "string"',
               float = 'math.type(%s) == "float"',
               bool = 'type(%s) == "boolean"',
               list = 'type(%s) == "table"', tuple = 'type(%s) == "table"',
               dict = 'type(%s) == "table"'}

-- isinstance(layer, nn.Linear)
local function class_test(p, list)
  local x, class = list[1], list[2]
  if not class or not class.node.path then p.fail() end
  local name = class.node.path:match "[%w_]+$"
  if types[name] then
    return p.node(types[name]:format(x.node.text), 3)
  elseif name == "Tensor" or name == "ndarray" then
    return p.node(("nacre.is_tensor(%s)"):format(x.node.text))
  end
  return p.node(('%s.__name == "%s"'):format(x.node.text, name), 3)
end

-- float("inf"), int("3")
local function number_from(p, n)
  local sign = n.kind == "string" and n.text:match "^[\"']([+-]?)[iI]nf"
  local form = p.in_try and "assert(tonumber(%s))" or "tonumber(%s)"
  return p.node(sign and sign:gsub("%+", "") .. "math.huge" or
                form:format(n.text))
end

-- Those that also apply to a number that is written there.
local number_functions = lexer.set "str int float abs round max min"

-- list(x) of a list, a text, the keys of a dictionary, a range or a loop
local function listed(p, x)
  local v = x.path and p.value(x.path)
  local plain = type(v) == "table" and debug.getmetatable(v) == nil
  if plain and v[1] ~= nil then
    return p.node(("table.move(%s, 1, #%s, 1, {})"):format(x.text, x.text),
                  nil, {gives = "list"})
  elseif plain or python_methods.is_text(p, x) then
    return p:made(function(target)
      return ("%s = {}; for %s do %s[#%s + 1] = v end"):format(target,
        foreign_loops.head(p, {"v"}, x).text, target, target)
    end, "t", {gives = "list", over = x})
  elseif x.callee == "range" and x.make then
    return p.node(x.make "":match "^ = (.*)$", nil, {gives = "list"})
  end
  return x.make and p:made(x.make, "t", {gives = "list", over = x})
end

-- len(x), abs(-3), max(1, 2): of Python, not of a variable of the user
function foreign_calls.builtin(p, name, list)
  local forms, x = names.builtins[name], list[1] and list[1].node
  if name == "isinstance" then return class_test(p, list) end
  if x and not list[2] and not list[1].name then
    local made = name == "len" and python_methods.count_keys(p, x) or
                 name == "list" and listed(p, x)
    if made then return made end
  end
  if name == "dict" and x and list[1].name then
    return p.node((arguments_text(p, nil, list, 0)))
  elseif name == "open" and list[2] and list[#list].name then
    list = {list[1], not list[2].name and list[2] or nil}
  end
  if not forms or not x or list[1].name then return nil end
  if x.make and (name == "sum" or name == "max" or name == "min") then
    return nil
  end
  if (x.kind == "string" or x.kind == "environment" or p.in_try or
      python_methods.is_text(p, x)) and
     (name == "int" or name == "float") then
    return number_from(p, x)
  end
  if x.kind == "list" and (name == "sum" or name == "max" or name == "min") then
    return p.node(("nacre.tensor(%s):%s():item()"):format(x.text, name))
  end
  if x.kind == "number" and not number_functions[name] then return nil end
  if list[2] and (name == "max" or name == "min") and not x.tensor and
     x.kind ~= "list" then
    for _, item in ipairs(list) do if item.name then return nil end end
    return p.node(("math.%s(%s)"):format(name, (arguments_text(p, nil, list,
                                                             0))))
  end
  local form = list[2] and forms[3] or
               not list[2] and (x.tensor and forms[1] or forms[2])
  if not form or form:find "<" then return nil end
  p:settle(x)
  local y = list[2] and list[2].node.text or ""
  local tight = form:find "x[:.]" or form:find "#x"
  local text = form:gsub("%f[%w]([xy])%f[%W]", function(v)
    return v == "y" and y or tight and p.enclosed(x) or x.text
  end)
  return p.node(text, form:find "^#" and 12 or form:find "//" and 11 or nil,
                {gives = name == "str" and "text" or nil})
end

-- copy.deepcopy(net)
local function copied(p, path, list)
  local n = list[1] and list[1].node
  if path ~= "copy.deepcopy" and path ~= "deepcopy" or not n then return nil end
  local net = n.text:match "^(.*)[.:]state_dict%(%)$"
  return p.node(net and net .. ":clone():state_dict()" or
                p.enclosed(n) .. ":clone()")
end

-- np.abs(-3): of numbers that are written there, or nil
local function of_number(p, name, list)
  for _, item in ipairs(list) do
    if item.name or item.node.kind ~= "number" then return nil end
  end
  return list[1] and math[name] and
         p.node(("math.%s(%s)"):format(name, (arguments_text(p, nil, list,
                                                            0))))
end

-- torch.save(x, "x.pt"), torch.Size([2, 3]) and NumPy's functions whose
-- arguments differ; nil for another path. May change the list.
function of_library(p, path, list)
  local root, name = path:match "^([%a_][%w_]*)%.([%w_]+)$"
  local first, second = list[1] and list[1].node, list[2] and list[2].node
  local of = root and p.value(root)
  if not root or not first or of ~= nil and not rawequal(of, nacre) or
     of == nil and not names.modules[root] then return nil end
  if name == "Size" then return first end
  if name == "save" and second and second.kind == "string" and
     first.kind ~= "string" then
    list[1], list[2] = list[2], list[1]
    list[1].space, list[2].space = list[2].space, list[1].space
  end
  if root ~= "np" and root ~= "numpy" then return nil end
  local number = of_number(p, name, list)
  if number then return number end
  if name == "median" then
    table.insert(list, 2, {node = p.node "0.5", space = " "})
  elseif name == "savetxt" then
    for i = #list, 3, -1 do list[i] = nil end
  end
  local option = names.numpy_options[name]
  for _, item in ipairs(list) do
    if item.name == "ddof" or item.name == "correction" then option = nil end
  end
  if option then
    list[#list + 1] = {name = option[1], node = p.node(option[2]), space = " "}
  end
end

-- The call of what `callee' names, behind the parenthesis.
function foreign_calls.call(p, callee)
  local list = foreign_calls.arguments(p)
  local path = callee.path
  if path and p.value(path) == nil then
    local x = path == "bool" and list[1] and p:settle(list[1].node)
    local truth = x and not x.tensor and python_truth.of(p, x)
    if truth and truth ~= x then return truth end
    local made = copied(p, path, list) or
                 foreign_calls.builtin(p, path, list) or
                 python_methods.call(p, path, list)
    if made then return made end
  end
  local written = path == "print" and list[1] and
                  (python_methods.shown(p, list) or list[#list].name and
                   python_methods.print(p, list))
  if written then return written end
  local first = list[1] and list[1].node
  if (path == "sum" or path == "any" or path == "all") and first and
     first.kind == "comprehension" then
    first.fold, first.want = path, path == "sum" and "n" or "found"
    first.gives = nil
    return first
  end
  local loops = path == "range" or path == "enumerate" or path == "zip" or
                path == "reversed" or path == "tqdm" or path == "tqdm.tqdm" or
                path == "trange"
  if path == "next" and first and first.text:find "parameters%(%)$" then
    return p.node(first.text .. "[1]")
  elseif path == "next" and first and first.iterates then
    return p.node("", 0, {first_batch = first.iterates})
  elseif path == "iter" and first and p.value(path) == nil and p:at ")" then
    return p.node("", 0, {iterates = first})
  elseif path == "iter" and first and first.path and p.value(path) == nil then
    p.found.said = ("a loop reads it: for x in pairs(%s) do ... end")
                     :format(first.text)
    p.fail()
  end
  if loops and p.value(path) == nil then
    local n
    n = p:made(function(target)
      return foreign_loops.list_of(p, n, target)
    end, "t", {kind = "loop", callee = path, list = list, gives = "list"})
    return n
  end
  local text = path and here(p, path) or p.enclosed(callee)
  return call_node(p, path and info_of(text), text, list, 0, p.python)
end

-- "{} {:.2f} {0} {name}".format(...)
local function format_of(p, text, list)
  local args, k = {}, 0
  local field = "{([%w_]*):?([^{}]*)}"
  text = text:gsub("%%", "%%%%"):gsub(field, function(key, spec)
    if key == "" then key, k = tostring(k), k + 1 end
    for i, item in ipairs(list) do
      if item.name == key or tostring(i - 1) == key then
        args[#args + 1] = p:settle(item.node).text
        return p.format(spec)
      end
    end
    p.fail()
  end)
  return p.node(("(%s):format(%s)"):format(text, table.concat(args, ", ")), nil,
                {gives = "text"})
end

-- A method of a string that is written there.
local function of_text(p, owner, name, list)
  local text = owner.text
  if name == "format" and not (list[1] and list[1].star) then
    return format_of(p, text, list)
  end
  return p.node(("(%s):%s(%s)"):format(text, name, (arguments_text(p, nil, list,
                                                                   0))), nil,
                {gives = string[name] and "text" or nil})
end

-- open("x").read(), f.readlines() of a file
local function of_file(p, owner, name, list)
  local opened = owner.text:match "^io%.open(%b())$"
  if not opened and not p.files[owner.path or ""] then return nil end
  if name == "readlines" then
    local lines = opened and "io.lines" .. opened or owner.text .. ":lines()"
    return p:made(function(target)
      return ("%s = {}; for line in %s do %s[#%s + 1] = line end")
               :format(target, lines, target, target)
    end, "t", {gives = "list"})
  end
  local args = name == "read" and '"a"' or arguments_text(p, nil, list, 0)
  if name == "write" and opened then    -- nobody closes it, as Python does
    local f = p:unused "file"
    return p.node(("do local %s = %s; %s:write(%s); %s:close() end"):format(
      f, owner.text, f, args, f), 0, {kind = "append"})
  end
  return p.node(("%s:%s(%s)"):format(owner.text, name, args), nil,
                {gives = name:find "^read" and "text" or nil})
end

-- x.type(torch.float) converts in PyTorch.
local function conversion(list)
  local name = list[1] and list[1].node.text:match "([%w_]+)[\"']?$"
  if not name then return "type" end
  local class = names.tensor_classes[name]
  if class then list[1] = nil end
  return class or "to"
end

-- Methods whose names are words of Lua.
local reserved = {["repeat"] = "tile", ["and"] = "logical_and",
                  ["or"] = "logical_or", ["not"] = "logical_not"}

-- The name here of a method of another library; the arguments may change.
local function method_name(p, name, list)
  if nacre._methods[name] or reserved[name] then
    return reserved[name] or name
  end
  if name == "type" then return conversion(list) end
  if nacre._methods[name .. "_"] and (list[1] or name == "zero") then
    return name .. "_"                  -- x:fill(1) of Torch7
  end
  local entry = other_libraries.find(name)
  local code = entry and entry.code or ""
  local same = not list[1] and code:match "^x:([%w_]+)%(%)$"
  if same then p.found.note = entry.note end
  return same or entry and entry.same and (code:match "^x:([%w_]+)%(" or
         code:match "^nacre%.([%w_]+)%(") or name
end

-- losses.append(v), of a list
local function appended(p, owner, name, list)
  local v = owner.path and p.value(owner.path)
  if name ~= "append" or not list[1] or type(v) == "table" and
     debug.getmetatable(v) ~= nil then return nil end
  if istensor(v) then
    return p.node(("nacre.cat({%s, %s:new_tensor({%s})})"):format(
      owner.text, owner.text, list[1].node.text))
  end
  return p.node(("%s[#%s + 1] = %s"):format(owner.text, owner.text,
                list[1].node.text), 0, {kind = "append"})
end

local views = {items = true, keys = true, values = true}

-- Is `name' behind a dot a method of what `owner' is? One is noted.
function foreign_calls.is_method(p, owner, name, first)
  local v = owner.path and p.value(owner.path)
  local made = owner.callee and owner.callee:find "%f[%w_]%u[%w_]*$" or
               owner.path and p.bound[owner.path:match "^[%w_]+"]
  if not made and not owner.tensor and
     not (type(v) == "string" and string[name]) and
     not expressions.calls_method(owner.text, name, p.value) then
    return false
  end
  p.found.dots = p.found.dots or {}
  table.insert(p.found.dots, {name = name, owner = owner.text, first = first})
  return true
end

-- The name here of a method of `owner', or of a function in it if that is the
-- library.
local function name_of(p, owner, library, name, list)
  local v = owner.path and p.value(owner.path)
  if not library and (owner.tensor or istensor(v) or not v) then
    return method_name(p, name, list)
  elseif name == "repeat" and owner.text:find "^np" then
    return "repeat_interleave"
  end
  return reserved[name] or name
end

-- The call of a method of `owner' through `mark', behind the parenthesis.
function foreign_calls.method(p, owner, mark, name)
  local list = foreign_calls.arguments(p)
  local file = mark == "." and of_file(p, owner, name, list)
  if file then return file end
  local python = mark == "." and python_methods.method(p, owner, name, list)
  if python and not views[name] then return python end
  if owner.kind == "string" then return of_text(p, owner, name, list) end
  if name == "numpy" and not list[1] and (p:at "." or p:at ":") then
    return owner                        -- x.numpy().transpose((1, 2, 0))
  elseif name == "transpose" and list[1] and list[1].node.items then
    name = "permute"
  end
  if views[name] and not list[1] then
    local n
    n = p:made(function(target)
      if istensor(p.value(owner.path or "_")) then p.fail() end
      return foreign_loops.list_of(p, n, target)
    end, "t", {kind = "view", view = name, of = owner, gives = "list"})
    return n
  end
  local path = owner.path and owner.path .. "." .. name
  local made = (not path or p.value(path) == nil) and
               (copied(p, path, list) or appended(p, owner, name, list) or
                path and mark == "." and
                python_methods.call(p, path, list))
  made = made or path and mark == "." and of_library(p, path, list)
  if made then return made end
  local root = path and path:match "^[%w_]+"
  local library = root and mark == "." and
                  (unknown_names.of_library(owner.path) or
                   p.value(root) == nil and names.modules[root] ~= nil and
                   root ~= "self")
  local typed, first = name, list[1] and list[1].node.text
  name = name_of(p, owner, library, name, list)
  if library or mark == "." and
     not foreign_calls.is_method(p, owner, name, first) then
    local text = path and here(p, owner.path .. "." .. name) or
                 p.enclosed(owner) .. "." .. name
    return call_node(p, path and info_of(text), text, list, 0, p.python)
  end
  if mark == "." then
    p.found.python = true
    p.found.dots[#p.found.dots].typed = typed
  end
  local info = nacre._methods[name] and nacre._info(name)
  local n = call_node(p, info, ("%s:%s"):format(p.enclosed(owner), name), list,
                      1, mark == "." and p.python)
  -- a text has some of these names, too
  n.tensor = n.tensor and (owner.tensor or name:find "^arg%l+$" ~= nil)
  if name == "tolist" or name == "totable" then n.gives = "list" end
  return n
end

return foreign_calls
