/* SPDX-License-Identifier: MIT */
/*
** zip_items.h - the members of a zip archive that is written: each is a text,
** then the elements of a tensor, or one of the two.
*/
#ifndef core_io_zip_zip_items_h
#define core_io_zip_zip_items_h

#include "core/io/rowmajor.h"
#include "core/io/zip/zip.h"

typedef struct ZipItem {
  char name[NC_MAXNAME + 8];
  char header[512];           /* for `text' to point to */
  const char *text;
  int64_t ntext;
  Tensor *t;                  /* NULL: none */
  Tensor *cpu;                /* a copy there, while it is written */
  char *buf;                  /* NC_IOBLOCK bytes, of which `used' are filled */
  int64_t used, at, text_at;
  ElementCursor e;
} ZipItem;

typedef struct ZipItems {
  ZipItem *item;
  ZipFeed *feed;
  int64_t n, room;
} ZipItems;

int nc_new_zipitems(ZipItems *list, int64_t room);
/* The next of at most `room' items, zeroed. */
ZipItem *nc_add_zipitem(ZipItems *list);
/* Writes them; level as of nc_writezip. */
int nc_write_zipitems(const Sink *to, ZipItems *list, int level);
void nc_free_zipitems(ZipItems *list);

#endif
