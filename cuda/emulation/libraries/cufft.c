/* SPDX-License-Identifier: MIT */
/*
** cufft.c - the transforms of cuFFT for the emulated device, as operations of
** the plan's stream: lines of one dimension, in double precision.  They take
** enumerations as int, as fourier/cufft_abi.h declares them.
*/
#include <math.h>
#include <stdlib.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/libraries/named_functions.h"

#define VERSION 12000
#define PLANS 256
#define ROOM 512 /* bytes: that the caller gives a workspace is checked */

enum { SUCCESS, INVALID_PLAN, ALLOC_FAILED, INVALID_TYPE, INVALID_VALUE };
enum { EXEC_FAILED = 6 };
enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, DOUBLE = 0x40 };

typedef struct EmuFft {
  int used, made, type, device;
  cudaStream_t stream;
  void *room;
  long long n, batch, step[2], line[2];
} EmuFft;

typedef struct Number {
  double re, im;
} Number;

typedef struct Job {
  EmuFft plan;
  const void *x;
  void *y;
  int direction;
} Job;

static EmuFft plans[PLANS];

/*
** Lines
*/
/* exp(sign*2*pi*i*k/n), exact where it is 1, i, -1 or -i. */
static Number root_of_unity(long long k, long long n, int sign) {
  static const Number quarters[] = { { 1, 0 }, { 0, 1 }, { -1, 0 }, { 0, -1 } };
  const double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
  Number y = { cos(angle), sin(angle) };
  if (4 * k % n == 0) y = quarters[4 * k / n % 4];
  return (Number){ y.re, sign * y.im };
}

/* y[k] = the sum over j of x[j*step] * exp(sign*2*pi*i*j*k/n) */
static void transform(Number *y, const Number *x, long long n, long long step,
                      int sign, Number *room) {
  if (n % 2 == 0 && n > 2) { /* even and odd elements apart */
    const long long half = n / 2;
    transform(room, x, half, 2 * step, sign, y);
    transform(room + half, x + step, half, 2 * step, sign, y);
    for (long long k = 0; k < half; k++) {
      const Number w = root_of_unity(k, n, sign);
      const Number a = room[k], b = room[half + k];
      const Number t = { b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re };
      y[k] = (Number){ a.re + t.re, a.im + t.im };
      y[half + k] = (Number){ a.re - t.re, a.im - t.im };
    }
    return;
  }
  for (long long k = 0; k < n; k++) {
    Number sum = { 0, 0 };
    for (long long j = 0; j < n; j++) {
      const Number w = root_of_unity(j * k % n, n, sign);
      const Number v = x[j * step];
      sum.re += v.re * w.re - v.im * w.im;
      sum.im += v.re * w.im + v.im * w.re;
    }
    y[k] = sum;
  }
}

static double get(const void *p, long long i, int wide) {
  return wide ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void put(void *p, long long i, double v, int wide) {
  if (wide) ((double *)p)[i] = v;
  else ((float *)p)[i] = (float)v;
}

/* Reads the line that begins at element `at'; of half a spectrum, all of it. */
static void read_line(Number *v, const Job *k, long long at) {
  const EmuFft *p = &k->plan;
  const int kind = p->type & ~DOUBLE, wide = (p->type & DOUBLE) != 0;
  const long long given = kind == C2R ? p->n / 2 + 1 : p->n;
  for (long long j = 0; j < given; j++) {
    const long long i = at + j * p->step[0];
    v[j] = kind == R2C
               ? (Number){ get(k->x, i, wide), 0 }
               : (Number){ get(k->x, 2 * i, wide), get(k->x, 2 * i + 1, wide) };
  }
  if (kind == C2R)
    for (long long j = given; j < p->n; j++)
      v[j] = (Number){ v[p->n - j].re, -v[p->n - j].im };
}

static void write_line(const Number *v, const Job *k, long long at) {
  const EmuFft *p = &k->plan;
  const int kind = p->type & ~DOUBLE, wide = (p->type & DOUBLE) != 0;
  const long long made = kind == R2C ? p->n / 2 + 1 : p->n;
  for (long long j = 0; j < made; j++) {
    const long long i = at + j * p->step[1];
    if (kind == C2R) put(k->y, i, v[j].re, wide);
    else put(k->y, 2 * i, v[j].re, wide), put(k->y, 2 * i + 1, v[j].im, wide);
  }
}

/* The running operation accesses all lines of one side. */
static void access_lines(const Job *k, const void *p, int side) {
  const EmuFft *f = &k->plan;
  const int kind = f->type & ~DOUBLE, half = kind == (side ? R2C : C2R);
  const int parts = kind == (side ? C2R : R2C) ? 1 : 2;
  const long long count = half ? f->n / 2 + 1 : f->n;
  const size_t bytes = (size_t)parts * (f->type & DOUBLE ? 8 : 4);
  for (long long b = 0; b < f->batch; b++)
    for (long long j = 0; j < count; j++)
      emu_access((const char *)p +
                     (size_t)(b * f->line[side] + j * f->step[side]) * bytes,
                 bytes, side);
}

static void run_lines(void *arg) {
  const Job *k = arg;
  const EmuFft *p = &k->plan;
  Number *v = malloc(3 * (size_t)p->n * sizeof *v);
  if (v == NULL) emu_report("memory", "the host has too little for cuFFT");
  emu_access(p->room, ROOM, 1);
  access_lines(k, k->x, 0);
  for (long long b = 0; b < p->batch; b++) {
    read_line(v, k, b * p->line[0]);
    transform(v + p->n, v, p->n, 1, k->direction, v + 2 * p->n);
    write_line(v + p->n, k, b * p->line[1]);
  }
  access_lines(k, k->y, 1);
  free(v);
}

/*
** Calls
*/
static EmuFft *plan_of(int id) {
  return id > 0 && id < PLANS && plans[id].used ? &plans[id] : NULL;
}

static int submit(int id, int type, const void *x, void *y, int direction) {
  EmuFft *p = plan_of(id);
  const size_t number = type & DOUBLE ? 16 : 8;
  cudaStream_t s;
  if (p == NULL || !p->made || p->type != type) return INVALID_PLAN;
  if (p->room == NULL || p->device != emu_current || (size_t)x % number != 0 ||
      (size_t)y % number != 0)
    return INVALID_VALUE;
  s = emu_stream(p->stream);
  if (s == NULL || s->device != p->device) return EXEC_FAILED;
  Job k = { *p, x, y, direction };
  emu_enqueue(s, "cuFFT transform", run_lines, &k, sizeof k, NULL);
  return SUCCESS;
}

/* Queues it, unless the call must fail (the setting failat). */
static int run(int id, int type, const void *x, void *y, int direction) {
  int status = EXEC_FAILED;
  if (emu_enter() == cudaSuccess) status = submit(id, type, x, y, direction);
  emu_leave(cudaSuccess);
  return status;
}

static int cufftExecC2C(int id, void *x, void *y, int direction) {
  return run(id, C2C, x, y, direction);
}
static int cufftExecZ2Z(int id, void *x, void *y, int direction) {
  return run(id, C2C | DOUBLE, x, y, direction);
}
static int cufftExecR2C(int id, void *x, void *y) {
  return run(id, R2C, x, y, -1);
}
static int cufftExecD2Z(int id, void *x, void *y) {
  return run(id, R2C | DOUBLE, x, y, -1);
}
static int cufftExecC2R(int id, void *x, void *y) {
  return run(id, C2R, x, y, 1);
}
static int cufftExecZ2D(int id, void *x, void *y) {
  return run(id, C2R | DOUBLE, x, y, 1);
}

static int cufftGetVersion(int *version) {
  *version = VERSION;
  return SUCCESS;
}

static int cufftCreate(int *id) {
  int found = 0;
  if (emu_enter() == cudaSuccess)
    for (int i = PLANS - 1; i > 0; i--)
      if (!plans[i].used) found = i;
  emu_leave(cudaSuccess);
  if (found == 0) return ALLOC_FAILED;
  plans[found] = (EmuFft){ .used = 1, .device = emu_current };
  *id = found;
  return SUCCESS;
}

static int cufftDestroy(int id) {
  if (plan_of(id) == NULL) return INVALID_PLAN;
  plans[id].used = 0;
  return SUCCESS;
}

static int cufftSetAutoAllocation(int id, int itself) {
  return plan_of(id) && !itself ? SUCCESS : INVALID_VALUE;
}

static int cufftSetStream(int id, cudaStream_t s) {
  if (plan_of(id) == NULL) return INVALID_PLAN;
  plans[id].stream = s;
  return SUCCESS;
}

static int cufftSetWorkArea(int id, void *p) {
  if (plan_of(id) == NULL) return INVALID_PLAN;
  plans[id].room = p;
  return SUCCESS;
}

static int cufftMakePlanMany64(int id, int rank, long long *n,
                               long long *inembed, long long istride,
                               long long idist, long long *onembed,
                               long long ostride, long long odist, int type,
                               long long batch, size_t *room) {
  const int kind = type & ~DOUBLE;
  EmuFft *p = plan_of(id);
  if (p == NULL || p->made) return INVALID_PLAN;
  if (kind != C2C && kind != R2C && kind != C2R) return INVALID_TYPE;
  if (rank != 1 || *n < 1 || batch < 1 || inembed == NULL || onembed == NULL)
    return INVALID_VALUE;
  p->type = type;
  p->n = *n;
  p->batch = batch;
  p->step[0] = istride, p->step[1] = ostride;
  p->line[0] = idist, p->line[1] = odist;
  p->made = 1;
  *room = ROOM;
  return SUCCESS;
}

EmuFunction emu_cufft(const char *symbol) {
  static const NamedFunction table[] = {
    OWN_NAME(cufftGetVersion),     OWN_NAME(cufftCreate),
    OWN_NAME(cufftDestroy),        OWN_NAME(cufftSetAutoAllocation),
    OWN_NAME(cufftSetStream),      OWN_NAME(cufftSetWorkArea),
    OWN_NAME(cufftExecC2C),        OWN_NAME(cufftExecZ2Z),
    OWN_NAME(cufftExecR2C),        OWN_NAME(cufftExecD2Z),
    OWN_NAME(cufftExecC2R),        OWN_NAME(cufftExecZ2D),
    OWN_NAME(cufftMakePlanMany64), { NULL, NULL }
  };
  return emu_named(table, symbol);
}
