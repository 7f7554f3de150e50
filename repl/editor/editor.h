/* SPDX-License-Identifier: MIT */
/*
** editor.h - what the shell needs of a line editor.
**
** An Editor is seven functions; readline_editor.c and plain_editor.c have one
** each, and nothing else knows readline.  An editor edits whole blocks: it
** asks the hooks whether a block is complete and how deep its next line goes.
** The hooks never jump, and run no user code but what was given for that.
*/
#ifndef editor_h
#define editor_h

#include <stddef.h>

typedef enum EditResult { EDIT_LINE, EDIT_CANCEL, EDIT_END } EditResult;

typedef struct Candidate {
  char *text; /* what takes the word's place, with a closing quote or a blank */
  char *note; /* signature and such, for the list; may be NULL */
} Candidate;

typedef struct Candidates {
  Candidate *item; /* the best first; freed by who asks */
  int n;
  size_t start; /* where the word begins; the texts need not begin with it:
                   case may differ, and letters may be left out */
  char *head; /* a line to stand above the list; may be NULL */
} Candidates;

typedef struct EditorHooks {
  /* Is text to be submitted, or is the block still open? */
  int (*ready)(const char *text);
  /* The column where a line that begins with rest starts, after text. */
  int (*indent)(const char *text, const char *rest);
  /* What the word that ends at point can become. */
  void (*complete)(const char *text, size_t point, Candidates *c);
  /* The signature of the call around point, malloced, and in it the argument
     that is being written, [*from, *to), empty if there is none; NULL: no call
     that is known. */
  char *(*signature)(const char *text, size_t point, int *from, int *to);
  /* The Role of a global variable, from a raw look-up; nothing is run. */
  int (*role)(const char *name, size_t n);
  /* Where Lua begins in a block, behind a command or "="; n: nowhere. */
  size_t (*code)(const char *text, size_t n);
  /* The first error that more text cannot mend, malloced, and its *n bytes at
     *at; NULL: there is none.  It may take as long as compiling does. */
  char *(*fault)(const char *text, size_t *at, size_t *n);
  int (*color)(void); /* a ScreenColor */
  /* Help for the word at point, malloced; NULL if there is none. */
  char *(*help)(const char *text, size_t point);
  int (*columns)(void);
  /* Text from a session without its output, malloced; NULL: other text. */
  char *(*pasted)(const char *text);
  /* Of a block of several inputs the first, malloced, while the others wait
     for next; NULL if it is one. */
  char *(*split)(const char *text);
  char *(*next)(void); /* NULL: none waits */
  /* What was typed, as the error of that corrects it, malloced; NULL: there is
     none, or it was taken. */
  char *(*correction)(void);
  /* What the user's function for a key makes of the line, which is left of the
     cursor and right of it: malloced, and where the cursor is then; NULL: the
     line stays. */
  char *(*key)(int id, const char *left, const char *right, size_t *point);
} EditorHooks;

typedef struct Editor {
  const char *(*name)(void);
  int (*open)(const EditorHooks *hooks); /* 0: cannot be used here */
  /* A block, malloced; text is NULL unless EDIT_LINE comes back. */
  EditResult (*read)(const char *prompt, const char *prompt2, char **text);
  void (*remember)(const char *text); /* into the list Up walks through */
  int (*prefill)(const char *text);   /* the next block begins so; 0: cannot */
  /* A key calls hooks.key with what comes back, or no longer if not `on`; 0: it
     cannot, and why, NULL if there are no keys. */
  int (*bind)(const char *keys, int on, const char **why);
  void (*close)(void);
} Editor;

extern const Editor editor_plain;
#if NACRE_READLINE
extern const Editor editor_readline;
#endif

void sh_freecandidates(Candidates *c);

#endif
