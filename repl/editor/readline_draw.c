/* SPDX-License-Identifier: MIT */
/*
** readline_draw.c - draws the block that readline edits.
**
** readline believes that it draws into a stream in memory.  Its redisplay only
** says that something changed; rlwaitkey lets us draw once nothing waits to be
** read.  Of what readline writes itself, the modes of the terminal pass, moves
** of a cursor that is not there are dropped, and texts go above the block.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/editor/paint.h"
#include "repl/editor/readline_editor.h"
#include "repl/editor/block_view.h"
#include "repl/host/repl.h"

static const int64_t LATE = 50000000; /* ns without a picture while keys come */

static const EditorHooks *hooks;
static int own;        /* we draw */
static int stale;      /* the picture is not that of the text */
static int64_t since;  /* when it became so */
static int last;       /* the last picture of the block: nothing but it */
static int finished;   /* that was drawn */
static char *captured; /* what readline wrote */
static size_t ncaptured;
static char *theprompt; /* its last row */
static Screen screen = { .fd = 1 };
static Frame frame;
static View view;
static Painting painting;
static struct {
  char *checked; /* the text that was looked at */
  char *message; /* what is wrong with it, or NULL */
  size_t at, n;  /* where */
} fault;
static struct {
  char *text; /* that of the signature's call, up to the cursor */
  char *signature;
  int from, to;
} call;

int rldraws(void) {
  return own;
}

ScreenColor rldrawcolor(void) {
  return screen.color;
}

static void touch(void) {
  if (!stale) since = nc_now();
  stale = 1;
}

int rldrawstale(void) {
  if (!own) return 0;
  fflush(rl_outstream);
  if (ncaptured > 0) touch();
  return stale ? 1 + (nc_now() - since > LATE) : 0;
}

/*
** What readline writes
*/
static void dropcaptured(void) {
  fseeko(rl_outstream, 0, SEEK_SET);
  fflush(rl_outstream);
}

/* The end of the escape sequence at s. */
static const char *sequence(const char *s, const char *end) {
  s++;
  if (s < end && *s == '[')
    for (s++; s < end && (*s < '@' || *s > '~');) s++;
  return s < end ? s + 1 : end;
}

/* Passes the sequences that set modes. */
void rldrawprep(void) {
  const char *s, *next, *end;
  if (!own) return;
  fflush(rl_outstream);
  for (s = captured, end = s + ncaptured; s < end; s = next) {
    next = *s == '\033' ? sequence(s, end) : s + 1;
    if (*s == '\033') sh_screen_add(&screen, s, (size_t)(next - s));
  }
  dropcaptured();
  sh_screen_flush(&screen);
}

/* Writes a text above the block, with the line feeds that a raw terminal
   needs. */
static void writeabove(const char *s, const char *end) {
  char before = '\n';
  sh_screen_home(&screen);
  for (; s < end; before = *s++) {
    if (*s == '\n') sh_screen_add(&screen, "\r", 1);
    sh_screen_add(&screen, s, 1);
  }
  if (before != '\n') sh_screen_print(&screen, "\r\n");
  touch();
}

void rldrawabove(const char *text) {
  if (own) writeabove(text, text + strlen(text));
}

/* Puts what readline printed above the block. */
static void showcaptured(void) {
  const char *s, *end;
  char *to;
  int printed = 0;
  fflush(rl_outstream); /* may move what is captured */
  if (ncaptured == 0) return;
  to = captured;
  for (s = captured, end = s + ncaptured; s < end;)
    if (*s == '\033') s = sequence(s, end);
    else {
      printed |= *s > ' ';
      if (*s != '\r' && *s != '\a') *to++ = *s;
      s++;
    }
  if (printed) writeabove(captured, to);
  dropcaptured();
}

/*
** The picture
*/

/* The prompt, behind the mode of the keys if .inputrc asks for it. */
static const char *prompttext(void) {
  static char text[512];
  const char *show = rl_variable_value("show-mode-in-prompt"), *mode;
  if (show == NULL || strcmp(show, "on") != 0) return theprompt;
  mode = rl_variable_value(rl_editing_mode != 0 ? "emacs-mode-string"
                           : rl_get_keymap() == vi_movement_keymap
                               ? "vi-cmd-mode-string"
                               : "vi-ins-mode-string");
  snprintf(text, sizeof text, "%s%s", mode != NULL ? mode : "", theprompt);
  return text;
}

/* What a search looks for is between these quotes of its message. */
static void setfound(const char *message) {
  const char *from, *to;
  view.found = NULL;
  if (message == NULL || !RL_ISSTATE(RL_STATE_ISEARCH)) return;
  from = strchr(message, '`');
  to = from != NULL ? strrchr(from, '\'') : NULL;
  if (to == NULL) return;
  view.found = from + 1;
  view.nfound = (size_t)(to - from - 1);
}

/* The signature of the call at the cursor, from the line where it begins on.
   It is asked for if that text is another. */
static const char *signature(void) {
  size_t from = painting.callfrom;
  const size_t point = (size_t)rl_point;
  while (from > 0 && rl_line_buffer[from - 1] != '\n') from--;
  if (call.text == NULL || strlen(call.text) != point - from ||
      strncmp(call.text, rl_line_buffer + from, point - from) != 0) {
    free(call.text);
    free(call.signature);
    call.text = strndup(rl_line_buffer + from, point - from);
    call.signature =
        call.text == NULL
            ? NULL
            : hooks->signature(call.text, point - from, &call.from, &call.to);
  }
  view.from = call.from;
  view.to = call.to;
  return call.signature;
}

/* The row below the block: a message of readline, the first error, what the
   candidates are for, or the call at the cursor. */
static void sethint(const char *message) {
  const Menu *m = view.menu;
  view.from = view.to = 0;
  view.hintrole = ROLE_PLAIN;
  view.hint = message;
  if (message != NULL || last) return;
  view.hintrole = ROLE_ERROR;
  view.hint = fault.message;
  if (view.hint != NULL) return;
  view.hintrole = ROLE_HINT;
  view.hint = m->c.head;
  if (view.hint == NULL && painting.incall) view.hint = signature();
  if (view.hint == NULL) view.hint = rlsuggestnote();
}

static void setfault(void) {
  size_t i;
  if (fault.checked != NULL && strcmp(fault.checked, rl_line_buffer) != 0) {
    free(fault.checked);
    free(fault.message);
    memset(&fault, 0, sizeof fault);
  }
  if (fault.message == NULL || last || painting.role == NULL) return;
  for (i = fault.at; i < fault.at + fault.n && i < (size_t)rl_end; i++)
    painting.role[i] = ROLE_FAULT;
}

static void paint(int marks) {
  Block b = { .text = rl_line_buffer,
              .size = (size_t)rl_end,
              .point = (size_t)rl_point,
              .marks = marks,
              .global = hooks->role };
  b.code = hooks->code(rl_line_buffer, b.size);
  sh_paint(&painting, &b);
  setfault();
}

static void draw(void) {
  const char *message =
      rl_display_prompt != rl_prompt ? rl_display_prompt : NULL;
  stale = 0;
  screen.color = hooks->color();
  showcaptured();
  stale = 0;
  view.menu = rlmenu();
  paint(!last && message == NULL);
  view.text = rl_line_buffer;
  view.size = (size_t)rl_end;
  view.point = (size_t)rl_point;
  view.role = painting.role;
  view.prompt = prompttext();
  view.whole = last;
  view.suggestion = last ? NULL : rlsuggestion();
  setfound(message);
  sethint(message);
  view.columns = screen.columns;
  view.rows = screen.rows;
  sh_view_draw(&view, &frame);
  sh_screen_show(&screen, &frame);
}

void rldrawnow(void) {
  if (own && stale) draw();
}

void rldrawidle(void) {
  if (!own ||
      (fault.checked != NULL && strcmp(fault.checked, rl_line_buffer) == 0))
    return;
  free(fault.checked);
  free(fault.message);
  fault.checked = strdup(rl_line_buffer);
  fault.at = fault.n = 0;
  fault.message =
      rl_end > 0 ? hooks->fault(rl_line_buffer, &fault.at, &fault.n) : NULL;
  if (fault.message != NULL) touch();
}

/*
** Beginning and end of a block
*/
void rldrawagain(void) {
  if (!own) return;
  finished = 0;
  sh_screen_resize(&screen);
  sh_screen_forget(&screen);
  /* keys that were pressed while the terminal was cooked were echoed */
  sh_screen_print(&screen, "\r\033[K");
  touch();
}

void rldrawbegin(const char *prompt) {
  const char *row = strrchr(prompt, '\n');
  const char *s;
  if (!own) return;
  rldrawagain();
  for (s = prompt; row != NULL && s <= row; s++)
    if (*s == '\n') sh_screen_print(&screen, "\r\n");
    else if (*s != '\1' && *s != '\2') sh_screen_add(&screen, s, 1);
  free(theprompt);
  theprompt = strdup(row != NULL ? row + 1 : prompt);
  if (theprompt == NULL) theprompt = calloc(1, 1);
  view.top = 0;
  finished = 0;
  sh_paint_forget();
  free(call.text);
  free(call.signature);
  memset(&call, 0, sizeof call);
}

void rldrawfinish(const char *behind) {
  const int at = rl_point;
  if (!own || finished || theprompt == NULL) return;
  rlmenuclose();
  last = 1;
  rl_point = rl_end;
  draw();
  rl_point = at;
  last = 0;
  finished = 1;
  sh_screen_print(&screen, behind);
  sh_screen_print(&screen, "\r\n");
  sh_screen_flush(&screen);
  sh_screen_forget(&screen);
  stale = 0;
}

void rldrawhome(void) {
  if (!own) return;
  sh_screen_home(&screen);
  sh_screen_flush(&screen);
}

static int clearscreen(int count, int key) {
  if (!own) return rl_clear_screen(count, key);
  sh_screen_print(&screen, "\033[H\033[2J");
  sh_screen_forget(&screen);
  touch();
  return 0;
}

/* Terminals that wrap rows anew when their width changes, as far as the
   environment tells.  In doubt they do not: a row too many does no harm. */
static int reflows(void) {
  static const char *const names[] = {
    "TMUX",         "VTE_VERSION", "KITTY_WINDOW_ID",
    "WEZTERM_PANE", "WT_SESSION",  "TERM_PROGRAM"
  };
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i]) != NULL && *getenv(names[i]) != '\0') return 1;
  return 0;
}

/* How many rows above the cursor the frame begins, in a window that was
   wider or narrower when it was drawn. */
static int rowsabove(int oldcolumns) {
  const Frame *f = &screen.shown;
  int up = f->row, row;
  if (oldcolumns != screen.columns && reflows()) {
    up = f->column / screen.columns;
    for (row = 0; row < f->row; row++)
      up += f->used[row] > 0 ? (f->used[row] - 1) / screen.columns + 1 : 1;
  }
  return up < screen.rows ? up : screen.rows - 1;
}

void rldrawresize(void) {
  const int columns = screen.columns;
  char text[32];
  int up;
  if (!own || !sh_screen_resize(&screen)) return;
  up = rowsabove(columns);
  snprintf(text, sizeof text, up > 0 ? "\r\033[%dA\033[J" : "\r\033[J", up);
  sh_screen_print(&screen, text);
  sh_screen_forget(&screen);
  touch();
}

/*
** Readline
*/
void rldrawopen(const EditorHooks *h) {
  hooks = h;
  own = 0;
  rl_add_defun("nacre-clear-screen", clearscreen, -1);
  rlmenuopen(h);
  rlsuggestopen();
  if (sh_plaindisplay()) return;
  FILE *f = open_memstream(&captured, &ncaptured);
  if (f == NULL) return;
  rl_outstream = f;
  own = 1;
}

static void bindmap(Keymap map) {
  rlbind("\\C-l", clearscreen, map);
  rlbind("\\e\\C-l", clearscreen, map);
  rlmenukeys(map);
  rlsuggestkeys(map);
}

/* Without these a cursor cannot move up, nor a row be erased. */
void rldrawinit(void) {
  if (!own) return;
  if (rl_get_termcap("up") == NULL || rl_get_termcap("ce") == NULL) {
    rldrawclose();
    return;
  }
  screen.shifts = rl_get_termcap("IC") != NULL && rl_get_termcap("DC") != NULL;
  rl_redisplay_function = touch;
  rl_completion_display_matches_hook = rlmenulist;
  bindmap(emacs_standard_keymap);
  bindmap(vi_insertion_keymap);
  rlbind("\\C-l", clearscreen, vi_movement_keymap);
}

void rldrawclose(void) {
  if (!own) return;
  own = 0;
  fclose(rl_outstream);
  rl_outstream = stdout;
  free(captured);
  captured = NULL;
  rl_redisplay_function = rl_redisplay;
  rlmenuclose();
  rlsuggestclose();
  sh_paint_free(&painting);
  sh_frame_free(&frame);
  sh_screen_free(&screen);
  screen.fd = 1;
  free(theprompt);
  free(fault.checked);
  free(fault.message);
  free(call.text);
  free(call.signature);
  theprompt = NULL;
  memset(&fault, 0, sizeof fault);
  memset(&call, 0, sizeof call);
}
