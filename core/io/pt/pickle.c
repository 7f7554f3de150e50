/* SPDX-License-Identifier: MIT */
/*
** pickle.c - reads pickles of protocol 2 to 4; see pickle.h.
**
** The opcodes are those of the virtual machine in Python's pickletools.py.
** Each value is made once and is then known by its number; a value on the
** stack, in the memo or in a list is that number.  Nothing recurses.
*/
#include "core/io/pt/pickle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/io/rowmajor.h"

#define MARK (-1)
#define MOST_BYTES INT32_MAX
#define MOST_LINE (1 << 16)
#define MOST_ELEMENTS 4 /* values, and cells, for each byte of the pickle */

int nc_fail_pickle(const Pickle *k, const char *fmt, ...) {
  char what[200];
  va_list args;
  va_start(args, fmt);
  nc_vformat(what, sizeof what, fmt, args);
  va_end(args);
  return nc_failfile(NC_EFILE, k->path, "pickle: byte %lld: %s",
                     (long long)k->at, what);
}

/*
** Memory
*/
int nc_push_slot(Vector *v, int64_t size, void **slot) {
  if ((v->n + 1) * size > v->room) {
    const int64_t room = v->room ? 2 * v->room : 16 * size;
    void *more;
    TRY(nc_hostalloc(&more, room));
    if (v->n) memcpy(more, v->p, (size_t)(v->n * size));
    nc_hostfree(v->p, v->room);
    v->p = more;
    v->room = room;
  }
  *slot = (char *)v->p + v->n++ * size;
  return NC_OK;
}

/* Fails if v, of values or cells, has as many elements as a pickle of this size
   may have, which int32_t can count.  Each opcode makes one or none, except for
   the call of OrderedDict. */
static int check_room(const Pickle *k, const Vector *v) {
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (v->n < MOST_ELEMENTS * k->size && v->n < INT32_MAX) return NC_OK;
  return nc_fail_pickle(k, "it has more values than its bytes can describe");
}

int nc_pickle_value(Pickle *k, int32_t *at, int kind, int64_t i, int32_t n) {
  void *slot;
  TRY(check_room(k, &k->value));
  *at = (int32_t)k->value.n;
  TRY(nc_push_slot(&k->value, sizeof(FileValue), &slot));
  *(FileValue *)slot = (FileValue){ .kind = kind, .n = n, .i = i };
  return NC_OK;
}

void nc_freepickle(Pickle *k) {
  Vector *const all[] = { &k->value, &k->cell,    &k->stack,
                          &k->memo,  &k->storage, &k->tensor };
  for (int64_t i = 0; i < k->storage.n; i++)
    nc_release(PICKLE_STORAGE(k, i)->loaded);
  nc_hostfree(k->block, k->room);
  k->block = NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    nc_hostfree(all[i]->p, all[i]->room);
    *all[i] = (Vector){ 0 };
  }
}

/*
** The stack
*/
static int push(Pickle *k, int32_t value) {
  void *slot;
  TRY(nc_push_slot(&k->stack, sizeof value, &slot));
  *(int32_t *)slot = value;
  return NC_OK;
}

static int push_new(Pickle *k, int kind, int64_t i, int32_t n) {
  int32_t at = 0;
  TRY(nc_pickle_value(k, &at, kind, i, n));
  return push(k, at);
}

static int fail_stack(const Pickle *k) {
  return nc_fail_pickle(k, "the stack is too short");
}

static int pop(Pickle *k, int32_t *value) {
  if (k->stack.n == 0) return fail_stack(k);
  *value = ((int32_t *)k->stack.p)[--k->stack.n];
  return *value == MARK ? fail_stack(k) : NC_OK;
}

/* *first = where on the stack the values after the last mark begin. */
static int find_mark(const Pickle *k, int64_t *first) {
  const int32_t *stack = k->stack.p;
  int64_t i = k->stack.n;
  while (i > 0 && stack[i - 1] != MARK) i--;
  *first = i;
  return i > 0 ? NC_OK : fail_stack(k);
}

/*
** Lists, tuples, dicts
*/
int nc_pickle_append(Pickle *k, int32_t list, int32_t value) {
  void *slot;
  TRY(check_room(k, &k->cell));
  const int32_t at = (int32_t)k->cell.n;
  TRY(nc_push_slot(&k->cell, sizeof(FileCell), &slot));
  *(FileCell *)slot = (FileCell){ value, -1 };
  FileValue *v = PICKLE_VALUE(k, list);
  if (v->i < 0) v->i = at;
  else PICKLE_CELL(k, v->n)->next = at;
  v->n = at;
  return NC_OK;
}

int nc_pickle_items(const Pickle *k, int32_t list, int32_t item[], int most) {
  const FileValue *v = PICKLE_VALUE(k, list);
  int n = 0;
  if (v->kind != V_TUPLE && v->kind != NC_V_LIST) return -1;
  for (int64_t c = v->i; c >= 0; c = PICKLE_CELL(k, c)->next) {
    if (n == most) return -1;
    item[n++] = PICKLE_CELL(k, c)->value;
  }
  return n;
}

/* POP, POP_MARK and DUP. */
static int stack_op(Pickle *k, int op) {
  int64_t first = 0;
  int32_t top = 0;
  if (op == '1') {
    TRY(find_mark(k, &first));
    k->stack.n = first - 1;
    return NC_OK;
  }
  if (op == '0' && k->stack.n > 0) { /* it may be a mark */
    k->stack.n--;
    return NC_OK;
  }
  TRY(pop(k, &top));
  TRY(push(k, top));
  return push(k, top);
}

/* A tuple of the values from `first' on, which leave the stack down to
   `rest'. */
static int make_tuple(Pickle *k, int64_t first, int64_t rest) {
  const int64_t end = k->stack.n;
  int32_t at = 0;
  TRY(nc_pickle_value(k, &at, V_TUPLE, -1, -1));
  for (int64_t i = first; i < end; i++) {
    if (((int32_t *)k->stack.p)[i] == MARK) return fail_stack(k);
    TRY(nc_pickle_append(k, at, ((int32_t *)k->stack.p)[i]));
  }
  k->stack.n = rest;
  return push(k, at);
}

static int tuple_of(Pickle *k, int n) {
  if (k->stack.n < n) return fail_stack(k);
  return make_tuple(k, k->stack.n - n, k->stack.n - n);
}

static int tuple_from_mark(Pickle *k) {
  int64_t first = 0;
  TRY(find_mark(k, &first));
  return make_tuple(k, first, first - 1);
}

/* The dict of the items of an object: the last value that it holds. */
static int items_of(Pickle *k, int32_t object, int kind, int32_t *to) {
  const FileCell *last = PICKLE_CELL(k, PICKLE_VALUE(k, object)->n);
  *to = last->value;
  if (PICKLE_VALUE(k, *to)->kind == kind) return NC_OK;
  TRY(nc_pickle_value(k, to, kind, -1, -1));
  return nc_pickle_append(k, object, *to);
}

/* Appends the values from `first' on to what is below, at `rest' - 1, which
   must be of this kind, or an object, which gets a value of this kind. */
static int add_items(Pickle *k, int kind, int64_t first, int64_t rest) {
  const int32_t *stack = k->stack.p;
  if (rest < 1 || stack[rest - 1] == MARK) return fail_stack(k);
  int32_t to = stack[rest - 1];
  if (PICKLE_VALUE(k, to)->kind == NC_V_OTHER) TRY(items_of(k, to, kind, &to));
  if (PICKLE_VALUE(k, to)->kind != kind)
    return nc_fail_pickle(k, "items are added to a value that is not a %s",
                          kind == NC_V_DICT ? "dict" : "list");
  if (kind == NC_V_DICT && (k->stack.n - first) % 2)
    return nc_fail_pickle(k, "a key has no value");
  for (int64_t i = first; i < k->stack.n; i++) {
    if (stack[i] == MARK) return fail_stack(k);
    TRY(nc_pickle_append(k, to, stack[i]));
  }
  k->stack.n = rest;
  return NC_OK;
}

static int add_from_mark(Pickle *k, int kind) {
  int64_t first = 0;
  TRY(find_mark(k, &first));
  return add_items(k, kind, first, first - 1);
}

static int add_top(Pickle *k, int kind, int n) {
  if (k->stack.n < n) return fail_stack(k);
  return add_items(k, kind, k->stack.n - n, k->stack.n - n);
}

/*
** The memo
*/
/* Python counts the values that it puts there, Python 2 from 1: each number is
   the next, or one that is there already. */
static int put(Pickle *k, uint64_t i) {
  const int32_t *top = k->stack.p;
  void *slot;
  if (k->stack.n == 0 || top[k->stack.n - 1] == MARK) return fail_stack(k);
  if (i == 1 && k->memo.n == 0) {
    TRY(nc_push_slot(&k->memo, sizeof(int32_t), &slot));
    *(int32_t *)slot = MARK; /* no value */
  }
  if (i > (uint64_t)k->memo.n)
    return nc_fail_pickle(k, "value %llu is kept after %lld",
                          (unsigned long long)i, (long long)k->memo.n);
  if (i == (uint64_t)k->memo.n)
    TRY(nc_push_slot(&k->memo, sizeof(int32_t), &slot));
  ((int32_t *)k->memo.p)[i] = top[k->stack.n - 1];
  return NC_OK;
}

static int get(Pickle *k, uint64_t i) {
  const int32_t *memo = k->memo.p;
  if (i >= (uint64_t)k->memo.n || memo[i] == MARK)
    return nc_fail_pickle(k, "there is no value %llu", (unsigned long long)i);
  return push(k, memo[i]);
}

/*
** Bytes of the pickle
*/
/* Reads on until n bytes from k->at on are there; they are at most what the
   file has. */
static int read_more(Pickle *k, uint64_t n) {
  const int64_t have = k->size - k->at, least = 1 << 16;
  if (k->from == NULL || n - (uint64_t)have > (uint64_t)k->from->left)
    return nc_fail_pickle(k, "it ends too early");
  int64_t more = k->size > least ? k->size : least;
  if (more < (int64_t)n - have) more = (int64_t)n - have;
  if (more > k->from->left) more = k->from->left;
  if (k->size + more > MOST_BYTES) return nc_fail_pickle(k, "it is too long");
  if (k->size + more > k->room) {
    const int64_t room = k->size + more;
    void *block;
    TRY(nc_hostalloc(&block, room));
    if (k->size) memcpy(block, k->text, (size_t)k->size);
    nc_hostfree(k->block, k->room);
    k->text = k->block = block;
    k->room = room;
  }
  TRY(nc_readblock(k->from, (char *)k->block + k->size, more, "pickle"));
  k->size += more;
  return NC_OK;
}

/* *at = the position of the next n bytes, which are skipped. */
static int take(Pickle *k, uint64_t n, int64_t *at) {
  if (n > (uint64_t)(k->size - k->at)) TRY(read_more(k, n));
  *at = k->at;
  k->at += (int64_t)n;
  return NC_OK;
}

static int take_number(Pickle *k, int bytes, uint64_t *v) {
  int64_t at = 0;
  TRY(take(k, (uint64_t)bytes, &at));
  *v = nc_littleendian(k->text + at, bytes);
  return NC_OK;
}

/* A text, or bytes, after its length in `width' bytes. */
static int push_text(Pickle *k, int width) {
  uint64_t n = 0;
  int64_t at = 0;
  TRY(take_number(k, width, &n));
  TRY(take(k, n, &at));
  return push_new(k, NC_V_TEXT, at, (int32_t)n);
}

/* An integer in n little-endian bytes, in two's complement. */
static int push_long(Pickle *k, uint64_t n) {
  uint64_t v = 0;
  int64_t at = 0;
  TRY(take(k, n, &at));
  if (n > 8) {
    const char sign = (char)(k->text[at + 7] < 0 ? -1 : 0);
    int64_t i = 8;
    while (i < (int64_t)n && k->text[at + i] == sign) i++;
    if (i < (int64_t)n) return push_new(k, NC_V_LONG, at, (int32_t)n);
    n = 8;
  }
  v = nc_littleendian(k->text + at, (int)n);
  if (n > 0 && n < 8 && v >> (8 * n - 1)) v |= UINT64_MAX << (8 * n);
  return push_new(k, NC_V_INT, (int64_t)v, 0);
}

static int push_float(Pickle *k) {
  unsigned char b[8];
  uint64_t bits = 0;
  int64_t at = 0;
  int32_t value = 0;
  TRY(take(k, 8, &at));
  memcpy(b, k->text + at, 8);
  for (int i = 0; i < 8; i++) bits = bits << 8 | b[i];
  TRY(nc_pickle_value(k, &value, NC_V_FLOAT, 0, 0));
  memcpy(&PICKLE_VALUE(k, value)->f, &bits, 8);
  return push(k, value);
}

/* A line of text without its end. */
static int take_line(Pickle *k, int64_t *at, int64_t *n) {
  const char *p, *end;
  for (;;) {
    p = k->text + k->at;
    end = memchr(p, '\n', (size_t)(k->size - k->at));
    if (end) break;
    if (k->from == NULL || k->from->left == 0 || k->size - k->at > MOST_LINE)
      return nc_fail_pickle(k, "a line has no end");
    TRY(read_more(k, (uint64_t)(k->size - k->at) + 1));
  }
  *at = k->at;
  *n = end - p;
  k->at += *n + 1;
  return NC_OK;
}

/*
** Objects
*/
static int push_global(Pickle *k) {
  int64_t module = 0, nmodule = 0, name = 0, nname = 0;
  int32_t at = 0;
  TRY(take_line(k, &module, &nmodule));
  TRY(take_line(k, &name, &nname));
  TRY(nc_pickle_global(k, &at, module, nmodule, name, nname));
  return push(k, at);
}

/* The same, of two texts on the stack. */
static int stack_global(Pickle *k) {
  int32_t module = 0, name = 0, at = 0;
  TRY(pop(k, &name));
  TRY(pop(k, &module));
  const FileValue *m = PICKLE_VALUE(k, module), *n = PICKLE_VALUE(k, name);
  if (m->kind != NC_V_TEXT || n->kind != NC_V_TEXT)
    return nc_fail_pickle(k, "the name of a global is not a string");
  TRY(nc_pickle_global(k, &at, m->i, m->n, n->i, n->n));
  return push(k, at);
}

static int reduce(Pickle *k) {
  int32_t global = 0, tuple = 0, at = 0;
  TRY(pop(k, &tuple));
  TRY(pop(k, &global));
  TRY(nc_pickle_call(k, &at, global, tuple));
  return push(k, at);
}

/* cls.__new__(*tuple), and the same with a dict of arguments. */
static int new_object(Pickle *k, int items) {
  int32_t item[3], at = 0;
  for (int i = items - 1; i >= 0; i--) TRY(pop(k, &item[i]));
  TRY(nc_pickle_other(k, &at, item[0], item + 1, items - 1));
  return push(k, at);
}

/* An object holds its attributes. With __slots__ they are a tuple of two dicts,
   or of None and a dict. */
static int add_state(Pickle *k, int32_t to, int32_t state) {
  int32_t part[2];
  int n = PICKLE_VALUE(k, state)->kind == V_TUPLE
              ? nc_pickle_items(k, state, part, 2)
              : -1;
  for (int i = 0; i < 2 && n == 2; i++) {
    const int kind = PICKLE_VALUE(k, part[i])->kind;
    if (kind != NC_V_DICT && kind != NC_V_NONE) n = -1;
  }
  if (n != 2) return nc_pickle_append(k, to, state);
  for (int i = 0; i < 2; i++)
    if (PICKLE_VALUE(k, part[i])->kind == NC_V_DICT)
      TRY(nc_pickle_append(k, to, part[i]));
  return NC_OK;
}

/* The attributes of an OrderedDict, such as _metadata of a state_dict, are left
   out. */
static int build(Pickle *k) {
  int32_t state = 0, to = 0;
  TRY(pop(k, &state));
  TRY(pop(k, &to));
  if (PICKLE_VALUE(k, to)->kind == NC_V_OTHER) {
    TRY(add_state(k, to, state));
    TRY(nc_pickle_array(k, to));
  } else if (PICKLE_VALUE(k, to)->kind != NC_V_DICT)
    return nc_fail_pickle(k, "attributes are set on a value that is not a "
                             "dict");
  return push(k, to);
}

static int persistent(Pickle *k) {
  int32_t tuple = 0, at = 0;
  TRY(pop(k, &tuple));
  TRY(nc_pickle_storage(k, &at, tuple));
  return push(k, at);
}

static int fail_opcode(const Pickle *k, int op) {
  switch (op) {
    case 'l':
    case 'd':
    case 'p':
    case 'g':
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'P':
      return nc_fail_pickle(k,
                            "opcode '%c' of protocols 0 and 1 is not "
                            "supported",
                            op);
    case 'i':
    case 'o': return nc_fail_pickle(k, "refuses to make an object of a class");
    case 0x82:
    case 0x83:
    case 0x84: return nc_fail_pickle(k, "refuses the registry of extensions");
    default: return nc_fail_pickle(k, "0x%02x is not an opcode", op);
  }
}

static int number_op(Pickle *k, int op) {
  uint64_t v = 0;
  switch (op) {
    case 'K': TRY(take_number(k, 1, &v)); break;
    case 'M': TRY(take_number(k, 2, &v)); break;
    case 'J':
      TRY(take_number(k, 4, &v));
      v = (uint64_t)(int32_t)v;
      break;
    case 'G': return push_float(k);
    case 0x8a: TRY(take_number(k, 1, &v)); return push_long(k, v);
    default: TRY(take_number(k, 4, &v)); return push_long(k, v);
  }
  return push_new(k, NC_V_INT, (int64_t)v, 0);
}

static int memo_op(Pickle *k, int op) {
  uint64_t i = (uint64_t)k->memo.n;
  if (op != 0x94) TRY(take_number(k, op == 'q' || op == 'h' ? 1 : 4, &i));
  return op == 'h' || op == 'j' ? get(k, i) : put(k, i);
}

static int execute(Pickle *k, int op) {
  uint64_t n = 0;
  switch (op) {
    case 'N': return push_new(k, NC_V_NONE, 0, 0);
    case 0x88:
    case 0x89: return push_new(k, NC_V_BOOL, op == 0x88, 0);
    case 'K':
    case 'M':
    case 'J':
    case 'G':
    case 0x8a:
    case 0x8b: return number_op(k, op);
    case 'X':
    case 'T':
    case 'B': return push_text(k, 4);
    case 'U':
    case 'C':
    case 0x8c: return push_text(k, 1);
    case 0x8d:
    case 0x8e: return push_text(k, 8);
    case '(': return push(k, MARK);
    case '0':
    case '1':
    case '2': return stack_op(k, op);
    case ']':
    case 0x8f: return push_new(k, NC_V_LIST, -1, -1);
    case '}': return push_new(k, NC_V_DICT, -1, -1);
    case ')': return push_new(k, V_TUPLE, -1, -1);
    case 0x85:
    case 0x86:
    case 0x87: return tuple_of(k, op - 0x84);
    case 't':
    case 0x91: return tuple_from_mark(k);
    case 'a': return add_top(k, NC_V_LIST, 1);
    case 's': return add_top(k, NC_V_DICT, 2);
    case 'e':
    case 0x90: return add_from_mark(k, NC_V_LIST);
    case 'u': return add_from_mark(k, NC_V_DICT);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
    case 0x94: return memo_op(k, op);
    case 'c': return push_global(k);
    case 0x93: return stack_global(k);
    case 'R': return reduce(k);
    case 'b': return build(k);
    case 0x81: return new_object(k, 2);
    case 0x92: return new_object(k, 3);
    case 'Q': return persistent(k);
    case 0x95: return take_number(k, 8, &n); /* a frame: read as a stream */
    default: return fail_opcode(k, op);
  }
}

static int read_protocol(Pickle *k) {
  uint64_t op = 0, version = 0;
  TRY(take_number(k, 1, &op));
  if (op != 0x80) return nc_fail_pickle(k, "it does not name its protocol");
  TRY(take_number(k, 1, &version));
  if (version < 2 || version > 5)
    return nc_fail_pickle(k, "protocol %d is not supported (2 to 5 are)",
                          (int)version);
  return NC_OK;
}

int nc_nextpickle(Pickle *k) {
  uint64_t op = 0;
  k->memo.n = k->stack.n = 0;
  TRY(read_protocol(k));
  for (;;) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    TRY(take_number(k, 1, &op));
    if (op == '.') break;
    TRY(execute(k, (int)op));
  }
  TRY(pop(k, &k->root));
  if (k->stack.n) return nc_fail_pickle(k, "something follows its end");
  return NC_OK;
}

int nc_readpickle(Pickle *k, const char *text, int64_t n) {
  k->text = text;
  k->size = n;
  if (n > MOST_BYTES) return nc_fail_pickle(k, "it is too long");
  TRY(nc_nextpickle(k));
  if (k->at != k->size) return nc_fail_pickle(k, "something follows its end");
  return NC_OK;
}
