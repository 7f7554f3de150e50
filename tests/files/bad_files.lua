-- SPDX-License-Identifier: MIT
-- Bad files: valid ones of every format, dtype and shape, made by the tables in
-- bad/ and damaged by structure. Whatever a file holds, it is read or refused
-- by an error of ours; every way to read it gives the same; nothing is lost;
-- and no more memory is taken than the size of the file justifies. Only HDF5's
-- library may give elements of a damaged file that differ from time to time.
-- Of formats that are read from strings, the bytes of the valid files and of
-- what we write ourselves are also damaged anywhere, `mutants' times each.
-- Run by: nacre tests/files/bad_files.lua [seed=N] [files=N] [only=FORMAT]
--         [verbose=1] [seconds=N] [first=N] [mutants=N]
-- verbose: also the slowest file and the most memory. seconds: none may take
-- longer, of the processor's time. first: the number of the first file.
-- A file that fails stays in the folder that the error names.

HERE = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(HERE .. "../lib/common.lua")
local option = dofile(HERE .. "../lib/options.lua") {
  seed = 1, files = 150, only = "", verbose = 0,
  seconds = 0, first = 1, mutants = 400}
local choose = dofile(HERE .. "bad/random.lua")
local tools = require "nacre.file_tools"

local FORMATS <const> = {"npy", "npz", "pt", "legacy", "safetensors", "shards",
                         "csv", "idx", "png", "jpg", "gzip", "raw", "hdf5",
                         "session", "gguf", "onnx"}
local ALLOWED <const> = 1 << 19 -- bytes of memory that any file may take
local RESIDENT <const> = 64 << 20 -- the same of the process, libraries' too
local LIMIT <const> = 64 << 20 -- bytes of tensors while mutants are read
local CODES <const> = {EFILE = true, EVALUE = true, EDTYPE = true,
  ESHAPE = true, ENOMEM = true, EINDEX = true, ERANGE = true}

-- ---- the folder and the process

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function remove_folder() os.execute("rm -r " .. folder) end

-- The most memory that the process held since it was forgotten, in bytes; 0
-- where the system does not say.
local function resident(forget)
  if forget then
    local f <close> = io.open("/proc/self/clear_refs", "w")
    if f then f:write "5" end
  end
  local f <close> = io.open "/proc/self/status"
  return f and (tonumber(f:read("a"):match "VmHWM:%s*(%d+)") or 0) << 10 or 0
end

local shown = io.tmpfile()

-- Calls f with stdout and stderr taken; pcall's results, and what was written.
local function taken_from(f, ...)
  local out, err = io.stdout, io.stderr
  shown:seek("set", 0)
  io.stdout, io.stderr = shown, shown
  local ok, v = pcall(f, ...)
  io.stdout, io.stderr = out, err
  local n = shown:seek "cur"
  shown:seek("set", 0)
  return ok, v, n > 0 and shown:read(n) or ""
end

-- ---- what is right

local case -- {format =, number =, path =, options =, size =, mutant =}

local function complain(what, ...)
  if case.mutant then C.write(case.path, case.mutant) end
  error(("%s, file %d of seed %d: %s\nit is %s"):format(case.format,
        case.number, option.seed, what:format(...), case.path), 0)
end

local function check_text(text)
  if text:find "[%z\1-\8\11-\31\127]" then
    complain("a terminal is told %q", text)
  end
end

-- Are two results equal, with nan equal to nan? Tables may hold themselves.
local function same(a, b, seen)
  seen = seen or {}
  if nacre.is_tensor(a) and nacre.is_tensor(b) then
    return a.dtype == b.dtype and C.text(a:size()) == C.text(b:size()) and
           a:tobytes() == b:tobytes()
  end
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or a ~= a and b ~= b
  end
  if seen[a] then return seen[a] == b end
  seen[a] = b
  for k, v in next, a do
    if not same(v, rawget(b, k), seen) then return false end
  end
  for k in next, b do if rawget(a, k) == nil then return false end end
  return true
end

-- Runs f; its result, or nil after a proper error.
local function attempt(what, f, ...)
  local ok, v, text = taken_from(f, ...)
  check_text(text)
  if ok then return v end
  if type(v) ~= "table" or not CODES[v.code] then
    complain("%s: %s", what, v)
  end
  check_text(tostring(v) .. (v.hint or ""))
  return nil, v
end

local most = {} -- by format: bytes, resident, seconds, and of which file

local function note(name, n)
  local best = most[case.format]
  if n > (best[name] or 0) then best[name] = n end
end

-- The processor's time, that of the processes that read HDF5 files included.
local function cpu_seconds()
  local f <close> = io.open "/proc/self/stat"
  local user, system = (f and f:read "a" or ""):match(
    "%)" .. (" %S+"):rep(13) .. " (%d+) (%d+)")
  return os.clock() + ((user or 0) + (system or 0)) / 100
end

local function slow(what, began)
  local seconds = cpu_seconds() - began
  note("seconds", seconds)
  if option.seconds > 0 and seconds > option.seconds then
    complain("%s took %.1f s", what, seconds)
  end
end

-- The same, within the memory that the file justifies.
local function measured(what, ratio, f, ...)
  local before, held, began = nacre._memory(true).live, resident(true),
                              cpu_seconds()
  local v, e = attempt(what, f, ...)
  local taken = nacre._memory().peak - before
  slow(what, began)
  note("bytes", taken)
  if taken > ALLOWED + ratio * case.size then
    complain("%s took %d bytes, of a file of %d", what, taken, case.size)
  end
  local grown = resident() - held
  note("resident", grown)
  if grown > RESIDENT + ratio * case.size then
    complain("%s: the process grew by %d bytes", what, grown)
  end
  return v, e
end

local function check_tool(must, name, ...)
  local began = cpu_seconds()
  local ok, status, text = taken_from(tools.run, name, {...})
  slow(name, began)
  if not ok then complain("--%s: %s", name, status) end
  check_text(text)
  if must and status ~= 0 then complain("--%s gives %d: %s", name, status, text)
  end
end

-- Reads the bytes of a file, as it is read.
local function decode(maker, bytes)
  local o = {format = maker.format}
  for name, v in pairs(case.options or {}) do o[name] = v end
  return (nacre.deserialize(bytes, o))
end

-- Everything that can be done with a file of tensors.
local function judge(maker, want)
  local path, o = case.path, case.options
  local load = maker.load or nacre.load
  local v, e = measured("load", maker.ratio, load, path, o)
  if want and not v then complain("a valid file is refused: %s", e) end
  if want and not same(v, want) then complain "a valid file is read wrongly" end
  if maker.load then return v end
  if case.bytes and not maker.several then
    local again = attempt("deserialize", decode, maker, case.bytes)
    if not maker.varies and not same(again, v) then
      complain "deserialize and load differ"
    end
  end
  if maker.map then
    local mapped = attempt("load by mmap", nacre.load, path,
      {mmap = true, unknown = o and o.unknown})
    if v and not maker.varies and not same(mapped, v) then
      complain "load by mmap differs"
    end
  end
  local must = v and not maker.text and not maker.varies and
               not (o and o.unknown)
  check_tool(must, "ls", "--stats", path)
  check_tool(must, "diff", path, path)
  check_tool(false, "convert", "--force", path, folder .. "/out.safetensors")
  return v
end

-- ---- damaged bytes

-- Reads every element of what was read.
local function read_elements(maker, v)
  if nacre.is_tensor(v) then
    if v:numel() > 0 then v:double():sum():item() end
  elseif type(v) == "table" and not maker.nested then
    for _, t in pairs(v) do read_elements(maker, t) end
  elseif not maker.nested then complain("%s is no tensor", v) end
end

local function try_mutant(maker, bytes)
  case.mutant = bytes
  local v, e = attempt("damaged bytes", decode, maker, bytes)
  local text = tostring(e)
  if not e then read_elements(maker, v)
  elseif not text:find "deserialize: " then
    complain("an error of what? %s", text)
  end
  return e == nil
end

-- What we write of the value ourselves.
local function written(maker, v)
  if type(v) == "table" and not next(v) then v = {nacre.ones(2)} end
  if maker.write then return maker.write(v) end
  return nacre.serialize(v, {format = maker.format,
    compressed = maker.compresses and choose.once_in(2) or nil})
end

-- Damages the bytes of a valid file, which holds v, in many ways.
local function try_mutants(maker, v)
  local own, read, began = written(maker, v), 0, cpu_seconds()
  nacre.set_memory_limit(LIMIT)
  for i = 1, option.mutants do
    local bytes = maker.mutant and i % 2 == 0 and maker.mutant() or
                  choose.mutant(i % 4 == 1 and own or case.bytes)
    read = read + (try_mutant(maker, bytes) and 1 or 0)
  end
  nacre.set_memory_limit(0)
  slow("damaged bytes", began)
  return read
end

-- ---- the files

-- The file of this number; of eight one is whole.
local function write_case(maker, format, number)
  local damaged = number % 8 ~= 0
  math.randomseed(option.seed, number)
  nacre.manual_seed(option.seed * 1000003 + number)
  local files, want, options = maker.make(damaged)
  case = {format = format, number = number, options = options, size = 0,
          path = folder .. "/" .. files[1][1]}
  for _, file in ipairs(files) do
    C.write(folder .. "/" .. file[1], file[2])
    case.size = case.size + #file[2]
  end
  case.bytes = #files == 1 and files[1][2] or nil
  return want, files
end

local function remove_case(files)
  for _, file in ipairs(files) do os.remove(folder .. "/" .. file[1]) end
  os.remove(folder .. "/out.safetensors")
end

-- Are the bytes of such files read from strings, by our code?
local function is_decoded(maker)
  return not (maker.load or maker.several or maker.varies)
end

-- Checks the files from option.first on; how many of them and of their mutants
-- were read.
local function try_files(maker, format)
  local read, mutants, live = 0, 0, C.live()
  for number = option.first, option.files do
    local want, files = write_case(maker, format, number)
    local v = judge(maker, want)
    read = read + (v and 1 or 0)
    if number % 8 == 0 and is_decoded(maker) then
      mutants = mutants + try_mutants(maker, v)
    end
    v, want = nil, nil
    if number % 64 == 0 and C.live() ~= live then
      complain("%d bytes are lost", C.live() - live)
    end
    remove_case(files)
  end
  assert(C.live() == live, "bytes are lost")
  return read, mutants
end

local function try_format(format)
  local maker = dofile(HERE .. "bad/" .. format .. ".lua")
  if maker.probe and not pcall(maker.probe) then
    return print(("bad_files: %s is left out: no library"):format(format))
  end
  most[format] = {}
  local read, mutants = try_files(maker, format)
  local n = option.files - option.first + 1
  assert(n < 8 or read > 0 and read < n, format .. ": all are alike")
  assert(n < 8 or option.mutants == 0 or not is_decoded(maker) or
         mutants > 0 and mutants < n // 8 * option.mutants,
         format .. ": all mutants are alike")
  local best = most[format]
  print(("bad_files: %-11s %d files, %d read, %d refused"):format(format, n,
    read, n - read) .. (option.verbose == 0 and "" or
    ("; most: %.0f ms, %d bytes, process %+.1f MB"):format(
      (best.seconds or 0) * 1e3, best.bytes or 0,
      (best.resident or 0) / 1e6)))
end

for _, format in ipairs(FORMATS) do
  if option.only == "" or option.only == format then try_format(format) end
end
remove_folder()
