/* SPDX-License-Identifier: MIT */
/*
** probe.h - is there a driver that a build for CUDA `version' (13000) can use?
** Needs nothing of CUDA itself.
*/
#ifndef cuda_runtime_probe_h
#define cuda_runtime_probe_h

#include <signal.h>

#include "core/tensor.h"

#define NC_OLDEST 75          /* the least compute capability, times ten */

/* Fails with the reason.  code: what there is code for, as CMake lists it:
   "75-real 90" or "" (not known). */
int nc_probe(const Host *h, int version, const char *code);

/* Does `code' hold any for compute capability cc (times ten)?  It may be such
   that the driver has to compile it first. */
typedef enum Code { CODE_NONE, CODE_COMPILED, CODE_READY } Code;
Code nc_codefor(const char *code, int cc);

/* Around what makes a driver start threads: they take over the mask of signals
   that they find, and a Ctrl-C is for the thread that runs the program. */
void nc_holdsignals(sigset_t *before);
void nc_freesignals(const sigset_t *before);

#endif
