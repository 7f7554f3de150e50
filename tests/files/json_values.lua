-- SPDX-License-Identifier: MIT
-- nacre.json: what is a text of JSON is read, what is none is refused with the
-- line and the column; values come back as they were written.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
local json = nacre.json
local decode, encode = json.decode, json.encode

-- ---- texts that are read, and what is written of them

local function goes_round(source, want)
  local got = encode(decode(source))
  assert(got == (want or source), ("%s: %s, not %s"):format(source, got,
                                                            want or source))
  assert(encode(decode(got)) == got, got)
end

for _, source in ipairs {
  "null", "true", "false", "0", "-1", "1.5", '""', '"a"', "[]", "{}", "[[]]",
  "[{}]", '{"": 0}', '{"a": {}, "b": []}', "[null]", "[null, 1, null]",
  '{"a": null}', "9223372036854775807", "-9223372036854775808", "0.1",
  "1e-07", "4.94065645841247e-324", "1.7976931348623157e+308", "-0.0",
  "123456.789",
  '"\\u0000"', '"\\u001f\\u007f"', '"\\"\\\\"', '"é€😀"', '"/"',
  "[true, false, null]", '["a", ["b", ["c", {"d": "e"}]]]'
} do
  goes_round(source)
end

for source, want in pairs {
  [" [ 1 , 2 ] "] = "[1, 2]", ["\t\r\n1\n"] = "1", ["\u{FEFF}1"] = "1",
  ["[1,2]"] = "[1, 2]", ['{"b":1,"a":2}'] = '{"a": 2, "b": 1}',
  ["-0"] = "0", ["1E2"] = "100.0", ["1e+2"] = "100.0", ["1.0"] = "1.0",
  ["0e1"] = "0.0", ["1e-400"] = "0.0", ["123e65"] = "1.23e+67",
  ["9223372036854775808"] = "9.223372036854776e+18",
  ['"\\/\\b\\f\\n\\r\\t"'] = '"/\\u0008\\u000c\\n\\r\\t"',
  ['"\\u0041\\u00e9\\u20ac"'] = '"Aé€"', ['"\\ud83d\\ude00"'] = '"😀"',
  ['"\\uD834\\uDD1Ex"'] = '"𝄞x"', ['"\\uffff"'] = '"\u{FFFF}"',
  ['{"a":1,"a":2}'] = '{"a": 2}', ['{"a":1,"a":null}'] = '{"a": null}',
  ['"\127"'] = '"\\u007f"', ['["\u{2028}"]'] = '["\u{2028}"]'
} do
  goes_round(source, want)
end

-- ---- texts that are refused, and where

for source, place in pairs {
  [""] = "line 1, column 1: ", [" "] = "line 1, column 2: ",
  ["[1,]"] = "column 4: ", ["[,1]"] = "column 2: ", ["[1,,2]"] = "column 4: ",
  ["[1 2]"] = "column 4: ", ["[1"] = "column 3: .*ends here",
  ["["] = "column 2: ", ["]"] = "column 1: ", ["[1]]"] = "column 4: ",
  ["[1}"] = "column 3: ", ["{"] = "column 2: .*key", ["{]"] = "column 2: ",
  ['{"a"}'] = "column 5: ':'", ['{"a":}'] = "column 6: ",
  ['{"a" 1}'] = "column 6: ", ['{"a":1,}'] = "column 8: .*key",
  ["{a:1}"] = "column 2: .*key", ["{1:1}"] = "column 2: .*key",
  ["{'a':1}"] = "column 2: .*key", ['{"a":1 "b":2}'] = "column 8: ",
  ['{"a":1}x'] = "column 8: the end", ["1 2"] = "column 3: the end",
  ["01"] = "begins with 0", ["-01"] = "begins with 0", ["+1"] = "column 1",
  ["1."] = "column 2: .*digit", [".5"] = "column 1: ", ["1.e1"] = "digit",
  ["1e"] = "digit", ["1e+"] = "digit", ["-"] = "column 1: ",
  ["--1"] = "column 1: ", ["0x1"] = "column 2: ", ["1.2.3"] = "column 4",
  ["1e1.5"] = "column 4", ["1e999"] = "beyond float64",
  [("9"):rep(400)] = "beyond float64", ["-1e999"] = "beyond float64",
  ["NaN"] = "NaN is not JSON", ["-Infinity"] = "Infinity is not JSON",
  ["nul"] = "column 1: ", ["nulll"] = "column 1: ", ["TRUE"] = "column 1: ",
  ["True"] = "True is not JSON", ["truefalse"] = "column 1: ",
  ['"'] = "column 1: .*no end", ['"a'] = "no end", ['"\\'] = "no escape",
  ['"\\"'] = "no end", ['"\\x"'] = "\\x is no escape",
  ['"\\u12"'] = "four hexadecimal", ['"\\u12g4"'] = "four hexadecimal",
  ['"\\ud800"'] = "half of a character", ['"\\udc00"'] = "half",
  ['"\\ud800\\u0041"'] = "half", ['"\\ud800\\ud800"'] = "half",
  ['"a\nb"'] = "line 1, column 3: .*u000a", ['"\t"'] = "u0009",
  ['"\0"'] = "u0000", ["\0"] = "the byte 0", ["[1]\0"] = "the byte 0",
  ["\f1"] = "the byte 12", ["[1, // x\n2]"] = "column 5: ",
  ["/* */1"] = "column 1: ", ['"\xff"'] = "column 2: .*UTF%-8",
  ['"\xed\xa0\x80"'] = "UTF%-8", ['"\xc0\xaf"'] = "UTF%-8",
  ['"\xf4\x90\x80\x80"'] = "UTF%-8", ["[\xe9]"] = "column 2: .*UTF%-8",
  ["\u{FEFF}\u{FEFF}1"] = "column 2: ", ["\u{A0}1"] = "column 1: ",
  ["[1,\n  2,\n  é]"] = "line 3, column 3: .*'é'",
  ['["é", x]'] = "line 1, column 7: .*'x'",
  [("["):rep(100000)] = "column 1001: .*deeper",
  [('{"a":'):rep(100000)] = "column 5001: .*deeper"
} do
  local ok, err = pcall(decode, source)
  assert(not ok and tostring(err):find(place),
         ("%s: %s"):format(source:sub(1, 40), ok and "is read" or err))
end
local deep = ("["):rep(1000) .. ("]"):rep(1000)
assert(encode(decode(deep)) == deep)

-- ---- numbers

assert(math.type(decode "1") == "integer")
assert(math.type(decode "1.0") == "float")
assert(decode "9223372036854775807" == math.maxinteger)
assert(decode "-9223372036854775808" == math.mininteger)
local big = "123456789012345678901234567890"
assert(decode(big) == 123456789012345678901234567890.0)
assert(decode(big, {big = "text"}) == big)
fails("beyond int64", decode, big, {big = "error"})
nacre.manual_seed(1)
for _ = 1, 2000 do
  local x = string.unpack("d", string.pack("i8", math.random(0)))
  if x == x and math.abs(x) ~= math.huge then
    local back = decode(encode(x))
    assert(back == x and math.type(back) == "float", x)
  end
end

-- ---- null, lists and objects

local v = decode '{"a": null, "b": [null, 2]}'
assert(v.a == json.null and v.b[1] == json.null and #v.b == 2)
assert(tostring(json.null) == "null")
v = decode('{"a": null, "b": [null, 2]}', {nulls = false})
assert(v.a == nil and v.b[1] == nil and v.b[2] == 2)
assert(decode("null", {nulls = false}) == nil and decode "false" == false)
assert(encode {} == "[]" and encode(json.object {}) == "{}")
assert(encode {[2] = "b"} == '{"2": "b"}' and encode(nil) == "null")
assert(encode {a = nacre.tensor {{1, 2}, {3, 4}}} == '{"a": [[1, 2], [3, 4]]}')
assert(encode({a = {1, {b = 2}}, c = {}}, {indent = 2}) ==
       '{\n  "a": [1, {\n    "b": 2\n  }],\n  "c": []\n}')

local cycle = {}
cycle.a = cycle
fails("contains itself", encode, cycle)
fails("elements of a list and fields", encode, {1, a = 2})
fails("has 3, but no 2", encode, {1, nil, 3})
fails("x has a float as a key", encode, {x = {[0.5] = 1}})
fails("has two keys that are 2", encode, {[2] = 1, ["2"] = 1})
fails("x.2 is a function", encode, {x = {1, print}})
fails("x is nan", encode, {x = 0 / 0})
fails("the value is -inf", encode, -math.huge)
assert(encode({1, 0 / 0, math.huge}, {nan = "null"}) == "[1, null, null]")
fails("x is not UTF-8", encode, {x = "\xff"})
fails("a key of the value is not UTF-8", encode, {["\xff"] = 1})
fails("takes 1 argument and a table of options, not 0", encode)
fails("options must be a table, not a number", encode, 1, 2)
fails("no argument 'indents'", encode, 1, {indents = 2})
fails("indent is from 0 to 16", encode, 1, {indent = -1})
fails("fields must be a table", json.object, 1)
fails("text", decode, {})

-- ---- files

local base = os.tmpname()
os.remove(base)
local path = base .. ".json"
json.save(path, {a = {1, 2.5}, b = json.null})
v = json.load(path)
assert(v.a[2] == 2.5 and v.b == json.null)
assert(json.load(path, {nulls = false}).b == nil)
assert(io.open(path):read "a" == '{\n  "a": [1, 2.5],\n  "b": null\n}\n')
fails("this is JSON, which holds no tensors",
      "nacre.json.load(path) reads it as tables", nacre.load, path)
fails("is a function", json.save, path, {print})
assert(json.load(path).a[1] == 1, "a save that fails keeps the file")
local f <close> = io.open(path, "w")
f:write '{"a":\n 1, }'
f:close()
fails(path .. ": line 2, column 5: a key", json.load, path)
os.remove(path)
fails("No such file", json.load, path)
fails("directory", json.load, "/")
fails("No such file", json.save, "/nosuch/x.json", 1)
