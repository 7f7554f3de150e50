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
  {name = "complete", args = "f:fn, argument:any, list:table",
   form = "(f, argument, list)", module = "nacre.extensions",
   doc = "Tab offers the texts of the list, or those that list(word) gives, " ..
         'for an argument of a function or of a command, ":NAME"; nil ' ..
         "removes them"},
  {name = "key", args = "keys:text, f:fn", form = "(keys, f)",
   module = "nacre.extensions",
   doc = 'the key "\\\\C-t" calls f(line, cursor), which gives both as they ' ..
         "are then, or nil; nil unbinds the key"},
  {name = "hint", args = "f:fn", form = "(f)", module = "nacre.extensions",
   doc = "f(error) gives the hint below an error, or nil; nil removes all " ..
         "such functions"},
  {name = "on", args = "event:text|input|result|error|exit, f:fn",
   form = "(event, f)", module = "nacre.extensions",
   doc = 'calls f at each "input"(text), "result"(values), ' ..
         '"error"(message, text) and at the "exit"; nil removes all of an ' ..
         "event"},
}
