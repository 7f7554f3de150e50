/* SPDX-License-Identifier: MIT */
/* idx.c - .idx files, as of MNIST: two zeros, a code of the dtype, the number
   of dimensions, their sizes in 32 bits each, and the elements, all with the
   most significant byte first. */
#include "core/io/archive.h"
#include "core/io/rowmajor.h"

/* clang-format off */
static const struct { unsigned char code; DType type; } codes[] = {
  { 0x08, DT_u8 },  { 0x09, DT_i8 },  { 0x0b, DT_i16 },
  { 0x0c, DT_i32 }, { 0x0d, DT_f32 }, { 0x0e, DT_f64 },
};
/* clang-format on */
enum { CODES = sizeof codes / sizeof *codes };

typedef struct IdxFile {
  Archive a; /* comes first */
  Reader r;
  TensorInfo t;
} IdxFile;

static DType type_of(int code) {
  for (int i = 0; i < CODES; i++)
    if (codes[i].code == code) return codes[i].type;
  return DT_NONE;
}

/* No other format begins so. */
static int is_idx(const Head *h, int named) {
  const unsigned char *b = (const unsigned char *)h->bytes;
  (void)named;
  return h->n >= 4 && !b[0] && !b[1] && type_of(b[2]) != DT_NONE && b[3] >= 1 &&
         b[3] <= NC_MAXDIM;
}

static int read_header(IdxFile *f) {
  unsigned char b[4 + 4 * NC_MAXDIM], *p = b + 4;
  char shape[NC_TEXT];
  int64_t n;
  TRY(nc_readblock(&f->r, b, 4, "magic"));
  f->t.dtype = type_of(b[2]);
  if (b[0] || b[1] || f->t.dtype == DT_NONE)
    return nc_failfile(NC_EFILE, f->r.path, "this is no .idx file");
  if (b[3] > NC_MAXDIM) return nc_fail_dimensions(f->r.path, "", b[3]);
  f->t.nd = b[3];
  TRY(nc_readblock(&f->r, p, 4 * f->t.nd, "sizes"));
  for (int d = 0; d < f->t.nd; d++, p += 4)
    f->t.size[d] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
  nc_shapetext(shape, f->t.nd, f->t.size);
  if (nc_checksize(&n, f->t.dtype, f->t.nd, f->t.size) != NC_OK)
    return nc_failfile(NC_EFILE, f->r.path, "sizes: [%s] is beyond 64 bits",
                       shape);
  n *= nc_dtypesize(f->t.dtype);
  if (n == f->r.left) return NC_OK;
  return nc_failfile(NC_EFILE, f->r.path,
                     "data: %s[%s] takes %lld bytes, the file has %lld left",
                     nc_dtypename(f->t.dtype), shape, (long long)n,
                     (long long)f->r.left);
}

static int open_idx(Archive *a, const Source *from) {
  IdxFile *f = (IdxFile *)a;
  f->r.fd = -1;
  TRY(nc_openfrom(&f->r, from));
  return read_header(f);
}

static void close_idx(Archive *a) {
  nc_closeread(&((IdxFile *)a)->r);
}

static int load_idx(Tensor **t, Archive *a, int64_t i) {
  IdxFile *f = (IdxFile *)a;
  const int swap = nc_dtypesize(f->t.dtype) > 1 && !nc_bigendian();
  (void)i;
  TRY(nc_seekread(&f->r, 4 + 4 * f->t.nd));
  nc_count(0, f->r.left);
  return nc_newread(t, &f->r, f->t.dtype, f->t.nd, f->t.size, swap);
}

static int idx_info(TensorInfo *t, Archive *a, int64_t i) {
  (void)i;
  *t = ((IdxFile *)a)->t;
  return NC_OK;
}

/* Writes the header for t to b and its length to *n; fails if .idx has no such
   tensor. */
static int make_header(unsigned char b[], int64_t *n, const Tensor *t,
                       const char *path) {
  unsigned char *p = b;
  int i = 0;
  while (i < CODES && codes[i].type != t->dtype) i++;
  if (i == CODES)
    return nc_failfile(NC_EDTYPE, path, "the .idx format has no %s",
                       nc_dtypename(t->dtype));
  *p++ = 0, *p++ = 0, *p++ = codes[i].code, *p++ = (unsigned char)t->nd;
  for (int d = 0; d < t->nd; d++) {
    if (t->size[d] > UINT32_MAX)
      return nc_failfile(NC_EVALUE, path, "its sizes have 32 bits");
    for (int bits = 24; bits >= 0; bits -= 8)
      *p++ = (unsigned char)(t->size[d] >> bits);
  }
  *n = p - b;
  return NC_OK;
}

static int save_idx(const Sink *to, const FileContents *c) {
  unsigned char b[4 + 4 * NC_MAXDIM];
  int64_t n = 0;
  TRY(make_header(b, &n, c->list[0].t, to->path));
  return nc_savewith(to, b, n, c->list[0].t, !nc_bigendian());
}

const ArchiveFormat nc_format_idx = {
  .size = sizeof(IdxFile),
  .open = open_idx,
  .load = load_idx,
  .info = idx_info,
  .close = close_idx,
  .save = save_idx,
  .recognize = is_idx,
};
