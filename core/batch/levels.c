/* SPDX-License-Identifier: MIT */
/*
** levels.c - levels of mapped functions, and the tensors that stand for one
** sample.
**
** Such a tensor is dense and has the sizes of one sample.  Its storage has no
** memory: its owner holds the value of all samples, and its device is one of
** the same name that fails every request.  So code that knows nothing of
** samples fails, and computes no wrong number.
*/
#include "core/batch/batching.h"
#include "core/fusion.h"
#include "core/trace.h"

typedef struct Sample { /* the owner of a storage */
  Owner owner;
  Tensor *value;
  int64_t id; /* of the level */
} Sample;

/*
** Devices of samples
*/
#define MAXDEVICES 80 /* as many as there are, each also as meta */

static Device inside[MAXDEVICES];
static const Device *outside[MAXDEVICES];
static int ninside;

static int fail_values(void) {
  if (nc_context->batch == NULL) {
    nc_fail(NC_EVALUE, "a tensor of vmap was kept after vmap had ended");
    nc_hint("return it from the function that is mapped");
    return NC_EVALUE;
  }
  nc_fail(NC_EVALUE, "needs the values of a tensor that vmap maps over, which "
                     "differ from sample to sample");
  nc_cause((Cause){ .kind = NC_CAUSE_mapped });
  nc_hint("nacre.where chooses element by element; a loop over the samples "
          "sees each value");
  return NC_EVALUE;
}

int nc_batch_novalues(const Tensor *t) {
  (void)t;
  return fail_values();
}

static int no_memory(const Device *d, void **p, int64_t bytes) {
  (void)d, (void)bytes;
  *p = NULL;
  return fail_values();
}

static void no_free(const Device *d, void *p, int64_t bytes) {
  (void)d, (void)p, (void)bytes;
}

static int no_copy(const Device *d, void *dst, const void *src, int64_t bytes,
                   const Device *from, int how) {
  (void)d, (void)dst, (void)src, (void)bytes, (void)from, (void)how;
  return fail_values();
}

static int no_read(const Device *d, void *dst, const void *src, int64_t bytes,
                   int how) {
  (void)d, (void)dst, (void)src, (void)bytes, (void)how;
  return fail_values();
}

static int idle(const Device *d) {
  (void)d;
  return NC_OK;
}

static void no_trim(const Device *d, int64_t budget) {
  (void)d, (void)budget;
}

#define X(request, Call)                                    \
  static int no_##request(const Device *d, const Call *c) { \
    (void)d, (void)c;                                       \
    return fail_values();                                   \
  }
DEVICE_REQUESTS(X)
#undef X

static Memory nothing;
#define X(request, Call) .request = no_##request,
static const Device none = { .memory = &nothing,
                             .alloc = no_memory,
                             .free = no_free,
                             .copy = no_copy,
                             .tohost = no_read,
                             .synchronize = idle,
                             .trim = no_trim,
                             DEVICE_REQUESTS(X) };
#undef X

static int is_inside(const Device *d) {
  return d->tohost == no_read;
}

/* The device of samples whose value is on d. */
static const Device *inside_of(const Device *d) {
  int i = 0;
  if (is_inside(d)) return d;
  while (i < ninside && outside[i] != d) i++;
  if (i == MAXDEVICES) i = 0; /* cannot happen: there are no more */
  if (i == ninside) {
    ninside++;
    outside[i] = d;
    inside[i] = none;
    inside[i].name = d->name;
    inside[i].ordinal = d->ordinal;
  }
  return &inside[i];
}

const Device *nc_outside(const Device *d) {
  return is_inside(d) ? outside[d - inside] : d;
}

/*
** Samples
*/
static void release_sample(Owner *o) {
  Sample *s = (Sample *)o;
  nc_release(s->value);
  nc_hostfree(s, sizeof *s);
}

static const Sample *sample_of(const Tensor *t) {
  const Owner *o = t->data->owner;
  return o && o->release == release_sample ? (const Sample *)o : NULL;
}

int nc_is_sample(const Tensor *t) {
  return sample_of(t) != NULL;
}

static BatchLevel *level_at(int depth) {
  BatchLevel *l = nc_context->batch;
  while (l && l->depth != depth) l = l->outer;
  return l;
}

int nc_batch_open(Tensor **value, int *depth, const Tensor *t) {
  const Sample *s = sample_of(t);
  *value = NULL;
  *depth = 0;
  if (s == NULL) return 0;
  *value = s->value;
  for (const BatchLevel *l = nc_context->batch; l; l = l->outer)
    if (l->id == s->id) *depth = l->depth;
  return 1;
}

/* *t = a dense tensor without memory, in the shape of a sample. */
static int new_sample(Tensor **t, Sample *s) {
  const int64_t no = 0;
  const Tensor *v = s->value;
  TRY(nc_new(t, &nc_cpu, v->dtype, 1, &no));
  (*t)->data->owner = &s->owner;
  (*t)->data->device = inside_of(nc_device(v));
  (*t)->data->p = NULL;
  nc_set_dense(*t, v->nd - 1, v->size + 1);
  return NC_OK;
}

int nc_batch_wrap(Tensor **y, Tensor *value, int depth) {
  const BatchLevel *l = level_at(depth);
  Sample *s;
  void *p;
  int r;
  *y = NULL;
  if (l == NULL) return nc_fail(NC_EVALUE, "no such level of vmap is open");
  if (value->nd == 0 || value->size[0] != l->n)
    return nc_fail(NC_EVALUE, "the first dimension is not the batch");
  TRY(nc_hostalloc(&p, sizeof *s));
  s = p;
  s->owner.release = release_sample;
  s->owner.readonly = 0;
  s->id = l->id;
  nc_retain(s->value = value);
  r = new_sample(y, s);
  if (r != NC_OK) release_sample(&s->owner);
  return r;
}

/*
** Levels
*/
int nc_batch_enter(int *depth, int64_t n, BatchDraws draws) {
  static int64_t last;
  BatchLevel *l;
  void *p;
  if (nc_context->fusion) nc_fusion_refuse("it maps a function");
  if (nc_context->batch && nc_context->batch->depth == NC_MAXLEVEL)
    return nc_fail(NC_EVALUE, "at most %d levels of vmap", NC_MAXLEVEL);
  TRY(nc_hostalloc(&p, sizeof *l));
  l = p;
  l->outer = nc_context->batch;
  l->depth = *depth = l->outer ? l->outer->depth + 1 : 1;
  l->id = ++last;
  l->n = n;
  l->draws = draws;
  nc_context->batch = l;
  nc_context->tracing |= NC_BATCH;
  return NC_OK;
}

void nc_batch_leave(void) {
  BatchLevel *l = nc_context->batch;
  if (l == NULL) return;
  nc_context->batch = l->outer;
  nc_hostfree(l, sizeof *l);
  if (nc_context->batch == NULL) nc_context->tracing &= ~(unsigned)NC_BATCH;
}
