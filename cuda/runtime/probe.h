/* SPDX-License-Identifier: MIT */
/*
** probe.h - tests for a usable NVIDIA driver and for code that the devices can
** run.  It does not use CUDA itself.
*/
#ifndef cuda_runtime_probe_h
#define cuda_runtime_probe_h

#include <signal.h>

#include "core/host.h"

#define NC_OLDEST 75          /* minimum compute capability, times ten */

/* Fails, with the reason, if this build cannot use the driver or the devices.
   version: that of CUDA, as in 13000.  code: the architectures of the build, as
   in CMAKE_CUDA_ARCHITECTURES: "75-real 90"; "" if they are unknown. */
int nc_probe(const Host *h, int version, const char *code);

/* Does `code' contain code for compute capability cc (times ten)?
   CODE_COMPILED: only PTX, which the driver must compile first. */
typedef enum Code { CODE_NONE, CODE_COMPILED, CODE_READY } Code;
Code nc_codefor(const char *code, int cc);

/* Block signals around calls in which the driver starts threads.  New threads
   inherit the signal mask, and SIGINT must go to the thread that runs the
   program.  Signals of faults stay enabled. */
void nc_holdsignals(sigset_t *before);
void nc_freesignals(const sigset_t *before);

#endif
