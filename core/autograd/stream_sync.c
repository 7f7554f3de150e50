/* SPDX-License-Identifier: MIT */
/*
** stream_sync.c - orders backward with the streams of a device.
**
** Backward runs on the current stream of each device, whichever streams the
** operations were recorded on.  It therefore waits for the work queued on these
** streams (join), and they wait for its end (fork), as if each had run its own
** part.  If only the current stream was used this costs a comparison.
*/
#include "core/tape.h"
#include "core/accelerator.h"

int nc_streamnumber(const Device *d) {
  const Accelerator *a = d->ordinal < 0 ? NULL : nc_open_accelerator();
  return a ? a->streamnumber(d->ordinal) : 0;
}

static void note(Streams *s, const GradMeta *m) {
  const Device *d = m->device;
  if (d == NULL || d->ordinal < 0 || d->ordinal >= NC_MAXACCEL) return;
  s->used[d->ordinal] |= (uint64_t)1 << m->stream;
  s->several |= m->stream != nc_streamnumber(d);
}

void nc_notestreams(Streams *s, const Node *n) {
  for (int i = 0; i < n->nedge; i++) note(s, &n->edge[i].meta);
  for (int i = 0; i < n->nout; i++) note(s, &n->out[i].meta);
}

/* Calls f for each device of s, until it fails; r is the status so far. */
static int each(const Streams *s, int r, int (*f)(int i, uint64_t streams)) {
  const Accelerator *a = nc_open_accelerator();
  for (int i = 0; s->several && i < a->count && i < NC_MAXACCEL; i++)
    if (s->used[i] && r == NC_OK) r = f(i, s->used[i]);
  return r;
}

int nc_joinstreams(const Streams *s, int r) {
  return s->several ? each(s, r, nc_open_accelerator()->join) : r;
}

int nc_forkstreams(const Streams *s, int r) {
  return s->several ? each(s, r, nc_open_accelerator()->fork) : r;
}
