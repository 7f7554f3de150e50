/* SPDX-License-Identifier: MIT */
/*
** npy_stream.c - a .npy file as an archive: one array without a name, or
** several in sequence, as repeated numpy.save to one file writes them, with the
** names that numpy.savez gives: arr_0, arr_1, ...
*/
#include <stdio.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/npy/npy.h"

typedef struct Part {
  NpyHeader h;
  int64_t at; /* of its data in the file */
} Part;

typedef struct NpyStream {
  Archive a; /* comes first */
  Reader r;
  Part *part;
  int64_t room; /* parts */
  void *names;  /* pointers, then texts */
  int64_t namebytes;
} NpyStream;

enum { MOST_DIGITS = 32 };

static void close_stream(Archive *a) {
  NpyStream *s = (NpyStream *)a;
  nc_closeread(&s->r);
  nc_hostfree(s->part, s->room * (int64_t)sizeof(Part));
  nc_hostfree(s->names, s->namebytes);
}

static int add_part(NpyStream *s, const NpyHeader *h) {
  if (s->a.n == s->room) {
    const int64_t room = 2 * s->room + 1;
    void *more;
    TRY(nc_hostalloc(&more, room * (int64_t)sizeof(Part)));
    if (s->room) memcpy(more, s->part, (size_t)s->room * sizeof(Part));
    nc_hostfree(s->part, s->room * (int64_t)sizeof(Part));
    s->part = more;
    s->room = room;
  }
  s->part[s->a.n++] = (Part){ *h, s->r.size - s->r.left };
  return NC_OK;
}

static int64_t part_bytes(const NpyHeader *h) {
  int64_t n = nc_dtypesize(h->dtype);
  for (int d = 0; d < h->nd; d++) n *= h->size[d];
  return n;
}

static int list_names(NpyStream *s) {
  const int64_t n = s->a.n, pointers = n * (int64_t)sizeof(char *);
  s->namebytes = pointers + n * MOST_DIGITS;
  TRY(nc_hostalloc(&s->names, s->namebytes));
  const char **name = s->names;
  char *text = (char *)s->names + pointers;
  for (int64_t i = 0; i < n; i++, text += MOST_DIGITS) {
    snprintf(text, MOST_DIGITS, n > 1 ? "arr_%lld" : "", (long long)i);
    name[i] = text;
  }
  s->a.name = name;
  return NC_OK;
}

static int open_stream(Archive *a, const Source *from) {
  NpyStream *s = (NpyStream *)a;
  int more;
  a->n = 0; /* there may be several */
  s->r.fd = -1;
  TRY(nc_openfrom(&s->r, from));
  do {
    NpyHeader h;
    TRY(nc_read_npyheader(&h, &s->r, &more));
    TRY(add_part(s, &h));
    if (more) TRY(nc_seekread(&s->r, s->r.size - s->r.left + part_bytes(&h)));
  } while (more && !nc_interrupted);
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  return list_names(s);
}

static int load_part(Tensor **t, Archive *a, int64_t i) {
  NpyStream *s = (NpyStream *)a;
  NpyHeader h = s->part[i].h;
  TRY(nc_seekread(&s->r, s->part[i].at));
  TRY(nc_read_npydata(t, &s->r, &h));
  return nc_release_failed(i + 1 < a->n ? NC_OK : nc_readend(&s->r), t, 1);
}

static int part_info(TensorInfo *t, Archive *a, int64_t i) {
  const NpyHeader *h = &((NpyStream *)a)->part[i].h;
  t->dtype = h->dtype;
  t->nd = h->nd;
  memcpy(t->size, h->size, sizeof t->size);
  return NC_OK;
}

static int save_npy(const Sink *to, const FileContents *c) {
  return nc_save(to, c->list[0].t);
}

const ArchiveFormat nc_format_npy = {
  .size = sizeof(NpyStream),
  .open = open_stream,
  .load = load_part,
  .info = part_info,
  .close = close_stream,
  .save = save_npy,
};
