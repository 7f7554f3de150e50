/* SPDX-License-Identifier: MIT */
/*
** archive.h - the interface of the formats for several tensors.  A format
** begins its own struct with an Archive and fills it in when it is opened.
*/
#ifndef core_io_archive_h
#define core_io_archive_h

#include "core/io/file.h"
#include "core/files.h"

#define NC_HEAD 512
typedef struct Head {         /* the first bytes of a file */
  char bytes[NC_HEAD];
  int64_t n;                  /* that are there */
  int64_t size;               /* of the file */
} Head;

int nc_readhead(Head *h, const Source *from);

/* What a format does.  A TEXT format only saves; its files are read by
   nc_loadtext and nc_loadcolumns. */
typedef struct ArchiveFormat {
  int64_t size;               /* of its struct */
  /* The struct is zero except format, path, which is also from->path, and, of
     an NC_ONE, n and name. */
  int (*open)(Archive *a, const Source *from);
  int (*load)(Tensor **t, Archive *a, int64_t i);
  int (*info)(TensorInfo *t, Archive *a, int64_t i);
  void (*close)(Archive *a);  /* also if open has failed */
  /* May be NULL: */
  int (*slice)(Tensor **t, Archive *a, int64_t i, const TensorSlice *s);
  int (*attributes)(Archive *a, const Attribute **list, int64_t *n);
  int (*save)(const Sink *to, const FileContents *c);
  /* Is it a file of this format?  `named': by its name it is. */
  int (*recognize)(const Head *h, int named);
  int (*is_path)(const char *path); /* the same of PARTS, which have no bytes */
  int prefixed;               /* other bytes may come before the magic */
} ArchiveFormat;

struct Archive {
  const ArchiveFormat *format;
  char path[PATH_MAX];
  int64_t n;                  /* tensors */
  const char *const *name;
  const char *const *meta;    /* texts: name, value, name, value, ... */
  int64_t nmeta;              /* pairs */
  struct Pickle *pickle;      /* of a .pt file, else NULL */
  int program;                /* is it one of TorchScript? */
  const int32_t *tensor;      /* of such a file: the number of each tensor's
                                 PickleTensor */
};

#define DECLARE(name, ...) extern const ArchiveFormat nc_format_##name;
FILE_FORMATS(DECLARE, DECLARE, DECLARE, NO_FORMAT, NO_FORMAT)
#undef DECLARE
extern const ArchiveFormat nc_textformat;

/* Are these the first bytes of a zip archive? */
int nc_is_zip(const Head *h);

/* Fails if the n bytes at head are the beginning of a known format that is not
   read (foreign_formats.c). */
#define NPY_MAGIC "\x93NUMPY"  /* those of a .npy file */
int nc_fail_foreign_format(const char *path, const char *head, int64_t n);
/* Fails if they are those of no file in binary form: what = "npz". */
int nc_fail_other_bytes(const char *path, const char *what, const char *head,
                        int64_t n);

/* Fails: the tensor has a dtype, or more dimensions, than ours have. */
int nc_fail_foreign(const char *path, const char *name, const char *dtype);
int nc_fail_dimensions(const char *path, const char *name, int n);

/* Sorts n names; fails if two are equal. */
int nc_checknames(const char *path, const char *names[], int64_t n);

#endif
