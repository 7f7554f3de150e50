/* SPDX-License-Identifier: MIT */
/*
** fused_line_text.c - the part of the text of a fused kernel with reductions of
** lines, or operators along them: some threads of a block compute a line.
*/
#include "cuda/fusion/fused_writer.h"

static int is_fold(const Writer *w, const FusedStep *s) {
  return w->op[s->op].kind == REDUCE_OP && s->grad_index == 0;
}

/* A reduction of the elements of a line. */
static void add_fold(Writer *w, const FusedStep *s) {
  const char *name = w->op[s->op].name, *c = nc_text_suffix(s->common);
  nc_text_add(w->t, "  %s r%d;\n  {\n    %s s = %s_init_%s(",
              nc_text_type(s->type), s->dst, nc_text_type(s->common), name, c);
  nc_text_parameter(w, s->par[0], s->common);
  nc_text_add(w->t,
              ");\n    NC_UNROLL for (int e = 0; e < W * K; e++)\n"
              "      if (in[e / W]) s = %s_fold_%s(s, %s_map_%s(",
              name, c, name, c);
  nc_text_operand(w, s, 0);
  nc_text_add(w->t, ", ");
  nc_text_parameter(w, s->par[0], s->common);
  nc_text_add(w->t,
              "));\n    s = fold_line<T, L, %s, %s_fold_%s>(s);\n"
              "    r%d = to<%s>(%s_%s(s, (%s)%d, ",
              nc_text_type(s->common), name, c, s->dst,
              nc_text_element(s->type), name, c, nc_text_type(s->common),
              w->code->line);
  nc_text_parameter(w, s->par[0], s->common);
  nc_text_add(w->t, "));\n  }\n");
}

/* The functions of fused_lines.h; those of an element for each line give it. */
static const char *along_function(const FusedStep *s) {
  static const char *const names[][2] = {
    [FUSED_SOFTMAX] = { "softmax", "softmax_grad" },
    [FUSED_LOG_SOFTMAX] = { "log_softmax", "log_softmax_grad" },
    [FUSED_NORM] = { "norm", NULL },
    [FUSED_VAR] = { "var", NULL },
    [FUSED_STD] = { "var", NULL },
    [FUSED_LOGSUMEXP] = { "logsumexp", NULL },
    [FUSED_MAX] = { "extreme", "extreme_grad" },
    [FUSED_MIN] = { "extreme", "extreme_grad" }
  };
  return names[s->along][s->grad_index != 0];
}

/* An operator along lines. */
static void add_along(Writer *w, const FusedStep *s) {
  FusedText *t = w->t;
  const char *type = nc_text_type(s->type);
  const int single = w->code->reg[s->dst].of_lines;
  if (single)
    nc_text_add(t, "  const %s r%d = %s", type, s->dst,
                s->along == FUSED_STD ? "root_of(" : "");
  else nc_text_add(t, "  %s r%d[W * K];\n  ", type, s->dst);
  nc_text_add(t, "%s_line<W, T, K, L%s>(", along_function(s),
              s->along == FUSED_MAX   ? ", false"
              : s->along == FUSED_MIN ? ", true"
                                      : "");
  if (!single) nc_text_add(t, "r%d, ", s->dst);
  for (int j = 0; j < (s->grad_index ? 2 : 1); j++)
    nc_text_add(t, "r%d, ", s->src[j]);
  nc_text_add(t, "in");
  if (s->along == FUSED_NORM || s->along == FUSED_VAR ||
      s->along == FUSED_STD) {
    nc_text_add(t, ", %d, ", w->code->line);
    nc_text_parameter(w, s->par[0], s->type);
  }
  if (s->along == FUSED_NORM)
    nc_text_add(t, ", %s", s->par[1] != 0 ? "true" : "false");
  nc_text_add(t, s->along == FUSED_STD ? "));\n" : ");\n");
  if (s->nsrc < 2 || s->grad_index) return;
  nc_text_add(t,
              "  NC_UNROLL for (int e = 0; e < W * K; e++)\n"
              "    r%d[e] = r%d[e] * r%d[e]",
              s->dst, s->dst, s->src[1]);
  if (s->nsrc > 2) nc_text_add(t, " + r%d[e]", s->src[2]);
  nc_text_add(t, ";\n");
}

static void add_line_step(Writer *w, const FusedStep *s) {
  if (is_fold(w, s)) {
    add_fold(w, s);
    return;
  }
  if (s->along && !nc_text_is_draw(s)) {
    add_along(w, s);
    return;
  }
  if (w->code->reg[s->dst].of_lines)
    nc_text_add(w->t, "  const %s r%d = ", nc_text_type(s->type), s->dst);
  else
    nc_text_add(
        w->t,
        "  %s r%d[W * K];\n  NC_UNROLL for (int e = 0; e < W * K; e++) r%d[e] "
        "= ",
        nc_text_type(s->type), s->dst, s->dst);
  nc_text_value(w, s);
  nc_text_add(w->t, ";\n");
}

static void add_line_loads(Writer *w) {
  const FusedCode *code = w->code;
  nc_text_add(w->t, "  bool in[K];\n");
  for (int i = 0; i < code->noperands; i++) {
    const int r = nc_text_of_operand(code, i);
    if (code->reg[r].of_lines)
      nc_text_add(
          w->t,
          "  const %s r%d = on ? load_element(x%d[a.at.still >> %d & 1 ? 0 : "
          "line]) : 0;\n",
          nc_text_type(code->reg[r].type), r, i, i);
    else
      nc_text_add(w->t, "  %s r%d[W * K];\n", nc_text_type(code->reg[r].type),
                  r);
  }
  nc_text_add(w->t,
              "  NC_UNROLL for (int k = 0; k < K; k++) {\n"
              "    in[k] = (t + k * T) * W < %du;\n"
              "    if (on && in[k]) {\n"
              "      const Place at(a, line * (%du / W) + t + k * T);\n",
              code->line, code->line);
  for (int i = 0; i < code->noperands; i++)
    if (!code->reg[nc_text_of_operand(code, i)].of_lines)
      nc_text_add(w->t, "      load_tensor<W>(r%d + k * W, x%d, a, %d, at);\n",
                  nc_text_of_operand(code, i), i, i);
  nc_text_add(w->t,
              "    } else {\n"
              "      NC_UNROLL for (int e = k * W; e < (k + 1) * W; e++) {\n");
  for (int i = 0; i < code->noperands; i++)
    if (!code->reg[nc_text_of_operand(code, i)].of_lines)
      nc_text_add(w->t, "        r%d[e] = 0;\n", nc_text_of_operand(code, i));
  nc_text_add(w->t, "      }\n    }\n    (void)in;\n  }\n");
}

static void add_line_stores(Writer *w) {
  const FusedCode *code = w->code;
  nc_text_add(w->t, "  if (!on) return;\n");
  for (int i = 0; i < code->nresults; i++) {
    const int r = nc_text_result(code, i);
    if (code->reg[r].of_lines)
      nc_text_add(w->t, "  if (t == 0) y%d[line] = store_element<%s>(r%d);\n",
                  i, nc_text_element(code->reg[r].type), r);
  }
  nc_text_add(w->t, "  NC_UNROLL for (int k = 0; k < K; k++) {\n"
                    "    if (!in[k]) break;\n");
  nc_text_add(w->t, "    const Place at(a, line * (%du / W) + t + k * T);\n",
              code->line);
  for (int i = 0; i < code->nresults; i++) {
    const int r = nc_text_result(code, i);
    if (!code->reg[r].of_lines)
      nc_text_add(w->t, "    store_tensor<W>(y%d, a, %d, at, r%d + k * W);\n",
                  i, code->noperands + i, r);
  }
  nc_text_add(w->t, "    (void)at;\n  }\n");
}

/* T threads compute a line, each of them K vectors; L lines are in a block. */
static void add_line(Writer *w) {
  nc_text_add(
      w->t, "template <int W, int T, int K, int L> NC_DEVICE void fused_line(");
  nc_text_pointers(w, 0);
  nc_text_add(
      w->t, ", uint32_t first) {\n"
            "  const uint32_t t = threadIdx.x % T, line = first + threadIdx.x "
            "/ T;\n  const bool on = line < a.at.n;\n");
  nc_text_numbers(w);
  add_line_loads(w);
  for (int i = 0; i < w->code->nsteps; i++) add_line_step(w, &w->code->step[i]);
  add_line_stores(w);
  nc_text_add(w->t, "}\n");
}

static void add_line_kernel(Writer *w, const char *name, const FusedLine *l) {
  nc_text_begin(w, name);
  nc_text_add(
      w->t,
      "  for (uint32_t i = blockIdx.x * %du; i < a.at.n; i += gridDim.x * %du)"
      "\n    fused_line<%d, %d, %d, %d>(",
      l->lines, l->lines, l->width, l->threads, l->each, l->lines);
  nc_text_arguments(w);
  nc_text_add(w->t, ", i);\n}\n");
}

/* At most 8 elements of a thread, or as few as a block allows. */
static FusedLine share_out(int line, int width) {
  FusedLine l = { width, 32, 1, 1 };
  while (l.threads < NC_FUSED_BLOCK && line > 8 * l.threads) l.threads *= 2;
  l.each = (line + l.threads * width - 1) / (l.threads * width);
  l.lines = NC_FUSED_BLOCK / l.threads;
  return l;
}

void nc_text_lines(Writer *w) {
  FusedText *t = w->t;
  t->width = w->code->line % 4 == 0 && w->code->line >= 128 ? 4 : 0;
  add_line(w);
  t->line[1] = share_out(w->code->line, 1);
  add_line_kernel(w, NC_FUSED_ELEMENTS, &t->line[1]);
  if (t->width == 0) return;
  t->line[0] = share_out(w->code->line, 4);
  add_line_kernel(w, NC_FUSED_VECTORS, &t->line[0]);
}
