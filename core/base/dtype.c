/* SPDX-License-Identifier: MIT */
/* dtype.c - names, sizes and promotion of the dtypes. */
#include <string.h>

#include "core/op.h"

static const struct {
  const char *name;
  int64_t size;
  Category category;
} dtypes[DT_COUNT] = {
#define X(id, name, storage, category) { name, sizeof(storage), category },
  DTYPES(X)
#undef X
};

const char *nc_dtypename(DType t) {
  return dtypes[t].name;
}

const char *nc_article(DType t) {
  return *nc_dtypename(t) == 'i' ? "an" : "a";
}

int64_t nc_dtypesize(DType t) {
  return dtypes[t].size;
}

Category nc_category(DType t) {
  return dtypes[t].category;
}

int nc_is_exact(DType t) {
  return nc_is_exact_kind(nc_category(t));
}

int nc_is_integer(DType t) {
  return nc_category(t) == NC_INT;
}

int nc_is_real(DType t) {
  return nc_category(t) == NC_FLOAT;
}

int nc_is_complex(DType t) {
  return nc_category(t) == NC_COMPLEX;
}

DType nc_real_dtype(DType t) {
  return t == DT_c64 ? DT_f32 : t == DT_c128 ? DT_f64 : t;
}

DType nc_complex_dtype(DType t) {
  return t == DT_f64 || t == DT_c128 ? DT_c128 : DT_c64;
}

DType nc_bits_dtype(DType t) {
  switch (nc_dtypesize(t)) {
    case 1: return DT_u8;
    case 2: return DT_i16;
    case 4: return DT_i32;
    default: return DT_i64;
  }
}

DType nc_computed_dtype(DType t) {
  if (!nc_is_storage(t)) return t;
  if (!nc_is_exact(t)) return DT_f32;
  return nc_dtypesize(t) == 2 ? DT_i32 : DT_i64;
}

int nc_is_differentiable(DType t) {
  return !nc_is_exact(t) && !nc_is_storage(t);
}

double nc_largest(DType t) {
  t = nc_real_dtype(t);
  return t == DT_f16      ? 65504
         : t == DT_bf16   ? 0x1.fep127
         : t == DT_f32    ? 0x1.fffffep127
         : t == DT_f8e4m3 ? 448
         : t == DT_f8e5m2 ? 57344
                          : 0x1.fffffffffffffp1023;
}

int nc_precision(DType t) {
  t = nc_real_dtype(t);
  return t == DT_f16      ? 11
         : t == DT_bf16   ? 8
         : t == DT_f32    ? 24
         : t == DT_f8e4m3 ? 4
         : t == DT_f8e5m2 ? 3
                          : 53;
}

static const struct {
  int bits, has_sign;
} exact[DT_COUNT] = {
#define X(id, name, storage, category) \
  [DT_##id] = { NC_VALUE_BITS(storage), NC_HAS_SIGN(storage) },
  [DT_b8] = { 1, 0 }, INTEGERS(X) STORAGE_INTEGERS(X)
#undef X
};

char nc_dtypekind(DType t) {
  static const char kinds[] = {
    [NC_BOOL] = 'b', [NC_INT] = 'i', [NC_FLOAT] = 'f', [NC_COMPLEX] = 'c'
  };
  if (t == DT_bf16) return 'B';
  if (t == DT_f8e4m3) return '4';
  if (t == DT_f8e5m2) return '5';
  return nc_is_integer(t) && !exact[t].has_sign ? 'u' : kinds[nc_category(t)];
}

DType nc_dtypeof(char kind, int64_t bytes) {
  int t = 0;
  while (t < DT_COUNT &&
         (nc_dtypekind((DType)t) != kind || nc_dtypesize((DType)t) != bytes))
    t++;
  return (DType)t;
}

int nc_exact_range(DType t, int64_t *low, int64_t *high) {
  if (!nc_is_exact(t)) {
    *high = (int64_t)1 << nc_precision(t);
    *low = -*high;
    return 0;
  }
  if (exact[t].bits == 64) *high = INT64_MAX;
  else *high = (int64_t)(((uint64_t)1 << exact[t].bits) - 1);
  *low = exact[t].has_sign ? -*high - 1 : 0;
  return 1;
}

DType nc_dtypefrom(const char *name) {
  static const struct {
    const char *name;
    DType type;
  } alias[] = {
    { "float", DT_f32 },    { "double", DT_f64 }, { "half", DT_f16 },
    { "long", DT_i64 },     { "int", DT_i32 },    { "short", DT_i16 },
    { "char", DT_i8 },      { "byte", DT_u8 },    { "cfloat", DT_c64 },
    { "cdouble", DT_c128 },
  };
  for (int t = 0; t < DT_COUNT; t++)
    if (strcmp(dtypes[t].name, name) == 0) return (DType)t;
  for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
    if (strcmp(alias[i].name, name) == 0) return alias[i].type;
  return DT_NONE;
}

/* The shortest integer type with a sign that holds what has no sign. */
static DType with_sign(DType without) {
  DType t = DT_i8;
  while (t < DT_i64 &&
         (!exact[t].has_sign || exact[t].bits < exact[without].bits))
    t++;
  return t;
}

DType nc_promote(DType a, DType b) {
  DType low = a < b ? a : b, high = a < b ? b : a;
  if (low == high || low == DT_b8) return high;
  if (nc_is_storage(high)) return low; /* whoever computes refuses it */
  if (low == DT_f16 && high == DT_bf16) return DT_f32;
  if (low == DT_f64 && high == DT_c64) return DT_c128;
  if (nc_is_integer(high) && exact[low].has_sign != exact[high].has_sign) {
    const DType wide = with_sign(exact[low].has_sign ? high : low);
    return wide > high ? wide : high;
  }
  return high; /* the order of the enumeration */
}
