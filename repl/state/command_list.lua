-- SPDX-License-Identifier: MIT
--
-- command_list.lua - the commands after a colon, and the functions of the
-- global `shell`, which are the same for programs. One row each:
--
--   name              what follows the colon
--   args              its arguments, a signature in the syntax of operators.def
--                     with the types of repl/editor/kinds.lua; what is behind
--                     "*" are options. The usage, the reader of options and
--                     completion come from it, see command_options.lua
--   shown             how an argument stands in the usage, by its name
--   options           what each option does, by its name
--   trailing          the options stand behind the arguments
--   between           options may also stand between the first argument and the
--                     code
--   equals            NAME = VALUE is NAME VALUE
--   doc               what it does, in a line; more, and an example, is in
--                     repl/reference/commands.nacre
--   group             begins a group of that name in the overview
--   run               run(shell, text): the command, with its arguments
--   call              call(...): shell.NAME(...), with Lua values. Without it
--                     shell.NAME(text) runs the command, and its failure is an
--                     error
--   as                the name of the function, if it differs from the
--                     command's
--   form              how `call` is called: "(f[, opts]) -> table"
--   module            where `run` and `call` are, unless they are functions:
--                     fields of these names, or of the names given here; `run`
--                     also of the command's name. It is required on first use
--   needs             what the text must contain: "an expression"
--   lua               the text is Lua, possibly of several lines, and `run`
--                     guards the user's code itself
--   varies            the output differs from session to session; or a function
--                     that says so of the arguments
--   paged             its output may be longer than the window
--   about             is about the session: :save leaves it out

local function quit(shell) shell.leaving = true end

-- The options of commands that measure.
local TIMING <const> = "n=false, s:setup=nil, c:text|cold=nil, save:name=nil, "
  .. "against:measurement=nil, budget:seconds=nil, export_json:file=nil, "
  .. "export_markdown:file=nil"
local TIMING_OPTIONS <const> = {
  n = "without runs to warm up",
  s = "code that runs first and is not timed",
  c = "with caches emptied before each run",
  save = "keeps the result under a name",
  against = "compares with a result that was saved",
  budget = "how long to measure",
  export_json = "writes the results to a file",
  export_markdown = "writes the table to a file",
}

local PICTURE <const> = "writes a picture to FILE.svg or FILE.png"

return {
  {group = "session", name = "help", args = "name:topic=nil",
   module = "nacre.command_help", about = true, paged = true,
   doc = "list the commands, or explain NAME; all: a line for each command"},
  {name = "set", args = "name:setting=nil, value:value=nil", equals = true,
   module = "nacre.set_command", varies = function(text)
     return text:find "^device%s*$" ~= nil
   end,
   form = "(name[, value]) or {name = value, ...}", paged = true,
   doc = "show or change settings; :set! also writes to the start-up file"},
  {name = "seed", args = "n:int", module = "nacre.session_commands",
   doc = "seed the random numbers"},
  {name = "doctor", module = "nacre.session_commands", varies = true,
   doc = "show the devices, libraries, terminal and files that are found"},
  {name = "clear", module = "nacre.session_commands", about = true,
   doc = "clear the screen"},
  {name = "quit", run = quit, about = true, doc = "leave (also Ctrl-D)"},
  {group = "memory", name = "whos", args = "pattern:variable=nil",
   module = "nacre.variables", paged = true,
   doc = "list variables, their memory, and which is a view of which"},
  {name = "mem", module = "nacre.memory_commands",
   varies = true, form = "() -> a table for each device",
   doc = "show the memory in use"},
  {name = "gc", module = "nacre.memory_commands", varies = true,
   doc = "collect garbage, show how much memory that freed"},
  {name = "reset", module = "nacre.memory_commands", varies = true,
   doc = "remove all variables, restore overwritten names of Lua"},
  {group = "time", name = "time", args = "stat:lua",
   module = "nacre.time_once", lua = true, needs = "a statement",
   form = "(f or text, ...) -> table, results", varies = true,
   doc = "run once: show wall time and rates"},
  {name = "bench", args = "expr:lua, *, " .. TIMING, options = TIMING_OPTIONS,
   module = "nacre.bench", lua = true,
   form = "(f or text[, options]) -> table", varies = true,
   doc = "run many times: median, spread, rates"},
  {name = "compare", args = "a:lua, b:second=nil, *, " .. TIMING,
   shown = {b = ";; B"}, options = TIMING_OPTIONS,
   module = "nacre.compare", lua = true,
   form = "(text or texts[, options]) -> results", varies = true,
   doc = "time an expression on every device, or compare several"},
  {name = "sweep", args = "sizes:sizes, expr:lua, *, " .. TIMING,
   shown = {sizes = "n=16..8192"}, options = TIMING_OPTIONS, between = true,
   module = "nacre.sweep", lua = true, varies = true,
   form = "(sizes, text or texts[, options]) -> table",
   doc = "time for each size, and where one expression overtakes another"},
  {name = "peak", args = "again:text|again=nil", module = "nacre.machine_peak",
   form = "([device]) -> table", varies = true,
   doc = "measure the peak rates of this machine once, and keep them"},
  {name = "diff", args = "a:lua, b:lua", module = "nacre.parity",
   call = "diffcall",
   form = "(a, b) -> table", lua = true,
   doc = "show how much two tensors differ, where, and by how many ulp"},
  {name = "parity", args = "expr:lua", module = "nacre.parity", lua = true,
   needs = "an expression",
   doc = "compare the result of every device with float64, in ulp"},
  {name = "repeat", as = "repeated", args = "n:number=nil, expr:lua",
   module = "nacre.parity", run = "times", call = "again",
   form = "(f, n) -> list", lua = true,
   doc = "check that every run (10 of them) gives the same bits"},
  {name = "watch", args = "seconds:number=nil, expr:lua, *, n:count=nil",
   options = {n = "how often; without it, until Ctrl-C"},
   module = "nacre.watch_expression", lua = true,
   form = "(f[, seconds[, count]])",
   varies = true, doc = "show an expression again and again, until Ctrl-C"},
  {group = "look", name = "debug", module = "nacre.debugger", lua = true,
   run = "command",
   doc = "open the stack of the last error: frames, locals"},
  {name = "trace", args = "stat:lua", module = "nacre.op_trace", lua = true,
   needs = "a statement",
   varies = true,
   form = "(f, ...) -> steps, results",
   doc = "run once: show each operation, its shapes and its time"},
  {name = "profile", args = "stat:lua", module = "nacre.profile", lua = true,
   needs = "a statement",
   varies = true,
   form = "(f, ...) -> rows, results",
   doc = "run once: show a table of the operations, slowest first"},
  {name = "shape", args = "expr:lua", module = "nacre.dry_run", lua = true,
   needs = "an expression",
   form = "(f, ...) -> steps, results",
   doc = "show shapes, memory and work without computing anything"},
  {name = "explain", args = "expr:lua", module = "nacre.fusion_report",
   lua = true, needs = "an expression", form = "(f, ...) -> report",
   doc = "show which operations nacre.fuse does, or would do, in one pass"},
  {name = "view", args = "expr:lua", module = "nacre.tensor_viewer", lua = true,
   needs = "an expression", form = "(value)", varies = true,
   doc = "show a tensor in the whole window: scroll, sort, search"},
  {name = "kernel", args = "expr:lua", module = "nacre.kernel_facts",
   lua = true, needs = "an expression", form = "(k) -> text", varies = true,
   doc = "show the registers and memory that a kernel of nacre.cuda.kernel "
     .. "uses"},
  {name = "nan", args = "mode:off|warn|trap=nil", module = "nacre.nan_watch",
   doc = "warn about, or stop, operations that make nan or inf"},
  {group = "pictures", name = "plot",
   args = "x:lua=nil, y...:lua, *, x:text|log=nil, y:text|log=nil, " ..
          "o:file=nil",
   options = {x = "a logarithmic x axis", y = "a logarithmic y axis",
              o = PICTURE},
   trailing = true,
   module = "nacre.picture_commands", call = "plotcall", lua = true,
   needs = "an expression", form = "([x,] y, ..., [opts])",
   doc = "draw curves over the first argument if it never falls, else over " ..
         "1, 2, ...; or functions: F 0 6"},
  {name = "scatter", args = "x:lua, y...:lua, *, o:file=nil",
   options = {o = PICTURE}, trailing = true,
   module = "nacre.picture_commands", call = "scattercall", lua = true,
   needs = "an expression", form = "(x, y, ..., [opts])",
   doc = "draw points, each Y against X, or the columns of a matrix"},
  {name = "hist",
   args = "x:lua, bins:number=nil, *, y:text|log=nil, o:file=nil",
   options = {y = "bars on a logarithmic scale", o = PICTURE},
   trailing = true, module = "nacre.picture_commands",
   call = "histcall", lua = true, needs = "an expression",
   form = "(x[, bins][, opts])", doc = "draw the distribution of the values"},
  {name = "heat", args = "m:lua, *, z:center=nil, o:file=nil",
   options = {z = "the value in the middle of the colours", o = PICTURE},
   trailing = true, module = "nacre.picture_commands",
   call = "heatcall", lua = true, needs = "an expression", form = "(m[, opts])",
   doc = "draw a matrix in colours"},
  {name = "show", args = "image:lua|file",
   shown = {image = "IMAGE"}, module = "nacre.picture_commands",
   call = "showcall", lua = true, needs = "an expression",
   form = "(image[, opts]), shell.show(T, f): how values of T are shown",
   doc = "show one image or many: HxW, CxHxW, HxWxC, NxCxHxW"},
  {name = "png", args = "file:file, image:lua",
   module = "nacre.picture_commands",
   call = "pngcall", lua = true, form = "(file, image)",
   doc = "write the image that :show shows to a file"},
  {group = "files", name = "cd", args = "folder:folder=nil",
   module = "nacre.file_commands",
   doc = "show or change the working folder"},
  {name = "run", args = "file:file=nil, arguments...:file=nil",
   module = "nacre.file_commands",
   call = "callrun", form = "(file, ...)",
   doc = "run a file in this session; without FILE, the last one"},
  {name = "load", args = "file:file", module = "nacre.file_commands",
   doc = "put a text into the input line; FILE.safetensors: its variables"},
  {name = "edit", args = "name:source|file=nil", shown = {name = "NAME|FILE"},
   module = "nacre.file_commands", run = "edit",
   doc = "edit the last block, a function or a file in $EDITOR"},
  {name = "reload", args = "mode:auto|off=nil", module = "nacre.reload",
   doc = "reload modules whose file has changed"},
  {group = "keep", name = "history",
   args = "what:day=nil", shown = {what = "N] [DATE] [TEXT"},
   module = "nacre.input_history", about = true, varies = true, paged = true,
   form = "([n or text]) -> list of texts",
   doc = "list the last N inputs, or those of a day or with a text, and their "
     .. "times"},
  {name = "again", args = "which:any=nil", shown = {which = "N | N-M"},
   module = "nacre.input_history",
   run = "again", call = "call_again", form = "([first[, last]])",
   doc = "run an input of the history again, by default the last one"},
  {name = "save",
   args = "file:file|off, names...:variable=nil, *, test=false, " ..
          "no_values=false, all=false, transcript=false, " ..
          "record=false, force=false",
   shown = {file = "FILE", ["names..."] = "N-M | NAMES"},
   options = {test = "as a test: FILE.nacre, with output and values",
              no_values = "with --test: without the values of variables",
              all = "also the inputs that failed",
              transcript = "as the session looks, with its output",
              record = "as it looks, from now on; --record off ends it",
              force = "replaces a file that exists"},
   module = "nacre.save_session", about = true,
   doc = "save inputs that succeeded as a script, the session as it looks; " ..
         "FILE.safetensors: the variables"},
}
