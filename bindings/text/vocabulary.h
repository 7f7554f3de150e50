/* SPDX-License-Identifier: MIT */
/*
** vocabulary.h - the pieces of a tokenizer, each with a number from 0, and the
** two ways to divide a text into them.
*/
#ifndef bindings_text_vocabulary_h
#define bindings_text_vocabulary_h

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Piece {        /* n = 0: there is none of this number */
  uint32_t at, n;             /* its bytes */
  double score;
} Piece;

typedef struct Merge { int32_t a, b, rank, piece; } Merge; /* a -1: none */

/* Memory of a userdata of Lua. */
typedef struct Vocabulary {
  int32_t n, unknown;         /* pieces; the one for what is not known, or -1 */
  uint32_t slots, mergeslots, longest;
  int fuse_unknown, ignore_merges, by_bytes;
  int32_t byte[256];          /* the piece for each byte, or -1 */
  double least;               /* score */
  Piece *piece;
  int32_t *slot;              /* -1, or a piece, by the hash of its bytes */
  Merge *merge;               /* by the hash of a and b */
  char *bytes;
} Vocabulary;

/* vocabulary{pieces =, ...}: the userdata. [-0, +1, e] */
#define NL_VOCABULARY "nacre.vocabulary"
int nl_new_vocabulary(lua_State *L);
/* Stores a merge; of several of one pair the last counts. */
void nl_add_merge(Vocabulary *v, Merge x);
/* Raises the text as it is: tokenizer.lua says where. [-0, +0, v] */
int nl_refuse_text(lua_State *L, const char *text);
/* The number of a piece, or -1. */
int32_t nl_find_piece(const Vocabulary *v, const char *s, size_t n);
/* Where the numbers of a text go, in order. */
typedef struct Pieces {
  lua_State *L;
  int list;                   /* index of the list that they go to */
  lua_Integer n;              /* its length */
} Pieces;

void nl_add_piece(Pieces *to, int32_t piece);
/* Byte pairs: merges by rank. [-0, +0, e] */
void nl_divide_by_merges(Pieces *to, const Vocabulary *v, const char *s,
                         size_t n);
/* Unigram: the pieces with the highest sum of scores. [-0, +0, e] */
void nl_divide_by_scores(Pieces *to, const Vocabulary *v, const char *s,
                         size_t n);
/* Pieces for a character that has none: its bytes if all have one, else the
   unknown piece; `before': was the last one unknown, too? */
int nl_add_unknown(Pieces *to, const Vocabulary *v, const char *s, size_t n,
                   int before);

#endif
