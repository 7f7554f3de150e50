/* SPDX-License-Identifier: MIT */
/*
** pad.c - pad, block_diag, and select_scatter, slice_scatter, diagonal_scatter
** (a copy of a tensor in which a view is replaced).
*/
#include <string.h>

#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/portable.h"

/* Copies src to the view of y that call c makes, which lacks only its
   operand. */
static void copy_to_view(Temps *w, Call *c, Tensor *y, Tensor *src) {
  Tensor *v;
  c->arg[0].t = y;
  v = nc_temps_call(w, c);
  if (w->status != NC_OK) return;
  if (src->nd != v->nd || memcmp(src->size, v->size, (size_t)v->nd * 8) != 0) {
    char have[NC_TEXT], want[NC_TEXT];
    w->status = nc_fail(NC_ESHAPE, "src is [%s], but must be [%s]",
                        nc_shapetext(have, src->nd, src->size),
                        nc_shapetext(want, v->nd, v->size));
  }
  nc_temps_copyinto(w, v, src);
}

/* select_scatter, slice_scatter, diagonal_scatter: a copy of argument 0 with a
   view of it replaced by argument 1; the other arguments are those of the
   view. */
int nc_op_select_scatter(Call *c) {
  const Operator view = c->op == OPERATOR_select_scatter  ? OPERATOR_select
                        : c->op == OPERATOR_slice_scatter ? OPERATOR_slice
                                                          : OPERATOR_diagonal;
  Temps w = { 0 };
  Call v = nc_callon(view, NULL);
  Tensor *y = nc_temps_op1(&w, OP_clone, c->arg[0].t);
  for (int i = 2; i < NC_MAXARG; i++) v.arg[i - 1] = c->arg[i];
  copy_to_view(&w, &v, y, c->arg[1].t);
  return nc_temps_endcall(&w, c, y);
}

/*
** pad: a negative pad crops
*/
enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };

/* Returns which of n elements is copied to position i, which counts from
   -before, of the padded dimension. */
static int64_t source_index(int64_t i, int64_t n, int mode) {
  if (mode == REPLICATE) return i < 0 ? 0 : i < n ? i : n - 1;
  if (mode == CIRCULAR) return i < 0 ? i + n : i < n ? i : i - n;
  return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

/* Checks that dimension d, of size n, can be padded by so much. */
static int check_pad(int64_t n, int64_t before, int64_t after, int mode,
                     int d) {
  const int64_t most = before > after ? before : after;
  const int64_t limit = mode == REFLECT    ? n - 1
                        : mode == CIRCULAR ? n
                        : n > 0            ? INT64_MAX
                                           : 0;
  if (most <= 0 || most <= limit) return NC_OK;
  return nc_fail(NC_ESHAPE,
                 "dim %d of size %lld cannot be padded by %lld in "
                 "this mode",
                 d + 1, (long long)n, (long long)most);
}

/* Returns what negative pads leave of dimension d, and sets them to 0. */
static Tensor *crop(Temps *w, Tensor *x, int d, int64_t *before,
                    int64_t *after) {
  const int64_t cut = *before < 0 ? *before : 0;
  int64_t left = x->size[d];
  if (NC_ADDOVER(left, cut, &left) ||
      NC_ADDOVER(left, *after < 0 ? *after : 0, &left) || left < 0)
    w->status = nc_fail(NC_ESHAPE,
                        "dim %d of size %lld cannot be cropped by "
                        "%lld and %lld",
                        d + 1, (long long)x->size[d], (long long)*before,
                        (long long)*after);
  *before = *before > 0 ? *before : 0;
  *after = *after > 0 ? *after : 0;
  if (w->status != NC_OK || left == x->size[d]) return x;
  return nc_temps_narrow(w, x, d, -cut, left);
}

/* Pads dimension d with its own elements, by index_select.  In the mode
   CIRCULAR what is cropped does not come back at the other end. */
static Tensor *pad_with_own(Temps *w, Tensor *x, int d, int64_t before,
                            int64_t after, int mode) {
  int64_t n, all, *p;
  Tensor *here = NULL, *index = NULL;
  int r;
  if (mode == CIRCULAR) x = crop(w, x, d, &before, &after);
  if (w->status != NC_OK || (before == 0 && after == 0)) return x;
  n = x->size[d];
  if ((w->status = check_pad(n, before, after, mode, d)) != NC_OK) return NULL;
  if (NC_ADDOVER(n, before, &all) || NC_ADDOVER(all, after, &all))
    all = INT64_MAX;
  if (all < 0) {
    w->status = nc_fail(NC_ESHAPE,
                        "dim %d of size %lld cannot be cropped by "
                        "%lld",
                        d + 1, (long long)n, (long long)(n - all));
    return NULL;
  }
  if ((r = nc_new(&here, &nc_cpu, DT_i64, 1, &all)) == NC_OK) {
    p = nc_data(here);
    for (int64_t i = 0; i < all && !nc_interrupted; i++)
      p[i] = source_index(i - before, n, mode) + 1;
    r = nc_interrupted ? nc_fail(NC_EINTR, "interrupted")
                       : nc_todevice(&index, here, nc_device(x));
  }
  nc_release(here);
  return nc_temps_indexselect(w, x, d, nc_temps_add(w, r, &index));
}

/* Fills what lies before position `from' and behind `n' more along dim d of t;
   returns what lies between. */
static Tensor *fill_ends(Temps *w, Tensor *t, int d, int64_t from, int64_t n,
                         Scalar value) {
  const int64_t ends[2][2] = { { 0, from }, { from + n, t->size[d] } };
  for (int i = 0; i < 2; i++) {
    const int64_t length = ends[i][1] - ends[i][0];
    Tensor *end = length ? nc_temps_narrow(w, t, d, ends[i][0], length) : NULL;
    if (end && w->status == NC_OK) w->status = nc_fill(end, value);
  }
  return nc_temps_narrow(w, t, d, from, n);
}

/* Pads the last dimensions with a number: a copy to a view of a new tensor, of
   which a small one is first filled as a whole. */
static Tensor *pad_constant(Temps *w, Tensor *x, const Arg *pad, Scalar value) {
  enum { WHOLE = 65536 };
  int64_t size[NC_MAXDIM], from[NC_MAXDIM];
  Tensor *y, *part;
  int whole;
  memcpy(size, x->size, sizeof size);
  memset(from, 0, sizeof from);
  for (int i = 0; 2 * i + 1 < pad->n && w->status == NC_OK; i++) {
    const int d = x->nd - 1 - i;
    int64_t before = pad->list[2 * i], after = pad->list[2 * i + 1];
    if (NC_ADDOVER(size[d], before, &size[d]) ||
        NC_ADDOVER(size[d], after, &size[d]))
      size[d] = INT64_MAX; /* nc_full fails with it */
    x = crop(w, x, d, &before, &after);
    if (w->status != NC_OK) return NULL;
    from[d] = before;
  }
  if (w->status != NC_OK) return NULL;
  whole = nc_numel(x) < WHOLE;
  part = y = whole ? nc_temps_full(w, x, x->dtype, x->nd, size, value)
                   : nc_temps_new(w, x, x->dtype, x->nd, size);
  for (int d = 0; d < x->nd && w->status == NC_OK; d++)
    if (x->size[d] != size[d]) {
      if (x->size[d] == 0) return y;
      part = whole ? nc_temps_narrow(w, part, d, from[d], x->size[d])
                   : fill_ends(w, part, d, from[d], x->size[d], value);
    }
  nc_temps_copyinto(w, part, x);
  return y;
}

int nc_op_pad(Call *c) {
  Tensor *x = c->arg[0].t;
  const Arg *pad = &c->arg[1];
  const int mode = (int)c->arg[2].s.i;
  Temps w = { 0 };
  if (pad->n % 2 != 0 || pad->n > 2 * x->nd)
    return nc_fail(
        NC_ESHAPE,
        "%d sizes for %d dimensions: two for each dimension are needed, "
        "from the last on",
        pad->n, x->nd);
  if (mode != CONSTANT && c->arg[3].present)
    return nc_fail(NC_EVALUE, "value is for constant padding only");
  if (mode == CONSTANT) x = pad_constant(&w, x, pad, c->arg[3].s);
  for (int i = 0; mode != CONSTANT && 2 * i < pad->n && w.status == NC_OK; i++)
    x = pad_with_own(&w, x, c->arg[0].t->nd - 1 - i, pad->list[2 * i],
                     pad->list[2 * i + 1], mode);
  if (x == c->arg[0].t) x = nc_temps_op1(&w, OP_clone, x);
  return nc_temps_endcall(&w, c, x);
}

/*
** block_diag
*/
int nc_op_block_diag(Call *c) {
  const Arg *list = &c->arg[0];
  int64_t size[2] = { 0, 0 }, row = 0, column = 0;
  DType type = list->n ? list->tensors[0]->dtype : nc_context->dtype;
  const Device *device = list->n ? nc_device(list->tensors[0]) : &nc_cpu;
  Tensor *y;
  Temps w = { 0 };
  for (int i = 0; i < list->n; i++) {
    const Tensor *t = list->tensors[i];
    if (t->nd > 2)
      return nc_fail(NC_ESHAPE, "tensor %d has %d dimensions, a matrix has 2",
                     i + 1, t->nd);
    type = nc_promote(type, t->dtype);
    if (NC_ADDOVER(size[0], t->nd == 2 ? t->size[0] : 1, &size[0]) ||
        NC_ADDOVER(size[1], t->nd ? t->size[t->nd - 1] : 1, &size[1]))
      return nc_fail(NC_ESHAPE, "the blocks are too large");
  }
  if (list->n == 0) size[0] = 1;
  TRY(nc_full(&c->out[0], device, type, 2, size, nc_int(0)));
  y = c->out[0];
  for (int i = 0; i < list->n; i++) {
    Tensor *t = list->tensors[i];
    const int64_t n = t->nd == 2 ? t->size[0] : 1;
    const int64_t m = t->nd ? t->size[t->nd - 1] : 1;
    if (nc_numel(t) > 0)
      nc_temps_copyinto(
          &w,
          nc_temps_narrow(&w, nc_temps_narrow(&w, y, 0, row, n), 1, column, m),
          t);
    TRY(nc_temps_finish(&w));
    row += n;
    column += m;
  }
  return NC_OK;
}
