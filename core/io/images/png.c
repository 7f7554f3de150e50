/* SPDX-License-Identifier: MIT */
/*
** png.c - PNG images, by libpng.
**
** The library is loaded by name at run time, so a program that reads no image
** does not load it, and the build does not need its headers. The functions are
** declared here as in the ABI of libpng 1.6.  An error of libpng jumps from its
** handler back to the function of this file that called it.
**
** A file is untrusted input. The size in its header is compared with the number
** of compressed bytes (deflate expands by at most 1032) before memory is
** allocated, and libpng sees only the chunks that affect the pixels.
*/
#define _POSIX_C_SOURCE 200809L
#include "core/io/images/image.h"
#include "core/library.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { LEVEL = 6 }; /* of compression, if none is asked for */

typedef struct png_struct_def png_struct;
typedef struct png_info_def png_info;
typedef void Report(png_struct *, const char *);
typedef void Transfer(png_struct *, unsigned char *, size_t);
typedef void *Take(png_struct *, size_t);
typedef void Give(png_struct *, void *);

/* clang-format off */
#define FUNCTIONS(X)                                                          \
  X(png_struct *, create_read_struct_2, (const char *, void *, Report *,      \
    Report *, void *, Take *, Give *))                                        \
  X(png_struct *, create_write_struct_2, (const char *, void *, Report *,     \
    Report *, void *, Take *, Give *))                                        \
  X(png_info *, create_info_struct, (const png_struct *))                     \
  X(void, destroy_read_struct, (png_struct **, png_info **, png_info **))     \
  X(void, destroy_write_struct, (png_struct **, png_info **))                 \
  X(void *, get_error_ptr, (const png_struct *))                              \
  X(void *, get_mem_ptr, (const png_struct *))                                \
  X(void *, get_io_ptr, (const png_struct *))                                 \
  X(const char *, get_libpng_ver, (const png_struct *))                       \
  X(unsigned, access_version_number, (void))                                  \
  X(void, error, (const png_struct *, const char *))                          \
  X(void, set_read_fn, (png_struct *, void *, Transfer *))                    \
  X(void, set_write_fn, (png_struct *, void *, Transfer *,                    \
    void (*)(png_struct *)))                                                  \
  X(void, set_user_limits, (png_struct *, unsigned, unsigned))                \
  X(void, read_info, (png_struct *, png_info *))                              \
  X(void, set_expand, (png_struct *))                                         \
  X(void, set_swap, (png_struct *))                                           \
  X(int, set_interlace_handling, (png_struct *))                              \
  X(void, read_update_info, (png_struct *, png_info *))                       \
  X(size_t, get_rowbytes, (const png_struct *, const png_info *))             \
  X(void, read_row, (png_struct *, unsigned char *, unsigned char *))         \
  X(void, read_end, (png_struct *, png_info *))                               \
  X(void, set_IHDR, (const png_struct *, png_info *, unsigned, unsigned, int, \
    int, int, int, int))                                                      \
  X(void, set_compression_level, (png_struct *, int))                         \
  X(void, write_info, (png_struct *, const png_info *))                       \
  X(void, write_row, (png_struct *, const unsigned char *))                   \
  X(void, write_end, (png_struct *, png_info *))
/* clang-format on */

static struct { FUNCTIONS(NC_FIELD) } png;

static int is_version_1_6(void *handle) {
  (void)handle;
  return png.access_version_number() / 100 == 106;
}

static Library libpng = {
  .variable = "NACRE_PNG",
  .names = NC_LIST("libpng16.so.16", "libpng16.so", "libpng.so",
                   "libpng16.16.dylib", "libpng16.dylib"),
  .prefix = "png_",
  NC_FUNCTIONS(FUNCTIONS, png),
  .accepts = is_version_1_6,
  .missing = "images need libpng 1.6",
  .hint = "install it (Debian: libpng-dev)",
};

const char *nc_pnglibrary(void) {
  return nc_libraryname(&libpng);
}

/*
** A job: one call of libpng. An error that libpng reports ends it by longjmp.
*/
typedef struct Job {
  jmp_buf end;
  const unsigned char *in; /* input */
  int64_t chunk;           /* bytes left of the current chunk */
  unsigned char *out;      /* output */
  int64_t n, room; /* bytes left of `in'; bytes used of `out', and its size */
  int status, nomemory;
  png_struct *png;
  png_info *info;
} Job;

static int nomemory(void) {
  return nc_fail(NC_ENOMEM, "no memory for libpng");
}

/* libpng's error handler: records the error, then jumps to j->end. */
static void fail(png_struct *p, const char *text) {
  Job *j = png.get_error_ptr(p);
  j->status = j->nomemory      ? nomemory()
              : nc_interrupted ? nc_fail(NC_EINTR, "interrupted")
                               : nc_fail(NC_EFILE, "%s", text);
  longjmp(j->end, 1);
}

static void ignore(png_struct *p, const char *text) {
  (void)p;
  (void)text;
}

/* Allocates from the core's memory accounting; the block starts with its size,
   which nc_hostfree needs. */
static void *take(png_struct *p, size_t n) {
  Job *j = png.get_mem_ptr(p);
  void *block;
  if (n > INT64_MAX - 16 || nc_hostalloc(&block, (int64_t)n + 16) != NC_OK)
    return j->nomemory = 1, NULL;
  memcpy(block, &n, sizeof n);
  return (char *)block + 16;
}

static void give(png_struct *p, void *block) {
  size_t n;
  (void)p;
  if (block == NULL) return;
  block = (char *)block - 16;
  memcpy(&n, block, sizeof n);
  nc_hostfree(block, (int64_t)n + 16);
}

static uint32_t big(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
         p[3];
}

/* True if the pixels depend on a chunk of this type. A lower-case first letter
   marks an ancillary chunk; of these only tRNS (transparency) is used. */
static int affects_pixels(const unsigned char *type) {
  return !(type[0] & 0x20) || memcmp(type, "tRNS", 4) == 0;
}

/* Skips to the next relevant chunk. libpng would store the others: compressed
   texts can expand without limit. */
static void nextchunk(Job *j) {
  while (j->n >= 12) {
    const int64_t size = (int64_t)big(j->in) + 12;
    if (size > j->n) return;
    if (affects_pixels(j->in + 4)) {
      j->chunk = size;
      return;
    }
    j->in += size;
    j->n -= size;
  }
}

/* libpng's read callback. May jump to j->end. */
static void pull(png_struct *p, unsigned char *to, size_t n) {
  Job *j = png.get_io_ptr(p);
  while (n > 0) {
    if (nc_interrupted) png.error(p, "interrupted");
    if (j->chunk == 0) nextchunk(j);
    if (j->chunk == 0) png.error(p, "the data end too early");
    const int64_t k = (int64_t)n < j->chunk ? (int64_t)n : j->chunk;
    memcpy(to, j->in, (size_t)k);
    j->in += k;
    j->n -= k;
    j->chunk -= k;
    to += k;
    n -= (size_t)k;
  }
}

/* libpng's write callback. May jump to j->end. */
static void push(png_struct *p, unsigned char *from, size_t n) {
  Job *j = png.get_io_ptr(p);
  if (nc_interrupted) png.error(p, "interrupted");
  if ((int64_t)n > j->room - j->n) png.error(p, "no room");
  memcpy(j->out + j->n, from, n);
  j->n += (int64_t)n;
}

static void flush(png_struct *p) {
  (void)p;
}

/*
** The header
*/
/* The number of bits of a pixel in the file. */
static int64_t filebits(int color, int depth) {
  static const int channels[] = { 1, 0, 3, 1, 2, 0, 4 };
  return (int64_t)channels[color] * depth;
}

/* True for a combination of colour type and depth that PNG defines. */
static int is_valid_type(int color, int depth) {
  if (color == 0)
    return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
  if (color == 3) return depth == 1 || depth == 2 || depth == 4 || depth == 8;
  return (color == 2 || color == 4 || color == 6) &&
         (depth == 8 || depth == 16);
}

/* Scans the chunks after the header: *data is the number of bytes of compressed
   pixels, *clear is set if there is a tRNS chunk. Fails if a chunk exceeds the
   file. */
static int chunks(const unsigned char *p, int64_t n, int64_t *data,
                  int *clear) {
  char type[24];
  *data = *clear = 0;
  while (n >= 12) {
    const int64_t size = big(p);
    if (size > n - 12)
      return nc_fail(NC_EFILE, "chunk \"%s\" has %lld bytes, %lld are left",
                     nc_printable(type, sizeof type, (const char *)p + 4, 4),
                     (long long)size, (long long)n - 12);
    if (memcmp(p + 4, "IDAT", 4) == 0) *data += size;
    if (memcmp(p + 4, "tRNS", 4) == 0 && *data == 0) *clear = 1;
    if (memcmp(p + 4, "IEND", 4) == 0) break;
    p += size + 12;
    n -= size + 12;
  }
  return NC_OK;
}

static int read_header(Image *m, const unsigned char *p, int64_t n) {
  static const unsigned char magic[] = { 137, 'P', 'N', 'G', 13, 10, 26, 10 };
  int color, depth, clear;
  int64_t data, line;
  if (n < 8 || memcmp(p, magic, 8) != 0)
    return nc_fail(NC_EFILE, "this is not a PNG image");
  if (n < 33 || big(p + 8) != 13 || memcmp(p + 12, "IHDR", 4) != 0)
    return nc_fail(NC_EFILE, "the header is damaged");
  m->width = big(p + 16);
  m->height = big(p + 20);
  depth = p[24];
  color = p[25];
  if (m->width < 1 || m->height < 1 || m->width > INT32_MAX ||
      m->height > INT32_MAX || !is_valid_type(color, depth))
    return nc_fail(NC_EFILE, "the header is damaged");
  TRY(chunks(p + 33, n - 33, &data, &clear));
  line = (m->width * filebits(color, depth) + 7) / 8 + 1;
  if (m->height > (data + 64) * 1032 / line)
    return nc_fail(NC_EFILE,
                   "%lldx%lld pixels cannot be unpacked from %lld bytes",
                   (long long)m->width, (long long)m->height, (long long)data);
  m->channels =
      (color & 2 ? 3 : 1) + (color & 4 || (clear && color != 4 && color != 6));
  m->depth = depth == 16 ? 16 : 8;
  return NC_OK;
}

/*
** Decoding
*/
/* May jump to j->end. Each pass of an interlaced image changes rows that
   earlier passes stored. */
static void readimage(Job *j, const Image *m, const ImageRows *rows,
                      void *pixels) {
  const int64_t line = nc_image_row(m);
  int passes;
  png.set_user_limits(j->png, INT32_MAX, INT32_MAX);
  png.set_read_fn(j->png, j, pull);
  png.read_info(j->png, j->info);
  png.set_expand(j->png); /* expands palettes, low bit depths and tRNS */
  if (m->depth == 16 && !nc_bigendian()) png.set_swap(j->png);
  passes = png.set_interlace_handling(j->png);
  png.read_update_info(j->png, j->info);
  if ((int64_t)png.get_rowbytes(j->png, j->info) != line)
    png.error(j->png, "the chunks contradict each other");
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < m->height; y++) {
      if (nc_interrupted) png.error(j->png, "interrupted");
      if (pass > 0) rows->get(rows->ctx, y, pixels);
      png.read_row(j->png, pixels, NULL);
      rows->put(rows->ctx, y, pixels);
    }
  png.read_end(j->png, NULL);
}

/* Returns after an error, too; libpng's objects stay in *j for the caller to
   free. */
static void run_decoder(Job *j, const Image *m, const ImageRows *rows,
                        void *line) {
  if (setjmp(j->end) != 0) return;
  j->png = png.create_read_struct_2(png.get_libpng_ver(NULL), j, fail, ignore,
                                    j, take, give);
  if (j->png) j->info = png.create_info_struct(j->png);
  if (j->info) readimage(j, m, rows, line);
  else j->status = nomemory();
}

static int decode(const Image *m, const unsigned char *p, int64_t n,
                  const ImageRows *rows) {
  const int64_t room = nc_image_row(m);
  Job j;
  void *line;
  TRY(nc_library(&libpng));
  TRY(nc_hostalloc(&line, room));
  memset(line, 0, (size_t)room);
  memset(&j, 0, sizeof j);
  j.in = p;
  j.n = n;
  j.chunk = 8; /* the signature precedes the chunks */
  run_decoder(&j, m, rows, line);
  if (j.png) png.destroy_read_struct(&j.png, &j.info, NULL);
  nc_hostfree(line, room);
  return j.status;
}

/*
** Encoding
*/
/* The worst case of deflate plus the overhead of the chunks. */
static int room_for(int64_t *room, const Image *m) {
  const int64_t raw = nc_image_bytes(m) + m->height;
  *room = raw + raw / 128 + 65536;
  return NC_OK;
}

/* May jump to j->end. */
static void writeimage(Job *j, const ImageSource *s) {
  static const int colors[] = { 0, 0, 4, 2, 6 };
  const Image *m = &s->m;
  png.set_user_limits(j->png, INT32_MAX, INT32_MAX);
  png.set_write_fn(j->png, j, push, flush);
  png.set_compression_level(j->png, s->as->level ? s->as->level - 1 : LEVEL);
  png.set_IHDR(j->png, j->info, (unsigned)m->width, (unsigned)m->height,
               m->depth, colors[m->channels], 0, 0, 0);
  png.write_info(j->png, j->info);
  if (m->depth == 16 && !nc_bigendian()) png.set_swap(j->png);
  for (int64_t y = 0; y < m->height; y++) {
    if (nc_interrupted) png.error(j->png, "interrupted");
    s->row(s->ctx, y, s->line);
    png.write_row(j->png, s->line);
  }
  png.write_end(j->png, NULL);
}

static void run_encoder(Job *j, const ImageSource *s) {
  if (setjmp(j->end) != 0) return;
  j->png = png.create_write_struct_2(png.get_libpng_ver(NULL), j, fail, ignore,
                                     j, take, give);
  if (j->png) j->info = png.create_info_struct(j->png);
  if (j->info) writeimage(j, s);
  else j->status = nomemory();
}

static int encode(unsigned char *out, int64_t *n, int64_t room,
                  ImageSource *s) {
  Job j;
  TRY(nc_library(&libpng));
  memset(&j, 0, sizeof j);
  j.out = out;
  j.room = room;
  run_encoder(&j, s);
  if (j.png) png.destroy_write_struct(&j.png, &j.info);
  *n = j.n;
  return j.status;
}

/*
** The format
*/
static const ImageCodec png_codec = {
  "a PNG image", "1 to 4", 0x1e, 65535, read_header, decode, room_for, encode,
};

static int open_png(Archive *a, const Source *from) {
  return nc_open_image(a, from, &png_codec);
}

static int save_png(const Sink *to, const FileContents *c) {
  return nc_save_image(to, c, &png_codec);
}

const ArchiveFormat nc_format_png = IMAGE_FORMAT(open_png, save_png);
