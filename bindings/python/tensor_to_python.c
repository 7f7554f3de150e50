/* SPDX-License-Identifier: MIT */
/*
** tensor_to_python.c - shares the memory of a tensor with Python. A capsule
** holds a tensor of the same storage, as that of Lua may get another storage.
** What Python makes of it, an array of NumPy or a capsule of DLPack, keeps the
** capsule, or a reference of its own.
*/
#include <stdlib.h>
#include <string.h>

#include "bindings/python/dlpack.h"
#include "bindings/python/interpreter.h"
#include "core/autograd.h"
#include "core/files.h"
#include "core/trace.h"

#define TENSOR "nacre.tensor"

typedef struct Shared {
  Later later;
  Tensor *t;
} Shared;

static void drop_shared(Later *item) {
  Shared *s = (Shared *)item;
  nc_release(s->t);
  free(s);
}

static void destroy_capsule(PyObject *capsule) {
  Shared *s = py.PyCapsule_GetPointer(capsule, TENSOR);
  if (s) nl_release_later(&s->later, drop_shared);
}

static PyObject *new_capsule(Tensor *t) {
  Shared *s = malloc(sizeof *s);
  if (s == NULL) return py.PyErr_SetString(*py.MemoryError, "a tensor"), NULL;
  if (nc_alias(&s->t, t) != NC_OK) {
    free(s);
    return py.PyErr_SetString(*py.MemoryError, "a tensor"), NULL;
  }
  PyObject *capsule = py.PyCapsule_New(s, TENSOR, destroy_capsule);
  if (capsule == NULL) drop_shared(&s->later);
  return capsule;
}

int nl_push_shared(lua_State *L, PyObject *capsule) {
  if (!py.PyCapsule_IsValid(capsule, TENSOR)) return 0;
  const Shared *s = py.PyCapsule_GetPointer(capsule, TENSOR);
  nl_pushtensor(L, s->t);
  return 1;
}

/* Fails for a tensor whose memory must not be shared. */
static int check_shared(Tensor *t) {
  int requires_grad = 0;
  if (nc_ismetatensor(t)) return nc_meta_novalues(nc_device(t));
  TRY(nc_get_requires_grad(&requires_grad, t));
  if (!requires_grad) return NC_OK;
  nc_fail(NC_EVALUE,
          "the tensor requires grad, but operations of Python are not "
          "recorded");
  nc_error_operandat(0, "tensor", t);
  nc_hint("{0}:detach() shares its elements");
  return NC_EVALUE;
}

static PyObject *text(const char *s) {
  return py.PyUnicode_FromStringAndSize(s, (Py_ssize_t)strlen(s));
}

/* A tuple of n numbers, each times `unit'. */
static PyObject *sizes(const int64_t v[], int n, int64_t unit) {
  PyObject *list = py.PyTuple_New(n);
  for (int i = 0; list && i < n; i++)
    py.PyTuple_SetItem(list, i, py.PyLong_FromLongLong(v[i] * unit));
  return list;
}

static PyObject *device_of(const Tensor *t) {
  const Device *d = nc_device(t);
  return sizes((int64_t[]){ d == nc_host() ? DL_CPU : DL_CUDA,
                            d == nc_host() ? 0 : d->ordinal },
               2, 1);
}

PyObject *nl_share_tensor(lua_State *L, int i) {
  Tensor *t = nl_checktensor(L, i);
  const Device *d = nc_device(t);
  char shape[NC_TEXT], type[8] = "";
  nl_check_as(L, check_shared(t), "python");
  if (d == nc_host()) nc_numpytype(type, t->dtype);
  nc_shapetext(shape, t->nd, t->size);
  lua_pushfstring(L, "%s[%s] %s", nc_dtypename(t->dtype), shape, d->name);
  PyObject **args = nl_new_object(L), *array;
  PyObject *const all[] = {
    new_capsule(t),
    py.PyLong_FromLongLong((long long)(intptr_t)nc_data(t)),
    sizes(t->size, t->nd, 1),
    sizes(t->step, t->nd, nc_dtypesize(t->dtype)),
    text(type),
    py.PyBool_FromLong(nc_isreadonly(t)),
    device_of(t),
    text(lua_tostring(L, -2)),
  };
  enum { N = sizeof all / sizeof *all };
  int missing = 0;
  *args = py.PyTuple_New(N);
  for (int k = 0; k < N; k++) {
    missing |= all[k] == NULL;
    if (*args == NULL) nl_forget(all[k]);
    else py.PyTuple_SetItem(*args, k, all[k]);
  }
  array = *args && !missing ? py.PyObject_Call(nl_bridge("share"), *args, NULL)
                            : NULL;
  lua_pop(L, 2);
  return array;
}

/*
** DLPack. Its consumer may delete the struct on any thread, and without the
** lock of Python.
*/
typedef struct Exported {
  Later later;
  Tensor *t;
  int64_t shape[NC_MAXDIM], strides[NC_MAXDIM];
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned new;
  } dl;
} Exported;

static void drop_exported(Later *item) {
  Exported *e = (Exported *)item;
  nc_release(e->t);
  free(e);
}

static void delete_old(DLManagedTensor *self) {
  nl_release_later(&((Exported *)self->owner)->later, drop_exported);
}

static void delete_new(DLManagedTensorVersioned *self) {
  nl_release_later(&((Exported *)self->owner)->later, drop_exported);
}

/* The destructor of a capsule: nobody has taken what is in it. */
static void destroy_export(PyObject *capsule) {
  DLManagedTensor *old;
  DLManagedTensorVersioned *new;
  if (py.PyCapsule_IsValid(capsule, "dltensor")) {
    old = py.PyCapsule_GetPointer(capsule, "dltensor");
    old->deleter(old);
  } else if (py.PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    new = py.PyCapsule_GetPointer(capsule, "dltensor_versioned");
    new->deleter(new);
  }
}

static void describe(DLTensor *d, Exported *e) {
  static const char kinds[] = DL_KINDS;
  const Tensor *t = e->t;
  const Device *on = nc_device(t);
  memcpy(e->shape, t->size, sizeof e->shape);
  memcpy(e->strides, t->step, sizeof e->strides);
  d->data = nc_data(t);
  d->device.type = on == nc_host() ? DL_CPU : DL_CUDA;
  d->device.id = on == nc_host() ? 0 : on->ordinal;
  d->ndim = t->nd;
  d->dtype.code = (uint8_t)(strchr(kinds, nc_dtypekind(t->dtype)) - kinds);
  d->dtype.bits = (uint8_t)(8 * nc_dtypesize(t->dtype));
  d->dtype.lanes = 1;
  d->shape = e->shape;
  d->strides = e->strides;
}

/* A capsule of the newer struct, or of the older one, of which memory that can
   only be read has none. */
static PyObject *export(Tensor *t, int newer) {
  if (nc_isreadonly(t) && !newer) {
    py.PyErr_SetString(*py.BufferError, "memory that can only be read needs "
                                        "DLPack 1.0 or a copy");
    return NULL;
  }
  if (nc_synchronize() != NC_OK) { /* it may be on a GPU: no stream to wait */
    py.PyErr_SetString(*py.BufferError, nc_lasterror()->text);
    return NULL;
  }
  Exported *e = calloc(1, sizeof *e);
  if (e == NULL) return py.PyErr_SetString(*py.MemoryError, "a tensor"), NULL;
  nc_retain(e->t = t);
  if (newer) {
    e->dl.new.version.major = 1;
    e->dl.new.owner = e;
    e->dl.new.deleter = delete_new;
    e->dl.new.flags = nc_isreadonly(t) ? DL_READ_ONLY : 0;
    describe(&e->dl.new.t, e);
  } else {
    e->dl.old.owner = e;
    e->dl.old.deleter = delete_old;
    describe(&e->dl.old.t, e);
  }
  PyObject *capsule = py.PyCapsule_New(
      &e->dl, newer ? "dltensor_versioned" : "dltensor", destroy_export);
  if (capsule == NULL) drop_exported(&e->later);
  return capsule;
}

/* dlpack(capsule, newer) */
static PyObject *export_dlpack(PyObject *self, PyObject *args) {
  if (!nl_has_arguments(args, 2)) return NULL;
  const Shared *s =
      py.PyCapsule_GetPointer(py.PyTuple_GetItem(args, 0), TENSOR);
  (void)self;
  if (s == NULL) return NULL;
  if (nl_python_state() == NULL) {
    py.PyErr_SetString(*py.RuntimeError, "only the thread that runs Lua can "
                                         "share a tensor");
    return NULL;
  }
  return export(s->t, py.PyObject_IsTrue(py.PyTuple_GetItem(args, 1)) == 1);
}

PyMethodDef nl_export_dlpack = { "dlpack", export_dlpack, PY_VARARGS, NULL };
