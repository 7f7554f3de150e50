/* SPDX-License-Identifier: MIT */
/* lua_devices.h - devices by name, and the functions of nacre.cuda. */
#ifndef bindings_lua_devices_h
#define bindings_lua_devices_h

#include "bindings/binding.h"

typedef struct Accelerator Accelerator; /* core/accelerator.h */

/* The device that the name or ordinal at index i stands for; NULL for another
   type of value. Raises an error if the device cannot be used.
   [-0, +0, e] */
const Device *nl_device(lua_State *L, int i, const char *op);
/* As nl_device; raises an error instead of returning NULL. [-0, +0, e] */
const Device *nl_needdevice(lua_State *L, int i, const char *op);
/* Moves the tensor of a userdata to page-locked memory. Returns a status. */
int nl_pin(Tensor **box);
/* As nl_check, with a hint if the plug-in cannot be opened. [-0, +0, e] */
void nl_checkcuda(lua_State *L, int r, const char *op);
/* t:float() and so on; upvalue 1 is the dtype. */
int nl_convert_dtype(lua_State *L);
/* Raises, with the nearest name, if there is no such dtype. [-0, +0, e] */
DType nl_dtype_named(lua_State *L, const char *op, const char *name);

/* Pushes nacre.cuda or nacre.backends; returns 0, with nothing pushed, for
   another name. [-0, +(0|1), e] */
int nl_pushtable(lua_State *L, const char *name);
/* The plug-in, opened if necessary; raises its error. [-0, +0, e] */
const Accelerator *nl_accelerator(lua_State *L, const char *op);
/* The ordinal of the CUDA device at index i; for none or nil, that of the
   current device. [-0, +0, e] */
int nl_ordinal(lua_State *L, int i, const char *op);

int nl_empty_cache(lua_State *L);             /* defaults.c */
int nl_raw_kernel(lua_State *L);              /* cuda_kernels.c */
int nl_newstream(lua_State *L);               /* cuda_streams.c */
int nl_newevent(lua_State *L);
int nl_withstream(lua_State *L);
int nl_recordstream(lua_State *L);
int nl_setstream(lua_State *L);
int nl_currentstream(lua_State *L);
int nl_defaultstream(lua_State *L);
/* Pushes a userdata whose __close restores the device that is current now, and
   the current stream of device i. [-0, +1, m] */
void nl_push_restore(lua_State *L, int i);

#endif
