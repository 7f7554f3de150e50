-- SPDX-License-Identifier: MIT
--
-- notebook_session.lua - the session of a kernel: runs the cells and answers
-- questions about code, for the supervisor (notebook_kernel.lua). It is the
-- session of the prompt, whose results and errors become messages.

local kernel_host = require "nacre.kernel_host"
local host = require "nacre.host"
local json = require "nacre.json"
local output = require "nacre.notebook_output"
local mime = require "nacre.mime_bundle"
local hooks = require "nacre.editor_hooks"
local messages = require "nacre.messages"
local shell = require "nacre.shell"
local styled = require "nacre.styled_output"
local input_block = require "nacre.input_block"
local takes_lua = require "nacre.commands".takes_lua

local session = {}

local inputs = {}             -- {number, text} of the cells in the history
local number = 0              -- the last cell's
local stored                  -- the same, if the history has the running cell
local failure                 -- the text of the error of the running cell
local last                    -- does its last input run?
local payload                 -- what the front end is asked to do

-- ---- results and errors

local function show(source, ...)
  local nothing = select("#", ...) == 0 or
                  styled.is_file_written(source, ...)
  if nothing then return end
  output.display(mime.bundle(...), last and number or nil)
end

local function lines(text)
  local list = {}
  for line in text:gmatch "[^\n]*" do list[#list + 1] = line end
  return list
end

-- The error of the cell, as messages have it.
local function error_content()
  local text = (failure or "a command has failed"):gsub("\n$", "")
  local plain = text:gsub("\27%[[%d;]*m", "")
  return {ename = shell.interrupted and "interrupted" or "error",
          evalue = plain:match "^[^\n]*":gsub("^error: ", ""),
          traceback = lines(text)}
end

-- ---- cells

-- The inputs of a cell, run one after the other like lines of the prompt.
-- Adjacent Lua is one input, of which the last value is shown.
local function split(code)
  if code:find "^%s*%%%%" then return {code} end
  local list = {}
  for _, text in ipairs(require "nacre.paste_blocks".inputs(code,
                                                            takes_lua)) do
    local before = list[#list]
    local joined = before and before .. "\n" .. text
    if joined and input_block.lua_part(text, takes_lua) == text and
       input_block.lua_part(before, takes_lua) == before and
       input_block.compile(joined).f then
      list[#list] = joined
    else
      list[#list + 1] = text
    end
  end
  return list
end

local function run(code)
  failure, payload = nil, {}
  local list = split(code)
  for i, text in ipairs(list) do
    last = i == #list
    if not shell.submit(text) then
      payload[#payload + 1] = {source = "ask_exit", keepkernel = false}
      return
    end
    if shell.failed then return end
  end
end

-- An expression of the front end: its value, or its error.
local function value_of(text)
  local f, why = load("return " .. text, "=expression", "t")
  local got = table.pack(host.guard(tostring, f or error, why, 0))
  if got[1] then
    return {status = "ok", metadata = json.object,
            data = mime.bundle(table.unpack(got, 2, got.n))}
  end
  return {status = "error", ename = "error", evalue = tostring(got[2]),
          traceback = {tostring(got[2])}}
end

local function values_of(expressions)
  local list
  for name, text in pairs(expressions or {}) do
    list = list or {}
    list[name] = value_of(tostring(text))
  end
  return list or json.object
end

local serve = {}              -- each gives the content, and whether it failed

function serve.execute_request(r)
  local code = type(r.code) == "string" and r.code or ""
  output.silent, stored = r.silent == true, nil
  if not output.silent and r.store_history ~= false and code:find "%S" then
    number = number + 1
    inputs[number] = {number, code, time = os.time()}
    stored = number
  end
  output.publish("execute_input", {code = code, execution_count = number})
  kernel_host.allow_input(r.allow_stdin == true)
  shell.failed, shell.interrupted = false, false
  run(code)
  if shell.failed then
    local content = error_content()
    output.publish("error", content)
    content.status, content.execution_count = "error", number
    return content, true
  end
  return {status = "ok", execution_count = number, payload = payload,
          user_expressions = values_of(r.user_expressions)}
end

-- ---- questions about code

-- The byte before a position that counts characters from 0.
local function byte_before(code, position)
  local at = math.type(position) and utf8.len(code) and
             utf8.offset(code, math.tointeger(position) + 1)
  return at and at - 1 or #code
end

-- Commands and help requests are lines of their own.
local function current_line(left)
  local line = left:match "[^\n]*$"
  return line:find "^%s*[:?!%%]" and line or left
end

-- The texts of the candidates: those that begin with the word, else the others
-- that the prompt's menu would show.
local function texts(found, word)
  local list, all = {}, {}
  for i, item in ipairs(found) do
    local text = type(item) == "table" and item[1] or item
    all[i] = text
    if text:sub(1, #word) == word then list[#list + 1] = text end
  end
  return list[1] and list or all
end

function serve.complete_request(r)
  local code = tostring(r.code or "")
  local point = byte_before(code, r.cursor_pos)
  local left = current_line(code:sub(1, point))
  local found = hooks.complete(left .. code:sub(point + 1), #left)
  local word = left:sub((found.start or #left) + 1)
  local stop = utf8.len(code, 1, point) or point
  return {status = "ok", matches = texts(found, word), metadata = json.object,
          cursor_start = stop - (utf8.len(word) or #word), cursor_end = stop}
end

function serve.inspect_request(r)
  local code = tostring(r.code or "")
  local text = hooks.helpat(code, byte_before(code, r.cursor_pos))
  return {status = "ok", found = text ~= nil, metadata = json.object,
          data = text and {["text/plain"] = text} or json.object}
end

function serve.is_complete_request(r)
  local part = input_block.lua_part(tostring(r.code or ""), takes_lua)
  local kind = part and input_block.compile(part).kind
  if kind == "incomplete" then
    return {status = kind, indent = (" "):rep(hooks.indent(part, ""))}
  end
  return {status = kind == "error" and "invalid" or "complete"}
end

-- A pattern of the front end, where * and ? stand for other characters.
local function pattern_of(glob)
  return "^" .. glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0")
                    :gsub("%*", ".*"):gsub("%?", ".") .. "$"
end

local select_history = {}

function select_history.tail(r)
  local n = math.tointeger(r.n) or #inputs
  return table.move(inputs, math.max(1, #inputs - n + 1), #inputs, 1, {})
end

-- From the cell `start` on, without the cell `stop`.
function select_history.range(r)
  local list = {}
  local start, stop = tonumber(r.start) or 0, tonumber(r.stop) or math.huge
  for _, one in ipairs(r.session and r.session ~= 0 and {} or inputs) do
    if one[1] >= start and one[1] < stop then list[#list + 1] = one end
  end
  return list
end

function select_history.search(r)
  local list, seen = {}, {}
  local pattern = pattern_of(tostring(r.pattern or "*"))
  for i = #inputs, 1, -1 do
    local text = inputs[i][2]
    if #list == (math.tointeger(r.n) or -1) then break end
    if text:find(pattern) and not (r.unique == true and seen[text]) then
      table.insert(list, 1, inputs[i])
      seen[text] = true
    end
  end
  return list
end

function serve.history_request(r)
  local choose = select_history[r.hist_access_type]
  local list = {}
  for i, one in ipairs(choose and choose(r) or {}) do
    list[i] = {0, one[1], r.output == true and {one[2], json.null} or one[2]}
  end
  return {status = "ok", history = list}
end

-- ---- the loop

-- Reads that ask a front end that cannot answer are errors.
local function refuse_reads()
  local file = getmetatable(io.stdout).__index
  for _, place in ipairs {{io, "read"}, {file, "read"}} do
    local read = place[1][place[2]]
    place[1][place[2]] = function(...)
      local got = table.pack(read(...))
      if kernel_host.input_refused() then
        error("this front end takes no input", 2)
      end
      return table.unpack(got, 1, got.n)
    end
  end
end

-- The parts of the shell that a notebook replaces.
local function replace()
  styled.print = show
  function messages.write_error(text)
    if shell.held then return shell.complain(text) end
    failure = failure and failure .. "\n" .. text or text
    host.keep_output(text .. "\n")
  end
  function host.prefill(text)
    payload[#payload + 1] = {source = "set_next_input", text = text,
                             replace = false}
    return true
  end
  function host.history_size() return #inputs end
  function host.history_entry(i)
    local one = inputs[i]
    if one then return one[2], one.time end
  end
  local history = require "nacre.input_history"
  function history.number() return stored end -- of all inputs of a cell
  kernel_host.replace_stdin()
  refuse_reads()
end

local function answer(kind, text)
  local request = json.decode(text)
  local ok, content, failed = pcall(serve[kind], request or {})
  if not ok then
    failed = true
    content = {status = "error", ename = "internal error", traceback = {},
               evalue = tostring(content), execution_count = number}
  end
  output.silent = false
  kernel_host.send(("%s %s %s"):format(failed and "failed" or "reply",
    kind:gsub("_request$", "_reply"), json.line(content)))
end

-- Serves the supervisor until it, or the user, ends the session. rc: is there a
-- start-up file, and which one if not the usual.
function session.run(rc, path)
  shell.start(true)
  replace()
  if rc then
    shell.startup(path)
    if failure then io.stderr:write(failure, "\n") end
  end
  while not shell.leaving do
    local _, line = kernel_host.receive()
    if not line then break end
    answer(line:match "^([%w_]+) (.*)$")
  end
  shell.left()
end

return session
