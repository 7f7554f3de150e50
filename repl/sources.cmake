set(REPL_SOURCES
  asks.c
  coroutines.c coverage.c doctor.c edit.c editor_plain.c history.c hooks.c host.c interrupt.c loop.c
  machine.c numbers.c nvml.c
  modules.c options.c paste.c report.c script.c terminal.c testfiles.c testserver.c
  tee.c textonly.c)
set(REPL_READLINE_SOURCES
  editor_readline.c readline_complete.c readline_keys.c)
set(REPL_MAIN main.c)
set(REPL_LUA
  absent.lua names.lua python.lua respell.lua silent.lua words.lua
  canvas.lua draw.lua graphics.lua heat.lua image.lua plot.lua progress.lua
  raster.lua sampling.lua sixel.lua
  commands.lua complete.lua counting.lua display.lua errors.lua frames.lua functions.lua
  files.lua globals.lua grid.lua modes.lua reload.lua results.lua roles.lua settings.lua
  calls.lua fits.lua foreign.lua phrases.lua record.lua session.lua source.lua watch.lua
  debug.lua dryrun.lua nanwatch.lua nonfinite.lua profile.lua reach.lua trace.lua watching.lua
  dotted.lua habits.lua help.lua inspect.lua narrow.lua numbers.lua lexer.lua lookup.lua reference.lua save.lua shell.lua
  paste.lua slips.lua submit.lua syntax.lua test.lua testassert.lua testcheck.lua testclose.lua testcover.lua testdiagnose.lua testdiff.lua testdebug.lua
  testfile.lua testfixtures.lua testformats.lua testgolden.lua testjobs.lua testline.lua testmatch.lua testoperands.lua testoptions.lua
  testplan.lua testreport.lua testreview.lua testroot.lua testrun.lua testupdate.lua testvalues.lua topics.lua units.lua
  bench.lua compare.lua difference.lua json.lua operands.lua parity.lua peak.lua sweep.lua time.lua timer.lua
  timefile.lua timestats.lua timetext.lua timing.lua
  values.lua whos.lua)
set(REPL_DEFINITIONS _DEFAULT_SOURCE)
# The reference, a page each, in the order of its index.
set(REPL_REFERENCE
  creation.nacre random.nacre tensors.nacre arithmetic.nacre
  exponentials.nacre trigonometry.nacre special.nacre comparison.nacre
  activations.nacre reductions.nacre statistics.nacre scans.nacre
  sorting.nacre indexing.nacre shape.nacre joining.nacre rearranging.nacre
  products.nacre linalg.nacre layers.nacre losses.nacre autograd.nacre
  files.nacre images.nacre cuda.nacre session.nacre)
