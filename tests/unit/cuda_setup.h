/* SPDX-License-Identifier: MIT */
/*
** cuda_setup.h - the plug-in's runtime on the emulated device, for its tests:
** they are linked with it, and so reach what a program does not.
*/
#ifndef cuda_setup_h
#define cuda_setup_h

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

PluginEntry nacre_plugin;

#define ok(call) assert_int_equal(call, NC_OK)
#define says(words) assert_non_null(strstr(nc_lasterror()->text, words))

/* What stream `s' does next waits for what `other' has been given. */
static inline int inorder(const Accelerator *a, Stream *s, Stream *other) {
  Event *e;
  int r = a->newevent(&e, 0);
  if (r == NC_OK) r = a->record(e, other);
  if (r == NC_OK) r = a->after(s, e);
  a->freeevent(e);
  return r;
}

#endif
