-- SPDX-License-Identifier: MIT
--
-- notebook_output.lua - what a cell shows in a notebook other than text that is
-- printed. Loaded in a session of the kernel only: the parts of the shell that
-- draw on a terminal find it in state.lua.

local kernel_host = require "nacre.kernel_host"
local host = require "nacre.host"
local json = require "nacre.json"

local output = {silent = false} -- silent: nothing is sent
require "nacre.state".notebook = output

local SMALL = 256             -- pixels; smaller images are enlarged

local shown = 0               -- displays that may be replaced, counted

-- Sends a message of this kind to all front ends.
function output.publish(kind, content)
  if output.silent then return end
  kernel_host.send(("publish %s %s"):format(kind, json.line(content)), true)
end

-- Shows a value in the forms that `data` has, by MIME type; with a number, as
-- the result of that cell.
function output.display(data, number)
  output.publish(number and "execute_result" or "display_data",
                 {data = data, metadata = json.object,
                  execution_count = number})
  host.keep_output(data["text/plain"] .. "\n")
end

-- Shows an image, a uint8 tensor CxHxW; text is for front ends that show none.
-- The pixels of a small image become squares.
function output.image(img, text)
  local times = SMALL // math.max(img:size(2), img:size(3))
  if times > 1 then
    img = img:repeat_interleave(times, 2):repeat_interleave(times, 3)
  end
  local png = package.loaded.nacre.encode_png(img)
  output.display {["text/plain"] = text,
                  ["image/png"] = require "nacre.terminal_image".base64(png)}
end

-- A text that takes the place of the one that was shown for the same key, a
-- table.
local keys = setmetatable({}, {__mode = "k"})

function output.replace(key, text)
  local kind = keys[key] and "update_display_data" or "display_data"
  if not keys[key] then
    shown = shown + 1
    keys[key] = ("nacre-%d"):format(shown)
  end
  output.publish(kind, {data = {["text/plain"] = text}, metadata = json.object,
                        transient = {display_id = keys[key]}})
end

-- The next text for this key is shown below what is there.
function output.leave(key) keys[key] = nil end

-- Removes what the cell has shown; with `wait', when something new is shown.
function output.clear(wait)
  output.publish("clear_output", {wait = wait == true})
end

return output
