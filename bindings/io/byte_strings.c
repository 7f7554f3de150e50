/* SPDX-License-Identifier: MIT */
/*
** byte_strings.c - nacre.frombuffer and t:tobytes: strings of bytes to tensors
** and back, for string.pack, sockets and files.
*/

#include <string.h>

#include "bindings/binding.h"

#define FROM                                                      \
  "buffer:text, dtype:dtype=nil, count:int=-1, offset:int=0, *, " \
  "shape:ints=nil, device:device=nil -> tensor"
enum { FROM_DTYPE = 1, FROM_COUNT, FROM_OFFSET, FROM_SHAPE, FROM_DEVICE };
#define OP "frombuffer"

/* The number of elements of `size' bytes from the offset on in a buffer of n
   bytes. [-0, +0, e] */
static int64_t count_elements(lua_State *L, const Args *a, int64_t n,
                              int64_t size) {
  const int64_t offset = a->arg[FROM_OFFSET].s.i;
  const int64_t count = a->arg[FROM_COUNT].s.i;
  if (offset < 0 || offset > n)
    nl_error(L, OP, "offset is %lld, and the text has %lld bytes",
             (long long)offset, (long long)n);
  if (count < -1) nl_error(L, OP, "count is %lld", (long long)count);
  if (count < 0 && (n - offset) % size != 0)
    nl_error(L, OP,
             "%lld bytes are not a whole number of elements of %lld bytes",
             (long long)(n - offset), (long long)size);
  if (count > (n - offset) / size)
    nl_error(L, OP,
             "%lld elements of %lld bytes are asked for, and there are "
             "%lld bytes",
             (long long)count, (long long)size, (long long)(n - offset));
  return count < 0 ? (n - offset) / size : count;
}

/* Stores the requested sizes for n elements and returns how many there are; one
   size may be -1, which is computed. [-0, +0, e] */
static int read_shape(lua_State *L, const Arg *shape, int64_t n,
                      int64_t size[]) {
  int64_t known = 1;
  int left = -1;
  if (!shape->present) return size[0] = n, 1;
  if (shape->n > NC_MAXDIM)
    nl_error(L, OP, "a tensor has at most %d dimensions", NC_MAXDIM);
  for (int d = 0; d < shape->n; d++) {
    size[d] = shape->list[d];
    if (size[d] == -1 && left < 0) left = d;
    else if (size[d] < 0 || (size[d] > 0 && known > INT64_MAX / size[d]))
      known = -1;
    else if (known >= 0) known *= size[d];
  }
  if (left >= 0 && known > 0 && n % known == 0) {
    size[left] = n / known;
    known = n;
  }
  if (known != n || (left >= 0 && size[left] < 0))
    nl_error(L, OP, "%lld elements do not fill shape", (long long)n);
  return shape->n;
}

static int frombuffer(lua_State *L) {
  static Signature s;
  int64_t size[NC_MAXDIM];
  Tensor **y, **there;
  size_t bytes;
  Args a;
  nl_args(L, &s, OP, FROM, &a);
  const char *text = lua_tolstring(L, 1, &bytes);
  if (text == NULL || text != a.arg[0].text)
    return nl_error(L, OP, "buffer comes first, not by name");
  const DType type = a.arg[FROM_DTYPE].dtype != DT_NONE
                         ? a.arg[FROM_DTYPE].dtype
                         : nl_context(L)->dtype;
  const Device *d = a.arg[FROM_DEVICE].device ? a.arg[FROM_DEVICE].device
                                              : nc_default_device();
  const int64_t n = count_elements(L, &a, (int64_t)bytes, nc_dtypesize(type));
  const int nd = read_shape(L, &a.arg[FROM_SHAPE], n, size);
  y = there = nl_newbox(L);
  nl_check(L, nc_new(y, nc_host(), type, nd, size));
  unsigned char *p = nc_data(*y);
  if (n > 0)
    memcpy(p, text + a.arg[FROM_OFFSET].s.i, (size_t)(n * nc_dtypesize(type)));
  for (int64_t i = 0; type == DT_b8 && i < n; i++) p[i] = p[i] != 0;
  if (d != nc_host()) {
    there = nl_newbox(L);
    nl_check(L, nc_todevice(there, *y, d));
  }
  if (a.pin) nl_check(L, nl_pin(there));
  if (a.require) nl_check(L, nc_set_requires_grad(*there, 1));
  nl_pace(L);
  return 1;
}

static int tobytes(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1), **host, **dense;
  host = dense = nl_newbox(L);
  nl_check(L, nc_elements(host, t));
  if (!nc_isdense(*host)) {
    dense = nl_newbox(L);
    nl_check(L, nc_newdense(dense, nc_host(), t->dtype, t));
    nl_check(L, nc_copy(*dense, *host));
  }
  t = *dense;
  lua_pushlstring(L, nc_numel(t) > 0 ? nc_data(t) : "",
                  (size_t)(nc_numel(t) * nc_dtypesize(t->dtype)));
  nl_check(L, nc_fail_lost(t));
  return 1;
}

#define TO                                                          \
  "the elements as a string, row by row, each as it is in memory; " \
  "frombuffer reads it"

const Bound nl_bytes[] = {
  { OP, frombuffer, FROM,
    "a tensor of a copy of the bytes of a string, as string.pack or tobytes "
    "gives them; offset counts bytes, and count, elements, is -1 for all that "
    "follow",
    1 },
  { "tobytes", tobytes, "self -> string", TO, 2 },
  { "tostring_bytes", tobytes, "self -> string", "the same as tobytes", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
