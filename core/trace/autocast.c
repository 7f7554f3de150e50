/* SPDX-License-Identifier: MIT */
/*
** autocast.c - regions of mixed precision: products run in a lower dtype, what
** loses accuracy there in float32.  A call in a region comes here first
** (call_kinds.c), has its operands cast, recorded, and goes on as usual; those
** of which it is composed are left alone.
**
** The policies are those of torch.autocast for CUDA, on all devices.
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/trace_internal.h"

/* AUTOCAST rows of ops.def and operators.def.  PROMOTE: in float32 if one
   operand is. */
typedef enum Policy { AS_GIVEN, LOWER, FLOAT32, PROMOTE } Policy;

static const unsigned char op_policy[OP_COUNT] = {
#define EVERY_OP(op, ...)
#define AUTOCAST(op, policy) [OP_##op] = policy,
#include "core/ops.def"
};

static const unsigned char operator_policy[OPERATOR_COUNT] = {
#define OPERATOR(op, ...)
#define AUTOCAST(op, policy) [OPERATOR_##op] = policy,
#include "core/operators.def"
};
#undef OPERATOR

/*
** Casts of leaves, which are kept until the outermost region ends: a weight
** that is used twice is cast once, and gets one gradient.  An optimizer may
** change a leaf inside the region: the version of its storage tells that the
** cast is old.
*/
typedef struct CachedCast {
  Tensor *leaf, *cast;
  int version;
} CachedCast;

static _Thread_local struct {
  CachedCast *list;
  int64_t n, room;
} cached_casts;

void nc_forget_casts(void) {
  while (cached_casts.n > 0) {
    cached_casts.n--;
    nc_release(cached_casts.list[cached_casts.n].leaf);
    nc_release(cached_casts.list[cached_casts.n].cast);
  }
  nc_hostfree(cached_casts.list, cached_casts.room);
  cached_casts.list = NULL;
  cached_casts.room = 0;
}

/* *y = a cast of the leaf t that is kept, with a reference, or NULL. */
static void find_cast(Tensor **y, const Tensor *t, DType type) {
  *y = NULL;
  for (int64_t i = 0; i < cached_casts.n && *y == NULL; i++) {
    const CachedCast *k = &cached_casts.list[i];
    if (k->leaf == t && k->cast->dtype == type &&
        k->version == t->data->version)
      nc_retain(*y = k->cast);
  }
}

/* Keeps y; without memory for it nothing is lost. */
static void keep_cast(Tensor *t, Tensor *y) {
  const int64_t bytes =
      (cached_casts.n + 1) * (int64_t)sizeof *cached_casts.list;
  if (nc_grow(&cached_casts.list, &cached_casts.room, bytes) != NC_OK) return;
  nc_retain(t);
  nc_retain(y);
  cached_casts.list[cached_casts.n++] = (CachedCast){ t, y, t->data->version };
}

static int cast(Tensor **y, Tensor *t, DType type) {
  const int keeps = nc_context->no_grad == 0 && t->ad &&
                    (t->ad->node == NULL || nc_isleafnode(t->ad->node));
  if (keeps) find_cast(y, t, type);
  if (keeps && *y) return NC_OK;
  TRY(nc_cast(y, t, type));
  if (keeps) keep_cast(t, *y);
  return NC_OK;
}

/* Which of the two dtypes of a region holds for this device. */
static int device_kind(const Device *d) {
  return d->ordinal >= 0;
}

static int is_narrow(DType t) {
  return t == DT_f16 || t == DT_bf16;
}

/* The dtype that the policy wants t to have. */
static DType wanted_dtype(const Tensor *t, Policy policy) {
  const DType lower = nc_context->autocast[device_kind(nc_device(t))];
  if (lower == DT_NONE || !nc_is_real(t->dtype) || t->dtype == DT_f64 ||
      nc_is_storage(t->dtype))
    return t->dtype;
  if (policy == LOWER) return lower;
  return is_narrow(t->dtype) ? DT_f32 : t->dtype;
}

/* Replaces *t, a borrowed reference, by the tensor as the policy wants it, and
   adds it to w. */
static void cast_operand(Temps *w, Tensor **t, Policy policy) {
  const DType type = *t ? wanted_dtype(*t, policy) : DT_NONE;
  Tensor *y = NULL;
  if (*t == NULL || w->status != NC_OK || type == (*t)->dtype) return;
  if (nc_temps_add(w, cast(&y, *t, type), &y)) *t = y;
}

/* The policy for the call, PROMOTE decided. */
static Policy policy_of(const Call *c) {
  Policy policy = AS_GIVEN;
  if (c->kind == CALL_OPERATOR) policy = operator_policy[c->op];
  else if (c->into == NULL &&
           (c->kind == CALL_POINTWISE ||
            (c->kind == CALL_REDUCE && c->arg[3].dtype == DT_NONE)))
    policy = op_policy[c->op];
  if (policy != PROMOTE) return policy;
  for (int i = 0; i < NC_MAXARG; i++)
    if (c->arg[i].t && c->arg[i].t->dtype == DT_f32) return FLOAT32;
  return AS_GIVEN;
}

int nc_autocast_call(Call *c) {
  const Policy policy = policy_of(c);
  const unsigned before = nc_context->tracing;
  Call low = *c;
  Temps w = { 0 };
  nc_context->tracing &= ~(unsigned)NC_AUTOCAST; /* for the rest of the call */
  for (int i = 0; i < nc_call_args(c) && policy != AS_GIVEN; i++)
    cast_operand(&w, &low.arg[i].t, policy);
  if (w.status == NC_OK) w.status = nc_call(&low);
  nc_copyresults(c, &low);
  nc_context->tracing = before;
  return nc_temps_finish(&w);
}

void nc_set_autocast(const DType lower[2]) {
  const int any = lower[0] != DT_NONE || lower[1] != DT_NONE;
  memcpy(nc_context->autocast, lower, sizeof nc_context->autocast);
  nc_context->tracing &= ~(unsigned)NC_AUTOCAST;
  if (any) nc_context->tracing |= NC_AUTOCAST;
  else nc_forget_casts();
}
