/* SPDX-License-Identifier: MIT */
/*
** lex.h - the tokens of Lua source, complete or not.  It never fails: what Lua
** would reject becomes a TOKEN_OP of one byte, or a token that is not closed.
*/
#ifndef lex_h
#define lex_h

#include <stddef.h>

typedef enum TokenKind {
  TOKEN_NAME,
  TOKEN_KEYWORD,
  TOKEN_NUMBER,
  TOKEN_STRING,
  TOKEN_COMMENT,
  TOKEN_OP
} TokenKind;

typedef struct Token {
  TokenKind kind;
  size_t from, to; /* its bytes, without the last */
  int line;        /* counted from 1 */
  int closed;      /* 0: a string or comment whose end is missing */
} Token;

typedef struct Lexer {
  const char *text;
  size_t size, at;
  int line;
} Lexer;

Lexer sh_lexer(const char *text, size_t size);
int sh_nexttoken(Lexer *l, Token *t); /* 0: there is none */

/* The tokens with the number of brackets and blocks that are open. */
typedef struct Nested {
  Lexer l;
  Token t;
  size_t depth, inside; /* before the token, and behind it */
} Nested;

int sh_nextnested(Nested *n); /* 0: there is none */

/* Is the token this word? */
int sh_tokenis(const Lexer *l, const Token *t, const char *word);

/* The column of a line that begins with rest after text: two for each line
   that leaves a bracket or block open; 0 inside a long string. */
int sh_indent(const char *text, size_t size, const char *rest, size_t n);

extern const char *const sh_keywords[]; /* sorted; NULL at the end */

#endif
