-- SPDX-License-Identifier: MIT
--
-- reference.lua - writes the pages of the reference from the program's own
-- tables and the examples in repl/reference:
--
--   nacre --test --update repl/reference       the output of new examples
--   nacre scripts/reference.lua docs/reference     the pages
--
-- between which the program is built again, for it holds the examples.

local folder = arg[1]
if not folder then
  io.stderr:write "usage: nacre scripts/reference.lua FOLDER\n"
  os.exit(2)
end

for _, page in ipairs(require "nacre.reference".files()) do
  local path = folder .. "/" .. page.name
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(page.text))
end
