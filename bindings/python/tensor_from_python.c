/* SPDX-License-Identifier: MIT */
/*
** tensor_from_python.c - tensors of memory that objects of Python own, by the
** buffer protocol (NumPy, array, bytes, memoryview) or by DLPack (PyTorch, JAX,
** CuPy). The storage holds the object until no tensor uses it.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/python/dlpack.h"
#include "bindings/python/interpreter.h"
#include "core/files.h"

#define OP "py.tensor"
#define COPY "copy it in Python first: a:copy(), numpy.ascontiguousarray(a)"

typedef struct Foreign {
  Owner owner; /* the first field, see nc_newowned */
  Py_buffer buffer;
  DLManagedTensor *old;
  DLManagedTensorVersioned *new;
} Foreign;

/* What is shared. */
typedef struct Elements {
  void *p;
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
} Elements;

/* After the end of Python its memory is left to the end of the process. */
static void release(Owner *o) {
  Foreign *f = (Foreign *)o;
  if (nl_python_runs()) {
    nl_hold(NULL);
    if (f->buffer.obj) py.PyBuffer_Release(&f->buffer);
    if (f->old && f->old->deleter) f->old->deleter(f->old);
    if (f->new && f->new->deleter) f->new->deleter(f->new);
    nl_unhold();
  }
  free(f);
}

/* A userdata that owns the Foreign until a tensor does. */
static int abandon(lua_State *L) {
  Foreign **f = lua_touserdata(L, 1);
  if (*f) release(&(*f)->owner);
  *f = NULL;
  return 0;
}

static Foreign **new_foreign(lua_State *L) {
  Foreign **f = nl_newowner(L, sizeof *f, "nacre.python_memory", abandon);
  *f = calloc(1, sizeof **f);
  if (*f == NULL) luaL_error(L, "not enough memory");
  (*f)->owner.release = release;
  return f;
}

/*
** Dtypes
*/
/* Of the format of a buffer, in the notation of the module struct. */
static DType buffer_dtype(const Py_buffer *b) {
  const char *s = b->format ? b->format : "B";
  const int swapped = nc_bigendian() ? *s == '<' : *s == '>' || *s == '!';
  if (*s && strchr("@=<>!", *s)) s++;
  const int complex = *s == 'Z';
  s += complex;
  if (s[0] == '\0' || s[1] != '\0' || (swapped && b->itemsize > 1))
    return DT_NONE;
  const char kind = strchr("efd", *s)      ? complex ? 'c' : 'f'
                    : complex              ? 0
                    : *s == '?'            ? 'b'
                    : strchr("bhilqn", *s) ? 'i'
                    : strchr("BHILQN", *s) ? 'u'
                                           : 0;
  return nc_dtypeof(kind, b->itemsize);
}

static DType dlpack_dtype(const DLTensor *t) {
  if (t->dtype.lanes != 1 || t->dtype.bits % 8 ||
      t->dtype.code >= sizeof DL_KINDS)
    return DT_NONE;
  return nc_dtypeof(DL_KINDS[t->dtype.code], t->dtype.bits / 8);
}

/* [-0, +0, v] */
static int refuse(lua_State *L, const char *why, const char *hint) {
  nc_fail(NC_EVALUE, "%s", why);
  nc_hint("%s", hint);
  return nl_check_as(L, NC_EVALUE, OP);
}

static void refuse_dtype(lua_State *L, const char *name) {
  char why[128];
  snprintf(why, sizeof why, "no dtype of Nacre has elements of the type %s",
           name);
  refuse(L, why, "convert it in Python first: a:astype(\"float32\")");
}

static void check_dims(lua_State *L, int64_t nd) {
  char why[80];
  snprintf(why, sizeof why,
           "it has %lld dimensions, but a tensor has at most "
           "%d",
           (long long)nd, NC_MAXDIM);
  if (nd > NC_MAXDIM) refuse(L, why, "a:reshape(...) joins some of them");
}

/* Memory of these elements must suit the tensors of Nacre. */
static void check_elements(lua_State *L, const Elements *e) {
  const int64_t bytes = nc_dtypesize(nc_real_dtype(e->dtype));
  int64_t n = 1;
  for (int d = 0; d < e->nd; d++) n *= e->size[d];
  for (int d = 0; n > 0 && d < e->nd; d++)
    if (e->step[d] < 0 && e->size[d] > 1)
      refuse(L, "a stride is negative, which a tensor does not support", COPY);
  if (n > 0 && (uintptr_t)e->p % (uintptr_t)bytes != 0)
    refuse(L, "its elements are not aligned", COPY);
}

/*
** The buffer protocol
*/
static void read_buffer(lua_State *L, Foreign *f, Elements *e) {
  const Py_buffer *b = &f->buffer;
  e->p = b->buf;
  e->dtype = buffer_dtype(b);
  if (e->dtype == DT_NONE) refuse_dtype(L, b->format);
  check_dims(L, b->ndim);
  e->nd = b->ndim;
  for (int d = 0; d < b->ndim; d++) {
    e->size[d] = b->shape[d];
    if (b->strides[d] % b->itemsize != 0 && b->shape[d] > 1)
      refuse(L, "a stride is not a whole number of elements", COPY);
    e->step[d] = b->strides[d] / b->itemsize;
  }
  f->owner.readonly = b->readonly;
}

static void take_buffer(lua_State *L, Foreign *f, PyObject *o, Elements *e) {
  if (py.PyObject_GetBuffer(o, &f->buffer, PY_BUFFER_STRIDED) < 0) {
    py.PyErr_Clear();
    PyObject **other = nl_new_object(L);
    *other = nl_ask("with_buffer", o, NULL);
    if (*other == NULL ||
        py.PyObject_GetBuffer(*other, &f->buffer, PY_BUFFER_STRIDED) < 0)
      nl_raise_hint(L, "nacre.tensor(py.table(x)) copies lists of numbers");
  }
  read_buffer(L, f, e);
}

/*
** DLPack
*/
static void read_dlpack(lua_State *L, const DLTensor *t, Elements *e) {
  char type[64];
  int64_t n = 1;
  snprintf(type, sizeof type, "%d of DLPack, %d bits", t->dtype.code,
           t->dtype.bits);
  if (t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST)
    refuse(L, "it is on a device, but only memory of the CPU can be shared",
           "copy it to the CPU first: a:cpu()");
  e->dtype = dlpack_dtype(t);
  if (e->dtype == DT_NONE) refuse_dtype(L, type);
  check_dims(L, t->ndim);
  e->p = (char *)t->data + t->byte_offset;
  e->nd = t->ndim;
  for (int d = t->ndim - 1; d >= 0; d--) {
    e->size[d] = t->shape[d];
    e->step[d] = t->strides ? t->strides[d] : n;
    n *= t->shape[d];
  }
}

static void take_dlpack(lua_State *L, Foreign *f, PyObject *o, Elements *e) {
  PyObject **capsule = nl_new_object(L);
  *capsule = nl_need(L, nl_ask("dlpack_of", o, NULL));
  const int newer = py.PyCapsule_IsValid(*capsule, "dltensor_versioned");
  if (newer) {
    f->new = py.PyCapsule_GetPointer(*capsule, "dltensor_versioned");
    py.PyCapsule_SetName(*capsule, "used_dltensor_versioned");
    if (f->new->version.major != 1)
      refuse(L, "it uses a version of DLPack other than 1", COPY);
    f->owner.readonly = (f->new->flags &DL_READ_ONLY) != 0;
    read_dlpack(L, &f->new->t, e);
    return;
  }
  f->old = py.PyCapsule_GetPointer(*capsule, "dltensor");
  if (f->old == NULL) nl_raise(L);
  py.PyCapsule_SetName(*capsule, "used_dltensor");
  read_dlpack(L, &f->old->t, e);
}

int nl_tensor_of(lua_State *L) {
  Elements e;
  PyObject *o;
  if (nl_istensor(L, 1)) return lua_settop(L, 1), 1;
  o = nl_check_object(L, 1);
  Foreign **f = new_foreign(L);
  if (nl_ask_yes(L, "has_buffer", o, NULL)) take_buffer(L, *f, o, &e);
  else take_dlpack(L, *f, o, &e);
  check_elements(L, &e);
  Tensor **t = nl_newbox(L);
  nl_check_as(
      L, nc_newowned(t, &(*f)->owner, e.p, e.dtype, e.nd, e.size, e.step), OP);
  *f = NULL; /* the tensor has it */
  return 1;
}
