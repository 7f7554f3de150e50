-- SPDX-License-Identifier: MIT
--
-- function_list.lua - the functions of the global `shell` that are no commands.
-- The columns are those of command_list.lua; `doc` is also the help.

return {
  {name = "lines", args = "command:text", form = "(command) -> lines[, status]",
   module = "nacre.extensions",
   doc = 'the output of a command, such as ":whos" or "ls", as a list'},
  {name = "command", args = "row:table", form = "{name=, args=, doc=, run=}",
   module = "nacre.extensions",
   doc = "defines the command :NAME; run gets a table of its arguments"},
  {name = "alias", args = "name:text, text:text", form = "(name, text)",
   module = "nacre.extensions",
   doc = "makes :NAME another name of a command, with arguments if there " ..
         'are some, or of a system command: "!git status"; nil removes it'},
  {name = "on", args = "event:text|input|result|error|exit, f:fn",
   form = "(event, f)", module = "nacre.extensions",
   doc = 'calls f at each "input"(text), "result"(values), ' ..
         '"error"(message, text) and at the "exit"; nil removes all of an ' ..
         "event"},
}
