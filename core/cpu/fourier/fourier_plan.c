/* SPDX-License-Identifier: MIT */
/* fourier_plan.c - plans of Fourier transforms: factors and tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/fourier/fourier_plan.h"
#include "core/cpu/kernels/kernels.h"

#define MOST_WHOLE (1 << 16) /* elements of lines that are lanes */
#define LEAST_SPLIT 64       /* elements of a line that is a matrix */
#define KEPT_PLANS 16
#define KEPT_BYTES (64 << 20)

const FourierKernels *nc_fourier_kernels(DType type) {
  return &nc_kernels()->fourier[type == DT_f64];
}

/*
** Tables
*/
typedef struct FourierTable {
  struct FourierTable *next;
  _Alignas(64) char data[];
} FourierTable;

/* A table of the plan, or NULL. */
static void *new_table(FourierPlan *p, int64_t bytes) {
  const int64_t all = (int64_t)sizeof(FourierTable) + bytes;
  FourierTable *t = aligned_alloc(64, (size_t)((all + 63) / 64 * 64));
  if (t == NULL) return NULL;
  t->next = p->tables;
  p->tables = t;
  p->bytes += all;
  return t->data;
}

static void free_plan(FourierPlan *p) {
  if (p == NULL) return;
  for (FourierTable *t = p->tables, *next; t; t = next) {
    next = t->next;
    free(t);
  }
  free_plan(p->chirped);
  free(p);
}

/* Root k of the n-th roots of 1, exp(-2*pi*i*k/n), from an angle of at most an
   eighth of a turn. */
static void find_root(long double *re, long double *im, int64_t k, int64_t n) {
  const long double pi = 3.14159265358979323846264338327950288L;
  k %= n;
  const int eighth = (int)(8 * k / n);
  int64_t rest = 8 * k - eighth * n; /* of that eighth, times n */
  if (eighth % 2) rest = n - rest;
  const long double a = pi / 4 * (long double)rest / (long double)n;
  long double c = cosl(a), s = sinl(a), t;
  if ((eighth + 1) / 2 % 2) t = c, c = s, s = t;
  *re = eighth >= 2 && eighth <= 5 ? -c : c;
  *im = eighth >= 4 ? s : -s;
}

static void put(void *table, DType type, int64_t at, long double v) {
  if (type == DT_f32) ((float *)table)[at] = (float)v;
  else ((double *)table)[at] = (double)v;
}

/* Element `at' of a table of complex numbers. */
static void put_root(void *table, DType type, int64_t at, int64_t k,
                     int64_t n) {
  long double re, im;
  find_root(&re, &im, k, n);
  put(table, type, 2 * at, re);
  put(table, type, 2 * at + 1, im);
}

static int64_t element_bytes(const FourierPlan *p) {
  return 2 * nc_dtypesize(p->type);
}

/*
** Passes
*/
static int has_loop(int r) {
  return r <= 5 || r == 7 || r == 8 || r == 16;
}

static void add_factors(FourierPasses *f, int r, int64_t times) {
  while (times-- > 0) f->factor[f->count++] = r;
}

/* The powers of two: as few passes as there can be, of 16, 8 and 4. */
static void add_twos(FourierPasses *f, int64_t twos) {
  static const int rest[4][2] = { { 0, 0 }, { 8, 4 }, { 8, 8 }, { 8, 0 } };
  const int *last = rest[twos % 4];
  if (twos < 4) {
    if (twos > 0) add_factors(f, 1 << twos, 1);
    return;
  }
  const int64_t used = last[1] == 4 ? 5 : last[1] == 8 ? 6 : last[0] ? 3 : 0;
  add_factors(f, 16, (twos - used) / 4);
  if (last[0]) add_factors(f, last[0], 1);
  if (last[1]) add_factors(f, last[1], 1);
}

/* Finds the factors of n; 0 if one is too large. */
static int find_factors(FourierPasses *f, int64_t n) {
  int64_t twos = 0;
  f->n = n;
  f->count = 0;
  for (; n % 2 == 0; n /= 2) twos++;
  add_twos(f, twos);
  for (int r = 3; r <= NC_FOURIER_FACTOR; r += 2)
    for (; n % r == 0; n /= r) add_factors(f, r, 1);
  return n == 1;
}

/* The tables of pass k, of m groups; 0 without memory. */
static int make_pass(FourierPlan *p, FourierPasses *f, int k, int64_t m) {
  const int r = f->factor[k];
  const int64_t bytes = element_bytes(p);
  void *w = new_table(p, (m - 1) * (r - 1) * bytes);
  if (w == NULL) return 0;
  f->twiddle[k] = w;
  for (int64_t q = 1, at = 0; q < m; q++)
    for (int j = 1; j < r; j++) put_root(w, p->type, at++, q * j, m * r);
  if (has_loop(r)) return 1;
  f->root[k] = w = new_table(p, r * bytes);
  if (w == NULL) return 0;
  for (int j = 0; j < r; j++) put_root(w, p->type, j, j, r);
  return 1;
}

static int make_passes(FourierPlan *p, FourierPasses *f, int64_t n) {
  find_factors(f, n);
  for (int k = 0; k < f->count; k++)
    if (!make_pass(p, f, k, n /= f->factor[k])) return 0;
  return 1;
}

/*
** A matrix
*/
static int64_t whole_lanes(int64_t n, int64_t lanes) {
  return (n + lanes - 1) / lanes * lanes;
}

/* The sides of the matrix: those that leave the fewest lanes unused, then the
   most alike. */
static int64_t find_side(int64_t n, int64_t lanes) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t d = 2; d * d <= n; d++)
    if (n % d == 0) {
      const int64_t other = n / d;
      const int64_t cost =
          whole_lanes(other, lanes) * d + whole_lanes(d, lanes) * other;
      if (cost <= least) {
        least = cost;
        best = d;
      }
    }
  return best;
}

static int make_split(FourierPlan *p) {
  const int64_t lanes = nc_fourier_kernels(p->type)->lanes;
  FourierSplit *s = &p->split;
  s->n1 = find_side(p->n, lanes);
  s->n2 = p->n / s->n1;
  const int64_t blocks = nc_ceil_div(s->n2, lanes);
  void *within = new_table(p, s->n1 * lanes * element_bytes(p));
  void *of = new_table(p, s->n1 * blocks * element_bytes(p));
  s->within_block = within;
  s->of_block = of;
  if (within == NULL || of == NULL) return 0;
  for (int64_t k = 0; k < s->n1; k++) {
    for (int64_t j = 0; j < lanes; j++) {
      long double re, im;
      find_root(&re, &im, j * k, p->n);
      put(within, p->type, 2 * k * lanes + j, re);
      put(within, p->type, (2 * k + 1) * lanes + j, im);
    }
    for (int64_t b = 0; b < blocks; b++)
      put_root(of, p->type, b * s->n1 + k, b * lanes * k, p->n);
  }
  return make_passes(p, &s->columns, s->n1) && make_passes(p, &s->rows, s->n2);
}

/*
** A chirp
*/
/* The length of the convolution: a multiple of 32 whose other factors are
   small. */
static int64_t find_longer(int64_t n) {
  int64_t m = whole_lanes(2 * n - 1, 32);
  for (;; m += 32) {
    int64_t rest = m;
    for (int r = 2; r <= 5; r++)
      while (rest % r == 0) rest /= r;
    if (rest == 1) return m;
  }
}

static FourierPlan *new_plan(int64_t n, DType type, int real);

static int make_chirp(FourierPlan *p) {
  const int64_t n = p->n, m = find_longer(n);
  const FourierLayout dense = { .step = 2, .gap = 1 };
  double *chirp = new_table(p, n * 16), *filter = new_table(p, m * 16);
  void *work = NULL;
  p->chirp = chirp;
  p->filter = filter;
  p->chirped = new_plan(m, DT_f64, 0);
  if (chirp && filter && p->chirped)
    work = aligned_alloc(64, (size_t)nc_fourier_work(p->chirped));
  if (work == NULL) return 0;
  memset(filter, 0, (size_t)m * 16);
  for (int64_t j = 0; j < n; j++) {
    put_root(chirp, DT_f64, j, j * j % (2 * n), 2 * n);
    for (int end = 0; end < 2; end++) {
      double *f = filter + 2 * (end ? (m - j) % m : j);
      f[0] = chirp[2 * j];
      f[1] = -chirp[2 * j + 1];
    }
  }
  nc_fourier_line(p->chirped, filter, &dense, filter, &dense, 1 / (double)m,
                  work);
  free(work);
  return 1;
}

/*
** Plans
*/
static int make_half_roots(FourierPlan *p) {
  void *w = new_table(p, (p->n / 2 + 1) * element_bytes(p));
  p->half_roots = w;
  if (w == NULL) return 0;
  for (int64_t k = 0; k <= p->n / 2; k++) put_root(w, p->type, k, k, 2 * p->n);
  return 1;
}

static int fill_plan(FourierPlan *p) {
  FourierPasses f;
  if (p->real && !make_half_roots(p)) return 0;
  if (!find_factors(&f, p->n)) return make_chirp(p);
  if (p->n <= MOST_WHOLE && !make_passes(p, &p->whole, p->n)) return 0;
  return p->n < LEAST_SPLIT || make_split(p);
}

static FourierPlan *new_plan(int64_t n, DType type, int real) {
  FourierPlan *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->n = n;
  p->type = type;
  p->real = real;
  if (fill_plan(p)) return p;
  free_plan(p);
  return NULL;
}

static FourierPlan *plans; /* the one used last comes first */

int nc_fourier_plan(const FourierPlan **found, int64_t n, DType type,
                    int real) {
  FourierPlan **at = &plans, *p;
  while ((p = *at) && !(p->n == n && p->type == type && p->real >= real))
    at = &p->next;
  if (p) *at = p->next;
  else if ((p = new_plan(n, type, real)) == NULL)
    return nc_fail(NC_ENOMEM, "no memory for the roots of a Fourier transform");
  p->next = plans;
  *found = plans = p;
  return NC_OK;
}

static int64_t all_bytes(const FourierPlan *p) {
  return p->bytes + (p->chirped ? p->chirped->bytes : 0);
}

void nc_fourier_forget(void) {
  FourierPlan **at = &plans;
  int64_t bytes = 0;
  for (int i = 0; *at; i++) {
    FourierPlan *p = *at;
    bytes += all_bytes(p);
    if (i < KEPT_PLANS && bytes <= KEPT_BYTES) at = &p->next;
    else {
      *at = p->next;
      free_plan(p);
    }
  }
}
