/* SPDX-License-Identifier: MIT */
/*
** check.h - between tsan.c, which the compiler's callbacks reach, and
** shadow_check.c, which judges.
*/
#ifndef cuda_emulation_check_h
#define cuda_emulation_check_h

#include <stddef.h>

/* `aligned': the access wants an address that its size divides. */
void emu_check_access(const void *p, size_t n, int write, int aligned);

#endif
