/* SPDX-License-Identifier: MIT */
/*
** svg_png.c - draws an SVG picture as a PNG, with librsvg, which is opened at
** the first picture. The functions are declared here as in the ABI of librsvg
** 2.46 and later, and of the cairo that it uses.
*/

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "core/library.h"

typedef struct RsvgHandle RsvgHandle;
typedef struct GError {
  unsigned domain;
  int code;
  char *message;
} GError;
typedef struct Rectangle {
  double x, y, width, height;
} Rectangle;
typedef struct cairo_surface cairo_surface;
typedef struct cairo_context cairo_context;
typedef int Writer(void *to, const unsigned char *data, unsigned n);

/* clang-format off */
#define FUNCTIONS(X)                                                          \
  X(RsvgHandle *, rsvg_handle_new_from_data, (const unsigned char *, size_t,  \
    GError **))                                                               \
  X(int, rsvg_handle_render_document, (RsvgHandle *, cairo_context *,         \
    const Rectangle *, GError **))                                            \
  X(void, g_object_unref, (void *))                                           \
  X(void, g_error_free, (GError *))                                           \
  X(cairo_surface *, cairo_image_surface_create, (int, int, int))             \
  X(int, cairo_surface_status, (cairo_surface *))                             \
  X(int, cairo_surface_write_to_png_stream, (cairo_surface *, Writer *,       \
    void *))                                                                  \
  X(void, cairo_surface_destroy, (cairo_surface *))                           \
  X(cairo_context *, cairo_create, (cairo_surface *))                         \
  X(void, cairo_destroy, (cairo_context *))
/* clang-format on */

static struct { FUNCTIONS(NC_FIELD) } rsvg;

enum { RGB24 = 1, CAIRO_NO_MEMORY = 1 };

static Library librsvg = {
  .variable = "NACRE_RSVG",
  .names = NC_LIST("librsvg-2.so.2", "librsvg-2.2.dylib"),
  .prefix = "",
  NC_FUNCTIONS(FUNCTIONS, rsvg),
  .missing = "a picture in a PNG file needs librsvg 2.46",
  .hint = "install it (Debian: librsvg2-2), or write a .svg file",
};

const char *sh_rsvg_library(void) {
  return nc_libraryname(&librsvg);
}

/* The bytes of the PNG so far. Memory is taken here and not by Lua, which may
   jump out of cairo. */
typedef struct Bytes {
  char *data;
  size_t n, room;
} Bytes;

static int take(void *to, const unsigned char *data, unsigned n) {
  Bytes *b = to;
  if (n > b->room - b->n) {
    const size_t room = 2 * b->room + n;
    char *more = realloc(b->data, room);
    if (more == NULL) return CAIRO_NO_MEMORY;
    b->data = more;
    b->room = room;
  }
  memcpy(b->data + b->n, data, n);
  b->n += n;
  return 0;
}

/* Draws on a surface of that size; the message of an error goes to *why. */
static int draw(RsvgHandle *picture, cairo_surface *surface, Rectangle size,
                GError **why) {
  cairo_context *c = rsvg.cairo_create(surface);
  int ok = rsvg.rsvg_handle_render_document(picture, c, &size, why);
  rsvg.cairo_destroy(c);
  return ok;
}

/* Pushes the PNG, or nil and why there is none. */
static int pushpng(lua_State *L, RsvgHandle *picture, Rectangle size) {
  Bytes png = { NULL, 0, 0 };
  GError *why = NULL;
  cairo_surface *surface =
      rsvg.cairo_image_surface_create(RGB24, (int)size.width, (int)size.height);
  int ok = rsvg.cairo_surface_status(surface) == 0 &&
           draw(picture, surface, size, &why) &&
           rsvg.cairo_surface_write_to_png_stream(surface, take, &png) == 0;
  rsvg.cairo_surface_destroy(surface);
  rsvg.g_object_unref(picture);
  if (ok) lua_pushlstring(L, png.data, png.n);
  else {
    lua_pushnil(L);
    lua_pushstring(L, why ? why->message : "no memory for the picture");
  }
  if (why) rsvg.g_error_free(why);
  free(png.data);
  return ok ? 1 : 2;
}

/* png_of_svg(text, width, height): the bytes of a PNG of that size; nil and why
   there is none */
int sh_png_of_svg(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  const Rectangle size = { 0, 0, (double)luaL_checkinteger(L, 2),
                           (double)luaL_checkinteger(L, 3) };
  GError *why = NULL;
  RsvgHandle *picture;
  if (nc_library(&librsvg) != NC_OK) {
    lua_pushnil(L);
    const Error *e = nc_lasterror();
    lua_pushfstring(L, *e->hint ? "%s: %s" : "%s", e->text, e->hint);
    return 2;
  }
  picture =
      rsvg.rsvg_handle_new_from_data((const unsigned char *)text, n, &why);
  if (picture != NULL) return pushpng(L, picture, size);
  lua_pushnil(L);
  lua_pushstring(L, why ? why->message : "no picture");
  if (why) rsvg.g_error_free(why);
  return 2;
}
