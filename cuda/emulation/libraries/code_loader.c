/* SPDX-License-Identifier: MIT */
/*
** code_loader.c - the functions of the driver's library for code that was
** compiled at run time: an image is a library that host_compiler.c has made.
*/
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/emulation/libraries/compiled_table.h"
#include "cuda/emulation/libraries/named_functions.h"
#include "cuda/emulation/internal.h"

enum {
  SUCCESS = 0,
  INVALID = 1,
  NO_MEMORY = 2,
  BAD_IMAGE = 200,
  NOT_FOUND = 500
};
enum { MAXKERNELS = 8 };

typedef struct Kernel {
  size_t (*pack)(void **args, void *to);
  void (*run)(const void *closure);
} Kernel;

typedef struct Module {
  void *library;
  Kernel kernel[MAXKERNELS];
} Module;

static const EmuTable table = { .place = &emu_place,
                                .inexact = &emu_inexact,
                                .barrier = emu_barrier,
                                .warp = emu_warp,
                                .lane = emu_lane,
                                .shared = emu_shared,
                                .shared_dynamic = emu_shared_dynamic,
                                .atomic_begin = emu_atomic_begin,
                                .atomic_end = emu_atomic_end,
                                .inexact_float = emu_inexact_float,
                                .inexact_double = emu_inexact_double };

/* *f = the function of that name; ISO C has no cast from void *. */
static int find(void *f, void *library, const char *name, int i) {
  char symbol[32];
  void *p;
  snprintf(symbol, sizeof symbol, "%s_%d", name, i);
  p = dlsym(library, symbol);
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

/* The size of an ELF file, to the end of its table of sections; 0: it is
   none. */
static size_t image_size(const void *image) {
  const unsigned char *p = image;
  uint64_t table_at;
  uint16_t machine, each, count;
  if (memcmp(p, "\177ELF\2", 5) != 0) return 0;
  memcpy(&machine, p + 18, sizeof machine);
  if (machine == 190) return 0; /* of a real device */
  memcpy(&table_at, p + 40, sizeof table_at);
  memcpy(&each, p + 58, sizeof each);
  memcpy(&count, p + 60, sizeof count);
  return table_at + (size_t)each * count;
}

static void *open_image(const void *image, size_t size) {
  char path[] = "/tmp/nacre-emulated-XXXXXX";
  const int fd = mkstemp(path);
  void *library = NULL;
  if (fd < 0) return NULL;
  if (write(fd, image, size) == (ssize_t)size)
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  close(fd);
  unlink(path);
  return library;
}

static int load(Module **m, const void *image) {
  void (*connect)(const EmuTable *t);
  const size_t size = image_size(image);
  void *library, *p;
  emu_start();
  if (size == 0 || (library = open_image(image, size)) == NULL)
    return BAD_IMAGE;
  p = dlsym(library, "emu_connect");
  if (p == NULL || (*m = calloc(1, sizeof **m)) == NULL) {
    dlclose(library);
    return p ? NO_MEMORY : BAD_IMAGE;
  }
  memcpy(&connect, &p, sizeof p);
  connect(&table);
  (*m)->library = library;
  return SUCCESS;
}

static int unload(Module *m) {
  emu_awaitdevice(-1);
  dlclose(m->library);
  free(m);
  return SUCCESS;
}

static int get_kernel(Kernel **k, Module *m, const char *name) {
  for (int i = 0; i < MAXKERNELS; i++) {
    char symbol[32];
    const char *other;
    snprintf(symbol, sizeof symbol, "emu_name_%d", i);
    if ((other = dlsym(m->library, symbol)) == NULL) break;
    if (strcmp(name, other) != 0) continue;
    *k = &m->kernel[i];
    if (find(&(*k)->pack, m->library, "emu_pack", i) &&
        find(&(*k)->run, m->library, "emu_run", i))
      return SUCCESS;
  }
  return NOT_FOUND;
}

static int launch(Kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared,
                  cudaStream_t stream, void **parameter, void **extra) {
  const void *code;
  EmuLaunch l = { .grid = { gx, gy, gz },
                  .block = { bx, by, bz },
                  .shared = shared,
                  .stream = stream,
                  .run = k->run };
  _Alignas(16) char closure[8192];
  cudaError_t e;
  (void)extra;
  if (k->pack(parameter, NULL) > sizeof closure) return INVALID;
  memcpy(&code, &k->run, sizeof code);
  l.kernel = code;
  e = emu_launch(&l, closure, k->pack(parameter, closure));
  return (int)e;
}

/* The emulation knows neither registers nor occupancy. */
static int attribute(int *value, int which, Kernel *k) {
  (void)k;
  *value = which == 0 ? 1024 : 0;
  return SUCCESS;
}

static int occupancy(int *blocks, Kernel *k, int threads, size_t shared) {
  (void)k, (void)shared;
  *blocks = threads > 0 ? 2048 / threads : 0;
  return SUCCESS;
}

static int error_text(int status, const char **text) {
  *text = status == BAD_IMAGE   ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : status == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
                                : "CUDA_ERROR";
  return SUCCESS;
}

EmuFunction emu_driver(const char *symbol) {
  static const NamedFunction functions[] = {
    NAMED("cuModuleLoadData", load),
    NAMED("cuModuleUnload", unload),
    NAMED("cuModuleGetFunction", get_kernel),
    NAMED("cuLaunchKernel", launch),
    NAMED("cuFuncGetAttribute", attribute),
    NAMED("cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy),
    NAMED("cuGetErrorString", error_text),
    { NULL, NULL },
  };
  return emu_named(functions, symbol);
}
