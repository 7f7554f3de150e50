/* SPDX-License-Identifier: MIT */
/*
** test_library.c - libnacre as a program sees it: nacre/tensors.h alone. With
** the names of the tables of operations it makes many calls, right and wrong.
*/
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <nacre/tensors.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static nacre_tensor *matrix(void) {
  static const float values[] = { 1, 2, 3, 4, 5, 6 };
  static const int64_t size[] = { 2, 3 };
  nacre_tensor *t;
  assert_int_equal(nacre_new(&t, NACRE_FLOAT32, 2, size, values), NACRE_OK);
  return t;
}

static void expect(nacre_tensor *t, int n, const float want[]) {
  float got[16];
  assert_int_equal(nacre_numel(t), n);
  assert_int_equal(nacre_read(t, got, (size_t)n * sizeof *got), NACRE_OK);
  for (int i = 0; i < n; i++) assert_float_equal(got[i], want[i], 1e-6);
}

static nacre_tensor *call(const char *op, int n, const nacre_arg arg[]) {
  nacre_tensor *y;
  const int r = nacre_call(op, &y, 1, arg, n);
  if (r != NACRE_OK) fail_msg("%s: %s", op, nacre_error());
  return y;
}

static void refuse(const char *op, int n, const nacre_arg arg[], int code,
                   const char *text) {
  nacre_tensor *y = (nacre_tensor *)&y;
  assert_int_equal(nacre_call(op, &y, 1, arg, n), code);
  assert_null(y);
  if (strstr(nacre_error(), text) == NULL)
    fail_msg("'%s' is not in '%s'", text, nacre_error());
}

static void what_tensors_are(void **state) {
  nacre_tensor *t = matrix(), *wide, *bad, *flag;
  const int64_t negative = -1;
  assert_int_equal(nacre_dtype_of(t), NACRE_FLOAT32);
  assert_string_equal(nacre_device_of(t), "cpu");
  assert_int_equal(nacre_ndim(t), 2);
  assert_int_equal(nacre_size(t, 1), 3);
  assert_int_equal(nacre_stride(t, 0), 3);
  assert_int_equal(nacre_itemsize(NACRE_BFLOAT16), 2);
  assert_float_equal(((float *)nacre_data(t))[5], 6, 0);
  assert_int_equal(nacre_to_dtype(&wide, t, NACRE_INT64), NACRE_OK);
  assert_int_equal(((int64_t *)nacre_data(wide))[2], 3);
  assert_int_equal(nacre_read(t, NULL, 4), NACRE_EVALUE);
  assert_int_equal(nacre_new(&bad, NACRE_FLOAT32, 9, NULL, NULL), NACRE_ESHAPE);
  assert_int_equal(nacre_new(&bad, NACRE_FLOAT32, 1, &negative, NULL),
                   NACRE_ESHAPE);
  assert_int_equal(nacre_new(&bad, (nacre_dtype)99, 0, NULL, NULL),
                   NACRE_EDTYPE);
  assert_null(bad);
  assert_int_equal(nacre_new(&flag, NACRE_BOOL, 0, NULL, "\7"), NACRE_OK);
  assert_int_equal(*(char *)nacre_data(flag), 1);
  nacre_release(flag);
  assert_int_equal(nacre_to_device(&bad, t, "tpu"), NACRE_EVALUE);
  nacre_retain(t);
  nacre_release(t);
  nacre_release(wide);
  nacre_release(t);
  nacre_release(NULL);
}

static void arguments(void **state) {
  nacre_tensor *t = matrix(), *y, *both[] = { t, t };
  const int64_t size[] = { 3, 2 };
  const nacre_arg sum[] = { nacre_t(t), nacre_named("dim", nacre_int(-1)) };
  const nacre_arg cat[] = { nacre_list(2, both), nacre_int(2) };
  const nacre_arg shape[] = { nacre_t(t), nacre_ints(2, size) };
  const nacre_arg left[] = { nacre_int(1), nacre_t(t) };
  const nacre_arg zeros[] = { nacre_ints(2, size),
                              nacre_named("dtype", nacre_text("int8")) };
  const nacre_arg skip[] = { nacre_t(t), nacre_none(), nacre_flag(1) };
  expect(y = call("sum", 2, sum), 2, (const float[]){ 6, 15 });
  nacre_release(y);
  y = call("cat", 2, cat);
  assert_int_equal(nacre_size(y, 1), 6);
  nacre_release(y);
  y = call("reshape", 2, shape);
  assert_int_equal(nacre_size(y, 0), 3);
  nacre_release(y);
  expect(y = call("sub", 2, left), 6, (const float[]){ 0, -1, -2, -3, -4, -5 });
  nacre_release(y);
  assert_int_equal(nacre_dtype_of(y = call("zeros", 2, zeros)), NACRE_INT8);
  nacre_release(y);
  assert_int_equal(nacre_ndim(y = call("sum", 3, skip)), 2); /* keepdim */
  nacre_release(y);
  nacre_release(t);
}

static void results(void **state) {
  nacre_tensor *t = matrix(), *y[3] = { t, t, t };
  const nacre_arg max[] = { nacre_t(t), nacre_int(2) };
  const nacre_arg split[] = { nacre_t(t), nacre_int(1), nacre_int(2) };
  const nacre_arg equal[] = { nacre_t(t), nacre_t(t) };
  double value;
  int64_t integer;
  assert_int_equal(nacre_call("sort", y, 3, max, 2), NACRE_OK);
  assert_non_null(y[1]);
  assert_null(y[2]);
  assert_int_equal(nacre_item_int(y[1], &integer), NACRE_EVALUE);
  nacre_release(y[0]);
  nacre_release(y[1]);
  assert_int_equal(nacre_call("split", y, 3, split, 3), NACRE_OK);
  for (int i = 0; i < 3; i++) nacre_release(y[i]);
  assert_int_equal(nacre_call("split", y, 2, split, 3), NACRE_EVALUE);
  assert_non_null(strstr(nacre_error(), "3 results"));
  assert_null(y[0]);
  y[0] = call("equal", 2, equal);
  assert_int_equal(nacre_dtype_of(y[0]), NACRE_BOOL);
  assert_int_equal(nacre_item(y[0], &value), NACRE_OK);
  assert_float_equal(value, 1, 0);
  assert_int_equal(nacre_item_int(y[0], &integer), NACRE_OK);
  nacre_release(y[0]);
  nacre_release(t);
}

static void errors(void **state) {
  nacre_tensor *t = matrix();
  const nacre_arg one[] = { nacre_t(t) };
  const nacre_arg two[] = { nacre_t(t), nacre_t(t) };
  const nacre_arg named[] = { nacre_t(t), nacre_named("dimm", nacre_int(1)) };
  const nacre_arg twice[] = { nacre_t(t), nacre_int(1),
                              nacre_named("dim", nacre_int(1)) };
  const nacre_arg kept[] = { nacre_t(t),
                             nacre_named("keepdims", nacre_int(1)) };
  const nacre_arg dtype[] = { nacre_t(t),
                              nacre_named("dtype", nacre_text("flaot32")) };
  const nacre_arg far[] = { nacre_t(t), nacre_int(3) };
  const nacre_arg numbers[] = { nacre_int(1), nacre_int(2) };
  const nacre_arg text[] = { nacre_t(t), nacre_text("no") };
  refuse("nosuch", 1, one, NACRE_EVALUE, "nacre has no 'nosuch'");
  refuse("mm", 2, two, NACRE_ESHAPE, "mm: inner sizes differ: self");
  assert_non_null(strstr(nacre_error_hint(), "t()"));
  refuse("mm", 1, one, NACRE_EVALUE, "mm: mat2 is missing: a tensor expected");
  refuse("sum", 2, named, NACRE_EVALUE, "sum: no argument 'dimm'");
  refuse("sum", 2, kept, NACRE_EVALUE,
         "sum: no argument 'keepdims', did you mean 'keepdim'?");
  refuse("sum", 2, dtype, NACRE_EVALUE,
         "sum: no dtype 'flaot32', did you mean 'float32'?");
  refuse("sum", 3, twice, NACRE_EVALUE, "sum: dim is given twice");
  refuse("sum", 2, far, NACRE_EINDEX, "sum: ");
  refuse("add", 2, numbers, NACRE_EVALUE, "add: self must be a tensor");
  refuse("softmax", 2, text, NACRE_EVALUE,
         "softmax: dim must be a dimension, not 'no'");
  refuse("sum_", 1, one, NACRE_EVALUE, "nacre has no 'sum_'");
  refuse("linalg.nosuch", 1, one, NACRE_EVALUE, "nacre.linalg has no 'nosuch'");
  refuse("linalg", 1, one, NACRE_EVALUE, "this is no operation: it is a table");
  refuse("linalg.svd.x", 1, one, NACRE_EVALUE, "'linalg.svd' is a function");
  refuse("conv2d", 1, one, NACRE_EVALUE, "conv2d: weight is missing");
  refuse("nn.Linear", 2, numbers, NACRE_EVALUE, "gives a table with names");
  refuse("exp", 2, two, NACRE_EVALUE,
         "exp: takes no argument besides self, got 1");
  nacre_release(t);
}

static void in_place(void **state) {
  nacre_tensor *t = matrix(), *y;
  const nacre_arg add[] = { nacre_t(t), nacre_int(1) };
  const nacre_arg fill[] = { nacre_t(t), nacre_number(0.5) };
  const nacre_arg sum[] = { nacre_t(t), nacre_int(2) };
  y = call("add_", 2, add);
  assert_ptr_equal(nacre_data(y), nacre_data(t));
  nacre_release(y);
  assert_int_equal(nacre_call("add_", NULL, 0, add, 2), NACRE_OK);
  nacre_release(call("cumsum_", 2, sum));
  expect(t, 6, (const float[]){ 3, 7, 12, 6, 13, 21 });
  nacre_release(call("fill_", 2, fill));
  expect(t, 6, (const float[]){ 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 });
  nacre_release(t);
}

static void gradients(void **state) {
  nacre_tensor *t = matrix(), *grad, *square, *y;
  assert_int_equal(nacre_require_grad(t, 1), NACRE_OK);
  assert_int_equal(nacre_grad(&grad, t), NACRE_OK);
  assert_null(grad);
  const nacre_arg both[] = { nacre_t(t), nacre_t(t) };
  square = call("mul", 2, both);
  const nacre_arg one[] = { nacre_t(square) };
  assert_int_equal(nacre_backward(square), NACRE_EVALUE);
  y = call("sum", 1, one);
  assert_int_equal(nacre_backward(y), NACRE_OK);
  assert_int_equal(nacre_grad(&grad, t), NACRE_OK);
  expect(grad, 6, (const float[]){ 2, 4, 6, 8, 10, 12 });
  nacre_record(0);
  const nacre_arg into[] = { nacre_t(t), nacre_t(grad) };
  nacre_release(call("sub_", 2, into));
  nacre_record(1);
  nacre_release(y);
  nacre_release(square);
  nacre_release(grad);
  nacre_release(t);
}

static void file_of(const char *path, int64_t n, const char *const name[]) {
  nacre_tensor *t = matrix(), *two[] = { t, t }, *back;
  if (nacre_save(path, n, two, name) != NACRE_OK) fail_msg("%s", nacre_error());
  if (nacre_load(&back, path, name ? name[n - 1] : NULL) != NACRE_OK)
    fail_msg("%s", nacre_error());
  assert_int_equal(nacre_numel(back), 6);
  nacre_release(back);
  if (n == 2) {
    assert_int_equal(nacre_load(&back, path, NULL), NACRE_EFILE);
    assert_int_equal(nacre_load(&back, path, "none"), NACRE_EFILE);
  }
  assert_int_equal(remove(path), 0);
  nacre_release(t);
}

static void files(void **state) {
  char folder[] = "/tmp/nacre-library-XXXXXX";
  static const char *const names[] = { "a", "b" }, *const same[] = { "a", "a" };
  nacre_tensor *t = matrix(), *two[] = { t, t }, *back;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  file_of("x.npy", 1, NULL);
  file_of("x.csv", 1, NULL);
  file_of("x.tsv", 1, NULL);
  file_of("x.safetensors", 2, names);
  assert_int_equal(nacre_save("x.safetensors", 2, two, same), NACRE_EVALUE);
  assert_int_equal(nacre_save("x.npy", 2, two, names), NACRE_EVALUE);
  assert_int_equal(nacre_save("x.xyz", 1, two, names), NACRE_EVALUE);
  assert_int_equal(nacre_save("x.npz", 1, two, NULL), NACRE_EVALUE);
  assert_int_equal(nacre_save("x.npz", 0, two, names), NACRE_EVALUE);
  assert_int_equal(nacre_load(&back, "x.npy", NULL), NACRE_EFILE);
  assert_non_null(strstr(nacre_error(), "x.npy"));
  FILE *odd = fopen("x.xyz", "w"); /* of no known format */
  fputs("\1\2\3\4\5\6\7\10", odd);
  fclose(odd);
  assert_int_equal(nacre_load(&back, "x.xyz", NULL), NACRE_EFILE);
  assert_int_equal(remove("x.xyz"), 0);
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(folder), 0);
  nacre_release(t);
}

static void interrupts(void **state) {
  const int64_t size[] = { 1000, 1000 };
  const nacre_arg shape[] = { nacre_ints(2, size) };
  nacre_tensor *x = call("ones", 1, shape), *y;
  const nacre_arg one[] = { nacre_t(x) };
  nacre_interrupt();
  assert_int_equal(nacre_call("exp", &y, 1, one, 1), NACRE_EINTR);
  nacre_release(call("exp", 1, one)); /* the next one runs */
  nacre_release(x);
}

static void random_numbers(void **state) {
  const int64_t three = 3;
  const nacre_arg shape[] = { nacre_ints(1, &three) };
  float values[3];
  nacre_seed(7);
  nacre_tensor *a = call("randn", 1, shape), *b;
  nacre_seed(7);
  b = call("randn", 1, shape);
  assert_int_equal(nacre_read(a, values, sizeof values), NACRE_OK);
  expect(b, 3, values);
  nacre_release(a);
  nacre_release(b);
}

/* Calls each operation with up to three tensors and a number: nothing is known
   but that a status comes, that failures have a text, and what a sanitizer
   sees. Most operations of one or two tensors succeed. */
static void all_operations(void **state) {
#define EVERY_OP(op, ...) #op,
#define OPERATOR(op, ...) #op,
  static const char *const names[] = {
#include "core/ops.def"
#include "core/operators.def"
  };
  nacre_tensor *t = matrix(), *y[64];
  const nacre_arg arg[] = { nacre_t(t), nacre_t(t), nacre_t(t), nacre_int(1) };
  const nacre_arg dim[] = { nacre_t(t), nacre_int(1) };
  int good = 0;
  for (int i = 0; i < COUNT(names); i++)
    for (int n = 0; n <= COUNT(arg) + 1; n++) {
      const int with_dim = n == COUNT(arg) + 1;
      const int r = nacre_call(names[i], y, COUNT(y), with_dim ? dim : arg,
                               with_dim ? 2 : n);
      good += r == NACRE_OK;
      if (r != NACRE_OK) assert_true(*nacre_error());
      for (int k = 0; k < COUNT(y); k++) nacre_release(y[k]);
    }
  assert_true(good > COUNT(names) / 2);
  nacre_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_tensors_are),
    cmocka_unit_test(arguments),
    cmocka_unit_test(results),
    cmocka_unit_test(errors),
    cmocka_unit_test(in_place),
    cmocka_unit_test(gradients),
    cmocka_unit_test(files),
    cmocka_unit_test(interrupts),
    cmocka_unit_test(random_numbers),
    cmocka_unit_test(all_operations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
