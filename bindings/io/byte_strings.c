/* SPDX-License-Identifier: MIT */
/*
** byte_strings.c - elements without a header: of a string by nacre.frombuffer
** and t:tobytes, for string.pack and sockets, of a file by nacre.fromfile and
** t:tofile.
*/

#include <string.h>

#include "bindings/io/tensor_files.h"
#include "bindings/arguments/arguments.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"
#include "core/autograd.h"

#define ORDERS "text|little|big|native"
#define FROM_OPTIONS                                 \
  "dtype:dtype=nil, count:int=-1, offset:int=0, *, " \
  "shape:ints=nil, byteorder:" ORDERS "=nil, device:device=nil"
enum { DTYPE = 1, COUNT, OFFSET, SHAPE, BYTEORDER, DEVICE, MMAP };

typedef struct Raw { /* what is read, and how */
  const char *op;
  const char *what; /* "text" or "file" */
  Source from;
  RawFormat f;
} Raw;

/* Is `order' the other byte order than this machine's? [-0, +0, e] */
static int is_swapped(lua_State *L, const char *op, const char *order) {
  if (order == NULL || strcmp(order, "native") == 0) return 0;
  if (strcmp(order, "little") == 0) return nc_bigendian();
  if (strcmp(order, "big") == 0) return !nc_bigendian();
  return nl_error(L, op, "byteorder must be little, big or native, not '%s'",
                  order);
}

/* The number of elements of `size' bytes from the offset on in a buffer of n
   bytes. [-0, +0, e] */
static int64_t count_elements(lua_State *L, const Raw *r, const Args *a,
                              int64_t n, int64_t size) {
  const int64_t offset = r->f.offset, count = a->arg[COUNT].s.i;
  if (offset < 0 || offset > n)
    nl_error(L, r->op, "offset is %lld, but the %s has %lld bytes",
             (long long)offset, r->what, (long long)n);
  if (count < -1) nl_error(L, r->op, "count is %lld", (long long)count);
  if (count < 0 && (n - offset) % size != 0)
    nl_error(L, r->op,
             "%lld bytes are not a whole number of elements of %lld bytes",
             (long long)(n - offset), (long long)size);
  if (count > (n - offset) / size)
    nl_error(L, r->op,
             "%lld elements of %lld bytes were requested, but there are "
             "%lld bytes",
             (long long)count, (long long)size, (long long)(n - offset));
  return count < 0 ? (n - offset) / size : count;
}

/* The product of the sizes but those of -1, whose place is *left, or -1.
   [-0, +0, e] */
static int64_t known_elements(lua_State *L, const char *op, const Arg *shape,
                              int *left) {
  int64_t known = 1;
  *left = -1;
  for (int d = 0; d < shape->n; d++) {
    const int64_t size = shape->list[d];
    if (size < -1 || (size == -1 && *left >= 0))
      nl_error(L, op,
               "shape has the size %lld; only one size may be -1, which is "
               "computed",
               (long long)size);
    if (size == -1) *left = d;
    else if (size > 0 && known > INT64_MAX / size)
      nl_error(L, op, "shape: it is beyond 64 bits");
    else known *= size;
  }
  return known;
}

/* Stores the requested sizes for n elements and returns how many there are; one
   size may be -1, which is computed. [-0, +0, e] */
static int read_shape(lua_State *L, const char *op, const Arg *shape, int64_t n,
                      int64_t size[]) {
  int left;
  if (!shape->present) return size[0] = n, 1;
  if (shape->n > NC_MAXDIM)
    nl_error(L, op, "a tensor has at most %d dimensions", NC_MAXDIM);
  const int64_t known = known_elements(L, op, shape, &left);
  if (left < 0 && known != n)
    nl_error(L, op,
             "shape has %lld elements, but there are %lld; count chooses how "
             "many, and a size of -1 is computed",
             (long long)known, (long long)n);
  if (left >= 0 && (known == 0 || n % known != 0))
    nl_error(L, op,
             "shape: the sizes except -1 have %lld elements, and %lld is not "
             "a multiple of that",
             (long long)known, (long long)n);
  for (int d = 0; d < shape->n; d++) size[d] = shape->list[d];
  if (left >= 0) size[left] = n / known;
  return shape->n;
}

/* Pushes the tensor that the arguments describe. [-0, +1, e] */
static int read_elements(lua_State *L, Raw *r, const Args *a) {
  int64_t shape[NC_MAXDIM], bytes = 0, size;
  const Device *d =
      a->arg[DEVICE].device ? a->arg[DEVICE].device : nc_default_device();
  r->f.dtype = a->arg[DTYPE].dtype != DT_NONE ? a->arg[DTYPE].dtype
                                              : nl_context(L)->dtype;
  r->f.offset = a->arg[OFFSET].s.i;
  r->f.swap = is_swapped(L, r->op, a->arg[BYTEORDER].text);
  size = nc_dtypesize(r->f.dtype);
  nl_check_as(L, nc_sourcesize(&bytes, &r->from), r->op);
  const int64_t n = count_elements(L, r, a, bytes, size);
  const int nd = read_shape(L, r->op, &a->arg[SHAPE], n, shape);
  Tensor **y = nl_newbox(L), **there = y;
  nl_try_as(L, r->op, nc_loadraw(y, &r->from, &r->f, nd, shape));
  if (d != nc_host()) {
    there = nl_newbox(L);
    nl_check(L, nc_todevice(there, *y, d));
  }
  if (a->pin) nl_check(L, nl_pin(there));
  if (a->require) nl_check(L, nc_set_requires_grad(*there, 1));
  nl_pace(L);
  return 1;
}

static int frombuffer(lua_State *L) {
  Raw r = { .op = "frombuffer", .what = "text" };
  size_t bytes;
  Args a;
  nl_args(L, &a);
  r.from.path = "buffer";
  r.from.bytes = lua_tolstring(L, 1, &bytes);
  r.from.n = (int64_t)bytes;
  if (r.from.bytes == NULL || r.from.bytes != a.arg[0].text)
    return nl_error(L, r.op, "buffer comes first, not by name");
  return read_elements(L, &r, &a);
}

static int fromfile(lua_State *L) {
  Raw r = { .op = "fromfile", .what = "file" };
  Args a;
  nl_args(L, &a);
  nl_read_source(L, r.op, 1, &r.from);
  r.from.map = (int)a.arg[MMAP].s.i;
  return read_elements(L, &r, &a);
}

/* tofile(self, path, options) */
static int tofile(lua_State *L) {
  Sink to = { .path = NULL };
  Args a;
  nl_args(L, &a);
  to.path = a.arg[1].text;
  to.atomic = (int)a.arg[3].s.i;
  const int swap = is_swapped(L, "tofile", a.arg[2].text);
  nl_try_as(L, "tofile", nc_saveraw(&to, a.arg[0].t, swap));
  return 0;
}

static int tobytes(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1), **host, **dense;
  host = dense = nl_newbox(L);
  nl_check(L, nc_readable_elements(host, t));
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

const Bound nl_bytes[] = {
  { "frombuffer", frombuffer, "buffer:text, " FROM_OPTIONS " -> tensor",
    "a tensor of a copy of the bytes of a string, for example of string.pack "
    "or tobytes; offset is in bytes, count in elements, -1 for all that "
    "follow; byteorder is little, big or native (the default)",
    1 },
  { "fromfile", fromfile,
    "path:any|file, " FROM_OPTIONS ", mmap:bool=false -> tensor",
    "a tensor of the bytes of a file, written by tofile or a program in C; "
    "offset is in bytes, count in elements, -1 for all that follow; byteorder "
    "is little, big or native (the default); with mmap, pages of the file are "
    "read when they are used",
    1 },
  { "tofile", tofile,
    "self, path:file, *, byteorder:" ORDERS "=nil, atomic:bool=true",
    "writes the elements, row by row, without a header; fromfile reads them",
    2 },
  { "tobytes", tobytes, "self -> string",
    "the bytes of the elements as a string, row by row; "
    "frombuffer reads it",
    2 },
  { "tostring_bytes", tobytes, "self -> string", "the same as tobytes", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
