/* SPDX-License-Identifier: MIT */
/*
** cufft_library.c - cuFFT: finds and opens the library, keeps plans, and runs
** them in memory of our allocator.
**
** The library has some hundred megabytes, so it is opened by the first
** transform.  A plan is made once for each shape; of more than PLANS the oldest
** one is replaced.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/fourier/cufft_library.h"

#include <stdio.h>
#include <string.h>

#include "cuda/fourier/cufft_abi.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/probe.h"

#define PLANS 64

typedef struct FftPlan {
  FftLines lines;
  int ordinal, made, id;
  size_t room; /* bytes of its workspace */
} FftPlan;

static struct {
#define X(name, symbol, params) int(*name) params;
  FFT_FUNCTIONS(X)
#undef X
  FftPlan plan[PLANS];
  int next; /* to be replaced */
} fft;

static CudaLibrary library;

static int bind(const char *path) {
  int v = 0;
#define X(name, symbol, params) \
  nc_library_function(&library, &fft.name, #symbol) &&
  if (!(FFT_FUNCTIONS(X) 1)) return 0;
#undef X
  fft.version(&v); /* 12004 is 12.0.4 */
  snprintf(library.info, sizeof library.info, "cuFFT %d.%d.%d (%s)", v / 1000,
           v / 100 % 10, v % 100, path);
  return 1;
}

static CudaLibrary library = {
  .title = "cuFFT",
  .name = "cufft",
  .variable = "NACRE_CUFFT",
  .without = "; Fourier transforms run on the CPU",
  .versions = { 12, 11 },
  .bind = bind,
#ifdef NC_EMULATED
  .emulated = emu_cufft,
#endif
};

const char *nc_cufft_info(void) {
  return library.tried ? library.info : "cuFFT: not opened yet";
}

/*
** Plans
*/
static int type_of(const FftLines *l) {
  static const int type[][2] = { [FOURIER_COMPLEX] = { FFT_C2C, FFT_Z2Z },
                                 [FOURIER_OF_REAL] = { FFT_R2C, FFT_D2Z },
                                 [FOURIER_TO_REAL] = { FFT_C2R, FFT_Z2D } };
  return type[l->kind][l->wide];
}

static void destroy(FftPlan *p) {
  if (!p->made) return;
  nc_activate(&nc_gpu[p->ordinal]);
  fft.destroy(p->id);
  p->made = 0;
}

/* Makes the plan of l on the current device; returns cuFFT's status.  Signals
   are blocked, because the library may start threads. */
static int make(FftPlan *p, const FftLines *l) {
  long long n = l->n, any = l->n; /* with NULL for it steps have no effect */
  sigset_t before;
  int status;
  nc_holdsignals(&before);
  status = fft.create(&p->id);
  if (status == FFT_SUCCESS) {
    status = fft.allocates(p->id, 0);
    if (status == FFT_SUCCESS)
      status = fft.make(p->id, 1, &n, &any, l->step[0], l->line[0], &any,
                        l->step[1], l->line[1], type_of(l), l->batch, &p->room);
    if (status != FFT_SUCCESS) fft.destroy(p->id);
  }
  nc_freesignals(&before);
  p->made = status == FFT_SUCCESS;
  return status;
}

/* The plan of l on d; NULL: cuFFT has none.  It needs some memory of the device
   itself: without it, this frees the cache and tries again. */
static FftPlan *plan_of(const Device *d, const FftLines *l) {
  FftPlan *p;
  for (int i = 0; i < PLANS; i++) {
    p = &fft.plan[i];
    if (p->made && p->ordinal == d->ordinal &&
        memcmp(&p->lines, l, sizeof *l) == 0)
      return p;
  }
  p = &fft.plan[fft.next];
  fft.next = (fft.next + 1) % PLANS;
  destroy(p);
  nc_current_stream(d); /* makes d the current device */
  p->lines = *l;
  p->ordinal = d->ordinal;
  if (make(p, l) == FFT_SUCCESS) return p;
  cudaGetLastError();
  d->trim(d, 0);
  if (make(p, l) == FFT_SUCCESS) return p;
  cudaGetLastError();
  return NULL;
}

void nc_cufft_close(void) {
  for (int i = 0; i < PLANS; i++) destroy(&fft.plan[i]);
}

/*
** Transforms
*/
static int execute(const FftPlan *p, void *x, void *y) {
  const FftLines *l = &p->lines;
  const int to = l->inverse ? FFT_INVERSE : FFT_FORWARD;
  switch (l->kind) {
    case FOURIER_COMPLEX: return (l->wide ? fft.z2z : fft.c2c)(p->id, x, y, to);
    case FOURIER_OF_REAL: return (l->wide ? fft.d2z : fft.r2c)(p->id, x, y);
    default: return (l->wide ? fft.z2d : fft.c2r)(p->id, x, y);
  }
}

int nc_cufft(const Device *d, const FftLines *l, const void *x, void *y,
             int64_t times, const int64_t by[2], int *done) {
  FftPlan *p = nc_open_library(&library) ? plan_of(d, l) : NULL;
  void *room = NULL;
  int status;
  *done = 0;
  if (p == NULL) return NC_OK;
  if (p->room > 0) TRY(nc_scratch(d, &room, (int64_t)p->room));
  status = fft.setstream(p->id, nc_current_stream(d));
  if (status == FFT_SUCCESS && room) status = fft.setroom(p->id, room);
  for (int64_t i = 0; i < times && status == FFT_SUCCESS; i++) {
    status = execute(p, (char *)x + i * by[0], (char *)y + i * by[1]);
    *done |= status == FFT_SUCCESS;
  }
  nc_scratchfree(d, room);
  if (status == FFT_SUCCESS || !*done) return nc_check_launch(d, "fft");
  return nc_fail(NC_EDEVICE, "cuFFT failed (status %d)", status);
}
