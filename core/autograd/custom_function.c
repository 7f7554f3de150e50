/* SPDX-License-Identifier: MIT */
/*
** custom_function.c - nodes whose backward is a function of the program:
** nacre.autograd.Function.  The binding calls nc_custom after the forward
** function has run.
*/
#include <stdio.h>
#include <string.h>

#include "core/tape.h"

typedef struct Info {
  Custom c;
  char name[40];
} Info;

static int custom_backward(GradCall *g) {
  const Info *info = g->node->info;
  if (g->node->freed && g->node->nsaved > 0) {
    Tensor *t; /* fails: the graph was freed */
    return nc_savedtensor(&t, g->node, 0);
  }
  return info->c.backward(info->c.data, g->g, g->d, g->need);
}

static void custom_drop(void *p) {
  const Info *info = p;
  if (info->c.drop) info->c.drop(info->c.data);
}

static const NodeKind kind = { .backward = custom_backward,
                               .drop = custom_drop };

/* Saves t, which may be one of the results. */
static int save_tensor(Recording *tr, int i, Tensor *t, Tensor *const out[],
                       int nout) {
  for (int k = 0; k < nout; k++)
    if (out[k] == t) return nc_record_saveresult(tr, i, t, k);
  return nc_record_save(tr, i, t);
}

/* Makes the results independent tensors, even if they were made as views. */
static void drop_bases(Tensor *const out[], int nout) {
  for (int i = 0; i < nout; i++) {
    if (out[i] == NULL) continue;
    nc_release(out[i]->base);
    out[i]->base = NULL;
  }
}

/* Checks that a result that is also an operand, which forward has changed in
   place, may become the result of a node. */
static int check_changed(Tensor *const in[], int nin, const Tensor *out) {
  for (int i = 0; i < nin; i++) {
    if (in[i] != out || out == NULL) continue;
    TRY(nc_checkinplace(in[i]));
    if (out->base)
      return nc_fail(NC_EVALUE, "a view was changed in place: a custom "
                                "function can only change a whole tensor");
  }
  return NC_OK;
}

static int check_all_changed(Tensor *const in[], int nin, Tensor *const out[],
                             int nout) {
  for (int i = 0; i < nout && !nc_context->no_grad; i++)
    TRY(check_changed(in, nin, out[i]));
  return NC_OK;
}

/* Gives the views of changed operands a new history. */
static void note_changes(Tensor *const in[], int nin, Tensor *const out[],
                         int nout) {
  for (int i = 0; i < nout; i++)
    for (int k = 0; k < nin; k++)
      if (out[i] && in[k] == out[i] && out[i]->ad) out[i]->ad->epoch++;
}

/* Takes over c->data: the node releases it, or, if nothing is recorded or after
   a failure, this function does. */
int nc_custom(Node **node, const Custom *c, Tensor *const in[], int nin,
              Tensor *const out[], int nout, Tensor *const saved[],
              int nsaved) {
  Recording tr;
  Info *info;
  int r;
  *node = NULL;
  memset(&tr, 0, sizeof tr);
  r = check_all_changed(in, nin, out, nout);
  if (r == NC_OK && !nc_context->no_grad)
    r = nc_record_begin(&tr, &kind, NULL, in, nin, nout, nsaved, sizeof *info,
                        NULL);
  if (r != NC_OK || tr.node == NULL) {
    c->drop(c->data);
    return r;
  }
  info = tr.node->info;
  info->c = *c;
  snprintf(info->name, sizeof info->name, "%s", c->name);
  tr.node->name = info->name;
  for (int i = 0; i < nsaved && r == NC_OK; i++)
    if (saved[i]) r = save_tensor(&tr, i, saved[i], out, nout);
  if (r == NC_OK) {
    Node *n = tr.node;
    drop_bases(out, nout);
    r = nc_record_commit(&tr, out, nout);
    if (r == NC_OK) *node = n;
    note_changes(in, nin, out, nout);
  }
  nc_record_cancel(&tr);
  return r;
}

int nc_customsaved(Tensor **t, const Node *node, int i) {
  const int off = nc_context->no_grad;
  int r;
  *t = NULL;
  if (i < 0 || i >= node->nsaved)
    return nc_fail(NC_EINDEX, "there is no saved tensor %d", i + 1);
  nc_context->no_grad = 0; /* as in PyTorch it has its history always */
  r = nc_savedtensor(t, node, i);
  nc_context->no_grad = off;
  return r;
}

int nc_customof(Custom *c, const Node *n) {
  if (n->kind != &kind) return 0;
  *c = ((const Info *)n->info)->c;
  return 1;
}
