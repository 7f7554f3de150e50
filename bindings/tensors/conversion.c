/* SPDX-License-Identifier: MIT */
/* conversion.c - converts numbers and nested tables to tensors (nacre.tensor),
   and tensors to tables and numbers (totable, item). */
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"
#include "bindings/tensors/complex_number.h"
#include "core/autograd.h"
#include "core/files.h"
#include "core/operators.h"
#include "core/ops.h"

/*
** Tables to tensors
*/
typedef struct Table { /* shape and category of a nested table */
  int nd;
  int64_t size[NC_MAXDIM];
  Category kind;
  DType dtype; /* requested, or float64 */
} Table;

/* Raises the error for a list at level d that has `got' elements.
   [-0, +0, v] */
static int fail_ragged(lua_State *L, const Table *t, int d, int64_t got) {
  return nl_error(L, "tensor",
                  "the table is ragged: %lld element%s at dim %d, "
                  "where others have %lld",
                  (long long)got, got == 1 ? "" : "s", d + 1,
                  (long long)t->size[d]);
}

/* Sets nd and size from the first element of each level of the table at index
   i. [-0, +0, e] */
static void read_shape(lua_State *L, int i, Table *t) {
  t->nd = 0;
  int top = lua_gettop(L);
  luaL_checkstack(L, 2 * NC_MAXDIM + 8, NULL);
  lua_pushvalue(L, i);
  while (lua_istable(L, -1)) {
    nl_plain_table(L, -1, 0);
    if (t->nd == NC_MAXDIM)
      nl_error(L, "tensor", "tables are nested deeper than %d", NC_MAXDIM);
    t->size[t->nd] = (int64_t)lua_rawlen(L, -1);
    if (t->size[t->nd++] == 0) break;
    lua_rawgeti(L, -1, 1);
  }
  lua_settop(L, top);
}

/* True if a string looks like the contents of a Python list: tensor[[1, 2]]
   passes the string "1, 2". */
static int is_python_list(const char *text) {
  return text[strspn(text, "0123456789.,+-eE []")] == '\0' &&
         strchr(text, ',') != NULL;
}

/* Stores v at *p as complex128, float64 or int64, and advances *p. */
static void store_number(char **p, Category kind, Scalar v) {
  const double parts[2] = { nc_tofloat(v), nc_imag(v) };
  const size_t size = kind == NC_COMPLEX ? 16 : 8;
  if (nc_is_exact_kind(kind)) memcpy(*p, &v.i, size);
  else memcpy(*p, parts, size);
  *p += size;
}

/* Visits every number of the value on top, which is at nesting level d. If p is
   NULL it checks the table and finds the category of the numbers; otherwise it
   stores each number at *p. [-0, +0, e] */
static void visit_numbers(lua_State *L, Table *t, int d, char **p) {
  Scalar v;
  if (d == t->nd) {
    if (lua_type(L, -1) == LUA_TSTRING) { /* tensor[[1, 2]] */
      nc_fail(NC_EVALUE, "an element is a string, not a number");
      nc_hint(
          is_python_list(lua_tostring(L, -1))
              ? "lists are written as tensor{{1, 2}, {3, 4}}; [[ ]] is a string"
              : "a tensor holds numbers and booleans; a table can hold "
                "strings");
      nl_check_op(L, NC_EVALUE, "tensor");
    }
    if (!nl_toscalar(L, -1, &v))
      nl_refuse(L, "tensor", NL_TYPE(L, NULL, -1),
                "an element is a%s %s, not a number",
                lua_isuserdata(L, -1) && !nl_totensor(L, -1) ? "n" : "",
                nl_totensor(L, -1) ? "tensor (nacre.stack joins tensors)"
                                   : nl_typename(L, -1));
    if (p == NULL) {
      if (v.kind > t->kind) t->kind = v.kind;
      return;
    }
    if (nc_is_integer(t->dtype) && nc_checkfits(v, t->dtype) != NC_OK)
      nl_check_as(L, NC_EVALUE, "tensor");
    store_number(p, t->kind, v);
    return;
  }
  if (!lua_istable(L, -1)) fail_ragged(L, t, d, 1);
  nl_plain_table(L, -1, 0);
  if ((int64_t)lua_rawlen(L, -1) != t->size[d])
    fail_ragged(L, t, d, (int64_t)lua_rawlen(L, -1));
  if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
  for (int64_t k = 1; k <= t->size[d]; k++) {
    if (lua_rawgeti(L, -1, k) == LUA_TNIL)
      nl_error(L, "tensor",
               "element %lld of a list is nil: a list has no holes",
               (long long)k);
    visit_numbers(L, t, d + 1, p);
    lua_pop(L, 1);
  }
  if (p == NULL) nl_checklist(L, "tensor", -1);
}

/* The dtype of a table for which none was requested. */
static DType infer_dtype(lua_State *L, const Table *t) {
  if (t->kind == NC_COMPLEX) return nc_complex_dtype(nl_context(L)->dtype);
  if (!nc_is_exact_kind(t->kind) || (t->nd && t->size[t->nd - 1] == 0))
    return nl_context(L)->dtype;
  return t->kind == NC_INT ? DT_i64 : DT_b8;
}

/* Stores the value at index 1 in *wide in the widest dtype of its kind. Returns
   the dtype that the value implies if none was requested. [-0, +0, e] */
static DType read_table(lua_State *L, Tensor **wide, DType requested) {
  static const DType widest[] = { DT_i64, DT_i64, DT_f64, DT_c128 };
  Table t = { .kind = NC_BOOL };
  t.dtype = requested == DT_NONE ? DT_f64 : requested;
  char *p;
  read_shape(L, 1, &t);
  lua_pushvalue(L, 1);
  visit_numbers(L, &t, 0, NULL);
  nl_try_as(L, "tensor", nc_new(wide, nc_host(), widest[t.kind], t.nd, t.size));
  p = nc_data(*wide);
  visit_numbers(L, &t, 0, &p);
  lua_pop(L, 1);
  return infer_dtype(L, &t);
}

/* *y = a copy of x that is not recorded. Returns a status. */
static int clone_unrecorded(Tensor **y, Tensor *x) {
  int r;
  nc_context->no_grad++;
  r = nc_apply1(y, OP_clone, x);
  nc_context->no_grad--;
  return r;
}

/* nacre.tensor(data, {dtype=, device=}). [-0, +1, e] */
static int tensor(lua_State *L) {
  Tensor **wide, **cast, **there, *given;
  const Device *d;
  DType type;
  Args a;
  nl_args(L, &a);
  given = nl_totensor(L, 1);
  wide = nl_newbox(L);
  if (given) {
    nl_try_as(L, "tensor", clone_unrecorded(wide, given));
    type = given->dtype;
  } else type = read_table(L, wide, a.arg[1].dtype);
  if (a.arg[1].dtype != DT_NONE) type = a.arg[1].dtype;
  d = a.arg[2].device ? a.arg[2].device
      : given         ? nc_device(given)
                      : nc_default_device();
  cast = there = nl_newbox(L);
  nl_try_as(L, "tensor", nc_cast(cast, *wide, type));
  if (nc_device(*cast) != d) {
    there = nl_newbox(L);
    nl_try_as(L, "tensor", nc_todevice(there, *cast, d));
  }
  if (a.pin) nl_try_as(L, "tensor", nl_pin(there));
  if (a.require) nl_try_as(L, "tensor", nc_set_requires_grad(*there, 1));
  nl_pace(L);
  return 1;
}

/*
** Tensors to tables
*/
/* Sets entries 1 to n of the table on top to elements of a type that Lua's
   numbers hold, `step' apart. */
#define ENTRIES(type, push)                    \
  for (int64_t i = 0; i < n; i++, x += step) { \
    push(L, *(const type *)x);                 \
    lua_rawseti(L, -2, first + i + 1);         \
  }
static int set_entries(lua_State *L, DType t, const char *x, int64_t step,
                       int64_t first, int64_t n) {
  switch (t) {
    case DT_f32: ENTRIES(float, lua_pushnumber) return 1;
    case DT_f64: ENTRIES(double, lua_pushnumber) return 1;
    case DT_i64: ENTRIES(int64_t, lua_pushinteger) return 1;
    case DT_i32: ENTRIES(int32_t, lua_pushinteger) return 1;
    case DT_u8: ENTRIES(uint8_t, lua_pushinteger) return 1;
    default: return 0;
  }
}
#undef ENTRIES

/* Pushes the vector at this offset along the last dimension as a table, unless
   its elements need a conversion. [-0, +(0|1), e] */
static int push_vector(lua_State *L, const Tensor *t, int64_t offset) {
  enum { PIECE = 4096 }; /* between two looks at nc_interrupted */
  const int64_t n = t->size[t->nd - 1], size = nc_dtypesize(t->dtype);
  const int64_t step = t->step[t->nd - 1] * size;
  const char *x = (const char *)nc_data(t) + offset * size;
  if (!set_entries(L, t->dtype, x, step, 0, 0)) return 0;
  lua_createtable(L, n < 1 << 26 ? (int)n : 0, 0);
  for (int64_t i = 0; i < n; i += PIECE) {
    if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
    set_entries(L, t->dtype, x + i * step, step, i,
                n - i < PIECE ? n - i : PIECE);
  }
  return 1;
}

/* Pushes the elements from dimension d on, at this offset, as nested tables.
   [-0, +1, e] */
static void push_level(lua_State *L, const Tensor *t, int d, int64_t offset) {
  if (d == t->nd) {
    Scalar v;
    nl_check(L, nc_read(&v, t, offset));
    nl_pushscalar(L, v);
    return;
  }
  if (d == t->nd - 1 && push_vector(L, t, offset)) return;
  lua_createtable(L, t->size[d] < 1 << 26 ? (int)t->size[d] : 0, 0);
  for (int64_t i = 0; i < t->size[d]; i++) {
    if (nc_interrupted) nl_check(L, nc_fail(NC_EINTR, "interrupted"));
    push_level(L, t, d + 1, offset + i * t->step[d]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* The number of table entries that totable creates: one for each element, or
   one for each empty list. */
static double table_entries(const Tensor *t) {
  double n = 1;
  for (int d = 0; d < t->nd && t->size[d] > 0; d++) n *= (double)t->size[d];
  return n;
}

/* t:totable(). Raises an error first if the table would not fit into memory.
   [-0, +1, e] */
static int totable(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1), **host;
  luaL_checkstack(L, 2 * NC_MAXDIM + 4, NULL);
  host = nl_newbox(L);
  if (table_entries(t) > 1 << 22 &&
      table_entries(t) > (double)nc_hostavailable() / 16) {
    nc_fail(NC_ENOMEM, "a table of %.15g entries does not fit into memory",
            table_entries(t));
    nl_check_self(L, NC_ENOMEM, "totable");
  }
  nl_check(L, nc_readable_elements(host, nl_checktensor(L, 1)));
  push_level(L, *host, 0, 0);
  nl_check(L, nc_fail_lost(*host)); /* a mapped file that became shorter */
  return 1;
}

static int item(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  Scalar v;
  nl_check_self(L, nc_item(&v, t), "item");
  nl_pushscalar(L, v);
  return 1;
}

/* _bounds(t): the least and the largest element, for checks of indices */
static int bounds(lua_State *L) {
  Call c = { .op = OPERATOR_aminmax };
  Scalar v[2];
  int r;
  for (int i = 0; i < NC_MAXARG; i++) c.arg[i].dtype = DT_NONE;
  c.arg[0].present = 1;
  c.arg[0].t = nl_checktensor(L, 1);
  r = nc_call(&c);
  for (int i = 0; i < 2 && r == NC_OK; i++) r = nc_item(&v[i], c.out[i]);
  for (int i = 0; i < 2; i++) nc_release(c.out[i]);
  nl_check(L, r);
  for (int i = 0; i < 2; i++) nl_pushscalar(L, v[i]);
  return 2;
}

/*
** _summary, for the display of large tensors
*/
static int summary(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  Summary s;
  nl_check(L, nc_summary(&s, t, luaL_optinteger(L, 2, 0)));
  lua_createtable(L, 0, 16);
#define INTEGER(f) nl_set_integer(L, #f, s.f)
#define NUMBER(f) nl_set_number(L, #f, s.f)
  INTEGER(n), INTEGER(nan), INTEGER(posinf), INTEGER(neginf), INTEGER(zero);
  INTEGER(seen), INTEGER(imin), INTEGER(imax), INTEGER(firstbad);
  NUMBER(min), NUMBER(max), NUMBER(mean), NUMBER(std);
#undef INTEGER
#undef NUMBER
  nl_set_boolean(L, "constant", s.constant);
  lua_createtable(L, 12, 0);
  for (int i = 0; i < 12; i++) {
    lua_pushinteger(L, s.histogram[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "histogram");
  return 1;
}

static int complex_number(lua_State *L) {
  nl_pushcomplex(L, luaL_checknumber(L, 1), luaL_checknumber(L, 2));
  return 1;
}

/* _bytes_text(n): "3.8 MiB" */
static int bytes_text(lua_State *L) {
  char text[NC_TEXT];
  lua_pushstring(L, nc_bytestext(text, luaL_checknumber(L, 1)));
  return 1;
}

const Bound nl_conversions[] = {
  { "tensor", tensor,
    "data:any, *, dtype:dtype=nil, device:device=nil -> tensor",
    "a tensor of a number or of nested tables; integers give int64, "
    "others the default float dtype, true and false bool",
    1 },
  { "totable", totable, "self -> table",
    "the elements as nested tables; integers stay exact", 2 },
  { "tolist", totable, "self -> table", "the same as totable", 2 },
  { "item", item, "self -> number", "the value of a tensor of one element", 2 },
  { "_bounds", bounds, "self -> low, high", "", 1 },
  { "_summary", summary, "self, limit:int=0 -> table", "statistics for display",
    1 },
  { "_complex_number", complex_number, "re:num, im:num -> complex number", "",
    1 },
  { "_bytes_text", bytes_text, "n:num -> string", "a size as text", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
