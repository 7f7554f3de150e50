/* SPDX-License-Identifier: MIT */
/*
** archive.c - which format a file has, and the functions of files.h for files
** of tensors, which call the format.
*/
#include "core/io/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/io/rowmajor.h"

/*
** Formats
*/
#define MAGIC(text) .magic = text, .magicsize = sizeof text - 1
#define OF_BINARY(id, text, can)                 \
  { .info = { .name = #id, .abilities = (can) }, \
    MAGIC(text),                                 \
    .does = &nc_format_##id },
#define OF_ONE(id, text, can) OF_BINARY(id, text, NC_ONE | (can))
#define OF_MANY(id, text, can) OF_BINARY(id, text, NC_MANY | (can))
#define OF_PARTS(id, of) \
  { .info = { .name = "", .abilities = NC_MANY }, .does = &nc_format_##id },
#define OF_TEXT(id, character) \
  { .info = { #id, NC_ONE | NC_AS_TEXT, character }, .does = &nc_textformat },

static const struct {
  FormatInfo info;
  const char *magic;
  int64_t magicsize;
  const ArchiveFormat *does;
} formats[] = { FILE_FORMATS(OF_ONE, OF_MANY, OF_PARTS, OF_TEXT, NO_FORMAT) };

#define EXTENSION(id, ...) { #id, FORMAT_##id },
#define OTHER_EXTENSION(id, of) { #id, FORMAT_##of },

static const struct {
  const char *name;
  FileFormat format;
} extensions[] = { FILE_FORMATS(EXTENSION, EXTENSION, NO_FORMAT, EXTENSION,
                                OTHER_EXTENSION) };

enum { EXTENSIONS = sizeof extensions / sizeof *extensions };

const FormatInfo *nc_formatinfo(FileFormat f) {
  static const FormatInfo unknown = { .name = "", .abilities = NC_ONE };
  return f < FORMAT_COUNT ? &formats[f].info : &unknown;
}

int nc_formatcan(FileFormat f, unsigned abilities) {
  return (nc_formatinfo(f)->abilities & abilities) != 0;
}

const char *nc_formatextension(int i, FileFormat *f) {
  if (i >= EXTENSIONS) return NULL;
  *f = extensions[i].format;
  return extensions[i].name;
}

static int is_listed(int f, unsigned abilities) {
  const unsigned has = formats[f].info.abilities;
  return formats[f].info.name[0] &&
         (has & NC_READ_ONLY ? (abilities & NC_READ_ONLY) != 0
                             : (has & abilities) != 0);
}

const char *nc_formatlist(char *text, size_t room, unsigned abilities,
                          const char *dot, const char *last) {
  int left = 0;
  size_t n = 0;
  text[0] = '\0';
  for (int f = 0; f < FORMAT_COUNT; f++) left += is_listed(f, abilities);
  for (int f = 0; f < FORMAT_COUNT && n < room; f++) {
    if (!is_listed(f, abilities)) continue;
    n +=
        (size_t)snprintf(text + n, room - n, "%s%s", dot, formats[f].info.name);
    if (--left == 0 || n >= room) break;
    n += (size_t)snprintf(text + n, room - n, left > 1 ? ", " : " %s ", last);
  }
  return text;
}

const char *nc_extension(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return dot && dot > name ? dot + 1 : "";
}

FileFormat nc_formatnamed(const char *name) {
  for (int i = 0; i < EXTENSIONS; i++)
    if (strcasecmp(name, extensions[i].name) == 0) return extensions[i].format;
  return FORMAT_UNKNOWN;
}

FileFormat nc_formatbyname(const char *path) {
  const char *extension = nc_extension(path);
  return *extension ? nc_formatnamed(extension) : FORMAT_UNNAMED;
}

static int begins_with(const Head *h, const char *magic, int64_t n) {
  return n > 0 && h->n >= n && memcmp(h->bytes, magic, (size_t)n) == 0;
}

int nc_is_zip(const Head *h) {
  return begins_with(h, "PK\3\4", 4);
}

static int is_of_format(FileFormat f, const Head *h, int named) {
  const ArchiveFormat *does = formats[f].does;
  return begins_with(h, formats[f].magic, formats[f].magicsize) ||
         (does->recognize && does->recognize(h, named));
}

int nc_readhead(Head *h, const Source *from) {
  Reader r;
  TRY(nc_openfrom(&r, from));
  h->n = r.left < NC_HEAD ? r.left : NC_HEAD;
  h->size = r.size;
  const int status = nc_readblock(&r, h->bytes, h->n, "magic");
  nc_closeread(&r);
  return status;
}

/* What was unpacked has the format before ".gz", "x.csv.gz". */
static FileFormat named_format(const Source *from) {
  char path[PATH_MAX];
  const size_t n = strlen(from->path);
  if (from->bytes == NULL || strcasecmp(nc_extension(from->path), "gz") != 0)
    return nc_formatbyname(from->path);
  snprintf(path, sizeof path, "%.*s", (int)n - 3, from->path);
  return nc_formatbyname(path);
}

int nc_formatof(FileFormat *f, const Source *from) {
  const FileFormat named = *f = named_format(from);
  Head h;
  for (int i = 0; i < FORMAT_COUNT && from->bytes == NULL; i++)
    if (formats[i].does->is_path && formats[i].does->is_path(from->path))
      return *f = (FileFormat)i, NC_OK;
  TRY(nc_readhead(&h, from));
  for (int i = FORMAT_COUNT - 1; i >= 0; i--)
    if (is_of_format((FileFormat)i, &h, i == (int)named))
      return *f = (FileFormat)i, NC_OK;
  /* no format is known by these bytes: may they be of the one that is named? */
  TRY(nc_fail_foreign_format(from->path, h.bytes, h.n));
  if (named >= FORMAT_COUNT || nc_formatcan(named, NC_AS_TEXT) ||
      formats[named].does->prefixed)
    return NC_OK;
  return nc_fail_other_bytes(from->path, formats[named].info.name, h.bytes,
                             h.n);
}

/*
** Names
*/
int nc_checktext(const char *s, size_t n, const char *what) {
  char shown[80];
  const char *at = s, *end = s + n;
  for (uint32_t c = 0; at < end;) {
    const size_t k = nc_utf8(&c, at, (size_t)(end - at));
    if (k == 0 || c == 0)
      return nc_fail(NC_EVALUE, "%s must be a string in UTF-8, not \"%s\"",
                     what, nc_printable(shown, sizeof shown, s, n));
    at += k;
  }
  return NC_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int nc_checknames(const char *path, const char *names[], int64_t n) {
  char shown[80];
  qsort(names, (size_t)n, sizeof *names, compare_names);
  for (int64_t i = 1; i < n; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      return nc_failfile(
          NC_EFILE, path, "the name \"%s\" occurs twice",
          nc_printable(shown, sizeof shown, names[i], strlen(names[i])));
  return NC_OK;
}

int nc_fail_foreign(const char *path, const char *name, const char *dtype) {
  char a[80], b[64];
  return nc_failfile(NC_EDTYPE, path, "\"%s\": the dtype %s is not supported",
                     nc_printable(a, sizeof a, name, strlen(name)),
                     nc_printable(b, sizeof b, dtype, strlen(dtype)));
}

int nc_fail_dimensions(const char *path, const char *name, int n) {
  char a[80];
  return nc_failfile(
      NC_EDTYPE, path, "\"%s\" has %d dimensions, a tensor has at most %d",
      nc_printable(a, sizeof a, name, strlen(name)), n, NC_MAXDIM);
}

/*
** Archives
*/
/* What is of no known format, or has no extension, is taken for .npy. */
static const ArchiveFormat *taken_for(FileFormat f) {
  return f < FORMAT_COUNT ? formats[f].does : &nc_format_npy;
}

int nc_openarchive(Archive **out, const Source *from, FileFormat f) {
  static const char *const none = "";
  const ArchiveFormat *format = taken_for(f);
  Source copy = *from;
  Archive *a;
  void *p;
  int status;
  *out = NULL;
  if (format->open == NULL)
    return nc_failfile(NC_EFILE, from->path, "a text file is not an archive");
  TRY(nc_hostalloc(&p, format->size));
  a = memset(p, 0, (size_t)format->size);
  a->format = format;
  snprintf(a->path, sizeof a->path, "%s", from->path);
  copy.path = a->path;
  if (nc_formatcan(f, NC_ONE)) a->n = 1, a->name = &none;
  status = format->open(a, &copy);
  if (status == NC_OK) *out = a;
  else nc_closearchive(a);
  return status;
}

void nc_closearchive(Archive *a) {
  if (a == NULL) return;
  a->format->close(a);
  nc_hostfree(a, a->format->size);
}

int64_t nc_archivesize(const Archive *a) {
  return a->n;
}

const char *nc_archivename(const Archive *a, int64_t i) {
  return a->name[i];
}

const char *nc_archivemeta(const Archive *a, int64_t i) {
  return i < 2 * a->nmeta ? a->meta[i] : NULL;
}

int nc_archiveload(Tensor **t, Archive *a, int64_t i) {
  *t = NULL;
  return a->format->load(t, a, i);
}

int nc_archiveinfo(TensorInfo *t, Archive *a, int64_t i) {
  memset(t, 0, sizeof *t);
  return a->format->info(t, a, i);
}

int nc_canslice(const Archive *a) {
  return a->format->slice != NULL;
}

int nc_archiveslice(Tensor **t, Archive *a, int64_t i, const TensorSlice *s) {
  *t = NULL;
  return a->format->slice(t, a, i, s);
}

int nc_archiveattributes(Archive *a, const Attribute **list, int64_t *n) {
  *list = NULL;
  *n = 0;
  return a->format->attributes ? a->format->attributes(a, list, n) : NC_OK;
}

int nc_savefile(const Sink *to, FileFormat f, const FileContents *c) {
  if (taken_for(f)->save == NULL)
    return nc_failfile(NC_EFILE, to->path,
                       "files of this format can be read, "
                       "but not written");
  return taken_for(f)->save(to, c);
}
