/* SPDX-License-Identifier: MIT */
/*
** shadow.h - what a flavour of the emulation knows of memory.  One of
** shadow_plain.c (nothing), shadow_asan.c and shadow_check.c is linked.
** Arenas are in one range (emu_arenas); ranges begin at multiples of 256.
*/
#ifndef cuda_emulation_shadow_h
#define cuda_emulation_shadow_h

#include <stddef.h>
#include <stdint.h>

int emu_shadow_start(void);    /* the arenas exist; -1: no memory */
void emu_shadow_grow(const void *p, size_t n);      /* new, for nobody yet */
void emu_shadow_alloc(const void *p, size_t n);     /* usable, undefined */
void emu_shadow_free(const void *p, size_t n);
/* Usable again: as if the operation at work wrote it, but undefined. */
void emu_shadow_reuse(const void *p, size_t n);
/* The operation at work left the range undefined. */
void emu_shadow_undefine(const void *p, size_t n);
/* An operation was queued; ids count from 1, the name is never freed. */
void emu_shadow_queued(uint32_t id, const char *name, int stream,
                       uint32_t seq);
/* The operation at work touches the range. */
void emu_shadow_touch(const void *p, size_t n, int write);

void emu_shadow_block(void *p, size_t n);     /* n bytes of the shared arena
                                                 are nobody's again */
void emu_shadow_shared(void *p, size_t n);    /* a variable of the block */

int emu_shadow_ishost(const void *p);         /* surely the host's own? */

/* The stack of fibers, around every switch. */
void emu_shadow_leave(void **fake, const void *stack, size_t size);
void emu_shadow_arrive(void *fake, const void **stack, size_t *size);

#endif
