/* SPDX-License-Identifier: MIT */
/*
** tensor_copies.c - fills, copies and reads whole tensors: nc_fill, nc_copy,
** nc_read; copies in another dtype, order, or on another device: nc_cast,
** nc_dense, nc_move, nc_pin.
*/
#include <math.h>

#include "core/accelerator.h"
#include "core/batch.h"
#include "core/base/mapping.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/pointwise/scalar.h"
#include "core/tape.h"
#include "core/trace_internal.h"

/*
** Elements
*/
/* Returns v converted to type t, wrapped as elements are. */
static Scalar convert(Scalar v, DType t) {
  Category c = nc_category(t);
  if (c == NC_COMPLEX) return nc_complex(nc_tofloat(v), nc_imag(v));
  if (c == NC_FLOAT) return nc_float(nc_tofloat(v));
  if (v.kind == NC_FLOAT && c == NC_INT)
    v = nc_int(t == DT_i32   ? f64_toi32(v.f)
               : t == DT_u64 ? (int64_t)f64_tou64(v.f)
                             : f64_toi64(v.f));
  if (v.kind == NC_FLOAT) v = nc_int(v.f != 0);
  if (c == NC_BOOL) v.i = v.i != 0;
  return (Scalar){ c, { v.i }, 0, 0 };
}

/* Returns whether type t can represent v.  Types without a sign accept negative
   integers, which wrap: uint8 down to -255, uint64 all that int64 has. */
static int fits_in(Scalar v, DType t) {
  const double f = nc_tofloat(v);
  int64_t low, high;
  if (v.kind == NC_COMPLEX)
    return nc_is_complex(t) && fits_in(nc_float(v.f), t) &&
           fits_in(nc_float(v.im), t);
  if (v.kind == NC_BOOL || t == DT_b8) return 1;
  if (!nc_is_integer(t)) return !isfinite(f) || fabs(f) <= nc_largest(t);
  if (t == DT_u64) return v.kind == NC_INT || (f >= 0 && f < 0x1p64);
  nc_exact_range(t, &low, &high);
  if (v.kind == NC_INT) return v.i >= (low ? low : -high) && v.i <= high;
  return f >= (double)low && f <= (double)high && f < 0x1p63;
}

int nc_error_doesnotfit(Scalar v, DType t) {
  if (v.kind == NC_COMPLEX)
    return nc_fail(NC_EVALUE, "%g%+gi does not fit in %s", v.f, v.im,
                   nc_dtypename(t));
  if (v.kind == NC_FLOAT)
    return nc_fail(NC_EVALUE, "%g does not fit in %s", v.f, nc_dtypename(t));
  return nc_fail(NC_EVALUE, "%lld does not fit in %s", (long long)v.i,
                 nc_dtypename(t));
}

int nc_checkfits(Scalar v, DType t) {
  return fits_in(v, t) ? NC_OK : nc_error_doesnotfit(v, t);
}

int nc_checkholds(int64_t v, DType t) {
  if ((nc_dtypekind(t) == 'u' && v < 0) || (t == DT_b8 && v >> 1))
    return nc_error_doesnotfit(nc_int(v), t);
  return nc_checkfits(nc_int(v), t);
}

int nc_fill(Tensor *y, Scalar v) {
  Arg in[1] = { { .s = convert(v, y->dtype) } };
  TRY(nc_checkfits(v, y->dtype));
  TRY(nc_check_writable(y));
  return nc_run_pointwise(y, OP_clone, 0, y->dtype, in, 1, NULL);
}

/* Returns the type in which elements of x are copied to y: that of x, unless
   an integer becomes a float, or a result is complex. */
static DType copy_dtype(const Tensor *y, const Tensor *x) {
  int widen = (nc_is_exact(x->dtype) && !nc_is_exact(y->dtype)) ||
              nc_is_complex(y->dtype);
  return widen ? y->dtype : x->dtype;
}

/* Checks that x broadcasts to the shape of y. */
static int check_broadcast(const Tensor *y, const Tensor *x) {
  char a[NC_TEXT], b[NC_TEXT];
  int ok = x->nd <= y->nd;
  for (int d = 0; ok && d < x->nd; d++)
    ok = x->size[d] == 1 || x->size[d] == y->size[d + y->nd - x->nd];
  if (ok) return NC_OK;
  return nc_fail(NC_ESHAPE, "a [%s] tensor does not broadcast to [%s]",
                 nc_shapetext(a, x->nd, x->size),
                 nc_shapetext(b, y->nd, y->size));
}

/* Copies the bytes of x, dense, to y, of the same shape and type, from any
   device to any device.  `how' is NC_PINNED, NC_NOWAIT or 0. */
static int copy_bytes(Tensor *y, Tensor *x, int how) {
  const int64_t bytes = nc_numel(x) * nc_dtypesize(x->dtype);
  if (bytes == 0) return NC_OK;
  if (nc_is_sample(x)) return nc_batch_novalues(x);
  if (nc_ismetatensor(x) && !nc_ismetatensor(y))
    return nc_meta_novalues(nc_device(x));
  if (x->data->pinned || y->data->pinned) how |= NC_PINNED;
  nc_count(0, 2 * bytes);
  return nc_countwrite(y,
                       nc_device(y)->copy(nc_device(y), nc_data(y), nc_data(x),
                                          bytes, nc_device(x), how));
}

/* Returns whether the dense bytes of x can be written to y as they are. */
static int can_copy_bytes(const Tensor *y, const Tensor *x) {
  return y->dtype == x->dtype && nc_numel(y) == nc_numel(x) && nc_isdense(y);
}

/* Copies between devices: dense bytes first; the conversion runs on the
   device of y. */
static int copy_across(Tensor *y, Tensor *x, int how) {
  Tensor *dense = NULL, *there = NULL;
  int r;
  if ((r = nc_dense(&dense, x)) != NC_OK) return r;
  if (can_copy_bytes(y, x)) {
    r = copy_bytes(y, dense, how);
  } else if ((r = nc_newdense(&there, nc_device(y), x->dtype, x)) == NC_OK &&
             (r = copy_bytes(there, dense, how)) == NC_OK)
    r = nc_copy(y, there);
  nc_release(dense);
  nc_release(there);
  return r == NC_OK ? nc_check_lost(x) : r;
}

/* Fails if the copy would lose the imaginary parts. */
static int check_parts(const Tensor *y, const Tensor *x) {
  if (!nc_is_complex(x->dtype) || nc_is_complex(y->dtype)) return NC_OK;
  nc_fail(NC_EDTYPE, "%s numbers have no %s form: the imaginary part is lost",
          nc_dtypename(x->dtype), nc_dtypename(y->dtype));
  nc_hint("{0}.real is the real part; {0}:abs(), {0}.imag; {0}:ne(0) for bool");
  return NC_EDTYPE;
}

int nc_copy(Tensor *y, Tensor *x) {
  return nc_copyto(y, x, 0);
}

int nc_copyto(Tensor *y, Tensor *x, int how) {
  Arg in[1] = { { .t = x } };
  Tensor *apart = NULL;
  int r;
  TRY(check_broadcast(y, x));
  TRY(check_parts(y, x));
  TRY(nc_check_writable(y));
  if (nc_device(x) != nc_device(y)) return copy_across(y, x, how);
  if (nc_overlaps(x, y)) {
    TRY(nc_apply1(&apart, OP_clone, x));
    in[0].t = apart;
  }
  r = nc_run_pointwise(y, OP_clone, 0, copy_dtype(y, x), in, 1, NULL);
  nc_release(apart);
  return r == NC_OK ? nc_check_lost(x) : r;
}

int nc_read(Scalar *v, const Tensor *t, int64_t offset) {
  const Device *d = nc_device(t);
  char buf[16];
  const char *p = (const char *)nc_data(t) + offset * nc_dtypesize(t->dtype);
  *v = nc_int(0);
  if (d != &nc_cpu) {
    TRY(d->tohost(d, buf, p, nc_dtypesize(t->dtype), 0));
    p = buf;
  }
  *v = nc_load_element(t->dtype, p);
  return nc_check_lost(t);
}

/*
** New tensors
*/
int nc_full(Tensor **t, const Device *d, DType type, int nd,
            const int64_t size[], Scalar v) {
  TRY(nc_new(t, d, type, nd, size));
  return nc_release_failed(nc_fill(*t, v), t, 1);
}

/* *out = y, a new copy of x made with status r; records the copy, or releases
   y after a failure. */
static int finish_copy(Tensor **out, Tensor *x, Tensor *y, int r) {
  if (r == NC_OK && nc_mayrecord(x)) r = nc_record_copy(y, x);
  if (r == NC_OK) *out = y;
  else nc_release(y);
  return r;
}

static int call_copy(Tensor **out, Call *c) {
  const int r = nc_call(c);
  *out = c->out[0];
  return r;
}

int nc_cast(Tensor **out, Tensor *x, DType type) {
  Tensor *y;
  *out = NULL;
  if (x->dtype == type) {
    nc_retain(*out = x);
    return NC_OK;
  }
  if (nc_context->tracing)
    return call_copy(out, &(Call){ .kind = CALL_CAST,
                                   .arg = { { .t = x }, { .dtype = type } } });
  TRY(nc_newlike(&y, x, type));
  return finish_copy(out, x, y, nc_copy(y, x));
}

int nc_dense(Tensor **out, Tensor *x) {
  Tensor *y;
  *out = NULL;
  if (nc_isdense(x)) {
    nc_retain(*out = x);
    return NC_OK;
  }
  TRY(nc_newdense(&y, nc_device(x), x->dtype, x));
  return finish_copy(out, x, y, nc_copy(y, x));
}

/* Who wants a sample of vmap on the host is about to read it. */
int nc_todevice(Tensor **out, Tensor *x, const Device *d) {
  *out = NULL;
  if (d == &nc_cpu && nc_is_sample(x)) return nc_batch_novalues(x);
  return nc_move(out, x, d, 0);
}

int nc_move(Tensor **out, Tensor *x, const Device *d, int how) {
  Tensor *y;
  *out = NULL;
  if (nc_device(x) == d || nc_device(x) == nc_outside(d)) {
    nc_retain(*out = x);
    return NC_OK;
  }
  if (nc_context->tracing)
    return call_copy(out, &(Call){ .kind = CALL_MOVE,
                                   .arg = { { .t = x },
                                            { .device = d },
                                            { .s = nc_int(how) } } });
  TRY(nc_newdense(&y, d, x->dtype, x));
  return finish_copy(out, x, y, nc_copyto(y, x, how));
}

/* Replaces the memory of a new storage by page-locked host memory p. */
static void replace_by_pinned(Storage *s, void *p) {
  if (s->p != s->small) s->device->free(s->device, s->p, s->bytes);
  nc_memory.live += s->bytes;
  nc_memory.since += s->bytes;
  s->p = p;
  s->pinned = 1;
}

int nc_pin(Tensor **out, Tensor *x) {
  const Accelerator *a;
  Tensor *y;
  void *p;
  *out = NULL;
  if (nc_device(x) != &nc_cpu) {
    nc_fail(NC_EDEVICE, "only the memory of the cpu can be page-locked");
    nc_hint("{0}:cpu() first");
    return NC_EDEVICE;
  }
  if (x->data->pinned) {
    nc_retain(*out = x);
    return NC_OK;
  }
  TRY(nc_accelerator(&a));
  TRY(nc_newdense(&y, &nc_cpu, x->dtype, x));
  int r = a->pin(&p, y->data->bytes);
  if (r == NC_OK) {
    replace_by_pinned(y->data, p);
    r = nc_copy(y, x);
  }
  return finish_copy(out, x, y, r);
}

int nc_item(Scalar *v, const Tensor *t) {
  char shape[NC_TEXT];
  *v = nc_int(0);
  if (nc_numel(t) != 1) {
    nc_fail(NC_EVALUE, "the tensor must have one element, its shape is [%s]",
            nc_shapetext(shape, t->nd, t->size));
    nc_hint("{0}:totable() gives every element");
    return NC_EVALUE;
  }
  if (nc_context->tracing) return nc_trace_read(v, "item", t, 0);
  return nc_read(v, t, 0);
}

int nc_readable_elements(Tensor **y, Tensor *t) {
  if (nc_context->tracing) return nc_trace_elements(y, t);
  return nc_todevice(y, t, &nc_cpu);
}
