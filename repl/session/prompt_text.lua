-- SPDX-License-Identifier: MIT
--
-- prompt_text.lua - the prompts: those of the user, or the usual ones.

local host = require "nacre.host"
local settings = require "nacre.settings"

local nacre = package.loaded.nacre

local prompt_text = {}

local function user_prompt(name)
  local prompt = rawget(_G, name)
  if type(prompt) == "function" then
    local ok, text = host.guard(tostring, prompt)
    prompt = ok and text or nil
  end
  return prompt ~= nil and tostring(prompt) or nil
end

-- "> ", with the device and the number of the input before it if they are
-- shown.
local function usual_prompt()
  local parts, device = {}, nacre.get_default_device()
  if device ~= "cpu" then parts[1] = device end
  if settings.get "numbers" then
    parts[#parts + 1] = ("%d"):format(host.history_size() + 1)
  end
  return table.concat(parts, ":") .. "> "
end

-- The first prompt of an input (1) or that of its further lines (2).
function prompt_text.of(shell, which)
  if which == 2 then return user_prompt "_PROMPT2" or ">> " end
  if shell.reader then return shell.reader.prompt end
  local text = user_prompt "_PROMPT" or usual_prompt()
  if not shell.failed or not host.has_color "stdout" then return text end
  -- readline counts no width between \1 and \2
  return "\1\27[31m\2" .. text .. "\1\27[0m\2"
end

return prompt_text
