/* SPDX-License-Identifier: MIT */
/*
** promotion.c - the dtype that a pointwise operation computes in: PyTorch's
** type promotion and the classes of ops.def.
*/
#include "core/op.h"
#include "core/ops.h"
#include "core/pointwise/scalar.h"

static DType number_dtype(Scalar s) {
  if (s.kind == NC_COMPLEX) return nc_complex_dtype(nc_context->dtype);
  if (s.kind == NC_FLOAT) return nc_context->dtype;
  return s.kind == NC_INT ? DT_i64 : DT_b8;
}

static DType promote_or(DType a, DType b) {
  return a == DT_NONE ? b : b == DT_NONE ? a : nc_promote(a, b);
}

/* Promotes across ranks (tensors, 0-d tensors, numbers): a lower rank changes
   the dtype only if its category is higher. */
static DType promote_rank(DType high, DType low) {
  if (high == DT_NONE || low == DT_NONE) return promote_or(high, low);
  if (nc_category(high) >= nc_category(low)) return high;
  if (nc_is_complex(low) && nc_is_real(high)) return nc_complex_dtype(high);
  return nc_promote(high, low);
}

DType nc_resulttype(const Arg in[], int n) {
  DType rank[3] = { DT_NONE, DT_NONE, DT_NONE }; /* tensors, 0-d, numbers */
  for (int i = 0; i < n; i++) {
    int r = in[i].t == NULL ? 2 : in[i].t->nd == 0;
    rank[r] =
        promote_or(rank[r], in[i].t ? in[i].t->dtype : number_dtype(in[i].s));
  }
  return promote_rank(promote_rank(rank[0], rank[1]), rank[2]);
}

static int fail_dtype(const char *what, const char *hint) {
  nc_fail(NC_EDTYPE, "%s", what);
  if (hint) nc_hint("%s", hint);
  return NC_EDTYPE;
}

static int has_bool(const Arg in[], int n) {
  for (int i = 0; i < n; i++)
    if (in[i].t ? in[i].t->dtype == DT_b8 : in[i].s.kind == NC_BOOL) return 1;
  return 0;
}

static int number_fits(Scalar s, DType t) {
  int64_t low, high;
  nc_exact_range(t, &low, &high);
  return low <= s.i && s.i <= high;
}

/* Is the result the same modulo 2^bits if a number operand wraps? */
static int is_modular(Op op) {
  return op == OP_add || op == OP_sub || op == OP_mul;
}

/* Numbers that do not fit an integer dtype.  A comparison is made in int64; a
   modular operation lets the number wrap; a bitwise operation with uint8 takes
   the low bits of a negative number; everything else is an error. */
static int check_numbers(DType *common, Op op, const Arg in[], int n) {
  const OpInfo *info = &nc_opinfo[op];
  for (int i = 0; i < n; i++) {
    if (in[i].t || in[i].s.kind != NC_INT || number_fits(in[i].s, *common))
      continue;
    if (info->kind == COMPARE_OP) *common = DT_i64; /* 300 is not 44 */
    else if (!is_modular(op) && (info->types != CLASS_INT_OR_BOOL ||
                                 in[i].s.i >= 0 || *common != DT_u8))
      return nc_error_doesnotfit(in[i].s, *common);
  }
  return NC_OK;
}

int nc_refuse_complex(void) {
  nc_fail(NC_EDTYPE, "does not take complex tensors: it needs real numbers");
  nc_hint("{0}:abs(), {0}.real and {0}.imag are real; nacre.view_as_real({0}) "
          "has both parts");
  return NC_EDTYPE;
}

/* The first operand of a storage dtype; n: there is none. */
static int storage_operand(const Arg in[], int n) {
  int i = 0;
  while (i < n && (in[i].t == NULL || !nc_is_storage(in[i].t->dtype))) i++;
  return i;
}

/* clone and where move elements of one storage dtype, and numbers that have a
   place in it; operand 0 is number `first' of the operation. */
static int check_storage(DType *common, Op op, const Arg in[], int n,
                         int first) {
  const int at = storage_operand(in, n);
  const DType t = in[at].t->dtype;
  if (op != OP_clone && nc_opinfo[op].kind != CHOOSE_OP)
    return nc_refuse_storage(t, at + first);
  for (int i = 0; i < n; i++)
    if (in[i].t ? in[i].t->dtype != t : in[i].s.kind > nc_category(t))
      return nc_refuse_storage(t, at + first);
  for (int i = 0; i < n; i++)
    if (in[i].t == NULL) TRY(nc_checkfits(in[i].s, t));
  *common = t;
  return NC_OK;
}

int nc_common_dtype(DType *common, Op op, const Arg in[], int n) {
  if (storage_operand(in, n) < n)
    return check_storage(common, op, in, n, nc_opinfo[op].kind == CHOOSE_OP);
  DType t = nc_resulttype(in, n);
  Category c = nc_category(t);
  *common = t;
  if (c == NC_COMPLEX)
    return nc_opinfo[op].takes_complex ? NC_OK : nc_refuse_complex();
  switch (nc_opinfo[op].types) {
    case CLASS_NO_BOOL:
      if (has_bool(in, n))
        return fail_dtype("bool tensors cannot be subtracted",
                          "use logical_xor, or ~ to invert a mask");
      break;
    case CLASS_NUMERIC:
    case CLASS_DIVISION:
    case CLASS_ROUNDING:
      if (c == NC_BOOL)
        return fail_dtype("bool tensors are not supported",
                          op == OP_neg ? "use ~ to invert a mask" : NULL);
      break;
    case CLASS_BOOL_AS_INT:
      if (c == NC_BOOL || (c == NC_INT && nc_opinfo[op].kind == REDUCE_OP))
        *common = DT_i64;
      break;
    case CLASS_INT_OR_BOOL:
    case CLASS_INTEGER:
      if (c == NC_FLOAT)
        return fail_dtype("needs integers or bool, not floats", NULL);
      if (c == NC_BOOL && nc_opinfo[op].types == CLASS_INTEGER)
        return fail_dtype("needs integers, not bool", NULL);
      break;
    case CLASS_FLOAT:
      if (c != NC_FLOAT) *common = nc_context->dtype;
      break;
    case CLASS_FLOAT_ONLY:
      if (c != NC_FLOAT) {
        nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(t));
        nc_hint(nc_opinfo[op].kind == REDUCE_OP ? "{0}:%s{dtype=\"float32\"}"
                                                : "{0}:to(\"float32\"):%s()",
                nc_opinfo[op].name);
        return NC_EDTYPE;
      }
      break;
    default: break;
  }
  return nc_is_integer(*common) ? check_numbers(common, op, in, n) : NC_OK;
}

Scalar nc_cast_scalar(Scalar s, DType common) {
  switch (common) {
#define X(id, name, storage, category) \
  case DT_##id: return nc_int((storage)s.i);
    INTEGERS(X)
#undef X
    case DT_f16:
      return nc_float(f16_tofloat(f16_fromfloat((float)nc_tofloat(s))));
    case DT_bf16:
      return nc_float(bf16_tofloat(bf16_fromfloat((float)nc_tofloat(s))));
    default: return s;
  }
}

int nc_castable(DType from, DType to) {
  return nc_category(from) <= nc_category(to);
}
