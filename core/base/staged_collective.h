/* SPDX-License-Identifier: MIT */
/* staged_collective.h - operations on tensors of a device, through the host. */
#ifndef core_base_staged_collective_h
#define core_base_staged_collective_h

#include "core/tensor.h"
#include "core/transport.h"

/* Can the operation go in parts? */
int nc_can_stage_in_parts(const Coll *c);
/* Does it; c was announced. */
int nc_stage_in_parts(const Coll *c, const Device *d);

#endif
