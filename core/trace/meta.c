/* SPDX-License-Identifier: MIT */
/*
** meta.c - the meta device: runs operations as far as shapes, dtypes and counts
** go, without memory and without computing anything.
**
** Each device has a meta device of the same name, so that what fails on the one
** fails on the other.  A tensor on it has sizes, strides, and a storage whose
** bytes are only counted.  One more, "meta", is for programs, which may ask for
** it by name (nc_meta).
*/
#include "core/batch.h"
#include "core/fusion_notes.h"
#include "core/op.h"
#include "core/trace_internal.h"

#define MAXDEVICES 33 /* the host, and more devices than there are */

static Device metas[MAXDEVICES];
static const Device *owner[MAXDEVICES];
static Memory memory[MAXDEVICES];
static int nmetas;

static int alloc(const Device *d, void **p, int64_t bytes) {
  static char nowhere[16];
  *p = nowhere;
  d->memory->live += bytes;
  if (d->memory->live > d->memory->peak) d->memory->peak = d->memory->live;
  return NC_OK;
}

static void release(const Device *d, void *p, int64_t bytes) {
  (void)p;
  d->memory->live -= bytes;
}

int nc_meta_novalues(const Device *d) {
  if (d == &nc_meta) {
    nc_fail(NC_EVALUE, "a tensor on the meta device has no values");
    nc_hint(
        "nacre.empty_like(t, {device = \"cpu\"}) has memory; a network gets "
        "it by net:load_state_dict(state, {assign = true}) or "
        "net:to_empty(\"cpu\")");
    return NC_EVALUE;
  }
  return nc_fail(NC_EVALUE, nc_context->fusion
                                ? "depends on values, which nacre.fuse does "
                                  "not know when it traces the function"
                                : "depends on values, which a dry run does not "
                                  "compute");
}

static int copy(const Device *d, void *dst, const void *src, int64_t bytes,
                const Device *from, int how) {
  if (nc_context->fusion) nc_fusion_note_request();
  (void)d, (void)dst, (void)src, (void)bytes, (void)from, (void)how;
  return NC_OK;
}

static int tohost(const Device *d, void *dst, const void *src, int64_t bytes,
                  int how) {
  (void)dst, (void)src, (void)bytes, (void)how;
  return nc_meta_novalues(d);
}

/* The size of the result depends on values. */
static int nonzero(const Device *d, const NonzeroCall *c) {
  *c->y = NULL;
  return nc_meta_novalues(d);
}

static int idle(const Device *d) {
  (void)d;
  if (nc_context->fusion) nc_fusion_note_request();
  return NC_OK;
}

static int run(const Device *d, const void *loop) {
  if (nc_context->fusion) nc_fusion_note_loop(loop);
  return idle(d);
}

static int idle_call(const Device *d, const void *call) {
  (void)call;
  return idle(d);
}

#define X(request, Call)                                                 \
  static int meta_##request(const Device *d, const Call *c) {            \
    return _Generic(c, const NonzeroCall *                             \
                    : nonzero, const TensorIter *                      \
                    : run, default                                     \
                    : idle_call)(d, c); \
  }
DEVICE_REQUESTS(X)
#undef X

static void trim(const Device *d, int64_t budget) {
  (void)d, (void)budget;
}

#define X(request, Call) .request = meta_##request,
static const Device meta = { .alloc = alloc,
                             .free = release,
                             .copy = copy,
                             .tohost = tohost,
                             .synchronize = idle,
                             .trim = trim,
                             DEVICE_REQUESTS(X) };

static Memory named_memory;
const Device nc_meta = { .name = NC_METANAME,
                         .ordinal = -1,
                         .memory = &named_memory,
                         .alloc = alloc,
                         .free = release,
                         .copy = copy,
                         .tohost = tohost,
                         .synchronize = idle,
                         .trim = trim,
                         DEVICE_REQUESTS(X) };
#undef X

int nc_ismeta(const Device *d) {
  return d->run == meta_run;
}

int nc_ismetatensor(const Tensor *t) {
  return nc_ismeta(nc_device(t));
}

int nc_ismetamemory(const Storage *s) {
  return nc_ismeta(s->device) && s->p != s->small;
}

const Device *nc_metadevice(const Device *d) {
  int i = 0;
  if (nc_ismeta(d)) return d;
  while (i < nmetas && owner[i] != d) i++;
  if (i == MAXDEVICES) i = 0; /* cannot happen: a plug-in opens no more */
  if (i == nmetas) {
    nmetas++;
    owner[i] = d;
    metas[i] = meta;
    metas[i].name = d->name;
    metas[i].ordinal = d->ordinal;
    metas[i].memory = &memory[i];
  }
  return &metas[i];
}

const Device *nc_metaowner(const Device *d) {
  return d != &nc_meta && nc_ismeta(d) ? owner[d - metas] : d;
}

const Memory *nc_meta_memory(const Device *d) {
  for (int i = 0; i < nmetas; i++)
    if (owner[i] == d) return &memory[i];
  return NULL;
}

int nc_readable(Tensor **y, Tensor *t) {
  *y = NULL;
  if (nc_is_sample(t)) return nc_batch_novalues(t);
  if (nc_context->tracing & NC_META) return nc_meta_novalues(NULL);
  return nc_todevice(y, t, &nc_cpu);
}

/* *y = the meta copy of x, whose bytes do not count as allocated. */
int nc_metacopy(Tensor **y, Tensor *x) {
  const Device *d = nc_metadevice(nc_device(x));
  const int64_t none = 0;
  Tensor *empty;
  int r;
  *y = NULL;
  if (d == nc_device(x)) {
    nc_retain(*y = x);
    return NC_OK;
  }
  TRY(nc_new(&empty, d, x->dtype, 1, &none));
  empty->data->p = empty->data->small;
  empty->data->bytes = x->data->bytes;
  if ((r = nc_alias(y, empty)) == NC_OK) {
    Tensor *t = *y;
    t->nd = x->nd;
    t->offset = x->offset;
    for (int i = 0; i < x->nd; i++) {
      t->size[i] = x->size[i];
      t->step[i] = x->step[i];
    }
  }
  nc_release(empty);
  return r;
}

/* The generator is restored afterwards, since meta operations advance it. */
void nc_meta_begin(void) {
  nc_context->before_dry_run = nc_context->generator;
  for (int i = 0; i < nmetas; i++) memory[i].peak = memory[i].live;
}

void nc_meta_end(void) {
  nc_context->generator = nc_context->before_dry_run;
}
