/* SPDX-License-Identifier: MIT */
/*
** cpu_vs_device.h - tensors of random elements, equal on the CPU and on the
** device, for tests that compare the two.
*/
#ifndef cpu_vs_device_h
#define cpu_vs_device_h

#include "tests/unit/cuda_fixture.h"

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
    else if (nc_is_exact(type)) v = (double)below(100);
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

static inline Twin random_matrix(DType type, int64_t rows, int64_t columns,
                                 int odd) {
  Twin t = random_vector(type, rows * columns, odd);
  for (int i = 0; i < 2; i++) {
    Tensor *h = half(t, i);
    h->nd = 2;
    h->size[0] = rows;
    h->size[1] = h->step[0] = columns;
    h->step[1] = 1;
  }
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
