/* SPDX-License-Identifier: MIT */
/*
** zip_local.c - compares the two headers that a zip archive has for a member:
** in its directory and before the member's bytes (PKWARE's APPNOTE, 4.3).
**
** libzip reads the directory alone.  Other readers refuse an archive whose
** headers differ, since it shows different contents to different readers.
*/
#include <string.h>

#include "core/io/rowmajor.h"
#include "core/io/zip/zip.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, LOCATOR = 20, END64 = 56 };
enum { PATCHED = 32, STRONG = 64 }; /* general purpose bits */
enum { NEWEST = 63, NAME = 65536 }; /* version 6.3 of the format */

typedef struct ZipEntry {
  int64_t at; /* offset of the local header */
  unsigned version, flags, name, extra, comment;
} ZipEntry;

static int has_signature(const unsigned char *p, int third) {
  return p[0] == 'P' && p[1] == 'K' && p[2] == third && p[3] == third + 1;
}

static int read_at(Reader *r, int64_t at, void *p, int64_t n) {
  if (at < 0 || at > r->size - n)
    return nc_failfile(NC_EFILE, r->path,
                       "its directory points beyond its end");
  TRY(nc_seekread(r, at));
  return nc_readblock(r, p, n, "directory");
}

/* *at = the offset of the directory, from the last end record. */
static int find_directory(Reader *r, unsigned char *buf, int64_t *at) {
  int64_t n = r->size < NAME + END ? r->size : NAME + END, i = n - END;
  const int64_t start = r->size - n;
  TRY(read_at(r, start, buf, n));
  while (i >= 0 && !has_signature(buf + i, 5)) i--;
  if (i < 0) return nc_failfile(NC_EFILE, r->path, "it has no directory");
  *at = (int64_t)nc_littleendian(buf + i + 16, 4);
  if (start + i < LOCATOR) return NC_OK;
  TRY(read_at(r, start + i - LOCATOR, buf, LOCATOR));
  if (!has_signature(buf, 6)) return NC_OK;
  TRY(read_at(r, (int64_t)nc_littleendian(buf + 8, 8), buf, END64));
  *at = (int64_t)nc_littleendian(buf + 48, 8);
  return NC_OK;
}

/* The offset of a local header beyond 32 bits, from the zip64 extra field,
   where it follows those sizes that do not fit 32 bits; or -1. */
static int64_t zip64_offset(const unsigned char *head,
                            const unsigned char *extra, unsigned n) {
  int at = 4;
  for (int k = 20; k <= 24; k += 4)
    if (nc_littleendian(head + k, 4) == UINT32_MAX) at += 8;
  while (n >= 4) {
    const unsigned length = (unsigned)nc_littleendian(extra + 2, 2) + 4;
    if (length > n) break;
    if (nc_littleendian(extra, 2) == 1 && at + 8 <= (int)length)
      return (int64_t)nc_littleendian(extra + at, 8);
    extra += length;
    n -= length;
  }
  return -1;
}

/* Reads the directory entry at `at'; buf = its name. */
static int read_entry(Reader *r, int64_t at, ZipEntry *e, unsigned char *buf) {
  unsigned char head[CENTRAL];
  TRY(read_at(r, at, head, CENTRAL));
  if (!has_signature(head, 1))
    return nc_failfile(NC_EFILE, r->path, "its directory is damaged");
  e->version = head[6];
  e->flags = (unsigned)nc_littleendian(head + 8, 2);
  e->name = (unsigned)nc_littleendian(head + 28, 2);
  e->extra = (unsigned)nc_littleendian(head + 30, 2);
  e->comment = (unsigned)nc_littleendian(head + 32, 2);
  e->at = (int64_t)nc_littleendian(head + 42, 4);
  if (e->at == UINT32_MAX) {
    TRY(read_at(r, at + CENTRAL + e->name, buf, e->extra));
    e->at = zip64_offset(head, buf, e->extra);
  }
  return read_at(r, at + CENTRAL, buf, e->name);
}

static int fail_member(const Reader *r, int64_t i, const char *what) {
  return nc_failfile(NC_EFILE, r->path, "member %lld: %s", (long long)i + 1,
                     what);
}

static int check_local(Reader *r, int64_t i, const ZipEntry *e,
                       unsigned char *buf, int64_t *data) {
  unsigned char head[LOCAL], *other = buf + NAME;
  TRY(read_at(r, e->at, head, LOCAL));
  if (!has_signature(head, 3))
    return fail_member(r, i, "its header is not where the directory says");
  if (nc_littleendian(head + 26, 2) != e->name)
    return fail_member(r, i, "the directory has another name for it");
  TRY(read_at(r, e->at + LOCAL, other, e->name));
  *data = e->at + LOCAL + e->name + (int64_t)nc_littleendian(head + 28, 2);
  if (memcmp(buf, other, e->name) != 0)
    return fail_member(r, i, "the directory has another name for it");
  if (e->flags & PATCHED)
    return fail_member(r, i, "it is a patch, which is not read");
  if (e->flags & STRONG)
    return fail_member(r, i, "it is encrypted, and cannot be read");
  if (e->version > NEWEST)
    return fail_member(r, i, "it needs a newer version of the zip format");
  return NC_OK;
}

int nc_checklocals(Reader *r, int64_t n, int64_t data[]) {
  void *block;
  int64_t at = 0;
  ZipEntry e = { 0, 0, 0, 0, 0, 0 };
  TRY(nc_hostalloc(&block, 2 * NAME));
  int status = find_directory(r, block, &at);
  for (int64_t i = 0; i < n && status == NC_OK; i++) {
    status = read_entry(r, at, &e, block);
    if (status == NC_OK) status = check_local(r, i, &e, block, &data[i]);
    at += CENTRAL + e.name + e.extra + e.comment;
  }
  nc_hostfree(block, 2 * NAME);
  return status;
}
