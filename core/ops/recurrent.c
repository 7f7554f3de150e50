/* SPDX-License-Identifier: MIT */
/*
** recurrent.c - _recurrent and _recurrent_backward: all steps of a recurrent
** layer in one direction.  Each step is a product by the weights and one
** request to the device.  bindings/lib/functional/recurrent_cells.lua records
** them.
*/
#include "core/base/temps.h"
#include "core/cpu/blas.h"
#include "core/op.h"
#include "core/tape.h"

/* Step `at' of x, without its first dimension; a view. */
static Tensor *step_of(Temps *w, const Tensor *x, int64_t at) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  y = nc_temps_add(w, nc_alias(&y, x), &y);
  if (y == NULL) return NULL;
  y->offset += at * x->step[0];
  y->nd--;
  for (int d = 0; d < y->nd; d++) {
    y->size[d] = x->size[d + 1];
    y->step[d] = x->step[d + 1];
  }
  return y;
}

/* Sets the s-th step that is run, of `steps'. */
static void set_step(RecurrentCall *k, int64_t s, int64_t steps, int reverse) {
  k->at = reverse != k->back ? steps - 1 - s : s;
  k->prev = k->at + reverse;
  k->next = k->at + !reverse;
}

/* Fails unless t, which may be NULL, has the type and the shape. */
static int check(const Tensor *t, DType type, int nd, int64_t steps, int64_t n,
                 int64_t width) {
  if (t == NULL ||
      (t->dtype == type && t->nd == nd && (nd < 3 || t->size[0] == steps) &&
       (nd < 2 || t->size[nd - 2] == n) && t->size[nd - 1] == width))
    return NC_OK;
  return nc_fail(NC_ESHAPE, "operands of a recurrent layer do not fit");
}

/* Checks operands against gates, or the input, [steps x n x gates]. */
static int check_operands(const Tensor *gates, RecurrentKind kind,
                          const Tensor *state, const Tensor *cell,
                          const Tensor *weight, const Tensor *bias) {
  const int each = kind == RECURRENT_LSTM ? 4 : 3;
  const DType type = gates->dtype;
  const int64_t n = gates->nd == 3 ? gates->size[1] : 0;
  const int64_t width = gates->nd == 3 ? gates->size[2] : 0, h = width / each;
  TRY(nc_check_float32or64(gates));
  TRY(check(gates, type, 3, gates->size[0], n, each * h));
  if (gates->size[0] == 0) return nc_fail(NC_ESHAPE, "{0} has no steps");
  TRY(check(state, type, 2, 0, n, h));
  TRY(check(cell, type, 2, 0, n, h));
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
  nc_count(30 * nc_numel(k->states) / k->states->size[0],
           6 * nc_numel(k->gates) / k->gates->size[0] *
               nc_dtypesize(k->gates->dtype));
  return nc_numel(k->states) ? d->recurrent(d, k) : NC_OK;
}

static int forward_step(RecurrentCall *k, Tensor *columns, Tensor *bias) {
  Temps w = { 0 };
  Tensor *before = step_of(&w, k->states, k->prev);
  if (k->kind == RECURRENT_LSTM) bias = step_of(&w, k->input, k->at);
  k->sum = product(&w, before, columns, bias);
  if (w.status == NC_OK) w.status = run_step(k);
  return nc_temps_finish(&w);
}

/* input, state, cell or none, weight, bias or none, kind, reverse -> states
   (one more than steps), cells, gates */
int nc_op__recurrent(Call *c) {
  RecurrentCall k = { .kind = (RecurrentKind)c->arg[5].s.i };
  Tensor *x = c->arg[0].t, *columns = NULL;
  const int reverse = c->arg[6].s.i != 0, lstm = k.kind == RECURRENT_LSTM;
  const Device *d;
  Temps w = { 0 };
  if (lstm && c->arg[2].t == NULL)
    return nc_fail(NC_EVALUE, "an LSTM has a cell");
  TRY(nc_onedevice(&d, c->arg, 5));
  TRY(check_operands(x, k.kind, c->arg[1].t, c->arg[2].t, c->arg[3].t,
                     c->arg[4].t));
  const int64_t steps = x->size[0], first = reverse ? steps : 0;
  const int64_t units = c->arg[1].t->size[1];
  const int64_t size[3] = { steps + 1, x->size[1], units };
  const int64_t size_gates[3] = { steps, x->size[1], x->size[2] };
  const int64_t size_cells[3] = { steps + lstm, x->size[1], units };
  k.input = nc_temps_dense(&w, x);
  k.states = nc_temps_new(&w, x, x->dtype, 3, size);
  k.cells = nc_temps_new(&w, x, x->dtype, 3, size_cells);
  k.gates = nc_temps_new(&w, x, x->dtype, 3, size_gates);
  if (w.status == NC_OK)
    columns =
        nc_temps_add(&w, nc_transpose_matrix(&columns, c->arg[3].t), &columns);
  if (w.status == NC_OK)
    nc_temps_copyinto(&w, step_of(&w, k.states, first), c->arg[1].t);
  if (w.status == NC_OK && lstm)
    nc_temps_copyinto(&w, step_of(&w, k.cells, first), c->arg[2].t);
  for (int64_t s = 0; s < steps && w.status == NC_OK; s++) {
    set_step(&k, s, steps, reverse);
    w.status = forward_step(&k, columns, c->arg[4].t);
  }
  nc_temps_result(&w, &c->out[0], k.states);
  nc_temps_result(&w, &c->out[1], k.cells);
  return nc_temps_end(&w, &c->out[2], k.gates);
}

/* Replaces k->dstate by the gradient of the state before this step. */
static int backward_step(RecurrentCall *k, Tensor *weight) {
  const int lstm = k->kind == RECURRENT_LSTM;
  Temps w = { 0 };
  Tensor *sum = step_of(&w, lstm ? k->dinput : k->dsum, k->at), *y;
  if (w.status == NC_OK) w.status = run_step(k);
  y = product(&w, sum, weight, lstm ? NULL : k->dstate);
  if (w.status == NC_OK) {
    nc_release(k->dstate);
    nc_retain(k->dstate = y);
  }
  return nc_temps_finish(&w);
}

/* A new tensor with the elements of x, or zeros in the shape of a step. */
static Tensor *copy_or_zeros(Temps *w, const RecurrentCall *k, Tensor *x) {
  Tensor *y = nc_temps_full(w, k->states, k->states->dtype, 2,
                            k->states->size + 1, nc_int(0));
  if (x) nc_temps_copyinto(w, y, x);
  return y;
}

/* Checks the operands of _recurrent_backward. */
static int check_results(const Call *c, RecurrentKind kind) {
  const Tensor *gates = c->arg[4].t, *weight = c->arg[5].t;
  const Tensor *dcell = c->arg[1].t, *states = c->arg[2].t;
  const int lstm = kind == RECURRENT_LSTM;
  const int64_t *size = gates->size, h = weight->size[1];
  if (weight->nd != 2) return check(weight, gates->dtype, 2, 0, 0, 0);
  TRY(check_operands(gates, kind, NULL, NULL, weight, NULL));
  TRY(check(states, gates->dtype, 3, size[0] + 1, size[1], h));
  TRY(check(c->arg[3].t, gates->dtype, 3, size[0] + lstm, size[1], h));
  TRY(check(dcell, gates->dtype, 2, 0, size[1], h));
  return check(c->arg[0].t, gates->dtype, 3, size[0], size[1], h);
}

/* grad, grad_cell or none, states, cells, gates, weight, kind, reverse ->
   gradients of input, state, and of cell or, of a GRU, sum */
int nc_op__recurrent_backward(Call *c) {
  RecurrentCall k = { .kind = (RecurrentKind)c->arg[6].s.i, .back = 1 };
  const int reverse = c->arg[7].s.i != 0, lstm = k.kind == RECURRENT_LSTM;
  const Device *d;
  Temps w = { 0 };
  k.gates = c->arg[4].t;
  TRY(nc_onedevice(&d, c->arg, 6));
  TRY(check_results(c, k.kind));
  k.grad = nc_temps_dense(&w, c->arg[0].t);
  k.states = nc_temps_dense(&w, c->arg[2].t);
  k.cells = nc_temps_dense(&w, c->arg[3].t);
  k.gates = nc_temps_dense(&w, k.gates);
  if (w.status == NC_OK) {
    const DType type = k.gates->dtype;
    Tensor *start = copy_or_zeros(&w, &k, NULL);
    k.dinput = nc_temps_new(&w, k.gates, type, 3, k.gates->size);
    if (lstm) k.dcell = copy_or_zeros(&w, &k, c->arg[1].t);
    else k.dsum = nc_temps_new(&w, k.gates, type, 3, k.gates->size);
    if (w.status == NC_OK) nc_retain(k.dstate = start);
  }
  for (int64_t s = 0; w.status == NC_OK && s < k.gates->size[0]; s++) {
    set_step(&k, s, k.gates->size[0], reverse);
    w.status = backward_step(&k, c->arg[5].t);
  }
  nc_temps_result(&w, &c->out[0], k.dinput);
  nc_temps_result(&w, &c->out[1], k.dstate);
  nc_release(k.dstate);
  return nc_temps_end(&w, &c->out[2], lstm ? k.dcell : k.dsum);
}
