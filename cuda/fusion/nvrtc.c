/* SPDX-License-Identifier: MIT */
/*
** nvrtc.c - finds NVRTC and compiles with it.  The library has 100 MB, and may
** be missing, so it is opened when the first text is to be compiled.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/fusion/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cuda/cuda.h"
#include "cuda/fusion/code_abi.h"
#include "cuda/fusion/embedded.h"
#include "cuda/runtime/libraries.h"

static struct {
  int major, minor;
  int newest; /* capability for which it compiles */
#define X(name, symbol, params) int(*name) params;
  NVRTC_FUNCTIONS(X)
#undef X
} nvrtc;

static CudaLibrary library;

/*
** The library
*/
/* The newest architecture that the library compiles for; 0: it does not say. */
static int newest_architecture(void) {
  int list[128], n = 0, newest = 0;
  if (nvrtc.archs(&n) != NVRTC_DONE || n < 1 || n > 128 ||
      nvrtc.archlist(list) != NVRTC_DONE)
    return 0;
  for (int i = 0; i < n; i++)
    if (list[i] > newest) newest = list[i];
  return newest;
}

static int bind(const char *path) {
#define X(name, symbol, params) \
  nc_library_function(&library, &nvrtc.name, #symbol) &&
  if (!(NVRTC_FUNCTIONS(X) 1)) return 0;
#undef X
  if (nvrtc.version(&nvrtc.major, &nvrtc.minor) != NVRTC_DONE ||
      nvrtc.major < 12)
    return 0;
  nvrtc.newest = newest_architecture();
  snprintf(library.info, sizeof library.info, "NVRTC %d.%d (%s)", nvrtc.major,
           nvrtc.minor, path);
  return 1;
}

/* One of the release that the plug-in was built with first: a newer one may
   make code that the driver does not know. */
static CudaLibrary library = {
  .title = "NVRTC",
  .name = "nvrtc",
  .variable = "NACRE_NVRTC",
  .without = "",
  .versions = { CUDART_VERSION / 1000, CUDART_VERSION / 1000 == 12 ? 13 : 12 },
  .bind = bind,
};

#ifdef NC_EMULATED

/* The emulated device has a compiler only if NACRE_NVRTC says which: a folder
   with Nacre's sources, for the host's compiler; or the path of a real NVRTC,
   whose code cannot run. */
static void choose_emulated(void) {
  const char *given = getenv(library.variable);
  struct stat s;
  if (given == NULL || *given == '\0') {
    library.tried = 1;
    snprintf(library.info, sizeof library.info,
             "NVRTC is missing (the emulated device has no compiler)");
  } else if (stat(given, &s) == 0 && S_ISDIR(s.st_mode)) {
    library.emulated = emu_nvrtc;
  }
}

#endif

int nc_nvrtc_open(void) {
#ifdef NC_EMULATED
  if (!library.tried) choose_emulated();
#endif
  return nc_open_library(&library);
}

const char *nc_nvrtc_info(void) {
  return library.tried ? library.info : "NVRTC: not opened yet";
}

int nc_nvrtc_version(void) {
  return nvrtc.major * 1000 + nvrtc.minor * 10;
}

/*
** Headers
*/
enum { MAXHEADERS = 32 };

/* FNV-1a. */
unsigned long long nc_hash(unsigned long long h, const void *p, size_t n) {
  const unsigned char *c = p;
  for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 1099511628211u;
  return h;
}

unsigned long long nc_headers_hash(void) {
  static unsigned long long h;
  if (h) return h;
  h = 14695981039346656037u;
  for (const Embedded *e = nc_kernel_headers; e->name; e++)
    h = nc_hash(h, e->text, e->size);
  return h;
}

/* The name by which a text includes the header: some stand for others. */
static const char *include_name(const char *path) {
  static const char folder[] = "cuda/fusion/headers/";
  const size_t n = sizeof folder - 1;
  if (strncmp(path, folder, n) != 0) return path;
  if (strcmp(path + n, "nvrtc_device.h") == 0) return "cuda/device.h";
  if (strcmp(path + n, "nvrtc_tensor.h") == 0) return "core/tensor.h";
  return path + n;
}

static int list_headers(const char *text[], const char *name[]) {
  int n = 0;
  for (const Embedded *e = nc_kernel_headers; e->name && n < MAXHEADERS; e++) {
    text[n] = (const char *)e->text;
    name[n++] = include_name(e->name);
  }
  return n;
}

/*
** Compiling
*/
static char *get_text(Program p, int (*size)(Program p, size_t *n),
                      int (*get)(Program p, char *text), size_t *length) {
  size_t n = 0;
  char *text;
  if (size(p, &n) != NVRTC_DONE || n == 0) return NULL;
  if ((text = malloc(n + 1)) == NULL) return NULL;
  if (get(p, text) != NVRTC_DONE) return free(text), NULL;
  text[n] = '\0';
  if (length) *length = n;
  return text;
}

static int fail(Compiled *out, const char *what) {
  snprintf(out->why, sizeof out->why, "%s", what);
  return 0;
}

/* Fails with the meaning of a status other than errors in the text. */
static int check(Compiled *out, int status) {
  const char *(*text)(int);
  if (status == NVRTC_DONE) return 1;
  memcpy(&text, &nvrtc.text, sizeof text);
  snprintf(out->why, sizeof out->why, "NVRTC failed: %s (status %d)",
           text(status), status);
  return 0;
}

static int run_compiler(Program p, const CompileJob *job, Compiled *out) {
  const int newest = nvrtc.newest && nvrtc.newest < job->capability;
  const char *options[64];
  char arch[48];
  int n = 0, status;
  snprintf(arch, sizeof arch, "--gpu-architecture=%s_%d",
           newest ? "compute" : "sm", newest ? nvrtc.newest : job->capability);
  options[n++] = arch;
  options[n++] = "--std=c++17";
  for (int i = 0; job->option && job->option[i] && n < 64; i++)
    options[n++] = job->option[i];
  for (int i = 0; job->kernel[i]; i++)
    if (!check(out, nvrtc.add(p, job->kernel[i]))) return 0;
  status = nvrtc.compile(p, n, options);
  out->log = get_text(p, nvrtc.logsize, nvrtc.log, NULL);
  if (status != NVRTC_DONE)
    return status == NVRTC_WRONG_TEXT ? 0 : check(out, status);
  out->ptx = get_text(p, nvrtc.ptxsize, nvrtc.ptx, NULL);
  if (!newest)
    out->image = get_text(p, nvrtc.cubinsize, nvrtc.cubin, &out->size);
  else if (out->ptx && (out->image = strdup(out->ptx)) != NULL)
    out->size = strlen(out->image) + 1;
  return out->image ? 1 : fail(out, "NVRTC gave no code");
}

static int get_names(Program p, const CompileJob *job, Compiled *out) {
  for (int i = 0; job->kernel[i] && i < NC_MAXKERNELS; i++) {
    const char *name = NULL;
    if (!check(out, nvrtc.lowered(p, job->kernel[i], &name))) return 0;
    if ((out->name[i] = strdup(name)) == NULL)
      return fail(out, "out of memory");
  }
  return 1;
}

int nc_compile(const CompileJob *job, Compiled *out) {
  const char *text[MAXHEADERS], *name[MAXHEADERS];
  const int n = job->own_headers ? list_headers(text, name) : 0;
  Program p = NULL;
  int ok;
  memset(out, 0, sizeof *out);
  if (!check(out, nvrtc.create(&p, job->text, job->file, n, n ? text : NULL,
                               n ? name : NULL)))
    return 0;
  ok = run_compiler(p, job, out) && get_names(p, job, out);
  nvrtc.destroy(&p);
  return ok;
}

void nc_compiled_free(Compiled *c) {
  free(c->image);
  free(c->ptx);
  free(c->log);
  for (int i = 0; i < NC_MAXKERNELS; i++) free(c->name[i]);
  memset(c, 0, sizeof *c);
}
