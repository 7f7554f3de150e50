/* SPDX-License-Identifier: MIT */
/*
** storage.c - storage dtypes (core/dtype.h), whose elements are moved and
** converted, but not computed with: their elements as integers, what is
** refused, and comparisons for equality.
*/
#include "core/op.h"
#include "core/ops.h"
#include "core/pointwise/scalar.h"

int nc_refuse_storage(DType t, int at) {
  const char *of = at < 0 ? "" : nc_operandtext(at);
  nc_fail(NC_EDTYPE, "does not compute with %s, which is a storage dtype",
          nc_dtypename(t));
  if (at < 0)
    nc_hint("compute in another dtype, then t:to(\"%s\")", nc_dtypename(t));
  else if (!nc_is_exact(t)) nc_hint("%s:float() can be computed with", of);
  else
    nc_hint("%s:%s() or %s:float() can be computed with", of,
            nc_computed_dtype(t) == DT_i32 ? "int" : "long", of);
  return NC_EDTYPE;
}

int64_t nc_storage_bits(Scalar v, DType t) {
  const double f = nc_tofloat(v);
  if (t == DT_f8e4m3) return f8e4m3_fromfloat((float)f).bits;
  if (t == DT_f8e5m2) return f8e5m2_fromfloat((float)f).bits;
  if (nc_is_exact_kind(v.kind)) return v.i;
  return t == DT_u64 ? (int64_t)f64_tou64(f) : f64_toi64(f);
}

/* Is operand j of the loop the condition of where? */
static int is_condition(const TensorIter *k, int j) {
  return j == 1 && nc_opinfo[k->op].kind == CHOOSE_OP;
}

void nc_move_as_bits(TensorIter *k) {
  const DType t = k->common_dtype, bits = nc_bits_dtype(t);
  if (k->op != OP_clone && nc_opinfo[k->op].kind != CHOOSE_OP) return;
  for (int j = 0; j < k->nargs; j++)
    if (k->type[j] != t && !is_condition(k, j)) return; /* it is converted */
  k->common_dtype = bits;
  for (int j = 0; j < k->nargs; j++) {
    if (is_condition(k, j)) continue;
    k->type[j] = bits;
    if (k->p[j] == NULL)
      k->number[j] =
          nc_cast_scalar(nc_int(nc_storage_bits(k->number[j], t)), bits);
  }
}

/*
** Equality
*/
/* *y = the elements of uint64 as int64. */
static int as_int64(Tensor **y, Tensor *x) {
  TRY(nc_alias(y, x));
  (*y)->dtype = DT_i64;
  return NC_OK;
}

/* A number that is compared with uint64, as an integer. */
static int uint64_number(Arg *a) {
  const Scalar v = a->s;
  if (v.kind == NC_FLOAT && (v.f != v.f || v.f != (double)f64_tou64(v.f)))
    return nc_error_doesnotfit(v, DT_u64);
  if (v.kind == NC_COMPLEX || (v.kind == NC_INT && v.i < 0))
    return nc_error_doesnotfit(v, DT_u64);
  a->s = nc_int(nc_storage_bits(v, DT_u64));
  return NC_OK;
}

static int make_uint64_comparable(Arg in[], int n, Tensor *copy[]) {
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t->dtype != DT_u64) {
      nc_fail(NC_EDTYPE, "does not compare uint64 with %s",
              nc_dtypename(in[j].t->dtype));
      nc_hint("%s:to(\"uint64\")", nc_operandtext(j));
      return NC_EDTYPE;
    }
  for (int j = 0; j < n; j++) {
    if (in[j].t == NULL) {
      TRY(uint64_number(&in[j]));
      continue;
    }
    TRY(as_int64(&copy[j], in[j].t));
    in[j].t = copy[j];
  }
  return NC_OK;
}

int nc_make_comparable(Arg in[], int n, Tensor *copy[]) {
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t->dtype == DT_u64)
      return make_uint64_comparable(in, n, copy);
  for (int j = 0; j < n; j++) {
    if (in[j].t == NULL || !nc_is_storage(in[j].t->dtype)) continue;
    TRY(nc_cast(&copy[j], in[j].t, nc_computed_dtype(in[j].t->dtype)));
    in[j].t = copy[j];
  }
  return NC_OK;
}
