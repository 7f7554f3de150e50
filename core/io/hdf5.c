/* SPDX-License-Identifier: MIT */
/*
** hdf5.c - opens the HDF5 library; its errors as ours; types of elements.
*/
#include "core/io/hdf5.h"

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

int nc_failhdf5(const char *path, const char *what) {
  char shown[200];
  nc_failfile(NC_EFILE, path, "%s%s%s", what, *failure ? ": " : "",
              nc_printable(shown, sizeof shown, failure, strlen(failure)));
  *failure = '\0';
  return NC_EFILE;
}

/*
** Opening
*/
static int bind_symbols(void *handle) {
  unsigned major, minor, release;
#define X(result, name, parameters) \
  nc_symbol(&nc_hdf5.name, handle, "H5" #name) &&
  if (!(HDF5_FUNCTIONS(X) 1)) return 0;
#undef X
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

static Library *library(void) {
  static const char *const names[] = { "libhdf5_serial.so.103",
                                       "libhdf5.so.320",
                                       "libhdf5.so.310",
                                       "libhdf5.so.200",
                                       "libhdf5.so.103",
                                       "libhdf5_serial.so",
                                       "libhdf5.so",
                                       "libhdf5.dylib",
                                       NULL };
  static Library hdf5 = {
    "NACRE_HDF5",
    names,
    bind_symbols,
    ".h5 files need the HDF5 library",
    "install it (Debian: libhdf5-dev); .safetensors needs no library",
    0,
    NULL
  };
  return &hdf5;
}

int nc_openhdf5(void) {
  return nc_library(library());
}

const char *nc_hdf5library(void) {
  return nc_openhdf5() == NC_OK ? library()->name : NULL;
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

hid_t nc_hdf5type(DType t) {
  switch (t) {
    case DT_b8: return boolean();
    case DT_u8: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_UINT8);
    case DT_i8: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_INT8);
    case DT_i16: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_INT16);
    case DT_i32: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_INT32);
    case DT_i64: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_INT64);
    case DT_f16: return half(5, 10);
    case DT_bf16: return half(8, 7);
    case DT_f32: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_FLOAT);
    case DT_f64: return nc_hdf5.Tcopy(*nc_hdf5.T_NATIVE_DOUBLE);
    default: return -1;
  }
}
