-- SPDX-License-Identifier: MIT
-- Writes what the fuzzers begin with: small files of the makers in bad/, in the
-- form that each target takes, as FOLDER/FORMAT/1, 2, ... Of four one is whole,
-- one has damaged bytes, two have a damaged structure.
-- Run by: nacre tests/files/fuzz/corpus.lua folder=FOLDER [only=FORMAT]
--         [files=N] [seed=N]

HERE = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "../"
local C = dofile(HERE .. "../lib/common.lua")
local choose = dofile(HERE .. "bad/random.lua")

local option = dofile(HERE .. "../lib/options.lua") {
  folder = "", only = "", files = 400, seed = 1}
local LONGEST <const> = 400     -- bytes of a file
local FORMATS <const> = {"csv", "gguf", "npy", "npz", "one", "onnx", "pickle",
                         "safetensors", "shards"}

local function maker(name) return dofile(HERE .. "bad/" .. name .. ".lua") end

-- The bytes of the first of a maker's files.
local function first_file(name)
  local make = maker(name).make
  return function(damaged) return make(damaged)[1][2] end
end

local npz, pt, csv = first_file "npz", first_file "pt", maker "csv"
local legacy = first_file "legacy"
local png, idx = first_file "png", first_file "idx"
local jpg, gzip = first_file "jpg", first_file "gzip"

-- By format: a function that gives the bytes of an input, damaged or not.
local inputs = {
  -- The first byte says how the others are read: fuzz_files.c.
  csv = function(damaged)
    local files, _, o = csv.make(damaged)
    local how = (o.delimiter and 3 or 0) | (o.header and 4 or 0) |
                (o.missing and 16 or 0) | math.random(0, 7) << 5
    if choose.once_in(4) then how = math.random(0, 255) end
    return string.char(how) .. files[1][2]
  end,
  gguf = first_file "gguf",
  npy = first_file "npy",
  npz = function(damaged) return choose.from {npz, pt, legacy}(damaged) end,
  one = function(damaged)
    return choose.from {png, idx, jpg, gzip}(damaged)
  end,
  onnx = first_file "onnx",
  pickle = maker "pt".pickle,
  safetensors = first_file "safetensors",
}

-- The shards of fuzz_files.c hold a tensor "w".
local shards = first_file "shards"
function inputs.shards(damaged)
  return (shards(damaged):gsub('"w%d%.%d"', '"w"'))
end

local function input(format, number)
  local kind, bytes = number % 4, nil
  repeat
    bytes = inputs[format](kind > 1)
    if kind == 1 then bytes = choose.mutant(bytes) end
  until #bytes <= LONGEST
  return bytes
end

local function write_corpus(format)
  local folder = option.folder .. "/" .. format
  assert(os.execute(("mkdir -p '%s'"):format(folder)))
  math.randomseed(option.seed)
  nacre.manual_seed(option.seed)
  for i = 1, option.files do
    C.write(("%s/%d"):format(folder, i), input(format, i))
  end
  print(("corpus: %s, %d files"):format(format, option.files))
end

assert(option.folder ~= "", "the folder is missing")
for _, format in ipairs(FORMATS) do
  if option.only == "" or option.only == format then write_corpus(format) end
end
