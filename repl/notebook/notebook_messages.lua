-- SPDX-License-Identifier: MIT
--
-- notebook_messages.lua - the messages of Jupyter's protocol as the frames that
-- a socket sends and receives:
--
--   identities..., "<IDS|MSG>", signature, header, parent, metadata, content
--
-- The last four are JSON, and signed. Contents stay text where nobody looks
-- into them.

local kernel_host = require "nacre.kernel_host"
local json = require "nacre.json"

local messages = {}
messages.__index = messages

local DELIMITER, VERSION = "<IDS|MSG>", "5.3"
local KEPT = 1 << 16          -- signatures by which a replay is known, at least
local ENOUGH = 32             -- digits of a signature that tell it from others

messages.version = VERSION

-- The messages of a kernel whose front ends know the key; "": none is signed.
function messages.new(key)
  return setmetatable({key = key, count = 0, seen = {}, before = {}, kept = 0,
                       session = kernel_host.random_name()}, messages)
end

-- Has a message with this signature been here? Whoever listens does not have
-- the key, but could send again what a front end has signed. Of the signatures
-- only the last are kept: their list does not grow for ever.
local function is_replay(self, signature)
  local name = signature:sub(1, ENOUGH)
  if self.seen[name] or self.before[name] then return true end
  if self.kept == KEPT then
    self.seen, self.before, self.kept = {}, self.seen, 0
  end
  self.seen[name], self.kept = true, self.kept + 1
end

local function find_delimiter(frames)
  for i, frame in ipairs(frames) do
    if frame == DELIMITER then return i end
  end
end

local function object(text)
  local value = text:find "^%s*{" and json.decode(text)
  return type(value) == "table" and value or nil
end

-- Returns {ids =, kind =, header = text, content = table, text = of the
-- content}, or nil and what is wrong with the message.
function messages:parse(frames)
  local at = find_delimiter(frames)
  if not at or #frames < at + 5 then
    return nil, ("a message of %d frames"):format(#frames)
  end
  local signature, header, parent, metadata, content =
    table.unpack(frames, at + 1, at + 5)
  if self.key ~= "" then
    local right = kernel_host.sign(self.key, header, parent, metadata, content)
    if not kernel_host.same_signature(right, signature) then
      return nil, "a message whose signature is wrong"
    elseif is_replay(self, signature) then
      return nil, "a message that was received before"
    end
  end
  local head, body = object(header), object(content)
  if not head or type(head.msg_type) ~= "string" then
    return nil, "a message without a header"
  end
  if not body then return nil, head.msg_type .. " without a content" end
  return {ids = table.move(frames, 1, at - 1, 1, {}), kind = head.msg_type,
          header = header, content = body, text = content}
end

-- The frames of a message in answer to `parent`, which may be nil. content is
-- the text of an object.
function messages:frames(ids, kind, content, parent)
  self.count = self.count + 1
  local header = json.line {
    msg_id = ("%s_%d"):format(self.session, self.count), msg_type = kind,
    session = self.session, username = "kernel", version = VERSION,
    date = kernel_host.timestamp()}
  local before = parent and parent.header or "{}"
  local signature = self.key ~= "" and
                    kernel_host.sign(self.key, header, before, "{}", content)
                    or ""
  local frames = table.move(ids, 1, #ids, 1, {})
  return table.move({DELIMITER, signature, header, before, "{}", content},
                    1, 6, #frames + 1, frames)
end

return messages
