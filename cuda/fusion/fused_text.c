/* SPDX-License-Identifier: MIT */
/*
** fused_text.c - writes the text of the kernels of a fused part.
**
** A register is a variable in the type in which its elements are computed, in
** kernels of lines one for each of the elements of a thread.  A step calls the
** function of its operation (core/pointwise/op_functions.inc), and rounds where
** the operation alone would: when an operand has another type than it computes
** in, and when its result has a narrower one.
**
** Numbers of the call are parameters of the kernel, and so are parameters of
** operations that are not whole: if the text had them, each new one would be
** compiled again.
*/
#include "cuda/fusion/fused_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/fusion/fused_writer.h"

_Static_assert(NC_MAXDIM == 8 && NC_MAXIN == 5, "headers/nvrtc_tensor.h");

/*
** Texts
*/
void nc_text_add(FusedText *t, const char *format, ...) {
  va_list args;
  for (int again = 0; again < 2 && !t->failed; again++) {
    int n;
    va_start(args, format);
    n = vsnprintf(t->text ? t->text + t->size : NULL,
                  (size_t)(t->room - t->size), format, args);
    va_end(args);
    if (n < t->room - t->size) {
      t->size += n;
      return;
    }
    const int64_t room = 2 * (t->room + n + 2048);
    char *more = realloc(t->text, (size_t)room);
    if (more == NULL) t->failed = 1;
    else t->text = more, t->room = room;
  }
}

/* The type that t is computed in, as the functions of operations are named. */
const char *nc_text_suffix(DType t) {
  switch (t) {
    case DT_b8:
    case DT_u8: return "u8";
    case DT_i64: return "i64";
    case DT_f64: return "f64";
    default: return t < DT_i64 ? "i32" : "f32";
  }
}

const char *nc_text_type(DType t) {
  switch (t) {
    case DT_i64: return "int64_t";
    case DT_f16:
    case DT_bf16:
    case DT_f32: return "float";
    case DT_f64: return "double";
    default: return "int32_t";
  }
}

const char *nc_text_element(DType t) {
#define X(id, name, storage, category) #storage,
  static const char *const names[DT_COUNT] = { DTYPES(X) };
#undef X
  return names[t];
}

static int size_of(DType t) {
#define X(id, name, storage, category) (int)sizeof(storage),
  static const int size[DT_COUNT] = { DTYPES(X) };
#undef X
  return size[t];
}

/* Is an element stored in fewer bits than it is computed in? */
static int is_narrow(DType t) {
  return size_of(t) < 4;
}

/*
** Numbers
*/
/* Parameter v of an operation that computes in `type', as C. */
void nc_text_parameter(Writer *w, double v, DType type) {
  FusedText *t = w->t;
  int i = 0;
  if (v == rint(v) && fabs(v) <= 1000) {
    nc_text_add(t, "(%s)%d", nc_text_type(type), (int)v);
    return;
  }
  while (i < t->nmore &&
         (memcmp(&t->more[i].v, &v, sizeof v) != 0 || t->more[i].type != type))
    i++;
  if (i == t->nmore) {
    FusedNumber *more = realloc(t->more, (size_t)(i + 1) * sizeof *more);
    if (more == NULL) {
      t->failed = 1;
      return;
    }
    t->more = more;
    t->more[t->nmore++] = (FusedNumber){ v, type };
  }
  nc_text_add(t, "number<%s>(a, %d)", nc_text_type(type),
              w->code->nnumbers + 2 * t->draws + i);
}

/*
** Steps
*/
/* Has the register one value for all elements of a thread? */
static int is_single(const Writer *w, int r) {
  const FusedReg *g = &w->code->reg[r];
  return g->kind == FUSED_NUMBER || (w->lines && g->of_lines);
}

static void add_register(Writer *w, int r) {
  nc_text_add(w->t, w->lines && !is_single(w, r) ? "r%d[e]" : "r%d", r);
}

/* Is operand j of the step a condition? */
static int is_condition(const Writer *w, const FusedStep *s, int j) {
  return w->op[s->op].kind == CHOOSE_OP && j == (s->grad_index ? 1 : 0);
}

/* Operand j of a step, in the type that it computes in. */
void nc_text_operand(Writer *w, const FusedStep *s, int j) {
  const FusedReg *g = &w->code->reg[s->src[j]];
  if (is_condition(w, s, j)) {
    nc_text_add(w->t, "(uint8_t)(");
    add_register(w, s->src[j]);
    nc_text_add(w->t, " != 0)");
  } else if (g->type == s->common) {
    add_register(w, s->src[j]);
  } else {
    nc_text_add(w->t, "to<%s>(", nc_text_element(s->common));
    add_register(w, s->src[j]);
    nc_text_add(w->t, ")");
  }
}

static void add_parameters(Writer *w, const FusedStep *s) {
  for (int i = 0; i < 2; i++) {
    nc_text_add(w->t, ", ");
    nc_text_parameter(w, s->par[i], s->common);
  }
}

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

/* Does the formula contain the letter as a word?  x stands for a.  As
   nc_formula_letters of the core says it. */
static int names_letter(const char *text, char letter) {
  while (*text) {
    int n = 0;
    while (is_letter(text[n])) n++;
    if (n == 1 && (*text == letter || (letter == 'a' && *text == 'x')))
      return 1;
    text += n ? n : 1;
  }
  return 0;
}

/* The call of a gradient: of g and the letters of its formula that are there;
   its function also takes the others.  That of a reduction takes n and p, which
   are q and p elsewhere. */
static void add_gradient(Writer *w, const FusedStep *s) {
  static const char letters[] = "abcy";
  const OpInfo *info = &w->op[s->op];
  const char *text = info->grad[s->grad_index - 1];
  const int inputs = info->kind == BINARY_OP    ? 2
                     : info->kind == TERNARY_OP ? 3
                                                : 1;
  int j = 1;
  nc_text_add(w->t, "%s_d%d_%s(", info->name, s->grad_index - 1,
              nc_text_suffix(s->common));
  nc_text_operand(w, s, 0);
  for (int l = 0; l < 4; l++) {
    const int used = j < s->nsrc && names_letter(text, letters[l]);
    const int taken = letters[l] == 'y' ? info->kind != CHOOSE_OP : l < inputs;
    if (taken) nc_text_add(w->t, ", ");
    if (taken && used) nc_text_operand(w, s, j);
    else if (taken) nc_text_add(w->t, "0");
    j += used;
  }
  if (info->kind == REDUCE_OP) {
    nc_text_add(w->t, ", ");
    nc_text_parameter(w, s->par[1], s->common);
    nc_text_add(w->t, ", ");
    nc_text_parameter(w, s->par[0], s->common);
  } else if (info->kind != CHOOSE_OP) add_parameters(w, s);
  nc_text_add(w->t, ")");
}

static void add_call(Writer *w, const FusedStep *s) {
  if (s->grad_index) {
    add_gradient(w, s);
    return;
  }
  nc_text_add(w->t, "%s_%s(", w->op[s->op].name, nc_text_suffix(s->common));
  for (int j = 0; j < s->nsrc; j++) {
    if (j) nc_text_add(w->t, ", ");
    nc_text_operand(w, s, j);
  }
  if (w->op[s->op].kind != CHOOSE_OP) add_parameters(w, s);
  nc_text_add(w->t, ")");
}

int nc_text_is_draw(const FusedStep *s) {
  return s->along == FUSED_RAND || s->along == FUSED_RANDN;
}

/* A random number; by its place, row by row. */
static void add_draw(Writer *w, const FusedStep *s) {
  const int bits = s->type == DT_f16 ? 11 : s->type == DT_bf16 ? 8 : 24;
  nc_text_add(w->t, "%s_%s(a, %d, a.at.first + ",
              s->along == FUSED_RAND ? "rand" : "randn",
              nc_text_suffix(s->type), w->code->nnumbers + 2 * (int)s->par[0]);
  if (w->lines)
    nc_text_add(w->t, "(uint64_t)line * %du + (t + e / W * T) * W + e %% W",
                w->code->line);
  else nc_text_add(w->t, "(uint64_t)i * W + e");
  nc_text_add(w->t, ", %d)", bits);
}

/* The value of a step, as an expression. */
void nc_text_value(Writer *w, const FusedStep *s) {
  const OpKind kind = w->op[s->op].kind;
  const int truth = !s->grad_index && (kind == TEST_OP || kind == COMPARE_OP);
  if (s->spread) {
    add_register(w, s->src[0]);
    return;
  }
  if (nc_text_is_draw(s)) {
    add_draw(w, s);
    return;
  }
  if (truth) {
    add_call(w, s);
    nc_text_add(w->t, " != 0");
    return;
  }
  if (s->type != s->common || is_narrow(s->type))
    nc_text_add(w->t, "to<%s>(", nc_text_element(s->type));
  add_call(w, s);
  if (s->type != s->common || is_narrow(s->type)) nc_text_add(w->t, ")");
}

/*
** What kernels have in common
*/
/* The functions of the operations, for the types that steps compute in. */
static void add_functions(Writer *w) {
  static const struct {
    const char *name, *number, *element;
    int is_float;
  } types[] = { { "u8", "int32_t", "uint8_t", 0 },
                { "i32", "int32_t", "int32_t", 0 },
                { "i64", "int64_t", "int64_t", 0 },
                { "f32", "float", "float", 1 },
                { "f64", "double", "double", 1 } };
  nc_text_add(w->t, "#include \"core/pointwise/op_classes.h\"\n"
                    "#define NC_PASTE_(a, b) a##_##b\n"
                    "#define NC_PASTE(a, b) NC_PASTE_(a, b)\n"
                    "#define NAME(f) NC_PASTE(f, TYPE)\n");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    int used = 0;
    for (int k = 0; k < w->code->nsteps; k++)
      used |=
          strcmp(nc_text_suffix(w->code->step[k].common), types[i].name) == 0;
    if (!used) continue;
    nc_text_add(w->t,
                "#define INTS(...)%s\n#define FLTS(...)%s\n"
                "#define TYPE %s\n#define T %s\n#define S %s\n"
                "#include \"core/pointwise/op_functions.inc\"\n"
                "#undef INTS\n#undef FLTS\n#undef TYPE\n#undef T\n#undef S\n",
                types[i].is_float ? "" : " __VA_ARGS__",
                types[i].is_float ? " __VA_ARGS__" : "", types[i].name,
                types[i].number, types[i].element);
  }
}

/* The register of result k. */
int nc_text_result(const FusedCode *code, int k) {
  int r = 0;
  while (code->reg[r].result != k) r++;
  return r;
}

int nc_text_of_operand(const FusedCode *code, int i) {
  int r = 0;
  while (code->reg[r].kind != FUSED_OPERAND || code->reg[r].index != i) r++;
  return r;
}

/* The parameters: pointers to all tensors.  Where results overwrite operands
   none is restricted: an operand may be read after a result was written. */
void nc_text_pointers(Writer *w, int kernel) {
  const FusedCode *code = w->code;
  const char *mark = kernel && !code->writes ? "__restrict__ " : "";
  for (int i = 0; i < code->noperands; i++)
    nc_text_add(w->t, "const %s *%sx%d, ",
                nc_text_element(code->reg[nc_text_of_operand(code, i)].type),
                mark, i);
  for (int i = 0; i < code->nresults; i++)
    nc_text_add(w->t, "%s *%sy%d, ",
                nc_text_element(code->reg[nc_text_result(code, i)].type), mark,
                i);
  nc_text_add(w->t, kernel ? "const FusedArgs a" : "const FusedArgs &a");
}

void nc_text_arguments(Writer *w) {
  for (int i = 0; i < w->code->noperands; i++) nc_text_add(w->t, "x%d, ", i);
  for (int i = 0; i < w->code->nresults; i++) nc_text_add(w->t, "y%d, ", i);
  nc_text_add(w->t, "a");
}

void nc_text_numbers(Writer *w) {
  for (int r = 0; r < w->code->nregs; r++) {
    const FusedReg *g = &w->code->reg[r];
    if (g->kind == FUSED_NUMBER)
      nc_text_add(w->t, "  const %s r%d = number<%s>(a, %d);\n",
                  nc_text_type(g->type), r, nc_text_type(g->type), g->index);
  }
}

/*
** Kernels of elements
*/
static void add_elements(Writer *w) {
  const FusedCode *code = w->code;
  nc_text_add(w->t, "template <int W> NC_DEVICE void fused(");
  nc_text_pointers(w, 0);
  nc_text_add(w->t, ", uint32_t i) {\n  const Place at(a, i);\n");
  nc_text_numbers(w);
  for (int i = 0; i < code->noperands; i++)
    nc_text_add(w->t, "  %s v%d[W];\n  load_tensor<W>(v%d, x%d, a, %d, at);\n",
                nc_text_type(code->reg[nc_text_of_operand(code, i)].type), i, i,
                i, i);
  for (int i = 0; i < code->nresults; i++)
    nc_text_add(w->t, "  %s z%d[W];\n",
                nc_text_type(code->reg[nc_text_result(code, i)].type), i);
  nc_text_add(w->t, "  NC_UNROLL for (int e = 0; e < W; e++) {\n");
  for (int i = 0; i < code->noperands; i++) {
    const int r = nc_text_of_operand(code, i);
    nc_text_add(w->t, "    const %s r%d = v%d[e];\n",
                nc_text_type(code->reg[r].type), r, i);
  }
  for (int i = 0; i < code->nsteps; i++) {
    const FusedStep *s = &code->step[i];
    nc_text_add(w->t, "    const %s r%d = ", nc_text_type(s->type), s->dst);
    nc_text_value(w, s);
    nc_text_add(w->t, ";\n");
  }
  for (int i = 0; i < code->nresults; i++)
    nc_text_add(w->t, "    z%d[e] = r%d;\n", i, nc_text_result(code, i));
  nc_text_add(w->t, "  }\n");
  for (int i = 0; i < code->nresults; i++)
    nc_text_add(w->t, "  store_tensor<W>(y%d, a, %d, at, z%d);\n", i,
                code->noperands + i, i);
  nc_text_add(w->t, "}\n");
}

void nc_text_begin(Writer *w, const char *name) {
  nc_text_add(w->t, "extern \"C\" __global__ void __launch_bounds__(%d) %s(",
              NC_FUSED_BLOCK, name);
  nc_text_pointers(w, 1);
  nc_text_add(w->t, ") {\n");
}

static void add_element_kernel(Writer *w, const char *name, int width) {
  nc_text_begin(w, name);
  nc_text_add(w->t,
              "  const uint32_t all = gridDim.x * %du;\n"
              "  const uint32_t start = blockIdx.x * %du + threadIdx.x;\n"
              "  for (uint32_t i = start; i < a.at.n; i += all) fused<%d>(",
              NC_FUSED_BLOCK, NC_FUSED_BLOCK, width);
  nc_text_arguments(w);
  nc_text_add(w->t, ", i);\n");
  if (width > 1) {
    nc_text_add(w->t, "  if (start < a.at.tail) fused<1>(");
    nc_text_arguments(w);
    nc_text_add(w->t, ", a.at.n * %du + start);\n", width);
  }
  nc_text_add(w->t, "}\n");
}

/*
** The text
*/
/* Elements in a vector: 16 bytes of the widest tensor, but at least 4. */
static int vector_width(const FusedCode *code) {
  int size = 2;
  for (int r = 0; r < code->nregs; r++) {
    const FusedReg *g = &code->reg[r];
    if ((g->kind == FUSED_OPERAND || g->result >= 0) && size_of(g->type) > size)
      size = size_of(g->type);
  }
  return size == 8 ? 4 : 16 / size;
}

static void write_text(Writer *w) {
  FusedText *t = w->t;
  add_functions(w);
  if (w->code->line) {
    w->lines = 1;
    nc_text_lines(w);
    return;
  }
  t->width = vector_width(w->code);
  add_elements(w);
  add_element_kernel(w, NC_FUSED_VECTORS, t->width);
  add_element_kernel(w, NC_FUSED_ELEMENTS, 1);
}

static int draws_doubles(const FusedCode *code) {
  int yes = 0;
  for (int i = 0; i < code->nsteps; i++)
    yes |= nc_text_is_draw(&code->step[i]) && code->step[i].type == DT_f64;
  return yes;
}

static int has_along(const FusedCode *code) {
  int yes = 0;
  for (int i = 0; i < code->nsteps; i++)
    yes |= code->step[i].along && !nc_text_is_draw(&code->step[i]);
  return yes;
}

/* How many draws a code may have: one more than the last that is left. */
static int count_draws(const FusedCode *code) {
  int n = 0;
  for (int i = 0; i < code->nsteps; i++)
    if (nc_text_is_draw(&code->step[i]) && code->step[i].par[0] >= n)
      n = (int)code->step[i].par[0] + 1;
  return n;
}

/* The definitions before the rest depend on it, so they are written last. */
static void put_head(FusedText *t, const FusedCode *code) {
  char head[256];
  const int n = snprintf(head, sizeof head,
                         "#define TENSORS %d\n#define NUMBERS %d\n%s"
                         "#include \"cuda/fusion/fused_%s.h\"\n",
                         code->noperands + code->nresults,
                         t->numbers > 0 ? t->numbers : 1,
                         t->draws == 0         ? ""
                         : draws_doubles(code) ? "#define DRAWS 2\n"
                                               : "#define DRAWS 1\n",
                         has_along(code) ? "lines" : "kernel");
  nc_text_add(t, "%s", head); /* makes room */
  if (t->failed) return;
  memmove(t->text + n, t->text, (size_t)(t->size - n));
  memcpy(t->text, head, (size_t)n);
}

int nc_fused_text(FusedText *t, const FusedCode *code, const OpInfo *op) {
  Writer w = { .t = t, .code = code, .op = op };
  memset(t, 0, sizeof *t);
  t->draws = count_draws(code);
  write_text(&w);
  t->numbers = code->nnumbers + 2 * t->draws + t->nmore;
  put_head(t, code);
  return t->failed ? NC_ENOMEM : NC_OK;
}

void nc_fused_text_free(FusedText *t) {
  free(t->text);
  free(t->more);
  memset(t, 0, sizeof *t);
}
