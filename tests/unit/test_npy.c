/* SPDX-License-Identifier: MIT */
/*
** test_npy.c - the .npy format: what is read, what is refused and how.
** tests/files/bad_files.lua damages files.
*/
#define _XOPEN_SOURCE 700 /* S_IFREG */
#include <errno.h>
#include <sys/stat.h>

#include "core/io/file.h"
#include "core/io/npy/npy.h"
#include "tests/unit/unit.h"

/*
** Files in memory: made piece by piece, and read by the loader as if they lay
** on a disk.
*/
typedef struct Image {
  unsigned char b[4096];
  size_t n;
} Image;

/* The file that `open' gives, and how the system behaves. */
static struct {
  const unsigned char *p;
  size_t n, at;
  int64_t claimed; /* the size that fstat tells; -1: the true one */
  size_t most;     /* bytes of one read; 0: all that is asked */
} disk;

static int diskopen(const char *path, int flags, ...) {
  disk.at = 0;
  return 99;
}

static int diskclose(int fd) {
  return 0;
}

static int diskstat(int fd, struct stat *s) {
  memset(s, 0, sizeof *s);
  s->st_mode = S_IFREG | 0644;
  s->st_size = disk.claimed < 0 ? (off_t)disk.n : (off_t)disk.claimed;
  return 0;
}

static ssize_t diskread(int fd, void *p, size_t n) {
  size_t left = disk.n - disk.at;
  if (disk.most && n > disk.most) n = disk.most;
  if (n > left) n = left;
  memcpy(p, disk.p + disk.at, n);
  disk.at += n;
  return (ssize_t)n;
}

/* Loads the n bytes at p as a file called "x.npy". */
static int loadbytes(Tensor **t, const unsigned char *p, size_t n) {
  Files real = nc_files;
  int status;
  disk.p = p;
  disk.n = n;
  nc_files.open = diskopen;
  nc_files.close = diskclose;
  nc_files.fstat = diskstat;
  nc_files.read = diskread;
  status = nc_loadnpy(t, &(Source){ .path = "x.npy" });
  nc_files = real;
  return status;
}

#define DICT(descr, order, shape)                       \
  "{'descr': '" descr "', 'fortran_order': " order ", " \
  "'shape': " shape ", }"

/* A file of version `major' with the header text and n bytes 1, 2, 3, ... */
static void build(Image *f, int major, const char *text, size_t n) {
  size_t len = strlen(text), at = 8;
  memcpy(f->b, NPY_MAGIC, 6);
  f->b[6] = (unsigned char)major;
  f->b[7] = 0;
  f->b[at++] = (unsigned char)(len + 1);
  f->b[at++] = (unsigned char)((len + 1) >> 8);
  if (major > 1) f->b[at++] = 0, f->b[at++] = 0;
  memcpy(f->b + at, text, len);
  at += len;
  f->b[at++] = '\n';
  for (size_t i = 0; i < n; i++) f->b[at++] = (unsigned char)(i + 1);
  f->n = at;
}

static const struct {
  int major;
  const char *text;
  size_t n;
} seeds[] = {
  { 1, DICT("<f4", "False", "(2, 3)"), 24 },
  { 1, DICT(">f8", "False", "(16,)"), 128 }, /* a whole block */
  { 1, DICT("<i8", "True", "(2, 2)"), 32 },
  { 1, DICT("|u1", "False", "()"), 1 },
  { 1, DICT("|b1", "False", "(5,)"), 5 },
  { 1, DICT("<i2", "False", "(0, 4)"), 0 },
  { 2, DICT("=f2", "False", "(2, 1, 2)"), 8 },
  { 3, DICT(">i4", "True", "(1, 2, 3)"), 24 },
  { 1, "{\"shape\":(3L,),\"fortran_order\":False,\"descr\":\"|i1\"}   ", 3 },
  { 3, DICT("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 2)"), 8 },
  { 1, DICT("float32", "False", "(2,)"), 8 },
  { 1, DICT("f8", "False", "(2,)"), 16 },
  { 1, DICT("<f4", "False", "(1,)") "\n\n ", 4 },
  { 2, DICT("|i4", "False", "(2,)"), 8 },
  { 1, "{u'descr': u'<f4',\n\t'fortran_order': False,\r\n 'shape': (2,)}", 8 },
};

/* As loadbytes, from a block without a spare byte, so that a sanitizer sees
   every step too far. */
static int load(Tensor **t, const unsigned char *p, size_t n) {
  unsigned char *copy = malloc(n ? n : 1);
  int status;
  assert_non_null(copy);
  memcpy(copy, p, n);
  disk.claimed = -1;
  status = loadbytes(t, copy, n);
  free(copy);
  return status;
}

static void refused(const unsigned char *p, size_t n, const char *why) {
  Tensor *t;
  assert_int_not_equal(load(&t, p, n), NC_OK);
  assert_null(t);
  says(why);
}

static void test_seeds(void **state) {
  Image f;
  Tensor *t;
  for (int i = 0; i < COUNT(seeds); i++)
    for (disk.most = 0; disk.most < 3; disk.most++) { /* short reads too */
      build(&f, seeds[i].major, seeds[i].text, seeds[i].n);
      if (load(&t, f.b, f.n) != NC_OK) fail_msg("%s", nc_lasterror()->text);
      assert_int_equal(nc_numel(t) * nc_dtypesize(t->dtype), seeds[i].n);
      nc_release(t);
    }
  disk.most = 0;
}

/* The tensor in a file of n bytes of data. */
static Tensor *loaded(const char *text, size_t n) {
  Image f;
  Tensor *t;
  build(&f, 1, text, n);
  ok(load(&t, f.b, f.n));
  return t;
}

/* Each dtype is the only one of its kind and size, and what NumPy and the name
   call it reads as the same one. */
static void test_dtypes(void **state) {
  char type[8], text[80];
  Image f;
  Tensor *t;
  for (int k = 0; k < DT_COUNT; k++) {
    const int64_t bytes = nc_dtypesize((DType)k);
    const char *const names[] = { type, nc_dtypename((DType)k) };
    assert_int_equal(nc_dtypeof(nc_dtypekind((DType)k), bytes), k);
    nc_numpytype(type, (DType)k);
    for (int i = 0; *type && i < COUNT(names); i++) {
      snprintf(text, sizeof text,
               "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}",
               names[i]);
      build(&f, 1, text, (size_t)(2 * bytes));
      ok(load(&t, f.b, f.n));
      assert_int_equal(t->dtype, k);
      nc_release(t);
    }
  }
  assert_int_equal(nc_dtypeof('f', 3), DT_NONE);
  assert_int_equal(nc_storednamed("float32x", 7), DT_f32);
  assert_int_equal(nc_storednamed("float3", 6), DT_NONE);
}

static void test_values(void **state) {
  Image f;
  Tensor *t = loaded(DICT(">i4", "True", "(1, 2, 3)"), 24);
  assert_int_equal(t->nd, 3);
  assert_int_equal(t->size[1], 2);
  assert_int_equal(t->step[1], 1);
  assert_int_equal(t->step[2], 2);
  assert_int_equal(((int32_t *)nc_data(t))[1], 0x05060708);
  nc_release(t);
  t = loaded(DICT("<i2", "False", "(2, 3)"), 12);
  assert_int_equal(t->step[0], 3);
  assert_int_equal(((int16_t *)nc_data(t))[5], 0x0c0b);
  nc_release(t);
  t = loaded(DICT("<i2", "True", "(2, 3)"), 12);
  assert_int_equal(t->size[0], 2);
  assert_int_equal(t->step[0], 1);
  assert_int_equal(t->step[1], 2);
  nc_release(t);
  build(&f, 1, DICT("|b1", "False", "(5,)"), 5);
  f.b[f.n - 5] = 0x80;
  f.b[f.n - 4] = 0;
  ok(load(&t, f.b, f.n));
  assert_memory_equal(nc_data(t), "\1\0\1\1\1", 5); /* not 3, 4, 5 */
  nc_release(t);
}

static const struct {
  const char *text, *why;
} bad[] = {
  { "", "header: a dict expected" },
  { "{}", "'descr' is missing" },
  { "{", "a string expected, it ends here" },
  { "{,}", "a string expected" },
  { "{'descr': '<f4', 'shape': (1,)}", "'fortran_order' is missing" },
  { DICT("<f4", "False", "(1,)") "x", "nothing more expected at byte 58" },
  { "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "a comma or }" },
  { "{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "occurs twice" },
  { "{'descr': '<f4', 'color': 1}", "unknown key 'color'" },
  { "{'descr': '<f4', 'a\\'b': 1}", "a plain character expected" },
  { "{'descr': __import__('os').system('x')}", "a string expected" },
  { "{'descr' '<f4'}", "a colon expected" },
  { "{'descr': [('a', '<f4')]}", "records of several fields" },
  { "{'descr': ('<f4', (2,))}", "a string expected" },
  { DICT("<f4", "0", "(1,)"), "True or False expected" },
  { DICT("<f4", "false", "(1,)"), "True or False expected" },
  { DICT("<f4", "False", "3"), "a tuple expected" },
  { DICT("<f4", "False", "(3)"), "a comma expected" },
  { DICT("<f4", "False", "(,)"), "a size expected" },
  { DICT("<f4", "False", "(1,,2)"), "a size expected" },
  { DICT("<f4", "False", "(1 2)"), "a comma expected" },
  { DICT("<f4", "False", "(-1,)"), "a size expected" },
  { DICT("<f4", "False", "(1.5,)"), "a comma expected" },
  { DICT("<f4", "False", "(01,)"), "without leading zeros" },
  { DICT("<f4", "False", "(0x1,)"), "a comma expected" },
  { DICT("<f4", "False", "(9223372036854775808,)"), "beyond 64 bits" },
  { DICT("<f4", "False", "(18446744073709551617,)"), "beyond 64 bits" },
  { DICT("<f4", "False", "(92233720368547758080,)"), "beyond 64 bits" },
  { DICT("<f4", "False", "(4611686018427387904, 4)"), "beyond 64 bits" },
  { DICT("<f4", "False", "(0, 4611686018427387904, 4)"), "beyond 64 bits" },
  { DICT("<f8", "False", "(2305843009213693952,)"), "beyond 64 bits" },
  { DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), "more than 8 dimensions" },
  { DICT("<f4", "False", "(1000000000000,)"), "takes 4000000000000 bytes" },
  { DICT("float12", "False", "(1,)"), "is not a dtype" },
  { DICT("<f3", "False", "(1,)"), "is not a dtype" },
  { DICT("<f04", "False", "(1,)"), "is not a dtype" },
  { DICT("<B2", "False", "(1,)"), "is not a dtype" },
  { DICT("bfloat16", "False", "(1,)"), "is not a dtype" },
  { DICT("", "False", "(1,)"), "'' is not a dtype" },
  { DICT("<f 4", "False", "(1,)"), "'<f 4' is not a dtype" },
  { DICT("xf4", "False", "(1,)"), "'xf4' is not a dtype" },
  { DICT("<", "False", "(1,)"), "'<' is not a dtype" },
  { DICT("<c8", "False", "(1,)"),
    "complex64[1] takes 8 bytes, the file has 4" },
  { DICT("<c24", "False", "(1,)"), "'<c24' is complex192, which is not" },
  { DICT("<f16", "False", "(1,)"), "is float128" },
  { DICT("|O", "False", "(1,)"), "is Python objects" },
  { DICT("|S10", "False", "(1,)"), "is byte strings" },
  { DICT("<U5", "False", "(1,)"), "is text" },
  { DICT("|V2", "False", "(1,)"), "is raw bytes" },
  { DICT("<M8[ns]", "False", "(1,)"), "is datetime64" },
  { "{'\033]0;x\007': 1}", "a plain character expected at byte 3" },
  { DICT("\302\233A", "False", "(1,)"), "'\\xc2\\x9bA' is not a dtype" },
};

static void test_refused(void **state) {
  Image f;
  for (int i = 0; i < COUNT(bad); i++) {
    build(&f, 1, bad[i].text, 4);
    refused(f.b, f.n, bad[i].why);
  }
  build(&f, 3, DICT("<f4", "False", "(1L,)"), 4);
  refused(f.b, f.n, "a comma expected"); /* Python 2 had no version 3.0 */
  build(&f, 1, DICT("<c24", "False", "(1,)"), 2);
  refused(f.b, f.n, "complex192");
}

/* The parser alone, on text that ends where its block ends. */
static void test_flush(void **state) {
  static const char *const texts[] = {
    DICT("<f4", "False", "(12, 3)"),
    DICT("<f4", "True", "(1L,)"),
    "{  'shape' : ( 1 , 2 ) , 'descr' : '|b1' , 'fortran_order' : True } ",
    "{'descr': '",
    "{'descr': '<f4   ",
    "{'fortran_order': Fals",
    "{'desc",
  };
  NpyHeader h;
  for (int i = 0; i < COUNT(texts); i++)
    for (size_t n = 0; n <= strlen(texts[i]); n++) {
      char *block = malloc(n ? n : 1);
      assert_non_null(block);
      memcpy(block, texts[i], n);
      assert_int_equal(nc_parsenpy(&h, "x", 1, block, (int64_t)n) == NC_OK,
                       memchr(block, '}', n) != NULL);
      free(block);
    }
}

static void test_preamble(void **state) {
  static unsigned char b[20000] = NPY_MAGIC "\2\0\x11\x27\0\0"; /* 10001 */
  Image f;
  refused(b, sizeof b, "header length: 10001 bytes, at most 10000 are allowed");
  refused((const unsigned char *)"GIF89a567890", 12, "this is not a .npy file");
  refused((const unsigned char *)"BZh91AY&SY", 10, "compressed by bzip2");
  assert_string_equal(nc_lasterror()->hint, "bunzip2 unpacks it");
  build(&f, 4, DICT("<f4", "False", "(1,)"), 4);
  refused(f.b, f.n, "version: 4.0 is not supported");
  f.b[6] = 0;
  refused(f.b, f.n, "version: 0.0 is not supported");
  build(&f, 1, DICT("<f4", "False", "(1,)"), 4);
  f.b[7] = 1;
  refused(f.b, f.n, "version: 1.1 is not supported");
  build(&f, 1, "{'descr': '<f4'", 0);
  f.b[8]--; /* without its newline */
  refused(f.b, f.n - 1, "a comma or } expected, it ends here");
}

/* A header of exactly the longest length is read. */
static void test_longest(void **state) {
  static unsigned char b[NPY_MAXHEADER + 16] = NPY_MAGIC "\2\0\x10\x27\0\0";
  const char *text = DICT("|u1", "False", "(4,)");
  Tensor *t;
  memset(b + 12, ' ', NPY_MAXHEADER - 1);
  memcpy(b + 12, text, strlen(text));
  b[12 + NPY_MAXHEADER - 1] = '\n';
  ok(load(&t, b, sizeof b));
  nc_release(t);
}

static void test_changing(void **state) {
  Image f;
  Tensor *t;
  build(&f, 1, DICT("<f4", "False", "(2,)"), 8);
  disk.claimed = (int64_t)f.n;
  fails(loadbytes(&t, f.b, f.n - 1), NC_EFILE, "became shorter");
  disk.claimed = (int64_t)f.n - 1;
  build(&f, 1, DICT("|u1", "False", "(7,)"), 8);
  disk.claimed = (int64_t)f.n - 1;
  fails(loadbytes(&t, f.b, f.n), NC_EFILE, "became longer");
  assert_null(t);
}

/* Text may be shown on a terminal: nothing in it acts there. */
static void test_printable(void **state) {
  static const struct {
    const char *in, *out;
  } cases[] = {
    { "plain", "plain" },
    { "a\033[2Jb\n\t\177", "a\\x1b[2Jb\\x0a\\x09\\x7f" },
    { "\303\251\342\202\254\360\237\230\200",
      "\303\251\342\202\254\360\237\230\200" },
    { "\302\233\302\240", "\\xc2\\x9b\302\240" },
    { "\300\257\355\240\200\377\342\202",
      "\\xc0\\xaf\\xed\\xa0\\x80\\xff\\xe2\\x82" },
    { "\342\200\256x", "\\xe2\\x80\\xaex" }, /* right to left */
    { "a\\b", "a\\x5cb" },
  };
  char buf[100];
  for (int i = 0; i < COUNT(cases); i++)
    assert_string_equal(
        nc_printable(buf, sizeof buf, cases[i].in, strlen(cases[i].in)),
        cases[i].out);
  assert_string_equal(nc_printable(buf, 12, "abcdefghijklmn", 14), "abcd...");
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_seeds),
          cmocka_unit_test(test_dtypes), cmocka_unit_test(test_values),
          cmocka_unit_test(test_refused), cmocka_unit_test(test_preamble),
          cmocka_unit_test(test_longest), cmocka_unit_test(test_changing),
          cmocka_unit_test(test_flush), cmocka_unit_test(test_printable))
