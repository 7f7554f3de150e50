/* SPDX-License-Identifier: MIT */
/*
** cpu_device.c - the CPU as a device: its memory, and the table of its
** requests, nc_cpu.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/op.h"
#include "core/tensor.h"

static int alloc(const Device *d, void **p, int64_t bytes) {
  (void)d;
  return nc_hostalloc(p, bytes);
}

static void release(const Device *d, void *p, int64_t bytes) {
  (void)d;
  nc_hostfree(p, bytes);
}

static int tohost(const Device *d, void *dst, const void *src, int64_t bytes,
                  int how) {
  (void)d, (void)how;
  memcpy(dst, src, (size_t)bytes);
  return NC_OK;
}

static int copy(const Device *d, void *dst, const void *src, int64_t bytes,
                const Device *from, int how) {
  (void)d;
  return from->tohost(from, dst, src, bytes, how);
}

static int synchronize(const Device *d) {
  (void)d;
  return NC_OK;
}

static void trim(const Device *d, int64_t budget) {
  (void)d;
  nc_trimcache(budget);
}

int nc_cpu_device_assert(const AssertCall *e) {
  return *(const uint8_t *)nc_data(e->x) ? NC_OK
                                         : nc_fail(e->code, "%s", e->text);
}

/* clang-format off */
#define X(request, Call)                                          \
  static int cpu_##request(const Device *d, const Call *c) {      \
    (void)d;                                                      \
    return nc_cpu_##request(c);                                   \
  }
DEVICE_REQUESTS(X)
OPTIONAL_REQUESTS(X)
#undef X
/* clang-format on */

const Device nc_cpu = { .name = "cpu",
                        .ordinal = -1,
                        .memory = &nc_memory,
                        .alloc = alloc,
                        .free = release,
                        .copy = copy,
                        .tohost = tohost,
                        .synchronize = synchronize,
                        .trim = trim,
#define X(request, Call) .request = cpu_##request,
                        DEVICE_REQUESTS(X) OPTIONAL_REQUESTS(X)
#undef X
};
