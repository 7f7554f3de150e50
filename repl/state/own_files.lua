-- SPDX-License-Identifier: MIT
--
-- own_files.lua - where the program keeps what it has for the user; nil without
-- a home folder. host.history_file has the history.

local host = require "nacre.host"

local own_files = {}

-- The start-up file, which `:set!` writes, too.
function own_files.startup()
  return host.userfile("XDG_CONFIG_HOME", "/.config", "init.lua")
end

-- The peak rates of this machine.
function own_files.peaks()
  return host.userfile("XDG_CACHE_HOME", "/.cache", "peak.json")
end

return own_files
