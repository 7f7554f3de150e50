/* SPDX-License-Identifier: MIT */
/*
** zmq_sockets.c - the sockets of libzmq for the notebook kernel.
**
** The library is opened when a kernel starts, so the program neither needs nor
** loads it otherwise, and the build does not need its headers. The functions
** and constants are those of the ABI of libzmq 4.
*/

#include <errno.h>
#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/notebook/kernel_host.h"
#include "core/library.h"

typedef union ZmqMessage {
  unsigned char room[64];
  void *aligned;
} ZmqMessage;

typedef struct ZmqItem {
  void *socket;
  int fd;
  short events, revents;
} ZmqItem;

enum { POLLABLE = 1 }; /* ZMQ_POLLIN */
enum { PUB = 1, REP = 4, ROUTER = 6 };
enum { DONTWAIT = 1, SNDMORE = 2 };
enum {
  LINGER = 17,
  MAXMSGSIZE = 22,
  SNDHWM = 23,
  RCVHWM = 24,
  HANDOVER = 56,
  NODROP = 69
};

/* clang-format off */
#define FUNCTIONS(X)                                            \
  X(void, version, (int *, int *, int *))                       \
  X(void *, ctx_new, (void))                                    \
  X(int, ctx_term, (void *))                                    \
  X(void *, socket, (void *, int))                              \
  X(int, close, (void *))                                       \
  X(int, setsockopt, (void *, int, const void *, size_t))       \
  X(int, bind, (void *, const char *))                          \
  X(int, poll, (ZmqItem *, int, long))                          \
  X(int, send, (void *, const void *, size_t, int))             \
  X(int, msg_init, (ZmqMessage *))                              \
  X(int, msg_recv, (ZmqMessage *, void *, int))                 \
  X(int, msg_close, (ZmqMessage *))                             \
  X(void *, msg_data, (ZmqMessage *))                           \
  X(size_t, msg_size, (const ZmqMessage *))                     \
  X(int, msg_more, (const ZmqMessage *))                        \
  X(const char *, strerror, (int))
/* clang-format on */

static struct {
  FUNCTIONS(NC_FIELD)
  int (*last_error)(void); /* zmq_errno: errno may be a macro */
} zmq;

static int is_version_4(void *handle) {
  int major = 0, minor, patch;
  zmq.version(&major, &minor, &patch);
  return major == 4 && nc_symbol(&zmq.last_error, handle, "zmq_errno");
}

static Library libzmq = {
  .variable = "NACRE_ZMQ",
  .names =
      NC_LIST("libzmq.so.5", "libzmq.so", "libzmq.5.dylib", "libzmq.dylib"),
  .prefix = "zmq_",
  NC_FUNCTIONS(FUNCTIONS, zmq),
  .accepts = is_version_4,
  .missing = "notebooks need libzmq 4",
  .hint = "install it (Debian: libzmq5)",
};

const char *sh_zmq_library(void) {
  return nc_libraryname(&libzmq);
}

static void *context;
static void *opened[8]; /* closed together, at the end */
static size_t count;

static int failed(lua_State *L, const char *what) {
  return luaL_error(L, "%s: %s", what, zmq.strerror(zmq.last_error()));
}

static void set(void *socket, int option, int value) {
  zmq.setsockopt(socket, option, &value, sizeof value);
}

/* No message is dropped because there are many: of what is published, QUEUE
   wait for the slowest front end, then send_frames refuses. Those that are
   still to be sent when the kernel ends have a second. A larger message than
   MOST cannot be one of a front end. */
static void options(void *socket, int type) {
  enum { QUEUE = 100 };
  const int64_t MOST = 1 << 28;
  set(socket, LINGER, 1000);
  set(socket, SNDHWM, type == PUB ? QUEUE : 0);
  if (type == PUB) set(socket, NODROP, 1);
  set(socket, RCVHWM, 0);
  zmq.setsockopt(socket, MAXMSGSIZE, &MOST, sizeof MOST);
  if (type == ROUTER) set(socket, HANDOVER, 1); /* a client may come back */
}

int sh_library_error(lua_State *L) {
  const Error *e = nc_lasterror();
  lua_pushfstring(L, *e->hint ? "%s\n  hint: %s" : "%s", e->text, e->hint);
  return lua_error(L);
}

/* open_socket(kind, endpoint): a socket that is bound to the endpoint */
static int open_socket(lua_State *L) {
  static const char *const kinds[] = { "router", "pub", "rep", NULL };
  static const int types[] = { ROUTER, PUB, REP };
  const int type = types[luaL_checkoption(L, 1, NULL, kinds)];
  const char *endpoint = luaL_checkstring(L, 2);
  if (nc_library(&libzmq) != NC_OK) return sh_library_error(L);
  if (context == NULL) context = zmq.ctx_new();
  if (context == NULL) return failed(L, "libzmq");
  if (count == sizeof opened / sizeof *opened)
    return luaL_error(L, "too many sockets");
  void *socket = zmq.socket(context, type);
  if (socket == NULL) return failed(L, endpoint);
  opened[count++] = socket;
  options(socket, type);
  if (zmq.bind(socket, endpoint) != 0) return failed(L, endpoint);
  lua_pushlightuserdata(L, socket);
  return 1;
}

/* close_sockets(): sends what is to be sent, and closes all sockets */
static int close_sockets(lua_State *L) {
  (void)L;
  while (count > 0) zmq.close(opened[--count]);
  if (context != NULL) zmq.ctx_term(context);
  context = NULL;
  return 0;
}

/* send_frames(socket, frames): false if that would have to wait */
static int send_frames(lua_State *L) {
  void *socket = lua_touserdata(L, 1);
  const lua_Integer n = luaL_len(L, 2);
  for (lua_Integer i = 1; i <= n; i++) {
    const int flags = DONTWAIT | (i < n ? SNDMORE : 0);
    size_t size;
    lua_rawgeti(L, 2, i);
    const char *text = luaL_checklstring(L, -1, &size);
    int sent;
    do sent = zmq.send(socket, text, size, flags);
    while (sent < 0 && zmq.last_error() == EINTR);
    if (sent < 0 && i == 1 && zmq.last_error() == EAGAIN)
      return lua_pushboolean(L, 0), 1;
    if (sent < 0) return failed(L, "a message could not be sent");
    lua_pop(L, 1);
  }
  return lua_pushboolean(L, 1), 1;
}

/* receive_frames(socket): the frames of a message, or nil if there is none */
static int receive_frames(lua_State *L) {
  void *socket = lua_touserdata(L, 1);
  ZmqMessage m;
  lua_Integer n = 0;
  int more = 1;
  lua_newtable(L);
  while (more) {
    int got;
    zmq.msg_init(&m);
    do got = zmq.msg_recv(&m, socket, DONTWAIT);
    while (got < 0 && zmq.last_error() == EINTR);
    if (got < 0) {
      zmq.msg_close(&m);
      return n > 0 ? failed(L, "a message could not be read") : 0;
    }
    lua_pushlstring(L, zmq.msg_data(&m), zmq.msg_size(&m));
    more = zmq.msg_more(&m);
    zmq.msg_close(&m);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* poll(list, milliseconds): waits until there is something to read, and gives
   true or false for each socket and file descriptor of the list */
static int poll_items(lua_State *L) {
  const int n = (int)luaL_len(L, 1);
  ZmqItem *item = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *item, 0);
  memset(item, 0, (size_t)n * sizeof *item);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 1, i + 1);
    item[i].socket = lua_touserdata(L, -1); /* NULL for a number */
    item[i].fd = (int)lua_tointeger(L, -1);
    item[i].events = POLLABLE;
    lua_pop(L, 1);
  }
  const int got = zmq.poll(item, n, (long)luaL_checkinteger(L, 2));
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushboolean(L, got > 0 && item[i].revents != 0);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

void sh_open_zmq(lua_State *L) {
  static const luaL_Reg list[] = {
    { "open_socket", open_socket }, { "close_sockets", close_sockets },
    { "send_frames", send_frames }, { "receive_frames", receive_frames },
    { "poll", poll_items },         { NULL, NULL }
  };
  luaL_setfuncs(L, list, 0);
}
