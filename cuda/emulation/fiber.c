/* SPDX-License-Identifier: MIT */
/*
** fiber.c - switches between stacks.  On x86-64 and AArch64 a few instructions
** save the callee-saved registers on the old stack and restore those of the new
** one.  Other processors use ucontext, which is slower, because it also saves
** the signal mask.
*/
#define _XOPEN_SOURCE 700
#include "cuda/emulation/fiber.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/shadow.h"

#if defined(__x86_64__)
void emu_fiber_swap(void **save, void *to)
    __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl emu_fiber_swap\n"
        ".hidden emu_fiber_swap\n"
        ".type emu_fiber_swap,@function\n"
        "emu_fiber_swap:\n"
        "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "  mov %rsp,(%rdi)\n"
        "  mov %rsi,%rsp\n"
        "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "  ret\n"
        ".size emu_fiber_swap,.-emu_fiber_swap\n");

static void prepare(Fiber *f, void (*entry)(void), char *end) {
  void **top = (void **)(void *)end - 8; /* registers, entry, null caller */
  memset(top, 0, 8 * sizeof *top);
  memcpy(&top[6], &entry, sizeof entry);
  f->top = top;
}

#elif defined(__aarch64__)
void emu_fiber_swap(void **save, void *to)
    __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl emu_fiber_swap\n"
        ".hidden emu_fiber_swap\n"
        ".type emu_fiber_swap,%function\n"
        "emu_fiber_swap:\n"
        "  sub sp,sp,#160\n"
        "  stp x19,x20,[sp]\n  stp x21,x22,[sp,#16]\n"
        "  stp x23,x24,[sp,#32]\n  stp x25,x26,[sp,#48]\n"
        "  stp x27,x28,[sp,#64]\n  stp x29,x30,[sp,#80]\n"
        "  stp d8,d9,[sp,#96]\n  stp d10,d11,[sp,#112]\n"
        "  stp d12,d13,[sp,#128]\n  stp d14,d15,[sp,#144]\n"
        "  mov x9,sp\n  str x9,[x0]\n  mov sp,x1\n"
        "  ldp x19,x20,[sp]\n  ldp x21,x22,[sp,#16]\n"
        "  ldp x23,x24,[sp,#32]\n  ldp x25,x26,[sp,#48]\n"
        "  ldp x27,x28,[sp,#64]\n  ldp x29,x30,[sp,#80]\n"
        "  ldp d8,d9,[sp,#96]\n  ldp d10,d11,[sp,#112]\n"
        "  ldp d12,d13,[sp,#128]\n  ldp d14,d15,[sp,#144]\n"
        "  add sp,sp,#160\n"
        "  ret\n"
        ".size emu_fiber_swap,.-emu_fiber_swap\n");

static void prepare(Fiber *f, void (*entry)(void), char *end) {
  void **top = (void **)(void *)(end - 160);
  memset(top, 0, 160);
  memcpy(&top[11], &entry, sizeof entry); /* x30, the return address */
  f->top = top;
}

#else
#define OTHER
#include <ucontext.h>

static void prepare(Fiber *f, void (*entry)(void), char *end) {
  ucontext_t *c = f->context = calloc(1, sizeof *c);
  if (c == NULL) abort();
  getcontext(c);
  c->uc_stack.ss_sp = (void *)f->stack;
  c->uc_stack.ss_size = (size_t)(end - (const char *)f->stack);
  makecontext(c, entry, 0);
}
#endif

void emu_fiber_make(Fiber *f, void *stack, size_t size, size_t offset,
                    void (*entry)(void)) {
  char *end = (char *)stack + size - offset;
  f->stack = stack;
  f->size = size;
  prepare(f, entry, (char *)((size_t)end & ~(size_t)63));
}

void emu_fiber_switch(Fiber *from, Fiber *to) {
  emu_shadow_leave(&from->fake, to->stack, to->size);
#ifdef OTHER
  if (from->context == NULL) from->context = calloc(1, sizeof(ucontext_t));
  if (from->context == NULL) abort();
  swapcontext(from->context, to->context);
#else
  emu_fiber_swap(&from->top, to->top);
#endif
  emu_shadow_arrive(from->fake, NULL, NULL);
}

void emu_fiber_started(Fiber *origin) {
  const void *stack;
  size_t size;
  emu_shadow_arrive(NULL, &stack, &size);
  if (origin->stack == NULL) {
    origin->stack = stack;
    origin->size = size;
  }
}
