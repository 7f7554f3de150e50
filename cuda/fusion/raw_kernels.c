/* SPDX-License-Identifier: MIT */
/*
** raw_kernels.c - kernels of the user's own text: compiled while the user
** waits, for each compute capability at the first use on a device of it.
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/fusion/code_module.h"
#include "cuda/fusion/nvrtc.h"
#include "cuda/runtime/gpu.h"

enum { MAXOPTIONS = 32 };

struct RawKernel {
  char *text, *name;
  char *option[MAXOPTIONS + 1];
  char *ptx; /* of what was compiled first */
  struct {
    Module module;
    Kernel kernel;
  } on[MAXDEVICES];
};

static char *latest_log;

static int copy_source(RawKernel *k, const RawSource *s) {
  int n = 0;
  k->text = strdup(s->text);
  k->name = strdup(s->name);
  if (k->text == NULL || k->name == NULL) return 0;
  for (; s->option[n] && n < MAXOPTIONS; n++)
    if ((k->option[n] = strdup(s->option[n])) == NULL) return 0;
  return 1;
}

/* Compiles it for g, and loads it.  *log: as in newkernel. */
static int compile(RawKernel *k, Gpu *g, const char **log) {
  const char *const names[] = { k->name, NULL };
  const CompileJob job = { .text = k->text,
                           .file = "kernel.cu",
                           .kernel = names,
                           .option = (const char *const *)k->option,
                           .capability = g->capability };
  Compiled c;
  int r = NC_OK;
  if (!nc_compile(&job, &c)) {
    free(latest_log);
    latest_log = c.why[0] ? NULL : c.log;
    if (latest_log) c.log = NULL;
    *log = latest_log;
    r = nc_fail(NC_EVALUE, "%s",
                c.why[0] ? c.why : "the compiler does not accept the text");
    nc_compiled_free(&c);
    return r;
  }
  nc_activate(g);
  r = nc_load_module(&k->on[g->ordinal].module, c.image);
  if (r == NC_OK)
    r = nc_module_kernel(&k->on[g->ordinal].kernel, k->on[g->ordinal].module,
                         c.name[0]);
  if (k->ptx == NULL) {
    k->ptx = c.ptx;
    c.ptx = NULL;
  }
  nc_compiled_free(&c);
  return r;
}

/* *kernel = that for device i. */
static int kernel_on(Kernel *kernel, RawKernel *k, int i, const char **log) {
  *log = NULL;
  TRY(nc_check_number(i));
  TRY(nc_open(&nc_gpu[i]));
  if (k->on[i].kernel == NULL) TRY(compile(k, &nc_gpu[i], log));
  *kernel = k->on[i].kernel;
  return NC_OK;
}

int nc_cuda_newkernel(RawKernel **k, int i, const RawSource *s,
                      const char **log) {
  Kernel unused;
  int r;
  *k = NULL;
  *log = NULL;
  if (!nc_nvrtc_open()) {
    nc_fail(NC_EDEVICE, "%s", nc_nvrtc_info());
#ifndef NC_EMULATED
    nc_hint("the CUDA toolkit has it, and the package nvidia-cuda-nvrtc");
#endif
    return NC_EDEVICE;
  }
  if ((*k = calloc(1, sizeof **k)) == NULL || !copy_source(*k, s))
    r = nc_fail(NC_ENOMEM, "out of memory");
  else r = kernel_on(&unused, *k, i, log);
  if (r == NC_OK) return NC_OK;
  nc_cuda_freekernel(*k);
  *k = NULL;
  return r;
}

/* Modules that are unloaded while their kernel runs: the driver waits. */
void nc_cuda_freekernel(RawKernel *k) {
  if (k == NULL) return;
  for (int i = 0; i < nc_gpus; i++) {
    if (k->on[i].module == NULL || !nc_gpu[i].isopen) continue;
    nc_activate(&nc_gpu[i]);
    nc_unload_module(k->on[i].module);
  }
  for (int i = 0; i < MAXOPTIONS; i++) free(k->option[i]);
  free(k->text);
  free(k->name);
  free(k->ptx);
  free(k);
}

int nc_cuda_launchkernel(RawKernel *k, const RawLaunch *l) {
  const char *log;
  const Device *d;
  Kernel kernel;
  TRY(kernel_on(&kernel, k, l->device, &log));
  d = &nc_gpu[l->device].device;
  for (int i = 0; i < l->ntensors; i++) nc_used(d, l->tensor[i]);
  TRY(nc_launch_kernel(kernel, l->grid, l->block, l->shared,
                       nc_current_stream(d), l->parameter));
  return nc_check_launch(d, "cuda.kernel");
}

int nc_cuda_kernelfacts(RawKernel *k, int i, int threads, RawFacts *f) {
  KernelFacts facts;
  const char *log;
  Kernel kernel;
  memset(f, 0, sizeof *f);
  TRY(kernel_on(&kernel, k, i, &log));
  nc_activate(&nc_gpu[i]);
  TRY(nc_kernel_facts(kernel, &facts));
  f->registers = facts.registers;
  f->local = facts.local;
  f->shared = facts.shared;
  f->constant = facts.constant;
  f->threads = facts.threads;
  return nc_kernel_occupancy(kernel, threads, 0, &f->blocks);
}

const char *nc_cuda_kernelptx(const RawKernel *k) {
  return k->ptx;
}
