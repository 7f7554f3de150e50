/* SPDX-License-Identifier: MIT */
/*
** pt_walk.c - walks the values of a file of PyTorch.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/pt/pt_file.h"

#define MOST_LEVELS 100
#define MOST_NAMES 32 /* bytes of names for each of the pickle */

typedef struct Level { /* a list or dict that is being walked */
  int64_t cell;        /* the next one; -1: none */
  int64_t number;      /* of the next item, from 1 */
  int length;          /* of the name of the place */
  int kind;
  int own; /* are the items those of the object around it? */
} Level;

typedef struct Walk {
  PtFile *f;
  Level level[MOST_LEVELS];
  int n;
  char name[NC_MAXNAME + 1]; /* of the present place, cut */
} Walk;

static int add_tensor(PtFile *f, const char *name, int32_t tensor) {
  const size_t n = strlen(name) + 1;
  void *slot;
  TRY(nc_push_slot(&f->start, sizeof(int64_t), &slot));
  *(int64_t *)slot = f->names.n;
  for (size_t i = 0; i < n; i++) {
    TRY(nc_push_slot(&f->names, 1, &slot));
    *(char *)slot = name[i];
  }
  TRY(nc_push_slot(&f->tensor, sizeof tensor, &slot));
  *(int32_t *)slot = tensor;
  return NC_OK;
}

/* Names take a limited number of bytes; what is left out can still be loaded
   with the whole. */
static int has_room(const PtFile *f) {
  return f->names.n < MOST_NAMES * f->pickle.size;
}

/* A tensor that was seen has another name here. */
static int add_name(Walk *w, const FileValue *v) {
  PtFile *f = w->f;
  if (!has_room(f)) return NC_OK;
  return add_tensor(f, w->name, ((int32_t *)f->tensor.p)[v->i]);
}

/* Keeps a value that is none of the walk's own places. */
static void keep(PtFile *f, int32_t i) {
  ((int32_t *)f->reached.p)[i] = 1;
}

/* Values were added. */
static int grow_reached(PtFile *f) {
  void *slot;
  while (f->reached.n < f->pickle.value.n) {
    TRY(nc_push_slot(&f->reached, sizeof(int32_t), &slot));
    *(int32_t *)slot = 0;
  }
  return NC_OK;
}

/* Goes on with what v holds. */
static void push_level(Walk *w, const FileValue *v) {
  const Level *around = w->n ? &w->level[w->n - 1] : NULL;
  Level l = { .cell = v->i, .number = 1, .kind = v->kind };
  l.length = (int)strlen(w->name);
  l.own = around && around->kind == NC_V_OTHER && v->kind != NC_V_OTHER;
  if (l.own) l.number = around->number;
  if (v->kind == NC_V_OTHER) /* its two names */
    for (int i = 0; i < 2; i++) {
      const FileCell *c = PICKLE_CELL(&w->f->pickle, l.cell);
      keep(w->f, c->value);
      l.cell = c->next;
    }
  w->level[w->n++] = l;
}

/* Visits value i at the present place. */
static int visit(Walk *w, int32_t i) {
  PtFile *f = w->f;
  FileValue *v = PICKLE_VALUE(&f->pickle, i);
  int32_t *seen = (int32_t *)f->reached.p + i;
  if (*seen) return v->kind == NC_V_TENSOR ? add_name(w, v) : NC_OK;
  *seen = 1;
  TRY(nc_pickle_plain(&f->pickle, i));
  TRY(grow_reached(f));
  v = PICKLE_VALUE(&f->pickle, i); /* they may have moved */
  if (v->kind == NC_V_TENSOR) {
    const int32_t t = (int32_t)v->i;
    const int32_t foreign = PICKLE_TENSOR(&f->pickle, t)->foreign;
    if (foreign > 0) keep(f, foreign - 1);
    v->i = f->tensor.n;
    return add_tensor(f, has_room(f) ? w->name : "", t);
  }
  if (v->kind == NC_V_DEVICE || v->kind == NC_V_PATH)
    for (int64_t c = v->i; c >= 0; c = PICKLE_CELL(&f->pickle, c)->next)
      keep(f, PICKLE_CELL(&f->pickle, c)->value);
  if (v->kind != NC_V_LIST && v->kind != NC_V_DICT && v->kind != NC_V_OTHER)
    return NC_OK;
  if (w->n == MOST_LEVELS)
    return nc_fail_pickle(&f->pickle, "lists and dicts are nested too deep");
  push_level(w, v);
  return NC_OK;
}

/* Keeps a copy of a key that no table has, and what a tuple of them holds. */
static int keep_key(PtFile *f, int32_t key, int32_t *copy) {
  Pickle *k = &f->pickle;
  const FileValue v = *PICKLE_VALUE(k, key);
  TRY(nc_pickle_value(k, copy, v.kind, v.i, v.n));
  if (v.kind == NC_V_FLOAT) PICKLE_VALUE(k, *copy)->f = v.f;
  TRY(nc_pickle_plain(k, *copy));
  TRY(grow_reached(f));
  keep(f, *copy);
  if (PICKLE_VALUE(k, *copy)->kind != NC_V_LIST) return NC_OK;
  for (int64_t c = v.i; c >= 0; c = PICKLE_CELL(k, c)->next) {
    const int32_t item = PICKLE_CELL(k, c)->value;
    if (PICKLE_VALUE(k, item)->kind != NC_V_TENSOR) keep(f, item);
  }
  return NC_OK;
}

/* A value that cannot be a key of a table becomes an NC_V_OTHER, which holds
   it. */
static int check_key(PtFile *f, int32_t key) {
  FileValue *v = PICKLE_VALUE(&f->pickle, key);
  int32_t other = 0, copy = -1;
  switch (v->kind) {
    case NC_V_TEXT:
    case NC_V_INT:
    case NC_V_LONG:
    case NC_V_BOOL:
    case NC_V_OTHER: return NC_OK;
    case NC_V_FLOAT:
      if (v->f == v->f) return NC_OK;
      /* fall through */
    default:
      /* a tensor has a number of its own, which only the walk gives */
      if (v->kind != NC_V_TENSOR) TRY(keep_key(f, key, &copy));
      TRY(nc_pickle_other(&f->pickle, &other, key, &copy, copy >= 0));
      *PICKLE_VALUE(&f->pickle, key) = *PICKLE_VALUE(&f->pickle, other);
      return NC_OK;
  }
}

/* Appends a part to the name of the place. */
static void append_name(Walk *w, int length, const char *part, int n) {
  snprintf(w->name + length, sizeof w->name - (size_t)length, "%s%.*s",
           length ? "." : "", n, part);
}

static void append_key(Walk *w, int length, int32_t key) {
  const FileValue *v = PICKLE_VALUE(&w->f->pickle, key);
  char number[40];
  if (v->kind == NC_V_TEXT) {
    append_name(w, length, w->f->pickle.text + v->i, v->n);
    return;
  }
  if (v->kind == NC_V_OTHER || v->kind == NC_V_LONG) strcpy(number, "?");
  else if (v->kind == NC_V_FLOAT)
    nc_format(number, sizeof number, "%.14g", v->f);
  else snprintf(number, sizeof number, "%lld", (long long)v->i);
  append_name(w, length, number, (int)strlen(number));
}

static int is_container(const Pickle *k, int32_t value) {
  const int kind = PICKLE_VALUE(k, value)->kind;
  return kind == NC_V_LIST || kind == NC_V_DICT || kind == V_TUPLE;
}

/* Visits the next item of the innermost list or dict. */
static int step(Walk *w) {
  Pickle *k = &w->f->pickle;
  Level *l = &w->level[w->n - 1];
  char number[32];
  if (l->cell < 0) {
    w->n--;
    if (l->own) w->level[w->n - 1].number = l->number;
    return NC_OK;
  }
  const FileCell *c = PICKLE_CELL(k, l->cell);
  if (l->kind == NC_V_DICT) {
    const FileCell key = *c;
    TRY(check_key(w->f, key.value));
    TRY(grow_reached(w->f));
    c = PICKLE_CELL(k, key.next);
    append_key(w, l->length, key.value);
    keep(w->f, key.value);
  } else if (l->kind == NC_V_OTHER && is_container(k, c->value)) {
    w->name[l->length] = '\0'; /* what it holds is the object's own */
  } else {
    snprintf(number, sizeof number, "%lld", (long long)l->number++);
    append_name(w, l->length, number, (int)strlen(number));
  }
  l->cell = c->next;
  return visit(w, c->value);
}

int nc_pt_walk(PtFile *f, int32_t root, const char *name) {
  Walk w = { .f = f };
  snprintf(w.name, sizeof w.name, "%s", name);
  TRY(grow_reached(f));
  TRY(visit(&w, root));
  for (int64_t i = 0; w.n > 0; i++) {
    if (i % 4096 == 0 && nc_interrupted)
      return nc_fail(NC_EINTR, "interrupted");
    TRY(step(&w));
  }
  return NC_OK;
}

void nc_pt_drop_others(PtFile *f) {
  for (int64_t i = 0; i < f->pickle.value.n; i++)
    if (!((int32_t *)f->reached.p)[i])
      *PICKLE_VALUE(&f->pickle, i) = (FileValue){ .kind = NC_V_NONE };
}
