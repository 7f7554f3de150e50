/* SPDX-License-Identifier: MIT */
/*
** to_device.c - devices by name, copies between devices (to, cpu, cuda,
** pin_memory) and dtype conversion.
*/

#include <stdio.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"
#include "core/accelerator.h"
#include "core/ops.h"

/*
** Devices by name
*/

/* The name that "auto" stands for: "cuda" if a CUDA device is usable. */
static const char *best_device(void) {
  const Accelerator *a;
  return nc_accelerator(&a) == NC_OK ? "cuda" : nc_host()->name;
}

void nl_checkcuda(lua_State *L, int r, const char *op) {
  if (r != NC_OK) {
    nc_error_op(op);
    if (nc_open_accelerator() == NULL && nc_lasterror()->hint[0] == '\0')
      nc_hint("nacre --doctor explains; everything else works on the cpu");
  }
  nl_check(L, r);
}

const Device *nl_device(lua_State *L, int i, const char *op) {
  const Device *d;
  char name[32];
  const char *given = name;
  int r, isint = 0;
  const lua_Integer k =
      lua_type(L, i) == LUA_TNUMBER ? lua_tointegerx(L, i, &isint) : 0;
  if (isint) snprintf(name, sizeof name, "cuda:%lld", (long long)k);
  else if (lua_type(L, i) == LUA_TSTRING) given = lua_tostring(L, i);
  else return NULL;
  if (strcmp(given, "auto") == 0) given = best_device();
  r = nc_finddevice(&d, given);
  if (strncmp(given, "cuda", 4) == 0) nl_checkcuda(L, r, op);
  nl_check_as(L, r, op);
  return d;
}

/* True if d was given at index i as "cuda", without an ordinal. */
static int without_ordinal(lua_State *L, int i, const Device *d) {
  return d->ordinal >= 0 && lua_type(L, i) == LUA_TSTRING &&
         strchr(lua_tostring(L, i), ':') == NULL;
}

const Device *nl_needdevice(lua_State *L, int i, const char *op) {
  const Device *d = nl_device(L, i, op);
  if (d == NULL && lua_isnoneornil(L, i))
    nl_refuse(L, op, NL_MISSING("device"),
              "device is missing: a name or a number expected");
  if (d == NULL && lua_type(L, i) == LUA_TNUMBER)
    nl_error(L, op, "%s is not the number of a device", lua_tostring(L, i));
  if (d == NULL)
    nl_error(L, op, "a device is a name or a number, not a %s",
             nl_totensor(L, i) ? "tensor" : nl_typename(L, i));
  return d;
}

/* device("cuda:1"), device("cuda", 1), device(1): checks the name. "cuda"
   remains "cuda", because the current device may change before the name is
   used. */
static int device(lua_State *L) {
  const Device *d;
  if (lua_type(L, 1) == LUA_TSTRING && lua_isinteger(L, 2)) {
    lua_pushfstring(L, "%s:%I", lua_tostring(L, 1),
                    (LUAI_UACINT)lua_tointeger(L, 2));
    lua_replace(L, 1);
  }
  d = nl_needdevice(L, 1, "device");
  lua_pushstring(L, without_ordinal(L, 1, d) ? "cuda" : d->name);
  return 1;
}

static int set_default_device(lua_State *L) {
  const Device *d;
  if (lua_isnoneornil(L, 1)) d = nc_host();
  else d = nl_needdevice(L, 1, "set_default_device");
  nl_context(L)->device = without_ordinal(L, 1, d) ? NULL : d;
  return 0;
}

static int get_default_device(lua_State *L) {
  lua_pushstring(L, nc_default_device()->name);
  return 1;
}

static int get_device(lua_State *L) {
  lua_pushinteger(L, nc_device(nl_checktensor(L, 1))->ordinal);
  return 1;
}

/*
** Moves
*/
typedef struct Move {
  DType type;      /* DT_NONE: unchanged */
  const Device *d; /* NULL: unchanged */
  int how;         /* NC_NOWAIT or 0 */
  int copy;        /* copy even if nothing changes */
} Move;

/* Fills in the dtype and device of self where m does not specify them.
   [-0, +0, e] */
static Move fill_in(lua_State *L, Move m) {
  const Tensor *t = nl_checktensor(L, 1);
  if (m.type == DT_NONE) m.type = t->dtype;
  if (m.d == NULL) m.d = nc_device(t);
  return m;
}

/* Pushes self converted as m says, or self itself if nothing changes.
   [-?, +1, e] */
static int convert(lua_State *L, const char *op, Move m) {
  const Tensor *given = nl_checktensor(L, 1);
  Tensor *t, **there, **cast;
  int r, attempt = 0;
  m = fill_in(L, m);
  if (!m.copy && given->dtype == m.type && nc_device(given) == m.d) {
    lua_settop(L, 1);
    return 1;
  }
  there = nl_newbox(L);
  cast = nl_newbox(L);
  do {
    t = nl_checktensor(L, 1);
    nc_release(*there); /* the result of the first attempt */
    *there = NULL;
    r = nc_move(there, t, m.d, m.how);
    if (r == NC_OK)
      r = m.copy && *there == t && t->dtype == m.type
              ? nc_apply1(cast, OP_clone, t)
              : nc_cast(cast, *there, m.type);
  } while (nl_retry(L, r, attempt++));
  nl_check_op(L, r, op);
  nl_pace(L);
  return 1;
}

/* Sets what an argument says of m. [-0, +0, e] */
static void add_target(lua_State *L, Move *m, const Arg *a) {
  const DType type = a->t ? a->t->dtype : a->dtype;
  const Device *d = a->t ? nc_device(a->t) : a->device;
  if (type != DT_NONE && m->type != DT_NONE)
    nl_error(L, "to", "dtype is given twice");
  if (d && m->d) nl_error(L, "to", "device is given twice");
  if (type != DT_NONE) m->type = type;
  if (d) m->d = d;
}

static int to(lua_State *L) {
  Move m = { DT_NONE, NULL, 0, 0 };
  Args a;
  if (lua_gettop(L) <= 2 && lua_isnoneornil(L, 2))
    return nl_refuse(L, "to", NL_MISSING("target"),
                     "target is missing: a dtype, a device or a tensor "
                     "expected");
  nl_args(L, &a);
  add_target(L, &m, &a.arg[1]);
  add_target(L, &m, &a.arg[2]);
  add_target(L, &m, &a.arg[5]);
  add_target(L, &m, &a.arg[6]);
  m.how = a.arg[3].s.i ? NC_NOWAIT : 0;
  m.copy = (int)a.arg[4].s.i;
  return convert(L, "to", m);
}

int nl_convert_dtype(lua_State *L) {
  static Signature s;
  const DType type = (DType)nl_which(L);
  Args a;
  if (s.name == NULL) nc_parse_signature(&s, "to", "self");
  if (lua_gettop(L) > 1) nl_readargs(L, &s, &a);
  return convert(L, "to", (Move){ type, NULL, 0, 0 });
}

static int type_as(lua_State *L) {
  const Tensor *other;
  Args a;
  nl_args(L, &a);
  other = a.arg[1].t;
  return convert(L, "type_as", (Move){ other->dtype, nc_device(other), 0, 0 });
}

static int cpu(lua_State *L) {
  return convert(L, "cpu", (Move){ DT_NONE, nc_host(), 0, 0 });
}

#define CUDA "self, device:device=nil, non_blocking=false -> tensor"

static int cuda(lua_State *L) {
  const Device *d;
  Args a;
  nl_args(L, &a);
  d = a.arg[1].device;
  if (d == NULL) {
    int r = nc_finddevice(&d, "cuda");
    nl_checkcuda(L, r, "cuda");
  } else if (d->ordinal < 0)
    return nl_error(L, "cuda", "%s is not a CUDA device", d->name);
  return convert(L, "cuda",
                 (Move){ DT_NONE, d, a.arg[2].s.i ? NC_NOWAIT : 0, 0 });
}

/* t:pin_memory(): a copy in page-locked memory, or self if it is there.
   [-?, +1, e] */
static int pin_memory(lua_State *L) {
  Tensor **y;
  int r;
  nl_checktensor(L, 1);
  lua_settop(L, 1);
  y = nl_newbox(L);
  nl_try(L, r, nc_pin(y, nl_checktensor(L, 1)));
  if (r != NC_OK) nc_error_op("pin_memory");
  nl_check_self(L, r, "pin_memory");
  if (*y == nl_checktensor(L, 1)) lua_settop(L, 1);
  nl_pace(L);
  return 1;
}

int nl_pin(Tensor **box) {
  Tensor *y;
  TRY(nc_pin(&y, *box));
  nc_release(*box);
  *box = y;
  return NC_OK;
}

static int is_pinned(lua_State *L) {
  lua_pushboolean(L, nl_checktensor(L, 1)->data->pinned);
  return 1;
}

const Bound nl_to_device[] = {
  { "device", device, "name:any, ordinal:int=nil -> name",
    "checks the name of a device: \"cpu\", \"cuda:1\", 1 for \"cuda:1\"; "
    "\"cuda\" means the device that is current when it is used, \"auto\" a "
    "GPU if there is one, else the CPU",
    1 },
  { "set_default_device", set_default_device, "device:device=nil",
    "the device of new tensors whose device is not given; \"auto\" is the "
    "best one",
    1 },
  { "get_default_device", get_default_device, "-> device",
    "the device of new tensors whose device is not given", 1 },
  { "get_device", get_device, "self -> integer",
    "ordinal of the CUDA device, -1 for the CPU", 2 },
  { "to", to,
    "self, target:target|dtype|device=nil, "
    "other:target|dtype|device=nil, non_blocking=false, copy=false,"
    "*, dtype:dtype=nil, device:device=nil -> tensor",
    "converted to a dtype, a device or those of another tensor; self if "
    "nothing changes; non_blocking does not wait for a copy between a "
    "device and pinned memory",
    2 },
  { "type_as", type_as, "self, other -> tensor",
    "converted to the dtype and device of other", 2 },
  { "cpu", cpu, "self -> tensor", "on the CPU; self if it is already there",
    2 },
  { "cuda", cuda, CUDA,
    "on a CUDA device, the current one if none is given; self if already there",
    2 },
  { "pin_memory", pin_memory, "self -> tensor",
    "in page-locked memory, from which copies to a device are fast and can be "
    "asynchronous; self if it is already there",
    2 },
  { "record_stream", nl_recordstream, "self, stream:stream",
    "has no effect, exists for compatibility: the memory of a tensor is kept "
    "until every stream that uses it has finished",
    2 },
  { "is_pinned", is_pinned, "self -> boolean", "is it in page-locked memory?",
    2 },
  { NULL, NULL, NULL, NULL, 0 }
};
