/* SPDX-License-Identifier: MIT */
/*
** hdf5.h - the HDF5 library (1.10 or later), which is opened when it is first
** needed, for the files hdf5_*.c.
**
** The types and functions used are declared here, as in the library's ABI, so
** that Nacre builds without its headers.
*/
#ifndef core_io_hdf5_hdf5_h
#define core_io_hdf5_hdf5_h

#include <stdbool.h>

#include "core/io/file.h"
#include "core/library.h"

typedef int64_t hid_t;        /* an object of the library; negative: none */
typedef unsigned long long hsize_t;

typedef struct H5LinkInfo { int type; } H5LinkInfo; /* how it begins */
typedef struct H5ErrorInfo {
  hid_t class, major, minor;
  unsigned line;
  const char *function, *file, *text;
} H5ErrorInfo;
typedef int H5Links(hid_t, const char *name, const H5LinkInfo *, void *);
typedef int H5Attributes(hid_t, const char *name, const void *, void *);
typedef int H5External(const char *, const char *, const char *, const char *,
                       unsigned *, hid_t, void *);
typedef int H5Errors(unsigned n, const H5ErrorInfo *, void *);

enum { H5_READ_ONLY = 0, H5_TRUNCATE = 2 };
enum { H5_HARD = 0 };                               /* kinds of links */
enum { H5_DATASET = 5 };                            /* kinds of objects */
enum { H5_COMPACT, H5_CONTIGUOUS, H5_CHUNKED, H5_VIRTUAL }; /* layouts */
enum { H5_INTEGER, H5_FLOAT, H5_STRING = 3, H5_COMPOUND = 6, H5_ENUM = 8 };
enum { H5_SCALAR = 0, H5_SIMPLE = 1 };              /* kinds of dataspaces */
enum { H5_UTF8 = 1 };
#define H5_VARIABLE ((size_t)-1)                    /* length of a text */

/* clang-format off */
#define HDF5_FUNCTIONS(X)                                                     \
  X(int, dont_atexit, (void))                                                 \
  X(int, open, (void))                                                        \
  X(int, get_libversion, (unsigned *, unsigned *, unsigned *))                \
  X(int, free_memory, (void *))                                               \
  X(int, Eset_auto2, (hid_t, int (*)(hid_t, void *), void *))                 \
  X(int, Ewalk2, (hid_t, int, H5Errors *, void *))                            \
  X(hid_t, Fopen, (const char *, unsigned, hid_t))                            \
  X(hid_t, Fcreate, (const char *, unsigned, hid_t, hid_t))                   \
  X(int, Fflush, (hid_t, int))                                                \
  X(ssize_t, Fget_file_image, (hid_t, void *, size_t))                        \
  X(int, Fclose, (hid_t))                                                     \
  X(hid_t, Pcreate, (hid_t))                                                  \
  X(int, Pclose, (hid_t))                                                     \
  X(int, Pset_fapl_core, (hid_t, size_t, unsigned))                           \
  X(int, Pset_elink_cb, (hid_t, H5External *, void *))                        \
  X(int, Pset_file_image, (hid_t, void *, size_t))                            \
  X(int, Pset_chunk, (hid_t, int, const hsize_t *))                           \
  X(int, Pget_chunk, (hid_t, int, hsize_t *))                                 \
  X(int, Pset_shuffle, (hid_t))                                               \
  X(int, Pset_deflate, (hid_t, unsigned))                                     \
  X(int, Pset_obj_track_times, (hid_t, bool))                                 \
  X(int, Pset_create_intermediate_group, (hid_t, unsigned))                   \
  X(int, Pset_char_encoding, (hid_t, int))                                    \
  X(int, Pget_layout, (hid_t))                                                \
  X(int, Pget_external_count, (hid_t))                                        \
  X(int, Iget_type, (hid_t))                                                  \
  X(hid_t, Oopen, (hid_t, const char *, hid_t))                               \
  X(int, Oclose, (hid_t))                                                     \
  X(hid_t, Dopen2, (hid_t, const char *, hid_t))                              \
  X(hid_t, Dcreate2, (hid_t, const char *, hid_t, hid_t, hid_t, hid_t,        \
                      hid_t))                                                 \
  X(hid_t, Dget_type, (hid_t))                                                \
  X(hid_t, Dget_space, (hid_t))                                               \
  X(hid_t, Dget_create_plist, (hid_t))                                        \
  X(hsize_t, Dget_storage_size, (hid_t))                                      \
  X(hsize_t, Dget_offset, (hid_t))                                            \
  X(int, Dread, (hid_t, hid_t, hid_t, hid_t, hid_t, void *))                  \
  X(int, Dwrite, (hid_t, hid_t, hid_t, hid_t, hid_t, const void *))           \
  X(int, Dclose, (hid_t))                                                     \
  X(hid_t, Screate, (int))                                                    \
  X(hid_t, Screate_simple, (int, const hsize_t *, const hsize_t *))           \
  X(int, Sget_simple_extent_type, (hid_t))                                    \
  X(int, Sget_simple_extent_ndims, (hid_t))                                   \
  X(int, Sget_simple_extent_dims, (hid_t, hsize_t *, hsize_t *))              \
  X(int, Sselect_hyperslab, (hid_t, int, const hsize_t *, const hsize_t *,    \
                             const hsize_t *, const hsize_t *))               \
  X(int, Sclose, (hid_t))                                                     \
  X(hid_t, Tcopy, (hid_t))                                                    \
  X(hid_t, Tcreate, (int, size_t))                                            \
  X(int, Tinsert, (hid_t, const char *, size_t, hid_t))                       \
  X(hid_t, Tenum_create, (hid_t))                                             \
  X(int, Tenum_insert, (hid_t, const char *, const void *))                   \
  X(int, Tequal, (hid_t, hid_t))                                              \
  X(int, Tget_class, (hid_t))                                                 \
  X(size_t, Tget_size, (hid_t))                                               \
  X(int, Tget_sign, (hid_t))                                                  \
  X(int, Tget_fields, (hid_t, size_t *, size_t *, size_t *, size_t *,         \
                       size_t *))                                             \
  X(size_t, Tget_ebias, (hid_t))                                              \
  X(int, Tget_nmembers, (hid_t))                                              \
  X(char *, Tget_member_name, (hid_t, unsigned))                              \
  X(hid_t, Tget_member_type, (hid_t, unsigned))                               \
  X(int, Tis_variable_str, (hid_t))                                           \
  X(int, Tset_size, (hid_t, size_t))                                          \
  X(int, Tset_fields, (hid_t, size_t, size_t, size_t, size_t, size_t))        \
  X(int, Tset_ebias, (hid_t, size_t))                                         \
  X(int, Tset_cset, (hid_t, int))                                             \
  X(int, Tget_cset, (hid_t))                                                  \
  X(int, Tclose, (hid_t))                                                     \
  X(int, Aiterate2, (hid_t, int, int, hsize_t *, H5Attributes *, void *))     \
  X(hid_t, Aopen, (hid_t, const char *, hid_t))                               \
  X(hid_t, Acreate2, (hid_t, const char *, hid_t, hid_t, hid_t, hid_t))       \
  X(hid_t, Aget_type, (hid_t))                                                \
  X(hid_t, Aget_space, (hid_t))                                               \
  X(hsize_t, Aget_storage_size, (hid_t))                                      \
  X(int, Aread, (hid_t, hid_t, void *))                                       \
  X(int, Awrite, (hid_t, hid_t, const void *))                                \
  X(int, Aclose, (hid_t))

/* Constants that the library computes when it is opened. */
#define HDF5_CONSTANTS(X)                                                     \
  X(P_CLS_FILE_ACCESS_ID) X(P_CLS_DATASET_CREATE_ID) X(P_CLS_LINK_CREATE_ID)  \
  X(P_CLS_DATASET_ACCESS_ID)                                                  \
  X(T_NATIVE_INT8) X(T_NATIVE_INT16) X(T_NATIVE_INT32) X(T_NATIVE_INT64)      \
  X(T_NATIVE_UINT8) X(T_NATIVE_UINT16) X(T_NATIVE_UINT32) X(T_NATIVE_UINT64)  \
  X(T_NATIVE_FLOAT) X(T_NATIVE_DOUBLE) X(T_C_S1)
/* clang-format on */

typedef struct Hdf5 {
  HDF5_FUNCTIONS(NC_FIELD)
#define X(name) const hid_t *name;
  HDF5_CONSTANTS(X)
#undef X
  /* H5Lvisit, from 1.12 on H5Lvisit2 */
  int (*Lvisit)(hid_t, int, int, H5Links *, void *);
} Hdf5;

extern Hdf5 nc_hdf5;          /* after nc_openhdf5 */
int nc_openhdf5(void);

/* Fails with what the library says of its last error. */
int nc_failhdf5(const char *path, const char *what);

/* A new type of the library for the elements of a tensor: bool is h5py's, the
   half-precision types are made.  Negative after a failure. */
hid_t nc_hdf5type(DType t);

/* The dtype that holds every value of a type, or DT_NONE. */
DType nc_hdf5_dtype(hid_t type);
const char *nc_hdf5_typename(hid_t type); /* "texts" */

/* The type in memory of elements of dtype t: a bool is read as a number, for a
   file may hold any. */
hid_t nc_hdf5_memorytype(DType t);

/* A '/' in a name separates groups; metadata are attributes of the root. */
int nc_savehdf5(const Sink *to, const FileContents *c);

/* Makes n elements at p 0 or 1 if they are of bool. */
void nc_hdf5_make_booleans(void *p, int64_t n, DType t);

#endif
