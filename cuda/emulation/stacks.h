/* SPDX-License-Identifier: MIT */
/*
** stacks.h - the address range of the stacks of emulated threads, which kernels
** may access freely.  block.c maps it; shadow_check.c reads it.
*/
#ifndef cuda_emulation_stacks_h
#define cuda_emulation_stacks_h

#include <stddef.h>

extern char *emu_stacks;
extern size_t emu_stackssize;

#endif
