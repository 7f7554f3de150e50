/* SPDX-License-Identifier: MIT */
/*
** stacks.h - where the stacks of emulated threads are: a kernel may touch
** them freely.
*/
#ifndef stacks_h
#define stacks_h

#include <stddef.h>

extern char *emu_stacks;
extern size_t emu_stackssize;

#endif
