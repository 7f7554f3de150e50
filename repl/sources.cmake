set(REPL_SOURCES
  coroutines.c doctor.c editor_plain.c history.c hooks.c host.c interrupt.c loop.c
  modules.c options.c paste.c report.c script.c terminal.c testserver.c
  textonly.c)
set(REPL_READLINE_SOURCES
  editor_readline.c readline_complete.c readline_keys.c)
set(REPL_MAIN main.c)
set(REPL_LUA
  commands.lua complete.lua display.lua errors.lua frames.lua grid.lua
  habits.lua help.lua inspect.lua lexer.lua lookup.lua save.lua shell.lua
  submit.lua test.lua testcheck.lua testclose.lua testdiagnose.lua
  testfile.lua testformats.lua testjobs.lua testmatch.lua testoptions.lua
  testplan.lua testreport.lua testrun.lua testupdate.lua units.lua
  values.lua whos.lua)
set(REPL_DEFINITIONS _DEFAULT_SOURCE)
