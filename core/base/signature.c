/* SPDX-License-Identifier: MIT */
/*
** signature.c - parses the signatures of operations.
**
** One text for each operation, in the tables of the core, defines its
** parameters by position and by name; argument errors, help and completion are
** derived from it. A parsed signature of an operation of the core is cached for
** the process.
*/

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/binding.h"

static const struct {
  const char *name;
  ParamType type;
} types[] = {
  { "tensor", P_TENSOR },
  { "inplace", P_TENSOR },
  { "operand", P_OPERAND },
  { "tensors", P_TENSORS },
  { "dim", P_DIM },
  { "dims", P_DIMS },
  { "dimortensor", P_DIMORTENSOR },
  { "size", P_SIZE },
  { "ints", P_INTS },
  { "index", P_INDEX },
  { "int", P_INT },
  { "num", P_NUM },
  { "bool", P_BOOL },
  { "dtype", P_DTYPE },
  { "device", P_DEVICE },
  { "text", P_TEXT },
  { "any", P_ANY },
  { "fn", P_ANY },
  { "table", P_ANY },
  { "several", P_ANY },
  { "gradients", P_ANY },
  { "generator", P_GENERATOR },
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
    size_t len = word(choices, "|=,");
    if (len == n && memcmp(choices, s, n) == 0) return i;
    if (choices[len] != '|') return -1;
    choices += len + 1;
  }
}

/* Sets the type of a parameter from its type name. */
static void settype(Signature *s, Param *p, const char *text, size_t n) {
  if (memchr(text, '|', n)) {
    p->type = P_CHOICE;
    p->choices = text;
    return;
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) == n && memcmp(types[i].name, text, n) == 0)
      p->type = types[i].type;
  if (n == 7 && memcmp(text, "inplace", 7) == 0) s->inplace = 1;
}

/* Sets the default of a parameter from its text. */
static void setfallback(Param *p, const char *text, size_t n) {
  Arg *a = &p->fallback;
  char *end;
  p->optional = 1;
  if (n == 3 && memcmp(text, "nil", 3) == 0) return;
  if (p->type == P_BOOL) a->s = (Scalar){ NC_BOOL, text[0] == 't', 0 };
  else if (p->type == P_CHOICE) {
    a->s = nc_int(choice(p->choices, text, n));
    a->n = 1;
  } else {
    long long i = strtoll(text, &end, 10);
    a->s = end == text + n ? nc_int(i) : nc_float(strtod(text, NULL));
    p->one = i;
    a->n = 1;
  }
}

/* Parses one parameter, name[!][:type[!]][=default], and returns the rest of
   the text. Without a type, a parameter with a default is a boolean or a
   number. */
static const char *param(Signature *s, const char *text, int byname) {
  Param *p = &s->param[s->n];
  size_t n = word(text, "!:=,-");
  while (n && text[n - 1] == ' ') n--;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%.*s", (int)n, text);
  p->fallback.dtype = DT_NONE;
  p->byname = byname;
  text += n;
  if (*text == '!') text++; /* "!" marks a parameter for autograd */
  if (*text == ':') {
    n = word(text + 1, "!=, ");
    settype(s, p, text + 1, n);
    text += 1 + n;
    if (*text == '!') text++;
  } else if (*text == '=')
    p->type = text[1] == 't' || text[1] == 'f' ? P_BOOL : P_NUM;
  if (*text == '=') {
    n = word(text + 1, ", ");
    setfallback(p, text + 1, n);
    text += 1 + n;
  }
  s->n++;
  if (!byname) s->positional++;
  return text;
}

void nl_parsesignature(Signature *s, const char *name, const char *text) {
  int byname = 0;
  s->name = name;
  s->n = s->positional = s->inplace = 0;
  s->results = "";
  s->boxes = 1;
  for (text = skip(text); *text; text = skip(text)) {
    if (text[0] == '-' && text[1] == '>') {
      s->results = text + 3;
      for (text = s->results; *text; text++) s->boxes += *text == ',';
      return;
    }
    if (*text == '*') byname = 1, text++;
    else if (s->n < NL_MAXPARAM) text = param(s, text, byname);
    else return;
  }
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

const Signature *nl_pointwise_signature(Op op) {
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
  nl_parsesignature(s, info->name, texts[op]);
  for (int i = 0; i < nc_arity(op); i++) /* operands may be numbers */
    s->param[i].type = nc_arity(op) > 1 ? P_OPERAND : P_TENSOR;
  s->inplace = info->kind != REDUCE_OP && info->kind != CHOOSE_OP;
  return s;
}

const Signature *nl_operator_signature(Operator f) {
  static Signature signatures[OPERATOR_COUNT];
  Signature *s = &signatures[f];
  if (s->name == NULL)
    nl_parsesignature(s, nc_operators[f].name, nc_operators[f].signature);
  return s;
}

/* Each element is {name=, type=}, with the type names of operators.def. */
void nl_pushparams(lua_State *L, const Signature *s) {
  lua_createtable(L, s->n, 0);
  for (int i = 0; i < s->n; i++) {
    size_t t = 0;
    while (t + 1 < sizeof types / sizeof *types &&
           types[t].type != s->param[i].type)
      t++;
    lua_createtable(L, 0, 2);
    lua_pushstring(L, s->param[i].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, s->param[i].type == P_CHOICE ? "text" : types[t].name);
    lua_setfield(L, -2, "type");
    lua_rawseti(L, -2, i + 1);
  }
}

/* Appends the default of p, as Lua writes it. */
static void adddefault(luaL_Buffer *b, const Param *p) {
  const Arg *a = &p->fallback;
  char text[32];
  if (p->type == P_CHOICE && a->n) {
    const char *c = p->choices;
    for (int64_t i = 0; i < a->s.i; i++) c += word(c, "|=,") + 1;
    luaL_addchar(b, '"');
    luaL_addlstring(b, c, word(c, "|=,"));
    luaL_addchar(b, '"');
    return;
  }
  if (p->type == P_BOOL) luaL_addstring(b, a->s.i ? "true" : "false");
  else if (a->n == 0) luaL_addstring(b, "nil");
  else {
    if (a->s.kind == NC_FLOAT) snprintf(text, sizeof text, "%g", a->s.f);
    else snprintf(text, sizeof text, "%lld", (long long)a->s.i);
    luaL_addstring(b, text);
  }
}

void nl_pushsignature(lua_State *L, const Signature *s) {
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, s->name);
  luaL_addchar(&b, '(');
  for (int i = 0; i < s->n; i++) {
    const Param *p = &s->param[i];
    if (i) luaL_addstring(&b, ", ");
    if (p->byname && (i == 0 || !s->param[i - 1].byname))
      luaL_addstring(&b, "*, ");
    luaL_addstring(&b, p->name);
    if (p->type == P_SIZE) luaL_addstring(&b, "...");
    if (p->optional) {
      luaL_addchar(&b, '=');
      adddefault(&b, p);
    }
  }
  if (nl_creates(s))
    luaL_addstring(&b, ", requires_grad=false, pin_memory=false");
  luaL_addchar(&b, ')');
  if (s->results[0]) {
    luaL_addstring(&b, " -> ");
    for (const char *c = s->results; *c; c++)
      if (*c != '!') luaL_addchar(&b, *c);
  }
  luaL_pushresult(&b);
}
