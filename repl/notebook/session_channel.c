/* SPDX-License-Identifier: MIT */
/*
** session_channel.c - the session's end of the channel to the supervisor, and
** io.stdin, which asks the front end for each line.
*/

#define _GNU_SOURCE /* ppoll, fopencookie */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "repl/host/repl.h"
#include "repl/notebook/kernel_host.h"

static int channel = -1;
static FILE *requests;    /* what the channel brings */
static int input_allowed; /* by the front end, for the running request */
static int refused;       /* was input asked for that is not allowed? */

void sh_session_channel(int fd) {
  channel = fd;
}

/* While interrupts are held, nothing that is read can be lost. */
static void hold_interrupts(int hold) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGINT);
  pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &only, NULL);
}

/* The next line; NULL at the end. */
static char *next_line(void) {
  static char *line;
  static size_t room;
  if (requests == NULL) requests = fdopen(channel, "r");
  if (room > 1 << 20) { /* as much is rarely needed again */
    free(line);
    line = NULL;
    room = 0;
  }
  if (requests == NULL || getline(&line, &room, requests) <= 0) return NULL;
  return line;
}

/* Is it an answer to io.read? Its bytes follow. */
static int is_answer(const char *line, int64_t *size) {
  return sscanf(line, "answer %" SCNd64, size) == 1;
}

/* The next line that is a request. An answer comes too late here. */
static char *next_request(void) {
  char *line;
  int64_t size;
  while ((line = next_line()) != NULL && is_answer(line, &size))
    while (size-- > 0 && getc(requests) != EOF) continue;
  return line;
}

/* receive(): the number of the next request and the rest of its line; nil when
   the supervisor has closed the channel. An interrupt of another request than
   this one came too late and is dropped. */
static int receive(lua_State *L) {
  char *line, *rest;
  nc_trim_idle_cache();
  hold_interrupts(1);
  line = next_request();
  hold_interrupts(0);
  if (line == NULL) return 0;
  const long number = strtol(line, &rest, 10);
  if (number != *sh_interrupted_request) sh_takeinterrupt();
  rest += *rest == ' ';
  lua_pushinteger(L, number);
  lua_pushlstring(L, rest, strcspn(rest, "\n"));
  return 2;
}

/* What was printed before arrives before. */
static int send_line(const char *text, size_t n) {
  fflush(stdout);
  fflush(stderr);
  return sh_writeall(channel, text, n);
}

/* Waits until the supervisor has read what was printed before a message, which
   so comes before what is printed after it. */
static void await_receipt(void) {
  char *line;
  hold_interrupts(1);
  do line = next_request();
  while (line != NULL && strcmp(line, "received\n") != 0);
  hold_interrupts(0);
}

/* send(line[, wait]): a line without its end; with `wait', until it is read */
static int send_text(lua_State *L) {
  size_t n;
  const int wait = lua_toboolean(L, 2);
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  lua_pushliteral(L, "\n");
  lua_concat(L, 2);
  const char *text = lua_tolstring(L, 1, &n);
  if (send_line(text, n) != 0)
    return luaL_error(L, "the notebook's kernel: %s", strerror(errno));
  if (wait) await_receipt();
  return 0;
}

/* allow_input(yes): may the running cell ask the user? Forgets a refusal. */
static int allow_input(lua_State *L) {
  input_allowed = lua_toboolean(L, 1);
  refused = 0;
  return 0;
}

/* input_refused(): was input asked for in vain? */
static int input_refused(lua_State *L) {
  lua_pushboolean(L, refused);
  return 1;
}

static char *answer; /* what the user entered, and how much was taken of it */
static size_t size, taken;

/* Waits for an answer, without missing a Ctrl-C; -1 after one. */
static int await_answer(void) {
  struct pollfd p = { channel, POLLIN, 0 };
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  sigdelset(&mask, SIGINT);
  while (!nc_interrupted)
    if (ppoll(&p, 1, NULL, &mask) >= 0) return 0;
    else if (errno != EINTR) return -1;
  return errno = EINTR, -1;
}

/* Reads an answer; 0 at the end of the input. */
static int read_answer(void) {
  const char *line = next_line();
  int64_t n;
  if (line == NULL || !is_answer(line, &n) || n < 0) return 0;
  char *room = realloc(answer, (size_t)n + 1);
  if (room == NULL) return -1;
  answer = room;
  size = fread(answer, 1, (size_t)n, requests);
  taken = 0;
  return size > 0;
}

static int ask(void) {
  static const char line[] = "input\n";
  int got = -1;
  if (!input_allowed) return refused = 1, errno = ENOTSUP, -1;
  if (send_line(line, sizeof line - 1) != 0) return -1;
  hold_interrupts(1);
  if (await_answer() == 0) got = read_answer();
  hold_interrupts(0);
  return got;
}

/* What io.stdin reads: the answers, one after the other. */
static ssize_t take_input(void *unused, char *buffer, size_t n) {
  (void)unused;
  if (taken == size) {
    const int got = ask();
    if (got <= 0) return got;
  }
  if (n > size - taken) n = size - taken;
  memcpy(buffer, answer + taken, n);
  taken += n;
  return (ssize_t)n;
}

/* replace_stdin(): io.stdin asks the front end from now on */
static int replace_stdin(lua_State *L) {
  const cookie_io_functions_t functions = { .read = take_input };
  lua_getglobal(L, "io");
  lua_getfield(L, -1, "stdin");
  luaL_Stream *s = luaL_checkudata(L, -1, LUA_FILEHANDLE);
  FILE *f = fopencookie(NULL, "r", functions);
  if (f == NULL) return luaL_error(L, "io.stdin: %s", strerror(errno));
  s->f = f;
  return 0;
}

void sh_open_session_end(lua_State *L) {
  static const luaL_Reg list[] = { { "receive", receive },
                                   { "send", send_text },
                                   { "allow_input", allow_input },
                                   { "input_refused", input_refused },
                                   { "replace_stdin", replace_stdin },
                                   { NULL, NULL } };
  luaL_setfuncs(L, list, 0);
}
