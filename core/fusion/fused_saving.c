/* SPDX-License-Identifier: MIT */
/*
** fused_saving.c - what the node of a part saves in a function of the library.
*/
#include "core/fusion/fused_saving.h"

#include <string.h>

#include "core/op.h"

/* Which values the tape saves for the gradients of note n, as bits: of in[],
   and LETTER_Y. required[]: do values require a gradient? */
static unsigned saved_letters(const Note *n, const char required[]) {
  unsigned letters = 0;
  if (n->kind != NOTE_APPLY && !n->is_fold) return 0;
  for (int j = 0; j < (n->is_fold ? 1 : 3); j++) {
    const char *text = nc_opinfo[n->op].grad[j];
    if (n->in[j] < 0 || !required[n->in[j]] || text == NULL) continue;
    letters |= nc_formula_letters(text);
    if (strncmp(text, "BY", 2) == 0) letters |= 1u << LETTER_A | 1u << LETTER_Y;
  }
  return letters;
}

/* Marks the values that the tape saves in those notes of the part that have
   gradients to the operands `need', which are some of those that require
   one. */
static int mark_saved(const Fusion *f, const Part *p, unsigned required,
                      unsigned need, char saved[]) {
  const int64_t n = f->nvalue;
  char *requires, *needs;
  void *memory;
  TRY(nc_hostalloc(&memory, 2 * n));
  requires = memset(memory, 0, (size_t)(2 * n));
  needs = requires + n;
  nc_fusion_mark_wanted(f, p, required, requires);
  nc_fusion_mark_wanted(f, p, need, needs);
  for (int i = p->first; i < p->end; i++) {
    const Note *note = &f->note[i];
    const unsigned letters = saved_letters(note, requires);
    if (!needs[note->out[0]]) continue;
    for (int j = 0; j < 3; j++)
      if (letters >> (LETTER_A + j) & 1 && note->in[j] >= 0)
        saved[note->in[j]] = 1;
    if (letters >> LETTER_Y & 1) saved[note->out[0]] = 1;
  }
  nc_hostfree(memory, 2 * n);
  return NC_OK;
}

/* Are all notes rows, casts and reductions? */
static int is_plain(const Fusion *f, const Part *p) {
  if (p->draws || p->writes || p->aliases) return 0;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    if (n->along ||
        (n->kind != NOTE_APPLY && n->kind != NOTE_CAST && !n->is_fold))
      return 0;
  }
  return 1;
}

/* Which result of the part the value is; -1: none. */
static int result_of(const Part *p, int value) {
  for (int i = 0; i < p->code->nresults; i++)
    if (p->result[i] == value) return i;
  return -1;
}

/* Chooses the values besides operands: results, which others may change, and
   what cannot be computed from the rest.  saved[]: as mark_saved sets it; then
   whether a value can be had. */
static int choose_values(const Fusion *f, const Part *p, Saving *s,
                         char saved[], int more[]) {
  int n = 0;
  for (int i = p->first; i < p->end; i++) {
    const Note *note = &f->note[i];
    const int v = note->out[0];
    int computable = 1;
    for (int j = 0; j < NC_MAXARG; j++)
      if (note->in[j] >= 0) computable &= saved[note->in[j]];
    if (saved[v] && (!computable || result_of(p, v) >= 0)) {
      if (p->code->noperands + s->n == NC_FUSED_TENSORS ||
          !(nc_fusion_of_lines(f, p, v) ||
            nc_fusion_same_layout(&f->value[v], &f->value[p->main])))
        return -1;
      s->result[s->n] = result_of(p, v);
      if (s->result[s->n] < 0) {
        s->result[s->n] = p->code->nresults + n;
        more[n++] = v;
      }
      s->value[s->n++] = v;
    }
    saved[v] |= (char)computable;
  }
  return n;
}

static int fill(Fusion *f, Part *p, Saving *s) {
  int more[NC_FUSED_TENSORS], n;
  void *saved;
  const int64_t room = f->nvalue;
  if (!is_plain(f, p)) return NC_OK;
  TRY(nc_hostalloc(&saved, room));
  memset(saved, 0, (size_t)room);
  n = mark_saved(f, p, s->required, s->required, saved) == NC_OK
          ? choose_values(f, p, s, saved, more)
          : -1;
  nc_hostfree(saved, room);
  if (n < 0) return NC_OK;
  s->part = *p;
  s->part.gradient = NULL;
  s->part.saving = NULL;
  s->possible = 1;
  if (n == 0) return NC_OK;
  s->part.code = NULL;
  TRY(nc_fusion_compile(f, &s->part, more, n));
  s->possible = s->part.code && s->part.code->noperands == p->code->noperands;
  return NC_OK;
}

Saving *nc_fusion_saving(Fusion *f, Part *p, unsigned required) {
  Saving *s;
  void *memory;
  for (s = p->saving; s; s = s->next)
    if (s->required == required) return s;
  if (nc_hostalloc(&memory, sizeof *s) != NC_OK) return NULL;
  s = memset(memory, 0, sizeof *s);
  s->required = required;
  if (fill(f, p, s) != NC_OK) s->possible = 0;
  s->next = p->saving;
  return p->saving = s;
}

unsigned nc_fusion_checked(const Fusion *f, const Part *p, const Saving *s,
                           unsigned need) {
  const int n = p->code->noperands;
  const int64_t room = f->nvalue;
  unsigned bits = ~0u;
  char *saved;
  void *memory;
  if (nc_hostalloc(&memory, room) != NC_OK) return bits;
  saved = memset(memory, 0, (size_t)room);
  if (mark_saved(f, p, s->required, need, saved) == NC_OK) {
    bits = 0;
    for (int i = 0; i < n; i++) bits |= (unsigned)saved[p->operand[i]] << i;
    for (int i = 0; i < s->n; i++)
      bits |= (unsigned)saved[s->value[i]] << (n + i);
  }
  nc_hostfree(memory, room);
  return bits;
}

void nc_fusion_drop_savings(Saving *s) {
  for (Saving *next; s; s = next) {
    next = s->next;
    nc_fusion_drop_gradients(s->gradient);
    nc_hostfree(s, sizeof *s);
  }
}
