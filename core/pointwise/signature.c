/* SPDX-License-Identifier: MIT */
/*
** signature.c - parses the signatures of operations (signature.h).
**
** One text for each operation defines its parameters by position and by name;
** argument errors, help and completion are derived from it. A parsed signature
** of an operation of the core is cached for the process.
*/

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/signature.h"
#include "core/operators.h"
#include "core/ops.h"

/* The types by their names, with the noun for messages. */
static const struct {
  const char *name;
  ParamType type;
  const char *noun;
} types[] = {
  { "tensor", P_TENSOR, "a tensor" },
  { "inplace", P_TENSOR, "a tensor" },
  { "operand", P_OPERAND, "a tensor or a number" },
  { "tensors", P_TENSORS, "a list of tensors" },
  { "dim", P_DIM, "a dimension" },
  { "dims", P_DIMS, "a dimension or a list of them" },
  { "dimortensor", P_DIMORTENSOR, "a dimension or a tensor" },
  { "size", P_SIZE, "an integer or a list of them" },
  { "ints", P_INTS, "an integer or a list of them" },
  { "index", P_INDEX, "an index" },
  { "int", P_INT, "an integer" },
  { "num", P_NUM, "a number" },
  { "bool", P_BOOL, "true or false" },
  { "dtype", P_DTYPE, "a dtype" },
  { "device", P_DEVICE, "the name of a device" },
  { "text", P_TEXT, "a string" },
  { "file", P_TEXT, "the name of a file" },
  { "any", P_ANY, "a value" },
  { "generator", P_GENERATOR, "a generator" },
  { "target", P_TARGET, "a dtype, a device or a tensor" },
  { "stream", P_OBJECT, "a stream" },
  { "event", P_OBJECT, "an event" },
  { "work", P_OBJECT, "a work" },
  { "fn", P_FUNCTION, "a function" },
  { "table", P_TABLE, "a table" },
  { "module", P_MODULE, "a module" },
  { "optimizer", P_OPTIMIZER, "an optimizer" },
  { "nums", P_NUMS, "a number or a list of them" },
  { "functions", P_FUNCTIONS, "a function or a list of them" },
  { "several", P_SEVERAL, "a tensor or a list of tensors" },
  { "parameters", P_PARAMETERS, "a module, a tensor or a list of tensors" },
  { "lengths", P_LENGTHS, "a vector or a list of integers" },
  { "gradients", P_GRADIENTS,
    "a tensor, or a list of tensors with false for none" },
};

static const char *skip(const char *s) {
  while (*s == ' ' || *s == ',') s++;
  return s;
}

static size_t word(const char *s, const char *until) {
  return strcspn(s, until);
}

/* The position of a word in "none|tanh", or -1. */
static int choice(const char *choices, const char *s, size_t n) {
  for (int i = 0;; i++) {
    size_t len = word(choices, "|=, ");
    if (len == n && memcmp(choices, s, n) == 0) return i;
    if (choices[len] != '|') return -1;
    choices += len + 1;
  }
}

static int equals(const char *text, size_t n, const char *name) {
  return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* Sets a type by its name; returns 0 if none has that name. */
static int setnamed(Param *p, const char *text, size_t n) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (equals(text, n, types[i].name)) {
      p->type = types[i].type;
      p->noun = types[i].noun;
      snprintf(p->type_name, sizeof p->type_name, "%s", types[i].name);
      return 1;
    }
  return 0;
}

/* Sets the type of a parameter from its type name. One that is not known is
   any value: the shell has signatures with types of its own. */
static void settype(Param *p, const char *text, size_t n) {
  const char *bar = memchr(text, '|', n);
  const size_t first = bar ? (size_t)(bar - text) : n;
  if (setnamed(p, text, first)) {
    p->choices = bar ? bar + 1 : NULL;
  } else if (bar) {
    setnamed(p, "text", 4);
    p->type = P_CHOICE;
    p->choices = text;
  } else {
    setnamed(p, "any", 3);
    snprintf(p->type_name, sizeof p->type_name, "%.*s", (int)n, text);
  }
}

/* Sets the default of a parameter from its text. */
static void setfallback(Param *p, const char *text, size_t n) {
  Arg *a = &p->fallback;
  char *end;
  p->optional = 1;
  p->written = text;
  p->nwritten = (int)n;
  if (equals(text, n, "nil")) return;
  a->n = p->type != P_BOOL;
  if (equals(text, n, "true") || equals(text, n, "false"))
    a->s = (Scalar){ NC_BOOL, { text[0] == 't' }, 0, 0 };
  else if (isalpha((unsigned char)text[0])) {
    p->quoted = 1;
    if (p->choices) a->s = nc_int(choice(p->choices, text, n));
  } else {
    long long i = strtoll(text, &end, 10);
    a->s = end == text + n ? nc_int(i) : nc_float(nc_todouble(text, NULL));
    p->one = i;
  }
}

/* Skips the mark "!" of the parameter being parsed. */
static const char *saved(Signature *s, const char *text) {
  if (*text != '!') return text;
  s->saved_args |= 1u << s->n;
  return text + 1;
}

/* Parses one parameter, name[!][:type[!]][=default], and returns the rest of
   the text. Without a type, a parameter with a default is a boolean or a
   number. "!" marks a parameter whose value the gradient needs. */
static const char *param(Signature *s, const char *text, int byname) {
  Param *p = &s->param[s->n];
  size_t n = word(text, "!:=,-");
  const char *rest = text + n;
  while (n && text[n - 1] == ' ') n--;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%.*s", (int)n, text);
  p->fallback.dtype = DT_NONE;
  p->byname = byname;
  setnamed(p, "tensor", 6);
  text = saved(s, rest);
  if (*text == ':') {
    n = word(text + 1, "!=, ");
    settype(p, text + 1, n);
    text = saved(s, text + 1 + n);
  } else if (*text == '=') {
    if (text[1] == 't' || text[1] == 'f') setnamed(p, "bool", 4);
    else setnamed(p, "num", 3);
  }
  if (*text == '=') {
    n = word(text + 1, ", ");
    setfallback(p, text + 1, n);
    text += 1 + n;
  }
  s->n++;
  if (!byname) s->positional++;
  return text;
}

/* Parses what follows "-> ". */
static void results(Signature *s, const char *text) {
  s->results = text;
  for (; *text; text++) {
    if (*text == '!') s->saved_results |= 1u << (s->nresults - 1);
    s->nresults += *text == ',';
  }
}

void nc_set_defaults(Arg *arg, const Signature *s) {
  for (int i = 0; i < s->n; i++) {
    arg[i] = s->param[i].fallback;
    arg[i].list = &s->param[i].one;
  }
  if (s->n >= NC_MAXARG) return;
  memset(arg + s->n, 0, (size_t)(NC_MAXARG - s->n) * sizeof *arg);
  for (int i = s->n; i < NC_MAXARG; i++) arg[i].dtype = DT_NONE;
}

const char *nc_param_noun(const Param *p, char text[NC_NOUN]) {
  if (p->type != P_CHOICE) return p->noun;
  snprintf(text, NC_NOUN, "one of %.*s", (int)word(p->choices, "=, "),
           p->choices);
  return text;
}

int nc_find_choice(const Param *p, const char *word) {
  return choice(p->choices, word, strlen(word));
}

int nc_findparam(const Signature *s, const char *name) {
  for (int i = 0; i < s->n; i++)
    if (strcmp(s->param[i].name, name) == 0) return i;
  return -1;
}

/* Adds the parameters that everything that creates tensors has. A conversion,
   which has a parameter `copy', does not. */
static void addcreation(Signature *s) {
  const int device = nc_findparam(s, "device");
  s->creates = nc_findparam(s, "dtype") >= 0 && device >= 0 &&
               s->param[device].type == P_DEVICE && nc_findparam(s, "copy") < 0;
  if (!s->creates) return;
  param(s, "requires_grad=false", 1);
  param(s, "pin_memory=false", 1);
}

void nc_parse_signature(Signature *s, const char *name, const char *text) {
  int byname = 0;
  s->name = name;
  s->n = s->positional = s->no_out = 0;
  s->saved_args = s->saved_results = 0;
  s->results = "";
  s->nresults = 1;
  for (text = skip(text); *text; text = skip(text)) {
    if (text[0] == '-' && text[1] == '>') {
      results(s, text + 3);
      break;
    }
    if (*text == '*') byname = 1, text++;
    else if (s->n < NC_MAXPARAM) text = param(s, text, byname);
    else break;
  }
  addcreation(s);
  s->method = s->n > 0 && strcmp(s->param[0].name, "self") == 0;
  s->inplace = s->n > 0 && strcmp(s->param[0].type_name, "inplace") == 0;
  if (s->inplace) setnamed(&s->param[0], "tensor", 6);
}

/* The parameters that precede those in ops.def for operations of this kind. */
static const char *usual(OpKind kind) {
  switch (kind) {
    case BINARY_OP:
    case COMPARE_OP: return "self, other, ";
    case REDUCE_OP:
      return "self, dim:dims=nil, keepdim=false, *, dtype:dtype=nil, ";
    default: return "self, ";
  }
}

const Signature *nc_pointwise_signature(Op op) {
  static Signature signatures[OP_COUNT];
  static char texts[OP_COUNT][128];
  Signature *s = &signatures[op];
  const OpInfo *info = &nc_opinfo[op];
  int full;
  if (s->name) return s;
  full = strncmp(info->signature, "self", 4) == 0 ||
         strncmp(info->signature, "condition", 9) == 0;
  snprintf(texts[op], sizeof texts[op], "%s%s -> tensor",
           full ? "" : usual(info->kind), info->signature);
  nc_parse_signature(s, info->name, texts[op]);
  for (int i = 0; i < nc_arity(op); i++) /* operands may be numbers */
    settype(&s->param[i], nc_arity(op) > 1 ? "operand" : "tensor",
            nc_arity(op) > 1 ? 7 : 6);
  s->inplace = info->kind != REDUCE_OP && info->kind != CHOOSE_OP;
  return s;
}

const Signature *nc_operator_signature(Operator f) {
  static Signature signatures[OPERATOR_COUNT];
  Signature *s = &signatures[f];
  if (s->name == NULL)
    nc_parse_signature(s, nc_operators[f].name, nc_operators[f].signature);
  return s;
}
