/* SPDX-License-Identifier: MIT */
/* growing_list.c - lists that become as long as a file makes them. */
#include "core/io/growing_list.h"

#include <string.h>

#include "core/tensor.h"

int nc_growlist(void **list, int64_t *room, int64_t used, int64_t need) {
  void *more;
  if (need <= *room) return NC_OK;
  TRY(nc_hostalloc(&more, 2 * need + 256));
  if (used > 0) memcpy(more, *list, (size_t)used);
  if (*list) nc_hostfree(*list, *room);
  *list = more;
  *room = 2 * need + 256;
  return NC_OK;
}

int nc_addbytes(ByteList *l, const void *p, int64_t n) {
  void *list = l->p;
  TRY(nc_growlist(&list, &l->room, l->used, l->used + n));
  l->p = list;
  if (n > 0) memcpy(l->p + l->used, p, (size_t)n);
  l->used += n;
  return NC_OK;
}

void nc_freebytes(ByteList *l) {
  if (l->p) nc_hostfree(l->p, l->room);
  memset(l, 0, sizeof *l);
}
