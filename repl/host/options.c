/* SPDX-License-Identifier: MIT */
/*
** options.c - parses the command line. Options end at the first word that is
** not an option, as in lua5.4. -e, -l and -p are parsed twice: here, and when
** they run.
*/

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/nacre.h"
#include "core/file_formats.h"
#include "core/suggest.h"
#include "repl/host/repl.h"

enum Argument { NONE, REQUIRED, OPTIONAL };

/* id, long name, whether it takes a value.  Lower-case ids are short too. */
static const struct Known {
  const char *name;
  int id;
  enum Argument arg;
} known[] = {
  { "-e", 'e', REQUIRED },       { "-l", 'l', REQUIRED },
  { "-p", 'p', REQUIRED },       { "-i", 'i', NONE },
  { "-v", 'v', NONE },           { "-E", 'E', NONE },
  { "-W", 'W', NONE },           { "-q", 'q', NONE },
  { "-h", 'h', NONE },           { "-V", 'V', NONE },
  { "--help", 'h', NONE },       { "--version", 'V', NONE },
  { "--seed", 's', REQUIRED },   { "--threads", 't', REQUIRED },
  { "--color", 'c', REQUIRED },  { "--ascii", 'a', NONE },
  { "--width", 'w', REQUIRED },  { "--no-history", 'H', NONE },
  { "--device", 'd', REQUIRED }, { "--doctor", 'D', NONE },
  { "--test", 'T', NONE },       { "--dtype", 'y', REQUIRED },
  { "--check", 'k', NONE },      { "--strict", 'S', NONE },
  { "--time", 'm', NONE },       { "--profile", 'P', OPTIONAL },
  { "--nan", 'n', REQUIRED },    { "--deterministic", 'f', NONE },
  { "--rc", 'r', REQUIRED },     { "--no-rc", 'R', NONE },
  { "--peak", 'K', NONE },       { "--plain", 'O', NONE },
  { "--kernel", 'N', REQUIRED }, { "--prefix", 'X', REQUIRED },
  { "--user", 'U', NONE },       { "--install-kernel", 'I', NONE },
  { "--ls", 'L', NONE },         { "--diff", 'L', NONE },
  { "--convert", 'L', NONE },    { "--build-mpi", 'B', OPTIONAL },
  { "--ranks", 'M', REQUIRED },  { "--launch", 'G', REQUIRED },
  { "--worker", 'Z', NONE },     { "--tour", 'J', NONE },
};

enum { NKNOWN = sizeof known / sizeof *known };

static const char usage[] =
    "usage: nacre [options] [script [args] | file of tensors ...]\n"
    "\n"
    "Lua-compatible (same meaning as lua5.4):\n"
    "  -e STAT            run STAT (repeatable, in order)\n"
    "  -l MOD, -l g=MOD   require MOD into a global\n"
    "  -i                 enter the shell after the script or -e\n"
    "  -v                 version\n"
    "  -E                 ignore LUA_INIT, LUA_PATH and the like, "
    "NACRE_DEVICE,\n"
    "                     the start-up file and the history\n"
    "  -W                 turn warnings on (the default; warn \"@off\" "
    "turns\n"
    "                     them off)\n"
    "  --                 end of options\n"
    "  -                  run stdin as a script\n"
    "Shell:\n"
    "  -p EXPR            print the value(s) of EXPR as the shell would\n"
    "  -q                 no banner\n"
    "  -V, --version      the version, its commit, libraries and compiler\n"
    "  -h, --help         this text\n"
    "  --device NAME      create new tensors on cpu, cuda, cuda:1 or auto "
    "(a GPU\n"
    "                     if there is one); also NACRE_DEVICE\n"
    "  --dtype T          dtype of new float tensors: float32, ...\n"
    "  --seed N           seed of the random numbers\n"
    "  --threads N        number of CPU threads\n"
    "  --check            compile the script, do not run it\n"
    "  --strict           an undefined global is an error\n"
    "  --time             at the end, print time, memory and rates to "
    "stderr\n"
    "  --profile[=FILE]   at the end, print a table of the operations\n"
    "  --nan=off|warn|trap\n"
    "                     what to do if finite numbers give nan or inf\n"
    "  --deterministic    the same numbers at every run: a fixed seed, and\n"
    "                     libraries use fixed algorithms\n"
    "  --color=auto|always|never\n"
    "  --ascii            write only ASCII\n"
    "  --width N          width of the output\n"
    "  --plain            the prompt without colours, suggestions and "
    "menus,\n"
    "                     for screen readers\n"
    "  --rc FILE, --no-rc the shell's start-up file, or none\n"
    "  --no-history       neither read nor write the history\n"
    "  --tour             a session that explains itself, step by step\n"
    "  --doctor           show the devices, libraries, terminal and files "
    "that\n"
    "                     are found\n"
    "  --peak             measure the peak rates of this machine, for the\n"
    "                     percentages of :time, and save them\n"
    "  --test [PATH...]   run regression tests (--test --help says more)\n"
    "Several processes:\n"
    "  --ranks N          one prompt for N processes, started by mpirun; a "
    "script,\n"
    "                     or -e, runs on all of them\n"
    "  --launch COMMAND   the same, started by COMMAND, such as srun\n"
    "  --worker           be one of them; the launcher starts it\n"
    "  --build-mpi[=DIR]  build the plug-in for the MPI of this machine with "
    "mpicc,\n"
    "                     for nacre.distributed\n"
    "Jupyter:\n"
    "  --install-kernel   register this program as a kernel for notebooks\n"
    "  --user, --prefix DIR\n"
    "                     where: in your home, the default, or below DIR\n"
    "  --kernel FILE      be a kernel; Jupyter writes FILE\n"
    "Files of tensors:\n"
    "  FILE...            opens the shell with the content in `file' "
    "(several:\n"
    "                     in `files'); names end in\n"
    " " FORMAT_EXTENSIONS " .gz\n"
    "  --ls FILE...       list the tensors (--ls --help says more)\n"
    "  --diff A B         compare tensor by tensor: status 0 if equal, 1 if "
    "not\n"
    "  --convert A B      write what A holds in the format of B\n"
    "\n"
    "Without a script: opens the shell at a terminal, else runs stdin.\n"
    "Exit status: 0, 1 after an error, 2 for bad usage, 77 after skip(),\n"
    "130 (death by SIGINT) after Ctrl-C, or what os.exit says.\n";

void sh_help(void) {
  fputs(usage, stdout);
}

int sh_usage(void) {
  fputs("usage: nacre [options] [script [args]]   (--help for the list)\n",
        stderr);
  return -1;
}

static int unknown(const char *word) {
  const char *names[NKNOWN + 1];
  int i, n = (int)strcspn(word, "=");
  char name[32];
  for (i = 0; i < NKNOWN; i++) names[i] = known[i].name;
  names[NKNOWN] = NULL;
  char shown[80];
  fprintf(stderr, SH_NAME ": unknown option %s",
          nc_printable(shown, sizeof shown, word, (size_t)n));
  snprintf(name, sizeof name, "%.*s", n, word);
  const char *close = nc_nearest(name, names);
  if (close != NULL) fprintf(stderr, ", did you mean %s?", close);
  fputc('\n', stderr);
  return sh_usage();
}

/* Does word name k, and is there a value in it (-eSTAT, --seed=1)? */
static int matches(const struct Known *k, const char *word,
                   const char **value) {
  size_t n = strlen(k->name);
  *value = NULL;
  if (strncmp(word, k->name, n) != 0) return 0;
  if (word[n] == '\0') return 1;
  if (k->arg == NONE) return 0;
  if (word[1] == '-' && word[n] != '=') return 0;
  *value = word + n + (word[1] == '-');
  return 1;
}

int sh_nextoption(char **argv, int *i, Option *o) {
  const char *word = argv[*i];
  int k;
  if (word == NULL || word[0] != '-' || word[1] == '\0') return 0;
  if (strcmp(word, "--") == 0) return ++*i, 0;
  for (k = 0; k < NKNOWN; k++) {
    if (!matches(&known[k], word, &o->value)) continue;
    o->id = known[k].id;
    ++*i;
    if (known[k].arg != REQUIRED || o->value != NULL) return 1;
    o->value = argv[*i];
    if (o->value != NULL) return ++*i, 1;
    fprintf(stderr, SH_NAME ": %s needs a value\n", word);
    return sh_usage();
  }
  return unknown(word);
}

static int number(long long *out, const Option *o, long long low,
                  long long high, const char *name) {
  char *end;
  errno = 0;
  *out = strtoll(o->value, &end, 0);
  if (errno == 0 && end != o->value && *end == '\0' && *out >= low &&
      *out <= high)
    return 0;
  fprintf(stderr, SH_NAME ": --%s needs an integer", name);
  if (low > LLONG_MIN) fprintf(stderr, " from %lld to %lld", low, high);
  fprintf(stderr, ", not '%s'\n", o->value);
  return sh_usage();
}

static int small(int *out, const Option *o, int low, const char *name) {
  long long n;
  if (number(&n, o, low, 1000000, name) != 0) return -1;
  *out = (int)n;
  return 0;
}

/* The index of the word among three; -1 after reporting an error. */
static int oneof(const char *const names[3], const char *word,
                 const char *option) {
  int i;
  for (i = 0; i < 3; i++)
    if (strcmp(word, names[i]) == 0) return i;
  fprintf(stderr, SH_NAME ": --%s is %s, %s or %s, not '%s'\n", option,
          names[0], names[1], names[2], word);
  return sh_usage();
}

static int color(enum Color *out, const char *word) {
  static const char *const names[3] = { "auto", "always", "never" };
  int i = oneof(names, word, "color");
  *out = (enum Color)i;
  return i < 0 ? -1 : 0;
}

static int watchnan(Options *o, const char *word) {
  static const char *const names[3] = { "off", "warn", "trap" };
  o->nan = word;
  return oneof(names, word, "nan") < 0 ? -1 : 0;
}

static int take(Options *o, const Option *x) {
  switch (x->id) {
    case 'e':
    case 'l':
    case 'p': o->code = 1; return 0;
    case 'i': o->interactive = 1; return 0;
    case 'v': o->version = 1; return 0;
    case 'E': o->noenv = o->nohistory = 1; return 0;
    case 'W': return 0;
    case 'q': o->quiet = 1; return 0;
    case 'h': o->help = 1; return 0;
    case 'V': o->longversion = 1; return 0;
    case 'd': o->device = x->value; return 0;
    case 'D': o->doctor = 1; return 0;
    case 'T': o->test = 1; return 0;
    case 'L': o->tool = 1; return 0;
    case 's':
      o->seeded = 1;
      return number(&o->seed, x, LLONG_MIN, LLONG_MAX, "seed");
    case 't': return small(&o->threads, x, 1, "threads");
    case 'w': return small(&o->width, x, 10, "width");
    case 'c': return color(&o->color, x->value);
    case 'n': return watchnan(o, x->value);
    case 'y': o->dtype = x->value; return 0;
    case 'k': o->check = 1; return 0;
    case 'S': o->strict = 1; return 0;
    case 'm': o->time = 1; return 0;
    case 'P': o->profile = x->value ? x->value : ""; return 0;
    case 'f': o->deterministic = 1; return 0;
    case 'r': o->rc = x->value; return 0;
    case 'R': o->norc = 1; return 0;
    case 'K': o->peak = 1; return 0;
    case 'J': o->tour = 1; return 0;
    case 'N': o->kernel = x->value; return 0;
    case 'I': o->installkernel = 1; return 0;
    case 'M': return small(&o->ranks, x, 1, "ranks");
    case 'G': o->launch = x->value; return 0;
    case 'Z': o->worker = 1; return 0;
    case 'B': o->build_mpi = x->value ? x->value : ""; return 0;
    case 'X': o->prefix = x->value; return 0;
    case 'U': o->user = 1; return 0;
    case 'a': o->ascii = 1; return 0;
    case 'O': o->plain = 1; return 0;
    default: o->nohistory = 1; return 0;
  }
}

/* What follows --test or --ls, argv[i] and on, is for that. */
static int rest(Options *o, int i) {
  *(o->test ? &o->test : &o->tool) = i;
  if (i == 2) return 0;
  fprintf(stderr,
          SH_NAME ": %s must be the first option; its own options follow it\n",
          o->argv[i - 1]);
  return sh_usage();
}

/* --user and --prefix belong to --install-kernel; one of them is enough. */
static int where(const Options *o) {
  const char *wrong = o->user && o->prefix ? "--user and --prefix exclude "
                                             "each other"
                      : (o->user || o->prefix) && !o->installkernel
                          ? "--user and --prefix need --install-kernel"
                          : NULL;
  if (wrong == NULL) return 0;
  fprintf(stderr, SH_NAME ": %s\n", wrong);
  return sh_usage();
}

int sh_options(Options *o, char **argv) {
  Option x;
  int i = argv[0] != NULL, more = 0;
  memset(o, 0, sizeof *o);
  o->argv = argv;
  while (!o->test && !o->tool && (more = sh_nextoption(argv, &i, &x)) > 0)
    if (take(o, &x) != 0) return -1;
  if (o->test || o->tool) return rest(o, i);
  if (more < 0) return -1;
  if (argv[i] != NULL) *(sh_istensorfile(argv[i]) ? &o->files : &o->script) = i;
  return where(o);
}
