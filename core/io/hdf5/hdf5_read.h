/* SPDX-License-Identifier: MIT */
/*
** hdf5_read.h - what the reader of an HDF5 file (hdf5_serve.c), a process of
** its own, does with the library, and how it talks with the archive
** (hdf5_archive.c), which asks it.
*/
#ifndef core_io_hdf5_hdf5_read_h
#define core_io_hdf5_hdf5_read_h

#include "core/io/growing_list.h"
#include "core/io/hdf5/hdf5.h"
#include "core/io/hdf5/reader_process.h"

#define NC_SPARSE (64 << 20)  /* bytes that need not be in the file */
#define NC_DENSE 1100         /* deflate's greatest ratio is 1032 */

typedef struct NameList {     /* each with a '\0' after it */
  char *text;
  int64_t used, room, n;
} NameList;

int nc_addname(NameList *l, const char *name);
void nc_freenames(NameList *l);

typedef struct Hdf5File {
  const char *path;
  hid_t file, access;         /* access: no way leads to another file */
  int64_t size;               /* of the file */
  NameList datasets, objects; /* objects: the groups, too */
  int status;                 /* of a visit */
} Hdf5File;

int nc_hdf5_open(Hdf5File *h, const Source *from);

/*
** Datasets
*/
typedef struct Dataset {
  char label[PATH_MAX + 200]; /* for messages */
  hid_t id, type, space, created;
  TensorInfo info;
  int64_t offset;             /* where in the file its elements lie as they are
                                 in memory; or -1 */
} Dataset;

int nc_hdf5_examine(Dataset *d, Hdf5File *h, const char *name);
void nc_hdf5_close(Dataset *d);
int nc_hdf5_shape(TensorInfo *t, hid_t space, const char *label);
/* Fails if a slice needs much more memory than the file has bytes of it. */
int nc_hdf5_check_stored(const Dataset *d, const TensorSlice *s);
/* Reads a slice in blocks of whole rows, which p->take(p, memory, bytes) takes;
   into memory that p->room(p, bytes) gives. */
typedef struct BlockTaker BlockTaker;
struct BlockTaker {
  int (*room)(BlockTaker *p, void **memory, int64_t bytes);
  int (*take)(BlockTaker *p, void *memory, int64_t bytes);
};
int nc_hdf5_read(const Dataset *d, const TensorSlice *s, BlockTaker *p);

/* Calls take(x, data) for each attribute of the file; it returns a status. */
int nc_hdf5_attributes(Hdf5File *h, int (*take)(const Attribute *x, void *data),
                       void *data);

/*
** Messages
*/
enum { HDF5_INFO, HDF5_LOAD, HDF5_SLICE, HDF5_ATTRIBUTES };

typedef struct Hdf5Request {
  int32_t kind;
  int64_t i;                  /* the dataset */
  TensorSlice slice;
} Hdf5Request;

/* Followed by n bytes: the names of the datasets of an open file; or, after a
   failure, text and hint, each with a '\0' after it.  After a LOAD or a SLICE
   without `offset' blocks of elements follow, each told by its length, an
   int64_t, of which the bytes are in the next slot; a length of -1 is followed
   by the reply with the error.  Each block is answered by one byte when its
   slot is free. */
typedef struct Hdf5Reply {
  int32_t status;
  int64_t n, count;           /* count: of datasets */
  TensorInfo info;
  int64_t offset;             /* of the dataset in the file; or -1 */
} Hdf5Reply;

/* Followed by the bytes of object, name and value.  `object' is -1 behind the
   last one, and a reply follows. */
typedef struct Hdf5Attribute {
  int64_t object, name;       /* bytes */
  int64_t texts, scalar;      /* as of Attribute */
  TensorInfo info;
} Hdf5Attribute;

/* Serves the file of a Source: for nc_start_reader. */
void nc_hdf5_serve(ReaderProcess *r, void *source);

#endif
