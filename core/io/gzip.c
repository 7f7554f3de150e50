/* SPDX-License-Identifier: MIT */
/*
** gzip.c - files that gzip compressed, by zlib.  The library is opened by name
** (core/library.h) at the first such file; what is used of it is declared here,
** as in the ABI of zlib 1.2.  It allocates from the core's accounting.
*/
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/io/file.h"
#include "core/library.h"

typedef struct z_stream {
  const unsigned char *next_in;
  unsigned avail_in;
  unsigned long total_in;
  unsigned char *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *msg;
  void *state;
  void *(*zalloc)(void *, unsigned, unsigned);
  void (*zfree)(void *, void *);
  void *opaque;
  int data_type;
  unsigned long adler, reserved;
} z_stream;

enum { Z_OK = 0, Z_STREAM_END = 1, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5 };
enum { GZIP = 15 + 16 }; /* for windowBits: the largest, a header of gzip */

/* clang-format off */
#define FUNCTIONS(X)                                              \
  X(int, inflateInit2_, (z_stream *, int, const char *, int))     \
  X(int, inflate, (z_stream *, int))                              \
  X(int, inflateReset, (z_stream *))                              \
  X(int, inflateEnd, (z_stream *))
/* clang-format on */

static struct { FUNCTIONS(NC_FIELD) } z;

static Library zlib = {
  .variable = "NACRE_ZLIB",
  .names = NC_LIST("libz.so.1", "libz.so", "libz.1.dylib"),
  .prefix = "",
  NC_FUNCTIONS(FUNCTIONS, z),
  .missing = "files compressed by gzip need zlib",
  .hint = "gunzip unpacks them",
};

/* A block begins with its size, which nc_hostfree needs. */
static void *take(void *none, unsigned n, unsigned each) {
  const int64_t size = (int64_t)n * each + 16;
  void *p;
  (void)none;
  if (nc_hostalloc(&p, size) != NC_OK) return NULL;
  memcpy(p, &size, sizeof size);
  return (char *)p + 16;
}

static void give(void *none, void *p) {
  int64_t size;
  (void)none;
  p = (char *)p - 16;
  memcpy(&size, p, sizeof size);
  nc_hostfree(p, size);
}

typedef struct Unpacking {
  z_stream z;
  int64_t left;    /* packed bytes that zlib was not given yet */
  int end;         /* of a member: another one, or nothing, follows */
  const char *why; /* it failed */
} Unpacking;

static int is_gzip(const unsigned char *p, int64_t n) {
  return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

/* Gives zlib what follows, at most 4 GiB at once. */
static void feed(Unpacking *u) {
  if (u->z.avail_in > 0) return;
  u->z.avail_in = u->left < UINT_MAX ? (unsigned)u->left : UINT_MAX;
  u->left -= u->z.avail_in;
}

/* A StreamPull: the next unpacked bytes. */
static int64_t pull(void *stream, void *to, int64_t n) {
  Unpacking *u = stream;
  u->z.next_out = to;
  u->z.avail_out = (unsigned)n;
  while (u->z.avail_out == (unsigned)n) {
    feed(u);
    if (u->end && u->z.avail_in == 0) return 0;
    if (u->end && !is_gzip(u->z.next_in, u->z.avail_in))
      return u->why = "other bytes follow the compressed ones", -1;
    if (u->end) z.inflateReset(&u->z);
    const int r = z.inflate(&u->z, 0);
    u->end = r == Z_STREAM_END;
    if (r == Z_OK || r == Z_STREAM_END) continue;
    u->why = r == Z_MEM_ERROR   ? "no memory"
             : r == Z_BUF_ERROR ? "it is not complete"
             : u->z.msg         ? u->z.msg
                                : "it is damaged";
    return -1;
  }
  return n - u->z.avail_out;
}

static int unpack(Tensor **bytes, const char *path, const void *p, int64_t n) {
  Unpacking u = { .z = { .next_in = p, .zalloc = take, .zfree = give },
                  .left = n };
  TRY(nc_library(&zlib));
  if (z.inflateInit2_(&u.z, GZIP, "1.2", (int)sizeof u.z) != Z_OK)
    return nc_fail(NC_ENOMEM, "no memory for zlib");
  const int status = nc_readstream(bytes, path, pull, &u);
  z.inflateEnd(&u.z);
  return u.why ? nc_failfile(NC_EFILE, path, "gzip: %s", u.why) : status;
}

/* *packed = the bytes of the file, or NULL if they are not those of gzip. */
static int read_packed(Tensor **packed, const Source *from) {
  unsigned char magic[2];
  Reader r;
  *packed = NULL;
  TRY(nc_openfrom(&r, from));
  const int64_t n = r.left < 2 ? r.left : 2;
  const int status = nc_readblock(&r, magic, n, "magic");
  nc_closeread(&r);
  return status == NC_OK && is_gzip(magic, n) ? nc_readfrom(packed, from)
                                              : status;
}

int nc_unpack(Tensor **bytes, Source *from) {
  Tensor *packed = NULL;
  struct stat s;
  *bytes = NULL;
  /* what is not a file is for nc_formatof to refuse, or a folder of shards */
  if (!from->bytes &&
      (nc_files.stat(from->path, &s) != 0 || !S_ISREG(s.st_mode)))
    return NC_OK;
  TRY(read_packed(&packed, from));
  if (packed == NULL) return NC_OK;
  const int status =
      unpack(bytes, from->path, nc_data(packed), nc_numel(packed));
  nc_release(packed);
  TRY(status);
  from->bytes = nc_data(*bytes);
  from->n = nc_numel(*bytes);
  return NC_OK;
}
