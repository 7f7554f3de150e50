-- SPDX-License-Identifier: MIT
--
-- lua_functions.lua - the signatures of functions of Lua's own library, in the
-- syntax of operators.def with types of repl/editor/kinds.lua. For completion
-- and help; Lua itself checks the arguments.

local lookup = require "nacre.lookup"

local lua_functions = {}

local MODE = "mode:text|r|w|a|r+|w+|a+|rb|wb|ab=r"

-- Each row: the name, the signature, what the function does.
local rows = {
  {"assert", "v:any, message:any=nil, ... -> v",
   "raises an error with the message if v is false or nil"},
  {"collectgarbage", "opt:text|collect|count|step|stop|restart|isrunning|" ..
   "incremental|generational=collect, arg:num=nil -> number",
   "collects garbage; \"count\" gives the KiB in use"},
  {"dofile", "filename:file=nil -> results", "runs a file of Lua"},
  {"error", "message:any, level:int=1", "raises an error"},
  {"getmetatable", "object:any -> table", "the metatable, or nil"},
  {"ipairs", "t:table -> iterator", "for i, v in ipairs(t): 1, 2, ..."},
  {"load", "chunk:any, chunkname:text=nil, mode:text|t|b|bt=bt, " ..
   "env:table=nil -> function", "compiles a text; nil and why if it is wrong"},
  {"loadfile", "filename:file=nil, mode:text|t|b|bt=bt, env:table=nil " ..
   "-> function", "compiles a file; nil and why if it is wrong"},
  {"next", "t:table, key:any=nil -> key, value", "the next field of a table"},
  {"pairs", "t:any -> iterator", "for k, v in pairs(t): all fields"},
  {"pcall", "f:fn, ... -> ok, results",
   "calls f; false and the error if it fails"},
  {"print", "... ", "writes values with tabs between them"},
  {"rawequal", "a:any, b:any -> boolean", "a == b without metamethods"},
  {"rawget", "t:table, key:any -> value", "t[key] without metamethods"},
  {"rawlen", "t:any -> integer", "#t without metamethods"},
  {"rawset", "t:table, key:any, value:any -> table",
   "t[key] = value without metamethods"},
  {"require", "name:module -> module", "loads a module once"},
  {"select", "n:any|#, ... -> values",
   "the arguments from the n-th; \"#\" gives their number"},
  {"setmetatable", "t:table, metatable:table -> t", "sets the metatable of t"},
  {"tonumber", "v:any, base:int=nil -> number", "the number in a text, or nil"},
  {"tostring", "v:any -> string", "a value as text"},
  {"type", "v:any -> string", "\"number\", \"table\", \"userdata\", ..."},
  {"xpcall", "f:fn, handler:fn, ... -> ok, results",
   "calls f; the handler gets the error where it happens"},
  {"io.close", "file:any=nil -> boolean", "closes a file"},
  {"io.lines", "filename:file=nil, ... -> iterator",
   "for line in io.lines(name)"},
  {"io.open", "filename:file, " .. MODE .. " -> file",
   "opens a file; nil and why if that fails"},
  {"io.popen", "command:text, mode:text|r|w=r -> file",
   "starts a program, whose output is read or whose input is written"},
  {"io.read", "format:any|l|L|a|n=l, ... -> string",
   "reads from the standard input"},
  {"io.write", "... -> file", "writes to the standard output"},
  {"os.clock", "-> number", "seconds of CPU time"},
  {"os.date", "format:text|%Y-%m-%d|%H:%M:%S|*t=nil, time:num=nil -> string",
   "the date and the time as text"},
  {"os.execute", "command:text=nil -> ok, how, code",
   "runs a command of the system"},
  {"os.exit", "code:any=true, close:bool=false", "ends the program"},
  {"os.getenv", "name:environment -> string",
   "a variable of the environment, or nil"},
  {"os.remove", "filename:file -> boolean", "removes a file"},
  {"os.rename", "old:file, new:file -> boolean", "renames a file"},
  {"os.time", "t:table=nil -> integer", "the time in seconds"},
  {"os.tmpname", "-> string", "a name for a temporary file"},
  {"string.byte", "s:text, i:int=1, j:int=nil -> integers",
   "the codes of bytes"},
  {"string.char", "... -> string", "the text of codes of bytes"},
  {"string.find", "s:text, pattern:text, init:int=1, plain:bool=false " ..
   "-> first, last", "where a pattern is found, and its captures"},
  {"string.format", "format:text, ... -> string", "values as text: \"%.3f\""},
  {"string.gmatch", "s:text, pattern:text, init:int=1 -> iterator",
   "for word in s:gmatch \"%a+\""},
  {"string.gsub", "s:text, pattern:text, repl:any, n:int=nil -> string, n",
   "replaces what matches; the number of replacements"},
  {"string.len", "s:text -> integer", "the length in bytes"},
  {"string.lower", "s:text -> string", "in lower case"},
  {"string.match", "s:text, pattern:text, init:int=1 -> string",
   "what matches, or its captures"},
  {"string.rep", "s:text, n:int, sep:text=nil -> string", "repeated n times"},
  {"string.reverse", "s:text -> string", "the bytes in reverse order"},
  {"string.sub", "s:text, i:int, j:int=-1 -> string", "the bytes i to j"},
  {"string.upper", "s:text -> string", "in upper case"},
  {"table.concat", "list:table, sep:text=nil, i:int=1, j:int=nil -> string",
   "the elements as one text"},
  {"table.insert", "list:table, pos:int=nil, value:any",
   "inserts an element, at the end without pos"},
  {"table.move", "a:table, from:int, to:int, at:int, b:table=nil -> table",
   "copies elements"},
  {"table.pack", "... -> table", "{n = number of values, ...}"},
  {"table.remove", "list:table, pos:int=nil -> value",
   "removes an element, the last without pos"},
  {"table.sort", "list:table, comp:fn=nil", "sorts in place; comp is a < b"},
  {"table.unpack", "list:table, i:int=1, j:int=nil -> values",
   "the elements as values"},
  {"math.floor", "x:num -> integer", "the largest integer not above x"},
  {"math.fmod", "x:num, y:num -> number", "the rest, with the sign of x"},
  {"math.random", "m:int=nil, n:int=nil -> number",
   "in [0, 1), or an integer from m (1) to n"},
  {"math.tointeger", "x:any -> integer", "an integer, or nil"},
  {"math.type", "x:any -> string", "\"integer\", \"float\" or nil"},
}

-- Methods of a file.
local file_rows = {
  {"close", "-> boolean", "closes the file"},
  {"flush", "-> file", "writes what is buffered"},
  {"lines", "... -> iterator", "for line in file:lines()"},
  {"read", "format:any|l|L|a|n=l, ... -> string",
   "a line, with L and its end; a: all; n: a number"},
  {"seek", "whence:text|set|cur|end=cur, offset:int=0 -> integer",
   "moves the position and gives it"},
  {"setvbuf", "mode:text|no|full|line, size:int=nil -> boolean",
   "how output is buffered"},
  {"write", "... -> file", "writes values"},
}

local infos -- by function

local function add(f, name, row, own)
  if type(f) ~= "function" then return end
  local info = nacre._signature(name, row[2])
  info.name, info.doc, info.own = name, row[3], own
  info.lua = true
  info["function"] = not own
  infos[f] = info
end

-- The methods of files, by their names.
function lua_functions.file_methods()
  local meta = debug.getmetatable(io.stdout)
  return meta and rawget(meta, "__index")
end

local function read()
  infos = {}
  for _, row in ipairs(rows) do add(lookup.value(row[1]), row[1], row) end
  local methods = lua_functions.file_methods()
  for _, row in ipairs(file_rows) do
    add(rawget(methods, row[1]), "file:" .. row[1], row, true)
  end
end

-- A table like that of nacre._info for a function of Lua's library, or nil.
-- Its field `own` says that its parameters are those of a method.
function lua_functions.info(f)
  if not infos then read() end
  return infos[f]
end

-- Is a table one that this module gives?
function lua_functions.is(info) return info.lua == true end

-- All names, for tests.
function lua_functions.names()
  local list = {}
  for i, row in ipairs(rows) do list[i] = row[1] end
  return list
end

return lua_functions
