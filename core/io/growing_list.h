/* SPDX-License-Identifier: MIT */
/* growing_list.h - memory of the host for a list whose length is not known. */
#ifndef core_io_growing_list_h
#define core_io_growing_list_h

#include <stdint.h>

/* Makes room for `need' bytes in a list of which `used' are kept. */
int nc_growlist(void **list, int64_t *room, int64_t used, int64_t need);

/* Bytes one after another; {0} is empty. */
typedef struct ByteList {
  char *p;
  int64_t used, room;
} ByteList;

int nc_addbytes(ByteList *l, const void *p, int64_t n);
void nc_freebytes(ByteList *l);

#endif
