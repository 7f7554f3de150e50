/* SPDX-License-Identifier: MIT */
/*
** lex.c - splits Lua source into tokens.
*/

#include <stdlib.h>
#include <string.h>

#include "repl/language/lex.h"

const char *const sh_keywords[] = {
  "and",      "break",  "do",   "else", "elseif", "end",   "false", "for",
  "function", "goto",   "if",   "in",   "local",  "nil",   "not",   "or",
  "repeat",   "return", "then", "true", "until",  "while", NULL
};

/* Classes of ASCII alone, whatever the locale. */
static int isdig(char c) {
  return c >= '0' && c <= '9';
}

static int ishex(char c) {
  return isdig(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static int isword(char c) {
  return isdig(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static int isblank_(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static int keyword(const char *s, size_t n) {
  int i;
  if (n < 2 || n > 8 || *s > 'w') return 0;
  for (i = 0; sh_keywords[i] != NULL; i++)
    if (*sh_keywords[i] == *s && strlen(sh_keywords[i]) == n &&
        memcmp(sh_keywords[i], s, n) == 0)
      return 1;
  return 0;
}

/* The byte at i; '\0' behind the end. */
static char at(const Lexer *l, size_t i) {
  return i < l->size ? l->text[i] : '\0';
}

/* The end of the long bracket that opens at i; i if none does. */
static size_t longbracket(const Lexer *l, size_t i, int *closed) {
  const char *from, *end = l->text + l->size;
  size_t level = 0, k;
  if (at(l, i) != '[') return i;
  while (at(l, i + 1 + level) == '=') level++;
  if (at(l, i + 1 + level) != '[') return i;
  from = l->text + i + level + 2;
  for (; (from = memchr(from, ']', (size_t)(end - from))) != NULL; from++) {
    const size_t room = (size_t)(end - from);
    for (k = 1; k <= level && k < room && from[k] == '='; k++) continue;
    if (k > level && k < room && from[k] == ']')
      return *closed = 1, (size_t)(from - l->text) + k + 1;
  }
  *closed = 0;
  return l->size;
}

/* The end of the string in quotes at i: its line's, if that comes first. */
static size_t quoted(const Lexer *l, size_t i, int *closed) {
  const char quote = l->text[i++];
  *closed = 0;
  while (i < l->size && l->text[i] != '\n') {
    const char c = l->text[i++];
    if (c == quote) return *closed = 1, i;
    if (c != '\\') continue;
    if (at(l, i) == 'z')
      while (i + 1 < l->size && isblank_(l->text[i + 1])) i++;
    i++;
  }
  return i < l->size ? i : l->size;
}

static size_t number(const Lexer *l, size_t i) {
  const int hex = at(l, i) == '0' && (at(l, i + 1) | 32) == 'x';
  char c;
  for (i += hex ? 2 : 0;
       c = at(l, i), c == '.' || isdig(c) || (hex && ishex(c));)
    i++;
  if ((c | 32) != (hex ? 'p' : 'e')) return i;
  i++;
  if (at(l, i) == '+' || at(l, i) == '-') i++;
  while (isdig(at(l, i))) i++;
  return i;
}

static size_t comment(const Lexer *l, size_t i, int *closed) {
  const size_t end = longbracket(l, i + 2, closed);
  const char *newline;
  if (end > i + 2) return end;
  newline = memchr(l->text + i, '\n', l->size - i);
  return newline != NULL ? (size_t)(newline - l->text) : l->size;
}

static size_t operator_(const Lexer *l, size_t i) {
  const char c = l->text[i], next = at(l, i + 1);
  if (c == '.' && next == '.') return i + 2 + (at(l, i + 2) == '.');
  if (next != '\0' && strchr("=~<>/:", c) && strchr("=<>/:", next))
    return i + 2;
  return i + 1;
}

/* The kind and the end of the token at t->from. */
static void scan(const Lexer *l, Token *t) {
  const size_t i = t->from;
  const char c = l->text[i];
  t->closed = 1;
  t->kind = TOKEN_OP;
  if (isdig(c) || (c == '.' && isdig(at(l, i + 1)))) {
    t->kind = TOKEN_NUMBER;
    t->to = number(l, i);
  } else if (isword(c)) {
    for (t->to = i; isword(at(l, t->to));) t->to++;
    t->kind = keyword(l->text + i, t->to - i) ? TOKEN_KEYWORD : TOKEN_NAME;
  } else if (c == '"' || c == '\'') {
    t->kind = TOKEN_STRING;
    t->to = quoted(l, i, &t->closed);
  } else if (c == '-' && at(l, i + 1) == '-') {
    t->kind = TOKEN_COMMENT;
    t->to = comment(l, i, &t->closed);
  } else if ((t->to = longbracket(l, i, &t->closed)) > i) {
    t->kind = TOKEN_STRING;
  } else t->to = operator_(l, i);
}

Lexer sh_lexer(const char *text, size_t size) {
  return (Lexer){ .text = text, .size = size, .line = 1 };
}

int sh_nexttoken(Lexer *l, Token *t) {
  size_t i;
  for (; l->at < l->size && isblank_(l->text[l->at]); l->at++)
    l->line += l->text[l->at] == '\n';
  if (l->at >= l->size) return 0;
  t->from = l->at;
  t->line = l->line;
  scan(l, t);
  if (t->kind == TOKEN_STRING || t->kind == TOKEN_COMMENT)
    for (i = t->from; i < t->to; i++) l->line += l->text[i] == '\n';
  l->at = t->to;
  return 1;
}

int sh_tokenis(const Lexer *l, const Token *t, const char *word) {
  const size_t n = strlen(word);
  return t->to - t->from == n && memcmp(l->text + t->from, word, n) == 0;
}

/*
** Indentation
*/
static int oneof(const Lexer *l, const Token *t, const char *const *words) {
  for (; *words != NULL; words++)
    if (sh_tokenis(l, t, *words)) return 1;
  return 0;
}

static int isbracket(const Lexer *l, const Token *t, const char *set) {
  return t->kind == TOKEN_OP && t->to == t->from + 1 &&
         strchr(set, l->text[t->from]) != NULL && l->text[t->from] != '\0';
}

static int opens(const Lexer *l, const Token *t) {
  static const char *const words[] = { "function", "do", "then", "repeat",
                                       NULL };
  return isbracket(l, t, "({[") ||
         (t->kind == TOKEN_KEYWORD && oneof(l, t, words));
}

static int closes(const Lexer *l, const Token *t) {
  static const char *const words[] = { "end", "until", "else", "elseif", NULL };
  return isbracket(l, t, ")}]") ||
         (t->kind == TOKEN_KEYWORD && oneof(l, t, words));
}

static int isword_else(const Lexer *l, const Token *t) {
  return t->kind == TOKEN_KEYWORD && sh_tokenis(l, t, "else");
}

int sh_nextnested(Nested *n) {
  n->depth = n->inside;
  if (!sh_nexttoken(&n->l, &n->t)) return 0;
  if (closes(&n->l, &n->t) && n->inside > 0) n->inside--;
  if (opens(&n->l, &n->t) || isword_else(&n->l, &n->t)) n->inside++;
  return 1;
}

/* The lines of the brackets and blocks that are open. */
typedef struct Opened {
  int *line;
  size_t n, size;
} Opened;

static int push(Opened *o, int line) {
  if (o->n == o->size) {
    const size_t size = o->size > 0 ? 2 * o->size : 64;
    int *more = realloc(o->line, size * sizeof *more);
    if (more == NULL) return 0;
    o->line = more;
    o->size = size;
  }
  o->line[o->n++] = line;
  return 1;
}

/* Gives 0 in a long string or without memory. */
static int readopened(Opened *o, Lexer l) {
  Token t;
  while (sh_nexttoken(&l, &t)) {
    if (l.at >= l.size && !t.closed) return 0;
    if (closes(&l, &t) && o->n > 0) o->n--;
    if (!opens(&l, &t) && !isword_else(&l, &t)) continue;
    if (!push(o, t.line)) return 0;
  }
  return 1;
}

int sh_indent(const char *text, size_t size, const char *rest, size_t n) {
  Opened o = { 0 };
  const char *end = memchr(rest, '\n', n);
  Lexer l = sh_lexer(rest, end != NULL ? (size_t)(end - rest) : n);
  Token t;
  int columns = 0;
  if (readopened(&o, sh_lexer(text, size))) {
    while (sh_nexttoken(&l, &t) && closes(&l, &t))
      if (o.n > 0) o.n--;
    for (size_t i = 0; i < o.n; i++)
      if (i == 0 || o.line[i] != o.line[i - 1]) columns += 2;
  }
  free(o.line);
  return columns;
}
