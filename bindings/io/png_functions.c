/* SPDX-License-Identifier: MIT */
/*
** png_functions.c - nacre.readpng and nacre.png for PNG files, decode_png and
** encode_png for strings: load and save of that format, core/io/images/png.c.
*/
#include "bindings/arguments/arguments.h"
#include "bindings/calls/functions.h"
#include "bindings/io/tensor_files.h"
#include "bindings/state.h"

/* Pushes the image. [-0, +1, e] */
static int push_image(lua_State *L, const char *op, const Source *from) {
  Archive **a = nl_new_archive(L);
  Tensor **t;
  lua_toclose(L, -1);
  nl_check_as(L, nc_openarchive(a, from, FORMAT_png), op);
  t = nl_newbox(L);
  nl_try_as(L, op, nc_archiveload(t, *a, 0));
  nl_pace(L);
  return 1;
}

static int decode_png(lua_State *L) {
  size_t n;
  const char *p = luaL_checklstring(L, 1, &n);
  return push_image(L, "decode_png",
                    &(Source){ .path = "data", .bytes = p, .n = (int64_t)n });
}

static int readpng(lua_State *L) {
  return push_image(L, "readpng", &(Source){ .path = luaL_checkstring(L, 1) });
}

/* Writes the image, which is argument i; the level follows it. [-0, +0, e] */
static void write_image(lua_State *L, const char *op, const Sink *to,
                        const Args *a, int i) {
  NamedTensor t = { "", nl_checktensor(L, i) };
  const int64_t level = a->arg[i].s.i;
  if (level < 0 || level > 9)
    nl_error(L, op, "compression_level is 0 to 9, not %lld", (long long)level);
  const FileContents c = { .list = &t, .n = 1, .level = (int)level + 1 };
  nl_try_as(L, op, nc_savefile(to, FORMAT_png, &c));
}

static int encode_png(lua_State *L) {
  Args a;
  nl_args(L, &a);
  Tensor **bytes = nl_newbox(L);
  write_image(L, "encode_png", &(Sink){ .path = "data", .bytes = bytes }, &a,
              1);
  lua_pushlstring(L, nc_data(*bytes), (size_t)nc_numel(*bytes));
  return 1;
}

static int writepng(lua_State *L) {
  Args a;
  nl_args(L, &a);
  write_image(L, "png", &(Sink){ lua_tostring(L, 1), 1, NULL }, &a, 2);
  return 0;
}

const Bound nl_png[] = {
  { "readpng", readpng, "path:file -> tensor",
    "reads a PNG image as CxHxW: uint8, or int32 if it has 16 bits", 1 },
  { "png", writepng, "path:file, image, compression_level:int=6",
    "writes an image HxW or CxHxW as a PNG file: uint8 unchanged, floats and "
    "booleans from 0 to 1, other integers from 0 to 65535 with 16 bits",
    1 },
  { "decode_png", decode_png, "data:text -> tensor",
    "the image in the bytes of a PNG file", 1 },
  { "encode_png", encode_png, "image, compression_level:int=6 -> string",
    "the bytes of a PNG file; see png", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
