/* SPDX-License-Identifier: MIT */
/*
** blas.c - matrix products in memory (nc_gemm): by a BLAS, opened when the
** first product needs it, or by our own (tiled_gemm.inc, and gemm.inc for
** integers).
**
** The library runs single-threaded on the calling thread: bmm.c and conv.c cut
** products in tiles for our own threads, which can be interrupted.
*/
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "core/cpu/product/blas.h"
#include "core/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"

/*
** Our own loops
*/
#define SMALL 32 /* rows and columns of a small matrix, at most */
/* Rows and columns where we are faster than OpenBLAS. */
#define LEAST_OWN(type) ((type) == DT_f32 ? 32 : 65)
#define MOST_OWN 1024
#define PANEL_K 64
#define PANEL_N 256
#define BLOCK_BYTES 2048 /* of a row of b that are packed at once */
#define MOST_WIDTH 32    /* elements of the widest tile */

#define T float
#define NAME(f) f##_f32
#define number_f32(s) ((float)nc_tofloat(s))
#include "core/cpu/product/tiled_gemm.inc"
#include "core/cpu/product/gemv.inc"
#include "core/cpu/product/vector_product.inc"
#define T double
#define NAME(f) f##_f64
#define number_f64(s) (nc_tofloat(s))
#include "core/cpu/product/tiled_gemm.inc"
#include "core/cpu/product/gemv.inc"
#include "core/cpu/product/vector_product.inc"
#define T uint32_t /* integers wrap */
#define NAME(f) f##_i32
#define number_i32(s) ((uint32_t)(s).i)
#include "core/cpu/product/gemm.inc"
#include "core/cpu/product/gemv.inc"
#undef T
#undef NAME
#define T uint64_t
#define NAME(f) f##_i64
#define number_i64(s) ((uint64_t)(s).i)
#include "core/cpu/product/gemm.inc"
#include "core/cpu/product/gemv.inc"
#undef T
#undef NAME

static void own_gemm(const Gemm *g) {
  switch (g->type) {
    case DT_f32:
      if (g->n == 1) vector_product_f32(g);
      else if (g->n <= NC_NARROW) narrow_product_f32(g);
      else tiled_gemm_f32(g);
      break;
    case DT_f64:
      if (g->n == 1) vector_product_f64(g);
      else if (g->n <= NC_NARROW) narrow_product_f64(g);
      else tiled_gemm_f64(g);
      break;
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
  const char *name;
  const char *kernels; /* that an OpenBLAS has chosen, or NULL */
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
  if (blas.kernels == NULL) return blas.name;
  snprintf(text, sizeof text, "%s, %s", blas.name, blas.kernels);
  return text;
}

static int find_symbol(void *f, const char *name) {
  return nc_symbol(f, blas.handle, name);
}

static int bind_symbols(void *handle) {
  blas.handle = handle;
  if (find_symbol(&blas.f32.gemm, "cblas_sgemm") &&
      find_symbol(&blas.f64.gemm, "cblas_dgemm") &&
      find_symbol(&blas.f32.gemv, "cblas_sgemv") &&
      find_symbol(&blas.f64.gemv, "cblas_dgemv") &&
      find_symbol(&blas.f32.dot, "cblas_sdot") &&
      find_symbol(&blas.f64.dot, "cblas_ddot"))
    return 1;
  blas.handle = NULL;
  return 0;
}

/* MKL chooses its threads at the first call of another function; 1 is
   "sequential".  */
void nc_set_one_thread(void *handle) {
  static const char *const setter[] = { "MKL_Set_Threading_Layer",
                                        "openblas_set_num_threads",
                                        "MKL_Set_Num_Threads",
                                        "bli_thread_set_num_threads" };
  void (*set)(int);
  for (size_t i = 0; i < sizeof setter / sizeof *setter; i++)
    if (nc_symbol(&set, handle, setter[i])) set(1);
}

int nc_bind_blas(int (*bind)(void *handle)) {
  return blas.handle != NULL && bind(blas.handle);
}

static int open_library(const char *path) {
  const char *const names[] = { path, NULL };
  return nc_openfirst(names, bind_symbols) != NULL;
}

/* The kernels that an OpenBLAS has chosen, or NULL. */
static const char *kernel_name(void) {
  const char *(*name)(void);
  return find_symbol(&name, "openblas_get_corename") ? name() : NULL;
}

/*
** The buffers of an OpenBLAS.  A call needs one; if all are in use, the library
** maps another and keeps it, and if there is no room, it tries forever. So if
** memory is limited, all are mapped at the beginning.
*/
#define BUFFER_BYTES ((size_t)136 << 20)
enum { MOST_BUFFERS = 48 }; /* any build of it has room for 50 */

static int buffers = INT_MAX; /* calls at a time that are sure to have one */

static int is_limited(void) {
  struct rlimit l;
  return (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY) ||
         (getrlimit(RLIMIT_DATA, &l) == 0 && l.rlim_cur != RLIM_INFINITY);
}

static int has_room(int n) {
  const size_t bytes = (size_t)n * BUFFER_BYTES;
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return 0;
  munmap(p, bytes);
  return 1;
}

int nc_has_blas_room(void) {
  return buffers > 0 && has_room(1);
}

/* Makes the library map a buffer for each thread, as far as there is room. If
   that is not possible, there must be room for all. */
static int map_buffers(void *handle) {
  void *(*take)(int), (*give)(void *), *taken[MOST_BUFFERS];
  const int threads = nc_threads();
  int n = 0;
  if (!nc_symbol(&take, handle, "blas_memory_alloc") ||
      !nc_symbol(&give, handle, "blas_memory_free"))
    return has_room(threads) ? threads : 0;
  while (n < threads && n < MOST_BUFFERS && has_room(1)) taken[n++] = take(0);
  for (int i = 0; i < n; i++) give(taken[i]);
  return n;
}

int nc_take_blas_buffers(void *handle) {
  static void *last;
  const char *(*name)(void);
  if (handle == last || !nc_symbol(&name, handle, "openblas_get_corename") ||
      !is_limited())
    return 1;
  buffers = map_buffers(handle);
  if (buffers > 0) last = handle;
  return buffers > 0;
}

int nc_blas_buffers(void) {
  return buffers;
}

/* Opens a library.  An OpenBLAS older than the processor takes it for a Pentium
   4 ("Prescott") and is four times too slow: it is opened again with the
   variable that names better kernels. */
static int open_tuned(const char *path) {
  static const char choice[] = "OPENBLAS_CORETYPE";
  const char *level = nc_cpulevel();
  const int wide = strcmp(level, "x86-64-v4") == 0;
  int again = 1;
  if (!open_library(path)) return 0;
  if ((wide || strcmp(level, "x86-64-v3") == 0) && kernel_name() &&
      strcmp(kernel_name(), "Prescott") == 0 && getenv(choice) == NULL) {
    dlclose(blas.handle);
    blas.handle = NULL;
    setenv(choice, wide ? "SkylakeX" : "Haswell", 1);
    again = open_library(path);
    unsetenv(choice);
  }
  if (!again) return 0;
  nc_set_one_thread(blas.handle);
  if (!nc_take_blas_buffers(blas.handle)) {
    dlclose(blas.handle);
    blas.handle = NULL;
    return 0;
  }
  blas.kernels = kernel_name();
  blas.name = path;
  return 1;
}

/* MKL in the active environment, installed by pip or conda. */
static int open_from_environment(void) {
  static const char *const where[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
  static char path[1024];
  for (int i = 0; i < 2; i++)
    for (int version = 3; version >= 2; version--) {
      const char *folder = getenv(where[i]);
      if (folder == NULL || *folder == '\0') continue;
      snprintf(path, sizeof path, "%s/lib/libmkl_rt.so.%d", folder, version);
      if (open_tuned(path)) return 1;
    }
  return 0;
}

static int find_library(void) {
  static const char *const path[] = {
    "libmkl_rt.so.3",
    "libmkl_rt.so.2",
    "libmkl_rt.so",
    "libopenblas.so.0",
    "libopenblas.so",
    "libblis.so.4",
    "libcblas.so.3",
    "libblas.so.3",
    "libblas.so",
    "libopenblas.dylib",
    "/System/Library/Frameworks/Accelerate.framework/Accelerate"
  };
  const char *product = getenv("NACRE_BLAS");
  if (product && *product) {
    if (strcmp(product, "none") == 0 || strcmp(product, "own") == 0 ||
        open_tuned(product))
      return NC_OK;
    blas.tried = 0;
    return nc_fail(
        NC_EFILE, "NACRE_BLAS is '%s', which is not a library with cblas_sgemm",
        product);
  }
  if (open_from_environment()) return NC_OK;
  for (size_t i = 0; i < sizeof path / sizeof *path; i++)
    if (open_tuned(path[i])) break;
  return NC_OK;
}

static const char *const thread_vars[] = { "OPENBLAS_NUM_THREADS",
                                           "OMP_NUM_THREADS" };

/* Asks for one thread and keeps what the variables were; or, `back', restores
   them: child processes must not inherit ours. */
static void ask_for_one_thread(char was[2][32], int back) {
  for (int i = 0; i < 2; i++) {
    const char *value = getenv(thread_vars[i]);
    if (!back) {
      snprintf(was[i], sizeof was[i], "%s", value ? value : "");
      setenv(thread_vars[i], "1", 1);
    } else if (*was[i]) setenv(thread_vars[i], was[i], 1);
    else unsetenv(thread_vars[i]);
  }
}

/* The environment asks the library for one thread while it is loaded; threads
   that it makes anyway must not receive our signals. */
int nc_open_single(int (*find)(void)) {
  const int64_t begin = nc_now();
  char was[2][32];
  int r;
  sigset_t all, old;
  ask_for_one_thread(was, 0);
  sigfillset(&all);
  sigdelset(&all, SIGBUS); /* as in threads.c */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  r = find();
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  ask_for_one_thread(was, 1);
  nc_counters.opening += nc_now() - begin;
  return r;
}

int nc_openblas(void) {
  if (blas.tried) return NC_OK;
  blas.tried = 1;
  return nc_open_single(find_library);
}

/*
** One product
*/
typedef struct BlasLayout { /* of a matrix: arguments of a BLAS */
  int trans, ld;
} BlasLayout;

static int blas_layout(BlasLayout *l, int64_t rows, int64_t cols,
                       const int64_t step[2]) {
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
  BlasLayout l;
  return blas_layout(&l, rows, cols, step);
}

/* y = beta*y + alpha*a*x */
static void blas_gemv(const Gemm *g, BlasLayout a) {
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

static void blas_dot(const Gemm *g) {
  const int n = (int)g->k, inx = (int)g->as[1], iny = (int)g->bs[0];
  if (g->type == DT_f32) {
    float *c = g->c, d = blas.f32.dot(n, g->a, inx, g->b, iny);
    *c = (float)nc_tofloat(g->alpha) * d + (g->beta ? *c : 0);
  } else {
    double *c = g->c, d = blas.f64.dot(n, g->a, inx, g->b, iny);
    *c = nc_tofloat(g->alpha) * d + (g->beta ? *c : 0);
  }
}

static void blas_gemm(const Gemm *g, BlasLayout a, BlasLayout b) {
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k, ldc = (int)g->cs;
  if (g->type == DT_f32)
    blas.f32.gemm(ROWMAJOR, a.trans, b.trans, m, n, k,
                  (float)nc_tofloat(g->alpha), g->a, a.ld, g->b, b.ld,
                  (float)g->beta, g->c, ldc);
  else
    blas.f64.gemm(ROWMAJOR, a.trans, b.trans, m, n, k, nc_tofloat(g->alpha),
                  g->a, a.ld, g->b, b.ld, g->beta, g->c, ldc);
}

/* A product with one row as the transposed one, with one column. */
static Gemm transposed(const Gemm *g) {
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

/* Sets c to 0: with beta 0 some BLAS still read y. */
static void clear_result(const Gemm *g) {
  const int64_t size = nc_dtypesize(g->type);
  for (int64_t i = 0; i < g->m; i++)
    memset((char *)g->c + i * g->cs * size, 0, (size_t)size);
}

static int fits_int(int64_t step) {
  return step > 0 && step <= INT_MAX;
}

/* A product with one column; vectors may have any steps. */
static void vector_product(Gemm g, BlasLayout a) {
  if (g.k == 1) g.bs[0] = 1;
  if (g.m == 1) g.cs = 1;
  if (!fits_int(g.bs[0]) || !fits_int(g.cs)) {
    own_gemm(&g);
  } else if (g.m == 1 && (g.k == 1 || fits_int(g.as[1]))) {
    if (g.k == 1) g.as[1] = 1;
    blas_dot(&g);
  } else {
    if (!g.beta) clear_result(&g);
    g.beta = 1;
    blas_gemv(&g, a);
  }
}

/* Multiplies matrices so small that calling a BLAS or packing them takes
   longer; returns whether it did. */
static int small_product(const Gemm *g) {
  const SmallProduct p = { g->m,
                           g->n,
                           g->k,
                           { g->as[0], g->as[1] },
                           g->bs[0],
                           g->cs,
                           nc_tofloat(g->alpha),
                           g->beta };
  if (g->n > SMALL || g->m > SMALL || g->k > SMALL || g->n == 1 ||
      g->bs[1] != 1 || (g->type != DT_f32 && g->type != DT_f64))
    return 0;
  nc_kernels()->row[g->type == DT_f64].small_product(&p, g->c, g->a, g->b);
  return 1;
}

/* Our tiles of AVX-512 are faster than an OpenBLAS up to 1024 columns (measured
   with 0.3.21, on an Intel processor). */
int nc_beats_blas(DType type, int64_t m, int64_t n) {
  if (blas.handle == NULL || buffers < nc_threads()) return 1;
  return blas.kernels && nc_is_real(type) && nc_kernels()->tile_rows > 6 &&
         m >= LEAST_OWN(type) && n >= LEAST_OWN(type) && n <= MOST_OWN;
}

/* And where rows of a are multiplied by few columns of b, both dense. */
static int beats_blas_narrow(const Gemm *g) {
  enum { LEAST_ROWS = 64, LEAST_COLUMNS = 5 };
  return blas.kernels && nc_is_real(g->type) && nc_kernels()->tile_rows > 6 &&
         g->m >= LEAST_ROWS && g->n >= LEAST_COLUMNS && g->n <= NC_NARROW &&
         g->as[1] == 1 && g->bs[0] == 1;
}

void nc_gemm(const Gemm *product) {
  if (product->type == DT_bf16) {
    nc_pair_gemm(product);
    return;
  }
  if (product->halves) {
    tiled_gemm_f32(product);
    return;
  }
  if (small_product(product)) return;
  Gemm g = product->m == 1 && product->n > 1 ? transposed(product) : *product;
  BlasLayout a, b;
  if (nc_beats_blas(g.type, g.m, g.n) || beats_blas_narrow(&g) ||
      !nc_is_real(g.type) || g.m > INT_MAX || g.n > INT_MAX || g.k > INT_MAX ||
      g.cs > INT_MAX || !blas_layout(&a, g.m, g.k, g.as))
    own_gemm(&g);
  else if (g.n == 1) vector_product(g, a);
  else if (blas_layout(&b, g.k, g.n, g.bs)) blas_gemm(&g, a, b);
  else own_gemm(&g);
}
