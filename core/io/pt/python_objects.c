/* SPDX-License-Identifier: MIT */
/*
** python_objects.c - objects of Python's library and of NumPy that are numbers
** and texts of ours: NumPy's scalars, paths.
*/
#include <string.h>

#include "core/io/pt/pickle.h"
#include "core/io/rowmajor.h"

/* The items of an object: of numpy.dtype('f8', False, True) with its state
   they are the tuples of the arguments and of the state. */
static int object_items(const Pickle *k, int32_t at, const char *module,
                        const char *name, int32_t item[2]) {
  const FileValue *v = PICKLE_VALUE(k, at);
  int n = 0;
  if (v->kind != NC_V_OTHER) return 0;
  const FileCell *first = PICKLE_CELL(k, v->i);
  const FileCell *second = PICKLE_CELL(k, first->next);
  if (!nc_pickle_is(k, first->value, module) ||
      !nc_pickle_is(k, second->value, name))
    return 0;
  for (int64_t c = second->next; c >= 0 && n < 2; c = PICKLE_CELL(k, c)->next)
    item[n++] = PICKLE_CELL(k, c)->value;
  return n;
}

/* The kind and the size of a number of NumPy's dtype, 'f' and 8, and whether
   its bytes are in the order of big-endian machines; 0: it is of another. */
static int read_dtype(const Pickle *k, int32_t at, char *kind, int *size,
                      int *big) {
  int32_t part[2], argument[3], state[9];
  if (object_items(k, at, "numpy", "dtype", part) != 2) return 0;
  if (nc_pickle_items(k, part[0], argument, 3) < 1 ||
      nc_pickle_items(k, part[1], state, 9) < 2)
    return 0;
  const FileValue *code = PICKLE_VALUE(k, argument[0]);
  if (code->kind != NC_V_TEXT || code->n != 2) return 0;
  *kind = k->text[code->i];
  *size = k->text[code->i + 1] - '0';
  *big = nc_pickle_is(k, state[1], ">");
  return strchr("biuf", *kind) &&
         (*size == 1 || *size == 2 || *size == 4 || *size == 8);
}

/* The bytes of a text, or of characters below 256, if they are n, at most 8. */
static int read_bytes(const Pickle *k, int32_t at, unsigned char b[8], int n) {
  const FileValue *v = PICKLE_VALUE(k, at);
  const unsigned char *p = (const unsigned char *)k->text + v->i;
  int have = 0;
  if (v->kind != NC_V_TEXT && v->kind != NC_V_BYTES) return 0;
  for (int32_t i = 0; i < v->n; i++) {
    if (have == n) return 0;
    b[have++] = v->kind == NC_V_BYTES && p[i] >= 0x80
                    ? (unsigned char)(p[i] << 6 | (p[i + 1] & 0x3f))
                    : p[i];
    if (v->kind == NC_V_BYTES && p[i] >= 0x80) i++;
  }
  return have == n;
}

static double to_double(uint64_t bits, int size) {
  const uint32_t low = (uint32_t)bits;
  double x;
  float y;
  memcpy(&x, &bits, sizeof x);
  memcpy(&y, &low, sizeof y);
  return size == 8 ? x : (double)y;
}

int nc_pickle_scalar(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  unsigned char b[8] = { 0 };
  char kind = 0;
  int size = 0, big = 0;
  uint64_t v = 0;
  *at = -1;
  if (nc_pickle_items(k, tuple, item, 2) != 2 ||
      !read_dtype(k, item[0], &kind, &size, &big) ||
      !read_bytes(k, item[1], b, size))
    return NC_OK;
  for (int i = 0; i < size; i++)
    v |= (uint64_t)b[big ? size - 1 - i : i] << 8 * i;
  if (kind == 'b') return nc_pickle_value(k, at, NC_V_BOOL, v != 0, 0);
  if (kind == 'f' && size < 4) return NC_OK;
  if (kind == 'f') {
    TRY(nc_pickle_value(k, at, NC_V_FLOAT, 0, 0));
    PICKLE_VALUE(k, *at)->f = to_double(v, size);
    return NC_OK;
  }
  if (kind == 'u' && v > INT64_MAX) return NC_OK;
  if (kind == 'i' && size < 8 && v >> (8 * size - 1))
    v |= UINT64_MAX << 8 * size;
  return nc_pickle_value(k, at, NC_V_INT, (int64_t)v, 0);
}

/* The dtype of an array: that of numbers, or 0. */
static int array_dtype(const Pickle *k, int32_t at, PickleStorage *s) {
  static const char *const names[][2] = {
    { "b1", "bool" },      { "u1", "uint8" },      { "i1", "int8" },
    { "i2", "int16" },     { "i4", "int32" },      { "i8", "int64" },
    { "u2", "uint16" },    { "u4", "uint32" },     { "u8", "uint64" },
    { "f2", "float16" },   { "f4", "float32" },    { "f8", "float64" },
    { "c8", "complex64" }, { "c16", "complex128" }
  };
  int32_t part[2], argument[3], state[9];
  if (object_items(k, at, "numpy", "dtype", part) != 2 ||
      nc_pickle_items(k, part[0], argument, 3) < 1 ||
      nc_pickle_items(k, part[1], state, 9) < 2)
    return 0;
  s->big = nc_pickle_is(k, state[1], ">");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (nc_pickle_is(k, argument[0], names[i][0])) {
      s->dtype = nc_storednamed(names[i][1], strlen(names[i][1]));
      return 1;
    }
  return 0;
}

/* Sets the dimensions from a tuple; the number of elements, or -1. */
static int64_t array_shape(const Pickle *k, int32_t shape, int32_t fortran,
                           PickleTensor *t) {
  int32_t item[NC_MAXDIM];
  int64_t n = 1;
  t->nd = nc_pickle_items(k, shape, item, NC_MAXDIM);
  const int first = PICKLE_VALUE(k, fortran)->i == 1 ? 0 : t->nd - 1;
  for (int i = 0; i < t->nd; i++) {
    const int d = first == 0 ? i : first - i;
    const FileValue *v = PICKLE_VALUE(k, item[d]);
    if (v->kind != NC_V_INT || v->i < 0) return -1;
    t->size[d] = v->i;
    t->step[d] = n;
    if (v->i && n > INT32_MAX / v->i) return -1; /* more than a pickle has */
    n *= v->i;
  }
  return t->nd < 0 ? -1 : n;
}

/* How many bytes a text, or characters, are; -1: the value is neither. */
static int64_t count_bytes(const Pickle *k, int32_t at) {
  const FileValue *v = PICKLE_VALUE(k, at);
  int64_t n = 0;
  if (v->kind == NC_V_TEXT) return v->n;
  if (v->kind != NC_V_BYTES) return -1;
  for (int32_t i = 0; i < v->n; i++)
    n += ((unsigned char)k->text[v->i + i] & 0xc0) != 0x80;
  return n;
}

/* The state is (version, shape, dtype, is it Fortran's order?, bytes). */
int nc_pickle_array(Pickle *k, int32_t at) {
  int32_t part[2], item[5];
  PickleStorage s = { .part = k->part };
  PickleTensor t = { 0 };
  void *slot;
  if (object_items(k, at, "numpy.core.multiarray", "_reconstruct", part) != 2 &&
      object_items(k, at, "numpy._core.multiarray", "_reconstruct", part) != 2)
    return NC_OK;
  if (nc_pickle_items(k, part[1], item, 5) != 5 || !array_dtype(k, item[2], &s))
    return NC_OK;
  const FileValue *bytes = PICKLE_VALUE(k, item[4]);
  const int64_t size = nc_dtypesize(s.dtype);
  s.count = array_shape(k, item[1], item[3], &t);
  s.bytes = count_bytes(k, item[4]);
  if (s.count < 0 || s.bytes != s.count * size) return NC_OK;
  s.inside = bytes->kind;
  s.key = bytes->i;
  s.length = bytes->n;
  t.storage = k->storage.n;
  TRY(nc_push_slot(&k->storage, sizeof s, &slot));
  *(PickleStorage *)slot = s;
  return nc_pickle_tensor(k, at, &t);
}

int nc_pickle_path(Pickle *k, int32_t *at, int32_t tuple) {
  const FileValue v = *PICKLE_VALUE(k, tuple);
  *at = -1;
  for (int64_t c = v.i; c >= 0; c = PICKLE_CELL(k, c)->next)
    if (PICKLE_VALUE(k, PICKLE_CELL(k, c)->value)->kind != NC_V_TEXT)
      return NC_OK;
  return nc_pickle_value(k, at, NC_V_PATH, v.i, v.n);
}
