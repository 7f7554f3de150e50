/* SPDX-License-Identifier: MIT */
/*
** zip.c - zip archives by libzip; see zip.h.
**
** The library is opened by name (core/library.h): a program that touches no
** archive does not load it, and Nacre builds without its header.  The types and
** functions used are declared here, as in the ABI of libzip 1.x.
**
** A file is untrusted.  The sizes that its directory declares are checked:
** deflate expands at most 1032 times, and members that together are longer
** than the archive overlap.
*/
#define _POSIX_C_SOURCE 200809L
#include "core/io/zip/zip.h"
#include "core/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct zip zip;
typedef struct zip_file zip_file;
typedef struct zip_source zip_source;
typedef struct zip_error {
  int zip, sys;
  char *text;
} zip_error;
typedef struct zip_stat {
  uint64_t valid;
  const char *name;
  uint64_t index, size, comp_size;
  time_t mtime;
  uint32_t crc;
  uint16_t comp_method, encryption_method;
  uint32_t flags;
} zip_stat;
typedef struct zip_seek {
  int64_t offset;
  int whence;
} zip_seek;
typedef int64_t Callback(void *, void *, uint64_t, int);

enum { CREATE = 1, TRUNCATE = 8, RDONLY = 16 };
enum { STORE = 0, DEFLATE = 8 };
enum { HAS_SIZE = 4, HAS_COMP_SIZE = 8, HAS_CRC = 32, HAS_METHOD = 64 };
enum { HAS_CRYPT = 128 };
enum { ER_READ = 5, ER_WRITE = 6, ER_NOZIP = 19 };
enum { IN_LOCAL_HEADER = 256, UTF8 = 2048 };
enum { LOCAL_HEADER = 30, ZIP64_FIELD = 20, ALIGNED = 64, PADDING = 0x4246 };
/* clang-format off */
enum Command {                /* to a source */
  OPEN, READ, CLOSE, STAT, ERROR, FREE, SEEK, TELL, BEGIN_WRITE, COMMIT_WRITE,
  ROLLBACK_WRITE, WRITE, SEEK_WRITE, TELL_WRITE, SUPPORTS, REMOVE
};
/* The commands of a source to be read, and of one to be written, as bits. */
enum { READING = 1 << OPEN | 1 << READ | 1 << CLOSE | 1 << STAT | 1 << ERROR |
                 1 << FREE | 1 << SEEK | 1 << TELL | 1 << SUPPORTS,
       WRITING = (1 << (REMOVE + 1)) - 1 };

#define ZIP_FUNCTIONS(X)                                                      \
  X(zip_source *, source_function_create, (Callback *, void *, zip_error *))  \
  X(void, source_free, (zip_source *))                                        \
  X(zip *, open_from_source, (zip_source *, int, zip_error *))                \
  X(int, close, (zip *))                                                      \
  X(void, discard, (zip *))                                                   \
  X(int64_t, get_num_entries, (zip *, uint32_t))                              \
  X(const char *, get_name, (zip *, uint64_t, uint32_t))                      \
  X(int64_t, name_locate, (zip *, const char *, uint32_t))                    \
  X(int, stat_index, (zip *, uint64_t, uint32_t, zip_stat *))                 \
  X(zip_file *, fopen_index, (zip *, uint64_t, uint32_t))                     \
  X(int64_t, fread, (zip_file *, void *, uint64_t))                           \
  X(int, fclose, (zip_file *))                                                \
  X(const char *, file_strerror, (zip_file *))                                \
  X(int64_t, file_add, (zip *, const char *, zip_source *, uint32_t))         \
  X(int, file_extra_field_set,                                                \
    (zip *, uint64_t, uint16_t, uint16_t, const uint8_t *, uint16_t,          \
     uint32_t))                                                               \
  X(int, set_file_compression, (zip *, uint64_t, int32_t, uint32_t))          \
  X(int, file_set_dostime, (zip *, uint64_t, uint16_t, uint16_t, uint32_t))   \
  X(void, error_init, (zip_error *))                                          \
  X(void, error_fini, (zip_error *))                                          \
  X(const char *, error_strerror, (zip_error *))                              \
  X(const char *, strerror, (zip *))
/* clang-format on */

static struct { ZIP_FUNCTIONS(NC_FIELD) } lib;

struct Zip {
  Reader r;
  int64_t at; /* the position of r */
  zip *zip;
  zip_file *member; /* that is open, if it is compressed */
  uint32_t crc;     /* of what was read of one that is stored */
  uint32_t whole;   /* what it is in the end */
  void *data;       /* int64_t: where the bytes of each member begin */
  int64_t members;
  int error; /* errno of a failed read, or 0 */
};

/*
** Opening the library
*/
static Library libzip = {
  .variable = "NACRE_ZIP",
  .names = NC_LIST("libzip.so.5", "libzip.so.4", "libzip.so", "libzip.5.dylib",
                   "libzip.dylib"),
  .prefix = "zip_",
  NC_FUNCTIONS(ZIP_FUNCTIONS, lib),
  .missing = ".npz and .pt files need libzip",
  .hint = "install it (Debian: libzip-dev); .safetensors needs no library",
};

const char *nc_ziplibrary(void) {
  return nc_libraryname(&libzip);
}

/*
** The source that libzip reads an archive from
*/
static int64_t report_error(void *data, int code) {
  int e[2];
  e[0] = code, e[1] = errno;
  memcpy(data, e, sizeof e);
  return sizeof e;
}

static int64_t report_size(void *data, int64_t size) {
  zip_stat s = { 0 };
  s.valid = HAS_SIZE;
  s.size = (uint64_t)size;
  memcpy(data, &s, sizeof s);
  return sizeof s;
}

static int64_t read_some(Zip *z, void *p, uint64_t n) {
  int64_t most = n < NC_IOBLOCK ? (int64_t)n : NC_IOBLOCK;
  if (most > z->r.left) most = z->r.left;
  errno = 0;
  if (nc_readblock(&z->r, p, most, "data") != NC_OK)
    return z->error = errno, -1;
  z->at += most;
  return most;
}

static int64_t seek_read(Zip *z, const void *data) {
  zip_seek s;
  memcpy(&s, data, sizeof s);
  if (s.whence == SEEK_CUR) s.offset += z->at;
  if (s.whence == SEEK_END) s.offset += z->r.size;
  if (s.offset < 0 || s.offset > z->r.size) return errno = EINVAL, -1;
  if (nc_seekread(&z->r, s.offset) != NC_OK) return z->error = errno, -1;
  z->at = s.offset;
  return 0;
}

static int64_t read_source(void *ctx, void *data, uint64_t n, int command) {
  Zip *z = ctx;
  switch (command) {
    case OPEN:
    case CLOSE:
    case FREE: return 0;
    case READ: return read_some(z, data, n);
    case SEEK: return seek_read(z, data);
    case TELL: return z->at;
    case ERROR: return report_error(data, ER_READ);
    case SUPPORTS: return READING;
    case STAT: return report_size(data, z->r.size);
    default: return -1;
  }
}

static int fail_archive(const char *path, const char *why) {
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  return nc_failfile(NC_EFILE, path, "%s", why);
}

/*
** Reading
*/
/* The same while reading: prefers the errno, which the library loses. */
static int fail_reading(const Zip *z, const char *path, const char *why) {
  return fail_archive(path, z->error ? strerror(z->error) : why);
}

/* Fails if the members together are longer than the archive. */
static int check_sizes(Zip *z) {
  const int64_t n = nc_zipmembers(z);
  uint64_t left = (uint64_t)z->r.size;
  for (int64_t i = 0; i < n; i++) {
    zip_stat s = { 0 };
    if (lib.stat_index(z->zip, (uint64_t)i, 0, &s) != 0)
      return fail_reading(z, z->r.path, lib.strerror(z->zip));
    if (s.comp_size > left)
      return fail_archive(z->r.path, "its members are longer than the file");
    left -= s.comp_size;
  }
  return NC_OK;
}

/* Fails unless the file begins with a zip header, as NumPy requires. */
static int check_start(Zip *z) {
  char head[4];
  if (z->r.size == 0) return fail_archive(z->r.path, "the file is empty");
  if (z->r.size < (int64_t)sizeof head)
    return fail_archive(z->r.path,
                        "this is not a zip archive: it is too short");
  TRY(nc_readblock(&z->r, head, sizeof head, "magic"));
  if (memcmp(head, "PK\3\4", 4) != 0 && memcmp(head, "PK\5\6", 4) != 0)
    return fail_archive(z->r.path,
                        "this is not a zip archive: its first bytes are wrong");
  return nc_seekread(&z->r, 0);
}

static int open_directory(Zip *z) {
  zip_error e;
  zip_source *source;
  TRY(check_start(z));
  lib.error_init(&e);
  source = lib.source_function_create(read_source, z, &e);
  if (source) z->zip = lib.open_from_source(source, RDONLY, &e);
  if (z->zip == NULL && !z->error && e.zip == ER_NOZIP)
    fail_archive(z->r.path, "it is not complete: the list of members at the "
                            "end is missing");
  else if (z->zip == NULL) fail_reading(z, z->r.path, lib.error_strerror(&e));
  if (z->zip == NULL && source) lib.source_free(source);
  lib.error_fini(&e);
  if (z->zip == NULL) return nc_lasterror()->code;
  TRY(check_sizes(z));
  z->members = nc_zipmembers(z);
  TRY(nc_hostalloc(&z->data, z->members * (int64_t)sizeof(int64_t)));
  TRY(nc_checklocals(&z->r, z->members, z->data));
  return nc_seekread(&z->r, z->at);
}

int nc_openzip(Zip **out, const Source *from) {
  void *p;
  Zip *z;
  int status;
  *out = NULL;
  TRY(nc_library(&libzip));
  TRY(nc_hostalloc(&p, sizeof(Zip)));
  z = p;
  memset(z, 0, sizeof *z);
  status = nc_openfrom(&z->r, from);
  if (status != NC_OK) nc_hostfree(z, sizeof *z);
  else if ((status = open_directory(z)) != NC_OK) nc_closezip(z);
  else *out = z;
  return status;
}

void nc_closezip(Zip *z) {
  if (z == NULL) return;
  if (z->zip) lib.discard(z->zip);
  nc_closeread(&z->r);
  nc_hostfree(z->data, z->members * (int64_t)sizeof(int64_t));
  nc_hostfree(z, sizeof *z);
}

int64_t nc_zipsize(const Zip *z) {
  return z->r.size;
}

int64_t nc_zipmembers(const Zip *z) {
  return lib.get_num_entries(z->zip, 0);
}

const char *nc_zipname(const Zip *z, int64_t i) {
  const char *name = lib.get_name(z->zip, (uint64_t)i, 0);
  return name ? name : "";
}

int64_t nc_findmember(const Zip *z, const char *name) {
  return lib.name_locate(z->zip, name, 0);
}

static ssize_t pull_packed(Reader *r, void *p, size_t n) {
  Zip *z = r->source;
  int64_t got = lib.fread(z->member, p, n);
  if (got < 0)
    r->why = z->error ? strerror(z->error) : lib.file_strerror(z->member);
  return (ssize_t)got;
}

/* The bytes of a stored member are read from the file: the library takes as
   long again for their checksum. */
static ssize_t pull_stored(Reader *r, void *p, size_t n) {
  Zip *z = r->source;
  if (r->left == 0) { /* the end */
    r->why = "its checksum is wrong";
    return z->crc == z->whole ? 0 : -1;
  }
  if ((int64_t)n > r->left) n = (size_t)r->left;
  errno = 0;
  if (nc_readblock(&z->r, p, (int64_t)n, "data") != NC_OK) {
    r->why = errno ? strerror(errno) : "the file became shorter";
    return -1;
  }
  z->crc = nc_crc32(z->crc, p, (int64_t)n);
  return (ssize_t)n;
}

/* *s = what the directory says of member i; fails if it cannot be read. */
static int member_stat(zip_stat *s, Zip *z, int64_t i, const char *label) {
  const uint64_t known = HAS_SIZE | HAS_COMP_SIZE | HAS_CRC | HAS_METHOD;
  if (lib.stat_index(z->zip, (uint64_t)i, 0, s) != 0)
    return fail_reading(z, label, lib.strerror(z->zip));
  if ((s->valid & known) != known)
    return nc_failfile(NC_EFILE, label, "its size is not known");
  if (s->valid & HAS_CRYPT && s->encryption_method != 0)
    return nc_failfile(NC_EFILE, label, "it is encrypted");
  if (s->comp_method != STORE && s->comp_method != DEFLATE)
    return nc_failfile(NC_EFILE, label,
                       "it is compressed by method %d, "
                       "only deflate is supported",
                       s->comp_method);
  if (s->comp_method == STORE ? s->size != s->comp_size
                              : s->size / 1032 > s->comp_size)
    return nc_failfile(
        NC_EFILE, label, "%llu bytes cannot be unpacked from %llu",
        (unsigned long long)s->size, (unsigned long long)s->comp_size);
  return NC_OK;
}

static int open_stored(Reader *r, Zip *z, int64_t i, uint32_t crc) {
  const int64_t at = ((int64_t *)z->data)[i];
  if (at > z->r.size - r->size)
    return nc_failfile(NC_EFILE, r->path, "its bytes lie beyond the end");
  r->pull = pull_stored;
  z->crc = 0;
  z->whole = crc;
  return nc_seekread(&z->r, at);
}

int nc_openmember(Reader *r, Zip *z, int64_t i, const char *label) {
  zip_stat s = { 0 };
  memset(r, 0, sizeof *r);
  r->path = label;
  r->fd = -1;
  r->source = z;
  r->pull = pull_packed;
  z->member = NULL;
  z->error = 0;
  TRY(member_stat(&s, z, i, label));
  r->left = r->size = (int64_t)s.size;
  if (s.comp_method == STORE) return open_stored(r, z, i, s.crc);
  TRY(nc_seekread(&z->r, z->at)); /* where the library left it */
  z->member = lib.fopen_index(z->zip, (uint64_t)i, 0);
  return z->member ? NC_OK : fail_reading(z, label, lib.strerror(z->zip));
}

int nc_map_member(Tensor **t, Zip *z, int64_t i, const char *label, DType type,
                  int nd, const int64_t size[]) {
  const int64_t at = ((int64_t *)z->data)[i];
  zip_stat s = { 0 };
  int64_t n;
  *t = NULL;
  TRY(nc_checksize(&n, type, nd, size));
  TRY(member_stat(&s, z, i, label));
  if (s.comp_method != STORE || (int64_t)s.size != n * nc_dtypesize(type) ||
      at > z->r.size - (int64_t)s.size)
    return NC_OK;
  return nc_mapblock(t, &z->r, at, type, nd, size);
}

void nc_closemember(Reader *r) {
  Zip *z = r->source;
  if (z->member) lib.fclose(z->member);
  z->member = NULL;
}

/*
** Writing.  libzip asks for the bytes of each member in turn, then seeks back
** to write its size and checksum.
*/
typedef struct ZipTarget {
  Writer w;
  int64_t at, size;
  int status; /* of the first failure, which is in the error record */
} ZipTarget;

typedef struct ZipMember {
  const ZipFeed *feed;
  ZipTarget *target;
} ZipMember;

static int64_t set_failure(ZipTarget *t, int status) {
  if (t->status == NC_OK) t->status = status;
  return -1;
}

static int64_t write_some(ZipTarget *t, const char *p, uint64_t n) {
  const int status = nc_writeblock(&t->w, p, (int64_t)n);
  if (status != NC_OK) return set_failure(t, status);
  t->at += (int64_t)n;
  if (t->at > t->size) t->size = t->at;
  return (int64_t)n;
}

static int64_t seek_write(ZipTarget *t, const void *data) {
  zip_seek s;
  int status;
  memcpy(&s, data, sizeof s);
  if (s.whence == SEEK_CUR) s.offset += t->at;
  if (s.whence == SEEK_END) s.offset += t->size;
  if ((status = nc_seekwrite(&t->w, s.offset)) != NC_OK)
    return set_failure(t, status);
  t->at = s.offset;
  return 0;
}

static int64_t write_source(void *ctx, void *data, uint64_t n, int command) {
  ZipTarget *t = ctx;
  switch (command) {
    case BEGIN_WRITE:
    case COMMIT_WRITE:
    case ROLLBACK_WRITE:
    case FREE:
    case REMOVE:
    case OPEN:
    case CLOSE: return 0;
    case WRITE: return write_some(t, data, n);
    case SEEK_WRITE: return seek_write(t, data);
    case TELL_WRITE: return t->at;
    case ERROR: return report_error(data, ER_WRITE);
    case SUPPORTS: return WRITING;
    case STAT: return report_size(data, t->size);
    default: return -1;
  }
}

static int64_t member_source(void *ctx, void *data, uint64_t n, int command) {
  ZipMember *m = ctx;
  const ZipFeed *f = m->feed;
  int64_t got = 0;
  int status = NC_OK;
  switch (command) {
    case OPEN: status = f->begin(f->source); break;
    case READ: status = f->more(f->source, data, (int64_t)n, &got); break;
    case CLOSE: f->end(f->source); break;
    case FREE: return 0;
    case ERROR: return report_error(data, ER_READ);
    case STAT: return report_size(data, f->size);
    default: return -1;
  }
  return status == NC_OK ? got : set_failure(m->target, status);
}

/* Pads the local header of member i, which is stored at *at, as PyTorch does;
   *at = where the next one begins. */
static int place_member(zip *z, int64_t i, const ZipFeed *f, int64_t *at) {
  static const uint8_t zeros[ALIGNED];
  int status = 0;
  *at += LOCAL_HEADER + (int64_t)strlen(f->name);
  if (f->size >= UINT32_MAX) *at += ZIP64_FIELD;
  if (f->aligned) {
    *at += 4;
    const int64_t pad = (ALIGNED - *at % ALIGNED) % ALIGNED;
    status = lib.file_extra_field_set(z, (uint64_t)i, PADDING, 0, zeros,
                                      (uint16_t)pad, IN_LOCAL_HEADER);
    *at += pad;
  }
  *at += f->size;
  return status;
}

static int add_member(zip *z, ZipMember *m, int level, int64_t *at) {
  zip_source *source = lib.source_function_create(member_source, m, NULL);
  int64_t i;
  if (source == NULL) return -1;
  if ((i = lib.file_add(z, m->feed->name, source, UTF8)) < 0) {
    lib.source_free(source);
    return -1;
  }
  /* The date that NumPy writes, so that equal tensors give equal files. */
  if (lib.file_set_dostime(z, (uint64_t)i, 0, 1 << 5 | 1, 0) != 0 ||
      (level == 0 && place_member(z, i, m->feed, at) != 0))
    return -1;
  return lib.set_file_compression(z, (uint64_t)i, level ? DEFLATE : STORE,
                                  (uint32_t)level);
}

static int write_members(ZipTarget *t, const ZipFeed *feeds, int64_t n,
                         int level, ZipMember *members) {
  zip_source *source;
  zip *z;
  zip_error e;
  int64_t at = 0;
  int done = 1;
  lib.error_init(&e);
  source = lib.source_function_create(write_source, t, &e);
  z = source ? lib.open_from_source(source, CREATE | TRUNCATE, &e) : NULL;
  if (z == NULL) fail_archive(t->w.path, lib.error_strerror(&e));
  if (z == NULL && source) lib.source_free(source);
  lib.error_fini(&e);
  if (z == NULL) return nc_lasterror()->code;
  for (int64_t i = 0; done && i < n; i++) {
    members[i].feed = &feeds[i];
    members[i].target = t;
    done = add_member(z, &members[i], level, &at) == 0;
  }
  if (done && lib.close(z) == 0) return t->status;
  if (t->status == NC_OK) t->status = fail_archive(t->w.path, lib.strerror(z));
  lib.discard(z);
  return t->status;
}

int nc_writezip(const Sink *to, const ZipFeed *feeds, int64_t n, int level) {
  const int64_t bytes = n * (int64_t)sizeof(ZipMember);
  ZipTarget t = { .status = NC_OK };
  void *members;
  int status;
  TRY(nc_library(&libzip));
  TRY(nc_hostalloc(&members, bytes));
  status = nc_openwrite(&t.w, to);
  if (status == NC_OK && !t.w.regular)
    status = nc_closewrite(
        &t.w, nc_failfile(NC_EFILE, to->path, "this is not a regular file"));
  else if (status == NC_OK)
    status = nc_closewrite(&t.w, write_members(&t, feeds, n, level, members));
  nc_hostfree(members, bytes);
  return status;
}
