/* SPDX-License-Identifier: MIT */
/*
** inference.c - networks in C: a block of a ResNet, and one of a decoder that
** keeps the keys and values of the tokens before. inference.lua writes the file
** of weights, with inputs and the results of Lua, which are compared.
**
**   lua5.4 inference.lua net.safetensors
**   cc inference.c $(pkg-config --cflags --libs nacre) -o inference
**   ./inference net.safetensors
*/
#include <stdio.h>
#include <stdlib.h>

#include <nacre/tensors.h>

enum { WIDTH = 16, HEADS = 4, KEY_HEADS = 2, EACH = 4, TOKENS = 8 };

static const char *path;

/* Ends the program with the last error unless status is NACRE_OK. */
static void check(int status) {
  if (status == NACRE_OK) return;
  fprintf(stderr, "error: %s\n", nacre_error());
  if (*nacre_error_hint()) fprintf(stderr, "  hint: %s\n", nacre_error_hint());
  exit(EXIT_FAILURE);
}

/*
** Intermediate results: released together
*/
static nacre_tensor *kept[1024];
static int nkept;

static nacre_tensor *keep(nacre_tensor *t) {
  if (nkept == (int)(sizeof kept / sizeof *kept)) abort();
  return kept[nkept++] = t;
}

/* Releases what was kept since there were n. */
static void release_to(int n) {
  while (nkept > n) nacre_release(kept[--nkept]);
}

static nacre_tensor *call(const char *op, int n, const nacre_arg arg[]) {
  nacre_tensor *y;
  check(nacre_call(op, &y, 1, arg, n));
  return keep(y);
}

/* An operation with one result, and its arguments. */
#define CALL(op, ...)                                                       \
  call(op, (int)(sizeof((nacre_arg[]){ __VA_ARGS__ }) / sizeof(nacre_arg)), \
       (const nacre_arg[]){ __VA_ARGS__ })

/* A tensor of the file. */
static nacre_tensor *load(const char *name) {
  nacre_tensor *t;
  check(nacre_load(&t, path, name));
  return keep(t);
}

static nacre_tensor *add(nacre_tensor *a, nacre_tensor *b) {
  return CALL("add", nacre_t(a), nacre_t(b));
}

/*
** A block of a ResNet
*/
static nacre_tensor *convolve(nacre_tensor *x, const char *weight,
                              int padding) {
  return CALL("conv2d", nacre_t(x), nacre_t(load(weight)),
              nacre_named("padding", nacre_int(padding)));
}

static nacre_tensor *normalize(nacre_tensor *x, const char *name) {
  static const char *const parts[] = { "running_mean", "running_var", "weight",
                                       "bias" };
  nacre_arg arg[5] = { nacre_t(x) };
  char full[64];
  for (int i = 0; i < 4; i++) {
    snprintf(full, sizeof full, "%s.%s", name, parts[i]);
    arg[i + 1] = nacre_t(load(full));
  }
  return call("batch_norm", 5, arg);
}

static nacre_tensor *classify(nacre_tensor *image) {
  nacre_tensor *y = normalize(convolve(image, "conv1.weight", 1), "norm1");
  y = CALL("relu", nacre_t(y));
  y = normalize(convolve(y, "conv2.weight", 1), "norm2");
  y = CALL("relu", nacre_t(add(y, convolve(image, "side.weight", 0))));
  y = CALL("max_pool2d", nacre_t(y), nacre_int(2));
  y = CALL("adaptive_avg_pool2d", nacre_t(y), nacre_int(1));
  y = CALL("flatten", nacre_t(y), nacre_int(2));
  return CALL("linear", nacre_t(y), nacre_t(load("fc.weight")),
              nacre_t(load("fc.bias")));
}

/*
** A block of a decoder
*/
static nacre_tensor *linear(nacre_tensor *x, const char *weight) {
  return CALL("linear", nacre_t(x), nacre_t(load(weight)));
}

static nacre_tensor *rms_norm(nacre_tensor *x, const char *weight) {
  const int64_t width = WIDTH;
  return CALL("rms_norm", nacre_t(x), nacre_ints(1, &width),
              nacre_t(load(weight)), nacre_number(1e-6));
}

/* n elements of a dimension from `start', which counts from 0 here. */
static nacre_tensor *narrow(nacre_tensor *x, int dim, int start, int n) {
  return CALL("narrow", nacre_t(x), nacre_int(dim), nacre_int(start + 1),
              nacre_int(n));
}

/* [1 x n x heads*EACH] as [1 x heads x n x EACH] */
static nacre_tensor *split_heads(nacre_tensor *x, int heads) {
  const int64_t size[] = { 1, nacre_size(x, 1), heads, EACH };
  nacre_tensor *y = CALL("reshape", nacre_t(x), nacre_ints(4, size));
  return CALL("transpose", nacre_t(y), nacre_int(2), nacre_int(3));
}

/* Turns the halves of each row by the angles of the positions from `start'. */
static nacre_tensor *rotate(nacre_tensor *x, int start) {
  const int n = (int)nacre_size(x, 2);
  nacre_tensor *cosines = narrow(load("cos"), 1, start, n);
  nacre_tensor *sines = narrow(load("sin"), 1, start, n);
  nacre_tensor *second = narrow(x, -1, EACH / 2, EACH / 2);
  nacre_tensor *turned[] = { CALL("neg", nacre_t(second)),
                             narrow(x, -1, 0, EACH / 2) };
  nacre_tensor *other = CALL("cat", nacre_list(2, turned), nacre_int(-1));
  return add(CALL("mul", nacre_t(x), nacre_t(cosines)),
             CALL("mul", nacre_t(other), nacre_t(sines)));
}

/* Writes x behind the `start' tokens of the cache; returns all so far. */
static nacre_tensor *remember(nacre_tensor *cache, nacre_tensor *x, int start) {
  const int n = (int)nacre_size(x, 2);
  CALL("copy_", nacre_t(narrow(cache, 3, start, n)), nacre_t(x));
  return narrow(cache, 3, 0, start + n);
}

/* Tokens x, `start' others being in the caches. One token sees all of them;
   several are those of the beginning. */
static nacre_tensor *decode(nacre_tensor *x, int start, nacre_tensor *keys,
                            nacre_tensor *values) {
  const int64_t n = nacre_size(x, 1), size[] = { 1, n, WIDTH };
  nacre_tensor *h = rms_norm(x, "before.weight");
  nacre_tensor *q = rotate(split_heads(linear(h, "q.weight"), HEADS), start);
  nacre_tensor *k =
      rotate(split_heads(linear(h, "k.weight"), KEY_HEADS), start);
  nacre_tensor *v = split_heads(linear(h, "v.weight"), KEY_HEADS);
  nacre_tensor *y = CALL("scaled_dot_product_attention", nacre_t(q),
                         nacre_t(remember(keys, k, start)),
                         nacre_t(remember(values, v, start)),
                         nacre_named("is_causal", nacre_flag(n > 1)),
                         nacre_named("enable_gqa", nacre_flag(1)));
  y = CALL("transpose", nacre_t(y), nacre_int(2), nacre_int(3));
  y = CALL("reshape", nacre_t(y), nacre_ints(3, size));
  x = add(x, linear(y, "o.weight"));
  h = rms_norm(x, "after.weight");
  y = CALL("silu", nacre_t(linear(h, "gate.weight")));
  y = CALL("mul", nacre_t(y), nacre_t(linear(h, "up.weight")));
  return add(x, linear(y, "down.weight"));
}

static nacre_tensor *new_cache(void) {
  const int64_t size[] = { 1, KEY_HEADS, TOKENS, EACH };
  return CALL("zeros", nacre_ints(4, size));
}

/* The first five tokens together, the others one by one. */
static nacre_tensor *decode_all(nacre_tensor *tokens) {
  nacre_tensor *keys = new_cache(), *values = new_cache(), *part[TOKENS];
  int parts = 0;
  for (int at = 0, n = 5; at < TOKENS; at += n, n = 1)
    part[parts++] = decode(narrow(tokens, 2, at, n), at, keys, values);
  return CALL("cat", nacre_list(parts, part), nacre_int(2));
}

/* Prints how far a result is from that of Lua; returns 1 if too far. */
static int compare(const char *name, nacre_tensor *result) {
  nacre_tensor *wanted = load(name);
  nacre_tensor *off = CALL("sub", nacre_t(result), nacre_t(wanted));
  double most;
  off = CALL("abs", nacre_t(off));
  check(nacre_item(CALL("amax", nacre_t(off)), &most));
  printf("%s: %s\n", name, most < 1e-5 ? "the same as in Lua" : "different");
  return !(most < 1e-5);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: inference FILE.safetensors\n");
    return 2;
  }
  path = argv[1];
  nacre_record(0);
  int wrong = compare("classes", classify(load("image")));
  release_to(0);
  wrong += compare("decoded", decode_all(load("tokens")));
  release_to(0);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
