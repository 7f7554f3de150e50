/* SPDX-License-Identifier: MIT */
/*
** fiber.h - several stacks on one thread of the host.
*/
#ifndef cuda_emulation_fiber_h
#define cuda_emulation_fiber_h

#include <stddef.h>

typedef struct Fiber {
  void *top;                 /* where it stopped */
  const void *stack;
  size_t size;
  void *fake;                /* AddressSanitizer's */
  void *context;             /* where there is no code for the processor */
} Fiber;

/* The fiber starts in `entry', which must call emu_fiber_started and must not
   return; its stack begins `offset' bytes below the end. */
void emu_fiber_make(Fiber *f, void *stack, size_t size, size_t offset,
                    void (*entry)(void));
void emu_fiber_switch(Fiber *from, Fiber *to);
/* `origin' is the fiber that the whole began on. */
void emu_fiber_started(Fiber *origin);

#endif
