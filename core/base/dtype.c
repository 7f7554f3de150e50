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

double nc_largest(DType t) {
  return t == DT_f16    ? 65504
         : t == DT_bf16 ? 0x1.fep127
         : t == DT_f32  ? 0x1.fffffep127
                        : 0x1.fffffffffffffp1023;
}

int nc_precision(DType t) {
  return t == DT_f16 ? 11 : t == DT_bf16 ? 8 : t == DT_f32 ? 24 : 53;
}

int nc_exact_range(DType t, int64_t *low, int64_t *high) {
  static const int bits[DT_COUNT] = { 1, 8, 7, 15, 31, 63 };
  if (nc_category(t) == NC_FLOAT) {
    *high = (int64_t)1 << nc_precision(t);
    *low = -*high;
    return 0;
  }
  *high = (int64_t)(((uint64_t)1 << bits[t]) - 1);
  *low = t == DT_b8 || t == DT_u8 ? 0 : -*high - 1;
  return 1;
}

DType nc_dtypefrom(const char *name) {
  static const struct {
    const char *name;
    DType type;
  } alias[] = {
    { "float", DT_f32 }, { "double", DT_f64 }, { "half", DT_f16 },
    { "long", DT_i64 },  { "int", DT_i32 },    { "short", DT_i16 },
    { "char", DT_i8 },   { "byte", DT_u8 },
  };
  for (int t = 0; t < DT_COUNT; t++)
    if (strcmp(dtypes[t].name, name) == 0) return (DType)t;
  for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
    if (strcmp(alias[i].name, name) == 0) return alias[i].type;
  return DT_NONE;
}

DType nc_promote(DType a, DType b) {
  DType low = a < b ? a : b, high = a < b ? b : a;
  if (low == high) return a;
  if (low == DT_u8 && high == DT_i8) return DT_i16;
  if (low == DT_f16 && high == DT_bf16) return DT_f32;
  return high; /* the order of the enumeration */
}

Scalar nc_int(int64_t i) {
  return (Scalar){ NC_INT, i, 0, 0 };
}

Scalar nc_float(double f) {
  return (Scalar){ NC_FLOAT, 0, f, 0 };
}
