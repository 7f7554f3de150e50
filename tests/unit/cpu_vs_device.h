/* SPDX-License-Identifier: MIT */
/*
** cpu_vs_device.h - tensors equal on the CPU and on the device, of random
** shapes, layouts and types, for tests that compare the two.
*/
#ifndef cpu_vs_device_h
#define cpu_vs_device_h

#include "tests/unit/cuda_fixture.h"

static const DType floats[] = { DT_f32, DT_f16, DT_bf16, DT_f64 };

/*
** Tensors on both devices.  Number 0 is the CPU, 1 the CUDA device.
*/
typedef struct Twin {
  Tensor *cpu, *gpu;
} Twin;

static inline const Device *device(int i) {
  return i ? d : &nc_cpu;
}

static inline Tensor *half(Twin t, int i) {
  return i ? t.gpu : t.cpu;
}

static inline void set_element(Tensor *t, int64_t i, double v) {
  store(nc_data(t), t->dtype, i, v);
}

/* Makes the tensor of the device a copy of that of the CPU, which is dense. */
static inline void upload(Twin *t) {
  const Tensor *c = t->cpu;
  nc_release(t->gpu);
  ok(nc_new(&t->gpu, d, c->dtype, c->nd, c->size));
  ok(d->copy(d, nc_data(t->gpu), nc_data(c),
             nc_numel(c) * nc_dtypesize(c->dtype), &nc_cpu, 0));
}

/* For results. */
static inline Twin new_twin(DType type, int nd, const int64_t size[]) {
  Twin t;
  ok(nc_new(&t.cpu, &nc_cpu, type, nd, size));
  ok(nc_new(&t.gpu, d, type, nd, size));
  return t;
}

/* n elements; many are equal, some (one in `odd') infinite or nan. */
static inline Twin random_vector(DType type, int64_t n, int odd) {
  static const double strange[] = { INFINITY, -INFINITY, NAN, 0, -0.0 };
  Twin t = new_twin(type, 1, &n);
  for (int64_t i = 0; i < n; i++) {
    double v = (double)(below(2001) - 1000) / 64;
    if (type == DT_b8) v = (double)below(2);
    else if (nc_category(type) != NC_FLOAT) v = (double)below(100);
    else if (odd && below(odd) == 0) v = ANYOF(strange);
    set_element(t.cpu, i, v);
  }
  upload(&t);
  return t;
}

#define drop(...)                                                           \
  do {                                                                      \
    const Twin twins_[] = { __VA_ARGS__ };                                  \
    for (int k_ = 0; k_ < COUNT(twins_); k_++)                              \
      release(twins_[k_].cpu, twins_[k_].gpu);                              \
  } while (0)

/* Sees both as nd dimensions; each element lies inside if the sizes do. */
static inline void set_shape(Twin t, int nd, const int64_t size[],
                             const int64_t step[], int64_t offset) {
  for (int i = 0; i < 2; i++) {
    Tensor *h = half(t, i);
    h->nd = nd;
    h->offset = offset;
    for (int k = 0; k < nd; k++) {
      h->size[k] = size[k];
      h->step[k] = step[k];
    }
  }
}

static inline Twin random_matrix(DType type, int64_t rows, int64_t columns,
                                 int odd) {
  const int64_t size[2] = { rows, columns }, step[2] = { columns, 1 };
  Twin t = random_vector(type, rows * columns, odd);
  set_shape(t, 2, size, step, 0);
  return t;
}

/* A tensor of random layout: permuted, sliced, repeated. */
static inline Twin random_tensor(DType type, int nd, const int64_t size[],
                                 int odd) {
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
  Twin t = random_vector(type, n + offset, odd);
  set_shape(t, nd, size, step, below(2) ? offset : 0);
  return t;
}

/* The result of the device must be that of the CPU; see is_close. */
static inline void assert_close(Twin t, double most, double unit) {
  const DType type = t.cpu->dtype;
  const int64_t n = nc_numel(t.cpu);
  Tensor *back;
  assert_int_equal(nc_numel(t.gpu), n);
  ok(nc_new(&back, &nc_cpu, type, 1, &n));
  ok(d->tohost(d, nc_data(back), nc_data(t.gpu), n * nc_dtypesize(type), 0));
  for (int64_t i = 0; i < n; i++) {
    const double a = load(nc_data(t.cpu), type, i);
    const double b = load(nc_data(back), type, i);
    if (is_close(a, b, most, unit)) continue;
    fail_msg("%s element %d of %d: %.17g is to be %.17g", nc_dtypename(type),
             (int)i, (int)n, b, a);
  }
  nc_release(back);
}

static inline Twin random_indices(int64_t n, int64_t size) {
  Twin t = new_twin(DT_i64, 1, &n);
  for (int64_t i = 0; i < n; i++)
    set_element(t.cpu, i,
                (double)(below(2) ? 1 + below(size) : -1 - below(size)));
  upload(&t);
  return t;
}

/*
** Advanced indexing
*/
typedef enum IndexRequest { READ, WRITE, ACCUMULATE } IndexRequest;

/* The offsets of an index along dim of x, on one device; and on both. */
static inline int resolve_on(int i, Twin offset, Twin index, Twin x, int dim) {
  const Tensor *of = half(x, i);
  const ResolveIndexCall p = { .index = half(index, i),
                               .offset = half(offset, i),
                               .of = of, .size = of->size[dim],
                               .step = of->step[dim], .dim = dim };
  return device(i)->resolve_index(device(i), &p);
}

static inline Twin resolve(Twin index, Twin x, int dim) {
  Twin offset = new_twin(DT_i64, index.cpu->nd, index.cpu->size);
  for (int i = 0; i < 2; i++) ok(resolve_on(i, offset, index, x, dim));
  return offset;
}

static inline int index_on(int i, IndexRequest how, IndexCall g, Twin x,
                           Twin other, Twin offset) {
  const Device *on = device(i);
  g.x = half(x, i);
  g.other = half(other, i);
  g.offset = half(offset, i);
  if (how == READ) return on->index_read(on, &g);
  return how == WRITE ? on->index_write(on, &g) : on->index_accumulate(on, &g);
}

static inline void index_both(IndexRequest how, IndexCall g, Twin x,
                              Twin other, Twin offset) {
  for (int i = 0; i < 2; i++) ok(index_on(i, how, g, x, other, offset));
}

/* Of n indices half are out of range, the others 1: the device reports it, and
   all elements but the first stay what they were. */
static inline void check_bad_indices(IndexRequest how, int64_t n) {
  const int64_t rest = 7, one = 1;
  Twin x = random_vector(DT_f32, 8, 0), other = random_vector(DT_f32, n, 0);
  Twin index = new_twin(DT_i64, 1, &n), offset = new_twin(DT_i64, 1, &n);
  const IndexCall g = { .indexed_dims = 1 };
  for (int64_t i = 0; i < n; i++)
    set_element(index.cpu, i, i % 4 == 0 ? 9 : i % 4 == 2 ? 0 : 1);
  upload(&index);
  ok(resolve_on(1, offset, index, x, 0));
  ok(index_on(1, how, g, x, other, offset));
  assert_int_equal(d->synchronize(d), NC_EINDEX);
  set_shape(x, 1, &rest, &one, 1);
  assert_close(x, 0, 0);
  drop(x, other, index, offset);
}

/*
** Around each test: the device is to hold no more than before.
*/
static int64_t live_before;

static inline int note_memory(void **state) {
  live_before = d->memory->live;
  return 0;
}

static inline int check_memory(void **state) {
  if (d->synchronize(d) != NC_OK) return -1;
  return d->memory->live == live_before ? 0 : -1;
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(test_##name, note_memory, check_memory)

#endif
