/* SPDX-License-Identifier: MIT */
/*
** host_compiler.c - NVRTC for the emulated device: the C++ compiler of the host
** makes a library of the text.  NACRE_NVRTC is the folder of Nacre's sources,
** whose headers it includes; CXX may name the compiler.
**
** Any thread may compile.  Nothing here is the emulator's but its headers.
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/emulation/emulation.h"
#include "cuda/emulation/libraries/named_functions.h"

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, COMPILATION = 6 };
enum { MAXNAMES = 8, MAXOPTIONS = 64 };

typedef struct Program {
  char *text, *names[MAXNAMES], *log, *image;
  size_t logsize, size;
  int nnames;
} Program;

static int version(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return SUCCESS;
}

static const char *status_text(int status) {
  return status == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

static int create(Program **p, const char *text, const char *file, int n,
                  const char *const *headers, const char *const *names) {
  (void)file, (void)n, (void)headers, (void)names;
  if ((*p = calloc(1, sizeof **p)) == NULL) return OUT_OF_MEMORY;
  (*p)->text = strdup(text);
  return (*p)->text ? SUCCESS : OUT_OF_MEMORY;
}

static int destroy(Program **p) {
  for (int i = 0; i < (*p)->nnames; i++) free((*p)->names[i]);
  free((*p)->text);
  free((*p)->log);
  free((*p)->image);
  free(*p);
  *p = NULL;
  return SUCCESS;
}

static int add_name(Program *p, const char *name) {
  if (p->nnames == MAXNAMES) return OUT_OF_MEMORY;
  p->names[p->nnames] = strdup(name);
  return p->names[p->nnames++] ? SUCCESS : OUT_OF_MEMORY;
}

static int lowered(Program *p, const char *name, const char **to) {
  for (int i = 0; i < p->nnames; i++)
    if (strcmp(p->names[i], name) == 0) *to = p->names[i];
  return SUCCESS;
}

/*
** The compiler
*/
static char *read_all(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  char *p = NULL;
  long n;
  if (f == NULL) return NULL;
  if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 &&
      (p = malloc((size_t)n + 1)) != NULL) {
    rewind(f);
    *size = fread(p, 1, (size_t)n, f);
    p[*size] = '\0';
  }
  fclose(f);
  return p;
}

static int write_text(const Program *p, const char *path) {
  FILE *f = fopen(path, "w");
  if (f == NULL) return 0;
  fprintf(f,
          "#include \"cuda/emulation/libraries/compiled.h\"\n"
          "#line 1 \"fused.cu\"\n%s\n",
          p->text);
  for (int i = 0; i < p->nnames; i++)
    fprintf(f, "EMU_EXPORT(%d, %s)\n", i, p->names[i]);
  return fclose(f) == 0;
}

/* Signals are blocked in the thread; the compiler needs them. */
static int run(const char *const arguments[], const char *log) {
  pid_t child;
  int status = -1;
  if ((child = fork()) == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (freopen(log, "w", stderr) == NULL) _exit(127);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
  }
  if (child > 0) waitpid(child, &status, 0);
  return status == 0;
}

/* Makes the library `to' of the text `from'.  Options that define macros are
   passed on. */
static int call_compiler(const char *from, const char *to, const char *log,
                         int n, const char *const *options) {
  static const char *const usual[] = { "-std=c++17",
                                       "-O1",
                                       "-fPIC",
                                       "-shared",
                                       "-w",
                                       "-fno-rtti",
                                       "-fno-exceptions",
                                       "-fvisibility=hidden",
                                       "-ffp-contract=off",
                                       "-x",
                                       "c++",
                                       "-DNC_EMULATED" };
  const char *all[MAXOPTIONS + 24], *cxx = getenv("CXX");
  char include[4200];
  int count = 0;
  snprintf(include, sizeof include, "-I%s", getenv("NACRE_NVRTC"));
  all[count++] = cxx && *cxx ? cxx : "c++";
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    all[count++] = usual[i];
  all[count++] = include;
  for (int i = 0; i < n && i < MAXOPTIONS; i++)
    if (strncmp(options[i], "-D", 2) == 0) all[count++] = options[i];
  all[count++] = from;
  all[count++] = "-o";
  all[count++] = to;
  all[count] = NULL;
  return run(all, log);
}

static int compile(Program *p, int n, const char *const *options) {
  char folder[] = "/tmp/nacre-emulated-XXXXXX", from[64], to[64], log[64];
  int ok;
  if (mkdtemp(folder) == NULL) return OUT_OF_MEMORY;
  snprintf(from, sizeof from, "%s/text.cu", folder);
  snprintf(to, sizeof to, "%s/code.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  ok = write_text(p, from) && call_compiler(from, to, log, n, options);
  p->log = read_all(log, &p->logsize);
  if (ok) p->image = read_all(to, &p->size);
  unlink(from);
  unlink(to);
  unlink(log);
  rmdir(folder);
  return p->image ? SUCCESS : COMPILATION;
}

static int image_size(Program *p, size_t *n) {
  *n = p->size;
  return SUCCESS;
}

static int image(Program *p, char *to) {
  memcpy(to, p->image, p->size);
  return SUCCESS;
}

static int log_size(Program *p, size_t *n) {
  *n = p->log ? p->logsize + 1 : 0;
  return SUCCESS;
}

static int get_log(Program *p, char *to) {
  memcpy(to, p->log, p->logsize + 1);
  return SUCCESS;
}

static int no_ptx_size(Program *p, size_t *n) {
  (void)p;
  *n = 0;
  return SUCCESS;
}

static int no_ptx(Program *p, char *to) {
  (void)p, (void)to;
  return SUCCESS;
}

static int arch_count(int *n) {
  *n = 1;
  return SUCCESS;
}

static int arch_list(int *list) {
  list[0] = 90;
  return SUCCESS;
}

EmuFunction emu_nvrtc(const char *symbol) {
  static const NamedFunction table[] = {
    NAMED("nvrtcVersion", version),
    NAMED("nvrtcGetErrorString", status_text),
    NAMED("nvrtcCreateProgram", create),
    NAMED("nvrtcDestroyProgram", destroy),
    NAMED("nvrtcCompileProgram", compile),
    NAMED("nvrtcAddNameExpression", add_name),
    NAMED("nvrtcGetLoweredName", lowered),
    NAMED("nvrtcGetPTXSize", no_ptx_size),
    NAMED("nvrtcGetPTX", no_ptx),
    NAMED("nvrtcGetCUBINSize", image_size),
    NAMED("nvrtcGetCUBIN", image),
    NAMED("nvrtcGetProgramLogSize", log_size),
    NAMED("nvrtcGetProgramLog", get_log),
    NAMED("nvrtcGetNumSupportedArchs", arch_count),
    NAMED("nvrtcGetSupportedArchs", arch_list),
    { NULL, NULL },
  };
  return emu_named(table, symbol);
}
