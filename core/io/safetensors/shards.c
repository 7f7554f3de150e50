/* SPDX-License-Identifier: MIT */
/*
** shards.c - several .safetensors files as one archive: the shards of a model,
** which an index, *.index.json, names, or all files of a folder.
**
**   {"metadata": {"total_size": 48},
**    "weight_map": {"a": "model-00001-of-00002.safetensors", ...}}
**
** An index is untrusted: it names files of its own folder only, and each tensor
** must be in the file that it names.
*/
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/header_parser.h"

#define MAXINDEX 100000000 /* bytes */

typedef struct ShardTensor {
  const char *name;
  int64_t shard, at; /* which file, and which tensor of it; -1: not known */
} ShardTensor;

typedef struct Shards {
  Archive a; /* comes first */
  int map;   /* see Source */
  Tensor *text;
  char *files; /* names of the files, each with a '\0' after it */
  int64_t filesbytes;
  Archive **shard;
  int64_t nshards, shardroom;
  ShardTensor *tensor;
  int64_t ntensors, tensorroom;
  const char **names; /* twice: in order, and sorted */
  int64_t namesbytes;
} Shards;

static int ends_in(const char *s, const char *end) {
  const size_t n = strlen(s), k = strlen(end);
  return n > k && strcmp(s + n - k, end) == 0;
}

static int is_folder(const char *path) {
  struct stat s;
  return nc_files.stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Is it a folder, or named as the index of shards? */
static int is_sharded(const char *path) {
  return ends_in(path, ".index.json") || is_folder(path);
}

/* Makes room for one more element in a list that has n of them. */
static int grow(void *list, int64_t n, int64_t *room, int64_t item) {
  void *more, *old;
  if (n < *room) return NC_OK;
  memcpy(&old, list, sizeof old);
  TRY(nc_hostalloc(&more, (2 * *room + 16) * item));
  if (n > 0) memcpy(more, old, (size_t)(n * item));
  if (old) nc_hostfree(old, *room * item);
  *room = 2 * *room + 16;
  memcpy(list, &more, sizeof more);
  return NC_OK;
}

static void close_shards(Archive *a) {
  Shards *s = (Shards *)a;
  for (int64_t i = 0; i < s->nshards; i++) nc_closearchive(s->shard[i]);
  if (s->shard) nc_hostfree(s->shard, s->shardroom * (int64_t)sizeof *s->shard);
  if (s->tensor)
    nc_hostfree(s->tensor, s->tensorroom * (int64_t)sizeof *s->tensor);
  if (s->names) nc_hostfree(s->names, s->namesbytes);
  if (s->files) nc_hostfree(s->files, s->filesbytes);
  nc_release(s->text);
}

static int load_shard(Tensor **t, Archive *a, int64_t i) {
  const ShardTensor *x = &((Shards *)a)->tensor[i];
  return nc_archiveload(t, ((Shards *)a)->shard[x->shard], x->at);
}

static int shard_info(TensorInfo *t, Archive *a, int64_t i) {
  const ShardTensor *x = &((Shards *)a)->tensor[i];
  return nc_archiveinfo(t, ((Shards *)a)->shard[x->shard], x->at);
}

static int add_tensor(Shards *s, const char *name, int64_t shard, int64_t at) {
  TRY(grow(&s->tensor, s->ntensors, &s->tensorroom, sizeof *s->tensor));
  s->tensor[s->ntensors++] = (ShardTensor){ name, shard, at };
  return NC_OK;
}

/* Opens the file `name' of the folder in path, which ends in a slash or is
   empty. */
static int open_shard(Shards *s, const char *folder, const char *name) {
  char path[PATH_MAX];
  const Source from = { .path = path, .map = s->map };
  TRY(grow(&s->shard, s->nshards, &s->shardroom, sizeof *s->shard));
  if (snprintf(path, sizeof path, "%s%s", folder, name) >= (int)sizeof path)
    return nc_failsystem(name, "", ENAMETOOLONG);
  TRY(nc_openarchive(&s->shard[s->nshards], &from, FORMAT_safetensors));
  s->nshards++;
  return NC_OK;
}

/*
** The index
*/
static int skip_value(HeaderParser *p, int depth);

static int skip_items(HeaderParser *p, char stop, int depth) {
  char *name;
  if (nc_header_take(p, stop)) return NC_OK;
  do {
    if (stop == '}') {
      TRY(nc_header_string(p, &name));
      TRY(nc_header_need(p, ':', "a colon"));
    }
    TRY(skip_value(p, depth + 1));
  } while (nc_header_take(p, ','));
  return nc_header_need(p, stop, "a comma or the end of the list");
}

/* Any value of JSON; numbers and words are not looked at. */
static int skip_value(HeaderParser *p, int depth) {
  char *text;
  if (depth > 100) return nc_header_expected(p, "less nesting");
  if (nc_header_take(p, '{')) return skip_items(p, '}', depth);
  if (nc_header_take(p, '[')) return skip_items(p, ']', depth);
  if (p->p < p->end && *p->p == '"') return nc_header_string(p, &text);
  const char *first = p->p;
  while (p->p < p->end && *p->p && !strchr(",]} \t\r\n", *p->p)) p->p++;
  return p->p > first ? NC_OK : nc_header_expected(p, "a value");
}

/* The number of the shard with this name, which is opened if it is new. */
static int find_shard(Shards *s, const char *folder, const char *name,
                      int64_t *k) {
  char shown[80];
  const size_t n = strlen(folder);
  for (*k = s->nshards - 1; *k >= 0; --*k) /* mostly the last one */
    if (strcmp(s->shard[*k]->path + n, name) == 0) return NC_OK;
  if (*name == '\0' || *name == '.' || strchr(name, '/'))
    return nc_failfile(NC_EFILE, s->a.path,
                       "\"%s\" is not the name of a file next to it",
                       nc_printable(shown, sizeof shown, name, strlen(name)));
  TRY(open_shard(s, folder, name));
  *k = s->nshards - 1;
  return NC_OK;
}

static int parse_weights(Shards *s, HeaderParser *p, const char *folder) {
  char *name, *file;
  int64_t k = 0;
  TRY(nc_header_need(p, '{', "an object"));
  if (nc_header_take(p, '}')) return NC_OK;
  do {
    TRY(nc_header_string(p, &name));
    TRY(nc_header_need(p, ':', "a colon"));
    TRY(nc_header_string(p, &file));
    TRY(find_shard(s, folder, file, &k));
    TRY(add_tensor(s, name, k, -1));
  } while (nc_header_take(p, ','));
  return nc_header_need(p, '}', "a comma or }");
}

static int parse_index(Shards *s, HeaderParser *p, const char *folder) {
  char *name;
  int found = 0;
  TRY(nc_header_need(p, '{', "an object"));
  do {
    TRY(nc_header_string(p, &name));
    TRY(nc_header_need(p, ':', "a colon"));
    if (strcmp(name, "weight_map") != 0) TRY(skip_value(p, 0));
    else if (found++) return nc_header_expected(p, "one weight_map");
    else TRY(parse_weights(s, p, folder));
  } while (nc_header_take(p, ','));
  TRY(nc_header_need(p, '}', "a comma or }"));
  return found ? NC_OK : nc_header_expected(p, "an object with a weight_map");
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const ShardTensor *)a)->name, ((const ShardTensor *)b)->name);
}

/* Finds where each tensor of the index lies; they are sorted by name. */
static int find_tensors(Shards *s) {
  char shown[80];
  for (int64_t k = 0; k < s->nshards; k++)
    for (int64_t i = 0; i < s->shard[k]->n; i++) {
      const ShardTensor key = { s->shard[k]->name[i], 0, 0 };
      ShardTensor *x = s->ntensors > 0
                           ? bsearch(&key, s->tensor, (size_t)s->ntensors,
                                     sizeof key, by_name)
                           : NULL;
      if (x && x->shard == k) x->at = i;
    }
  for (int64_t i = 0; i < s->ntensors; i++)
    if (s->tensor[i].at < 0)
      return nc_failfile(NC_EFILE, s->a.path, "\"%s\" is not in %s",
                         nc_printable(shown, sizeof shown, s->tensor[i].name,
                                      strlen(s->tensor[i].name)),
                         s->shard[s->tensor[i].shard]->path);
  return NC_OK;
}

static int open_index(Shards *s, const char *path) {
  const Source from = { .path = path };
  const char *slash = strrchr(path, '/');
  char folder[PATH_MAX];
  struct stat st;
  if (nc_files.stat(path, &st) == 0 && st.st_size > MAXINDEX)
    return nc_failfile(NC_EFILE, path, "%lld bytes, at most %d are allowed",
                       (long long)st.st_size, MAXINDEX);
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 0,
           path);
  TRY(nc_readfrom(&s->text, &from));
  HeaderParser p =
      nc_header_parser(path, " \t\r\n", nc_data(s->text), nc_numel(s->text));
  TRY(parse_index(s, &p, folder));
  nc_header_blanks(&p);
  if (p.p != p.end) return nc_header_expected(&p, "nothing more");
  if (s->ntensors > 0)
    qsort(s->tensor, (size_t)s->ntensors, sizeof *s->tensor, by_name);
  return NC_OK;
}

/*
** A folder
*/
static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Appends the names of the folder that end in `end' to *files, one after
   another; *n: how many. */
static int list_folder(Shards *s, DIR *d, const char *end, int64_t *n) {
  int64_t used = 0;
  *n = 0;
  for (const struct dirent *e; (e = readdir(d)) != NULL;) {
    const int64_t k = (int64_t)strlen(e->d_name) + 1;
    if (*e->d_name == '.' || !ends_in(e->d_name, end)) continue;
    while (s->filesbytes - used < k)
      TRY(grow(&s->files, s->filesbytes, &s->filesbytes, 1));
    memcpy(s->files + used, e->d_name, (size_t)k);
    used += k;
    ++*n;
  }
  return NC_OK;
}

static int open_all(Shards *s, const char *folder, int64_t n) {
  void *list;
  int status = NC_OK;
  TRY(nc_hostalloc(&list, n * (int64_t)sizeof(char *)));
  const char **name = list, *p = s->files;
  for (int64_t i = 0; i < n; i++, p += strlen(p) + 1) name[i] = p;
  qsort(list, (size_t)n, sizeof(char *), by_text);
  for (int64_t i = 0; status == NC_OK && i < n; i++)
    status = open_shard(s, folder, name[i]);
  nc_hostfree(list, n * (int64_t)sizeof(char *));
  TRY(status);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < s->shard[k]->n; i++)
      TRY(add_tensor(s, s->shard[k]->name[i], k, i));
  return NC_OK;
}

/* By its index, if the folder has one; else all .safetensors files. */
static int open_folder(Shards *s, const char *path) {
  char folder[PATH_MAX];
  const size_t n = strlen(path);
  int64_t found = 0;
  int status;
  DIR *d = opendir(path);
  if (d == NULL) return nc_failsystem(path, "", errno);
  snprintf(folder, sizeof folder, "%.*s%s", PATH_MAX - 300, path,
           n && path[n - 1] == '/' ? "" : "/");
  status = list_folder(s, d, ".safetensors.index.json", &found);
  if (status == NC_OK && found == 1) {
    closedir(d);
    snprintf(folder + strlen(folder), 256, "%s", s->files);
    return open_index(s, folder);
  }
  rewinddir(d);
  if (status == NC_OK) status = list_folder(s, d, ".safetensors", &found);
  closedir(d);
  TRY(status);
  if (found > 0) return open_all(s, folder, found);
  nc_failfile(NC_EFILE, path, "this is a directory without .safetensors files");
  return NC_EFILE;
}

/* Two lists of the names; the second one is sorted to find equal names. */
static int list_names(Shards *s) {
  const int64_t n = s->ntensors;
  void *list;
  TRY(nc_hostalloc(&list, (2 * n + 1) * (int64_t)sizeof(char *)));
  s->namesbytes = (2 * n + 1) * (int64_t)sizeof(char *);
  s->names = list;
  for (int64_t i = 0; i < n; i++)
    s->names[i] = s->names[n + i] = s->tensor[i].name;
  s->a.n = n;
  s->a.name = s->names;
  if (s->text && s->nshards > 0) { /* those of an index have the same */
    s->a.meta = s->shard[0]->meta;
    s->a.nmeta = s->shard[0]->nmeta;
  }
  return nc_checknames(s->a.path, s->names + n, n);
}

static int open_shards(Archive *a, const Source *from) {
  Shards *s = (Shards *)a;
  s->map = from->map;
  TRY(is_folder(from->path) ? open_folder(s, from->path)
                            : open_index(s, from->path));
  TRY(list_names(s));
  return s->text ? find_tensors(s) : NC_OK;
}

const ArchiveFormat nc_format_shards = {
  .size = sizeof(Shards),
  .open = open_shards,
  .load = load_shard,
  .info = shard_info,
  .close = close_shards,
  .is_path = is_sharded,
};
