/* SPDX-License-Identifier: MIT */
/*
** pattern_match.c - finds matches of a pattern by trying, in order of
** preference, with the choices that are open on a stack.
**
** A pattern may come from a file, so the steps of a search are limited.
*/
#include <lauxlib.h>
#include <string.h>

#include "bindings/text/pattern.h"
#include "bindings/text/unicode.h"
#include "bindings/text/vocabulary.h"

/* Goes on at the instruction with the text from `at'; of a span, which may
   become shorter, down to `least'. */
typedef struct Choice {
  const Instruction *pc;
  const char *at, *least;
} Choice;

enum { FIRST_ROOM = 256, STEPS_A_BYTE = 200, LEAST_STEPS = 1000000 };

uint32_t nl_character(const char *s, const char *end, int *n) {
  const unsigned char *p = (const unsigned char *)s;
  *n = 1;
  if (p[0] < 0x80) return p[0];
  const int k = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || end - s < k) return 0xFFFD;
  uint32_t c = p[0] & (0x7F >> k);
  for (int i = 1; i < k; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0xFFFD;
    c = c << 6 | (p[i] & 63);
  }
  *n = k;
  return c;
}

void nl_start_matcher(Matcher *m, lua_State *L, const Pattern *p,
                      const char *text, size_t n) {
  *m = (Matcher){ .L = L, .p = p, .text = text, .end = text + n };
  m->room = FIRST_ROOM;
  m->choice = lua_newuserdatauv(L, m->room * sizeof *m->choice, 0);
  m->stack = lua_gettop(L);
  m->steps = STEPS_A_BYTE * n + LEAST_STEPS;
}

static void push(Matcher *m, Choice c) {
  if (m->nchoice == m->room) {
    Choice *more = lua_newuserdatauv(m->L, 2 * m->room * sizeof *more, 0);
    memcpy(more, m->choice, m->room * sizeof *more);
    m->choice = more;
    m->room *= 2;
    lua_replace(m->L, m->stack);
  }
  m->choice[m->nchoice++] = c;
}

static int item_has(const SetItem *x, uint32_t c) {
  const int in = (c >= x->from && c <= x->to) ||
                 (x->categories && x->categories >> nl_category(c) & 1);
  return in != x->negated;
}

static int has_other(const Pattern *p, const CharSet *s, uint32_t c) {
  for (int i = 0; i < s->n; i++)
    if (item_has(&p->item[s->first + i], c)) return !s->negated;
  return s->negated;
}

/* The bytes of the character at `at' if the set has it, else 0. */
static int take(const Matcher *m, int set, const char *at) {
  const CharSet *s = &m->p->set[set];
  int n;
  if (at >= m->end) return 0;
  const unsigned char b = (unsigned char)*at;
  if (b < 128) return (int)(s->ascii[b / 64] >> b % 64 & 1);
  const uint32_t c = nl_character(at, m->end, &n);
  return has_other(m->p, s, c) ? n : 0;
}

/* Takes as many as it may; NULL if they are too few. Fewer are a choice. */
static const char *take_span(Matcher *m, const Instruction *pc,
                             const char *at) {
  const char *least = pc->a == 0 ? at : NULL;
  for (int i = 0, n; i != pc->b && (n = take(m, pc[1].a, at)) > 0;) {
    at += n;
    if (++i == pc->a) least = at;
    m->steps--;
  }
  if (least && at > least && pc->op == P_SPAN)
    push(m, (Choice){ pc, at, least });
  return least ? at : NULL;
}

/* The next choice: 0 if there is none above `base'. */
static int choose(Matcher *m, size_t base, const Instruction **pc,
                  const char **at) {
  if (m->nchoice == base) return 0;
  Choice *c = &m->choice[m->nchoice - 1];
  if (c->least == NULL) {
    *pc = c->pc, *at = c->at;
    m->nchoice--;
    return 1;
  }
  do c->at--;
  while (c->at > c->least && ((unsigned char)*c->at & 0xC0) == 0x80);
  *pc = c->pc + 2, *at = c->at;
  if (c->at == c->least) m->nchoice--;
  return 1;
}

static const char *run(Matcher *m, const Instruction *pc, const char *at);

static int look(Matcher *m, const Instruction *pc, const char *at) {
  const size_t base = m->nchoice;
  const int found = run(m, pc + 1, at) != NULL;
  m->nchoice = base;
  return found == (pc->op == P_LOOK);
}

/* The end of the match that begins at `at', or NULL. */
static const char *run(Matcher *m, const Instruction *pc, const char *at) {
  const size_t base = m->nchoice;
  for (;;) {
    int n, failed = 0;
    if (m->steps-- < 2 || m->steps > (uint64_t)1 << 62)
      nl_refuse_text(m->L, "the pattern takes too many steps");
    switch (pc->op) {
      case P_SET:
        n = take(m, pc->a, at);
        failed = n == 0;
        at += n, pc++;
        break;
      case P_SPAN:
      case P_POSSESSIVE: {
        const char *next = take_span(m, pc, at);
        failed = next == NULL;
        at = next, pc += 2;
        break;
      }
      case P_SPLIT:
        push(m, (Choice){ pc + pc->b, at, NULL });
        pc += pc->a;
        break;
      case P_JUMP: pc += pc->a; break;
      case P_LOOK:
      case P_NOT:
        failed = !look(m, pc, at);
        pc += pc->a;
        break;
      case P_START: failed = at != m->text, pc++; break;
      case P_END: failed = at != m->end, pc++; break;
      case P_DONE: return at;
    }
    if (failed && !choose(m, base, &pc, &at)) return NULL;
  }
}

int nl_find_pattern(Matcher *m, const char *at, const char **from,
                    const char **to) {
  for (; at <= m->end; at++) {
    if (at < m->end && ((unsigned char)*at & 0xC0) == 0x80) continue;
    m->nchoice = 0;
    if ((*to = run(m, m->p->code, at)) != NULL) {
      *from = at;
      return 1;
    }
  }
  return 0;
}
