-- SPDX-License-Identifier: MIT
--
-- messages_test.lua - what a test tells the runner may come in any pieces.

local jobs = require "nacre.job_pool"

local SAID = "4:case6:a (n=12:172:304:pass0:0:2:30"

test("messages in pieces", {size = {1, 2, 3, 5, 9, #SAID}}, function(t, p)
  local process = {messages = {}, rest = ""}
  local began, whole = 0, 0
  for at = 1, #SAID, p.size do
    if jobs.hear(process, SAID:sub(at, at + p.size - 1)) then
      began, whole = began + 1, #process.messages
    end
  end
  t.eq(process.messages, {{"case", "a (n=1", "17", 30}, {"pass", "", "", 30}})
  t.eq(process.rest, "")
  t.eq(began, 1)
  t.ok(whole >= 1)
end)

test("a message that never ends", function(t)
  local process = {messages = {}, rest = ""}
  t.ok(not jobs.hear(process, "4:case6:a (n=1"))
  t.eq(process.messages, {})
end)
