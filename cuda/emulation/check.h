/* SPDX-License-Identifier: MIT */
/*
** check.h - the interface between tsan.c, which the compiler's instrumentation
** calls, and shadow_check.c, which checks the accesses.
*/
#ifndef cuda_emulation_check_h
#define cuda_emulation_check_h

#include <stddef.h>

/* Checks an access of n bytes at p.  aligned: p must be a multiple of n. */
void emu_check_access(const void *p, size_t n, int write, int aligned);

#endif
