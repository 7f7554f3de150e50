/* SPDX-License-Identifier: MIT */
/* suggest.h - spelling suggestions for messages. */
#ifndef core_suggest_h
#define core_suggest_h

/* The entry of a NULL-terminated list nearest to word, or NULL if none is near.
   nc_nearname is for names of functions and variables and accepts only likely
   typing errors. */
const char *nc_nearest(const char *word, const char *const list[]);
const char *nc_nearname(const char *word, const char *const list[]);

#endif
