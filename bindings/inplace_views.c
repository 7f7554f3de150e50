/* SPDX-License-Identifier: MIT */
/*
** inplace_views.c - methods that change the shape or the storage of a tensor in
** place: transpose_, squeeze_, resize_, set_ and so on.
**
** The userdata receives another core tensor. Other references to the old one
** (views, graphs, lists) see no change.
*/

#include <string.h>

#include "bindings/binding.h"

/* Swaps the tensors of self (index 1) and of the userdata on top, and leaves
   only self on the stack. Raises an error if self is a leaf that requires a
   gradient. */
static int replace_self(lua_State *L, const char *name) {
  Tensor **self = lua_touserdata(L, 1), **y = lua_touserdata(L, -1), *old;
  int leaf, required;
  nl_check(L, nc_isleaf(&leaf, *self));
  nl_check(L, nc_requires(&required, *self));
  if (leaf && required && nl_context(L)->no_grad == 0)
    return nl_error(L, name,
                    "a leaf that requires a gradient cannot be "
                    "changed in place");
  old = *self;
  *self = *y;
  *y = old;
  lua_settop(L, 1);
  return 1;
}

/* Applies the view operator f to the arguments and stores the result in self.
   [-?, +1, e] */
static int apply_view(lua_State *L, const char *name, Operator f) {
  nl_checktensor(L, 1);
  nl_closure(L, nl_call_operator, f);
  lua_pushvalue(L, 1);
  lua_rotate(L, 2, 2);
  lua_call(L, lua_gettop(L) - 2, 1);
  if (lua_rawequal(L, 1, -1)) return 1; /* no change */
  return replace_self(L, name);
}

#define VIEW_IN_PLACE(name)                           \
  static int name(lua_State *L) {                     \
    return apply_view(L, #name "_", OPERATOR_##name); \
  }
VIEW_IN_PLACE(transpose)
VIEW_IN_PLACE(swapdims)
VIEW_IN_PLACE(swapaxes)
VIEW_IN_PLACE(t)
VIEW_IN_PLACE(squeeze)
VIEW_IN_PLACE(unsqueeze)
VIEW_IN_PLACE(as_strided)

/* Copies to the vector y what the storage of x contains from x's first element
   on, as many elements as both have. Returns a status. */
static int copy_storage(Tensor *y, const Tensor *x) {
  const int64_t have = x->data->bytes / nc_dtypesize(x->dtype) - x->offset;
  Tensor *from = NULL, *to = NULL;
  int r;
  if ((r = nc_alias(&from, x)) == NC_OK && (r = nc_alias(&to, y)) == NC_OK) {
    from->nd = to->nd = 1;
    from->step[0] = to->step[0] = 1;
    to->size[0] = nc_numel(y) < have ? nc_numel(y) : have;
    from->size[0] = to->size[0];
    r = nc_copy(to, from);
  }
  nc_release(from);
  nc_release(to);
  return r;
}

/* *y = the storage of x with another shape, or a copy of it in a larger
   storage. Returns a status. */
static int new_size(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  const int64_t have = x->data->bytes / nc_dtypesize(x->dtype) - x->offset;
  int64_t n, step = 1;
  int r;
  TRY(nc_checksize(&n, x->dtype, nd, size));
  if (n > have) {
    if (x->dtype == DT_b8) /* uninitialized bytes may not be valid booleans */
      TRY(nc_full(y, nc_device(x), x->dtype, nd, size, nc_int(0)));
    else TRY(nc_new(y, nc_device(x), x->dtype, nd, size));
    if (have <= 0 || (r = copy_storage(*y, x)) == NC_OK) return NC_OK;
    nc_release(*y);
    *y = NULL;
    return r;
  }
  TRY(nc_alias(y, x));
  (*y)->nd = nd;
  for (int d = nd - 1; d >= 0; d--) {
    (*y)->size[d] = size[d];
    (*y)->step[d] = step;
    step *= size[d] > 1 ? size[d] : 1;
  }
  return NC_OK;
}

/* Resizes the tensor x at index 1 in place. [-?, +1, e] */
static int resize_to(lua_State *L, const char *op, Tensor *x, int nd,
                     const int64_t size[]) {
  Tensor **y;
  int required, r;
  nl_check(L, nc_requires(&required, x));
  if (required)
    return nl_error(L, op,
                    "a tensor that requires a gradient cannot be resized");
  y = nl_newbox(L);
  r = new_size(y, x, nd, size);
  nl_check_as(L, r, op);
  return replace_self(L, op);
}

static int resize(lua_State *L) {
  static Signature s;
  Args a;
  nl_args(L, &s, "resize_", "self, size:size -> tensor", &a);
  return resize_to(L, "resize_", a.arg[0].t, a.arg[1].n, a.arg[1].list);
}

static int resize_as(lua_State *L) {
  static Signature s;
  Args a;
  nl_args(L, &s, "resize_as_", "self, other -> tensor", &a);
  return resize_to(L, "resize_as_", a.arg[0].t, a.arg[1].t->nd,
                   a.arg[1].t->size);
}

/* True if both tensors share storage, offset, sizes and strides. */
static int is_set_to(lua_State *L) {
  static Signature s;
  const Tensor *x, *y;
  Args a;
  int same;
  nl_args(L, &s, "is_set_to", "self, tensor -> boolean", &a);
  x = a.arg[0].t;
  y = a.arg[1].t;
  same = x->data == y->data && x->dtype == y->dtype && x->nd == y->nd &&
         x->offset == y->offset;
  for (int d = 0; same && d < x->nd; d++)
    same = x->size[d] == y->size[d] && x->step[d] == y->step[d];
  lua_pushboolean(L, same);
  return 1;
}

/* set_(source): self becomes a view of source's storage, without its history.
   The dtypes must be equal. */
static int set(lua_State *L) {
  static Signature s;
  Tensor **y;
  Args a;
  nl_args(L, &s, "set_", "self, source -> tensor", &a);
  y = nl_newbox(L);
  if (a.arg[0].t->dtype != a.arg[1].t->dtype)
    return nl_error(L, "set_", "self is %s, source is %s",
                    nc_dtypename(a.arg[0].t->dtype),
                    nc_dtypename(a.arg[1].t->dtype));
  nl_check(L, nc_detach(y, a.arg[1].t));
  return replace_self(L, "set_");
}

const Bound nl_inplace_views[] = {
  { "transpose_", transpose, "self, dim0:dim, dim1:dim -> tensor",
    "swaps two dimensions of self, not its memory", 2 },
  { "swapdims_", swapdims, "self, dim0:dim, dim1:dim -> tensor",
    "swaps two dimensions of self, as transpose_", 2 },
  { "swapaxes_", swapaxes, "self, axis0:dim, axis1:dim -> tensor",
    "swaps two dimensions of self, as transpose_", 2 },
  { "t_", t, "self -> tensor", "transposes the matrix self in place", 2 },
  { "squeeze_", squeeze, "self, dim:dims=nil -> tensor",
    "takes dimensions of size 1 from self", 2 },
  { "unsqueeze_", unsqueeze, "self, dim:dim -> tensor",
    "puts a dimension of size 1 into self", 2 },
  { "as_strided_", as_strided,
    "self, size:ints, stride:ints, storage_offset:int=nil -> tensor",
    "shows the memory of self with these sizes and strides", 2 },
  { "resize_", resize, "self, size:size -> tensor",
    "gives self another shape and as much memory as that needs; what is new "
    "is not set",
    2 },
  { "resize_as_", resize_as, "self, other -> tensor",
    "gives self the shape of other, as resize_", 2 },
  { "is_set_to", is_set_to, "self, tensor -> boolean",
    "do both show the same memory, with the same offset, sizes and strides?",
    2 },
  { "set_", set, "self, source -> tensor",
    "shows the memory of source from now on", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
