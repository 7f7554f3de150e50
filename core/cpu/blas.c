/* SPDX-License-Identifier: MIT */
/*
** blas.c - a BLAS, opened when the first product needs it, and our own loops
** where there is none.
**
** The library runs on the thread that calls it: tensors are cut in tiles by
** our own threads (matmul.c), which can be interrupted.
*/
#define _POSIX_C_SOURCE 200809L
#include "core/cpu/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/portable.h"

/*
** Our own loops
*/
#define PANEL_K 64
#define PANEL_N 256

#define T float
#define NAME(f) f##_f32
#define number_f32(s) ((float)nc_tofloat(s))
#include "core/cpu/gemm.inc"
#undef T
#undef NAME
#define T double
#define NAME(f) f##_f64
#define number_f64(s) (nc_tofloat(s))
#include "core/cpu/gemm.inc"
#undef T
#undef NAME
#define T uint32_t /* integers wrap */
#define NAME(f) f##_i32
#define number_i32(s) ((uint32_t)(s).i)
#include "core/cpu/gemm.inc"
#undef T
#undef NAME
#define T uint64_t
#define NAME(f) f##_i64
#define number_i64(s) ((uint64_t)(s).i)
#include "core/cpu/gemm.inc"
#undef T
#undef NAME

static void own(const Gemm *g) {
  switch (g->type) {
    case DT_f32: g->n == 1 ? gemv_f32(g) : gemm_f32(g); break;
    case DT_f64: g->n == 1 ? gemv_f64(g) : gemm_f64(g); break;
    case DT_i32: g->n == 1 ? gemv_i32(g) : gemm_i32(g); break;
    default: g->n == 1 ? gemv_i64(g) : gemm_i64(g); break;
  }
}

/*
** The library
*/
enum { ROWMAJOR = 101, NOTRANS = 111, TRANS = 112 };

#define FUNCTIONS(T)                                                          \
  void (*gemm)(int order, int ta, int tb, int m, int n, int k, T alpha,       \
               const T *a, int lda, const T *b, int ldb, T beta, T *c,        \
               int ldc);                                                      \
  void (*gemv)(int order, int ta, int m, int n, T alpha, const T *a, int lda, \
               const T *x, int incx, T beta, T *y, int incy);                 \
  T (*dot)(int n, const T *x, int incx, const T *y, int incy);

static struct {
  int tried;
  void *handle;
  const char *name, *core; /* its kernels, or NULL: it does not tell */
  struct {
    FUNCTIONS(float)
  } f32;
  struct {
    FUNCTIONS(double)
  } f64;
} blas;

const char *nc_blasname(void) {
  static char text[128];
  if (!blas.tried) return "not opened yet";
  if (blas.handle == NULL) return "own loops";
  if (blas.core == NULL) return blas.name;
  snprintf(text, sizeof text, "%s, %s", blas.name, blas.core);
  return text;
}

static int find(void *f, const char *name) {
  return nc_symbol(f, blas.handle, name);
}

static int bind(void) {
  return find(&blas.f32.gemm, "cblas_sgemm") &&
         find(&blas.f64.gemm, "cblas_dgemm") &&
         find(&blas.f32.gemv, "cblas_sgemv") &&
         find(&blas.f64.gemv, "cblas_dgemv") &&
         find(&blas.f32.dot, "cblas_sdot") && find(&blas.f64.dot, "cblas_ddot");
}

static void onethread(void) {
  static const char *const setter[] = { "openblas_set_num_threads",
                                        "MKL_Set_Num_Threads",
                                        "bli_thread_set_num_threads" };
  void (*set)(int);
  for (size_t i = 0; i < sizeof setter / sizeof *setter; i++)
    if (find(&set, setter[i])) set(1);
}

static int opened(const char *path) {
  blas.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (blas.handle == NULL) return 0;
  if (bind()) return 1;
  dlclose(blas.handle);
  blas.handle = NULL;
  return 0;
}

/* The kernels that an OpenBLAS has chosen, or NULL. */
static const char *core(void) {
  const char *(*name)(void);
  return find(&name, "openblas_get_corename") ? name() : NULL;
}

/* An OpenBLAS that is older than the processor takes it for a Pentium 4, and
   is four times as slow as it could be: it is opened again, and told. */
static int tryopen(const char *path) {
  static const char choice[] = "OPENBLAS_CORETYPE";
  const char *level = nc_cpulevel();
  const int wide = strcmp(level, "x86-64-v4") == 0;
  int again = 1;
  if (!opened(path)) return 0;
  if ((wide || strcmp(level, "x86-64-v3") == 0) && core() &&
      strcmp(core(), "Prescott") == 0 && getenv(choice) == NULL) {
    dlclose(blas.handle);
    setenv(choice, wide ? "SkylakeX" : "Haswell", 1);
    again = opened(path);
    unsetenv(choice);
  }
  if (!again) return 0;
  onethread();
  blas.core = core();
  blas.name = path;
  return 1;
}

static int search(void) {
  static const char *const path[] = {
    "libopenblas.so.0",
    "libopenblas.so",
    "libmkl_rt.so.2",
    "libmkl_rt.so",
    "libblis.so.4",
    "libcblas.so.3",
    "libblas.so.3",
    "libblas.so",
    "libopenblas.dylib",
    "/System/Library/Frameworks/Accelerate.framework/Accelerate"
  };
  const char *given = getenv("NACRE_BLAS");
  if (given && *given) {
    if (strcmp(given, "none") == 0 || tryopen(given)) return NC_OK;
    blas.tried = 0;
    return nc_fail(NC_EFILE,
                   "NACRE_BLAS is '%s', which is no library with "
                   "cblas_sgemm",
                   given);
  }
  for (size_t i = 0; i < sizeof path / sizeof *path; i++)
    if (tryopen(path[i])) break;
  return NC_OK;
}

/* Threads that the library makes as it is loaded, if it does not heed the
   environment, must not get our signals. */
int nc_openblas(void) {
  static const char *const quiet[] = { "OPENBLAS_NUM_THREADS",
                                       "OMP_NUM_THREADS" };
  int64_t begin;
  int mine[2], r;
  sigset_t all, old;
  if (blas.tried) return NC_OK;
  blas.tried = 1;
  begin = nc_now();
  for (int i = 0; i < 2; i++) {
    mine[i] = getenv(quiet[i]) == NULL;
    if (mine[i]) setenv(quiet[i], "1", 1);
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  r = search();
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  for (int i = 0; i < 2; i++) /* programs that we start have their own mind */
    if (mine[i]) unsetenv(quiet[i]);
  nc_counters.opening += nc_now() - begin;
  return r;
}

/*
** One product
*/
typedef struct Lay { /* how a matrix lies, in the words of a BLAS */
  int trans, ld;
} Lay;

static int lay(Lay *l, int64_t rows, int64_t cols, const int64_t step[2]) {
  int64_t ld;
  if (cols == 1 || step[1] == 1) {
    l->trans = NOTRANS;
    ld = rows == 1 ? cols : step[0];
    if (ld >= cols && ld <= INT_MAX) return l->ld = (int)ld, 1;
  }
  if (rows == 1 || step[0] == 1) {
    l->trans = TRANS;
    ld = cols == 1 ? rows : step[1];
    if (ld >= rows && ld <= INT_MAX) return l->ld = (int)ld, 1;
  }
  return 0;
}

int nc_blasfits(int64_t rows, int64_t cols, const int64_t step[2]) {
  Lay l;
  return lay(&l, rows, cols, step);
}

/* y = beta*y + alpha*a*x */
static void gemv(const Gemm *g, Lay a) {
  const int rows = (int)(a.trans == TRANS ? g->k : g->m);
  const int cols = (int)(a.trans == TRANS ? g->m : g->k);
  const int inx = (int)g->bs[0], iny = (int)g->cs;
  if (g->type == DT_f32)
    blas.f32.gemv(ROWMAJOR, a.trans, rows, cols, (float)nc_tofloat(g->alpha),
                  g->a, a.ld, g->b, inx, (float)g->beta, g->c, iny);
  else
    blas.f64.gemv(ROWMAJOR, a.trans, rows, cols, nc_tofloat(g->alpha), g->a,
                  a.ld, g->b, inx, g->beta, g->c, iny);
}

static void dot(const Gemm *g) {
  const int n = (int)g->k, inx = (int)g->as[1], iny = (int)g->bs[0];
  if (g->type == DT_f32) {
    float *c = g->c, d = blas.f32.dot(n, g->a, inx, g->b, iny);
    *c = (float)nc_tofloat(g->alpha) * d + (g->beta ? *c : 0);
  } else {
    double *c = g->c, d = blas.f64.dot(n, g->a, inx, g->b, iny);
    *c = nc_tofloat(g->alpha) * d + (g->beta ? *c : 0);
  }
}

static void gemm(const Gemm *g, Lay a, Lay b) {
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, ldc = (int)g->cs;
  if (g->type == DT_f32)
    blas.f32.gemm(ROWMAJOR, a.trans, b.trans, m, n, k,
                  (float)nc_tofloat(g->alpha), g->a, a.ld, g->b, b.ld,
                  (float)g->beta, g->c, ldc);
  else
    blas.f64.gemm(ROWMAJOR, a.trans, b.trans, m, n, k, nc_tofloat(g->alpha),
                  g->a, a.ld, g->b, b.ld, g->beta, g->c, ldc);
}

/* A product with one row is one with one column, seen from behind. */
static Gemm flipped(const Gemm *g) {
  Gemm f = *g;
  f.a = g->b;
  f.b = g->a;
  f.m = g->n;
  f.n = g->m;
  for (int i = 0; i < 2; i++) {
    f.as[i] = g->bs[1 - i];
    f.bs[i] = g->as[1 - i];
  }
  f.cs = 1;
  return f;
}

/* Not every BLAS takes beta 0 to mean that y need not be set. */
static void clear(const Gemm *g) {
  const int64_t size = nc_dtypesize(g->type);
  for (int64_t i = 0; i < g->m; i++)
    memset((char *)g->c + i * g->cs * size, 0, (size_t)size);
}

static int small(int64_t step) {
  return step > 0 && step <= INT_MAX;
}

/* Products with a vector; the vector may have any steps. */
static void withvector(Gemm g, Lay a) {
  if (g.k == 1) g.bs[0] = 1;
  if (g.m == 1) g.cs = 1;
  if (!small(g.bs[0]) || !small(g.cs)) {
    own(&g);
  } else if (g.m == 1 && (g.k == 1 || small(g.as[1]))) {
    if (g.k == 1) g.as[1] = 1;
    dot(&g);
  } else {
    if (!g.beta) clear(&g);
    g.beta = 1;
    gemv(&g, a);
  }
}

void nc_gemm(const Gemm *given) {
  Gemm g = given->m == 1 && given->n > 1 ? flipped(given) : *given;
  Lay a, b;
  if (blas.handle == NULL || nc_category(g.type) != NC_FLOAT || g.m > INT_MAX ||
      g.n > INT_MAX || g.k > INT_MAX || g.cs > INT_MAX ||
      !lay(&a, g.m, g.k, g.as))
    own(&g);
  else if (g.n == 1) withvector(g, a);
  else if (lay(&b, g.k, g.n, g.bs)) gemm(&g, a, b);
  else own(&g);
}
