/* SPDX-License-Identifier: MIT */
/* cpu.h - what the CPU does as a device; see devices.h for each. */
#ifndef cpu_h
#define cpu_h

#include "tensor.h"

int nc_cpurun(const Device *d, const Loop *k);
int nc_cpufold(const Loop *k);                /* a reduction */
int nc_cpulines(const Device *d, const LineCall *c);
int nc_cpulineforline(const LineCall *c);     /* softmax, cumsum, ... */
int nc_cpusequence(const Device *d, const Sequence *s);
int nc_cpuplaces(const Device *d, const Places *p);
int nc_cputrues(const Device *d, Tensor **y, const Trues *t);
int nc_cpugather(const Device *d, const Gather *g);
int nc_cpuscatter(const Device *d, const Gather *g);
int nc_cpuaccumulate(const Device *d, const Gather *g);
int nc_cpudraw(const Device *d, const Draw *w);
int nc_cpuproduct(const Device *d, const Product *p);

#endif
