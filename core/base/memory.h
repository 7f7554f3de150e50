/* SPDX-License-Identifier: MIT */
/* memory.h - slabs: structures of one size that are never given back. */
#ifndef core_base_memory_h
#define core_base_memory_h

#include <stddef.h>
#include <stdint.h>

#define SLAB_OBJECTS 64

typedef struct Slab {
  size_t size;                /* of an object */
  void *free, *chunks;
} Slab;

int64_t nc_hostsize(int64_t bytes); /* that a block of `bytes' takes */

void *nc_slaballoc(Slab *s);  /* NULL: no memory, nothing recorded */
void nc_slabfree(Slab *s, void *p);

/* "cpu has 3.0 GiB free", or what a limit leaves; in NC_TEXT bytes. */
char *nc_roomtext(char *buf);

#endif
