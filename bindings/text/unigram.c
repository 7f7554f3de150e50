/* SPDX-License-Identifier: MIT */
/* unigram.c - divides a text into the pieces with the highest sum of scores. */
#include <lauxlib.h>
#include <string.h>

#include "bindings/text/pattern.h"
#include "bindings/text/vocabulary.h"

#define UNKNOWN_PENALTY 10.0

/* The best way to a place in the text: where its last piece begins, -1 if there
   is none yet. */
typedef struct Step {
  double score;
  int32_t from, piece;
} Step;

static void offer(Step *to, double score, int32_t from, int32_t piece) {
  if (to->from < 0 || score > to->score) *to = (Step){ score, from, piece };
}

/* Offers all pieces that begin at `at', whose character has k bytes. */
static void extend(Step *step, const Vocabulary *v, const char *s, size_t n,
                   size_t at, int k) {
  const size_t most = n - at < v->longest ? n - at : v->longest;
  const double score = step[at].score;
  int single = 0;
  for (size_t i = (size_t)k; i <= most; i++) {
    if (at + i < n && ((unsigned char)s[at + i] & 0xC0) == 0x80) continue;
    const int32_t piece = nl_find_piece(v, s + at, i);
    if (piece < 0) continue;
    offer(&step[at + i], score + v->piece[piece].score, (int32_t)at, piece);
    single |= i == (size_t)k;
  }
  if (!single)
    offer(&step[at + (size_t)k], score + v->least - UNKNOWN_PENALTY,
          (int32_t)at, -1);
}

/* Turns the way back from the end round: step[i].score is then where the piece
   that begins at i ends. */
static void turn_round(Step *step, size_t n) {
  for (int32_t end = (int32_t)n; end > 0;) {
    const int32_t from = step[end].from;
    step[from].score = (double)end;
    end = from;
  }
}

/* Several characters without a piece are one unknown text if they are fused:
   it has its bytes as pieces only if all of them have one. */
static void add_steps(Pieces *to, const Vocabulary *v, const char *s, size_t n,
                      const Step *step) {
  size_t unknown = 0; /* bytes of an unknown text before `at' */
  for (size_t at = 0; at < n;) {
    const size_t end = (size_t)step[at].score;
    const int32_t piece = step[end].piece;
    if (piece >= 0 || !v->fuse_unknown) {
      if (unknown) nl_add_unknown(to, v, s + at - unknown, unknown, 0);
      unknown = 0;
    }
    if (piece >= 0) nl_add_piece(to, piece);
    else if (v->fuse_unknown) unknown += end - at;
    else nl_add_unknown(to, v, s + at, end - at, 0);
    at = end;
  }
  if (unknown) nl_add_unknown(to, v, s + n - unknown, unknown, 0);
}

void nl_divide_by_scores(Pieces *to, const Vocabulary *v, const char *s,
                         size_t n) {
  if (n > INT32_MAX / 4) nl_refuse_text(to->L, "the text is too long");
  Step *step = lua_newuserdatauv(to->L, (n + 1) * sizeof *step, 0);
  for (size_t i = 0; i <= n; i++) step[i] = (Step){ 0, -1, -1 };
  for (size_t at = 0; at < n;) {
    int k;
    nl_character(s + at, s + n, &k);
    extend(step, v, s, n, at, k);
    at += (size_t)k;
  }
  turn_round(step, n);
  add_steps(to, v, s, n, step);
  lua_pop(to->L, 1);
}
