-- SPDX-License-Identifier: MIT
-- pickle.lua - the pickle of a .pt file: nested tables as torch.save writes
-- lists and dicts of tensors, numbers, texts and booleans, in protocol 2.
-- save.c calls it; core/io/pt/pt.c writes the file.
local all = ...
local fail = all.fail

local MOST_LEVELS = 100

local function unicode(s) return string.pack("<c1s4", "X", s) end

local function integer(i)
  if i >= 0 and i < 256 then return string.pack("<c1B", "K", i) end
  if i >= -(1 << 31) and i < 1 << 31 then
    return string.pack("<c1i4", "J", i)
  end
  return string.pack("<Bc1i8", 0x8a, "\8", i)
end

local function text(s)
  if utf8.len(s) then return unicode(s) end
  -- how Python 3 writes bytes in this protocol
  return "c_codecs\nencode\n" .. unicode(s:gsub(".", function(c)
    return utf8.char(c:byte())
  end)) .. unicode "latin1" .. "\x86R"
end

local function tuple(list)
  local parts = {}
  for i, n in ipairs(list) do parts[i] = integer(n) end
  return "(" .. table.concat(parts) .. "t"
end

-- What is written for v: an object with state_dict is its state, and a state
-- that PyTorch has in another form is in that.
local function written(out, v)
  if type(v) ~= "table" then return v end
  if out.forms[v] == nil then
    local state = all.state_of(v)
    local form = all.python_forms[state]
    out.forms[v] = form and form() or state
  end
  return out.forms[v]
end

-- ---- tensors

-- Counts the tensors of each storage in v, by the address of the storage.
local function count_storages(out, v, seen, level)
  local users = out.users
  v = written(out, v)
  if nacre.is_tensor(v) then
    local id = nacre._storage_id(v)
    users[id] = (users[id] or 0) + (seen[v] and 0 or 1)
    seen[v] = true
  elseif type(v) == "table" and not seen[v] and level <= MOST_LEVELS then
    seen[v] = true
    for _, element in pairs(v) do
      count_storages(out, element, seen, level + 1)
    end
  end
end

-- The number of the storage of t in the file, and the tensor that it is
-- written from. One that only t uses, in part, is written without the rest.
local function storage_of(out, t)
  local id, bytes = nacre._storage_id(t)
  local key = ("%s %s"):format(id, t.dtype)
  if out.known[key] then return out.known[key], t end
  if bytes == 0 then t:totable() end -- a sample of vmap, which fails
  local n = bytes // t.itemsize
  if out.users[id] == 1 and n ~= t:numel() then t = t:clone():contiguous() end
  n = select(2, nacre._storage_id(t)) // t.itemsize
  local whole = t:as_strided({n}, {1}, 0)
  out.storages[#out.storages + 1] = whole
  local number = #out.storages - 1
  if out.users[id] > 1 then out.known[key] = number end
  return number, t
end

-- Of a dtype for which PyTorch has no class of storages, the storage has bytes
-- and the tensor has the dtype.
local function tensor(out, t)
  local requires = t.requires_grad
  t = t:detach()
  local number, there = storage_of(out, t)
  local count = out.storages[number + 1]:numel()
  local class = nacre._torch_storage(t)
  return ("ctorch._utils\n_rebuild_tensor_v%d\n(("):format(class and 2 or 3) ..
         unicode "storage" ..
         ("ctorch%s\n"):format(class and "\n" .. class or
                               ".storage\nUntypedStorage") ..
         unicode(tostring(number)) .. unicode "cpu" ..
         integer(class and count or count * t.itemsize) .. "tQ" ..
         integer(there:storage_offset()) .. tuple(there:size()) ..
         tuple(there:stride()) .. (requires and "\x88" or "\x89") ..
         "ccollections\nOrderedDict\n)R" ..
         (class and "" or ("ctorch\n%s\n"):format(t.dtype)) .. "tR"
end

-- ---- tables

-- Keeps what was just written; it is `key' elsewhere.
local function memoize(out, key)
  local number = out.kept
  out.kept = number + 1
  out.memo[key] = number < 256 and string.pack("c1B", "h", number) or
                  string.pack("<c1I4", "j", number)
  return number < 256 and string.pack("c1B", "q", number) or
         string.pack("<c1I4", "r", number)
end

local function add(out, bytes) out[#out + 1] = bytes end

local encode

-- For Python True is the key 1, and False is 0: of two entries one would be
-- lost.
local function check_keys(v, path)
  for key, number in pairs {[true] = 1, [false] = 0} do
    if v[key] ~= nil and v[number] ~= nil then
      fail("save", ("%s and %s are the same key in Python"):format(
        all.path_of(number, path), all.path_of(key, path)))
    end
  end
end

-- What a table begins and ends with in the pickle; a tuple and what is called
-- are kept at the end.
local KINDS = {
  list = {"]", "e"}, dict = {"}", "u"}, tuple = {"", "t", true},
  Counter = {"ccollections\nCounter\n(}", "utR", true},
}

-- A table is what it is in Python; a list or a dict by its keys, a dict if it
-- is empty.
local function kind_of(v, keys)
  return all.python_kinds[v] or
         #keys > 0 and all.are_of_list(keys) and "list" or "dict"
end

-- Appends a table to the pickle.
local function encode_table(out, v, path, level)
  check_keys(v, path)
  local keys = all.sorted_keys(v)
  local kind = kind_of(v, keys)
  local head, tail, kept_at_end = table.unpack(KINDS[kind])
  add(out, head .. (kept_at_end and "" or memoize(out, v)) .. "(")
  for _, key in ipairs(keys) do
    local name = all.path_of(key, path)
    if kind == "dict" or kind == "Counter" then
      encode(out, key, name, level + 1)
    end
    encode(out, v[key], name, level + 1)
  end
  add(out, tail .. (kept_at_end and memoize(out, v) or ""))
end

function encode(out, v, path, level)
  v = written(out, v)
  local kind = type(v)
  if v == all.python_none then add(out, "N")
  elseif out.memo[v] then add(out, out.memo[v])
  elseif nacre.is_tensor(v) then
    add(out, tensor(out, v))
    add(out, memoize(out, v))
  elseif kind == "string" then add(out, text(v))
  elseif math.type(v) == "integer" then add(out, integer(v))
  elseif kind == "number" then add(out, string.pack(">c1d", "G", v))
  elseif kind == "boolean" then add(out, v and "\x88" or "\x89")
  elseif kind ~= "table" then
    fail("save", ("%s is a %s, which a file cannot hold"):format(path, kind))
  elseif level > MOST_LEVELS then
    fail("save", path:sub(1, 40) .. "... is nested too deep")
  else encode_table(out, v, path, level) end
end

-- The pickle of v, and the storages that it names, as vectors.
function all.to_pickle(v)
  local out = {users = {}, known = {}, storages = {}, memo = {}, kept = 0,
               forms = {}}
  count_storages(out, v, {}, 0)
  add(out, "\x80\2")
  encode(out, v, "", 0)
  add(out, ".")
  return table.concat(out), out.storages
end
