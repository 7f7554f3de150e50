/* SPDX-License-Identifier: MIT */
/*
** pt_file.h - an open file of PyTorch, for the files of this folder.
*/
#ifndef core_io_pt_pt_file_h
#define core_io_pt_pt_file_h

#include "core/io/archive.h"
#include "core/io/pt/pickle.h"
#include "core/io/zip/zip_items.h"

#define MOST_ROOM NC_MAXNAME /* of the name of the archive's folder */

typedef struct PtFile {
  Archive a; /* comes first */
  Zip *zip;                   /* NULL: a file of before 1.6, which is */
  Reader file;                /* open if its path is not NULL */
  Pickle pickle;
  void *text;
  int64_t textbytes;
  char folder[MOST_ROOM + 8]; /* "archive/" */
  int swap;                   /* elements have the other byte order */
  int32_t constants;          /* of TorchScript: the value of constants.pkl; or
                                 -1 */
  Vector order;               /* int64_t: the storages, sorted by their keys */
  Vector reached;             /* int32_t: 1 for each value that was seen */
  Vector tensor;              /* int32_t: see Archive */
  Vector start, names;        /* int64_t, char: the names of the tensors */
  void *list;                 /* the same as pointers */
} PtFile;

/* Walks the values from `root' on, whose place has this name: those that are
   reached are checked, and each tensor gets the name of its place, as
   "model.layer.weight". */
int nc_pt_walk(PtFile *f, int32_t root, const char *name);
/* What was not reached is no part of the result. */
void nc_pt_drop_others(PtFile *f);

/* Sorts the storages by their keys, and finds those with the same key. */
int nc_pt_join_storages(PtFile *f);

/* Files of before 1.6 (legacy.c): are these the first bytes of one? */
int nc_pt_is_legacy(const Head *h);
/* Reads the pickles, and finds where the storages are. */
int nc_pt_open_legacy(PtFile *f, const Source *from);
int nc_pt_load_legacy(PtFile *f, PickleStorage *s);

#endif
