/* SPDX-License-Identifier: MIT */
/* zip_items.c - texts and tensors as members of a zip archive; see the
   header. */
#include "core/io/zip/zip_items.h"

#include "core/base/mapping.h"

#include <string.h>

static int64_t list_bytes(int64_t room) {
  return room * (int64_t)(sizeof(ZipItem) + sizeof(ZipFeed));
}

int nc_new_zipitems(ZipItems *list, int64_t room) {
  void *block;
  *list = (ZipItems){ .room = room };
  TRY(nc_hostalloc(&block, list_bytes(room)));
  memset(block, 0, (size_t)list_bytes(room));
  list->item = block;
  list->feed = (ZipFeed *)(list->item + room);
  return NC_OK;
}

ZipItem *nc_add_zipitem(ZipItems *list) {
  return &list->item[list->n++];
}

static int begin_item(void *source) {
  ZipItem *x = source;
  void *buf;
  x->text_at = x->used = x->at = 0;
  if (x->t == NULL) return NC_OK;
  TRY(nc_todevice(&x->cpu, x->t, &nc_cpu));
  TRY(nc_hostalloc(&buf, NC_IOBLOCK));
  x->buf = buf;
  nc_elements_start(&x->e, x->cpu);
  return NC_OK;
}

static int next_bytes(void *source, void *p, int64_t room, int64_t *n) {
  ZipItem *x = source;
  const char *from = x->text + x->text_at;
  int64_t *at = &x->text_at, left = x->ntext - x->text_at;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (left == 0 && x->t) {
    if (x->at == x->used) {
      x->used = nc_elements_take(&x->e, x->buf, NC_IOBLOCK);
      x->at = 0;
      TRY(nc_check_lost(x->cpu));
    }
    from = x->buf + x->at;
    at = &x->at;
    left = x->used - x->at;
  }
  *n = left < room ? left : room;
  if (*n) memcpy(p, from, (size_t)*n);
  *at += *n;
  return NC_OK;
}

/* Also if begin failed or was not called. */
static void end_item(void *source) {
  ZipItem *x = source;
  nc_hostfree(x->buf, NC_IOBLOCK);
  nc_release(x->cpu);
  x->buf = NULL;
  x->cpu = NULL;
}

int nc_write_zipitems(const Sink *to, ZipItems *list, int level) {
  for (int64_t i = 0; i < list->n; i++) {
    ZipItem *x = &list->item[i];
    const int64_t bytes = x->t ? nc_numel(x->t) * nc_dtypesize(x->t->dtype) : 0;
    list->feed[i] = (ZipFeed){ .name = x->name,
                               .size = x->ntext + bytes,
                               .aligned = x->ntext == 0,
                               .source = x,
                               .begin = begin_item,
                               .more = next_bytes,
                               .end = end_item };
    nc_count(0, bytes);
  }
  return nc_writezip(to, list->feed, list->n, level);
}

void nc_free_zipitems(ZipItems *list) {
  for (int64_t i = 0; i < list->n; i++) end_item(&list->item[i]);
  nc_hostfree(list->item, list_bytes(list->room));
}
