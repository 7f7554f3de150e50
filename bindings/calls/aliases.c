/* SPDX-License-Identifier: MIT */
/*
** aliases.c - alternative names of operations, as PyTorch and NumPy have them.
**
** registry.c resolves every name here first, so an alias, with or without the
** "_" of an in-place form, needs no entry anywhere else.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"

static const struct {
  const char *name, *of;
} aliases[] = {
  { "absolute", "abs" },
  { "arccos", "acos" },
  { "arccosh", "acosh" },
  { "arcsin", "asin" },
  { "arcsinh", "asinh" },
  { "arctan", "atan" },
  { "arctan2", "atan2" },
  { "arctanh", "atanh" },
  { "bitwise_invert", "bitwise_not" },
  { "clip", "clamp" },
  { "divide", "div" },
  { "fix", "trunc" },
  { "greater", "gt" },
  { "greater_equal", "ge" },
  { "less", "lt" },
  { "less_equal", "le" },
  { "multiply", "mul" },
  { "negative", "neg" },
  { "nelement", "numel" },
  { "not_equal", "ne" },
  { "split_with_sizes", "split" },
  { "subtract", "sub" },
  { "trapz", "trapezoid" },
};
#define NALIASES ((int)(sizeof aliases / sizeof *aliases))

const char *nl_alias(int i) {
  return i < NALIASES ? aliases[i].name : NULL;
}

const char *nl_resolve_alias(const char *name, char own[NL_NAME]) {
  const size_t n = strlen(name), bare = n - (n && name[n - 1] == '_');
  for (int i = 0; i < NALIASES; i++) {
    const char *a = aliases[i].name;
    if (strncmp(a, name, bare) != 0 || a[bare] != '\0') continue;
    strcpy(own, aliases[i].of);
    if (bare < n) strcat(own, "_");
    return own;
  }
  return name;
}
