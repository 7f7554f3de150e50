/* SPDX-License-Identifier: MIT */
/*
** code_cache.h - compiled code on disk, a file each in the folder
** nacre/kernels of the user's cache ($XDG_CACHE_HOME, ~/.cache).  The key is
** all that the code depends on: its text, options, architecture, and compiler.
*/
#ifndef cuda_fusion_code_cache_h
#define cuda_fusion_code_cache_h

#include <stddef.h>

/* Sets *image, of malloc, if the code is there and whole. */
int nc_cached_code(const char *key, char **image, size_t *size);
/* Keeps it, if that is possible. */
void nc_cache_code(const char *key, const char *image, size_t size);

#endif
