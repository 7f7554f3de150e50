/* SPDX-License-Identifier: MIT */
/*
** reader_process.h - a process of its own in which a library reads a file: a
** file on which the library crashes, or never returns, gives an error, and the
** program goes on.
**
** It is a copy of this process, without the large blocks of tensors, in which
** nothing runs but `serve': it uses the library, memory of its own and the
** functions below, no device, no other thread and no Lua.  It has no open
** files but its own, and ends when this process does.  Requests and replies go
** through a socket, elements through slots of memory that both share.  A file
** may have made the library run anything: what comes from the reader is checked
** as what comes from a file.
*/
#ifndef core_io_hdf5_reader_process_h
#define core_io_hdf5_reader_process_h

#include <sys/types.h>

#include "core/io/file.h"

enum { NC_SLOTS = 2, NC_SLOTBYTES = 4 << 20 };

typedef struct ReaderProcess {
  pid_t pid;                  /* 0: there is none */
  int fd;                     /* of the socket */
  char *slots;                /* NC_SLOTS of NC_SLOTBYTES */
} ReaderProcess;

/* Starts it: serve(fd, slots, data) runs in the new process, which ends when it
   returns.  `path' is for messages. */
int nc_start_reader(ReaderProcess *r, const char *path,
                    void (*serve)(ReaderProcess *, void *), void *data);

/* Ends it, if there is one. */
void nc_stop_reader(ReaderProcess *r);

/* Sends or receives n bytes.  Ctrl-C ends the reader; if it has ended, the
   error says how: "the library that reads it crashed: Aborted". */
int nc_ask_reader(ReaderProcess *r, const char *path, const void *p, int64_t n);
int nc_hear_reader(ReaderProcess *r, const char *path, void *p, int64_t n);

/* For `serve': the same, which fail when the other process has gone. */
int nc_reader_send(ReaderProcess *r, const void *p, int64_t n);
int nc_reader_receive(ReaderProcess *r, void *p, int64_t n);
/* For `serve': from now on at most so much processor time and memory more. */
void nc_limit_reader(double seconds, int64_t bytes);

#endif
