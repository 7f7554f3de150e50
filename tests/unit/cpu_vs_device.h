/* SPDX-License-Identifier: MIT */
/*
** cpu_vs_device.h - tensors equal on the CPU and on the device, of random
** shapes, layouts and types, for tests that compare the two.
*/
#ifndef cpu_vs_device_h
#define cpu_vs_device_h

#include "tests/unit/cuda_fixture.h"

#include <math.h>

#undef nc_hint                /* the core's again */
#undef nc_fail
#undef nc_release
#undef nc_dense
#undef nc_cast

static int64_t held;          /* by the device before a test */

static const DType floats[] = { DT_f32, DT_f16, DT_bf16, DT_f64 };
static const DType wholes[] = { DT_b8,  DT_u8,  DT_i8,   DT_i16, DT_i32,
                                DT_i64, DT_f16, DT_bf16, DT_f32, DT_f64 };
#define COUNT(list) ((int64_t)(sizeof list / sizeof *list))
#define ANYOF(list) list[below(COUNT(list))]

/*
** Tensors on both sides
*/
typedef struct Twin {
  Tensor *cpu, *gpu;
} Twin;

static inline void put(Tensor *t, int64_t i, double v) {
  Tensor e = *t;
  e.nd = 0;
  e.offset += i;
  e.refs = 1;
  ok(nc_fill(&e, nc_category(t->dtype) == NC_FLOAT ? nc_float(v)
                                                   : nc_int((int64_t)v)));
}

static inline double get(const Tensor *t, int64_t i) {
  Scalar v;
  ok(nc_read(&v, t, i));
  return nc_tofloat(v);
}

/* The gpu's twin of a dense tensor of the CPU. */
static inline Tensor *twin(Tensor *t) {
  Tensor *g;
  ok(nc_new(&g, d, t->dtype, t->nd, t->size));
  ok(d->copy(d, nc_data(g), nc_data(t), nc_numel(t) * nc_dtypesize(t->dtype),
             &nc_cpu, 0));
  return g;
}

/* n elements; many are equal, some (one in `odd') infinite or nan. */
static inline Twin vector(DType type, int64_t n, int odd) {
  static const double strange[] = { INFINITY, -INFINITY, NAN, 0, -0.0 };
  Twin t;
  ok(nc_new(&t.cpu, &nc_cpu, type, 1, &n));
  for (int64_t i = 0; i < n; i++) {
    double v = (double)(below(2001) - 1000) / 64;
    if (type == DT_b8) v = (double)below(2);
    else if (nc_category(type) != NC_FLOAT) v = (double)below(100);
    else if (odd && below(odd) == 0) v = ANYOF(strange);
    put(t.cpu, i, v);
  }
  t.gpu = twin(t.cpu);
  return t;
}

static inline void drop(Twin t) {
  nc_release(t.cpu);
  nc_release(t.gpu);
}

/* Sees both as nd dimensions; each element lies inside if the sizes do. */
static inline void shape(Twin t, int nd, const int64_t size[],
                         const int64_t step[], int64_t offset) {
  Tensor *both[2] = { t.cpu, t.gpu };
  for (int i = 0; i < 2; i++) {
    both[i]->nd = nd;
    both[i]->offset = offset;
    for (int k = 0; k < nd; k++) {
      both[i]->size[k] = size[k];
      both[i]->step[k] = step[k];
    }
  }
}

/* A tensor of random layout: permuted, sliced, repeated. */
static inline Twin tensor(DType type, int nd, const int64_t size[], int odd) {
  int64_t step[NC_MAXDIM], n = 1;
  int order[NC_MAXDIM], offset = (int)below(4);
  const int permute = below(3) == 0;
  for (int i = 0; i < nd; i++) order[i] = nd - 1 - i;
  for (int i = 0; permute && i < nd; i++) {
    const int j = (int)below(nd), k = order[i];
    order[i] = order[j];
    order[j] = k;
  }
  for (int i = 0; i < nd; i++) {
    const int64_t gaps = below(6) ? 1 : 1 + below(2);
    step[order[i]] = below(20) ? n * gaps : 0;
    if (step[order[i]]) n *= gaps * (size[order[i]] ? size[order[i]] : 1);
  }
  Twin t = vector(type, n + offset, odd);
  shape(t, nd, size, step, below(2) ? offset : 0);
  return t;
}

/* The result g of the device must be that of the CPU; differences up to
   `most' times the size of a number, or of `unit'. */
static inline void same(const Tensor *c, const Tensor *g, double most,
                        double unit) {
  Tensor *back;
  const int64_t n = nc_numel(c);
  assert_int_equal(nc_numel(g), n);
  ok(nc_new(&back, &nc_cpu, c->dtype, 1, &n));
  ok(d->tohost(d, nc_data(back), nc_data(g), n * nc_dtypesize(c->dtype), 0));
  for (int64_t i = 0; i < n; i++) {
    const double a = get(c, i), b = get(back, i);
    const double size = fabs(a) > unit ? fabs(a) : unit;
    if (a == b || (isnan(a) && isnan(b))) continue;
    if (fabs(a - b) <= most * size) continue;
    fail_msg("%s element %d of %d: %.17g is to be %.17g",
             nc_dtypename(c->dtype), (int)i, (int)n, b, a);
  }
  nc_release(back);
}

static inline Twin indices(int64_t n, int64_t size) {
  Twin t;
  ok(nc_new(&t.cpu, &nc_cpu, DT_i64, 1, &n));
  for (int64_t i = 0; i < n; i++)
    put(t.cpu, i, (double)(below(2) ? 1 + below(size) : -1 - below(size)));
  t.gpu = twin(t.cpu);
  return t;
}

/* For results. */
static inline Twin blank(DType type, int nd, const int64_t size[]) {
  Twin t;
  ok(nc_new(&t.cpu, &nc_cpu, type, nd, size));
  ok(nc_new(&t.gpu, d, type, nd, size));
  return t;
}

/*
** Picking
*/
enum { GET, PUT, FOLD };      /* gather, scatter, accumulate */

/* Where the positions `given' lie along dim of x: on the device, on both. */
static inline void deviceplaces(Twin offset, Twin given, Twin x, int dim) {
  const ResolveIndexCall p = { .given = given.gpu, .offset = offset.gpu,
                               .of = x.gpu, .size = x.gpu->size[dim],
                               .step = x.gpu->step[dim], .shown = dim };
  ok(d->resolve_index(d, &p));
}

static inline Twin places(Twin given, Twin x, int dim) {
  Twin offset = blank(DT_i64, given.cpu->nd, given.cpu->size);
  const ResolveIndexCall p = { .given = given.cpu, .offset = offset.cpu,
                               .of = x.cpu, .size = x.cpu->size[dim],
                               .step = x.cpu->step[dim], .shown = dim };
  ok(nc_cpu.resolve_index(&nc_cpu, &p));
  deviceplaces(offset, given, x, dim);
  return offset;
}

static inline int pick(int how, const Device *on, const IndexCall *g) {
  if (how == GET) return on->index_read(on, g);
  return how == PUT ? on->index_write(on, g) : on->index_accumulate(on, g);
}

/* The same on both devices. */
static inline void bothpick(int how, IndexCall g, Twin x, Twin other,
                            Twin offset) {
  for (int i = 0; i < 2; i++) {
    g.x = i ? x.gpu : x.cpu;
    g.other = i ? other.gpu : other.cpu;
    g.offset = i ? offset.gpu : offset.cpu;
    ok(pick(how, i ? d : &nc_cpu, &g));
  }
}

/* Of n positions half are wrong, the others 1: the device tells it, and all
   elements but the first stay what they were. */
static inline void wrongly(int how, int64_t n) {
  const int64_t rest = 7, one = 1;
  Twin x = vector(DT_f32, 8, 0), other = vector(DT_f32, n, 0);
  Twin given = blank(DT_i64, 1, &n), offset = blank(DT_i64, 1, &n);
  for (int64_t i = 0; i < n; i++)
    put(given.cpu, i, i % 4 == 0 ? 9 : i % 4 == 2 ? 0 : 1);
  nc_release(given.gpu);
  given.gpu = twin(given.cpu);
  deviceplaces(offset, given, x, 0);
  const IndexCall g = { .x = x.gpu, .other = other.gpu, .offset = offset.gpu,
                     .picked = 1 };
  ok(pick(how, d, &g));
  assert_int_equal(d->synchronize(d), NC_EINDEX);
  shape(x, 1, &rest, &one, 1);
  same(x.cpu, x.gpu, 0, 0);
  drop(x);
  drop(other);
  drop(given);
  drop(offset);
}

/*
** Around each test: the device is to hold no more than before.
*/
static inline int remember(void **unused) {
  (void)unused;
  held = d->memory->live;
  return 0;
}

static inline int forget(void **unused) {
  (void)unused;
  if (d->synchronize(d) != NC_OK) return -1;
  return d->memory->live == held ? 0 : -1;
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(test_##name, remember, forget)

#endif
