/* SPDX-License-Identifier: MIT */
/*
** fit_line.c - the example of libnacre: a line through points, fitted by
** gradients.
**
**   cc fit_line.c $(pkg-config --cflags --libs nacre) -o fit_line && ./fit_line
*/
#include <stdio.h>
#include <stdlib.h>

#include <nacre/tensors.h>

/* Ends the program with the last error unless status is NACRE_OK. */
static void check(int status) {
  if (status == NACRE_OK) return;
  fprintf(stderr, "error: %s\n", nacre_error());
  if (*nacre_error_hint()) fprintf(stderr, "  hint: %s\n", nacre_error_hint());
  exit(EXIT_FAILURE);
}

/* The result of an operation with one result. */
static nacre_tensor *call(const char *op, int n, const nacre_arg arg[]) {
  nacre_tensor *y;
  check(nacre_call(op, &y, 1, arg, n));
  return y;
}

static nacre_tensor *call2(const char *op, nacre_arg a, nacre_arg b) {
  const nacre_arg both[] = { a, b };
  return call(op, 2, both);
}

/* mean((x * slope - y)^2) */
static nacre_tensor *loss(nacre_tensor *x, nacre_tensor *y,
                          nacre_tensor *slope) {
  nacre_tensor *guess = call2("mul", nacre_t(x), nacre_t(slope));
  nacre_tensor *off = call2("sub", nacre_t(guess), nacre_t(y));
  nacre_tensor *square = call2("mul", nacre_t(off), nacre_t(off));
  const nacre_arg all[] = { nacre_t(square) };
  nacre_tensor *mean = call("mean", 1, all);
  nacre_release(square);
  nacre_release(off);
  nacre_release(guess);
  return mean;
}

/* slope -= rate * slope.grad, which is then zero */
static void step(nacre_tensor *slope, double rate) {
  nacre_tensor *grad, *same;
  check(nacre_grad(&grad, slope));
  const nacre_arg update[] = { nacre_t(slope), nacre_t(grad),
                               nacre_named("alpha", nacre_number(rate)) };
  const nacre_arg all[] = { nacre_t(grad) };
  nacre_record(0);
  check(nacre_call("sub_", &same, 1, update, 3));
  nacre_release(same);
  check(nacre_call("zero_", &same, 1, all, 1));
  nacre_release(same);
  nacre_record(1);
  nacre_release(grad);
}

int main(void) {
  const float xs[] = { 1, 2, 3, 4 }, ys[] = { 3, 6, 9, 12 }, start = 0;
  const int64_t four = 4;
  nacre_tensor *x, *y, *slope;
  double value;
  check(nacre_new(&x, NACRE_FLOAT32, 1, &four, xs));
  check(nacre_new(&y, NACRE_FLOAT32, 1, &four, ys));
  check(nacre_new(&slope, NACRE_FLOAT32, 0, NULL, &start));
  check(nacre_require_grad(slope, 1));
  for (int i = 0; i < 50; i++) {
    nacre_tensor *l = loss(x, y, slope);
    check(nacre_backward(l));
    step(slope, 0.05);
    nacre_release(l);
  }
  check(nacre_item(slope, &value));
  printf("slope %.3f\n", value);
  nacre_release(slope);
  nacre_release(y);
  nacre_release(x);
  return EXIT_SUCCESS;
}
