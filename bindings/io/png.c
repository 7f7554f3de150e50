/* SPDX-License-Identifier: MIT */
/*
** png.c - PNG images: nacre.readpng and nacre.png for files, decode_png and
** encode_png for strings.
**
** An image is a tensor [C x H x W], as in torchvision: 1 channel is grey, 2 are
** grey and alpha, 3 RGB, 4 RGBA. An image with 8 bits is uint8, with 16 bits
** int32.
*/
#include <string.h>

#include "bindings/binding.h"
#include "bindings/io/libpng.h"

/*
** Reading
*/
typedef struct Planes { /* destination of decoding */
  Tensor *t;            /* uint8 or int32, dense, [C x H x W] */
  PngImage m;
} Planes;

/* Stores row y of the image: interleaved channels become planes. */
static void put_row(void *ctx, int64_t y, void *line) {
  const Planes *s = ctx;
  const int64_t w = s->m.width, plane = w * s->m.height, k = s->m.channels;
  const unsigned char *x8 = line;
  const uint16_t *x16 = line;
  unsigned char *y8 = nc_data(s->t);
  int32_t *y32 = nc_data(s->t);
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->m.depth == 8) y8[at] = x8[x * k + c];
      else y32[at] = x16[x * k + c];
}

/* The inverse of put_row: returns a stored row. */
static void get_row(void *ctx, int64_t y, void *line) {
  const Planes *s = ctx;
  const int64_t w = s->m.width, plane = w * s->m.height, k = s->m.channels;
  unsigned char *x8 = line;
  uint16_t *x16 = line;
  const unsigned char *y8 = nc_data(s->t);
  const int32_t *y32 = nc_data(s->t);
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->m.depth == 8) x8[x * k + c] = y8[at];
      else x16[x * k + c] = (uint16_t)y32[at];
}

/* Puts the path, unless it is NULL, before the text of an error. */
static int with_path(int status, const char *path) {
  char text[sizeof nc_lasterror()->text];
  if (status == NC_OK || path == NULL) return status;
  memcpy(text, nc_lasterror()->text, sizeof text);
  return nc_fail(status, "%s: %s", path, text);
}

/* Pushes the image encoded in the n bytes at p, which a value on the stack must
   keep alive; path: of its file, or NULL. [-0, +1, e] */
static int push_decoded(lua_State *L, const char *op, const unsigned char *p,
                        int64_t n, const char *path) {
  Planes s;
  PngRows rows = { put_row, get_row, &s };
  Tensor **y;
  nl_check_as(L, with_path(nl_pngheader(&s.m, p, n), path), op);
  const int64_t size[] = { s.m.channels, s.m.height, s.m.width };
  y = nl_newbox(L);
  nl_check_as(L, nc_new(y, nc_host(), s.m.depth == 8 ? DT_u8 : DT_i32, 3, size),
              op);
  s.t = *y;
  nl_check_as(L, with_path(nl_pngdecode(&s.m, p, n, &rows), path), op);
  nl_pace(L);
  return 1;
}

static int decode_png(lua_State *L) {
  size_t n;
  const char *p = luaL_checklstring(L, 1, &n);
  return push_decoded(L, "decode_png", (const unsigned char *)p, (int64_t)n,
                      NULL);
}

static int readpng(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  Tensor **bytes = nl_newbox(L);
  nl_check_as(L, nc_readfile(bytes, path), "readpng");
  return push_decoded(L, "readpng", nc_data(*bytes), nc_numel(*bytes), path);
}

/*
** Writing
*/
typedef struct Picture { /* source of encoding */
  const Tensor *t;       /* uint8, int64 or float32, dense, [C x H x W] */
  PngImage m;
} Picture;

/* The byte for a value of 0 to 1; values outside are clamped. */
static unsigned char to_byte(float v) {
  if (!(v > 0)) return 0; /* also NaN */
  return v >= 1 ? 255 : (unsigned char)(v * 255 + 0.5f);
}

/* Fills row y: planes become interleaved channels. */
static void fill_row(void *ctx, int64_t y, void *line) {
  const Picture *s = ctx;
  const int64_t w = s->m.width, plane = w * s->m.height, k = s->m.channels;
  const unsigned char *u = nc_data(s->t);
  const int64_t *i = nc_data(s->t);
  const float *f = nc_data(s->t);
  unsigned char *out8 = line;
  uint16_t *out16 = line;
  for (int64_t c = 0; c < k; c++)
    for (int64_t x = 0, at = c * plane + y * w; x < w; x++, at++)
      if (s->t->dtype == DT_u8) out8[x * k + c] = u[at];
      else if (s->t->dtype == DT_f32) out8[x * k + c] = to_byte(f[at]);
      else out16[x * k + c] = (uint16_t)i[at];
}

/* Fails if an int64 element is out of the range of 16 bits. */
static int fits_16_bits(const Tensor *t) {
  const int64_t *p = nc_data(t), n = nc_numel(t);
  for (int64_t i = 0; i < n; i++)
    if (p[i] < 0 || p[i] > 65535) {
      nc_fail(NC_EVALUE, "an element is %lld, a PNG image has 0 to 65535",
              (long long)p[i]);
      nc_hint("floats from 0 to 1 are scaled, uint8 is written as it is");
      return NC_EVALUE;
    }
  return NC_OK;
}

/* Sets the size of the image from the shape of t. */
static int set_size(Picture *s, const Tensor *t) {
  const int d = t->nd - 2;
  if ((t->nd == 2 || (t->nd == 3 && t->size[0] >= 1 && t->size[0] <= 4)) &&
      t->size[d] > 0 && t->size[d + 1] > 0) {
    s->m.channels = d ? (int)t->size[0] : 1;
    s->m.height = t->size[d];
    s->m.width = t->size[d + 1];
    return NC_OK;
  }
  nc_fail(NC_ESHAPE, "an image is HxW or CxHxW with 1 to 4 channels");
  nc_error_operandat(0, "image", t);
  if (t->nd == 3 && t->size[2] >= 1 && t->size[2] <= 4)
    nc_hint("{0}:permute(3, 1, 2)");
  return NC_ESHAPE;
}

/* Converts t to one of the three dtypes of Picture, through the intermediate
   tensors *a, *b and *c. Returns a status. */
static int set_source(Picture *s, Tensor *t, Tensor **a, Tensor **b,
                      Tensor **c) {
  DType type = nc_category(t->dtype) == NC_FLOAT ? DT_f32
               : t->dtype == DT_u8               ? DT_u8
               : t->dtype == DT_b8               ? DT_f32
                                                 : DT_i64;
  TRY(nc_readable(a, t));
  TRY(nc_cast(b, *a, type));
  TRY(nc_dense(c, *b));
  s->t = *c;
  s->m.depth = type == DT_i64 ? 16 : 8;
  return type == DT_i64 ? fits_16_bits(*c) : NC_OK;
}

/* Pushes a userdata with the *n bytes of the PNG file for the tensor at index
   i. Returns its address. [-0, +n, e] */
static unsigned char *push_encoded(lua_State *L, const char *op, int i,
                                   int64_t *n, lua_Integer compression) {
  Picture s;
  Tensor **made[3];
  unsigned char *out;
  void *line;
  if (compression < 0 || compression > 9)
    nl_error(L, op, "compression_level is 0 to 9, not %lld",
             (long long)compression);
  nl_check_as(L, set_size(&s, nl_checktensor(L, i)), op);
  for (int k = 0; k < 3; k++) made[k] = nl_newbox(L);
  nl_check_as(
      L, set_source(&s, nl_checktensor(L, i), made[0], made[1], made[2]), op);
  line = lua_newuserdatauv(L, (size_t)(s.m.width * s.m.channels * 2), 0);
  out = lua_newuserdatauv(L, (size_t)nl_pngroom(&s.m), 0);
  nl_check_as(
      L, nl_pngencode(out, n, &s.m, (int)compression, fill_row, &s, line), op);
  return out;
}

#define ENCODE "image, compression_level:int=6 -> string"
#define WRITE "path:file, image, compression_level:int=6"

static lua_Integer compression(const Args *a, int i) {
  return (lua_Integer)a->arg[i].s.i;
}

static int encode_png(lua_State *L) {
  static Signature s;
  int64_t n;
  Args a;
  nl_args(L, &s, "encode_png", ENCODE, &a);
  unsigned char *p = push_encoded(L, "encode_png", 1, &n, compression(&a, 1));
  lua_pushlstring(L, (const char *)p, (size_t)n);
  return 1;
}

static int writepng(lua_State *L) {
  static Signature s;
  int64_t n;
  Args a;
  nl_args(L, &s, "png", WRITE, &a);
  unsigned char *p = push_encoded(L, "png", 2, &n, compression(&a, 2));
  nl_check_as(L, nc_writefile(lua_tostring(L, 1), p, n), "png");
  return 0;
}

const Bound nl_png[] = {
  { "readpng", readpng, "path:file -> tensor",
    "reads a PNG image as CxHxW: uint8, or int32 if it has 16 bits", 1 },
  { "png", writepng, WRITE,
    "writes an image HxW or CxHxW as a PNG file: uint8 as it is, floats and "
    "booleans from 0 to 1, other integers from 0 to 65535 with 16 bits",
    1 },
  { "decode_png", decode_png, "data:text -> tensor",
    "the image in the bytes of a PNG file", 1 },
  { "encode_png", encode_png, ENCODE, "the bytes of a PNG file; see png", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
