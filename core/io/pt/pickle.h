/* SPDX-License-Identifier: MIT */
/*
** pickle.h - the part of Python's pickles that torch.save writes: pickle.c has
** the opcodes, pickle_objects.c what the globals among them make.
**
** Nothing is executed: a pickle becomes an array of FileValue, and each global
** that it names is one of a fixed list or makes an NC_V_OTHER of all that it is
** given.  All memory is in proportion to the bytes of the pickle.
*/
#ifndef core_io_pt_pickle_h
#define core_io_pt_pickle_h

#include "core/io/file.h"

/* Kinds of a value while it is read, beyond those of ValueKind. */
enum { V_TUPLE = NC_V_PATH + 1, V_GLOBAL, V_STORAGE };

typedef struct Vector {       /* grows; push_slot in pickle.c */
  void *p;
  int64_t n, room;            /* elements, bytes */
} Vector;

typedef struct PickleStorage {
  int64_t key;                /* its text in the pickle, of `length' bytes */
  int length;
  DType dtype;                /* DT_NONE: bytes whose type a tensor tells */
  int part;                   /* of which pickle it is; see Pickle */
  int foreign;                /* its dtype is none of ours */
  int inside;                 /* NC_V_TEXT, NC_V_BYTES: its elements are in the
                                 pickle, at `key'; else 0 */
  int big;                    /* then: are they big-endian? */
  int64_t count, bytes;       /* as declared */
  int64_t first;              /* elements before it, if it is a part of one */
  int64_t same;               /* the first one with the same key */
  int64_t place;              /* where it begins in a file of before 1.6 */
  Tensor *loaded;
} PickleStorage;

typedef struct PickleTensor {
  int64_t storage, offset;
  int nd, requires;           /* nd may be more than ours have */
  int32_t foreign;            /* 1 + the text that names its dtype, which no
                                 tensor of ours has; 0: it has one of ours */
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
} PickleTensor;

typedef struct Pickle {
  const char *path;           /* for messages */
  const char *text;           /* the bytes, */
  int64_t at, size;           /* of which `at' are read */
  int part;                   /* pickles that were read before */
  Reader *from;               /* where more of the bytes are, or NULL; then */
  void *block;                /* text is in it */
  int64_t room;
  Vector value, cell;         /* FileValue, FileCell */
  Vector stack, memo;         /* int32_t: numbers of values; MARK */
  Vector storage, tensor;
  int32_t root;
} Pickle;

#define PICKLE_VALUE(k, i) ((FileValue *)(k)->value.p + (i))
#define PICKLE_CELL(k, i) ((FileCell *)(k)->cell.p + (i))
#define PICKLE_STORAGE(k, i) ((PickleStorage *)(k)->storage.p + (i))
#define PICKLE_TENSOR(k, i) ((PickleTensor *)(k)->tensor.p + (i))

/* Reads the n bytes of text into *k, which is zero except path.
   nc_freepickle is called also after a failure. */
int nc_readpickle(Pickle *k, const char *text, int64_t n);
/* Reads the pickle that begins at k->at; bytes may follow its end, which k->at
   then is. */
int nc_nextpickle(Pickle *k);
void nc_freepickle(Pickle *k);

/* Fails with the path, "pickle" and the position. */
int nc_fail_pickle(const Pickle *k, const char *fmt, ...) NC_PRINTF(2, 3);
int64_t nc_storage_elements(const PickleStorage *s);  /* whose type is known */
/* Fails unless the elements of t are in a storage of `have' elements. */
int nc_pickle_extent(const Pickle *k, const PickleTensor *t, int64_t have);
/* *at = the number of a new value. */
int nc_pickle_value(Pickle *k, int32_t *at, int kind, int64_t i, int32_t n);
/* Makes room for one more element of `size' bytes; *slot points to it. */
int nc_push_slot(Vector *v, int64_t size, void **slot);

/* Appends to a list, tuple or dict. */
int nc_pickle_append(Pickle *k, int32_t list, int32_t value);
/* The items of a list or tuple, of which there may be `most'; returns how many,
   or -1: there are more, or it is neither. */
int nc_pickle_items(const Pickle *k, int32_t list, int32_t item[], int most);

/* *at = the value of the global `module.name', whose texts are there. */
int nc_pickle_global(Pickle *k, int32_t *at, int64_t module, int64_t nmodule,
                     int64_t name, int64_t nname);
/* Makes a value that is part of the result one of the public kinds: a dtype is
   its name, a function or a storage by itself an NC_V_OTHER. */
int nc_pickle_plain(Pickle *k, int32_t at);
/* *at = an NC_V_OTHER: an object of the class, or what the function returns,
   that is value `of'; it holds the n values at item, too. */
int nc_pickle_other(Pickle *k, int32_t *at, int32_t of, const int32_t item[],
                    int n);
/* *at = what the global makes of the tuple; fails if it is none: a list could
   still change. */
int nc_pickle_call(Pickle *k, int32_t *at, int32_t global, int32_t tuple);
/* Value `at' becomes this tensor. */
int nc_pickle_tensor(Pickle *k, int32_t at, const PickleTensor *t);
/* *at = the storage that the tuple names. */
int nc_pickle_storage(Pickle *k, int32_t *at, int32_t tuple);

/* Objects of Python's library and of NumPy (python_objects.c).  *at = what the
   call of numpy.core.multiarray.scalar gives, or -1: no number of ours. */
int nc_pickle_scalar(Pickle *k, int32_t *at, int32_t tuple);
/* Makes an array of NumPy, which value `at' is if it has its state, a tensor;
   an array of what is not a number stays an NC_V_OTHER. */
int nc_pickle_array(Pickle *k, int32_t at);
/* *at = the path of the tuple of texts, or -1. */
int nc_pickle_path(Pickle *k, int32_t *at, int32_t tuple);
/* Is value i this text? */
int nc_pickle_is(const Pickle *k, int32_t i, const char *text);

#endif
