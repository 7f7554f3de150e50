/* SPDX-License-Identifier: MIT */
/*
** jpeg.c - JPEG images, grey or RGB, by TurboJPEG, the interface of
** libjpeg-turbo.
**
** The library is opened by name at the first image (core/library.h), and the
** functions are declared here as in the ABI of libjpeg-turbo 1.5 to 3.
**
** A file is untrusted.  Its size is compared with its bytes before memory is
** allocated: a block of 8x8 pixels takes at least one bit.  What the library
** warns of is an error: it would make up the pixels that are missing.  The
** orientation in EXIF data changes nothing: pixels are as they are stored.
*/
#include <string.h>

#include "core/io/images/image.h"
#include "core/library.h"

typedef void *Handle;
typedef unsigned char byte;

/* clang-format off */
#define FUNCTIONS(X)                                                        \
  X(Handle, InitDecompress, (void))                                         \
  X(Handle, InitCompress, (void))                                           \
  X(int, Decompress2, (Handle, const byte *, unsigned long, byte *, int,    \
    int, int, int, int))                                                    \
  X(int, Compress2, (Handle, const byte *, int, int, int, int, byte **,     \
    unsigned long *, int, int, int))                                        \
  X(unsigned long, BufSize, (int, int, int))                                \
  X(char *, GetErrorStr, (void))                                            \
  X(int, Destroy, (Handle))
/* clang-format on */

static struct { FUNCTIONS(NC_FIELD) } tj;

enum { RGB = 0, GREY = 6 };             /* formats of pixels */
enum { SUBSAMPLED = 2, GREY_ONLY = 3 }; /* chroma of 2x2 pixels; none */
enum { NO_REALLOC = 1024, STOP_ON_WARNING = 8192, LIMIT_SCANS = 32768 };
enum { QUALITY = 75, LONGEST = 65500, SCANS = 200 };
enum {
  SOI = 0xd8,
  EOI = 0xd9,
  SOS = 0xda,
  SOF0 = 0xc0,
  SOF2 = 0xc2,
  SOF15 = 0xcf,
  DHT = 0xc4,
  JPG = 0xc8,
  DAC = 0xcc
};

static Library turbojpeg = {
  .variable = "NACRE_JPEG",
  .names = NC_LIST("libturbojpeg.so.0", "libturbojpeg.so",
                   "libturbojpeg.0.dylib", "libturbojpeg.dylib"),
  .prefix = "tj",
  NC_FUNCTIONS(FUNCTIONS, tj),
  .missing = "JPEG images need libturbojpeg",
  .hint = "install it (Debian: libturbojpeg0)",
};

const char *nc_jpeglibrary(void) {
  return nc_libraryname(&turbojpeg);
}

/*
** The header
*/
static int is_frame(int marker) {
  return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG &&
         marker != DAC;
}

/* *at = the place of the frame's header in the n bytes at p. */
static int find_frame(const byte *p, int64_t n, int64_t *at) {
  if (n < 2 || p[0] != 0xff || p[1] != SOI)
    return nc_fail(NC_EFILE, "this is not a JPEG image");
  for (int64_t i = 2; i + 4 <= n && p[i] == 0xff;) {
    const int marker = p[i + 1];
    if (marker == 0xff) { /* any number of them may come before a marker */
      i++;
      continue;
    }
    if (is_frame(marker)) return *at = i, NC_OK;
    if (marker == SOS || marker == EOI) break;
    i += 2 + (p[i + 2] << 8 | p[i + 3]);
  }
  return nc_fail(NC_EFILE, "the header is damaged");
}

/* Fails for a coding that is not read. */
static int check_coding(const byte *frame) {
  const int coding = frame[1] - SOF0, channels = frame[9];
  if (frame[1] > SOF2)
    return nc_fail(NC_EFILE, "its coding, SOF%d, is not read", coding);
  if (frame[4] != 8)
    return nc_fail(NC_EFILE, "it has %d bits, 8 are read", frame[4]);
  if (channels == 1 || channels == 3) return NC_OK;
  return nc_fail(NC_EFILE, "it has %d channels%s, 1 and 3 are read", channels,
                 channels == 4 ? " (CMYK)" : "");
}

/* Each pass over the image takes time: a file may not ask for many. */
static int check_scans(const byte *p, int64_t n) {
  int scans = 0;
  for (int64_t i = 0; i + 1 < n; i++) scans += p[i] == 0xff && p[i + 1] == SOS;
  if (scans <= SCANS) return NC_OK;
  return nc_fail(NC_EFILE, "it has %d scans, at most %d are read", scans,
                 SCANS);
}

static int read_header(Image *m, const byte *p, int64_t n) {
  int64_t at = 0;
  TRY(find_frame(p, n, &at));
  p += at;
  if (n - at < 10) return nc_fail(NC_EFILE, "the header is damaged");
  TRY(check_coding(p));
  m->height = p[5] << 8 | p[6];
  m->width = p[7] << 8 | p[8];
  m->channels = p[9];
  m->depth = 8;
  if (m->width < 1 || m->height < 1)
    return nc_fail(NC_EFILE, "the header is damaged");
  if (m->width * m->height > (n - at) * 8 * 64)
    return nc_fail(NC_EFILE,
                   "%lldx%lld pixels cannot be unpacked from %lld bytes",
                   (long long)m->width, (long long)m->height, (long long)n);
  return check_scans(p, n - at);
}

/*
** Pixels
*/
static int fail(void) {
  return nc_fail(NC_EFILE, "%s", tj.GetErrorStr());
}

static int run_decoder(byte *pixels, const Image *m, const byte *p, int64_t n) {
  const Handle h = tj.InitDecompress();
  if (h == NULL) return fail();
  const int r = tj.Decompress2(h, p, (unsigned long)n, pixels, (int)m->width,
                               (int)nc_image_row(m), (int)m->height,
                               m->channels == 1 ? GREY : RGB,
                               STOP_ON_WARNING | LIMIT_SCANS);
  const int status = r == 0 ? NC_OK : fail();
  tj.Destroy(h);
  return status;
}

static int decode(const Image *m, const byte *p, int64_t n,
                  const ImageRows *rows) {
  void *pixels;
  TRY(nc_library(&turbojpeg));
  TRY(nc_hostalloc(&pixels, nc_image_bytes(m)));
  const int status = run_decoder(pixels, m, p, n);
  for (int64_t y = 0; status == NC_OK && y < m->height; y++)
    rows->put(rows->ctx, y, (byte *)pixels + y * nc_image_row(m));
  nc_hostfree(pixels, nc_image_bytes(m));
  return status;
}

static int chroma(const Image *m) {
  return m->channels == 1 ? GREY_ONLY : SUBSAMPLED;
}

static int room_for(int64_t *room, const Image *m) {
  TRY(nc_library(&turbojpeg));
  if (m->width > LONGEST || m->height > LONGEST)
    return nc_fail(NC_EVALUE, "a JPEG image has at most %d rows and columns",
                   LONGEST);
  *room = (int64_t)tj.BufSize((int)m->width, (int)m->height, chroma(m));
  return NC_OK;
}

static int run_encoder(byte *out, unsigned long *n, const byte *pixels,
                       const ImageSource *s) {
  const Handle h = tj.InitCompress();
  if (h == NULL) return fail();
  const int r = tj.Compress2(
      h, pixels, (int)s->m.width, (int)nc_image_row(&s->m), (int)s->m.height,
      s->m.channels == 1 ? GREY : RGB, &out, n, chroma(&s->m),
      s->as->quality ? s->as->quality : QUALITY, NO_REALLOC);
  const int status = r == 0 ? NC_OK : fail();
  tj.Destroy(h);
  return status;
}

static int encode(byte *out, int64_t *n, int64_t room, ImageSource *s) {
  const int64_t bytes = nc_image_bytes(&s->m);
  unsigned long used = (unsigned long)room;
  void *pixels;
  TRY(nc_hostalloc(&pixels, bytes));
  for (int64_t y = 0; y < s->m.height; y++)
    s->row(s->ctx, y, (byte *)pixels + y * nc_image_row(&s->m));
  const int status = run_encoder(out, &used, pixels, s);
  nc_hostfree(pixels, bytes);
  *n = (int64_t)used;
  return status;
}

/*
** The format
*/
static const ImageCodec jpeg_codec = {
  "a JPEG image", "1 or 3", 1u << 1 | 1u << 3, 255,
  read_header,    decode,   room_for,          encode,
};

static int open_jpeg(Archive *a, const Source *from) {
  return nc_open_image(a, from, &jpeg_codec);
}

static int save_jpeg(const Sink *to, const FileContents *c) {
  return nc_save_image(to, c, &jpeg_codec);
}

const ArchiveFormat nc_format_jpg = IMAGE_FORMAT(open_jpeg, save_jpeg);
