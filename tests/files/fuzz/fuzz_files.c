/* SPDX-License-Identifier: MIT */
/*
** fuzz_files.c - arbitrary bytes as a file of each format, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh FORMAT, which names the format
** in NACRE_FUZZ.  What is refused is refused by an error that names the file;
** what is read is consistent; nothing is lost.
*/
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/io/file.h"
#include "core/io/pt/pickle.h"

static void must(int condition) {
  if (!condition) abort();
}

static int failed_well(void) {
  return strncmp(nc_lasterror()->text, "x: ", 3) == 0;
}

/*
** Text.  The first byte says how the others are read.  A matrix has no more
** elements than the text has bytes, and there is a name for each of its
** columns.  What is read as a matrix can be read as columns, which are as many
** and as long.
*/
static Source text;

static void check_names(const Tensor *names, int64_t columns) {
  const char *p = nc_data(names), *end = p + nc_numel(names);
  for (int64_t i = 0; i < columns; i++) {
    must(p < end);
    p += strlen(p) + 1;
    must(p <= end);
  }
}

/* Reads the text as a matrix of this size; 0: it is refused. */
static int as_matrix(int64_t size[2], const TextFormat *f, DType type) {
  Tensor *t, *names;
  if (nc_loadtext(&t, &names, &text, f, type) != NC_OK) {
    must(t == NULL && names == NULL && failed_well());
    return 0;
  }
  must(t->nd == 2 && nc_numel(t) <= text.n + 1);
  must((names != NULL) == f->header);
  if (names) check_names(names, t->size[1]);
  size[0] = t->size[0], size[1] = t->size[1];
  nc_release(t);
  nc_release(names);
  return 1;
}

static int as_columns(int64_t size[2], const TextFormat *f, DType type) {
  TextColumns c;
  if (nc_loadcolumns(&c, &text, f, type) != NC_OK) {
    must(c.n == 0 && c.column == NULL && c.names == NULL && failed_well());
    return 0;
  }
  must((c.names != NULL) == f->header);
  if (c.names) check_names(c.names, c.n);
  size[0] = c.n > 0 ? nc_numel(c.column[0]) : 0, size[1] = c.n;
  for (int64_t k = 0; k < c.n; k++)
    must(c.column[k]->nd == 1 && nc_numel(c.column[k]) == size[0]);
  nc_freecolumns(&c);
  return 1;
}

/* The last column alone, of a type of its own. */
static void one_column(TextFormat f, int64_t columns, DType type) {
  const struct ColumnType own = { NULL, 1, type == DT_NONE ? DT_f32 : type };
  const char *const none = NULL;
  int64_t size[2];
  f.ncolumns = 1, f.numbers = &columns, f.names = &none;
  f.ntypes = 1, f.types = &own;
  if (as_columns(size, &f, DT_NONE)) must(size[1] == 1);
}

static void fuzz_csv(const Source *from) {
  static const char delimiters[] = { ',', '\t', ' ', ';' };
  const uint8_t *p = from->bytes;
  int64_t size[2], other[2];
  Scalar nothing = nc_int(-1);
  TextFormat f = { .delimiter = ',' };
  if (from->n == 0) return;
  f.delimiter = delimiters[*p & 3];
  f.header = *p >> 2 & 1;
  f.skip = *p >> 3 & 1;
  if (*p & 16) f.missing = &nothing;
  const DType type = (DType)(*p >> 5 == 0 ? DT_NONE : *p >> 5);
  text = (Source){ .path = "x", .bytes = p + 1, .n = from->n - 1 };
  if (as_matrix(size, &f, type)) {
    must(as_columns(other, &f, type));
    must(other[1] == size[1] && (size[1] == 0 || other[0] == size[0]));
    if (size[1] > 0) one_column(f, size[1], type);
  } else as_columns(other, &f, type);
}

/*
** .npy.  What is loaded survives being saved: every value is read once, and the
** header that is made of it is read the same.
*/
static void fuzz_npy(const Source *from) {
  Tensor *t, *u, *bytes;
  if (nc_loadnpy(&t, from) != NC_OK) {
    must(t == NULL && failed_well());
    return;
  }
  must(nc_numel(t) * nc_dtypesize(t->dtype) <= from->n);
  must(nc_save(&(Sink){ "x", 1, &bytes }, t) == NC_OK);
  const Source back = { "x", nc_data(bytes), nc_numel(bytes), 0 };
  must(nc_loadnpy(&u, &back) == NC_OK);
  must(u->dtype == t->dtype && u->nd == t->nd);
  for (int d = 0; d < t->nd; d++) must(u->size[d] == t->size[d]);
  nc_release(u);
  nc_release(bytes);
  nc_release(t);
}

/*
** Archives.  What can be opened has names that differ, and tensors that are
** read or refused.
*/
/* May a tensor of an archive that can be opened be refused so? */
static int may_fail(FileFormat f) {
  return f != FORMAT_safetensors || nc_lasterror()->code == NC_EDTYPE;
}

/* Reads at most 16 tensors, or all; their bytes in memory. */
static int64_t read_all(Archive *a, FileFormat f) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < nc_archivesize(a); i++) {
    TensorInfo info;
    Tensor *t;
    if (i == 16 && f != FORMAT_safetensors) break;
    if (nc_archiveload(&t, a, i) == NC_OK) {
      must(nc_archiveinfo(&info, a, i) == NC_OK && info.dtype == t->dtype);
      must(info.nd == t->nd);
      bytes += nc_numel(t) * nc_dtypesize(t->dtype);
    } else must(t == NULL && may_fail(f));
    for (int64_t k = 0; k < i; k++)
      must(strcmp(nc_archivename(a, i), nc_archivename(a, k)) != 0);
    nc_release(t);
  }
  return bytes;
}

/* More than the bytes of a text of the metadata: of GGUF a list becomes JSON,
   of ONNX one name is our own. */
static int64_t most_text(FileFormat f, int64_t n) {
  return f == FORMAT_gguf ? 8 * n : f == FORMAT_onnx ? n + 16 : n;
}

/* Bytes of the tensors, -1 if it cannot be opened. */
static int64_t fuzz_archive(const Source *from, FileFormat f) {
  Archive *a;
  if (nc_openarchive(&a, from, f) != NC_OK) {
    must(a == NULL && failed_well());
    return -1;
  }
  const int64_t bytes = read_all(a, f);
  for (int64_t i = 0; nc_archivemeta(a, i); i++)
    must((int64_t)strlen(nc_archivemeta(a, i)) < most_text(f, from->n));
  nc_closearchive(a);
  return bytes;
}

static void fuzz_npz(const Source *from) {
  fuzz_archive(from, FORMAT_npz);
  fuzz_archive(from, FORMAT_pt);
}

static void fuzz_gguf(const Source *from) {
  fuzz_archive(from, FORMAT_gguf);
}

static void fuzz_onnx(const Source *from) {
  fuzz_archive(from, FORMAT_onnx);
}

/* The tensors are the bytes behind the header, at most twice as many in
   memory. */
static void fuzz_safetensors(const Source *from) {
  const int64_t bytes = fuzz_archive(from, FORMAT_safetensors);
  must(bytes < 0 || bytes + 8 <= 2 * from->n);
}

/*
** The index of shards.  Every other file is one of .safetensors with a tensor
** "w"; none may be opened that is not beside the index.
*/
#define INDEX "d/x.index.json"

static const char shard[] =
    "\x35\0\0\0\0\0\0\0"
    "{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}ab";

/* The files: the index, and the shards, which are alike. */
static struct {
  const char *p;
  size_t n, at;
} file[2];

static int f_open(const char *path, int flags, ...) {
  const int which = strcmp(path, INDEX) != 0;
  (void)flags;
  must(strncmp(path, "d/", 2) == 0 && strchr(path + 2, '/') == NULL);
  file[which].at = 0;
  return 90 + which;
}

static int f_close(int fd) {
  (void)fd;
  return 0;
}

static int f_fstat(int fd, struct stat *s) {
  memset(s, 0, sizeof *s);
  s->st_mode = S_IFREG | 0644;
  s->st_size = (off_t)file[fd - 90].n;
  return 0;
}

static int f_stat(const char *path, struct stat *s) {
  return f_fstat(90 + (strcmp(path, INDEX) != 0), s);
}

static ssize_t f_read(int fd, void *p, size_t n) {
  const size_t left = file[fd - 90].n - file[fd - 90].at;
  if (n > left) n = left;
  memcpy(p, file[fd - 90].p + file[fd - 90].at, n);
  file[fd - 90].at += n;
  return (ssize_t)n;
}

static off_t f_lseek(int fd, off_t at, int whence) {
  (void)whence;
  file[fd - 90].at = (size_t)at;
  return at;
}

static void fuzz_shards(const Source *from) {
  const Files real = nc_files;
  Archive *a;
  file[0].p = from->bytes, file[0].n = (size_t)from->n;
  file[1].p = shard, file[1].n = sizeof shard - 1;
  nc_files.open = f_open, nc_files.close = f_close, nc_files.read = f_read;
  nc_files.stat = f_stat, nc_files.fstat = f_fstat, nc_files.lseek = f_lseek;
  if (nc_openarchive(&a, &(Source){ .path = INDEX }, FORMAT_shards) == NC_OK) {
    for (int64_t i = 0; i < nc_archivesize(a); i++) {
      Tensor *t;
      must(strcmp(nc_archivename(a, i), "w") == 0);
      must(nc_archiveload(&t, a, i) == NC_OK && nc_numel(t) == 2);
      nc_release(t);
    }
    nc_closearchive(a);
  } else must(a == NULL && *nc_lasterror()->text);
  nc_files = real;
}

/*
** The pickle of a .pt archive.  Memory is in proportion to the bytes, and every
** number in what is read is one of something that is there.  A tensor of a
** dtype that we do not have has a name instead of a storage.
*/
/* Is v a value that can be followed? */
static void check_value(const Pickle *k, const FileValue *v) {
  const int64_t values = k->value.n, cells = k->cell.n;
  switch (v->kind) {
    case NC_V_TEXT:
    case NC_V_BYTES:
      must(v->i >= 0 && v->n >= 0 && v->i + v->n <= k->size);
      break;
    case NC_V_LIST:
    case NC_V_DICT:
      for (int64_t c = v->i, n = 0; c >= 0; n++) {
        must(c < cells && n <= cells);
        must(PICKLE_CELL(k, c)->value < values);
        c = PICKLE_CELL(k, c)->next;
      }
      break;
    case NC_V_TENSOR: must(v->i >= 0 && v->i < k->tensor.n); break;
    default: break;
  }
}

static void fuzz_pickle(const Source *from) {
  const int64_t live = nc_memory.live;
  Pickle k = { .path = "x" };
  nc_memory.peak = live;
  if (nc_readpickle(&k, from->bytes, from->n) == NC_OK) {
    must(k.root >= 0 && k.root < k.value.n);
    for (int64_t i = 0; i < k.value.n; i++)
      check_value(&k, PICKLE_VALUE(&k, i));
    for (int64_t i = 0; i < k.tensor.n; i++) {
      const PickleTensor *t = PICKLE_TENSOR(&k, i);
      must(t->foreign ? t->foreign <= k.value.n : t->storage < k.storage.n);
    }
  } else must(failed_well());
  must(nc_memory.peak - live <= (1 << 16) + 400 * from->n);
  nc_freepickle(&k);
}

/*
** A file of one tensor, which gzip may have compressed.  What is read is
** written, and, unless the format loses something, that is read as the same.
*/
/* The tensor in a file, or NULL after an error that names it. */
static Tensor *load(const Source *from, FileFormat f) {
  TensorInfo info;
  Archive *a;
  Tensor *t = NULL;
  int64_t n;
  if (nc_openarchive(&a, from, f) != NC_OK) {
    must(a == NULL && failed_well());
    return NULL;
  }
  if (nc_archivesize(a) == 1) {
    must(nc_archiveinfo(&info, a, 0) == NC_OK);
    must(nc_checksize(&n, info.dtype, info.nd, info.size) == NC_OK);
    if (n <= 1 << 20 && nc_archiveload(&t, a, 0) == NC_OK)
      must(info.dtype == t->dtype && info.nd == t->nd);
  }
  nc_closearchive(a);
  return t;
}

static void write_again(Tensor *t, FileFormat f) {
  NamedTensor list = { "", t };
  const FileContents c = { .list = &list, .n = 1 };
  const int64_t size = nc_numel(t) * nc_dtypesize(t->dtype);
  Tensor *bytes = NULL;
  must(nc_savefile(&(Sink){ "x", 0, &bytes }, f, &c) == NC_OK);
  Tensor *same = load(
      &(Source){ .path = "x", .bytes = nc_data(bytes), .n = nc_numel(bytes) },
      f);
  must(same && same->dtype == t->dtype && nc_numel(same) == nc_numel(t));
  must(nc_formatcan(f, NC_QUALITY) ||
       memcmp(nc_data(same), nc_data(t), (size_t)size) == 0);
  nc_release(same);
  nc_release(bytes);
}

static void fuzz_one(const Source *bytes) {
  Source from = *bytes;
  FileFormat f;
  Tensor *t, *unpacked;
  if (nc_unpack(&unpacked, &from) == NC_OK && nc_formatof(&f, &from) == NC_OK &&
      nc_formatcan(f, NC_ONE) && !nc_formatcan(f, NC_AS_TEXT) &&
      (t = load(&from, f)) != NULL) {
    if (f < FORMAT_COUNT) write_again(t, f);
    nc_release(t);
  }
  nc_release(unpacked);
}

/*
** The program
*/
static const struct {
  const char *name;
  void (*fuzz)(const Source *from);
} formats[] = {
  { "csv", fuzz_csv },       { "gguf", fuzz_gguf },
  { "npy", fuzz_npy },       { "npz", fuzz_npz },
  { "one", fuzz_one },       { "onnx", fuzz_onnx },
  { "pickle", fuzz_pickle }, { "safetensors", fuzz_safetensors },
  { "shards", fuzz_shards },
};

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  static int chosen = -1;
  const Source from = { .path = "x", .bytes = p, .n = (int64_t)n };
  const int64_t live = nc_memory.live;
  while (chosen < 0 || strcmp(formats[chosen].name, getenv("NACRE_FUZZ")) != 0)
    must(++chosen < (int)(sizeof formats / sizeof *formats));
  formats[chosen].fuzz(&from);
  must(nc_memory.live == live);
  return 0;
}
