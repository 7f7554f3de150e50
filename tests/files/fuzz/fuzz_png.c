/* SPDX-License-Identifier: MIT */
/*
** fuzz_png.c - arbitrary bytes as a PNG image, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh png.
**
** An image that is decoded is encoded, and what that gives is the same image.
*/
#include <stdlib.h>
#include <string.h>

#include "bindings/io/libpng.h"

static void must(int condition) {
  if (!condition) abort();
}

typedef struct Pixels {
  unsigned char *p;
  int64_t line;
} Pixels;

static void row(void *ctx, int64_t y, void *line) {
  const Pixels *x = ctx;
  memcpy(line, x->p + y * x->line, (size_t)x->line);
}

static void store(void *ctx, int64_t y, void *line) {
  const Pixels *x = ctx;
  memcpy(x->p + y * x->line, line, (size_t)x->line);
}

static int decode(const PngImage *m, unsigned char *pixels, const uint8_t *p,
                  int64_t n) {
  Pixels x = { pixels, nl_pngbytes(m) / m->height };
  PngRows rows = { store, row, &x };
  return nl_pngdecode(m, p, n, &rows);
}

static void again(const PngImage *m, unsigned char *pixels) {
  const int64_t bytes = nl_pngbytes(m);
  Pixels x = { pixels, bytes / m->height };
  unsigned char *out = malloc((size_t)nl_pngroom(m));
  unsigned char *line = malloc((size_t)x.line), *back = malloc((size_t)bytes);
  PngImage same;
  int64_t n;
  must(nl_pngencode(out, &n, m, 1, row, &x, line) == NC_OK);
  must(nl_pngheader(&same, out, n) == NC_OK);
  must(memcmp(&same, m, sizeof same) == 0);
  must(decode(&same, back, out, n) == NC_OK);
  must(memcmp(back, pixels, (size_t)bytes) == 0);
  free(out);
  free(line);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  const int64_t live = nc_memory.live;
  PngImage m;
  memset(&m, 0, sizeof m);
  if (nl_pngheader(&m, p, (int64_t)n) == NC_OK && nl_pngbytes(&m) <= 1 << 22) {
    unsigned char *pixels = calloc(1, (size_t)nl_pngbytes(&m));
    if (decode(&m, pixels, p, (int64_t)n) == NC_OK) again(&m, pixels);
    free(pixels);
  }
  must(nc_memory.live == live);
  return 0;
}
