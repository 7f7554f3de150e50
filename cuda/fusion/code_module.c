/* SPDX-License-Identifier: MIT */
/*
** code_module.c - the functions of the driver's library that load and launch
** code which was compiled at run time.  CUDA's runtime has such functions only
** in newer releases.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/fusion/code_module.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/fusion/code_abi.h"

static struct {
  int tried, found;
#define X(name, symbol, params) int(*name) params;
  DRIVER_FUNCTIONS(X)
#undef X
} driver;

#ifdef NC_EMULATED

static int find(void *f, const char *symbol) {
  EmuFunction p = emu_driver(symbol);
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

#else

static int find(void *f, const char *symbol) {
  const char *other = getenv("NACRE_CUDA_DRIVER");
  static void *library;
  void *p;
  if (library == NULL)
    library = dlopen(other ? other : "libcuda.so.1", RTLD_NOW);
  p = library ? dlsym(library, symbol) : NULL;
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

#endif

static int open_driver(void) {
  if (!driver.tried) {
    driver.tried = 1;
#define X(name, symbol, params) find(&driver.name, #symbol) &&
    driver.found = DRIVER_FUNCTIONS(X) 1;
#undef X
  }
  if (driver.found) return NC_OK;
  return nc_fail(NC_EDEVICE, "the driver's library lacks functions that load "
                             "code");
}

static int check(int status, const char *what) {
  const char *text = NULL;
  if (status == 0) return NC_OK;
  driver.error(status, &text);
  return nc_fail(status == OUT_OF_MEMORY ? NC_ENOMEM : NC_EDEVICE,
                 "%s: %s (status %d)", what, text ? text : "it failed", status);
}

int nc_load_module(Module *m, const void *image) {
  *m = NULL;
  TRY(open_driver());
  return check(driver.load(m, image), "the driver does not load the code");
}

void nc_unload_module(Module m) {
  if (m) driver.unload(m);
}

int nc_module_kernel(Kernel *k, Module m, const char *name) {
  return check(driver.kernel(k, m, name), "the code lacks its kernel");
}

/* The numbers of errors are those of cudaError_t. */
int nc_launch_kernel(Kernel k, const unsigned grid[3], const unsigned block[3],
                     unsigned shared, cudaStream_t stream, void **parameter) {
  return nc_cudastatus((cudaError_t)driver.launch(
      k, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
      stream, parameter, NULL));
}

int nc_kernel_facts(Kernel k, KernelFacts *f) {
  const struct {
    int which, *to;
  } all[] = { { REGISTERS, &f->registers },
              { SHARED, &f->shared },
              { LOCAL, &f->local },
              { CONSTANT, &f->constant },
              { THREADS, &f->threads } };
  memset(f, 0, sizeof *f);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    TRY(check(driver.attribute(all[i].to, all[i].which, k), "the kernel"));
  return NC_OK;
}

int nc_kernel_occupancy(Kernel k, int threads, unsigned shared, int *blocks) {
  *blocks = 0;
  return check(driver.occupancy(blocks, k, threads, shared), "the kernel");
}
