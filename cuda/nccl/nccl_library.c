/* SPDX-License-Identifier: MIT */
/* nccl_library.c - finds NCCL and binds its functions. */
#define _POSIX_C_SOURCE 200809L
#include "cuda/nccl/nccl_library.h"

#include <stdio.h>

#include "cuda/cuda.h"
#include "cuda/runtime/libraries.h"

static Nccl nccl;
static CudaLibrary library;

/* Binds the functions of the library at `path', if it is new enough. */
static int bind(const char *path) {
  int v = 0;
#define X(name, symbol, params) \
  nc_library_function(&library, &nccl.name, #symbol) &&
  if (!(NCCL_FUNCTIONS(X) 1)) return 0;
#undef X
#define X(name, symbol, params) \
  nc_library_function(&library, &nccl.name, #symbol);
  NCCL_NEWER(X)
#undef X
  if (nccl.version(&v) != NCCL_SUCCESS || v < NCCL_OLDEST) return 0;
  nccl.number = v;
  snprintf(library.info, sizeof library.info, "NCCL %d.%d.%d (%s)", v / 10000,
           v / 100 % 100, v % 100, path);
  return 1;
}

static CudaLibrary library = {
  .title = "NCCL",
  .name = "nccl",
  .variable = "NACRE_NCCL",
  .without = ": tensors pass from process to process through the host",
  .versions = { 2 },
  .bind = bind,
#ifdef NC_EMULATED
  .emulated = emu_nccl,
#endif
};

const Nccl *nc_nccl(void) {
  nc_open_library(&library);
  return &nccl;
}

const char *nc_nccl_text(Comm c, int result) {
  static char text[256];
  const char *(*name)(int result), *(*last)(Comm c), *detail = "";
  if (!nc_library_function(&library, &name, "ncclGetErrorString")) return "";
  if (nc_library_function(&library, &last, "ncclGetLastError"))
    detail = last(c);
  snprintf(text, sizeof text, "%s%s%.180s", name(result),
           detail && *detail ? ": " : "", detail ? detail : "");
  return text;
}

const char *nc_nccl_info(void) {
  return library.tried ? library.info : NULL;
}
