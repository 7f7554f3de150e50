/* SPDX-License-Identifier: MIT */
/*
** events.h - the functions for streams and events of the table Accelerator, for
** cuda_plugin.c; core/devices.h has their contracts.
*/
#ifndef cuda_runtime_events_h
#define cuda_runtime_events_h

#include "cuda/runtime/gpu.h"

/* stream.c */
int nc_newstream(Stream **s, int i, int priority);
void nc_freestream(Stream *s);
Stream *nc_stream(int i);
Stream *nc_defaultstream(int i);
int nc_setstream(Stream *s);
int nc_streamdevice(const Stream *s);
uint64_t nc_streamid(const Stream *s);
int nc_querystream(Stream *s, int *done);
int nc_waitstream(Stream *s);
int nc_streamnumber(int i);
int nc_join(int i, uint64_t streams);
int nc_fork(int i, uint64_t streams);

/* event.c */
int nc_newevent(Event **e, int timing);
void nc_freeevent(Event *e);
int nc_record(Event *e, Stream *s);
int nc_after(Stream *s, Event *e);
int nc_queryevent(Event *e, int *done);
int nc_waitevent(Event *e);
int nc_elapsed(double *ms, Event *from, Event *to);

#endif
