/* SPDX-License-Identifier: MIT */
/*
** files.h - files of tensors.
*/
#ifndef core_files_h
#define core_files_h

#include "core/file_formats.h"
#include "core/tensor.h"

#define ENUMERATOR(name, ...) FORMAT_##name,
typedef enum FileFormat {
  FILE_FORMATS(ENUMERATOR, ENUMERATOR, ENUMERATOR, ENUMERATOR, NO_FORMAT)
  FORMAT_COUNT,
  FORMAT_UNKNOWN = FORMAT_COUNT, FORMAT_UNNAMED
} FileFormat;
#undef ENUMERATOR

/* What a file of a format holds.  Nested tables are a structure in the metadata
   (NC_AS_METADATA), paths of names (NC_AS_PATHS), or values beside the tensors
   (NC_AS_VALUES); a file that is FLAT has none. */
enum {
  FLAT = 0,
  NC_ONE = 1, NC_MANY = 2, NC_AS_TEXT = 4,
  NC_AS_METADATA = 8, NC_AS_PATHS = 16, NC_AS_VALUES = 32,
  NC_NESTED = NC_AS_METADATA | NC_AS_PATHS | NC_AS_VALUES,
  NC_METADATA = 64,           /* texts by name */
  NC_SLICE = 128,             /* parts of a tensor are read alone */
  NC_COMPRESS = 256,
  NC_IMAGE = 512,
  NC_QUALITY = 1024,          /* what is lost is chosen */
  NC_READ_ONLY = 2048
};
typedef struct FormatInfo {
  const char *name;           /* as in its row; "" if no file is named so */
  unsigned abilities;
  char delimiter;             /* of a text */
} FormatInfo;
const FormatInfo *nc_formatinfo(FileFormat f);
int nc_formatcan(FileFormat f, unsigned abilities);    /* any of them */
/* Writes the names of the formats with any of the abilities, each after `dot':
   ".npz, .pt and .h5", where `last' is "and"; those that are only read if
   NC_READ_ONLY is among the abilities. */
const char *nc_formatlist(char *text, size_t room, unsigned abilities,
                          const char *dot, const char *last);
/* Visits the names of all formats and then those of ALSO: the i-th, from 0, or
   NULL. */
const char *nc_formatextension(int i, FileFormat *f);

const char *nc_extension(const char *path);            /* "npy", or "" */
FileFormat nc_formatbyname(const char *path);
FileFormat nc_formatnamed(const char *name);           /* "npy", "csv", ... */

typedef struct Source {       /* a file at path, or, if not NULL, n bytes */
  const char *path;
  const void *bytes;
  int64_t n;
  int map;                    /* tensors are pages of the file where possible:
                                 as base/mapping.h says */
} Source;

/* Fails if t, which may be NULL, shows a mapped file that became shorter. */
int nc_fail_lost(const Tensor *t);

int nc_formatof(FileFormat *f, const Source *from);    /* by its content */
/* If gzip compressed the file, *bytes = what is in it, and from->bytes; else
   *bytes = NULL. */
int nc_unpack(Tensor **bytes, Source *from);

/* Bytes as uint8 vectors: of a file; of a pipe or terminal; of a stream, which
   pull reads as read(2) does. */
typedef int64_t StreamPull(void *stream, void *p, int64_t n);
int nc_readfile(Tensor **bytes, const char *path);
int nc_isstream(const char *path);
int nc_readpipe(Tensor **bytes, const char *path);
int nc_readstream(Tensor **bytes, const char *path, StreamPull *pull,
                  void *stream);
int nc_writefile(const char *path, const void *p, int64_t n); /* replaces it */

/* Where a tensor is written to: a file at path, with `atomic' replaced as a
   whole; or, if `bytes' is not NULL, a new uint8 vector. */
typedef struct Sink { const char *path; int atomic; Tensor **bytes; } Sink;
/* Removes the temporary files of unfinished saves.  Async-signal-safe. */
void nc_unlinktemporaries(void);

int nc_loadnpy(Tensor **t, const Source *from);
int nc_save(const Sink *to, Tensor *t);                /* .npy */

/* The dtype whose whole name, "uint16", these n bytes are; or DT_NONE. */
DType nc_storednamed(const char *name, size_t n);
/* As NumPy writes a dtype, "<f4"; "" for one that NumPy lacks. */
void nc_numpytype(char type[8], DType t);
const char *nc_torchstorage(DType t); /* "FloatStorage"; NULL: there is none */

/* Elements without a header, from byte `offset' on, in row-major order. */
typedef struct RawFormat {
  DType dtype;
  int swap;                   /* the other byte order than this machine's */
  int64_t offset;
} RawFormat;
int nc_sourcesize(int64_t *n, const Source *from);     /* in bytes */
int nc_loadraw(Tensor **t, const Source *from, const RawFormat *f, int nd,
               const int64_t size[]);
int nc_saveraw(const Sink *to, Tensor *t, int swap);
int nc_bigendian(void);       /* is this machine big-endian? */

typedef struct TextFormat {   /* of a .csv file */
  char delimiter;             /* ' ': any white space */
  int header;                 /* does the first line hold names? */
  int64_t skip;               /* lines to skip first */
  int comma;                  /* is the point of numbers a comma? */
  const Scalar *missing;      /* value of an empty field; NULL: an error */
  int64_t nna;                /* texts that count as empty fields */
  const char *const *na;
  int64_t ncolumns;           /* columns to read, in this order; 0: all */
  const int64_t *numbers;     /* their numbers, from 1; */
  const char *const *names;   /* or, if not NULL, their names */
  int64_t ntypes;             /* types of single columns: which of those that */
  const struct ColumnType { const char *name; int64_t number; DType type; }
      *types;                 /* are read, by name or, if NULL, number from 1 */
} TextFormat;
/* If f->header, *names = the names, each followed by '\0'.  With DT_NONE the
   fields decide the type. */
int nc_loadtext(Tensor **t, Tensor **names, const Source *from,
                const TextFormat *f, DType type);
/* The same with a vector for each column that is read, whose type its own
   fields decide where f->types does not give it. */
typedef struct TextColumns {
  int64_t n;
  Tensor **column;
  Tensor *names;              /* as of nc_loadtext */
} TextColumns;
int nc_loadcolumns(TextColumns *columns, const Source *from,
                   const TextFormat *f, DType type);
void nc_freecolumns(TextColumns *columns);
int nc_savetext(const Sink *to, Tensor *t, char delimiter,
                const char *const names[]);

/* Archives: files of several tensors, and .npy files, whose one tensor has the
   name ""; several are called arr_0, arr_1, ...  FORMAT_shards: several files
   of .safetensors as one, those of a folder or of an index.  Names are UTF-8
   without '\0', as nc_checktext wants them.  A file of unknown format is opened
   as .npy, which says what is wrong. */
#define NC_MAXNAME 1000
typedef struct NamedTensor { const char *name; Tensor *t; } NamedTensor;
typedef struct Archive Archive;
int nc_checktext(const char *s, size_t n, const char *what);
int nc_openarchive(Archive **a, const Source *from, FileFormat f);
void nc_closearchive(Archive *a);
int64_t nc_archivesize(const Archive *a);
const char *nc_archivename(const Archive *a, int64_t i);
const char *nc_archivemeta(const Archive *a, int64_t i); /* name, value, ... */
int nc_archiveload(Tensor **t, Archive *a, int64_t i);
typedef struct TensorInfo {   /* of a tensor that is not read */
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM];
  char foreign[24];           /* if dtype is DT_NONE: the file's name of a
                                 type that no tensor has */
} TensorInfo;
int nc_archiveinfo(TensorInfo *t, Archive *a, int64_t i);
/* Of each dimension `count' indices, from `first' on, counted from 0, each
   `step' from the one before. */
typedef struct TensorSlice {
  int64_t first[NC_MAXDIM], count[NC_MAXDIM], step[NC_MAXDIM];
} TensorSlice;
int nc_canslice(const Archive *a);
int nc_archiveslice(Tensor **t, Archive *a, int64_t i, const TensorSlice *s);
typedef struct Attribute {    /* of an object in an HDF5 file */
  const char *object, *name;  /* "/" is the root */
  Tensor *value;
  int64_t texts;              /* -1: value holds numbers; else this many texts,
                                 each with a '\0' after it */
  int scalar;                 /* no list */
} Attribute;
int nc_archiveattributes(Archive *a, const Attribute **list, int64_t *n);

/* The values of an archive whose tensors are in nested lists and tables, as of
   PyTorch; NULL if it has names alone.  What a LIST or a DICT holds is a
   chain of cells: in a DICT keys and values take turns.  A value may occur in
   several places, and hold itself. */
typedef enum ValueKind {
  NC_V_NONE, NC_V_BOOL, NC_V_INT, NC_V_FLOAT,
  NC_V_LONG,                  /* an integer beyond 64 bits: n bytes at i of
                                 nc_archivetext, in two's complement */
  NC_V_TEXT,                  /* n bytes at i of nc_archivetext */
  NC_V_BYTES,                 /* the same, each byte as a character of UTF-8 */
  NC_V_LIST, NC_V_DICT,       /* i: the first cell, n: the last; or -1 */
  NC_V_TENSOR,                /* i: its number in the archive */
  NC_V_OTHER,                 /* what no value of ours is: a LIST of two texts,
                                 its module or "" and its name, and of what it
                                 holds */
  NC_V_DEVICE,                /* a LIST of the name and, or not, the number */
  NC_V_PATH                   /* a LIST of the parts of a path, texts */
} ValueKind;
typedef struct FileValue {
  int32_t kind, n;
  union { int64_t i; double f; };
} FileValue;
typedef struct FileCell { int32_t value, next; } FileCell; /* next: or -1 */
const FileValue *nc_archivevalues(const Archive *a, int64_t *n);
int64_t nc_archiveroot(const Archive *a);      /* the value that is the whole */
int nc_archiveisprogram(const Archive *a);     /* of TorchScript: by names */
const FileCell *nc_archivecells(const Archive *a);
const char *nc_archivetext(const Archive *a);
int nc_archiverequires(const Archive *a, int64_t i); /* requires_grad */

/* What a file is to hold; a format ignores what its abilities do not name. */
typedef struct FileContents {
  NamedTensor *list;          /* .safetensors sorts it; of one tensor list[0] */
  int64_t n;
  const char *const *meta;    /* nmeta names, each followed by its value */
  int64_t nmeta;
  int compressed;
  const char *pickle;         /* NC_AS_VALUES: the values; list[0], list[1],
                                 ..., dense, are their storages "0", "1", ... */
  int64_t picklebytes;
  int quality;                /* NC_QUALITY: 1 to 100; 0: the usual */
  int level;                  /* of PNG: 1 + that of its compression; 0: the
                                 usual */
  char delimiter;             /* NC_AS_TEXT: of the fields, */
  const char *const *columns; /* and their names, or NULL */
} FileContents;
int nc_savefile(const Sink *to, FileFormat f, const FileContents *c);

#endif
