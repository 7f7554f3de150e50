/* SPDX-License-Identifier: MIT */
/*
** numerals.h - numbers as text that does not depend on the locale of the
** process, which a host, a library or os.setlocale may have changed; a part of
** tensor.h, which includes it.
*/
#ifndef core_numerals_h
#define core_numerals_h

#include <stdarg.h>

/* As strtod, snprintf and vsnprintf in the locale "C". */
double nc_todouble(const char *s, char **end);
int nc_format(char *buf, size_t room, const char *fmt, ...) NC_PRINTF(3, 4);
int nc_vformat(char *buf, size_t room, const char *fmt, va_list args);

/* Between the two, every function of libc is in the locale "C", for this
   thread; the first returns what the second wants. */
void *nc_begin_numerals(void);
void nc_end_numerals(void *was);

/* If the locale of the process has another decimal point, this thread keeps
   ours from now on, and the rest of that locale. */
void nc_keep_point(void);

#endif
