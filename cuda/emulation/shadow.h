/* SPDX-License-Identifier: MIT */
/*
** shadow.h - the shadow memory of a build variant, which the emulator informs
** of all allocations and of its own accesses.  Each build links shadow_poison.c
** or shadow_check.c.  The ranges that are grown, allocated, freed or reused are
** in the arenas (emu_arenas) and begin at multiples of 256.
*/
#ifndef cuda_emulation_shadow_h
#define cuda_emulation_shadow_h

#include <stddef.h>
#include <stdint.h>

struct Op;

int emu_shadow_start(void);    /* after the arenas; -1: out of memory */
void emu_shadow_grow(const void *p, size_t n);      /* new, inaccessible */
void emu_shadow_alloc(const void *p, size_t n);     /* accessible, undefined */
void emu_shadow_free(const void *p, size_t n);      /* inaccessible */
/* The range becomes accessible; this counts as a write by the running
   operation, but the contents are undefined. */
void emu_shadow_reuse(const void *p, size_t n);
/* The running operation left the range undefined. */
void emu_shadow_undefine(const void *p, size_t n);
/* An operation was queued: number `seq' of its stream. */
void emu_shadow_queued(const struct Op *op, int stream, uint32_t seq);
/* The running operation accesses the range. */
void emu_shadow_touch(const void *p, size_t n, int write);

/* Shared memory: a new block begins, the n bytes at p are inaccessible again; a
   variable of the block is placed at p. */
void emu_shadow_block(void *p, size_t n);
void emu_shadow_shared(void *p, size_t n);

int emu_shadow_ishost(const void *p);         /* surely memory of the host? */

/* Called before and after each switch of fibers. */
void emu_shadow_leave(void **fake, const void *stack, size_t size);
void emu_shadow_arrive(void *fake, const void **stack, size_t *size);

#endif
