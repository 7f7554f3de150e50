/* SPDX-License-Identifier: MIT */
/*
** fourier_request.c - the request fourier on the CPU.  Short lines are
** transformed as many as there are lanes at once, long ones alone; a line of an
** even number of real numbers as half as many complex ones.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/fourier/fourier_plan.h"
#include "core/cpu/kernels/kernels.h"

#define SHORT_LINE 512       /* elements of a line that lanes suit best */
#define MOST_BY_LANES 2048   /* the same where a matrix leaves lanes unused */
#define MOST_APART (1 << 15) /* of a line whose elements lie apart */
#define LONG_LINE (1 << 15)  /* elements that are worth all threads */

typedef struct FourierWork {
  const FourierCall *call;
  const FourierPlan *plan; /* of as many elements as are transformed */
  const FourierKernels *loops;
  const char *x;
  char *y;
  int64_t size;         /* bytes of a number */
  int64_t outer, inner; /* lines: outer * inner */
  int64_t xline, yline; /* elements of a line of x and y */
  int xparts, yparts;   /* numbers of an element: 1 or 2 */
  int half;             /* real numbers in twos? */
  int64_t blocks;       /* of lanes in `inner' lines, or in all */
} FourierWork;

static int64_t product(const Tensor *t, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= t->size[d];
  return n;
}

/* The number at which line i of x begins; and of y. */
static int64_t line_start(const FourierWork *k, int64_t i, int64_t line,
                          int parts) {
  return (i / k->inner * line * k->inner + i % k->inner) * parts;
}
static const char *x_at(const FourierWork *k, int64_t i) {
  return k->x + line_start(k, i, k->xline, k->xparts) * k->size;
}
static char *y_at(const FourierWork *k, int64_t i) {
  return k->y + line_start(k, i, k->yline, k->yparts) * k->size;
}

/* How elements of x or y lie; real numbers in twos if `packed'. */
static FourierLayout layout(const FourierWork *k, int64_t line, int parts,
                            int packed) {
  const int64_t inner = k->inner;
  FourierLayout l = { .step = inner * parts,
                      .gap = parts == 2,
                      .apart = inner > 1 ? parts : line * parts };
  if (packed) {
    l.step *= 2;
    l.gap = inner;
  }
  return l;
}
static FourierLayout x_layout(const FourierWork *k) {
  return layout(k, k->xline, k->xparts,
                k->half && k->call->kind == FOURIER_OF_REAL);
}
static FourierLayout y_layout(const FourierWork *k) {
  return layout(k, k->yline, k->yparts,
                k->half && k->call->kind == FOURIER_TO_REAL);
}

/*
** Lines as lanes
*/
/* Of half a spectrum of pairs, the conjugate of the whole one, of n elements,
   whose transform is the inverse one's. */
static void complete(void *pairs, int64_t n, int64_t numbers, DType type) {
  const int64_t size = numbers * nc_dtypesize(type); /* of half a pair */
  char *z = pairs;
  for (int64_t i = 1; i <= n / 2; i++)
    memcpy(z + 2 * size * (n - i), z + 2 * size * i, (size_t)(2 * size));
  for (int64_t i = 0; i <= n / 2; i++)
    for (int64_t j = 0; j < numbers; j++) {
      char *im = z + 2 * size * i + size;
      if (type == DT_f32) ((float *)im)[j] = i ? -((float *)im)[j] : 0;
      else ((double *)im)[j] = i ? -((double *)im)[j] : 0;
    }
}

static void lanes_block(void *ctx, int64_t b, char *buffer) {
  const FourierWork *k = ctx;
  const FourierKernels *f = k->loops;
  const FourierPlan *p = k->plan;
  const FourierKind kind = k->call->kind;
  const int64_t all = k->inner > 1 ? k->inner : k->outer;
  const int64_t part = b % k->blocks * f->lanes;
  const int64_t first = b / k->blocks * k->inner + part;
  const int64_t lines = nc_min(f->lanes, all - part), n = p->n;
  FourierLayout xl = x_layout(k), yl = y_layout(k);
  char *z = buffer, *other = z + 2 * (n + 1) * f->lanes * k->size;
  xl.swap = yl.swap = k->call->inverse && kind == FOURIER_COMPLEX;
  f->gather(z, x_at(k, first), &xl, kind == FOURIER_OF_REAL ? n : k->xline,
            lines);
  if (kind == FOURIER_TO_REAL) {
    if (k->half) f->pack(z, p->half_roots, n);
    else complete(z, n, f->lanes, p->type);
    yl.swap = k->half;
  }
  z = f->transform(&p->whole, z, other);
  if (kind == FOURIER_OF_REAL && k->half) f->unpack(z, p->half_roots, n);
  f->spread(y_at(k, first), &yl, z, kind == FOURIER_TO_REAL ? n : k->yline,
            lines, k->call->scale);
}

/*
** Lines alone
*/
/* The transform of line i by `run', which nc_fourier_line or the threads do. */
typedef int RunLine(const FourierPlan *p, const void *x,
                    const FourierLayout *xl, void *y, const FourierLayout *yl,
                    double scale, void *work);

static int on_this_thread(const FourierPlan *p, const void *x,
                          const FourierLayout *xl, void *y,
                          const FourierLayout *yl, double scale, void *work) {
  nc_fourier_line(p, x, xl, y, yl, scale, work);
  return NC_OK;
}

static int on_all_threads(const FourierPlan *p, const void *x,
                          const FourierLayout *xl, void *y,
                          const FourierLayout *yl, double scale, void *work) {
  (void)work;
  return nc_fourier_long_line(p, x, xl, y, yl, scale);
}

/* Complex numbers of a line that pass through a buffer; the work comes behind
   them. */
static int64_t buffered_bytes(const FourierWork *k) {
  if (k->call->kind == FOURIER_COMPLEX) return 0;
  return nc_ceil_div(2 * k->plan->n * k->size, 64) * 64;
}

static const FourierLayout dense = { .step = 2, .gap = 1 };

static int line_of_real(const FourierWork *k, int64_t i, RunLine *run,
                        char *buffer) {
  const FourierLayout xl = x_layout(k), yl = y_layout(k);
  char *y = y_at(k, i), *work = buffer + buffered_bytes(k);
  const double scale = k->call->scale;
  if (k->half) {
    TRY(run(k->plan, x_at(k, i), &xl, y, &yl, scale, work));
    k->loops->unpack_line(y, yl.step, k->plan->half_roots, k->plan->n);
    return NC_OK;
  }
  TRY(run(k->plan, x_at(k, i), &xl, buffer, &dense, scale, work));
  nc_copy_rows(y, yl.step * k->size, buffer, 2 * k->size, k->yline,
               2 * k->size);
  return NC_OK;
}

static int line_to_real(const FourierWork *k, int64_t i, RunLine *run,
                        char *buffer) {
  const FourierLayout xl = x_layout(k);
  FourierLayout yl = y_layout(k);
  const char *x = x_at(k, i);
  if (k->half) {
    k->loops->pack_line(buffer, x, xl.step, k->plan->half_roots, k->plan->n);
    yl.swap = 1;
  } else {
    nc_copy_rows(buffer, 2 * k->size, x, xl.step * k->size, k->xline,
                 2 * k->size);
    complete(buffer, k->plan->n, 1, k->plan->type);
  }
  return run(k->plan, buffer, &dense, y_at(k, i), &yl, k->call->scale,
             buffer + buffered_bytes(k));
}

static int line(const FourierWork *k, int64_t i, RunLine *run, char *buffer) {
  FourierLayout xl = x_layout(k), yl = y_layout(k);
  switch (k->call->kind) {
    case FOURIER_OF_REAL: return line_of_real(k, i, run, buffer);
    case FOURIER_TO_REAL: return line_to_real(k, i, run, buffer);
    default:
      xl.swap = yl.swap = k->call->inverse;
      return run(k->plan, x_at(k, i), &xl, y_at(k, i), &yl, k->call->scale,
                 buffer);
  }
}

static void line_task(void *ctx, int64_t i, char *buffer) {
  line(ctx, i, on_this_thread, buffer);
}

/* Few long lines, one after the other. */
static int long_lines(const FourierWork *k) {
  const int64_t bytes = buffered_bytes(k);
  void *buffer = NULL;
  int r = NC_OK;
  if (bytes) TRY(nc_hostalloc(&buffer, bytes));
  for (int64_t i = 0; r == NC_OK && i < k->outer * k->inner; i++)
    r = line(k, i, on_all_threads, buffer);
  if (buffer) nc_hostfree(buffer, bytes);
  return r;
}

/* Whether lanes are better filled by lines than by the columns of one. */
static int suits_lanes(const FourierWork *k) {
  const FourierSplit *s = &k->plan->split;
  const int64_t n = k->plan->n, lanes = k->loops->lanes;
  if (k->plan->whole.n == 0) return 0;
  if (k->inner > 1) return n <= MOST_APART;
  if (n < SHORT_LINE || s->n1 == 0) return k->outer > 1 || s->n1 == 0;
  return k->outer >= lanes / 2 && n <= MOST_BY_LANES &&
         (s->n1 % lanes || s->n2 % lanes);
}

static int run_lines(FourierWork *k) {
  const int64_t lines = k->outer * k->inner, lanes = k->loops->lanes;
  if (suits_lanes(k)) {
    k->blocks = nc_ceil_div(k->inner > 1 ? k->inner : k->outer, lanes);
    return nc_cpu_tasks(k->inner > 1 ? k->outer * k->blocks : k->blocks,
                        4 * (k->plan->n + 1) * lanes * k->size, lanes_block, k);
  }
  if (lines < nc_threads() && k->plan->n >= LONG_LINE) return long_lines(k);
  return nc_cpu_tasks(lines, buffered_bytes(k) + nc_fourier_work(k->plan),
                      line_task, k);
}

int nc_cpu_fourier(const FourierCall *c) {
  const Tensor *x = c->x, *y = c->y;
  const int xparts = c->kind == FOURIER_OF_REAL ? 1 : 2;
  FourierWork k = { .call = c,
                    .x = nc_data(x),
                    .y = nc_data(y),
                    .size = nc_dtypesize(x->dtype),
                    .xparts = xparts,
                    .yparts = c->kind == FOURIER_TO_REAL ? 1 : 2,
                    .outer = product(x, 0, c->dim),
                    .inner = product(x, c->dim + 1, x->nd - (xparts == 2)),
                    .xline = x->size[c->dim],
                    .yline = y->size[c->dim],
                    .loops = nc_fourier_kernels(x->dtype) };
  const int64_t n = c->kind == FOURIER_TO_REAL ? k.yline : k.xline;
  k.half = c->kind != FOURIER_COMPLEX && n % 2 == 0;
  TRY(nc_fourier_plan(&k.plan, k.half ? n / 2 : n, x->dtype, k.half));
  const int r = run_lines(&k);
  nc_fourier_forget();
  return r;
}
