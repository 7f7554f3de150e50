-- SPDX-License-Identifier: MIT
-- Files that are damaged: small valid ones of every format, with bytes that are
-- changed, cut, doubled or moved. Each is read or refused, in little memory,
-- by an error of ours that names what is read; what fails holds nothing.
-- Run by: nacre tests/files/fuzz_files.lua [seed=N] [seconds=N] [only=FORMAT]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local live = dofile(here .. "../lib/common.lua").live
local option = dofile(here .. "../lib/options.lua") {seed = 1, seconds = 1.5,
                                                    only = ""}
local LIMIT = 64 << 20          -- bytes of tensors, far above the files'
nacre.set_memory_limit(LIMIT)

-- ---- the files

local x = nacre.arange(12):reshape(3, 4)
local model = {w = x:float(), ["a.b"] = x:int(), m = x:gt(3),
               z = x[{{}, {1, 0}}]}
local function npy(major, descr, order, shape, data)
  return "\x93NUMPY" .. string.char(major, 0) ..
         string.pack(major > 1 and "<s4" or "<s2",
           ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n"):format(
             descr, order, shape)) .. data
end
local seeds = {
  {"npy", npy(3, ">i4", "True", "(1, 2, 3)", ("\1\2\3\4"):rep(6))},
  {"npy", npy(2, "=f2", "False", "(2, 1, 2)", ("\0"):rep(8))},
  {"npy", nacre.serialize(x)},
  {"npy", nacre.serialize(x:t():double())},
  {"npy", nacre.serialize(nacre.tensor(true))},
  {"safetensors", nacre.serialize(model, {metadata = {format = "pt"}})},
  {"safetensors", nacre.serialize {x}},
  {"csv", nacre.serialize(x:float() / 7, {format = "csv"})},
  {"csv", '"a","b c"\n1,2\n# no\n\n-3,1e5\n', {header = true}},
  {"csv", "1;2;\n;nan;-inf\n", {delimiter = ";", missing = 0}},
  {"png", nacre.encode_png(x:byte())},
  {"png", nacre.encode_png(nacre.rand(4, 5, 3))},
  {"png", nacre.encode_png((x * 5000):int())},
}
if pcall(nacre.serialize, {x}, {format = "npz"}) then
  for _, compressed in ipairs {false, true} do
    seeds[#seeds + 1] = {"npz", nacre.serialize(model, {format = "npz",
                                                compressed = compressed})}
  end
  seeds[#seeds + 1] = {"pt", nacre.serialize(model, {format = "pt"})}
else
  print "fuzz_files: there is no libzip, .npz files and .pt files are left out"
end

local function load(seed, bytes)
  if seed[1] == "png" then return nacre.decode_png(bytes) end
  local options = {format = seed[1]}
  for k, v in pairs(seed[3] or {}) do options[k] = v end
  return nacre.deserialize(bytes, options)
end

-- ---- their mutants

math.randomseed(option.seed)
local random = math.random
local ODD = {"\0", "\255", "\127", "\128", "0", "9", "-", "{", "}", "[", "]",
             "(", ")", ",", ":", '"', "'", "\\", "\n", "\r", " ", "#", "e",
             "PK\1\2", "PK\3\4", "PK\5\6", "\255\255\255\255",
             "\255\255\255\127", "\0\0\0\128", "9223372036854775807",
             "99999999999999999999", "nan", "tRNS", "IDAT", "IEND"}

local function part(s)
  local a = random(#s)
  return a, math.min(#s, a + random(0, 1 << random(0, 6)))
end

local changes = {
  function(s)                   -- a bit
    local i = random(#s)
    return s:sub(1, i - 1) .. string.char(s:byte(i) ~ 1 << random(0, 7)) ..
           s:sub(i + 1)
  end,
  function(s)                   -- something odd over what is there
    local i, odd = random(#s), ODD[random(#ODD)]
    return s:sub(1, i - 1) .. odd .. s:sub(i + #odd)
  end,
  function(s)                   -- the same, between
    local i = random(0, #s)
    return s:sub(1, i) .. ODD[random(#ODD)] .. s:sub(i + 1)
  end,
  function(s) return s:sub(1, random(0, #s)) end,
  function(s)                   -- a part goes
    local a, b = part(s)
    return s:sub(1, a - 1) .. s:sub(b + 1)
  end,
  function(s)                   -- a part is there twice, or elsewhere
    local a, b = part(s)
    local i = random(0, #s)
    return s:sub(1, i) .. s:sub(a, b) .. s:sub(i + 1)
  end,
}

local function mutant(s)
  for _ = 1, random(3) do
    if #s > 0 then s = changes[random(#changes)](s) end
  end
  return s
end

-- ---- what comes of them

local function complain(seed, bytes, what)
  error(("%s: %s\nnacre.deserialize(%q)"):format(seed[1], what, bytes), 0)
end

local CODES = {EFILE = true, EVALUE = true, EDTYPE = true, ESHAPE = true,
               ENOMEM = true, EINDEX = true, ERANGE = true}
local read, refused = {}, {}
local function try(seed, bytes)
  local ok, e = pcall(load, seed, bytes)
  local count = ok and read or refused
  count[seed[1]] = (count[seed[1]] or 0) + 1
  if ok then
    for _, t in pairs(nacre.is_tensor(e) and {e} or e) do
      if not nacre.is_tensor(t) then complain(seed, bytes, "no tensor") end
      if t:numel() > 0 then t:double():sum():item() end
    end
    return
  end
  if type(e) == "string" or not CODES[e.code] then
    complain(seed, bytes, tostring(e))
  end
  local text = tostring(e)
  if not text:find "deserialize: " and not text:find "decode_png: " then
    complain(seed, bytes, "an error of what? " .. text)
  end
  if text:find "[%z\1-\9\11-\31\127]" then
    complain(seed, bytes, ("a terminal is told %q"):format(text))
  end
end

for _, seed in ipairs(seeds) do load(seed, seed[2]) end
local before, began, n = live(), os.clock(), 0
repeat
  local seed = seeds[n % #seeds + 1]
  n = n + 1
  if option.only == "" or option.only == seed[1] then
    try(seed, mutant(seed[2]))
  end
  if n % 4096 == 0 and live() ~= before then
    error(("%d bytes are lost, by mutant %d"):format(live() - before, n))
  end
until os.clock() - began > option.seconds
assert(live() == before, ("%d bytes are lost"):format(live() - before))
for format, count in pairs(refused) do
  assert(option.only ~= "" or count > 0 and (read[format] or 0) > 0,
         format .. ": all alike")
end
print(("fuzz_files: %d mutants"):format(n))
