/* SPDX-License-Identifier: MIT */
/*
** random.c - the default generator, and tensors filled from it.  philox.h
** says which words make which element; nothing here depends on the number
** of threads.
*/
#define _DEFAULT_SOURCE       /* getentropy */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"
#include "op.h"
#include "philox.h"
#include "scalar.h"

#define CHUNK (4 * NC_DRAWS)  /* elements made at a time, at most */
#define GRAIN (64 * CHUNK)

/*
** The generator: a seed and the number of the next block
*/
static struct { int seeded; uint64_t seed, next; } generator;

void nc_seed(uint64_t seed) {
  generator.seeded = 1;
  generator.seed = seed;
  generator.next = 0;
}

uint64_t nc_initialseed(void) {
  uint64_t seed;
  if (!generator.seeded) {
    if (getentropy(&seed, sizeof seed) != 0)
      seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    nc_seed(seed);
  }
  return generator.seed;
}

/* Takes the blocks for n elements, `per' a block. */
static uint64_t take(int64_t n, int per) {
  uint64_t block = generator.next;
  generator.next += (uint64_t)n / (unsigned)per + (n % per != 0);
  return block;
}

/*
** Filling a tensor
*/
typedef struct Blocks {
  Words w;
  uint64_t first;             /* the number of the first */
} Blocks;

typedef struct Draw {
  /* makes the elements of NC_DRAWS blocks */
  void (*make)(const struct Draw *d, void *v, Blocks *x);
  Computed type;              /* of what it makes */
  int per;                    /* elements a block */
  int bits;                   /* of a uniform float */
  double a, b, limit;         /* a + b*x, at most limit */
  uint64_t range;             /* of integers, from low */
  int64_t low;
  uint64_t key, block;
  const DrawKernels *kernel;
  Tensor *y;                  /* dense, on the CPU */
} Draw;

static void uniforms(const Draw *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b, limit = (float)d->limit;
  float *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++) {
      const float u = a + b * philox_uniform(x->w[j][i], d->bits);
      r[4 * i + j] = u < limit ? u : limit;
    }
}

static void uniforms2(const Draw *d, void *v, Blocks *x) {
  double *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++) {
      const double u =
          d->a + d->b * philox_uniform2(x->w[2 * j][i], x->w[2 * j + 1][i]);
      r[2 * i + j] = u < d->limit ? u : d->limit;
    }
}

static void normals(const Draw *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b;
  float *r = v;
  d->kernel->normals(r, x->w);
  for (int i = 0; i < 4 * NC_DRAWS; i++) r[i] = a + b * r[i];
}

static void normals2(const Draw *d, void *v, Blocks *x) {
  double *r = v;
  d->kernel->normals2(r, x->w);
  for (int i = 0; i < 2 * NC_DRAWS; i++) r[i] = d->a + d->b * r[i];
}

static void integers(const Draw *d, void *v, Blocks *x) {
  int64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++)
      r[4 * i + j] = d->low +
                     (int64_t)philox_below(x->w[j][i], d->range, d->key,
                                           x->first + (uint64_t)i, j);
}

static void integers2(const Draw *d, void *v, Blocks *x) {
  uint64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++)
      r[2 * i + j] = (uint64_t)d->low +
                     philox_below2(x->w[2 * j][i], x->w[2 * j + 1][i],
                                   d->range, d->key, x->first + (uint64_t)i,
                                   j);
}

/* begin is a multiple of CHUNK */
static void chunk(void *ctx, int64_t begin, int64_t end) {
  const Draw *d = ctx;
  const DType type = d->y->dtype;
  const int convert = d->type == CT_i64 && nc_category(type) == NC_FLOAT;
  const Move store = nc_kernels()->store[convert ? CT_f64 : d->type][type];
  const int64_t step = (int64_t)d->per * NC_DRAWS;
  char *y = nc_data(d->y);
  union { float f[CHUNK]; double d[CHUNK]; int64_t i[CHUNK]; } v;
  Blocks x;
  for (int64_t i = begin; i < end; i += step) {
    x.first = d->block + (uint64_t)(i / d->per);
    d->kernel->words(x.w, d->key, x.first, 0);
    d->make(d, &v, &x);
    if (convert)
      for (int k = 0; k < step; k++) v.d[k] = (double)v.i[k];
    store(y + i * nc_dtypesize(type), &v, 1, end - i < step ? end - i : step);
  }
}

/* Fills y, whatever its strides and its device. */
static int fill(Tensor *y, Draw *d) {
  const int direct = nc_device(y) == &nc_cpu && nc_isdense(y);
  const int64_t n = nc_numel(y);
  int r;
  TRY(nc_checkout(y, y->dtype, y->nd, y->size));
  d->y = y;
  if (!direct) TRY(nc_new(&d->y, &nc_cpu, y->dtype, y->nd, y->size));
  d->kernel = &nc_kernels()->draw;
  d->key = nc_initialseed();
  d->block = take(n, d->per);
  nc_count(n, n * nc_dtypesize(y->dtype));
  r = nc_parallel(n, GRAIN, chunk, d);
  if (r == NC_OK && !direct) r = nc_copy(y, d->y);
  if (!direct) nc_release(d->y);
  return r;
}

/*
** Distributions
*/
static int needsfloat(DType t) {
  if (nc_category(t) == NC_FLOAT) return NC_OK;
  return nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(t));
}

/* bits of precision */
static int precision(DType t) {
  return t == DT_f16 ? 11 : t == DT_bf16 ? 8 : t == DT_f32 ? 24 : 53;
}

static double largest(DType t) {
  return t == DT_f16    ? 65504
         : t == DT_bf16 ? 0x1.fep127
         : t == DT_f32  ? 0x1.fffffep127
                        : 0x1.fffffffffffffp1023;
}

/* The largest number of type t below x, subnormal ones apart. */
static double below(double x, DType t) {
  int e;
  double half = frexp(x, &e), ulp = ldexp(1, e - precision(t)), y;
  if (x == 0) return t == DT_f64 ? -0x1p-1022 : t == DT_f16 ? -0x1p-14
                                                            : -0x1p-126;
  y = floor(x / ulp) * ulp;
  return y < x ? y : x - (half == 0.5 ? ulp / 2 : ulp);
}

static Draw uniform(DType t, double from, double to) {
  Draw d = { .make = uniforms, .type = CT_f32, .per = 4 };
  d.bits = precision(t);
  d.a = from;
  d.b = to - from;
  d.limit = below(to, t);
  if (d.limit < from) d.limit = from;
  if (t == DT_f64) {
    d.make = uniforms2;
    d.type = CT_f64;
    d.per = 2;
  }
  return d;
}

static Draw normal(DType t, double mean, double std) {
  Draw d = { .make = normals, .type = CT_f32, .per = 4 };
  d.a = mean;
  d.b = std;
  if (t == DT_f64) {
    d.make = normals2;
    d.type = CT_f64;
    d.per = 2;
  }
  return d;
}

/* The integers that t holds exactly; 0 if it holds others too. */
static int extent(DType t, int64_t *low, int64_t *high) {
  static const int bits[DT_COUNT] = { 1, 8, 7, 15, 31, 63 };
  if (nc_category(t) == NC_FLOAT) {
    *high = (int64_t)1 << precision(t);
    *low = -*high;
    return 0;
  }
  *high = (int64_t)(((uint64_t)1 << bits[t]) - 1);
  *low = t == DT_b8 || t == DT_u8 ? 0 : -*high - 1;
  return 1;
}

/* Does t hold every integer low .. high? */
static int holds(DType t, int64_t low, int64_t high) {
  int64_t least, most;
  int whole = extent(t, &least, &most);
  if (low >= least && high <= most) return NC_OK;
  return nc_fail(NC_EVALUE, "%lld is outside the %s of %s: %lld to %lld",
                 (long long)(low < least ? low : high),
                 whole ? "range" : "exact integers", nc_dtypename(t),
                 (long long)least, (long long)most);
}

/* Integers in [low, high); arg holds low and high. */
static int integer(Draw *d, DType t, const Arg arg[]) {
  int64_t low = arg[1].given ? arg[0].s.i : 0;
  int64_t high = arg[1].given ? arg[1].s.i : arg[0].s.i;
  if (high <= low)
    return nc_fail(NC_EVALUE, "there is no integer from %lld to below %lld",
                   (long long)low, (long long)high);
  TRY(holds(t, low, high - 1));
  *d = (Draw){ .make = integers, .type = CT_i64, .per = 4, .low = low };
  d->range = (uint64_t)high - (uint64_t)low;
  if (d->range > (uint64_t)1 << 32) {
    d->make = integers2;
    d->per = 2;
  }
  return NC_OK;
}

/*
** Families
*/
static int blamed(const Call *c, int r, int operands) {
  return nc_blamed(r, nc_families[c->op].name, c->arg, operands);
}

/* out[0] = y filled; takes y over, which may be NULL after a failure r */
static int give(Call *c, int r, Tensor *y, Draw *d, int operands) {
  if (r == NC_OK && (r = fill(y, d)) == NC_OK)
    c->out[0] = y;
  else
    nc_release(y);
  return blamed(c, r, operands);
}

static DType typeor(const Arg *a, DType otherwise) {
  return a->dtype == DT_NONE ? otherwise : a->dtype;
}

/* A tensor of type t in sizes a, or like tensor a; where[0] is a device. */
static int make(Tensor **y, const Arg *a, DType t, const Arg *where) {
  const Device *d = where->device;
  *y = NULL;
  if (a->t == NULL)
    return nc_new(y, d ? d : &nc_cpu, t, a->n, a->list);
  if (d && d != nc_device(a->t)) return nc_new(y, d, t, a->t->nd, a->t->size);
  return nc_newlike(y, a->t, t);
}

/* rand, randn: arg 0 is a size or a tensor, then come dtype and device */
static int floats(Call *c, Draw (*distribution)(DType, double, double),
                  double b) {
  Tensor *like = c->arg[0].t, *y = NULL;
  DType t = typeor(&c->arg[1], like ? like->dtype : nc_defaultdtype);
  Draw d = distribution(t, 0, b);
  int r = needsfloat(t);
  if (r == NC_OK) r = make(&y, &c->arg[0], t, &c->arg[2]);
  return give(c, r, y, &d, like != NULL);
}

int nc_op_rand(Call *c) {
  return floats(c, uniform, 1);
}

int nc_op_rand_like(Call *c) {
  return floats(c, uniform, 1);
}

int nc_op_randn(Call *c) {
  return floats(c, normal, 1);
}

int nc_op_randn_like(Call *c) {
  return floats(c, normal, 1);
}

int nc_op_randint(Call *c) {
  DType t = typeor(&c->arg[3], DT_i64);
  Tensor *y = NULL;
  Draw d;
  int r = integer(&d, t, &c->arg[0]);
  if (r == NC_OK) r = make(&y, &c->arg[2], t, &c->arg[4]);
  return give(c, r, y, &d, 0);
}

int nc_op_randint_like(Call *c) {
  DType t = typeor(&c->arg[3], c->arg[0].t->dtype);
  Tensor *y = NULL;
  Draw d;
  int r = integer(&d, t, &c->arg[1]);
  if (r == NC_OK) r = make(&y, &c->arg[0], t, &c->arg[4]);
  return give(c, r, y, &d, 1);
}

/* Fills self. */
static int inplace(Call *c, int r, Draw *d) {
  if (r == NC_OK && (r = fill(c->arg[0].t, d)) == NC_OK)
    nc_retain(c->out[0] = c->arg[0].t);
  return blamed(c, r, 1);
}

/* nan without the sign that printf would show */
static double unsignednan(double x) {
  return x == x ? x : fabs(x);
}

static int checkuniform(DType t, double from, double to) {
  const double most = largest(t);
  TRY(needsfloat(t));
  if (!(from <= to))
    return nc_fail(NC_EVALUE, "from is %g, and to is %g",
                   unsignednan(from), unsignednan(to));
  if (from < -most || to > most || to - from > most)
    return nc_fail(NC_EVALUE, "the interval from %g to %g is too wide for %s",
                   from, to, nc_dtypename(t));
  return NC_OK;
}

int nc_op_uniform_(Call *c) {
  DType t = c->arg[0].t->dtype;
  double from = nc_tofloat(c->arg[1].s), to = nc_tofloat(c->arg[2].s);
  Draw d = { .make = NULL };
  int r = checkuniform(t, from, to);
  if (r == NC_OK) d = uniform(t, from, to);
  return inplace(c, r, &d);
}

int nc_op_normal_(Call *c) {
  DType t = c->arg[0].t->dtype;
  double mean = nc_tofloat(c->arg[1].s), std = nc_tofloat(c->arg[2].s);
  Draw d = normal(t, mean, std);
  int r = needsfloat(t);
  if (r == NC_OK && !(std >= 0))
    r = nc_fail(NC_EVALUE, "a standard deviation of %g", unsignednan(std));
  return inplace(c, r, &d);
}

/*
** A permutation: Fisher and Yates' shuffle.  Draw number k, over n-k values,
** chooses the element that goes to position n-1-k.
*/
static int shuffle(int64_t *p, int64_t n) {
  const DrawKernels *kernel = &nc_kernels()->draw;
  const int wide = n > (int64_t)1 << 32, per = wide ? 2 : 4;
  const uint64_t key = nc_initialseed(), first = take(n, per);
  Words w;
  for (int64_t i = 0; i < n; i++) p[i] = i + 1;
  for (int64_t k = 0; k < n; k++) {
    const int at = (int)(k / per % NC_DRAWS), j = (int)(k % per);
    const uint64_t block = first + (uint64_t)(k / per);
    const uint64_t left = (uint64_t)(n - k);
    uint64_t to;
    if (at == 0 && j == 0) {
      if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
      kernel->words(w, key, block, 0);
    }
    if (wide)
      to = philox_below2(w[2 * j][at], w[2 * j + 1][at], left, key, block, j);
    else
      to = philox_below(w[j][at], left, key, block, j);
    int64_t last = p[left - 1];
    p[left - 1] = p[to];
    p[to] = last;
  }
  return NC_OK;
}

int nc_op_randperm(Call *c) {
  const int64_t n = c->arg[0].s.i;
  const Device *where = c->arg[2].device;
  DType t = typeor(&c->arg[1], DT_i64);
  Tensor *p = NULL, *cast = NULL;
  int r = n < 0 ? nc_fail(NC_EVALUE, "a permutation of %lld numbers",
                          (long long)n)
                : holds(t, 0, n);
  if (r == NC_OK) r = nc_new(&p, &nc_cpu, DT_i64, 1, &n);
  if (r == NC_OK) r = shuffle(nc_data(p), n);
  if (r == NC_OK) r = nc_cast(&cast, p, t);
  if (r == NC_OK) r = nc_todevice(&c->out[0], cast, where ? where : &nc_cpu);
  if (r == NC_OK) nc_count(n, 2 * n * nc_dtypesize(DT_i64));
  nc_release(p);
  nc_release(cast);
  return blamed(c, r, 0);
}
