/* SPDX-License-Identifier: MIT */
/*
** pickle_objects.c - the globals that pickles of torch.save name: functions
** that rebuild tensors, types of storages, dtypes, and a few of Python's own.
*/
#include <string.h>

#include "core/io/pt/pickle.h"

typedef enum Maker {
  TENSOR_V1,
  TENSOR_V2,
  TENSOR_V3,
  QUANTIZED,
  PARAMETER,
  PARAMETER_STATE,
  FROM_TYPE,
  TYPE,
  STORAGE,
  DTYPE,
  DICT,
  DEFAULT_DICT,
  LIST,
  DEQUE,
  FIRST,
  DEVICE,
  ENCODE,
  BYTES,
  SCALAR,
  PATH
} Maker;

/* clang-format off */
static const struct {
  const char *module, *name;
  Maker maker;
  DType dtype;                /* of a storage; DT_NONE: bytes */
} globals[] = {
  { "torch._utils", "_rebuild_tensor", TENSOR_V1, DT_NONE },
  { "torch._utils", "_rebuild_tensor_v2", TENSOR_V2, DT_NONE },
  { "torch._utils", "_rebuild_tensor_v3", TENSOR_V3, DT_NONE },
  { "torch._utils", "_rebuild_qtensor", QUANTIZED, DT_NONE },
  { "torch._utils", "_rebuild_parameter", PARAMETER, DT_NONE },
  { "torch._utils", "_rebuild_parameter_with_state", PARAMETER_STATE, DT_NONE },
  { "torch._tensor", "_rebuild_from_type_v2", FROM_TYPE, DT_NONE },
  { "torch", "Tensor", TYPE, DT_NONE },
  { "torch.nn.parameter", "Parameter", TYPE, DT_NONE },
  { "torch.nn.parameter", "Buffer", TYPE, DT_NONE },
  { "torch", "DoubleStorage", STORAGE, DT_f64 },
  { "torch", "FloatStorage", STORAGE, DT_f32 },
  { "torch", "ComplexDoubleStorage", STORAGE, DT_c128 },
  { "torch", "ComplexFloatStorage", STORAGE, DT_c64 },
  { "torch", "HalfStorage", STORAGE, DT_f16 },
  { "torch", "BFloat16Storage", STORAGE, DT_bf16 },
  { "torch", "LongStorage", STORAGE, DT_i64 },
  { "torch", "IntStorage", STORAGE, DT_i32 },
  { "torch", "ShortStorage", STORAGE, DT_i16 },
  { "torch", "CharStorage", STORAGE, DT_i8 },
  { "torch", "ByteStorage", STORAGE, DT_u8 },
  { "torch", "BoolStorage", STORAGE, DT_b8 },
  { "torch", "UntypedStorage", STORAGE, DT_NONE },
  { "torch.storage", "UntypedStorage", STORAGE, DT_NONE },
#define X(id, name, storage, category) { "torch", name, DTYPE, DT_NONE },
  DTYPES(X)
#undef X
  { "collections", "OrderedDict", DICT, DT_NONE },
  { "collections", "Counter", DICT, DT_NONE },
  { "collections", "defaultdict", DEFAULT_DICT, DT_NONE },
  { "builtins", "set", LIST, DT_NONE },
  { "__builtin__", "set", LIST, DT_NONE },
  { "builtins", "frozenset", LIST, DT_NONE },
  { "__builtin__", "frozenset", LIST, DT_NONE },
  { "torch", "Size", LIST, DT_NONE },
  { "torch.jit._pickle", "build_intlist", LIST, DT_NONE },
  { "torch.jit._pickle", "build_doublelist", LIST, DT_NONE },
  { "torch.jit._pickle", "build_boollist", LIST, DT_NONE },
  { "torch.jit._pickle", "build_tensorlist", LIST, DT_NONE },
  { "torch.jit._pickle", "restore_type_tag", FIRST, DT_NONE },
  { "collections", "deque", DEQUE, DT_NONE },
  { "torch", "device", DEVICE, DT_NONE },
  { "_codecs", "encode", ENCODE, DT_NONE },
  { "builtins", "bytes", BYTES, DT_NONE },
  { "__builtin__", "bytes", BYTES, DT_NONE },
  { "builtins", "bytearray", BYTES, DT_NONE },
  { "__builtin__", "bytearray", BYTES, DT_NONE },
  { "numpy.core.multiarray", "scalar", SCALAR, DT_NONE },
  { "numpy._core.multiarray", "scalar", SCALAR, DT_NONE },
  { "pathlib", "PosixPath", PATH, DT_NONE },
  { "pathlib", "PurePosixPath", PATH, DT_NONE },
  { "pathlib", "WindowsPath", PATH, DT_NONE },
  { "pathlib", "PureWindowsPath", PATH, DT_NONE },
  { "pathlib._local", "PosixPath", PATH, DT_NONE },
  { "pathlib._local", "PurePosixPath", PATH, DT_NONE },
  { "pathlib._local", "WindowsPath", PATH, DT_NONE },
  { "pathlib._local", "PureWindowsPath", PATH, DT_NONE },
};
enum { GLOBALS = sizeof globals / sizeof *globals };
/* clang-format on */

static int is_text(const Pickle *k, int64_t at, int64_t n, const char *text) {
  return n == (int64_t)strlen(text) &&
         memcmp(k->text + at, text, (size_t)n) == 0;
}

int nc_pickle_is(const Pickle *k, int32_t i, const char *text) {
  const FileValue *v = PICKLE_VALUE(k, i);
  return v->kind == NC_V_TEXT && is_text(k, v->i, v->n, text);
}

const char *nc_torchstorage(DType t) {
  for (int i = 0; i < GLOBALS; i++)
    if (globals[i].maker == STORAGE && globals[i].dtype == t)
      return globals[i].name;
  return NULL;
}

/* An NC_V_OTHER begins with two texts: a module, which may be "", and a name
   in it. */
static int add_text(Pickle *k, int32_t to, int64_t at, int64_t n) {
  int32_t text = 0;
  TRY(nc_pickle_value(k, &text, NC_V_TEXT, at, (int32_t)n));
  return nc_pickle_append(k, to, text);
}

int nc_pickle_global(Pickle *k, int32_t *at, int64_t module, int64_t nmodule,
                     int64_t name, int64_t nname) {
  for (int i = 0; i < GLOBALS; i++) {
    if (!is_text(k, module, nmodule, globals[i].module) ||
        !is_text(k, name, nname, globals[i].name))
      continue;
    return nc_pickle_value(k, at, V_GLOBAL, i, (int32_t)name);
  }
  TRY(nc_pickle_value(k, at, NC_V_OTHER, -1, -1));
  TRY(add_text(k, *at, module, nmodule));
  return add_text(k, *at, name, nname);
}

/* Appends the two texts that name value `of'. */
static int add_name(Pickle *k, int32_t to, int32_t of) {
  const FileValue v = *PICKLE_VALUE(k, of);
  if (v.kind == NC_V_OTHER) {
    const FileCell *first = PICKLE_CELL(k, v.i);
    const int32_t name = PICKLE_CELL(k, first->next)->value;
    TRY(nc_pickle_append(k, to, first->value));
    return nc_pickle_append(k, to, name);
  }
  TRY(add_text(k, to, 0, 0));
  return v.kind == V_GLOBAL
             ? add_text(k, to, v.n, (int64_t)strlen(globals[v.i].name))
             : add_text(k, to, 0, 0);
}

int nc_pickle_other(Pickle *k, int32_t *at, int32_t of, const int32_t item[],
                    int n) {
  TRY(nc_pickle_value(k, at, NC_V_OTHER, -1, -1));
  TRY(add_name(k, *at, of));
  for (int i = 0; i < n; i++) TRY(nc_pickle_append(k, *at, item[i]));
  return NC_OK;
}

static int is_kind(const Pickle *k, int32_t at, int kind) {
  return PICKLE_VALUE(k, at)->kind == kind;
}

/* The number in globals of a value, if it is one that does this; or -1. */
static int64_t global_of(const Pickle *k, int32_t at, Maker maker) {
  const FileValue *v = PICKLE_VALUE(k, at);
  return v->kind == V_GLOBAL && globals[v->i].maker == maker ? v->i : -1;
}

static int fail_arguments(const Pickle *k, const char *what) {
  return nc_fail_pickle(k, "%s has other arguments than PyTorch writes", what);
}

int nc_pickle_plain(Pickle *k, int32_t at) {
  FileValue *v = PICKLE_VALUE(k, at);
  if (v->kind == V_TUPLE) v->kind = NC_V_LIST;
  if (v->kind == V_GLOBAL && globals[v->i].maker == DTYPE) {
    *v = (FileValue){ .kind = NC_V_TEXT,
                      .i = v->n,
                      .n = (int32_t)strlen(globals[v->i].name) };
  } else if (v->kind == V_GLOBAL || v->kind == V_STORAGE) {
    int32_t other = 0;
    TRY(nc_pickle_other(k, &other, at, NULL, 0));
    *PICKLE_VALUE(k, at) = *PICKLE_VALUE(k, other);
  }
  return NC_OK;
}

/*
** Storages
*/
/* Bytes of an element of a storage whose dtype is not ours; 0: not known. */
static int foreign_size(const Pickle *k, int32_t type) {
  static const struct {
    const char *name;
    int size;
  } known[] = { { "ComplexHalfStorage", 4 }, { "QInt8Storage", 1 },
                { "QUInt8Storage", 1 },      { "QInt32Storage", 4 },
                { "QUInt4x2Storage", 1 },    { "QUInt2x4Storage", 1 } };
  const FileCell *module = PICKLE_CELL(k, PICKLE_VALUE(k, type)->i);
  const int32_t name = PICKLE_CELL(k, module->next)->value;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (nc_pickle_is(k, name, known[i].name)) return known[i].size;
  return 0;
}

/* Adds a storage of the key, with elements of this size. */
static int add_storage(Pickle *k, const int32_t item[], DType dtype, int size,
                       int foreign) {
  const FileValue *key = PICKLE_VALUE(k, item[2]);
  const int64_t count = PICKLE_VALUE(k, item[4])->i;
  void *slot;
  if (count < 0 || count > INT64_MAX / 16)
    return nc_fail_pickle(k, "a storage has %lld elements", (long long)count);
  const PickleStorage s = { .key = key->i,
                            .length = key->n,
                            .dtype = dtype,
                            .part = k->part,
                            .foreign = foreign,
                            .count = count,
                            .bytes = count * size };
  TRY(nc_push_slot(&k->storage, sizeof s, &slot));
  *(PickleStorage *)slot = s;
  return NC_OK;
}

/* The last storage is a part of one, as PyTorch 0.3 wrote it, if `view' is a
   tuple of a key, of the first element, and of their number. */
static int set_part(Pickle *k, int32_t view) {
  PickleStorage *s = PICKLE_STORAGE(k, k->storage.n - 1);
  int32_t item[3];
  if (is_kind(k, view, NC_V_NONE)) return NC_OK;
  if (nc_pickle_items(k, view, item, 3) != 3 || !is_kind(k, item[1], NC_V_INT))
    return fail_arguments(k, "a storage");
  s->first = PICKLE_VALUE(k, item[1])->i;
  return s->first >= 0 && s->first <= s->count
             ? NC_OK
             : nc_fail_pickle(k, "a part of a storage is not in it");
}

/* The tuple ('storage', type, key, location, elements), before 1.6 with a view;
   there also ('module', class, file, source). */
int nc_pickle_storage(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[6];
  const int n = nc_pickle_items(k, tuple, item, 6);
  if (n >= 2 && nc_pickle_is(k, item[0], "module")) {
    *at = item[1];
    return NC_OK;
  }
  const int named =
      n >= 5 && is_kind(k, item[2], NC_V_TEXT) && is_kind(k, item[4], NC_V_INT);
  if (n >= 5 && is_kind(k, item[1], NC_V_OTHER)) {
    const int size = foreign_size(k, item[1]);
    if (named && size) TRY(add_storage(k, item, DT_NONE, size, 1));
    return nc_pickle_other(k, at, item[1], NULL, 0);
  }
  const int64_t type = n < 5 ? -1 : global_of(k, item[1], STORAGE);
  if (type < 0 || !named) return fail_arguments(k, "a storage");
  const DType dtype = globals[type].dtype;
  TRY(add_storage(k, item, dtype,
                  dtype == DT_NONE ? 1 : (int)nc_dtypesize(dtype), 0));
  if (n == 6) TRY(set_part(k, item[5]));
  return nc_pickle_value(k, at, V_STORAGE, k->storage.n - 1, 0);
}

int64_t nc_storage_elements(const PickleStorage *s) {
  return s->bytes / nc_dtypesize(s->dtype);
}

/*
** Tensors
*/
static int read_sizes(const Pickle *k, int32_t tuple, int64_t v[]) {
  int32_t item[NC_MAXDIM];
  const int n = nc_pickle_items(k, tuple, item, NC_MAXDIM);
  for (int d = 0; d < n; d++) {
    v[d] = PICKLE_VALUE(k, item[d])->i;
    if (!is_kind(k, item[d], NC_V_INT) || v[d] < 0) return -1;
  }
  return n;
}

/* Sets the dimensions of t; of more than ours have only their number. */
static int set_sizes(const Pickle *k, PickleTensor *t, int32_t size,
                     int32_t step) {
  const FileValue *v = PICKLE_VALUE(k, size);
  int64_t n = 0;
  if (v->kind == V_TUPLE)
    for (int64_t c = v->i; c >= 0; c = PICKLE_CELL(k, c)->next) n++;
  t->nd = n > NC_MAXDIM ? (int)n : read_sizes(k, size, t->size);
  if (n > NC_MAXDIM || (t->nd >= 0 && read_sizes(k, step, t->step) == t->nd))
    return NC_OK;
  return nc_fail_pickle(k, "the sizes and strides of a tensor are not numbers");
}

/* Elements that the tensor reaches beyond its offset; -1: beyond 64 bits. */
static int64_t reach(const PickleTensor *t) {
  int64_t most = 1;
  for (int d = 0; d < t->nd; d++) {
    if (t->size[d] == 0) return 0;
    const int64_t last = t->size[d] - 1;
    if (last && t->step[d] > (INT64_MAX / 16 - most) / last) return -1;
    most += last * t->step[d];
  }
  return most;
}

int nc_pickle_extent(const Pickle *k, const PickleTensor *t, int64_t have) {
  const int64_t most = reach(t);
  if (most < 0 || t->offset < 0 || t->offset > have || most > have - t->offset)
    return nc_fail_pickle(k, "a tensor reaches beyond its storage");
  return NC_OK;
}

/* Fails unless the elements are in the storage. */
static int check_extent(const Pickle *k, const PickleTensor *t) {
  const PickleStorage *s = PICKLE_STORAGE(k, t->storage);
  int64_t n;
  if (nc_checksize(&n, s->dtype, t->nd, t->size) != NC_OK)
    return nc_fail_pickle(k, "the size of a tensor is beyond 64 bits");
  return nc_pickle_extent(k, t, nc_storage_elements(s));
}

/* Sets the type of a storage of bytes, which the first tensor tells: it is that
   of all of its tensors. */
static int set_dtype(Pickle *k, PickleStorage *s, int32_t value) {
  const int64_t g = global_of(k, value, DTYPE);
  if (g < 0) return fail_arguments(k, "a tensor");
  const char *name = globals[g].name;
  const DType dtype = nc_storednamed(name, strlen(name));
  if (s->dtype == DT_NONE) s->dtype = dtype;
  return s->dtype == dtype
             ? NC_OK
             : nc_fail_pickle(k, "a storage is used with two dtypes");
}

/* Sets the storage and the dtype of t, and checks that its elements are in the
   storage; `dtype' is the value that tells it, or -1. */
static int set_storage(Pickle *k, PickleTensor *t, int32_t storage,
                       int32_t dtype) {
  const int other = dtype >= 0 && is_kind(k, dtype, NC_V_OTHER);
  if (other || is_kind(k, storage, NC_V_OTHER)) {
    const FileCell *module =
        PICKLE_CELL(k, PICKLE_VALUE(k, other ? dtype : storage)->i);
    t->foreign = 1 + PICKLE_CELL(k, module->next)->value;
    return NC_OK;
  }
  t->storage = PICKLE_VALUE(k, storage)->i;
  PickleStorage *s = PICKLE_STORAGE(k, t->storage);
  if (t->offset > INT64_MAX - s->first)
    return nc_fail_pickle(k, "a tensor reaches beyond its storage");
  t->offset += s->first;
  if (dtype >= 0) TRY(set_dtype(k, s, dtype));
  if (s->dtype == DT_NONE) return nc_fail_pickle(k, "a tensor has no dtype");
  return t->nd > NC_MAXDIM ? NC_OK : check_extent(k, t);
}

int nc_pickle_tensor(Pickle *k, int32_t at, const PickleTensor *t) {
  void *slot;
  if (k->tensor.n > k->size / 16)
    return nc_fail_pickle(k, "it has more tensors than its bytes can describe");
  TRY(nc_push_slot(&k->tensor, sizeof *t, &slot));
  *(PickleTensor *)slot = *t;
  *PICKLE_VALUE(k, at) =
      (FileValue){ .kind = NC_V_TENSOR, .i = k->tensor.n - 1 };
  return NC_OK;
}

/* (storage, offset, size, stride, requires_grad, hooks[, metadata]); the third
   version has the dtype before metadata, the first ends with stride. Of one
   that is quantized, which is none of ours, the scale follows stride. */
static int make_tensor(Pickle *k, int32_t *at, Maker maker, int32_t global,
                       int32_t tuple) {
  int32_t item[8];
  PickleTensor t = { 0 };
  const int n = nc_pickle_items(k, tuple, item, 8);
  const int least = maker == TENSOR_V1 ? 4 : maker == TENSOR_V2 ? 6 : 7;
  if (n < least || !is_kind(k, item[1], NC_V_INT) ||
      (!is_kind(k, item[0], V_STORAGE) && !is_kind(k, item[0], NC_V_OTHER)))
    return fail_arguments(k, "a tensor");
  /* a conjugated or negated view */
  if (maker == QUANTIZED && !is_kind(k, item[0], NC_V_OTHER))
    return nc_pickle_other(k, at, global, &tuple, 1);
  if (n > least && (!is_kind(k, item[least], NC_V_DICT) ||
                    PICKLE_VALUE(k, item[least])->i >= 0))
    return nc_pickle_other(k, at, global, NULL, 0);
  t.offset = PICKLE_VALUE(k, item[1])->i;
  TRY(set_sizes(k, &t, item[2], item[3]));
  if (least > 4 && maker != QUANTIZED)
    t.requires = PICKLE_VALUE(k, item[4])->i == 1;
  TRY(set_storage(k, &t, item[0], maker == TENSOR_V3 ? item[6] : -1));
  TRY(nc_pickle_value(k, at, NC_V_NONE, 0, 0));
  return nc_pickle_tensor(k, *at, &t);
}

/* (tensor, requires_grad, hooks[, state]) */
static int make_parameter(Pickle *k, int32_t *at, int32_t tuple, int least) {
  int32_t item[4];
  if (nc_pickle_items(k, tuple, item, 4) != least ||
      !is_kind(k, item[0], NC_V_TENSOR) || !is_kind(k, item[1], NC_V_BOOL))
    return fail_arguments(k, "a parameter");
  PICKLE_TENSOR(k, PICKLE_VALUE(k, item[0])->i)->requires =
      (int)PICKLE_VALUE(k, item[1])->i;
  *at = item[0];
  return NC_OK;
}

/* (function, type, arguments, state): a tensor with attributes, which are left
   out. */
static int make_from_type(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[4];
  const int n = nc_pickle_items(k, tuple, item, 4);
  if (n != 4 || global_of(k, item[1], TYPE) < 0 ||
      !is_kind(k, item[0], V_GLOBAL) || global_of(k, item[0], FROM_TYPE) >= 0)
    return fail_arguments(k, "a tensor with attributes");
  return nc_pickle_call(k, at, item[0], item[2]);
}

/*
** Python's own
*/
/* OrderedDict(), or of a list of pairs; Counter(dict). */
static int make_dict(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t list, pair[2];
  const int n = nc_pickle_items(k, tuple, &list, 1);
  if (n == 1 && is_kind(k, list, NC_V_DICT)) {
    *at = list;
    return NC_OK;
  }
  TRY(nc_pickle_value(k, at, NC_V_DICT, -1, -1));
  if (n == 0) return NC_OK;
  if (n != 1 || !is_kind(k, list, NC_V_LIST))
    return fail_arguments(k, "an OrderedDict");
  for (int64_t c = PICKLE_VALUE(k, list)->i, next; c >= 0; c = next) {
    next = PICKLE_CELL(k, c)->next;
    if (nc_pickle_items(k, PICKLE_CELL(k, c)->value, pair, 2) != 2)
      return fail_arguments(k, "an OrderedDict");
    for (int i = 0; i < 2; i++) TRY(nc_pickle_append(k, *at, pair[i]));
  }
  return NC_OK;
}

/* set(list), Size(tuple): the list. */
static int make_list(Pickle *k, int32_t *at, int32_t tuple) {
  if (nc_pickle_items(k, tuple, at, 1) != 1 ||
      (!is_kind(k, *at, NC_V_LIST) && !is_kind(k, *at, V_TUPLE)))
    return fail_arguments(k, "a list");
  return NC_OK;
}

/* deque(list[, maxlen]), and what is added later: a list. */
static int make_deque(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  const int n = nc_pickle_items(k, tuple, item, 2);
  TRY(nc_pickle_value(k, at, NC_V_LIST, -1, -1));
  if (n < 1) return NC_OK;
  const FileValue from = *PICKLE_VALUE(k, item[0]);
  if (from.kind != NC_V_LIST && from.kind != V_TUPLE)
    return fail_arguments(k, "a deque");
  for (int64_t c = from.i; c >= 0; c = PICKLE_CELL(k, c)->next)
    TRY(nc_pickle_append(k, *at, PICKLE_CELL(k, c)->value));
  return NC_OK;
}

/* restore_type_tag(value, type) of TorchScript: the value. */
static int make_first(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  if (nc_pickle_items(k, tuple, item, 2) < 1)
    return fail_arguments(k, "restore_type_tag");
  *at = item[0];
  return NC_OK;
}

/* Are the n bytes at s characters below 256, in UTF-8? */
static int is_latin1(const unsigned char *s, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (s[i] < 0x80) continue;
    if ((s[i] & 0xfe) != 0xc2 || i + 1 == n || s[i + 1] >> 6 != 2) return 0;
    i++;
  }
  return 1;
}

/* encode(text, 'latin1'): how Python 3 writes bytes in protocol 2. */
static int make_bytes(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  const FileValue *v;
  if (nc_pickle_items(k, tuple, item, 2) != 2 ||
      !is_kind(k, item[0], NC_V_TEXT) || !is_kind(k, item[1], NC_V_TEXT) ||
      !is_text(k, PICKLE_VALUE(k, item[1])->i, PICKLE_VALUE(k, item[1])->n,
               "latin1"))
    return fail_arguments(k, "_codecs.encode");
  v = PICKLE_VALUE(k, item[0]);
  if (!is_latin1((const unsigned char *)k->text + v->i, v->n))
    return nc_fail_pickle(k, "bytes are not written as characters");
  return nc_pickle_value(k, at, NC_V_BYTES, v->i, v->n);
}

/* bytes(), bytearray(bytes) and bytearray(text, 'latin-1'); *at = -1 for any
   other arguments. */
static int make_array(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  const int n = nc_pickle_items(k, tuple, item, 2);
  *at = -1;
  if (n == 0) return nc_pickle_value(k, at, NC_V_TEXT, 0, 0);
  if (n < 0) return NC_OK;
  const FileValue v = *PICKLE_VALUE(k, item[0]);
  if (v.kind != NC_V_TEXT && v.kind != NC_V_BYTES) return NC_OK;
  if (n == 1) *at = item[0];
  else if (nc_pickle_is(k, item[1], "latin-1") &&
           is_latin1((const unsigned char *)k->text + v.i, v.n))
    return nc_pickle_value(k, at, NC_V_BYTES, v.i, v.n);
  return NC_OK;
}

static int make_device(Pickle *k, int32_t *at, int32_t tuple) {
  int32_t item[2];
  const FileValue *v;
  const int n = nc_pickle_items(k, tuple, item, 2);
  if (n < 1 || !is_kind(k, item[0], NC_V_TEXT) ||
      (n == 2 && !is_kind(k, item[1], NC_V_INT)))
    return fail_arguments(k, "a device");
  v = PICKLE_VALUE(k, tuple);
  return nc_pickle_value(k, at, NC_V_DEVICE, v->i, v->n);
}

/* Is one of the arguments something that no value of ours is? */
static int has_other(const Pickle *k, int32_t tuple) {
  for (int64_t c = PICKLE_VALUE(k, tuple)->i; c >= 0;
       c = PICKLE_CELL(k, c)->next)
    if (is_kind(k, PICKLE_CELL(k, c)->value, NC_V_OTHER)) return 1;
  return 0;
}

int nc_pickle_call(Pickle *k, int32_t *at, int32_t global, int32_t tuple) {
  if (is_kind(k, global, NC_V_OTHER))
    return nc_pickle_other(k, at, global, &tuple, 1);
  if (!is_kind(k, global, V_GLOBAL))
    return nc_fail_pickle(k, "what is called is no function");
  if (!is_kind(k, tuple, V_TUPLE))
    return nc_fail_pickle(k, "the arguments of a call are not a tuple");
  const Maker maker = globals[PICKLE_VALUE(k, global)->i].maker;
  switch (maker) {
    case TENSOR_V1:
    case TENSOR_V2:
    case QUANTIZED:
    case TENSOR_V3: return make_tensor(k, at, maker, global, tuple);
    case DEFAULT_DICT: return nc_pickle_value(k, at, NC_V_DICT, -1, -1);
    case DEQUE: return make_deque(k, at, tuple);
    case FIRST: return make_first(k, at, tuple);
    case BYTES:
    case SCALAR:
    case PATH:
      TRY((maker == PATH     ? nc_pickle_path
           : maker == SCALAR ? nc_pickle_scalar
                             : make_array)(k, at, tuple));
      return *at >= 0 ? NC_OK : nc_pickle_other(k, at, global, &tuple, 1);
    default: break;
  }
  if (has_other(k, tuple)) return nc_pickle_other(k, at, global, &tuple, 1);
  switch (maker) {
    case PARAMETER: return make_parameter(k, at, tuple, 3);
    case PARAMETER_STATE: return make_parameter(k, at, tuple, 4);
    case FROM_TYPE: return make_from_type(k, at, tuple);
    case DICT: return make_dict(k, at, tuple);
    case LIST: return make_list(k, at, tuple);
    case DEVICE: return make_device(k, at, tuple);
    case ENCODE: return make_bytes(k, at, tuple);
    default: return nc_fail_pickle(k, "what is called is no function");
  }
}
