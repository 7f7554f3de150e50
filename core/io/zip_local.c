/* SPDX-License-Identifier: MIT */
/*
** zip_local.c - what a zip archive says of a member in two places: in its
** directory, and in front of the member's bytes.
**
** libzip goes by the directory alone.  Other readers refuse an archive whose
** two headers differ, as one that shows each reader something else, so this
** walks the directory itself (PKWARE's APPNOTE, 4.3).
*/
#include <string.h>

#include "core/io/zip.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, LOCATOR = 20, END64 = 56 };
enum { PATCHED = 32, STRONG = 64 }; /* general purpose bits */
enum { NEWEST = 63, NAME = 65536 }; /* version 6.3 of the format */

typedef struct Entry {
  int64_t at; /* where its local header is */
  unsigned version, flags, name, extra, comment;
} Entry;

/* n bytes, the lowest first */
static uint64_t number(const unsigned char *p, int n) {
  uint64_t v = 0;
  while (n-- > 0) v = v << 8 | p[n];
  return v;
}

static int begins(const unsigned char *p, int third) {
  return p[0] == 'P' && p[1] == 'K' && p[2] == third && p[3] == third + 1;
}

static int readat(Reader *r, int64_t at, void *p, int64_t n) {
  if (at < 0 || at > r->size - n)
    return nc_failfile(NC_EFILE, r->path,
                       "its directory points behind its "
                       "end");
  TRY(nc_seekread(r, at));
  return nc_readblock(r, p, n, "directory");
}

/* Where the directory begins, by the record at the end: the last one. */
static int directory(Reader *r, unsigned char *buf, int64_t *at) {
  int64_t n = r->size < NAME + END ? r->size : NAME + END, i = n - END;
  const int64_t start = r->size - n;
  TRY(readat(r, start, buf, n));
  while (i >= 0 && !begins(buf + i, 5)) i--;
  if (i < 0) return nc_failfile(NC_EFILE, r->path, "it has no directory");
  *at = (int64_t)number(buf + i + 16, 4);
  if (start + i < LOCATOR) return NC_OK;
  TRY(readat(r, start + i - LOCATOR, buf, LOCATOR));
  if (!begins(buf, 6)) return NC_OK;
  TRY(readat(r, (int64_t)number(buf + 8, 8), buf, END64));
  *at = (int64_t)number(buf + 48, 8);
  return NC_OK;
}

/* The place of a local header that 32 bits do not hold: behind the two sizes,
   of which there are those that do not fit, either. */
static int64_t longplace(const unsigned char *head, const unsigned char *extra,
                         unsigned n) {
  int at = 4;
  for (int k = 20; k <= 24; k += 4)
    if (number(head + k, 4) == UINT32_MAX) at += 8;
  while (n >= 4) {
    const unsigned length = (unsigned)number(extra + 2, 2) + 4;
    if (length > n) break;
    if (number(extra, 2) == 1 && at + 8 <= (int)length)
      return (int64_t)number(extra + at, 8);
    extra += length;
    n -= length;
  }
  return -1;
}

/* The entry of the directory at `at'; its name goes to buf. */
static int central(Reader *r, int64_t at, Entry *e, unsigned char *buf) {
  unsigned char head[CENTRAL];
  TRY(readat(r, at, head, CENTRAL));
  if (!begins(head, 1))
    return nc_failfile(NC_EFILE, r->path, "its directory is damaged");
  e->version = head[6];
  e->flags = (unsigned)number(head + 8, 2);
  e->name = (unsigned)number(head + 28, 2);
  e->extra = (unsigned)number(head + 30, 2);
  e->comment = (unsigned)number(head + 32, 2);
  e->at = (int64_t)number(head + 42, 4);
  if (e->at == UINT32_MAX) {
    TRY(readat(r, at + CENTRAL + e->name, buf, e->extra));
    e->at = longplace(head, buf, e->extra);
  }
  return readat(r, at + CENTRAL, buf, e->name);
}

static int differ(const Reader *r, int64_t i, const char *what) {
  return nc_failfile(NC_EFILE, r->path, "member %lld: %s", (long long)i + 1,
                     what);
}

static int member(Reader *r, int64_t i, const Entry *e, unsigned char *buf) {
  unsigned char head[LOCAL], *other = buf + NAME;
  TRY(readat(r, e->at, head, LOCAL));
  if (!begins(head, 3))
    return differ(r, i, "its header is not where the directory says");
  if (number(head + 26, 2) != e->name)
    return differ(r, i, "the directory calls it otherwise");
  TRY(readat(r, e->at + LOCAL, other, e->name));
  if (memcmp(buf, other, e->name) != 0)
    return differ(r, i, "the directory calls it otherwise");
  if (e->flags & PATCHED)
    return differ(r, i, "it is a patch, which is not read");
  if (e->flags & STRONG)
    return differ(r, i, "it is encrypted, and cannot be read");
  if (e->version > NEWEST)
    return differ(r, i, "it needs a newer version of the zip format");
  return NC_OK;
}

int nc_checklocals(Reader *r, int64_t n) {
  void *block;
  int64_t at = 0;
  Entry e = { 0, 0, 0, 0, 0, 0 };
  TRY(nc_hostalloc(&block, 2 * NAME));
  int status = directory(r, block, &at);
  for (int64_t i = 0; i < n && status == NC_OK; i++) {
    status = central(r, at, &e, block);
    if (status == NC_OK) status = member(r, i, &e, block);
    at += CENTRAL + e.name + e.extra + e.comment;
  }
  nc_hostfree(block, 2 * NAME);
  return status;
}
