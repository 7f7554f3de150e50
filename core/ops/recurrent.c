/* SPDX-License-Identifier: MIT */
/*
** recurrent.c - _recurrent and _recurrent_backward: all steps of a recurrent
** layer in one direction.  Each step is a product by the weights and one
** request to the device.  bindings/lib/functional/recurrent_cells.lua records
** them.
*/
#include "core/pointwise/temps.h"
#include "core/cpu/product/blas.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/tape.h"

/* How the rows of input and gates lie: those of each step one after the other,
   of all n samples, or of the first sizes[step] of them. */
typedef struct Layout {
  const int64_t *sizes;
  int64_t steps, n, rows; /* rows: of all steps */
} Layout;

/* n rows of a dense x [.. x width] from `row' on, as a matrix; a view. */
static Tensor *rows_of(Temps *w, const Tensor *x, int64_t row, int64_t n) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  y = nc_temps_add(w, nc_alias(&y, x), &y);
  if (y == NULL) return NULL;
  const int64_t width = x->size[x->nd - 1];
  y->offset += row * width;
  y->nd = 2;
  y->size[0] = n;
  y->size[1] = width;
  y->step[0] = width;
  y->step[1] = 1;
  return y;
}

/* Sets the s-th step that is run; k->row and k->rows are those of the step
   before, at first 0. */
static void set_step(RecurrentCall *k, const Layout *l, int64_t s,
                     int reverse) {
  const int down = reverse != k->back;
  k->at = down ? l->steps - 1 - s : s;
  k->prev = k->at + reverse;
  k->next = k->at + !reverse;
  if (!down) k->row += k->rows;
  k->rows = l->sizes ? l->sizes[k->at] : l->n;
  if (down) k->row = (s == 0 ? l->rows : k->row) - k->rows;
}

/* Fails unless t, which may be NULL, has the type and the shape. */
static int check(const Tensor *t, DType type, int nd, int64_t steps, int64_t n,
                 int64_t width) {
  if (t == NULL ||
      (t->dtype == type && t->nd == nd && (nd < 3 || t->size[0] == steps) &&
       (nd < 2 || t->size[nd - 2] == n) && t->size[nd - 1] == width))
    return NC_OK;
  return nc_fail(NC_ESHAPE, "the operands of a recurrent layer do not match");
}

/* Reads the sizes of the steps, which may not grow and have `rows' rows in all,
   into l->sizes. */
static int read_sizes(Temps *w, Layout *l, Tensor *sizes, int64_t rows) {
  Tensor *t = NULL;
  if (nc_temps_add(w, nc_readable(&t, sizes), &t) == NULL) return w->status;
  t = nc_temps_dense(w, t);
  if (w->status != NC_OK) return w->status;
  TRY(check(t, DT_i64, 1, 0, 0, t->nd ? t->size[t->nd - 1] : 0));
  l->sizes = nc_data(t);
  l->steps = t->size[0];
  l->rows = rows;
  for (int64_t i = 0, most = l->n; i < l->steps && rows >= 0;
       most = l->sizes[i++]) {
    if (l->sizes[i] < 0 || l->sizes[i] > most)
      return nc_fail(NC_EVALUE, "the sizes of the steps must not grow");
    rows -= l->sizes[i];
  }
  if (rows == 0) return NC_OK;
  return nc_fail(NC_ESHAPE, "the sizes of the steps do not add up to the rows");
}

/* Reads how gates, or the input, [rows x gates] or [steps x n x gates], lie;
   a sample has a row of states [.. x n x h]. */
static int read_layout(Temps *w, Layout *l, const Tensor *gates,
                       const Tensor *states, Tensor *sizes) {
  *l = (Layout){ 0 };
  l->n = states->nd >= 2 ? states->size[states->nd - 2] : 0;
  if (sizes) {
    if (gates->nd != 2) return check(gates, gates->dtype, 2, 0, 0, 0);
    TRY(read_sizes(w, l, sizes, gates->size[0]));
  } else if (gates->nd == 3) {
    l->steps = gates->size[0];
    l->rows = l->steps * l->n;
  } else return check(gates, gates->dtype, 3, 0, 0, 0);
  return l->steps ? NC_OK : nc_fail(NC_ESHAPE, "{0} has no steps");
}

/* Checks operands against gates, or the input. */
static int check_operands(const Tensor *gates, const Layout *l,
                          RecurrentKind kind, const Tensor *state,
                          const Tensor *cell, const Tensor *weight,
                          const Tensor *bias) {
  const int each = kind == RECURRENT_LSTM ? 4 : 3;
  const DType type = gates->dtype;
  const int64_t width = gates->size[gates->nd - 1], h = width / each;
  TRY(nc_check_float32or64(gates));
  TRY(check(gates, type, gates->nd, l->steps, gates->nd == 3 ? l->n : l->rows,
            each * h));
  TRY(check(state, type, 2, 0, l->n, h));
  TRY(check(cell, type, 2, 0, l->n, h));
  TRY(check(weight, type, 2, 0, width, h));
  return check(bias, type, 1, 0, 0, width);
}

/* *y = a*b + addend, which may be NULL. */
static Tensor *product(Temps *w, Tensor *a, Tensor *b, Tensor *addend) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(
      w, nc_product(&y, a, b, nc_int(1), addend, nc_int(addend != NULL)), &y);
}

static int run_step(const RecurrentCall *k) {
  const Device *d = nc_device(k->states);
  const int64_t units = k->states->size[2];
  nc_count(30 * k->rows * units, 6 * k->rows *
                                     k->gates->size[k->gates->nd - 1] *
                                     nc_dtypesize(k->gates->dtype));
  return k->rows > 0 && units > 0 ? d->recurrent(d, k) : NC_OK;
}

/* The samples that do not have this step keep their state, or their cell. */
static void keep_others(Temps *w, const RecurrentCall *k, Tensor *states) {
  const int64_t n = k->states->size[1], others = n - k->rows;
  Tensor *next = rows_of(w, states, k->next * n + k->rows, others);
  Tensor *prev = rows_of(w, states, k->prev * n + k->rows, others);
  if (w->status == NC_OK) nc_temps_copyinto(w, next, prev);
}

static int forward_step(RecurrentCall *k, Tensor *columns, Tensor *bias) {
  const int64_t n = k->states->size[1];
  const int lstm = k->kind == RECURRENT_LSTM;
  Temps w = { 0 };
  if (k->rows) {
    Tensor *before = rows_of(&w, k->states, k->prev * n, k->rows);
    if (lstm) bias = rows_of(&w, k->input, k->row, k->rows);
    k->sum = product(&w, before, columns, bias);
    if (w.status == NC_OK) w.status = run_step(k);
  }
  if (k->rows < n) {
    keep_others(&w, k, k->states);
    if (lstm) keep_others(&w, k, k->cells);
  }
  return nc_temps_finish(&w);
}

/* Makes the results of _recurrent, with the first state and cell. */
static void make_results(Temps *w, const Call *c, RecurrentCall *k,
                         const Layout *l) {
  const Tensor *x = c->arg[0].t;
  const int lstm = k->kind == RECURRENT_LSTM;
  const int64_t units = c->arg[1].t->size[1];
  const int64_t size[3] = { l->steps + 1, l->n, units };
  const int64_t packed[2] = { l->rows, units };
  const int64_t first = c->arg[6].s.i ? l->steps * l->n : 0;
  int64_t whole[3] = { l->steps + lstm, l->n, units };
  k->input = nc_temps_dense(w, c->arg[0].t);
  k->states = nc_temps_new(w, x, x->dtype, 3, size);
  k->cells = !lstm && l->sizes ? nc_temps_new(w, x, x->dtype, 2, packed)
                               : nc_temps_new(w, x, x->dtype, 3, whole);
  k->gates = nc_temps_new(w, x, x->dtype, x->nd, x->size);
  if (w->status == NC_OK)
    nc_temps_copyinto(w, rows_of(w, k->states, first, l->n), c->arg[1].t);
  if (w->status == NC_OK && lstm)
    nc_temps_copyinto(w, rows_of(w, k->cells, first, l->n), c->arg[2].t);
}

/* input, state, cell or none, weight, bias or none, kind, reverse, sizes or
   none -> states (one more than steps), cells, gates */
int nc_op__recurrent(Call *c) {
  RecurrentCall k = { .kind = (RecurrentKind)c->arg[5].s.i };
  Tensor *columns = NULL;
  const Device *d;
  Layout l;
  Temps w = { 0 };
  if (k.kind == RECURRENT_LSTM && c->arg[2].t == NULL)
    return nc_fail(NC_EVALUE, "an LSTM has a cell");
  TRY(nc_onedevice(&d, c->arg, 5));
  w.status = read_layout(&w, &l, c->arg[0].t, c->arg[1].t, c->arg[7].t);
  if (w.status == NC_OK)
    w.status = check_operands(c->arg[0].t, &l, k.kind, c->arg[1].t, c->arg[2].t,
                              c->arg[3].t, c->arg[4].t);
  if (w.status == NC_OK) make_results(&w, c, &k, &l);
  columns = nc_temps_transposed(&w, c->arg[3].t);
  for (int64_t s = 0; w.status == NC_OK && s < l.steps; s++) {
    set_step(&k, &l, s, c->arg[6].s.i != 0);
    w.status = forward_step(&k, columns, c->arg[4].t);
  }
  nc_temps_result(&w, &c->out[0], k.states);
  nc_temps_result(&w, &c->out[1], k.cells);
  return nc_temps_end(&w, &c->out[2], k.gates);
}

/* Replaces k->dstate, of the samples that have this step, by the gradient of
   the state before it. */
static int backward_step(RecurrentCall *k, Tensor *weight) {
  const int lstm = k->kind == RECURRENT_LSTM;
  Temps w = { 0 };
  Tensor *sum = rows_of(&w, lstm ? k->dinput : k->dsum, k->row, k->rows);
  Tensor *old = rows_of(&w, k->dstate, 0, k->rows), *y;
  if (w.status == NC_OK) w.status = run_step(k);
  y = product(&w, sum, weight, lstm ? NULL : old);
  if (w.status == NC_OK && k->rows < k->dstate->size[0]) {
    nc_temps_copyinto(&w, old, y);
  } else if (w.status == NC_OK) {
    nc_release(k->dstate);
    nc_retain(k->dstate = y);
  }
  return nc_temps_finish(&w);
}

/* Checks the gradients of the states and of the last state and cell, of which
   an LSTM has one. */
static int check_gradients(const Device *d, const Arg *grads, const Layout *l,
                           DType type, int lstm, int64_t h) {
  if (grads->n != 2 + lstm)
    return nc_fail(NC_EVALUE, "there are %d gradients, not %d", grads->n,
                   2 + lstm);
  for (int i = 0; i < grads->n; i++) {
    if (nc_device(grads->tensors[i]) != d)
      return nc_fail(NC_EDEVICE, "gradients are on another device");
    TRY(check(grads->tensors[i], type, i ? 2 : 3, l->steps, l->n, h));
  }
  return NC_OK;
}

/* Checks the operands of _recurrent_backward, and reads how gates lie. */
static int check_results(Temps *w, const Device *d, Layout *l, const Call *c) {
  const Tensor *states = c->arg[1].t, *cells = c->arg[2].t;
  const Tensor *gates = c->arg[3].t, *weight = c->arg[4].t;
  const RecurrentKind kind = (RecurrentKind)c->arg[5].s.i;
  const DType type = gates->dtype;
  const int lstm = kind == RECURRENT_LSTM;
  if (weight->nd != 2) return check(weight, type, 2, 0, 0, 0);
  const int64_t h = weight->size[1];
  TRY(read_layout(w, l, gates, states, c->arg[7].t));
  TRY(check_operands(gates, l, kind, NULL, NULL, weight, NULL));
  TRY(check(states, type, 3, l->steps + 1, l->n, h));
  TRY(lstm || !l->sizes ? check(cells, type, 3, l->steps + lstm, l->n, h)
                        : check(cells, type, 2, 0, l->rows, h));
  return check_gradients(d, &c->arg[0], l, type, lstm, h);
}

/* A new tensor with the elements of x. */
static Tensor *copy(Temps *w, Tensor *x) {
  Tensor *y = nc_temps_new(w, x, x->dtype, x->nd, x->size);
  if (w->status == NC_OK) nc_temps_copyinto(w, y, x);
  return y;
}

/* Makes the tensors that the steps of backward read and write. */
static void prepare_backward(Temps *w, const Call *c, RecurrentCall *k) {
  Tensor *const *grads = c->arg[0].tensors;
  k->grad = nc_temps_dense(w, grads[0]);
  k->states = nc_temps_dense(w, c->arg[1].t);
  k->cells = nc_temps_dense(w, c->arg[2].t);
  k->gates = nc_temps_dense(w, c->arg[3].t);
  if (w->status != NC_OK) return;
  const Tensor *like = k->gates;
  Tensor *start = copy(w, grads[1]);
  k->dinput = nc_temps_new(w, like, like->dtype, like->nd, like->size);
  if (k->kind == RECURRENT_LSTM) k->dcell = copy(w, grads[2]);
  else k->dsum = nc_temps_new(w, like, like->dtype, like->nd, like->size);
  if (w->status == NC_OK) nc_retain(k->dstate = start);
}

/* gradients of the states, of the last one and, of an LSTM, of the last cell,
   states, cells, gates, weight, kind, reverse, sizes or none -> gradients of
   input, state, and of cell or, of a GRU, sum */
int nc_op__recurrent_backward(Call *c) {
  RecurrentCall k = { .kind = (RecurrentKind)c->arg[5].s.i, .back = 1 };
  const int lstm = k.kind == RECURRENT_LSTM;
  const Device *d;
  Layout l;
  Temps w = { 0 };
  TRY(nc_onedevice(&d, c->arg + 1, 4));
  w.status = check_results(&w, d, &l, c);
  if (w.status == NC_OK) prepare_backward(&w, c, &k);
  for (int64_t s = 0; w.status == NC_OK && s < l.steps; s++) {
    set_step(&k, &l, s, c->arg[6].s.i != 0);
    if (k.rows) w.status = backward_step(&k, c->arg[4].t);
  }
  nc_temps_result(&w, &c->out[0], k.dinput);
  nc_temps_result(&w, &c->out[1], k.dstate);
  nc_release(k.dstate);
  return nc_temps_end(&w, &c->out[2], lstm ? k.dcell : k.dsum);
}
