/* SPDX-License-Identifier: MIT */
/*
** paint.c - walks over the tokens of a block with a stack of what is open.
*/

#include <stdlib.h>
#include <string.h>

#include "repl/editor/names.h"
#include "repl/editor/paint.h"
#include "repl/language/lex.h"

/* A bracket or the keyword of a block.  kind: ( [ { or the first letter of
   "function", "if", "do", "repeat", "while"; a loop awaits its "do" as 'w'. */
typedef struct Open {
  size_t from, to;
  char kind;
  int call; /* "(" or "{" behind the name of a function, which is at */
  size_t callfrom;
} Open;

typedef struct Span {
  size_t from, to;
} Span;

typedef struct Spans {
  Span *item;
  size_t n, size;
} Spans;

/* What a name that comes now is. */
enum { USED, DECLARED, PARAMETER, OF_FUNCTION };

typedef struct Walk {
  const Block *b;
  Painting *p;
  Lexer lexer;
  Token last;      /* the token before; of no size at first */
  int declaring;   /* USED, ... */
  size_t pathfrom; /* where the name that ended last began: "a.b:c" */
  size_t targets;  /* the first of the names that an "=" may assign */
  Open *stack;
  size_t depth, room;
  Spans names; /* that may be globals */
  Names declared;
  Open pair[2]; /* the brackets at the cursor */
  int strength; /* 2: under the cursor, 1: before it */
} Walk;

static void fill(Walk *w, size_t from, size_t to, int role) {
  memset(w->p->role + from, role, to - from);
}

static int is(const Walk *w, const Token *t, const char *word) {
  return sh_tokenis(&w->lexer, t, word);
}

static char byteof(const Walk *w, const Token *t) {
  return t->to - t->from == 1 ? w->b->text[t->from] : '\0';
}

/*
** Brackets and blocks
*/
static char top(const Walk *w) {
  return w->depth > 0 ? w->stack[w->depth - 1].kind : '\0';
}

static void push(Walk *w, const Token *t, char kind) {
  if (w->depth == w->room) {
    const size_t room = w->room > 0 ? 2 * w->room : 32;
    Open *more = realloc(w->stack, room * sizeof *more);
    if (more == NULL) return;
    w->stack = more;
    w->room = room;
  }
  w->stack[w->depth++] = (Open){ .from = t->from, .to = t->to, .kind = kind };
}

/* Keeps the pair if the cursor is at it. */
static void pair(Walk *w, const Open *o, const Token *t) {
  const size_t point = w->b->point;
  const int here = (point >= t->from && point < t->to) ||
                   (point >= o->from && point < o->to);
  const int before = point == t->to || (o->to - o->from == 1 && point == o->to);
  const int strength = here ? 2 : before;
  if (strength <= w->strength) return;
  w->strength = strength;
  w->pair[0] = *o;
  w->pair[1] = (Open){ .from = t->from, .to = t->to };
}

static int isbracket(char kind) {
  return kind != '\0' && strchr("([{", kind) != NULL;
}

static void closebracket(Walk *w, const Token *t, char opener) {
  if (top(w) == opener) {
    pair(w, &w->stack[--w->depth], t);
    return;
  }
  fill(w, t->from, t->to, ROLE_WRONG);
  if (isbracket(top(w))) { /* "( ]" */
    const Open *o = &w->stack[--w->depth];
    fill(w, o->from, o->to, ROLE_WRONG);
  }
}

/* "end" and "until": brackets that are open in the block are wrong. */
static void closeblock(Walk *w, const Token *t, const char *kinds) {
  size_t d = w->depth;
  while (d > 0 && isbracket(w->stack[d - 1].kind)) d--;
  if (d == 0 || strchr(kinds, w->stack[d - 1].kind) == NULL) {
    fill(w, t->from, t->to, ROLE_WRONG);
    return;
  }
  for (; w->depth > d; w->depth--) {
    const Open *o = &w->stack[w->depth - 1];
    fill(w, o->from, o->to, ROLE_WRONG);
  }
  pair(w, &w->stack[--w->depth], t);
}

static void block(Walk *w, const Token *t) {
  static const struct {
    const char *word;
    char kind;
  } openers[] = { { "function", 'f' },
                  { "if", 'i' },
                  { "repeat", 'r' },
                  { "while", 'w' },
                  { "for", 'w' } };
  size_t i;
  for (i = 0; i < sizeof openers / sizeof *openers; i++)
    if (is(w, t, openers[i].word)) push(w, t, openers[i].kind);
  if (is(w, t, "do")) {
    if (top(w) == 'w') w->stack[w->depth - 1].kind = 'd';
    else push(w, t, 'd');
  } else if (is(w, t, "end")) closeblock(w, t, "fid");
  else if (is(w, t, "until")) closeblock(w, t, "r");
}

/*
** Names
*/
static void addspan(Spans *s, size_t from, size_t to) {
  if (s->n == s->size) {
    const size_t size = s->size > 0 ? 2 * s->size : 64;
    Span *more = realloc(s->item, size * sizeof *more);
    if (more == NULL) return;
    s->item = more;
    s->size = size;
  }
  s->item[s->n++] = (Span){ from, to };
}

static void declare(Walk *w, const Span *s) {
  sh_names_put(&w->declared, w->b->text + s->from, s->to - s->from, 1);
}

/* Does a single "=" follow? */
static int assigned(const Walk *w) {
  Lexer l = w->lexer;
  Token t;
  return sh_nexttoken(&l, &t) && is(w, &t, "=");
}

static int isfield(const Walk *w, char last) {
  if (last == '.' || last == ':' || is(w, &w->last, "::") ||
      is(w, &w->last, "goto"))
    return 1;
  if (last == '<' && w->declaring == DECLARED) return 1; /* <const> */
  return top(w) == '{' && (last == '{' || last == ',' || last == ';') &&
         assigned(w);
}

static void name(Walk *w, const Token *t) {
  const char last = byteof(w, &w->last);
  if (isfield(w, last)) {
    if (w->last.kind != TOKEN_OP) w->pathfrom = t->from;
    return;
  }
  w->pathfrom = t->from;
  if (w->last.kind == TOKEN_NAME || last != ',') w->targets = w->names.n;
  addspan(&w->names, t->from, t->to);
  if (w->declaring && w->names.n > 0)
    declare(w, &w->names.item[w->names.n - 1]);
}

static void keyword(Walk *w, const Token *t) {
  fill(w, t->from, t->to, ROLE_KEYWORD);
  w->targets = w->names.n;
  if (w->declaring == DECLARED) w->declaring = USED;
  if (is(w, t, "local") || is(w, t, "for")) w->declaring = DECLARED;
  if (is(w, t, "function")) w->declaring = OF_FUNCTION;
  block(w, t);
}

static void assign(Walk *w) {
  if (top(w) != '{')
    for (; w->targets < w->names.n; w->targets++)
      declare(w, &w->names.item[w->targets]);
  if (w->declaring == DECLARED) w->declaring = USED;
}

/* "(" and "{" behind a name call it, unless the name is being defined. */
static void openbracket(Walk *w, const Token *t, char c) {
  push(w, t, c);
  if (w->depth == 0 || c == '[' || w->last.kind != TOKEN_NAME) return;
  w->stack[w->depth - 1].call = w->declaring == USED;
  w->stack[w->depth - 1].callfrom = w->pathfrom;
}

static void operation(Walk *w, const Token *t) {
  const char c = byteof(w, t);
  switch (c) {
    case '(':
    case '[':
    case '{':
      openbracket(w, t, c);
      if (w->declaring == OF_FUNCTION && c == '(') w->declaring = PARAMETER;
      break;
    case ')':
      closebracket(w, t, '(');
      if (w->declaring == PARAMETER) w->declaring = USED;
      break;
    case ']': closebracket(w, t, '['); break;
    case '}': closebracket(w, t, '{'); break;
    case '=': assign(w); break;
    case ';': w->declaring = USED; break;
    default: break;
  }
  if (c != ',' && c != '.' && c != ':') w->targets = w->names.n;
}

/* A line that is over ends "local a". */
static void newline(Walk *w, const Token *t) {
  const char last = byteof(w, &w->last);
  if (w->declaring == DECLARED && t->line > w->last.line && last != ',' &&
      byteof(w, t) != ',' && w->last.kind == TOKEN_NAME)
    w->declaring = USED;
}

static void token(Walk *w, const Token *t) {
  newline(w, t);
  switch (t->kind) {
    case TOKEN_NAME: name(w, t); break;
    case TOKEN_KEYWORD: keyword(w, t); break;
    case TOKEN_OP: operation(w, t); break;
    case TOKEN_NUMBER: fill(w, t->from, t->to, ROLE_NUMBER); break;
    case TOKEN_STRING: fill(w, t->from, t->to, ROLE_STRING); break;
    case TOKEN_COMMENT: fill(w, t->from, t->to, ROLE_COMMENT); return;
  }
  w->last = *t;
}

/* The innermost call that is open, not beyond a function's body. */
static void findcall(Walk *w) {
  size_t d;
  for (d = w->depth; d > 0 && isbracket(w->stack[d - 1].kind); d--)
    if (w->stack[d - 1].call) {
      w->p->incall = 1;
      w->p->callfrom = w->stack[d - 1].callfrom;
      return;
    }
}

/*
** What is known about globals: asked once a name
*/
static Names globals;

void sh_paint_forget(void) {
  sh_names_clear(&globals);
}

static int global(const Block *b, const char *s, size_t n) {
  int role = sh_names_get(&globals, s, n);
  if (role >= 0) return role;
  role = b->global(s, n);
  sh_names_copy(&globals, s, n, role);
  return role;
}

static void paintnames(Walk *w) {
  const Block *b = w->b;
  size_t i;
  for (i = 0; i < w->names.n; i++) {
    const Span *s = &w->names.item[i];
    const char *text = b->text + s->from;
    const size_t n = s->to - s->from;
    int role;
    if (sh_names_get(&w->declared, text, n) >= 0) continue;
    role = global(b, text, n);
    /* one that is being written is not unknown yet */
    if (role != ROLE_UNKNOWN || (b->marks && s->to != b->point))
      fill(w, s->from, s->to, role);
  }
}

static void marks(Walk *w) {
  size_t i, k;
  if (w->b->point < w->b->size)
    for (i = 0; i < w->depth; i++)
      fill(w, w->stack[i].from, w->stack[i].to, ROLE_WRONG);
  for (k = 0; w->strength > 0 && k < 2; k++)
    for (i = w->pair[k].from; i < w->pair[k].to; i++)
      w->p->role[i] |= ROLE_MATCH;
}

/* The mark of a command: ":time", "?", "!". */
static void command(Walk *w) {
  const Block *b = w->b;
  size_t from = 0, to;
  while (from < b->size && b->text[from] == ' ') from++;
  if (from == b->size || strchr(":%?!=", b->text[from]) == NULL) return;
  for (to = from + 1; to < b->size && (b->text[to] | 32) >= 'a' &&
                      (b->text[to] | 32) <= 'z' && b->text[from] != '!';)
    to++;
  if (from < b->code && b->code < b->size && b->code < to) to = b->code;
  fill(w, from, to, ROLE_COMMAND);
}

static int prepare(Painting *p, size_t size) {
  if (p->room <= size) {
    unsigned char *more = realloc(p->role, 2 * size + 64);
    if (more == NULL) return 0;
    p->role = more;
    p->room = 2 * size + 64;
  }
  memset(p->role, ROLE_PLAIN, size);
  p->incall = 0;
  return 1;
}

void sh_paint(Painting *p, const Block *b) {
  Walk w = { .b = b, .p = p, .lexer = sh_lexer(b->text, b->size) };
  Token t;
  int found = 0;
  if (!prepare(p, b->size)) return;
  command(&w);
  w.lexer.at = b->code;
  while (sh_nexttoken(&w.lexer, &t)) {
    if (!found && t.from >= b->point) {
      findcall(&w);
      found = 1;
    }
    token(&w, &t);
  }
  if (!found && (b->size == b->code || t.closed || t.to < b->size))
    findcall(&w);
  paintnames(&w);
  if (b->marks) marks(&w);
  free(w.stack);
  free(w.names.item);
  sh_names_free(&w.declared);
}

void sh_paint_free(Painting *p) {
  free(p->role);
  memset(p, 0, sizeof *p);
  sh_names_clear(&globals);
}
