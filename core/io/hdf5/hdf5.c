/* SPDX-License-Identifier: MIT */
/*
** hdf5.c - opens the HDF5 library; its errors as ours; types of elements.
*/
#include "core/io/hdf5/hdf5.h"
#include "core/library.h"

#include <stdio.h>
#include <string.h>

Hdf5 nc_hdf5;

/*
** Errors: the library calls note_failure when one of its functions fails, and
** forgets the error at the next call.
*/
static char failure[160]; /* the innermost text of the last error */

static int note_text(unsigned n, const H5ErrorInfo *e, void *data) {
  (void)n;
  (void)data;
  /* of a filter that is not there the outer text tells more */
  if (e->text && (*failure == '\0' || strstr(e->text, "required filter")))
    snprintf(failure, sizeof failure, "%s", e->text);
  return 0;
}

static int note_failure(hid_t stack, void *data) {
  (void)data;
  *failure = '\0';
  nc_hdf5.Ewalk2(stack, 0, note_text, NULL);
  return 0;
}

/* A file of h5py with libver="latest" is often too new for a distribution. */
static void hint_version(void) {
  unsigned major, minor, release;
  if (strstr(failure, "bad version number") == NULL ||
      nc_hdf5.get_libversion(&major, &minor, &release) < 0)
    return;
  nc_hint("it is damaged or needs a newer HDF5 than the installed %u.%u.%u; "
          "h5py without libver= writes files that both can read",
          major, minor, release);
}

int nc_failhdf5(const char *path, const char *what) {
  char shown[200];
  nc_failfile(NC_EFILE, path, "%s%s%s", what, *failure ? ": " : "",
              nc_printable(shown, sizeof shown, failure, strlen(failure)));
  hint_version();
  *failure = '\0';
  return NC_EFILE;
}

/*
** Opening
*/
static int begin(void *handle) {
  unsigned major, minor, release;
#define X(name) nc_symbol(&nc_hdf5.name, handle, "H5" #name "_g") &&
  if (!(HDF5_CONSTANTS(X) 1)) return 0;
#undef X
  if (!nc_symbol(&nc_hdf5.Lvisit, handle, "H5Lvisit2") &&
      !nc_symbol(&nc_hdf5.Lvisit, handle, "H5Lvisit"))
    return 0;
  /* Before any other call. At its end the library would use a file again that
     it failed to close, for lack of space, and crash. */
  nc_hdf5.dont_atexit();
  /* before 1.10 a hid_t has 32 bits */
  if (nc_hdf5.get_libversion(&major, &minor, &release) < 0 ||
      (major == 1 && minor < 10))
    return 0;
  if (nc_hdf5.open() < 0) return 0;
  nc_hdf5.Eset_auto2(0, note_failure, NULL); /* prints nothing */
  return 1;
}

static Library hdf5 = {
  .variable = "NACRE_HDF5",
  .names = NC_LIST("libhdf5_serial.so.103", "libhdf5.so.320", "libhdf5.so.310",
                   "libhdf5.so.200", "libhdf5.so.103", "libhdf5_serial.so",
                   "libhdf5.so", "libhdf5.dylib"),
  .prefix = "H5",
  NC_FUNCTIONS(HDF5_FUNCTIONS, nc_hdf5),
  .accepts = begin,
  .missing = ".h5 files need the HDF5 library",
  .hint = "install it (Debian: libhdf5-dev); .safetensors needs no library",
};

int nc_openhdf5(void) {
  return nc_library(&hdf5);
}

const char *nc_hdf5library(void) {
  return nc_libraryname(&hdf5);
}

/*
** Types
*/
/* A float of two bytes with these bits of exponent and fraction. */
static hid_t half(size_t exponent, size_t fraction) {
  const hid_t t = nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_FLOAT);
  if (t >= 0 &&
      nc_hdf5.Tset_fields(t, 15, fraction, exponent, 0, fraction) >= 0 &&
      nc_hdf5.Tset_ebias(t, ((size_t)1 << (exponent - 1)) - 1) >= 0 &&
      nc_hdf5.Tset_size(t, 2) >= 0)
    return t;
  if (t >= 0) nc_hdf5.Tclose(t);
  return -1;
}

static hid_t boolean(void) {
  const hid_t t = nc_hdf5.Tenum_create(*nc_hdf5.T_NATIVE_INT8);
  const int8_t no = 0, yes = 1;
  if (t >= 0 && nc_hdf5.Tenum_insert(t, "FALSE", &no) >= 0 &&
      nc_hdf5.Tenum_insert(t, "TRUE", &yes) >= 0)
    return t;
  if (t >= 0) nc_hdf5.Tclose(t);
  return -1;
}

static hid_t integer(int64_t bytes, int has_sign) {
  const hid_t *const all[][2] = {
    [1] = { nc_hdf5.T_NATIVE_UINT8, nc_hdf5.T_NATIVE_INT8 },
    [2] = { nc_hdf5.T_NATIVE_UINT16, nc_hdf5.T_NATIVE_INT16 },
    [4] = { nc_hdf5.T_NATIVE_UINT32, nc_hdf5.T_NATIVE_INT32 },
    [8] = { nc_hdf5.T_NATIVE_UINT64, nc_hdf5.T_NATIVE_INT64 },
  };
  return nc_hdf5.Tcopy(*all[bytes][has_sign]);
}

static hid_t floating(int64_t bytes) {
  return bytes == 2   ? half(5, 10)
         : bytes == 4 ? nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_FLOAT)
                      : nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_DOUBLE);
}

/* Complex numbers are h5py's: records of two floats, r and i. */
static hid_t complex_numbers(int64_t bytes) {
  const size_t size = (size_t)bytes;
  const hid_t t = nc_hdf5.Tcreate(H5_COMPOUND, size),
              part = floating(bytes / 2);
  const int whole = t >= 0 && part >= 0 &&
                    nc_hdf5.Tinsert(t, "r", 0, part) >= 0 &&
                    nc_hdf5.Tinsert(t, "i", size / 2, part) >= 0;
  if (part >= 0) nc_hdf5.Tclose(part);
  if (whole) return t;
  if (t >= 0) nc_hdf5.Tclose(t);
  return -1;
}

hid_t nc_hdf5type(DType t) {
  const int64_t bytes = nc_dtypesize(t);
  switch (nc_dtypekind(t)) {
    case 'b': return boolean();
    case 'i': return integer(bytes, 1);
    case 'u': return integer(bytes, 0);
    case 'f': return floating(bytes);
    case 'B': return half(8, 7);
    case 'c': return complex_numbers(bytes);
    default: return -1;
  }
}

/* Are these the names of the type's two members? */
static int has_members(hid_t type, const char *a, const char *b) {
  int yes;
  char *first, *second;
  if (nc_hdf5.Tget_nmembers(type) != 2) return 0;
  first = nc_hdf5.Tget_member_name(type, 0);
  second = nc_hdf5.Tget_member_name(type, 1);
  yes = first && second && strcmp(first, a) == 0 && strcmp(second, b) == 0;
  if (first) nc_hdf5.free_memory(first);
  if (second) nc_hdf5.free_memory(second);
  return yes;
}

static int is_boolean(hid_t type) {
  return nc_hdf5.Tget_class(type) == H5_ENUM && nc_hdf5.Tget_size(type) == 1 &&
         has_members(type, "FALSE", "TRUE");
}

static DType integer_dtype(hid_t type) {
  return nc_dtypeof(nc_hdf5.Tget_sign(type) ? 'i' : 'u',
                    (int64_t)nc_hdf5.Tget_size(type));
}

static DType float_dtype(hid_t type) {
  size_t sign, exponent_at, exponent, fraction_at, fraction;
  if (nc_hdf5.Tget_fields(type, &sign, &exponent_at, &exponent, &fraction_at,
                          &fraction) < 0)
    return DT_NONE;
  if (exponent <= 5 && fraction <= 10) return DT_f16;
  if (exponent <= 8 && fraction <= 7) return DT_bf16;
  if (exponent <= 8 && fraction <= 23) return DT_f32;
  return exponent <= 11 && fraction <= 52 ? DT_f64 : DT_NONE;
}

/* Of records r and i of one type of floats that has a dtype of complex
   numbers. */
static DType complex_dtype(hid_t type) {
  DType t[2] = { DT_NONE, DT_NONE };
  if (!has_members(type, "r", "i")) return DT_NONE;
  for (unsigned i = 0; i < 2; i++) {
    const hid_t part = nc_hdf5.Tget_member_type(type, i);
    if (part < 0) return DT_NONE;
    if (nc_hdf5.Tget_class(part) == H5_FLOAT) t[i] = float_dtype(part);
    nc_hdf5.Tclose(part);
  }
  if (t[0] != t[1] || (t[0] != DT_f32 && t[0] != DT_f64)) return DT_NONE;
  return nc_complex_dtype(t[0]);
}

DType nc_hdf5_dtype(hid_t type) {
  switch (nc_hdf5.Tget_class(type)) {
    case H5_INTEGER: return integer_dtype(type);
    case H5_FLOAT: return float_dtype(type);
    case H5_ENUM: return is_boolean(type) ? DT_b8 : integer_dtype(type);
    case H5_COMPOUND: return complex_dtype(type);
    default: return DT_NONE;
  }
}

const char *nc_hdf5_typename(hid_t type) {
  static const char *const names[] = { "integers of an unusual size",
                                       "floats of more than 64 bits",
                                       "times",
                                       "texts",
                                       "bit fields",
                                       "opaque data",
                                       "compound data",
                                       "references",
                                       "enumerated values",
                                       "lists of various lengths",
                                       "arrays" };
  const int class = nc_hdf5.Tget_class(type);
  return class >= 0 && class < (int)(sizeof names / sizeof *names)
             ? names[class]
             : "data of an unknown type";
}

hid_t nc_hdf5_memorytype(DType t) {
  return nc_hdf5type(t == DT_b8 ? DT_i8 : t);
}

void nc_hdf5_make_booleans(void *p, int64_t n, DType t) {
  uint8_t *b = p;
  for (int64_t i = 0; t == DT_b8 && i < n; i++) b[i] = b[i] != 0;
}
