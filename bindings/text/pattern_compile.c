/* SPDX-License-Identifier: MIT */
/*
** pattern_compile.c - from the text of a regular expression to instructions.
**
** Fragments of instructions follow one another; their jumps are relative, so
** that a fragment can be moved and copied.
*/
#include <string.h>

#include "bindings/text/pattern.h"
#include "bindings/text/unicode.h"

typedef struct Compiler {
  Pattern *p;
  const char *at, *end;
  const char *wrong; /* why it cannot be compiled, or NULL */
  int ignore_case, level;
} Compiler;

enum { MOST_LEVELS = 50, MOST_REPEATS = 1000 };

static int fail(Compiler *c, const char *why) {
  if (!c->wrong) c->wrong = why;
  c->at = c->end;
  return 0;
}

static int next_is(Compiler *c, const char *text) {
  const size_t n = strlen(text);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0) return 0;
  c->at += n;
  return 1;
}

static void emit(Compiler *c, PatternOp op, int a, int b) {
  if (c->p->ncode == MOST_CODE) fail(c, "it is too long");
  else c->p->code[c->p->ncode++] = (Instruction){ op, a, b };
}

/* Makes room for n instructions at `at'. */
static void insert(Compiler *c, int at, int n) {
  if (c->p->ncode + n > MOST_CODE) {
    fail(c, "it is too long");
    return;
  }
  memmove(c->p->code + at + n, c->p->code + at,
          (size_t)(c->p->ncode - at) * sizeof(Instruction));
  c->p->ncode += n;
}

static void copy(Compiler *c, int at, int n) {
  if (c->p->ncode + n > MOST_CODE) {
    fail(c, "it is too long");
    return;
  }
  memmove(c->p->code + c->p->ncode, c->p->code + at,
          (size_t)n * sizeof(Instruction));
  c->p->ncode += n;
}

/*
** Sets
*/
static void add_item(Compiler *c, SetItem x) {
  if (c->p->nitem == MOST_ITEMS) {
    fail(c, "it has too many sets");
    return;
  }
  c->p->item[c->p->nitem++] = x;
  c->p->set[c->p->nset - 1].n++;
}

static void begin_set(Compiler *c, int negated) {
  if (c->p->nset == MOST_SETS) {
    fail(c, "it has too many sets");
    return;
  }
  c->p->set[c->p->nset++] =
      (CharSet){ .first = c->p->nitem, .negated = negated };
}

static int item_has(const SetItem *x, uint32_t c) {
  const int in =
      (c >= x->from && c <= x->to) || (x->categories >> nl_category(c) & 1);
  return in != x->negated;
}

static int set_has(const Pattern *p, const CharSet *s, uint32_t c) {
  int in = 0;
  for (int i = 0; i < s->n && !in; i++)
    in = item_has(&p->item[s->first + i], c);
  return in != s->negated;
}

static void end_set(Compiler *c) {
  if (c->wrong) return;
  CharSet *s = &c->p->set[c->p->nset - 1];
  for (uint32_t k = 0; k < 128; k++)
    if (set_has(c->p, s, k)) s->ascii[k / 64] |= (uint64_t)1 << k % 64;
}

static void add_range(Compiler *c, uint32_t from, uint32_t to) {
  add_item(c, (SetItem){ .from = from, .to = to });
  if (!c->ignore_case) return;
  for (uint32_t k = 'a'; k <= 'z'; k++) {
    if (k >= from && k <= to)
      add_item(c, (SetItem){ .from = k - 32, .to = k - 32 });
    if (k - 32 >= from && k - 32 <= to)
      add_item(c, (SetItem){ .from = k, .to = k });
  }
  /* the two that fold to an ASCII letter */
  if ('s' >= from && 's' <= to)
    add_item(c, (SetItem){ .from = 0x17F, .to = 0x17F });
  if ('k' >= from && 'k' <= to)
    add_item(c, (SetItem){ .from = 0x212A, .to = 0x212A });
}

/* \s and \S have ranges instead of categories. */
static void add_white(Compiler *c, int negated) {
  static const uint32_t white[][2] = { { 9, 13 },          { ' ', ' ' },
                                       { 0x85, 0x85 },     { 0xA0, 0xA0 },
                                       { 0x1680, 0x1680 }, { 0x2000, 0x200A },
                                       { 0x2028, 0x2029 }, { 0x202F, 0x202F },
                                       { 0x205F, 0x205F }, { 0x3000, 0x3000 } };
  uint32_t from = 0;
  for (size_t i = 0; i < sizeof white / sizeof *white; i++) {
    if (!negated) add_item(c, (SetItem){ white[i][0], white[i][1], 0, 0 });
    else if (white[i][0] > from)
      add_item(c, (SetItem){ from, white[i][0] - 1, 0, 0 });
    from = white[i][1] + 1;
  }
  if (negated) add_item(c, (SetItem){ from, 0x10FFFF, 0, 0 });
}

static void add_categories(Compiler *c, uint32_t bits, int negated) {
  add_item(c, (SetItem){
                  .from = 1, .to = 0, .categories = bits, .negated = negated });
}

/* \p{L}, \pL, \p{^L} and \P of these. */
static void add_property(Compiler *c, int negated) {
  const char *from = c->at, *to = c->at + 1;
  if (next_is(c, "{")) {
    if (next_is(c, "^")) negated = !negated;
    from = c->at;
    while (c->at < c->end && *c->at != '}') c->at++;
    to = c->at;
    if (!next_is(c, "}")) fail(c, "'}' is missing");
  } else c->at++;
  const uint32_t bits =
      to <= c->end ? nl_categories(from, (size_t)(to - from)) : 0;
  if (bits == 0) fail(c, "it has a property that is no general category");
  add_categories(c, bits, negated);
}

static uint32_t hexadecimal(Compiler *c, int digits) {
  static const char all[] = "0123456789abcdefABCDEF";
  const int braces = next_is(c, "{");
  uint32_t v = 0;
  int n = 0;
  for (; c->at < c->end && n < (braces ? 6 : digits); n++, c->at++) {
    const char *at = *c->at ? strchr(all, *c->at) : NULL;
    if (at == NULL) break;
    const int k = (int)(at - all);
    v = v * 16 + (uint32_t)(k < 16 ? k : k - 6);
  }
  if (n == 0 || (braces && !next_is(c, "}")))
    fail(c, "an escape has no digits");
  return v;
}

/* Reads what follows a backslash: 1 if it was a set, which it adds, else 0 and
   the character. */
static int read_escape(Compiler *c, uint32_t *k) {
  static const uint32_t word = 0x1F | 7 << U_MN | 1 << U_ND | 1 << U_PC;
  const int letter = c->at < c->end ? *c->at++ : 0;
  switch (letter) {
    case 's': return add_white(c, 0), 1;
    case 'S': return add_white(c, 1), 1;
    case 'd': return add_categories(c, 1 << U_ND, 0), 1;
    case 'D': return add_categories(c, 1 << U_ND, 1), 1;
    case 'w': return add_categories(c, word, 0), 1;
    case 'W': return add_categories(c, word, 1), 1;
    case 'p': return add_property(c, 0), 1;
    case 'P': return add_property(c, 1), 1;
    case 'n': *k = '\n'; return 0;
    case 'r': *k = '\r'; return 0;
    case 't': *k = '\t'; return 0;
    case 'f': *k = '\f'; return 0;
    case 'v': *k = '\v'; return 0;
    case 'x': *k = hexadecimal(c, 2); return 0;
    case 'u': *k = hexadecimal(c, 4); return 0;
    default: break;
  }
  *k = (uint32_t)letter;
  if (letter == 0 || (letter >= '0' && letter <= '9') ||
      (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'))
    fail(c, "it has an escape that is not known");
  return 0;
}

static uint32_t next_character(Compiler *c) {
  int n;
  const uint32_t k = nl_character(c->at, c->end, &n);
  c->at += n;
  return k;
}

/* A set behind its bracket. */
static void read_set(Compiler *c) {
  uint32_t from, to;
  begin_set(c, next_is(c, "^"));
  for (int i = 0; c->at < c->end && (i == 0 || *c->at != ']'); i++) {
    if (*c->at == '[' || (c->end - c->at > 1 && memcmp(c->at, "&&", 2) == 0)) {
      fail(c, "it has sets in sets");
      return;
    }
    if (next_is(c, "\\")) {
      if (read_escape(c, &from)) continue;
    } else from = next_character(c);
    to = from;
    if (c->end - c->at > 1 && *c->at == '-' && c->at[1] != ']') {
      c->at++;
      if (!next_is(c, "\\")) to = next_character(c);
      else if (read_escape(c, &to)) fail(c, "a range ends in a set");
    }
    if (to < from) fail(c, "a range is empty");
    add_range(c, from, to);
  }
  if (!next_is(c, "]")) fail(c, "']' is missing");
  end_set(c);
}

static void emit_set(Compiler *c) {
  emit(c, P_SET, c->p->nset - 1, 0);
}

/*
** Fragments
*/
static void read_alternatives(Compiler *c);

/* A group behind its parenthesis. */
static void read_group(Compiler *c) {
  const int outer = c->ignore_case, at = c->p->ncode;
  int look = -1;
  if (++c->level > MOST_LEVELS) fail(c, "it is nested too deep");
  if (next_is(c, "?i:")) c->ignore_case = 1;
  else if (next_is(c, "?=")) look = P_LOOK;
  else if (next_is(c, "?!")) look = P_NOT;
  else if (!next_is(c, "?:") && c->at < c->end && *c->at == '?')
    fail(c, "it has a kind of group that is not known");
  if (look >= 0) emit(c, (PatternOp)look, 0, 0);
  read_alternatives(c);
  if (!next_is(c, ")")) fail(c, "')' is missing");
  if (look >= 0) {
    emit(c, P_DONE, 0, 0);
    if (!c->wrong) c->p->code[at].a = c->p->ncode - at;
  }
  c->ignore_case = outer;
  c->level--;
}

static void read_atom(Compiler *c) {
  uint32_t k = 0;
  if (next_is(c, "(")) read_group(c);
  else if (next_is(c, "[")) read_set(c), emit_set(c);
  else if (next_is(c, "^")) emit(c, P_START, 0, 0);
  else if (next_is(c, "$")) emit(c, P_END, 0, 0);
  else if (strchr("*+?{", *c->at) && *c->at) fail(c, "nothing is repeated");
  else if (next_is(c, ".")) {
    begin_set(c, 1);
    add_range(c, '\n', '\n');
    end_set(c);
    emit_set(c);
  } else {
    begin_set(c, 0);
    const int escaped = next_is(c, "\\");
    if (!escaped) k = next_character(c);
    if (!escaped || !read_escape(c, &k)) add_range(c, k, k);
    end_set(c);
    emit_set(c);
  }
}

static int read_count(Compiler *c) {
  int n = 0;
  const char *from = c->at;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    n = n < MOST_REPEATS ? 10 * n + *c->at - '0' : n;
  if (c->at == from) fail(c, "a number of repetitions is missing");
  return n;
}

/* How often: 1 if it is said. -1: without end. */
static int read_repeats(Compiler *c, int *least, int *most) {
  if (next_is(c, "*")) return *least = 0, *most = -1, 1;
  if (next_is(c, "+")) return *least = 1, *most = -1, 1;
  if (next_is(c, "?")) return *least = 0, *most = 1, 1;
  if (!next_is(c, "{")) return 0;
  *least = *most = c->at < c->end && *c->at == ',' ? 0 : read_count(c);
  if (next_is(c, ","))
    *most = c->at < c->end && *c->at == '}' ? -1 : read_count(c);
  if (!next_is(c, "}")) fail(c, "'}' is missing");
  if (*least > MOST_REPEATS || *most > MOST_REPEATS ||
      (*most >= 0 && *most < *least))
    fail(c, "a number of repetitions is wrong");
  return 1;
}

/* The fragment of n instructions at `at', which is the last, once or not. */
static void make_optional(Compiler *c, int at, int n, int lazy) {
  insert(c, at, 1);
  if (!c->wrong)
    c->p->code[at] =
        (Instruction){ P_SPLIT, lazy ? n + 1 : 1, lazy ? 1 : n + 1 };
}

static void make_endless(Compiler *c, int at, int n, int lazy) {
  make_optional(c, at, n + 1, lazy);
  emit(c, P_JUMP, -(n + 1), 0);
}

/* Can the fragment match nothing? It is asked where that would be repeated. */
static int may_be_empty(const Pattern *p, int at, int end) {
  while (at < end) {
    const Instruction *i = &p->code[at];
    if (i->op == P_SET) return 0;
    if (i->op == P_SPAN || i->op == P_POSSESSIVE) {
      if (i->a > 0) return 0;
      at += 2;
    } else if (i->op == P_SPLIT) {
      return may_be_empty(p, at + i->a, end) || may_be_empty(p, at + i->b, end);
    } else
      at += i->op == P_JUMP || i->op == P_LOOK || i->op == P_NOT ? i->a : 1;
  }
  return 1;
}

static void repeat_fragment(Compiler *c, int at, int least, int most,
                            int lazy) {
  const int n = c->p->ncode - at;
  if (most < 0 && may_be_empty(c->p, at, c->p->ncode)) {
    fail(c, "what may be empty is repeated without end");
    return;
  }
  for (int i = 1; i < least; i++) copy(c, at, n);
  if (most < 0 && least > 0) copy(c, at, n);
  if (most < 0) make_endless(c, c->p->ncode - n, n, lazy);
  for (int i = least; i < most && !c->wrong; i++) {
    /* the first of them has moved behind its SPLIT */
    if (i > 0) copy(c, least > 0 ? at : at + 1, n);
    make_optional(c, c->p->ncode - n, n, lazy);
  }
  if (most == 0) c->p->ncode = at;
}

static void read_repeated(Compiler *c) {
  const int at = c->p->ncode;
  int least, most;
  read_atom(c);
  if (c->wrong || !read_repeats(c, &least, &most)) return;
  const int lazy = next_is(c, "?"), possessive = !lazy && next_is(c, "+");
  if (c->p->ncode == at + 1 && c->p->code[at].op == P_SET && !lazy) {
    insert(c, at, 1);
    if (!c->wrong)
      c->p->code[at] =
          (Instruction){ possessive ? P_POSSESSIVE : P_SPAN, least, most };
  } else if (possessive) fail(c, "only single characters can be possessive");
  else repeat_fragment(c, at, least, most, lazy);
  if (c->at < c->end && *c->at && strchr("*+{", *c->at))
    fail(c, "a repetition is repeated");
}

static void read_alternatives(Compiler *c) {
  const int at = c->p->ncode;
  while (c->at < c->end && *c->at != '|' && *c->at != ')') read_repeated(c);
  if (!next_is(c, "|") || c->wrong) return;
  const int n = c->p->ncode - at;
  insert(c, at, 1);
  emit(c, P_JUMP, 0, 0);
  const int jump = c->p->ncode - 1;
  read_alternatives(c);
  if (c->wrong) return;
  c->p->code[at] = (Instruction){ P_SPLIT, 1, n + 2 };
  c->p->code[jump].a = c->p->ncode - jump;
}

static void read_literal(Compiler *c) {
  while (c->at < c->end && !c->wrong) {
    const uint32_t k = next_character(c);
    begin_set(c, 0);
    add_range(c, k, k);
    end_set(c);
    emit_set(c);
  }
}

const char *nl_compile_pattern(Pattern *p, const char *text, size_t n,
                               int literal) {
  Compiler c = { .p = p, .at = text, .end = text + n };
  p->ncode = p->nset = p->nitem = 0;
  if (n == 0) return "it is empty";
  if (literal) read_literal(&c);
  else read_alternatives(&c);
  if (c.at < c.end) fail(&c, "')' has no '('");
  emit(&c, P_DONE, 0, 0);
  return c.wrong;
}
