-- SPDX-License-Identifier: MIT
-- Files that are not what their names say: failed downloads, pointers, formats
-- of others, files that end too early. The error says what each is. And files
-- that are read from a pipe by the tools.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, write = C.fails, C.write

local base = os.tmpname()
local remove <close> = setmetatable({}, {__close = function()
  os.execute("rm -f " .. base .. "*")
end})

-- Each of these bytes in a file of each kind.
local PAGE <const> = "<!DOCTYPE HTML PUBLIC ...><html>404</html>"
local POINTER <const> = "version https://git-lfs.github.com/spec/v1\n" ..
                        "oid sha256:4d7a\nsize 12345\n"
for _, kind in ipairs {"npy", "npz", "safetensors", "pt", "pth", "h5", "csv",
                       "tsv", "txt", "bin"} do
  local path = base .. "." .. kind
  for what, bytes in pairs {
    ["this is an HTML page"] = PAGE,
    ["this is an HTML page, which"] = "\n  <html lang=en>",
    ["this is an XML document"] = '<?xml version="1.0"?><Error/>',
    ["this is a pointer of Git LFS, not the file"] = POINTER,
    ["gzip: it is not complete"] = "\x1f\x8b\8\0......",
    ["gzip: "] = "\x1f\x8b\8\0.......",
    ["this is a PDF document"] = "%PDF-1.7.......",
  } do
    write(path, bytes)
    fails(what, nacre.load, path)
  end
end

for _, kind in ipairs {"npy", "npz", "safetensors", "pt"} do
  local path = base .. "." .. kind
  write(path, "")
  fails("the file is empty", nacre.load, path)
  write(path, ("\0"):rep(4096))
  fails("it begins with zeros: a download or a copy of it was not completed",
        nacre.load, path)
  write(path, '{"error": "Entry not found"}\n')
  fails("this is text, not a ." .. kind .. ' file: it begins with "{"error',
        nacre.load, path)
  nacre.save(path, kind == "npy" and nacre.ones(9000) or {x = nacre.ones(9000)})
  write(path, C.read(path):sub(1, 20000))
  fails(kind == "npy" and "takes 36000 bytes, the file has" or
        kind == "safetensors" and "take 36000 bytes, the file has 19928" or
        "it is not complete", nacre.load, path)
end
write(base .. ".foo", "[1, 2, 3]")
fails("its format is not known: it begins with", nacre.load, base .. ".foo")
write(base .. ".png", "\x89PNG\r\n\26\n")
fails(base .. ".png: the header is damaged", nacre.readpng, base .. ".png")
fails(base .. ".png: the header is damaged", nacre.load, base .. ".png")

-- ---- pipes

local function output(command)
  local p <close> = io.popen(command:gsub("NACRE", arg[-1]) .. " 2>&1")
  return p:read "a"
end

for _, kind in ipairs {"npy", "npz", "safetensors", "pt"} do
  local path = base .. "." .. kind
  nacre.save(path, kind == "npy" and nacre.ones(90) or {x = nacre.ones(90)})
  local listed = output("NACRE --ls " .. path)
  local piped = output("cat " .. path .. " | NACRE --ls -")
  assert(piped:find("float32  [90]", 1, true) and
         piped:gsub("^.-:", "") == listed:gsub("^.-:", ""), piped)
  assert(output("cat " .. path .. " | NACRE --diff - " .. path):find "equal")
end
local text = output("NACRE --convert " .. base .. ".npy -")
assert(text:find("the result is a file whose name says its format", 1, true),
       text)
