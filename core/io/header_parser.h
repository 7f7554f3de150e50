/* SPDX-License-Identifier: MIT */
/* header_parser.h - the tokens that the headers of .npy and .safetensors files
   and the index of shards have in common; messages say "header". */
#ifndef core_io_header_parser_h
#define core_io_header_parser_h

#include "core/io/file.h"

typedef struct HeaderParser {
  const char *path;           /* for messages */
  const char *blanks;         /* characters that may precede a token */
  const char *start, *p, *end;
} HeaderParser;

HeaderParser nc_header_parser(const char *path, const char *blanks,
                              const char *text, int64_t n);
void nc_header_blanks(HeaderParser *s);      /* skips them */
/* Fails: `expected' was expected here. */
int nc_header_expected(const HeaderParser *s, const char *expected);
/* Skips the character c if it is next; need: or fails, `name' was expected. */
int nc_header_take(HeaderParser *s, char c);
int nc_header_need(HeaderParser *s, char c, const char *name);
/* A whole number from 0, without leading zeros; `name' is "a size" or so. */
int nc_header_number(HeaderParser *s, int64_t *v, const char *name);
/* A string of JSON, decoded in place, where it does not become longer: *text =
   its first byte; it ends in '\0'. */
int nc_header_string(HeaderParser *s, char **text);

#endif
