/* SPDX-License-Identifier: MIT */
/*
** stacks.h - where the stacks of emulated threads are: a kernel may touch
** them freely.
*/
#ifndef cuda_emulation_stacks_h
#define cuda_emulation_stacks_h

#include <stddef.h>

extern char *emu_stacks;
extern size_t emu_stackssize;

#endif
