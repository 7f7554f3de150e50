/* SPDX-License-Identifier: MIT */
/*
** pattern.h - regular expressions over characters, as tokenizer.json has them.
*/
#ifndef bindings_text_pattern_h
#define bindings_text_pattern_h

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SetItem {      /* from..to, and characters of these categories */
  uint32_t from, to, categories;
  int negated;                /* all others */
} SetItem;

typedef struct CharSet {
  uint64_t ascii[2];          /* the answer for each of the first characters */
  int first, n;               /* of the items */
  int negated;
} CharSet;

/* Places are relative to the instruction. */
typedef enum PatternOp {
  P_SET, P_SPAN, P_POSSESSIVE, P_SPLIT, P_JUMP, P_LOOK, P_NOT, P_START, P_END,
  P_DONE
} PatternOp;
typedef struct Instruction {
  PatternOp op;
  int a, b;                   /* SET: a set; SPAN: a to b times, the set is in
                                 the next one; SPLIT: first a, then b; JUMP: a;
                                 LOOK, NOT: what follows up to P_DONE, then a */
} Instruction;

enum { MOST_CODE = 2000, MOST_SETS = 200, MOST_ITEMS = 1000 };

typedef struct Pattern {
  int ncode, nset, nitem;
  Instruction code[MOST_CODE];
  CharSet set[MOST_SETS];
  SetItem item[MOST_ITEMS];
} Pattern;

/* Compiles the n bytes at `text'; literal: they stand for themselves. Returns
   NULL, or why it cannot be done. */
const char *nl_compile_pattern(Pattern *p, const char *text, size_t n,
                               int literal);

typedef struct Matcher {
  lua_State *L;
  const Pattern *p;
  const char *text, *end;
  int stack;                  /* index of its memory */
  struct Choice *choice;
  size_t nchoice, room;
  uint64_t steps;             /* that are left */
} Matcher;

/* Prepares m, with a value on the stack that must stay there.
   [-0, +1, m] */
void nl_start_matcher(Matcher *m, lua_State *L, const Pattern *p,
                      const char *text, size_t n);
/* The first match from `at' on: 1, *from and *to; or 0. [-0, +0, e] */
int nl_find_pattern(Matcher *m, const char *at, const char **from,
                    const char **to);

/* The character at s and, in *n, its bytes: 1 where it is not UTF-8. */
uint32_t nl_character(const char *s, const char *end, int *n);

#endif
