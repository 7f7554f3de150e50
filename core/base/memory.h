/* SPDX-License-Identifier: MIT */
/*
** memory.h - slab allocators (memory.c): structs of one size, allocated in
** chunks that are never returned to the system.
*/
#ifndef core_base_memory_h
#define core_base_memory_h

#include <stddef.h>
#include <stdint.h>

#define SLAB_OBJECTS 64

typedef struct Slab {
  size_t size;                /* of an object */
  void *free, *chunks;
} Slab;

/* The size of the block that nc_hostalloc gives for `bytes'. */
int64_t nc_hostsize(int64_t bytes);

/* Keeps the list of large blocks, which begin with a page. */
void nc_note_large(void *p, int64_t bytes);
void nc_forget_large(const void *p);
/* From now on a fork copies no large block; with 0 it does. */
void nc_hide_large(int hide);

void *nc_slaballoc(Slab *s);  /* NULL: no memory, nothing recorded */
void nc_slabfree(Slab *s, void *p);

/* buf, of NC_TEXT bytes = "cpu has 3.0 GiB free", or what a limit leaves. */
char *nc_roomtext(char *buf);

#endif
