/* SPDX-License-Identifier: MIT */
/* defaults.h - what the settings tell the shell. */
#ifndef bindings_defaults_h
#define bindings_defaults_h

#include <stddef.h>

/* text = what computes on the CPU, a line each: threads, loops, libraries. */
void nl_configtext(char *text, size_t size);

#endif
