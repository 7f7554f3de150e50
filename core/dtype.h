/* SPDX-License-Identifier: MIT */
/*
** dtype.h - the element types.
**
** DTYPES(X) expands X(id, name, storage, category) for each, in the order of
** the enumeration: id names it in C, name in Lua, storage is how an element
** lies in memory.  float16 and bfloat16 lie as bits and are computed in float.
** REAL_DTYPES are those that are no complex numbers.  Nothing is computed with
** STORAGE_DTYPES, the last of all: their elements are stored, moved, compared
** for equality and converted.
** SHORT_INTEGERS are computed in int32, in an order in which each holds those
** before it that have its sign; INTEGERS are all.  The rows are also read by
** cuda/CMakeLists.txt.
*/
#ifndef core_dtype_h
#define core_dtype_h

#include <stdint.h>

typedef struct { uint16_t bits; } f16_s;
typedef struct { uint16_t bits; } bf16_s;
typedef struct { uint8_t bits; } b8_s;      /* 0 or 1 */
typedef struct { uint8_t bits; } f8e4m3_s;  /* no infinity; 0x7f is nan */
typedef struct { uint8_t bits; } f8e5m2_s;  /* the upper half of a float16 */
typedef struct { float re, im; } c64_s;
typedef struct { double re, im; } c128_s;

/* clang-format off */
#define SHORT_INTEGERS(X)                  \
  X(u8,   "uint8",    uint8_t, NC_INT)     \
  X(i8,   "int8",     int8_t,  NC_INT)     \
  X(i16,  "int16",    int16_t, NC_INT)
#define INTEGERS(X)                        \
  SHORT_INTEGERS(X)                        \
  X(i32,  "int32",    int32_t, NC_INT)     \
  X(i64,  "int64",    int64_t, NC_INT)
#define FLOAT_TYPES(X)                     \
  X(f16,  "float16",  f16_s,   NC_FLOAT)   \
  X(bf16, "bfloat16", bf16_s,  NC_FLOAT)   \
  X(f32,  "float32",  float,   NC_FLOAT)   \
  X(f64,  "float64",  double,  NC_FLOAT)
#define COMPLEX_TYPES(X)                   \
  X(c64,  "complex64",  c64_s,  NC_COMPLEX)  \
  X(c128, "complex128", c128_s, NC_COMPLEX)
#define REAL_DTYPES(X)                     \
  X(b8,   "bool",     b8_s,    NC_BOOL)    \
  INTEGERS(X)                              \
  FLOAT_TYPES(X)
#define STORAGE_INTEGERS(X)                \
  X(u16,  "uint16",   uint16_t, NC_INT)    \
  X(u32,  "uint32",   uint32_t, NC_INT)    \
  X(u64,  "uint64",   uint64_t, NC_INT)
#define STORAGE_FLOATS(X)                               \
  X(f8e4m3, "float8_e4m3fn", f8e4m3_s, NC_FLOAT)        \
  X(f8e5m2, "float8_e5m2",   f8e5m2_s, NC_FLOAT)
#define STORAGE_DTYPES(X) STORAGE_INTEGERS(X) STORAGE_FLOATS(X)
#define DTYPES(X) REAL_DTYPES(X) COMPLEX_TYPES(X) STORAGE_DTYPES(X)
/* clang-format on */

/* Of an integer type: has it a sign, and how many bits has its largest? */
#define NC_HAS_SIGN(type) ((type)-1 < (type)1)
#define NC_VALUE_BITS(type) (8 * (int)sizeof(type) - NC_HAS_SIGN(type))

typedef enum Category { NC_BOOL, NC_INT, NC_FLOAT, NC_COMPLEX } Category;

#define X(id, name, storage, category) DT_##id,
typedef enum DType { DTYPES(X) DT_COUNT } DType;
#undef X

#define DT_NONE DT_COUNT                    /* "not given" */

/* Is it one of the STORAGE_DTYPES, the last of all? Operations refuse it, but
   those that are marked MOVES or VIEW in operators.def, and clone, where, eq
   and ne. */
static inline int nc_is_storage(DType t) {
  return t > DT_c128 && t < DT_COUNT;
}

const char *nc_article(DType t);            /* "a" or "an", before its name */

#endif
