/* SPDX-License-Identifier: MIT */
/*
** probe.h - is there a driver that a build for CUDA `version' (13000) can use?
** Needs nothing of CUDA itself.
*/
#ifndef probe_h
#define probe_h

#include "tensor.h"

#define NC_OLDEST 75          /* the least compute capability, times ten */

int nc_probe(const Host *h, int version);   /* fails with the reason */

#endif
