/* SPDX-License-Identifier: MIT */
/*
** kernel_host.h - what the C files of the notebook kernel share.
**
** Each sh_open function adds functions to the table on top. [-0, +0, m]
*/
#ifndef kernel_host_h
#define kernel_host_h

#include <lua.h>

void sh_open_zmq(lua_State *L);       /* zmq_sockets.c */
void sh_open_signing(lua_State *L);   /* message_signing.c */
void sh_open_supervisor(lua_State *L); /* kernel_process.c */
void sh_open_session_end(lua_State *L); /* session_channel.c */

/* Raises the error that a library was not opened. [-0, +0, v] */
int sh_library_error(lua_State *L); /* zmq_sockets.c */

void sh_session_channel(int fd); /* session_channel.c: its end is fd */

/* Shared by the two processes: the number of the request that was interrupted
   last. */
extern volatile int *sh_interrupted_request; /* kernel_process.c */

#endif
