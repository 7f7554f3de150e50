-- SPDX-License-Identifier: MIT
--
-- save_session.lua - :save writes what was typed as a script or as a
-- regression test; the variables are in workspace.lua.

local commands = require "nacre.commands"
local host = require "nacre.host"
local process = require "nacre.process"
local input_block = require "nacre.input_block"
local units = require "nacre.units"

local save_session = {}

local say = require "nacre.wrap_lines".tell
local quoted = require "nacre.files".quoted

-- The log entries to choose from; with numbers, those of the history.
local function entries(shell, o)
  if not o.from then return shell.log end
  local list, of = {}, {}
  for _, entry in ipairs(shell.log) do of[entry.number or 0] = entry end
  for i = math.max(1, o.from), math.min(o.to, host.history_size()) do
    list[#list + 1] = of[i] or {text = host.history_entry(i)}
  end
  return list
end

-- The entries to be saved; without `all' only those that succeeded. Also the
-- number of those left out: commands about the session, lines of the debugger
-- in a script, and what Ctrl-C ended, which would not end by itself.
local function inputs(shell, o)
  local list, endless = {}, 0
  for _, one in ipairs(entries(shell, o)) do
    local command = not one.own and commands.of(one.text)
    if command and command.about or one.prompt and not o.test then
      -- no part of the session
    elseif one.interrupted then
      endless = endless + 1
    elseif o.all or not one.failed then
      list[#list + 1] = one
    end
  end
  return list, endless
end

-- An input as Lua code.
local function as_lua(text)
  if load(text) then return text end
  local unit = input_block.compile(text)
  if unit.kind == "expression" then
    return ("print(%s)"):format(text:gsub("[%s;]+$", ""):gsub("^%s*=", ""))
  end
  return "-- " .. text:gsub("\n", "\n-- ")
end

local function write(shell, path, text)
  local ok, why = require "nacre.update_expected".write(path, text)
  if not ok then shell.fail("cannot write " .. why) end
  return ok
end

--
-- A session as a test
--

-- An input as in a session, with "..." for output that comes from outside: that
-- of !cat was not compared with what the screen showed.
local function without_output(one)
  local transcript = require "nacre.transcript"
  return transcript.input(one) ..
         (transcript.is_outside(one.text) and "\n..." or "")
end

-- An input and its output, except times.
local function with_output(one, place)
  local said = require "nacre.transcript".output(one)
  said = require "nacre.project_root".renamed(place, said)
  said = said:gsub("%([%d%.]+ [num]?s%)\n$", "")
  local update = require "nacre.update_expected"
  local match = require "nacre.match_output"
  local lines = update.rewritten({expect = {}}, match.split(said), {},
                                 {kind = "transcript"})
  table.insert(lines, 1, (require "nacre.transcript".input(one)))
  return table.concat(lines, "\n")
end

-- Does the text of an input draw random numbers?
local function draws_random(one)
  return one.text:find "rand" or one.text:find "dropout" or
         one.text:find ":%l+_%("
end

-- Does the session set a seed itself?
local function sets_seed(list)
  for _, one in ipairs(list) do
    if one.text:find "^%s*[:%%]see?d?%s" or one.text:find "manual_seed" then
      return true
    elseif draws_random(one) then
      return false
    end
  end
  return false
end

-- The directives that start a test as the session was started, with these
-- files.
local function directives(shell, list, files)
  local lines = {}
  for k, name in ipairs(files) do lines[k] = "--: needs file " .. name end
  if not sets_seed(list) then lines[#lines + 1] = "--: seed " .. shell.seed end
  if shell.dtype ~= "float32" then
    lines[#lines + 1] = "--: dtype " .. shell.dtype
  end
  local options = shell.options or {}
  if options.nan then
    lines[#lines + 1] = "> :nan " .. options.nan .. "\n..."
  end
  if options.strict then
    lines[#lines + 1] = '> require "nacre.globals".strict();'
  end
  return lines
end

-- The text of the session as it was shown, for a screen of the same width, and
-- the positions of the inputs, {first line, entry}.
local function as_shown(shell, list, place, files)
  local lines, places, n, width = directives(shell, list, files), {}, 1, 80
  local function count(text) n = n + 1 + select(2, text:gsub("\n", "")) end
  for _, line in ipairs(lines) do count(line) end
  local function put(text)
    lines[#lines + 1] = text
    count(text)
  end
  if not host.has_utf8() then put "> :set ascii on\n..." end
  for _, one in ipairs(list) do
    if one.width and one.width ~= width then
      width = one.width
      put("> :set width " .. width .. "\n...")
    end
    places[#places + 1] = {n, one}
    put(with_output(one, place))
  end
  return table.concat(lines, "\n") .. "\n", places
end

-- Runs the tests in a file; returns success and the output.
local function run_tests(options, path)
  local program = process.real_path "/proc/self/exe" or "nacre"
  local command = "%s --test --color=never %s -- %s 2>&1"
  local pipe <close> = io.popen(command:format(quoted(program), options,
                                               quoted(path)))
  local text = pipe:read "a"
  return pipe:close(), text
end

-- The report of the runner on the first input that differs.
local function difference(text, places, list)
  local line = math.tointeger(tonumber(text:match "FAIL [^\n]-:(%d+)"))
  local entry
  for _, place in ipairs(places) do
    if line and place[1] <= line then entry = place[2] end
  end
  if not entry then return text end
  local rows = {}
  for row in text:match("FAIL(.-)\n       rerun"):gmatch "\n([^\n]*)" do
    local mark, rest = row:match "^([-+])[%s%d]...  (.*)$"
    if row:find "^    *%d+  >" and #rows > 0 then break end
    if mark and #rows < 6 then rows[#rows + 1] = "  " .. mark .. " " .. rest end
    if not mark and row:find "^       %S" and #rows == 0 then
      rows[1] = "  " .. row:match "^%s*(.*)$"
    end
  end
  local drawn = false
  for _, one in ipairs(list) do drawn = drawn or draws_random(one) end
  return ("a replay gives different output (- as shown, + replayed):\n" ..
    "  > %s\n%s\n  it has the files beside the test and in the root of the " ..
    "project, no earlier\n  lines, no start-up file, a different time, and " ..
    "of the command-line options only\n  --seed, --dtype, --nan, --strict%s")
    :format(entry.text:match "[^\n]*", table.concat(rows, "\n"), drawn and
    "\n  random numbers repeat if :seed N is one of the saved lines" or "")
end

-- Waits until the clock shows another second, for the replay.
local function wait(list)
  for _, one in ipairs(list) do
    if one.text:find "os%.time" or one.text:find "os%.date" then
      local now = os.time()
      while os.time() == now do end
      return
    end
  end
end

local VALUES = "--: values"

-- Writes the session as it was shown and runs it; nil and why if the output
-- differs.
local function try(shell, list, name, place, files)
  local text, places = as_shown(shell, list, place, files)
  local ok, why = require "nacre.update_expected".write(name, text)
  if not ok then return nil, why end
  wait(list)
  ok, text = run_tests(("--as-shown --at %s --ci -j1 --device %s"):format(
    quoted(place.folder), shell.device), name)
  if not ok then return nil, difference(text, places, list) end
  return true
end

-- The files that a session reads.
local function files_read(name, place)
  local files = {}
  local _, text = run_tests("--files --at " .. quoted(place.folder), name)
  for file in text:gmatch "([^\n]+)\n" do files[#files + 1] = file end
  return files
end

-- Checks that a replay gives the same output. Returns the files that it needs,
-- or nil and why it does not.
local function replay_files(shell, list, name, place)
  local ok, why = try(shell, list, name, place, {})
  if ok then return {} end
  local files = files_read(name, place)
  if #files == 0 then return nil, why end
  ok, why = try(shell, list, name, place, files)
  return ok and files, why
end

-- Writes the output into the file of that name. Returns the text of the test,
-- the report of the runner, the files it needs and the text of its values, if
-- any; or nil and why there is no test.
local function fill_in(shell, list, name, place, novalues)
  local update = require "nacre.update_expected"
  local at = "--at " .. quoted(place.folder)
  local files, why = replay_files(shell, list, name, place)
  if not files then return nil, why end
  local ok, text
  local lines = directives(shell, list, files)
  if not novalues then table.insert(lines, 1, VALUES) end
  for _, one in ipairs(list) do lines[#lines + 1] = without_output(one) end
  ok, why = update.write(name, table.concat(lines, "\n") .. "\n")
  if not ok then return nil, why end
  ok, text = run_tests(at .. " --update=errors --ok --within 1e-4", name)
  if not ok then
    return nil, (text:gsub("^[.Fsx]*\n", ""):gsub("%d+ files? written\n", "")
      :gsub(name:gsub("%p", "%%%0"), "the session"))
  end
  local read = require "nacre.test_file".read
  local test, values = assert(read(name)), read(name .. ".safetensors")
  if not values then
    test = test:gsub("^" .. VALUES:gsub("%p", "%%%0") .. "\n", "")
  end
  return test, text:match "replayed (.-)\n", files, values
end

-- The same in a folder that is always removed. After Ctrl-C only the message
-- handler is sure to be called.
local function replay(shell, list, ...)
  local folder = process.folder "save"
  local function clean(err)
    process.remove(folder:match "^(.*)/")
    return err
  end
  local got = table.pack(host.guard(clean, fill_in, shell, list,
                                    folder .. "/session.nacre", ...))
  if not got[1] then error(got[2], 0) end
  clean()
  return table.unpack(got, 2)
end

-- The folder of the test, where its modules are searched.
local function folder_of(path)
  local folder = process.real_path(path:match "^(.*/)[^/]*$" or ".")
  return folder and {folder = folder,
                     root = require "nacre.project_root".of(folder)}
end

-- Writes the file of values, or removes an old one.
local function write_values(shell, path, values)
  if values then return write(shell, path, values) end
  os.remove(path)
  return true
end

local function save_test(shell, path, list, novalues)
  local place = folder_of(path)
  if not place then
    return shell.fail(("cannot write %s: no such folder"):format(path))
  end
  local text, where, files, values = replay(shell, list, place, novalues)
  if not text then
    return shell.fail("no test was written\n" .. where)
  end
  where = where and where:gsub("session%.nacre", (path:match "[^/]*$"
                                                 :gsub("%%", "%%%%")))
  if write_values(shell, path .. ".safetensors", values) and
     write(shell, path, text) then
    say(("%s: %s, %s%s"):format(path, units.count(#list, "input"),
      where and "replayed " .. where or "none of which prints anything",
      #files > 0 and "; needs " .. table.concat(files, ", ") or ""))
  end
end

-- The options, with path, from and to, or the names of variables for a file of
-- them; nil and what is wrong.
local function parse(text)
  local params = commands.params_of "save"
  local o, words = require "nacre.command_options".among(params, text)
  if not o then return nil, words end
  for i, word in ipairs(words) do
    local from, to = word:match "^(%d+)%-?(%d*)$"
    if i == 1 then
      o.path = require "nacre.file_commands".path(word)
      o.variables = require "nacre.workspace".is_file(word) and {} or nil
    elseif o.variables then
      table.insert(o.variables, word)
    elseif from and not o.from then
      o.from = math.tointeger(tonumber(from))
      o.to = to ~= "" and math.tointeger(tonumber(to)) or o.from
    else
      return nil, ("'%s' is neither a number nor a range such as 3-7")
        :format(word)
    end
  end
  if not o.path and not o.record then return nil, ":save needs a file" end
  if o.no_values and not o.test then
    return nil, "--no-values needs --test"
  end
  if o.variables and (o.test or o.all) then
    return nil, "a .safetensors file has the variables, no inputs"
  end
  return o
end

-- The existing file that would be overwritten, or nil.
local function existing(o)
  for _, path in ipairs {o.path, o.test and o.path .. ".safetensors"} do
    if process.real_path(path) then return path end
  end
end

function save_session.run(shell, text)
  local o, wrong = parse(text)
  if not o then return shell.fail(wrong) end
  local transcript = require "nacre.transcript"
  if o.record then return transcript.record(shell, o.path) end
  if o.transcript then return transcript.write(shell, o.path) end
  local there = not o.force and existing(o)
  if there then
    return shell.fail(there .. " exists already (:save --force replaces it)")
  end
  if o.variables then
    local ok, why = require "nacre.workspace".save(shell, o.path, o.variables)
    return ok or shell.fail(why)
  end
  if o.test and not o.path:find "%.nacre$" then
    return shell.fail "a test needs a name that ends in .nacre"
  end
  o.all = o.all or o.test -- what fails belongs to the behaviour
  local list, endless = inputs(shell, o)
  if #list == 0 then return shell.fail "there is nothing to save" end
  if endless > 0 then
    shell.note(("interrupted inputs are left out: %s"):format(
      units.count(endless, "input")))
  end
  if o.test then return save_test(shell, o.path, list, o.no_values) end
  local lines = {}
  for k, input in ipairs(list) do lines[k] = as_lua(input.text) end
  if write(shell, o.path, table.concat(lines, "\n") .. "\n") then
    say(("%s: %s"):format(o.path, units.count(#list, "input")))
  end
end

return save_session
