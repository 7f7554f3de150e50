/* SPDX-License-Identifier: MIT */
/*
** batch_operators.c - which rule an operator has, and the rule that follows
** from its signature: dimensions of a sample are those of the value but one.
** An operator without a row here is called once for each sample.
*/
#include "core/batch/batching.h"
#include "core/operators.h"
#include "core/signature.h"

/* Its leading dimensions are samples as they are. */
static int lead(Batching *b) {
  Call low = *b->c;
  low.arg[0].t = nc_batch_value(b, low.arg[0].t);
  for (int i = 1; i < NC_MAXARG; i++)
    if (low.arg[i].t && nc_batch_value(b, low.arg[i].t))
      return nc_batch_loop(b);
  return low.arg[0].t ? nc_batch_run(b, &low) : nc_batch_loop(b);
}

/* The same of matrices. */
static int lead_matrix(Batching *b) {
  return b->c->arg[0].t->nd < 2 ? nc_batch_loop(b) : lead(b);
}

/* Of operands that are all matrices, or one for each. */
static int lead_all(Batching *b) {
  Call low = *b->c;
  const int nd = low.arg[0].t ? low.arg[0].t->nd : 0;
  for (int i = 0; i < NC_MAXARG; i++) {
    Arg *a = &low.arg[i];
    if (a->t == NULL) continue;
    if (a->t->nd > nd) return nc_batch_loop(b);
    a->t = nc_batch_expanded(b, a->t);
  }
  return nc_batch_run(b, &low);
}

/* Zeros at both ends of the last dimensions. */
static int pad(Batching *b) {
  const Arg *a = b->c->arg;
  if (a[2].s.i != 0 || a[1].n > 2 * a[0].t->nd) return nc_batch_loop(b);
  return lead(b);
}

/* A value for each sample is not the number that masked_fill takes. */
static int masked_fill(Batching *b) {
  return b->c->arg[2].t ? nc_batch_loop(b) : nc_batch_pointwise(b);
}

/* Strides are those in the memory of a sample: its value must lie so. */
static int as_strided(Batching *b) {
  const Arg *a = b->c->arg;
  Tensor *x = nc_batch_value(b, a[0].t);
  Call low = *b->c;
  int64_t size[NC_MAXDIM], step[NC_MAXDIM], n = 1;
  for (int d = x->nd - 1; d > 0; d--) {
    if (x->size[d] != 1 && x->step[d] != n)
      return nc_batch_refuse("a sample of vmap does not lie row by row",
                             "x:contiguous():as_strided(size, stride)");
    n *= x->size[d];
  }
  int64_t last = a[3].present ? a[3].s.i : 0;
  for (int d = 0; d < a[1].n && d < a[2].n; d++)
    last += (a[1].list[d] - 1) * a[2].list[d];
  if (last >= n)
    return nc_fail(NC_EINDEX,
                   "the view would reach beyond the %lld elements of a sample",
                   (long long)n);
  TRY(nc_batch_sizes(size, x->size[0], a[1].n, a[1].list));
  TRY(nc_batch_sizes(step, x->step[0], a[2].n, a[2].list));
  low.arg[0].t = x;
  nc_setlist(&low, 1, a[1].n + 1, size);
  nc_setlist(&low, 2, a[2].n + 1, step);
  nc_setint(&low, 3, x->offset + (a[3].present ? a[3].s.i : 0));
  return nc_batch_run(b, &low);
}

static int no_shape(Batching *b) {
  (void)b;
  return nc_batch_refuse(
      "each sample of vmap would have a result of a shape of its own",
      "nacre.where(mask, x, 0) keeps the shape");
}

/* A mask that is the same for all selects the same from each sample. */
static int masked_select(Batching *b) {
  return nc_batch_value(b, b->c->arg[1].t) ? no_shape(b) : nc_batch_loop(b);
}

/* Do its dims, left out, mean another thing than all? */
static int needs_dims(const Batching *b) {
  return b->c->op == OPERATOR_roll || b->c->op == OPERATOR_rot90 ||
         b->c->op == OPERATOR__normalize;
}

/* norm: singular values are those of one matrix. */
static int norm(Batching *b) {
  return b->c->arg[1].text ? nc_batch_loop(b) : nc_batch_shift(b);
}

/* trapezoid: positions for each row are not moved. */
static int trapezoid(Batching *b) {
  const Tensor *x = b->c->arg[1].t;
  return x && x->nd > 1 ? nc_batch_loop(b) : nc_batch_shift(b);
}

/* Sets the dims of argument a, of a value, to those of a sample of nd
   dimensions. */
static int shift_list(Arg *a, int nd, int64_t list[NC_MAXDIM]) {
  const int all = a->n == 0;
  if (a->n > NC_MAXDIM)
    return nc_fail(NC_EVALUE, "%d dims, at most %d are possible", a->n,
                   NC_MAXDIM);
  for (int i = 0; i < (all ? nd : a->n); i++) {
    int d = i;
    if (!all) TRY(nc_dim(&d, a->list[i], nd));
    list[i] = d + 2;
  }
  a->n = all ? nd : a->n;
  a->list = list;
  a->present = 1;
  return NC_OK;
}

static int shift_one(Arg *a, int nd) {
  int d;
  TRY(nc_dim(&d, a->s.i, nd));
  a->s = nc_int(d + 2);
  a->present = 1;
  return NC_OK;
}

/* Moves the dims among the arguments behind the batch. */
static int shift_dims(Batching *b, Call *low, int nd,
                      int64_t list[][NC_MAXDIM]) {
  const Signature *s = nc_operator_signature(b->c->op);
  for (int i = 1; i < s->n && !b->by_sample; i++) {
    Arg *a = &low->arg[i];
    const ParamType type = s->param[i].type;
    if (type == P_DIMS) {
      if (a->n == 0 && needs_dims(b)) return nc_batch_loop(b);
      TRY(shift_list(a, nd, list[i]));
    } else if (type == P_DIM || type == P_DIMORTENSOR) {
      if (!a->present && a->s.i == 0) return nc_batch_loop(b);
      TRY(shift_one(a, nd));
    }
  }
  return NC_OK;
}

int nc_batch_shift(Batching *b) {
  Call low = *b->c;
  const int nd = low.arg[0].t ? low.arg[0].t->nd : 0;
  int64_t list[NC_MAXARG][NC_MAXDIM];
  if (nd == 0) return nc_batch_loop(b);
  TRY(shift_dims(b, &low, nd, list));
  if (b->by_sample) return NC_OK;
  low.arg[0].t = nc_batch_value(b, low.arg[0].t);
  for (int i = 1; i < NC_MAXARG; i++)
    if (low.arg[i].t && nc_batch_value(b, low.arg[i].t))
      return nc_batch_loop(b);
  return low.arg[0].t ? nc_batch_run(b, &low) : nc_batch_loop(b);
}

/* clang-format off */
static const BatchRule rules[OPERATOR_COUNT] = {
#define ROW(op, rule) [OPERATOR_##op] = rule,
  /* the elements of each sample for itself */
  ROW(real, lead) ROW(imag, lead) ROW(view_as_real, lead) ROW(zeros_like, lead)
  ROW(ones_like, lead) ROW(empty_like, lead) ROW(full_like, lead)
  ROW(fill_, lead) ROW(zero_, lead) ROW(contiguous, lead) ROW(tril, lead_matrix)
  ROW(triu, lead_matrix) ROW(adjoint, lead_matrix) ROW(pad, pad)
  ROW(threshold, lead) ROW(nan_to_num, lead) ROW(mvlgamma, lead)
  /* operands that broadcast */
  ROW(copy_, nc_batch_pointwise) ROW(isclose, nc_batch_pointwise)
  ROW(div, nc_batch_pointwise) ROW(clamp, nc_batch_pointwise)
  ROW(nextafter, nc_batch_pointwise) ROW(float_power, nc_batch_pointwise)
  ROW(masked_fill, masked_fill) ROW(masked_fill_, masked_fill)
  /* dimensions that are given */
  ROW(transpose, nc_batch_shift) ROW(swapdims, nc_batch_shift)
  ROW(swapaxes, nc_batch_shift) ROW(movedim, nc_batch_shift)
  ROW(moveaxis, nc_batch_shift) ROW(narrow, nc_batch_shift)
  ROW(select, nc_batch_shift) ROW(slice, nc_batch_shift)
  ROW(flatten, nc_batch_shift) ROW(unflatten, nc_batch_shift)
  ROW(diagonal, nc_batch_shift) ROW(unbind, nc_batch_shift)
  ROW(chunk, nc_batch_shift) ROW(split, nc_batch_shift)
  ROW(unfold, nc_batch_shift) ROW(tensor_split, nc_batch_shift)
  ROW(_extreme, nc_batch_shift) ROW(argmax, nc_batch_shift)
  ROW(argmin, nc_batch_shift) ROW(var, nc_batch_shift) ROW(std, nc_batch_shift)
  ROW(norm, norm) ROW(logsumexp, nc_batch_shift) ROW(softmax, nc_batch_shift)
  ROW(log_softmax, nc_batch_shift) ROW(_masked_softmax, nc_batch_shift)
  ROW(sort, nc_batch_shift) ROW(argsort, nc_batch_shift)
  ROW(topk, nc_batch_shift) ROW(kthvalue, nc_batch_shift)
  ROW(median, nc_batch_shift) ROW(nanmedian, nc_batch_shift)
  ROW(mode, nc_batch_shift) ROW(cumsum, nc_batch_shift)
  ROW(cumprod, nc_batch_shift) ROW(logcumsumexp, nc_batch_shift)
  ROW(cummax, nc_batch_shift) ROW(cummin, nc_batch_shift)
  ROW(diff, nc_batch_shift) ROW(nanmean, nc_batch_shift)
  ROW(var_mean, nc_batch_shift) ROW(std_mean, nc_batch_shift)
  ROW(aminmax, nc_batch_shift) ROW(trapezoid, trapezoid)
  ROW(cumulative_trapezoid, trapezoid) ROW(glu, nc_batch_shift)
  ROW(softmin, nc_batch_shift) ROW(roll, nc_batch_shift)
  ROW(rot90, nc_batch_shift) ROW(as_strided, as_strided)
  ROW(_normalize, nc_batch_shift) ROW(max, nc_batch_max)
  ROW(min, nc_batch_max)
  /* sizes and orders */
  ROW(view, nc_batch_reshape) ROW(reshape, nc_batch_reshape)
  ROW(view_as, nc_batch_reshape) ROW(reshape_as, nc_batch_reshape)
  ROW(ravel, nc_batch_reshape) ROW(t, nc_batch_transpose)
  ROW(permute, nc_batch_permute) ROW(flip, nc_batch_flip)
  ROW(tile, nc_batch_tile) ROW(squeeze, nc_batch_squeeze)
  ROW(unsqueeze, nc_batch_unsqueeze) ROW(expand, nc_batch_expand)
  ROW(expand_as, nc_batch_expand) ROW(broadcast_to, nc_batch_expand)
  ROW(new_zeros, nc_batch_new) ROW(new_ones, nc_batch_new)
  ROW(new_empty, nc_batch_new) ROW(new_full, nc_batch_new)
  /* products */
  ROW(mm, nc_batch_product) ROW(bmm, nc_batch_product)
  ROW(mv, nc_batch_product) ROW(dot, nc_batch_product)
  ROW(matmul, nc_batch_product) ROW(linear, nc_batch_linear)
  ROW(outer, nc_batch_outer) ROW(addmm, nc_batch_addmm)
  ROW(baddbmm, nc_batch_addmm) ROW(addmv, nc_batch_addmm)
  /* positions and lists */
  ROW(cat, nc_batch_join) ROW(concat, nc_batch_join)
  ROW(concatenate, nc_batch_join) ROW(stack, nc_batch_join)
  ROW(gather, nc_batch_gather) ROW(index_select, nc_batch_index_select)
  /* networks */
  ROW(_conv, nc_batch_conv) ROW(_conv_input, nc_batch_conv)
  ROW(_max_pool, nc_batch_fold)
  ROW(_unfold, nc_batch_fold) ROW(_fold, nc_batch_fold)
  ROW(_norm, nc_batch_norm) ROW(_class_loss, nc_batch_class_loss)
  ROW(_attention, lead_all)
  /* what has no result that samples could share */
  ROW(nonzero, no_shape) ROW(argwhere, no_shape) ROW(unique, no_shape)
  ROW(unique_consecutive, no_shape) ROW(bincount, no_shape)
  ROW(masked_select, masked_select)
#undef ROW
};
/* clang-format on */

BatchRule nc_operator_rule(int op) {
  return rules[op];
}
