/* SPDX-License-Identifier: MIT */
/*
** fiber.h - fibers: several stacks on one host thread; used by block.c.
*/
#ifndef cuda_emulation_fiber_h
#define cuda_emulation_fiber_h

#include <stddef.h>

typedef struct Fiber {
  void *top;                 /* its stack pointer, while suspended */
  const void *stack;
  size_t size;
  void *fake;                /* fake stack of AddressSanitizer */
  void *context;             /* ucontext, if that is used */
} Fiber;

/* Prepares a fiber that runs `entry', which must call emu_fiber_started first
   and must not return.  The stack pointer starts `offset' bytes below the end
   of the stack.  The caller owns the stack. */
void emu_fiber_make(Fiber *f, void *stack, size_t size, size_t offset,
                    void (*entry)(void));
/* Suspends `from', which is running, and continues `to'. */
void emu_fiber_switch(Fiber *from, Fiber *to);
/* `origin' is the fiber of the host's own stack. */
void emu_fiber_started(Fiber *origin);

#endif
