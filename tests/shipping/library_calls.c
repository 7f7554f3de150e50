/* SPDX-License-Identifier: MIT */
/*
** library_calls.c - makes the calls that library_calls.lua has written, and
** compares the results. Then calls each operation with arguments that it cannot
** take: a status and a text must come, and nothing else.
**
**   library_calls CALLS.txt TENSORS.safetensors
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nacre/tensors.h>

enum { MOST = 64, LINE = 4096 };

static const char *tensors; /* the file */
static int calls, wrong;

/* What stands between "call" and "end". */
typedef struct Written {
  char name[80];
  nacre_arg arg[MOST], result[MOST];
  int nargs, nresults, fails, refused;
  char text[LINE];
} Written;

static void complain(const Written *w, const char *what) {
  wrong++;
  printf("%s: %s (%s)\n", w->name, what, nacre_error());
}

static nacre_tensor *load(int number) {
  nacre_tensor *t;
  char name[16];
  snprintf(name, sizeof name, "t%d", number);
  if (nacre_load(&t, tensors, name) == NACRE_OK) return t;
  fprintf(stderr, "%s\n", nacre_error());
  exit(2);
}

static char *copy_text(const char *from) {
  char *to = malloc(strlen(from) + 1);
  return to ? strcpy(to, from) : NULL;
}

/* Reads "T 2 5 6" or "I 2 3 3". */
static nacre_arg read_list(char kind, char *words) {
  const int n = (int)strtol(words, &words, 10);
  void *list = calloc((size_t)n + 1, sizeof(int64_t));
  for (int i = 0; i < n; i++) {
    const long x = strtol(words, &words, 10);
    if (kind == 'I') ((int64_t *)list)[i] = x;
    else ((nacre_tensor **)list)[i] = load((int)x);
  }
  return kind == 'I' ? nacre_ints(n, list) : nacre_list(n, list);
}

static nacre_arg read_value(char *words) {
  char *v = words + 2;
  switch (*words) {
    case 't': return nacre_t(load(atoi(v)));
    case 'i': return nacre_int(strtoll(v, NULL, 10));
    case 'n': return nacre_number(strtod(v, NULL));
    case 'f': return nacre_flag(atoi(v));
    case 's': return nacre_text(copy_text(v));
    case 'I':
    case 'T': return read_list(*words, v);
    default: return nacre_none();
  }
}

/* The same behind "=NAME ". */
static nacre_arg read_argument(char *words) {
  if (*words != '=') return read_value(words);
  char *v = strchr(words, ' ');
  *v = '\0';
  return nacre_named(copy_text(words + 1), read_value(v + 1));
}

static void release_argument(nacre_arg *x) {
  if (x->type == NACRE_TENSOR) nacre_release(x->as.tensor);
  for (int64_t i = 0; x->type == NACRE_TENSORS && i < x->n; i++)
    nacre_release(x->as.tensors[i]);
  if (x->type == NACRE_INTS || x->type == NACRE_TENSORS)
    free((void *)x->as.ints);
  if (x->type == NACRE_TEXT) free((void *)x->as.text);
  free((void *)x->name);
}

static void release(Written *w) {
  for (int i = 0; i < w->nargs; i++) release_argument(&w->arg[i]);
  for (int i = 0; i < w->nresults; i++) release_argument(&w->result[i]);
}

/* Reads the next call; returns 0 at the end. */
static int read_call(Written *w, FILE *file) {
  char line[LINE];
  *w = (Written){ .nargs = 0 };
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "call ", 5) == 0)
      snprintf(w->name, sizeof w->name, "%s", line + 5);
    else if (strncmp(line, "arg ", 4) == 0)
      w->arg[w->nargs++] = read_argument(line + 4);
    else if (strncmp(line, "gives ", 6) == 0)
      w->result[w->nresults++] = read_value(line + 6);
    else if (strncmp(line, "fails ", 6) == 0) {
      w->fails = 1;
      snprintf(w->text, sizeof w->text, "%s", line + 6);
    } else if (strcmp(line, "refused") == 0) w->refused = 1;
    else if (strcmp(line, "end") == 0) return 1;
  }
  return 0;
}

/* Are the tensors equal, rounding aside? */
static int are_close(nacre_tensor *a, nacre_tensor *b) {
  const nacre_arg arg[] = { nacre_t(a), nacre_t(b),
                            nacre_named("rtol", nacre_number(1e-5)),
                            nacre_named("atol", nacre_number(1e-6)),
                            nacre_named("equal_nan", nacre_flag(1)) };
  nacre_tensor *y;
  int64_t same = 0;
  if (nacre_dtype_of(a) != nacre_dtype_of(b) || nacre_ndim(a) != nacre_ndim(b))
    return 0;
  for (int d = 0; d < nacre_ndim(a); d++)
    if (nacre_size(a, d) != nacre_size(b, d)) return 0;
  if (nacre_call("allclose", &y, 1, arg, 5) != NACRE_OK) return 0;
  nacre_item_int(y, &same);
  nacre_release(y);
  return same != 0;
}

static int is_right(nacre_tensor *got, const nacre_arg *wanted) {
  double x = 0;
  if (wanted->type == NACRE_NONE) return 1; /* a tensor that no file has */
  if (wanted->type == NACRE_TENSOR) return are_close(got, wanted->as.tensor);
  if (nacre_item(got, &x) != NACRE_OK) return 0;
  const double y =
      wanted->type == NACRE_NUMBER ? wanted->number : (double)wanted->n;
  return x == y || (x != x && y != y) ||
         (x - y < 1e-6 * (1 + y * y) && y - x < 1e-6 * (1 + y * y));
}

static void compare(const Written *w, nacre_tensor *const got[]) {
  for (int i = 0; i < w->nresults; i++)
    if (got[i] == NULL || !is_right(got[i], &w->result[i])) {
      complain(w, "another result than in Lua");
      return;
    }
  if (got[w->nresults]) complain(w, "a result too many");
}

static void make_call(const Written *w) {
  nacre_tensor *got[MOST + 1];
  nacre_seed(7);
  const int r = nacre_call(w->name, got, MOST + 1, w->arg, w->nargs);
  calls++;
  if (r == NACRE_OK && (w->fails || w->refused))
    complain(w, "it succeeds, but not in Lua");
  else if (r == NACRE_OK) compare(w, got);
  else if (!w->fails && !w->refused) complain(w, "it fails");
  else if (w->fails && !strstr(nacre_error(), w->text)) complain(w, w->text);
  for (int i = 0; r == NACRE_OK && i <= MOST; i++) nacre_release(got[i]);
}

/* One call that may fail: whether it does is not known. */
static void try_call(const Written *w, const nacre_arg arg[], int n) {
  nacre_tensor *got[MOST];
  const int r = nacre_call(w->name, got, MOST, arg, n);
  calls++;
  if (r != NACRE_OK && *nacre_error() == '\0') complain(w, "no text");
  for (int i = 0; i < MOST; i++) {
    if (r != NACRE_OK && got[i]) complain(w, "a result of a failure");
    nacre_release(got[i]);
  }
}

/* Calls that must fail, whatever the operation is. */
static void refuse_call(const Written *w, const nacre_arg arg[], int n) {
  nacre_tensor *got[MOST];
  if (nacre_call(w->name, got, MOST, arg, n) == NACRE_OK) {
    complain(w, "takes wrong arguments");
    for (int i = 0; i < MOST; i++) nacre_release(got[i]);
  } else if (*nacre_error() == '\0') complain(w, "no text");
}

static void make_wrong_calls(const Written *w, nacre_tensor *t) {
  const int64_t size[] = { -5, 1 << 30 };
  nacre_tensor *const list[] = { t, t };
  const nacre_arg odd[] = {
    nacre_text("no such thing"), nacre_ints(2, size), nacre_list(2, list),
    nacre_number(1e300),         nacre_flag(1),       nacre_int(INT64_MIN),
    nacre_ints(0, size),         nacre_list(0, list)
  };
  enum { ODD = sizeof odd / sizeof *odd };
  nacre_arg all[20];
  for (int k = 0; k < ODD; k++) {
    all[0] = all[1] = all[2] = nacre_t(t);
    try_call(w, &odd[k], 1);
    for (int at = 1; at < 3; at++) {
      all[at] = odd[k];
      try_call(w, all, at + 1);
    }
  }
  try_call(w, NULL, 0);
  for (int k = 0; k < 20; k++) all[k] = nacre_t(t);
  try_call(w, all, 20);
  all[1] = nacre_named("no_such_parameter", nacre_int(1));
  refuse_call(w, all, 2);
  all[0] = nacre_t(NULL);
  refuse_call(w, all, 1);
}

int main(int argc, char **argv) {
  static Written w;
  static char last[80];
  const int64_t size[] = { 2, 2 };
  const float values[] = { 1, 2, 3, 4 };
  nacre_tensor *t;
  FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
  if (file == NULL || nacre_new(&t, NACRE_FLOAT32, 2, size, values) != NACRE_OK)
    return 2;
  tensors = argv[2];
  while (read_call(&w, file)) {
    make_call(&w);
    if (strcmp(last, w.name) != 0) make_wrong_calls(&w, t);
    snprintf(last, sizeof last, "%s", w.name);
    release(&w);
  }
  nacre_release(t);
  fclose(file);
  printf("%d calls, %d wrong\n", calls, wrong);
  return wrong != 0 || calls == 0;
}
