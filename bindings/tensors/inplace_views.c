/* SPDX-License-Identifier: MIT */
/*
** inplace_views.c - methods that change the shape or the storage of a tensor in
** place: transpose_, squeeze_, resize_, set_ and so on.
**
** The userdata receives another core tensor. Other references to the old one
** (views, graphs, lists) see no change.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"
#include "core/autograd.h"
#include "core/operators.h"

/* Returns whether t is a leaf that requires a gradient. [-0, +0, e] */
static int is_required_leaf(lua_State *L, Tensor *t) {
  int leaf, required;
  nl_check(L, nc_isleaf(&leaf, t));
  nl_check(L, nc_get_requires_grad(&required, t));
  return leaf && required;
}

/* Raises an error if self (index 1) is a leaf that requires a gradient, and
   operations are recorded. [-0, +0, e] */
static void check_replaceable(lua_State *L, const char *name) {
  if (nl_context(L)->no_grad == 0 &&
      is_required_leaf(L, *(Tensor **)lua_touserdata(L, 1)))
    nl_error(L, name,
             "a leaf that requires a gradient cannot be changed in place");
}

/* Swaps the tensors of self (index 1) and of the userdata on top, and leaves
   only self on the stack. [-?, +1, -] */
static int swap_self(lua_State *L) {
  Tensor **self = lua_touserdata(L, 1), **y = lua_touserdata(L, -1), *old;
  old = *self;
  *self = *y;
  *y = old;
  lua_settop(L, 1);
  return 1;
}

/* The same, unless check_replaceable raises an error. [-?, +1, e] */
static int replace_self(lua_State *L, const char *name) {
  check_replaceable(L, name);
  return swap_self(L);
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
  nl_check(L, nc_get_requires_grad(&required, x));
  if (required)
    return nl_error(L, op,
                    "a tensor that requires a gradient cannot be resized");
  y = nl_newbox(L);
  r = new_size(y, x, nd, size);
  nl_check_as(L, r, op);
  return replace_self(L, op);
}

static int resize(lua_State *L) {
  Args a;
  nl_args(L, &a);
  return resize_to(L, "resize_", a.arg[0].t, a.arg[1].n, a.arg[1].list);
}

static int resize_as(lua_State *L) {
  Args a;
  nl_args(L, &a);
  return resize_to(L, "resize_as_", a.arg[0].t, a.arg[1].t->nd,
                   a.arg[1].t->size);
}

/* True if both tensors share storage, offset, sizes and strides. */
static int is_set_to(lua_State *L) {
  const Tensor *x, *y;
  Args a;
  int same;
  nl_args(L, &a);
  x = a.arg[0].t;
  y = a.arg[1].t;
  same = x->data == y->data && x->dtype == y->dtype && x->nd == y->nd &&
         x->offset == y->offset;
  for (int d = 0; same && d < x->nd; d++)
    same = x->size[d] == y->size[d] && x->step[d] == y->step[d];
  lua_pushboolean(L, same);
  return 1;
}

/* Returns whether g can be the gradient of t. */
static int is_gradient_of(const Tensor *g, const Tensor *t) {
  int same =
      g->dtype == t->dtype && nc_device(g) == nc_device(t) && g->nd == t->nd;
  for (int d = 0; same && d < t->nd; d++) same = g->size[d] == t->size[d];
  return same;
}

/* Makes self (index 1) a tensor that shows the storage of source, without its
   history. If self is a leaf that requires a gradient, it stays one, and keeps
   its gradient where that still fits. [-?, +1, e] */
static int adopt(lua_State *L, const char *op, Tensor *source) {
  Tensor *self = nl_checktensor(L, 1), *g = nc_grad(self), **y = nl_newbox(L);
  int r;
  nl_try(L, r, nc_detach(y, source));
  nl_check(L, r);
  if (is_required_leaf(L, self)) {
    nl_try_self(L, op, nc_set_requires_grad(*y, 1));
  }
  if (g && is_gradient_of(g, *y)) nl_check_self(L, nc_setgrad(*y, g), op);
  return swap_self(L);
}

/* set_(source): self shows source's storage from now on. */
static int set(lua_State *L) {
  Args a;
  nl_args(L, &a);
  check_replaceable(L, "set_");
  return adopt(L, "set_", a.arg[1].t);
}

int nl_setdata(lua_State *L) {
  if (!nl_istensor(L, 3))
    return nl_error(L, "", "data must be a tensor, not a %s",
                    nl_typename(L, 3));
  return adopt(L, "data", nl_checktensor(L, 3));
}

const Bound nl_inplace_views[] = {
  { "transpose_", transpose, "self, dim0:dim, dim1:dim -> tensor",
    "swaps two dimensions of self, not its memory", 2 },
  { "swapdims_", swapdims, "self, dim0:dim, dim1:dim -> tensor",
    "swaps two dimensions of self, like transpose_", 2 },
  { "swapaxes_", swapaxes, "self, axis0:dim, axis1:dim -> tensor",
    "swaps two dimensions of self, like transpose_", 2 },
  { "t_", t, "self -> tensor", "transposes the matrix self in place", 2 },
  { "squeeze_", squeeze, "self, dim:dims=nil -> tensor",
    "removes dimensions of size 1 from self", 2 },
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
    "gives self the shape of other, like resize_", 2 },
  { "is_set_to", is_set_to, "self, tensor -> boolean",
    "do both show the same memory, with the same offset, sizes and strides?",
    2 },
  { "set_", set, "self, source -> tensor",
    "shows the memory of source from now on", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
