/* SPDX-License-Identifier: MIT */
/*
** cartesian.c - operators on lists of vectors: meshgrid, cartesian_prod,
** combinations, indices of triangles, vander; and hstack, vstack and others on
** lists of tensors.
*/
#include <string.h>

#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/portable.h"

/*
** Stacks
*/
/* Returns x as the stack takes it: with at least as many dimensions as the
   result has, or for column_stack a vector as a column. */
static Tensor *stacked_part(Temps *w, Tensor *x, Operator stack) {
  static const int64_t column[] = { -1, 1 };
  if (stack == OPERATOR_column_stack)
    return x->nd < 2 ? nc_temps_reshape(w, x, 2, column) : x;
  Call c = nc_callon(stack == OPERATOR_hstack   ? OPERATOR_atleast_1d
                     : stack == OPERATOR_dstack ? OPERATOR_atleast_3d
                                                : OPERATOR_atleast_2d,
                     x);
  return nc_temps_call(w, &c);
}

/* Concatenates the parts along the dimension that the name implies. */
int nc_op_hstack(Call *c) {
  const int rows = c->op == OPERATOR_vstack || c->op == OPERATOR_row_stack;
  const int dim = rows ? 1 : c->op == OPERATOR_dstack ? 3 : 2;
  const Arg *list = &c->arg[0];
  Call low = { .op = c->op };
  Call cat = nc_callon(OPERATOR_cat, NULL);
  int r = NC_OK;
  if (list->n == 0) return nc_fail(NC_EVALUE, "no tensors are given");
  TRY(nc_newlist(&low, list->n));
  for (int i = 0; i < list->n && r == NC_OK; i++) {
    Temps w = { 0 };
    r = nc_temps_end(&w, &low.list[i],
                     stacked_part(&w, list->tensors[i], c->op));
  }
  if (r == NC_OK) {
    cat.arg[0].tensors = low.list;
    cat.arg[0].n = low.nlist;
    nc_setint(&cat, 1, low.list[0]->nd == 1 ? 1 : dim);
    r = nc_callfirst(&c->out[0], &cat);
  }
  nc_freelist(&low);
  return r;
}

/* concat and concatenate */
int nc_op_concat(Call *c) {
  Call cat = *c;
  cat.op = OPERATOR_cat;
  return nc_callfirst(&c->out[0], &cat);
}

/*
** Grids
*/
/* Fails for the first element before element i that does not broadcast with
   it. */
static int mismatch(const Arg *list, int i) {
  int64_t size[NC_MAXDIM];
  int nd;
  for (int k = 0; k < i; k++) {
    const Arg in[2] = { { .t = list->tensors[k] }, { .t = list->tensors[i] } };
    if (nc_broadcast(in, 2, &nd, size) == NC_OK) continue;
    nc_error_element(k, in[0].t);
    nc_error_element(i, in[1].t);
    break;
  }
  return nc_lasterror()->code;
}

int nc_op_broadcast_tensors(Call *c) {
  const Arg *list = &c->arg[0];
  int64_t size[NC_MAXDIM];
  int nd = 0;
  for (int i = 0; i < list->n; i++) { /* the shape so far with the next one */
    Tensor shape = { .nd = nd };
    memcpy(shape.size, size, (size_t)nd * sizeof *size);
    const Arg in[2] = { { .t = &shape }, { .t = list->tensors[i] } };
    if (nc_broadcast(in, 2, &nd, size) != NC_OK) return mismatch(list, i);
  }
  TRY(nc_newlist(c, list->n));
  for (int i = 0; i < list->n; i++) {
    Temps w = { 0 };
    nc_temps_result(&w, &c->list[i],
                    nc_temps_expand(&w, list->tensors[i], nd, size));
    TRY(nc_temps_finish(&w));
  }
  return NC_OK;
}

/* Returns the vector x expanded to the grid of this size, along dimension
   `at'. */
static Tensor *grid_axis(Temps *w, Tensor *x, int at, int nd,
                         const int64_t size[]) {
  int64_t own[NC_MAXDIM];
  for (int d = 0; d < nd; d++) own[d] = d == at ? size[d] : 1;
  return nc_temps_expand(w, nc_temps_reshape(w, x, nd, own), nd, size);
}

/* Checks the vectors of meshgrid and cartesian_prod and sets the size of the
   grid.  With xy the first two dimensions are exchanged. */
static int grid_size(const Arg *list, int64_t size[], int xy) {
  if (list->n == 0) return nc_fail(NC_EVALUE, "no tensors are given");
  if (list->n > NC_MAXDIM)
    return nc_fail(NC_ESHAPE, "%d tensors, the most is %d", list->n, NC_MAXDIM);
  for (int i = 0; i < list->n; i++) {
    const Tensor *t = list->tensors[i];
    if (t->nd > 1)
      return nc_fail(NC_ESHAPE, "tensor %d has %d dimensions, a vector has 1",
                     i + 1, t->nd);
    if (t->dtype != list->tensors[0]->dtype)
      return nc_fail(NC_EDTYPE, "tensor %d is %s, tensor 1 is %s", i + 1,
                     nc_dtypename(t->dtype),
                     nc_dtypename(list->tensors[0]->dtype));
    size[xy && i < 2 && list->n > 1 ? 1 - i : i] = t->nd ? t->size[0] : 1;
  }
  return NC_OK;
}

int nc_op_meshgrid(Call *c) {
  const Arg *list = &c->arg[0];
  const int xy = c->arg[1].s.i == 1 && list->n > 1;
  int64_t size[NC_MAXDIM];
  TRY(grid_size(list, size, xy));
  TRY(nc_newlist(c, list->n));
  for (int i = 0; i < list->n; i++) {
    Temps w = { 0 };
    nc_temps_result(&w, &c->list[i],
                    grid_axis(&w, list->tensors[i], xy && i < 2 ? 1 - i : i,
                              list->n, size));
    TRY(nc_temps_finish(&w));
  }
  return NC_OK;
}

int nc_op_cartesian_prod(Call *c) {
  const Arg *list = &c->arg[0];
  int64_t size[NC_MAXDIM];
  Tensor *t[NC_MAXDIM], *y;
  Temps w = { 0 };
  TRY(grid_size(list, size, 0));
  for (int i = 0; i < list->n; i++)
    t[i] =
        nc_temps_flatten(&w, grid_axis(&w, list->tensors[i], i, list->n, size));
  Call stack = nc_callon(OPERATOR_stack, NULL);
  stack.arg[0].tensors = t;
  stack.arg[0].n = list->n;
  nc_setint(&stack, 1, 2);
  y = list->n == 1 ? nc_temps_op1(&w, OP_clone, t[0])
                   : nc_temps_call(&w, &stack);
  return nc_temps_endcall(&w, c, y);
}

/*
** combinations: r of n elements, in lexicographic order
*/
/* Returns how many there are, with replacement if `again'; INT64_MAX if that
   is more than 1e18. */
static int64_t count_combinations(int64_t n, int64_t r, int again) {
  double count = 1;
  if (again && n > 0 && NC_ADDOVER(n, r - 1, &n)) return INT64_MAX;
  if (r > n) return 0;
  if (r > n - r) r = n - r; /* C(n, r) = C(n, n - r) */
  for (int64_t i = 0; i < r && count < 1e18; i++)
    count = count * (double)(n - i) / (double)(i + 1);
  return count < 1e18 ? (int64_t)(count + 0.5) : INT64_MAX;
}

/* Writes the 1-based positions of all combinations, r in a row. */
static int fill_combinations(int64_t *p, int64_t rows, int64_t n, int64_t r,
                             int again) {
  for (int64_t k = 0; k < r && rows > 0; k++) p[k] = again ? 1 : k + 1;
  for (int64_t i = 1; i < rows; i++) {
    int64_t *q = p + i * r, k = r - 1;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    memcpy(q, q - r, (size_t)r * sizeof *q);
    while (q[k] == (again ? n : n - r + 1 + k)) k--;
    q[k]++;
    for (k++; k < r; k++) q[k] = again ? q[k - 1] : q[k - 1] + 1;
  }
  return NC_OK;
}

int nc_op_combinations(Call *c) {
  Tensor *x = c->arg[0].t, *here = NULL, *index = NULL;
  const int64_t r = c->arg[1].s.i;
  const int again = (int)c->arg[2].s.i;
  int64_t size[2] = { 0, r };
  Temps w = { 0 };
  int s;
  TRY(nc_check_vector(x));
  TRY(nc_check_notnegative("r", r));
  size[0] = r ? count_combinations(x->size[0], r, again) : 0;
  if ((s = nc_new(&here, &nc_cpu, DT_i64, r ? 2 : 1, size)) == NC_OK &&
      (s = fill_combinations(nc_data(here), size[0], x->size[0], r, again)) ==
          NC_OK)
    s = nc_todevice(&index, here, nc_device(x));
  nc_release(here);
  index = nc_temps_add(&w, s, &index);
  x = nc_temps_indexselect(&w, x, 0, nc_temps_flatten(&w, index));
  return nc_temps_endcall(&w, c, nc_temps_reshape(&w, x, r ? 2 : 1, size));
}

/*
** tril_indices and triu_indices: two rows, of row and of column positions
*/
/* Sets the range from .. to-1 of columns of row i that are in the triangle. */
static void triangle_columns(int64_t *from, int64_t *to, int64_t i, int64_t m,
                             int64_t offset, int upper) {
  int64_t edge;
  if (NC_ADDOVER(i, offset, &edge)) edge = offset < 0 ? INT64_MIN : INT64_MAX;
  if (!upper && edge < INT64_MAX) edge++;
  edge = edge < 0 ? 0 : edge > m ? m : edge;
  *from = upper ? edge : 0;
  *to = upper ? m : edge;
}

/* Sets the range first .. last-1 of rows that have elements in the triangle,
   and clamps the offset to -n .. m, beyond which it makes no difference. */
static void triangle_rows(int64_t *first, int64_t *last, int64_t n, int64_t m,
                          int64_t *offset, int upper) {
  if (*offset < -n) *offset = -n;
  if (*offset > m) *offset = m;
  *first = 0;
  *last = n;
  if (!upper && *offset < 0) *first = -*offset;
  if (upper && (NC_ADDOVER(m, -*offset, last) || *last > n)) *last = n;
  if (m == 0) *last = *first;
}

/* Counts the positions, then writes rows to the first half of y and columns
   to the second; on the host, then copied to the device. */
int nc_op_tril_indices(Call *c) {
  const int upper = c->op == OPERATOR_triu_indices;
  const int64_t n = c->arg[0].s.i, m = c->arg[1].s.i;
  const DType type = nc_dtype_or(&c->arg[3], DT_i64);
  const Device *d = c->arg[4].device ? c->arg[4].device : nc_default_device();
  int64_t size[2] = { 2, 0 }, offset = c->arg[2].s.i, from, to, *p;
  int64_t first, last;
  Tensor *y = NULL, *there = NULL;
  int r;
  if (n < 0 || m < 0)
    return nc_fail(NC_ESHAPE, "size %lld is negative",
                   (long long)(n < 0 ? n : m));
  triangle_rows(&first, &last, n, m, &offset, upper);
  size[1] = last - first; /* a lower bound: fails early if memory is short */
  TRY(nc_new(&y, &nc_cpu, DT_i64, 2, size));
  nc_release(y);
  size[1] = 0;
  for (int64_t i = first; i < last; i++) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    triangle_columns(&from, &to, i, m, offset, upper);
    if (NC_ADDOVER(size[1], to - from, &size[1]))
      return nc_fail(NC_ESHAPE, "the triangle is too large");
  }
  TRY(nc_new(&y, &nc_cpu, DT_i64, 2, size));
  p = nc_data(y);
  for (int64_t i = first; i < last && !nc_interrupted; i++) {
    triangle_columns(&from, &to, i, m, offset, upper);
    for (; from < to; from++, p++) {
      p[0] = i + 1;
      p[size[1]] = from + 1;
    }
  }
  r = nc_interrupted ? nc_fail(NC_EINTR, "interrupted")
                     : nc_todevice(&there, y, d);
  nc_release(y);
  if (r == NC_OK) r = nc_cast(&c->out[0], there, type);
  nc_release(there);
  return r;
}

/* vander: the powers of a vector as columns, which are products of those
   before, as in PyTorch. */
int nc_op_vander(Call *c) {
  static const int64_t columnshape[] = { -1, 1 };
  Tensor *x = c->arg[0].t, *y, *first = NULL;
  const int64_t n = c->arg[1].present ? c->arg[1].s.i : x->nd ? x->size[0] : 0;
  Temps w = { 0 };
  TRY(nc_check_vector(x));
  TRY(nc_check_notnegative("N", n));
  int64_t size[] = { x->size[0], 1 };
  if (x->dtype == DT_b8) x = nc_temps_cast(&w, x, DT_i64);
  y = nc_temps_reshape(&w, x, 2, columnshape);
  if (w.status == NC_OK)
    first = nc_temps_full(&w, x, x->dtype, 2, size, nc_int(1));
  size[1] = n > 0 ? n - 1 : 0;
  y = nc_temps_expand(&w, y, w.status == NC_OK ? 2 : 0, size);
  y = nc_temps_cat(&w, (Tensor *[]){ first, y }, 2, 1);
  if (n == 0) y = nc_temps_narrow(&w, y, 1, 0, 0);
  y = nc_temps_call1(&w, OPERATOR_cumprod, y, 2, 0);
  if (!c->arg[2].s.i) y = nc_temps_flip(&w, y, 1);
  return nc_temps_endcall(&w, c, y);
}
