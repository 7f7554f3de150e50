/* SPDX-License-Identifier: MIT */
/*
** image.c - images as tensors; see image.h.
*/
#include "core/io/images/image.h"

#include <string.h>

int64_t nc_image_row(const Image *m) {
  return m->width * m->channels * (m->depth / 8);
}

int64_t nc_image_bytes(const Image *m) {
  return m->height * nc_image_row(m);
}

/*
** Reading
*/
typedef struct Planes { /* destination of decoding */
  Tensor *t;            /* uint8 or int32, dense, [C x H x W] */
  const Image *m;
} Planes;

/* Stores row y of the image: interleaved channels become planes. */
static void put_row(void *ctx, int64_t y, void *line) {
  const Planes *s = ctx;
  const int64_t w = s->m->width, plane = w * s->m->height, k = s->m->channels;
  const unsigned char *x8 = line;
  const uint16_t *x16 = line;
  unsigned char *y8 = nc_data(s->t);
  int32_t *y32 = nc_data(s->t);
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->m->depth == 8) y8[at] = x8[x * k + c];
      else y32[at] = x16[x * k + c];
}

/* The inverse of put_row: returns a stored row. */
static void get_row(void *ctx, int64_t y, void *line) {
  const Planes *s = ctx;
  const int64_t w = s->m->width, plane = w * s->m->height, k = s->m->channels;
  unsigned char *x8 = line;
  uint16_t *x16 = line;
  const unsigned char *y8 = nc_data(s->t);
  const int32_t *y32 = nc_data(s->t);
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->m->depth == 8) x8[x * k + c] = y8[at];
      else x16[x * k + c] = (uint16_t)y32[at];
}

/* Puts the path before the text of an error about the file. */
static int with_path(int status, const char *path) {
  char text[sizeof nc_lasterror()->text];
  if (status != NC_EFILE) return status;
  memcpy(text, nc_lasterror()->text, sizeof text);
  return nc_failfile(status, path, "%s", text);
}

int nc_open_image(Archive *a, const Source *from, const ImageCodec *codec) {
  ImageFile *f = (ImageFile *)a;
  f->codec = codec;
  TRY(nc_readfrom(&f->bytes, from));
  return with_path(codec->header(&f->m, nc_data(f->bytes), nc_numel(f->bytes)),
                   a->path);
}

int nc_image_info(TensorInfo *t, Archive *a, int64_t i) {
  const Image *m = &((ImageFile *)a)->m;
  (void)i;
  t->dtype = m->depth == 8 ? DT_u8 : DT_i32;
  t->nd = 3;
  t->size[0] = m->channels;
  t->size[1] = m->height;
  t->size[2] = m->width;
  return NC_OK;
}

int nc_load_image(Tensor **t, Archive *a, int64_t i) {
  const ImageFile *f = (ImageFile *)a;
  TensorInfo info;
  TRY(nc_image_info(&info, a, i));
  TRY(nc_new(t, nc_host(), info.dtype, info.nd, info.size));
  Planes s = { *t, &f->m };
  const ImageRows rows = { put_row, get_row, &s };
  const int status =
      f->codec->decode(&f->m, nc_data(f->bytes), nc_numel(f->bytes), &rows);
  return nc_release_failed(with_path(status, a->path), t, 1);
}

void nc_close_image(Archive *a) {
  nc_release(((ImageFile *)a)->bytes);
}

/*
** Writing
*/
typedef struct Picture { /* source of encoding */
  const Tensor *t;       /* uint8, int64 or float32, dense, [C x H x W] */
  const Image *m;
} Picture;

/* The byte for a value of 0 to 1; values outside are clamped. */
static unsigned char to_byte(float v) {
  if (!(v > 0)) return 0; /* also NaN */
  return v >= 1 ? 255 : (unsigned char)(v * 255 + 0.5f);
}

/* Fills row y: planes become interleaved channels. */
static void fill_row(void *ctx, int64_t y, void *line) {
  const Picture *s = ctx;
  const int64_t w = s->m->width, plane = w * s->m->height, k = s->m->channels;
  const unsigned char *u = nc_data(s->t);
  const int64_t *i = nc_data(s->t);
  const float *f = nc_data(s->t);
  unsigned char *out8 = line;
  uint16_t *out16 = line;
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->t->dtype == DT_u8) out8[x * k + c] = u[at];
      else if (s->t->dtype == DT_f32) out8[x * k + c] = to_byte(f[at]);
      else if (s->m->depth == 8) out8[x * k + c] = (unsigned char)i[at];
      else out16[x * k + c] = (uint16_t)i[at];
}

/* Fails if an int64 element is out of range. */
static int check_range(const Tensor *t, const ImageCodec *codec) {
  const int64_t *p = nc_data(t), n = nc_numel(t);
  for (int64_t i = 0; i < n; i++)
    if (p[i] < 0 || p[i] > codec->most) {
      nc_fail(NC_EVALUE, "an element is %lld, %s has 0 to %d", (long long)p[i],
              codec->name, codec->most);
      nc_hint("floats from 0 to 1 are scaled, uint8 is written unchanged");
      return NC_EVALUE;
    }
  return NC_OK;
}

/* Sets the size of the image from the shape of t. */
static int set_size(Image *m, const Tensor *t, const ImageCodec *codec) {
  const int d = t->nd - 2;
  const int64_t most = 4, channels = t->nd == 3 ? t->size[0] : 1;
  if ((t->nd == 2 || t->nd == 3) && channels >= 1 && channels <= most &&
      codec->channels & 1u << channels && t->size[d] > 0 &&
      t->size[d + 1] > 0) {
    m->channels = (int)channels;
    m->height = t->size[d];
    m->width = t->size[d + 1];
    return NC_OK;
  }
  nc_fail(NC_ESHAPE, "an image is HxW or CxHxW with %s channels",
          codec->counts);
  nc_error_operandat(0, "image", t);
  if (t->nd == 3 && t->size[2] >= 1 && t->size[2] <= most)
    nc_hint("{0}:permute(3, 1, 2)");
  return NC_ESHAPE;
}

/* *y = t as one of the three dtypes of Picture. */
static int convert(Tensor **y, Image *m, Tensor *t, const ImageCodec *codec) {
  const DType type = nc_is_real(t->dtype) || t->dtype == DT_b8 ? DT_f32
                     : t->dtype == DT_u8                       ? DT_u8
                                                               : DT_i64;
  Tensor *a = NULL, *b = NULL;
  int status = nc_readable(&a, t);
  if (status == NC_OK) status = nc_cast(&b, a, type);
  if (status == NC_OK) status = nc_dense(y, b);
  nc_release(a);
  nc_release(b);
  TRY(status);
  m->depth = type == DT_i64 && codec->most > 255 ? 16 : 8;
  return type == DT_i64 ? check_range(*y, codec) : NC_OK;
}

/* Writes the image, by way of `out', which has room bytes. */
static int write_image(const Sink *to, ImageSource *s, unsigned char *out,
                       int64_t room, const ImageCodec *codec) {
  int64_t n;
  Writer w;
  TRY(codec->encode(out, &n, room, s));
  TRY(nc_openwrite(&w, to));
  return nc_closewrite(&w, nc_writeblock(&w, out, n));
}

static int encode(const Sink *to, ImageSource *s, const ImageCodec *codec) {
  const int64_t line = nc_image_row(&s->m);
  void *out = NULL;
  int64_t room = 0;
  int status = codec->room(&room, &s->m);
  if (status == NC_OK) status = nc_hostalloc(&out, room);
  if (status == NC_OK) status = nc_hostalloc(&s->line, line);
  if (status == NC_OK) status = write_image(to, s, out, room, codec);
  nc_hostfree(s->line, line);
  nc_hostfree(out, room);
  return status;
}

int nc_save_image(const Sink *to, const FileContents *c,
                  const ImageCodec *codec) {
  ImageSource s = { .as = c, .row = fill_row };
  Tensor *t = c->list[0].t, *y = NULL;
  TRY(set_size(&s.m, t, codec));
  int status = convert(&y, &s.m, t, codec);
  s.ctx = &(Picture){ y, &s.m };
  if (status == NC_OK) status = encode(to, &s, codec);
  nc_release(y);
  return status;
}
