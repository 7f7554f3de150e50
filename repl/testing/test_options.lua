-- SPDX-License-Identifier: MIT
--
-- test_options.lua - the command line of `nacre --test`.

local file = require "nacre.test_file"
local process = require "nacre.process"
local readers = require "nacre.value_readers"
local units = require "nacre.units"

local options = {}

options.help = [[
usage: nacre --test [options] [PATH[:LINE] ...]

Runs the tests under PATH, by default under the current folder: sessions
(*.nacre, and blocks ```nacre in *.md), *_test.lua, and scripts x.lua with an
x.out.  With LINE, a file is run only down to that line.

Which:
  -k WORD            files, devices and test()s with WORD in their name
  --last-failed      the tests that failed in the last run in this folder
  --list             list the tests, do not run them
  --files            run the tests and list only the files that they read,
                     beside them or in the root: name these with
                     '--: needs file F'
  --device LIST      cpu, cuda, cuda:1 or all (cpu, and cuda if present)
  --require cuda     fail tests that lack a CUDA device instead of skipping
Where:
  --root DIR         the root of the project: modules are also required from
                     there, and messages name files relative to it (the
                     nearest folder above a test with a .nacre-root or .git)
  --at DIR           run as if the files were in DIR
  --as-shown         the expected text is that of a prompt, which names files
                     differently from a test
  -l MOD, -l g=MOD   require MOD into a global before each test
How:
  -j N               run N tests at once (the number of processors)
  --gpu-jobs N       run N tests at once on a CUDA device (1)
  --seed N           seed of tests that set none (0)
  --threads N        number of CPU threads in each test (1)
  --timeout TIME     limit for tests that set none: 10s, 500ms, 2m (60s)
  --memory-limit N   memory limit for each test: 500M, 2G (no limit)
  --rtol X, --atol X tolerance of floats, instead of that of the files and of
                     the digits; a #~ in a line still applies
  --shuffle[=N]      run in random order
  --repeat N         run each test N times
  --fail-fast        stop after the first failure
Expected text:
  --update           write the output, and the values that are kept, to the
                     files, unless they differ between runs or devices
  --update=errors    also where a session now ends in an error
  --ok               with --update: exit 0 even if files have changed
  --within X         with --update: devices may differ by more than the last
                     digit, by rtol X; this is noted in a #~
  --review           ask about each difference
  --no-values        compare text only, ignore FILE.safetensors; with --update
                     remove the values
Output:
  --color=WHEN       auto (on a terminal, unless NO_COLOR is set), always, never
  --junit FILE       also write JUnit XML to FILE
  --tap, --json      print TAP or JSON instead of text
  --pdb              stop in the debugger where a test fails, or in a session
                     where its output differs; one test at a time
  --cover[=DIR]      show which lines of the project's Lua files ran; with DIR,
                     of all files in it, even those that no test loaded
  --lcov FILE        write the same as an lcov tracefile
  --ci               no --update; annotations if GITHUB_ACTIONS is set

Exit status: 0 all tests passed, 1 a test failed, 2 bad usage, 5 nothing to
run, or nothing on the devices of --device; after a signal, that of the signal.
]]

local integer, positive = readers.integer, readers.unsigned
local text, one_of = readers.text, readers.one_of

local function folder(s)
  local path = process.real_path(s)
  return path and process.list_folder(path) and path
end

local function shuffle(o, value)
  o.shuffle = value and math.tointeger(tonumber(value))
  if value and not o.shuffle then return "--shuffle needs an integer" end
  o.shuffle = o.shuffle or os.time() % 1000000
end

local function covered(o, value)
  o.cover = value == nil or folder(value)
  if not o.cover then
    return ("--cover needs a folder, not '%s'"):format(value)
  end
end

local function update(o, value)
  if value and value ~= "errors" then
    return ("--update takes errors or no value, not '%s'"):format(value)
  end
  o.update = value or true
end

-- Rows of command_line.lua.
local rows = {
  ["-l"] = {"libraries", text, "a module", true},
  ["-k"] = {"word", text, "a word"},
  ["--device"] = {"devices", readers.devices "all", "cpu, cuda, cuda:N or all"},
  ["--require"] = {"require", one_of "cuda", "cuda"},
  ["-j"] = {"jobs", integer(1), "a number from 1"},
  ["--gpu-jobs"] = {"gpujobs", integer(1), "a number from 1"},
  ["--seed"] = {"seed", integer(), "an integer"},
  ["--threads"] = {"threads", integer(1), "a number from 1"},
  ["--timeout"] = {"timeout", units.parse_seconds, "a time such as 10s"},
  ["--rtol"] = {"rtol", positive, "a number"},
  ["--within"] = {"within", positive, "a number"},
  ["--atol"] = {"atol", positive, "a number"},
  ["--repeat"] = {"times", integer(1), "a number from 1"},
  ["--memory-limit"] = {"limit", file.bytes, "a size such as 500M"},
  ["--root"] = {"root", folder, "a folder"},
  ["--at"] = {"at", folder, "a folder"},
  ["--lcov"] = {"lcov", text, "a file"},
  ["--junit"] = {"junit", text, "a file"},
  ["--color"] = {"color", one_of("auto", "always", "never"),
                 "auto, always or never"},
  ["--help"] = {"help", true}, ["-h"] = {"help", true},
  ["--last-failed"] = {"lastfailed", true}, ["--list"] = {"list", true},
  ["--ok"] = {"ok", true}, ["--fail-fast"] = {"failfast", true},
  ["--ci"] = {"ci", true}, ["--review"] = {"review", true},
  ["--tap"] = {"tap", true}, ["--json"] = {"json", true},
  ["--files"] = {"files", true}, ["--pdb"] = {"pdb", true},
  ["--no-values"] = {"novalues", true}, ["--as-shown"] = {"asshown", true},
  ["--shuffle"] = {set = shuffle}, ["--cover"] = {set = covered},
  ["--update"] = {set = update},
}

local function path(o, word)
  local name, line = word:match "^(.*):(%d+)$"
  if name and process.real_path(name) and not process.real_path(word) then
    o.paths[#o.paths + 1] = {name, math.tointeger(tonumber(line))}
  else
    o.paths[#o.paths + 1] = {word}
  end
end

local function clash(o)
  if o.ci and (o.update or o.review) then
    return "--ci allows neither --update nor --review"
  end
  if o.within and not o.update then return "--within needs --update" end
  if o.update and o.review then return "--update or --review, not both" end
  if o.pdb and (o.ci or o.update or o.review or o.tap or o.json) then
    return "--pdb excludes --ci, --update, --review, --tap and --json"
  end
  if o.tap and o.json then return "--tap or --json, not both" end
end

-- The words as a table, or nil and what is wrong with them.
function options.parse(words)
  local o = {paths = {}, jobs = process.cores(), gpujobs = 1, threads = 1,
             times = 1}
  local rest, wrong = require "nacre.command_line".read(words, rows, o)
  wrong = wrong or clash(o)
  if wrong then return nil, wrong end
  for _, word in ipairs(rest) do path(o, word) end
  if o.pdb then o.jobs, o.gpujobs = 1, 1 end
  o.cover = o.cover or o.lcov ~= nil
  if #o.paths == 0 then o.paths[1] = {"."} end
  return o
end

return options
