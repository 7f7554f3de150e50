-- SPDX-License-Identifier: MIT
-- nacre.options: names, types, defaults, help and errors, of lists and of the
-- words of a program.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local run = dofile(here .. "../lib/program.lua")
local eq, fails = C.eq, C.fails
local options = nacre.options

local rows = {
  "Trains a network.",
  {"data", "a folder"},
  {"more", "other folders", many = true, default = {}},
  {"-e", "--epochs", "passes over the data", default = 5},
  {"--lr", "learning rate", default = 1e-3},
  {"--device", "where", default = "cpu", choices = {"cpu", "cuda"}},
  {"--resume", "go on", default = false},
  {"--shuffle", "a new order in each pass", default = true},
  {"--top-k", type = "integer"},
  {"--tag", "may be given again", many = true, type = "string"},
  {"--size", "a power of two", type = function(s)
    local n = math.tointeger(tonumber(s))
    if n and n > 0 and n & n - 1 == 0 then return n end
    return nil, "is a power of two"
  end},
}

local function read(...) return options(rows, {...}) end

-- ---- values

local o = read "d"
eq(o.data, "d")
eq(#o.more, 0)
eq(o.epochs, 5)
eq(math.type(o.epochs), "integer")
eq(o.lr, 1e-3)
eq(o.device, "cpu")
eq(o.resume, false)
eq(o.shuffle, true)
eq(o.top_k, nil)
eq(o.tag, nil)

o = read("--epochs", "7", "a", "--lr=0.5", "b", "--resume", "--no-shuffle",
         "--top-k=3", "--tag", "x", "--tag=y=z", "--device", "cuda", "c",
         "--size", "8")
eq(o.data, "a")
eq(table.concat(o.more, ","), "b,c")
eq(o.epochs, 7)
eq(o.lr, 0.5)
eq(o.resume, true)
eq(o.shuffle, false)
eq(o.top_k, 3)
eq(table.concat(o.tag, ","), "x,y=z")
eq(o.device, "cuda")
eq(o.size, 8)
eq(read("-e", "2", "d").epochs, 2)
eq(read("d", "--lr", "-1").lr, -1)
eq(read("d", "--lr", "3").lr, 3)
eq(read("-1").data, "-1")
eq(read("--", "--lr").data, "--lr")
eq(read("d", "--no-resume").resume, false)
eq(read("d", "--lr", "1", "--lr", "2").lr, 2)
eq(options({{"a", many = true, type = "integer"}, {"b"}},
           {"1", "2", "x"}).a[2], 2)
eq(options({{"a", required = false}}, {}).a, nil)
eq(options({{"a", default = 3}}, {}).a, 3)
eq(next(options({}, {})), nil)
eq(options({{"--n", choices = {1, 2}}}, {"--n", "2"}).n, 2)

-- ---- errors

fails("options: data is missing", read)
fails("no option --epoch, did you mean --epochs?", read, "d", "--epoch", "3")
fails("no option --zzz", read, "d", "--zzz")
fails("--epochs needs an integer, not '1.5'", read, "d", "-e", "1.5")
fails("--lr needs a number, not 'x'", read, "d", "--lr", "x")
fails("--lr needs a value", read, "d", "--lr")
fails("--device is one of cpu, cuda, not 'cude': did you mean cuda?", read, "d",
      "--device", "cude")
fails("--resume takes no value", read, "d", "--resume=1")
fails("--size is a power of two, not '6'", read, "d", "--size", "6")
fails("'b' is an argument too many", options, {{"a"}}, {"a", "b"})
fails("--out is missing", options, {{"--out", required = true}}, {})
fails("row 1 has no field 'defualt', did you mean 'default'?", options,
      {{"--a", defualt = 1}}, {})
fails("row 1 is not a table", options, {3}, {})
fails("row 1 is made of names, then one description", options,
      {{"a", "b", "c"}}, {})
fails("row 1 has a name behind the description", options,
      {{"a", "--b"}}, {})
fails("row 2 has the name --a a second time", options, {{"--a"}, {"--a"}}, {})
fails("row 1 has the name --help a second time", options, {{"--help"}}, {})
fails("row 1 has the type 'float'", options, {{"--a", type = "float"}}, {})
fails("row 1 is a flag, whose name begins with -", options,
      {{"a", default = false}}, {})

-- ---- help

local help = read("--help").help
for _, text in ipairs {
  "usage: PROGRAM [--help] [-e EPOCHS] [--lr LR] [--device {cpu,cuda}] [",
  "\n\nTrains a network.\n\n", "  data                    a folder\n",
  "  -e, --epochs EPOCHS     passes over the data (5)\n",
  "  --device {cpu,cuda}     where (cpu)\n",
  "(--no-shuffle turns it off)\n", "  --top-k TOP_K\n",
  "  -h, --help              show this text and end",
} do assert(help:find(text, 1, true), text .. "\nis not in\n" .. help) end
for line in help:gmatch "[^\n]+" do assert(#line <= 80, line) end
eq(read("-h").help, help)

-- ---- the words of the program

local path = os.tmpname()
local f = assert(io.open(path, "w"))
f:write [[
local o = nacre.options {"Counts.", {"n", type = "integer"},
                         {"--by", default = 1}}
print(o.n * o.by)
]]
f:close()
local text, status = run(path .. " 4 --by 3")
eq(text, "12\n")
eq(status, 0)
text, status = run(path .. " --help")
eq(status, 0)
local usage = "usage: nacre " .. path .. " [--help] [--by BY] n\n"
assert(text:find(usage .. "\nCounts.\n", 1, true), text)
text, status = run(path .. " 4 --bye 3")
eq(status, 2)
eq(text, ("usage: nacre %s [--help] [--by BY] n\n%s: no option --bye, "
          .. "did you mean --by?\n"):format(path, path:match "[^/]*$"))
os.remove(path)
