/* SPDX-License-Identifier: MIT */
/*
** hdf5_serve.c - the reader of an HDF5 file: opens it and answers requests, in
** a process of its own (reader_process.h), for hdf5_archive.c.
*/
#include <string.h>

#include "core/io/hdf5/hdf5_read.h"

typedef struct Server {
  BlockTaker blocks; /* comes first */
  ReaderProcess *reader;
  Hdf5File file;
  const char **name; /* of the datasets */
  int slot, busy;    /* the next slot; how many are not free */
  void *large;       /* memory for a block that no slot holds */
  int64_t room;
} Server;

/*
** Limits: a small file ends the reader within a second.  What a good file takes
** depends on its bytes, which may be compressed (1 MB/s), and on those that it
** holds (50 MB/s).
*/
static void limit(const Server *v, int64_t bytes) {
  const double size = (double)v->file.size;
  nc_limit_reader(0.8 + size / 1e6 + (double)bytes / 50e6,
                  (256 << 20) + 2 * v->file.size + 3 * bytes);
}

/* The limits of reading d: a part of it may take whole chunks. */
static void limit_dataset(const Server *v, const Dataset *d) {
  int64_t bytes = nc_dtypesize(d->info.dtype);
  for (int k = 0; k < d->info.nd; k++) bytes *= d->info.size[k];
  const int64_t most = NC_SPARSE + NC_DENSE * v->file.size;
  limit(v, bytes < most ? bytes : most);
}

/*
** Replies
*/
static int reply(Server *v, Hdf5Reply *r, const void *p) {
  TRY(nc_reader_send(v->reader, r, (int64_t)sizeof *r));
  return nc_reader_send(v->reader, p, r->n);
}

static int reply_error(Server *v, int status) {
  const Error *e = nc_lasterror();
  char text[sizeof e->text + sizeof e->hint];
  const size_t n = strlen(e->text) + 1, m = strlen(e->hint) + 1;
  Hdf5Reply r = { .status = status, .n = (int64_t)(n + m) };
  memcpy(text, e->text, n);
  memcpy(text + n, e->hint, m);
  return reply(v, &r, text);
}

static int reply_names(Server *v) {
  const NameList *l = &v->file.datasets;
  Hdf5Reply r = { .status = NC_OK, .n = l->used, .count = l->n };
  return reply(v, &r, l->text);
}

/*
** Elements
*/
static int wait_for_slot(Server *v) {
  char freed;
  TRY(nc_reader_receive(v->reader, &freed, 1));
  v->busy--;
  return NC_OK;
}

static char *next_slot(Server *v) {
  return v->reader->slots + (int64_t)v->slot * NC_SLOTBYTES;
}

static int room_for(BlockTaker *p, void **memory, int64_t bytes) {
  Server *v = (Server *)p;
  if (bytes > NC_SLOTBYTES) {
    TRY(nc_growlist(&v->large, &v->room, 0, bytes));
    *memory = v->large;
    return NC_OK;
  }
  while (v->busy == NC_SLOTS) TRY(wait_for_slot(v));
  *memory = next_slot(v);
  return NC_OK;
}

/* Tells of a block of at most a slot, which is in the next slot. */
static int pass_slot(Server *v, int64_t bytes) {
  v->slot = (v->slot + 1) % NC_SLOTS;
  v->busy++;
  return nc_reader_send(v->reader, &bytes, (int64_t)sizeof bytes);
}

static int take_block(BlockTaker *p, void *memory, int64_t bytes) {
  Server *v = (Server *)p;
  if (bytes <= NC_SLOTBYTES) return pass_slot(v, bytes);
  for (int64_t at = 0; at < bytes; at += NC_SLOTBYTES) {
    const int64_t left = bytes - at;
    const int64_t n = left < NC_SLOTBYTES ? left : NC_SLOTBYTES;
    while (v->busy == NC_SLOTS) TRY(wait_for_slot(v));
    memcpy(next_slot(v), (char *)memory + at, (size_t)n);
    TRY(pass_slot(v, n));
  }
  return NC_OK;
}

static int send_blocks(Server *v, const Dataset *d, const TensorSlice *s) {
  v->slot = 0;
  const int status = nc_hdf5_read(d, s, &v->blocks);
  while (v->busy > 0) TRY(wait_for_slot(v));
  if (status == NC_OK) return NC_OK;
  const int64_t failed = -1;
  TRY(nc_reader_send(v->reader, &failed, (int64_t)sizeof failed));
  return reply_error(v, status);
}

/* Sends the whole dataset if q->kind is LOAD, or the slice. */
static int send_dataset(Server *v, Dataset *d, Hdf5Request *q) {
  Hdf5Reply r = { .status = NC_OK, .info = d->info, .offset = d->offset };
  for (int k = 0; k < d->info.nd; k++) {
    if (q->kind == HDF5_LOAD) {
      q->slice.first[k] = 0;
      q->slice.count[k] = d->info.size[k];
      q->slice.step[k] = 1;
    }
    r.info.size[k] = q->slice.count[k];
  }
  if (q->kind == HDF5_SLICE) r.offset = -1;
  const int status = nc_hdf5_check_stored(d, &q->slice);
  if (status != NC_OK) return reply_error(v, status);
  TRY(reply(v, &r, NULL));
  limit_dataset(v, d);
  return r.offset < 0 ? send_blocks(v, d, &q->slice) : NC_OK;
}

static int serve_dataset(Server *v, Hdf5Request *q) {
  Dataset d;
  int status = nc_hdf5_examine(&d, &v->file, v->name[q->i]);
  if (status != NC_OK) status = reply_error(v, status);
  else if (q->kind == HDF5_INFO) {
    Hdf5Reply r = { .status = NC_OK, .info = d.info, .offset = d.offset };
    status = reply(v, &r, NULL);
  } else status = send_dataset(v, &d, q);
  nc_hdf5_close(&d);
  return status;
}

/*
** Attributes
*/
static int send_attribute(const Attribute *x, void *server) {
  ReaderProcess *r = ((Server *)server)->reader;
  Hdf5Attribute a = { .object = (int64_t)strlen(x->object),
                      .name = (int64_t)strlen(x->name),
                      .texts = x->texts,
                      .scalar = x->scalar };
  a.info.dtype = x->value->dtype;
  a.info.nd = x->value->nd;
  memcpy(a.info.size, x->value->size, sizeof a.info.size);
  TRY(nc_reader_send(r, &a, (int64_t)sizeof a));
  TRY(nc_reader_send(r, x->object, a.object));
  TRY(nc_reader_send(r, x->name, a.name));
  return nc_reader_send(r, nc_data(x->value),
                        nc_numel(x->value) * nc_dtypesize(x->value->dtype));
}

static int serve_attributes(Server *v) {
  const Hdf5Attribute last = { .object = -1 };
  Hdf5Reply r = { .status = NC_OK };
  const int status = nc_hdf5_attributes(&v->file, send_attribute, v);
  TRY(nc_reader_send(v->reader, &last, (int64_t)sizeof last));
  return status == NC_OK ? reply(v, &r, NULL) : reply_error(v, status);
}

/*
** The process
*/
static int serve_request(Server *v) {
  Hdf5Request q;
  TRY(nc_reader_receive(v->reader, &q, (int64_t)sizeof q));
  limit(v, 0);
  return q.kind == HDF5_ATTRIBUTES ? serve_attributes(v) : serve_dataset(v, &q);
}

static int open_file(Server *v, const Source *from) {
  const NameList *l = &v->file.datasets;
  void *list;
  TRY(nc_hdf5_open(&v->file, from));
  TRY(nc_hostalloc(&list, (l->n + 1) * (int64_t)sizeof *v->name));
  v->name = list;
  const char *p = l->text;
  for (int64_t i = 0; i < l->n; i++, p += strlen(p) + 1) v->name[i] = p;
  return NC_OK;
}

/* The size of the file, or of the bytes. */
static int64_t size_of(const Source *from) {
  int64_t n = 0;
  return nc_sourcesize(&n, from) == NC_OK ? n : 0;
}

void nc_hdf5_serve(ReaderProcess *r, void *source) {
  const Source *from = source;
  Server v = { .blocks = { room_for, take_block }, .reader = r };
  v.file.path = from->path;
  v.file.size = size_of(from);
  limit(&v, 0);
  int status = open_file(&v, from);
  status = status == NC_OK ? reply_names(&v) : reply_error(&v, status);
  while (status == NC_OK) status = serve_request(&v);
}
