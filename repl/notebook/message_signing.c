/* SPDX-License-Identifier: MIT */
/*
** message_signing.c - HMAC-SHA256, by which the messages of a notebook show
** that their sender knows the key. The library is libsodium, which libzmq
** uses as well; it is opened at the first signature.
*/

#include <string.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/notebook/kernel_host.h"
#include "core/library.h"

typedef unsigned char byte;

/* clang-format off */
#define FUNCTIONS(X)                                                         \
  X(int, sodium_init, (void))                                                \
  X(size_t, crypto_auth_hmacsha256_statebytes, (void))                       \
  X(int, crypto_auth_hmacsha256_init, (void *, const byte *, size_t))        \
  X(int, crypto_auth_hmacsha256_update, (void *, const byte *,               \
    unsigned long long))                                                     \
  X(int, crypto_auth_hmacsha256_final, (void *, byte *))                     \
  X(char *, sodium_bin2hex, (char *, size_t, const byte *, size_t))          \
  X(int, sodium_memcmp, (const void *, const void *, size_t))
/* clang-format on */

static struct { FUNCTIONS(NC_FIELD) } sodium;

enum { HASH = 32, STATE = 1024 }; /* bytes; a state has 208 */

static int begins(void *handle) {
  (void)handle;
  return sodium.sodium_init() >= 0 &&
         sodium.crypto_auth_hmacsha256_statebytes() <= STATE;
}

static Library libsodium = {
  .variable = "NACRE_SODIUM",
  .names = NC_LIST("libsodium.so.23", "libsodium.so.26", "libsodium.so",
                   "libsodium.23.dylib", "libsodium.dylib"),
  .prefix = "",
  NC_FUNCTIONS(FUNCTIONS, sodium),
  .accepts = begins,
  .missing = "signed notebook messages need libsodium",
  .hint = "install it (Debian: libsodium23)",
};

const char *sh_sodium_library(void) {
  return nc_libraryname(&libsodium);
}

/* sign(key, text, ...): the signature of the texts, in hexadecimal digits */
static int sign(lua_State *L) {
  size_t size;
  const char *key = luaL_checklstring(L, 1, &size);
  byte state[STATE] __attribute__((aligned(64))), hash[HASH];
  char hex[2 * HASH + 1];
  if (nc_library(&libsodium) != NC_OK) return sh_library_error(L);
  for (int i = 2; i <= lua_gettop(L); i++) luaL_checkstring(L, i);
  sodium.crypto_auth_hmacsha256_init(state, (const byte *)key, size);
  for (int i = 2; i <= lua_gettop(L); i++) {
    const char *text = lua_tolstring(L, i, &size);
    sodium.crypto_auth_hmacsha256_update(state, (const byte *)text, size);
  }
  sodium.crypto_auth_hmacsha256_final(state, hash);
  lua_pushstring(L, sodium.sodium_bin2hex(hex, sizeof hex, hash, HASH));
  return 1;
}

/* same_signature(a, b): in a time that does not tell where they differ; only
   after sign */
static int same(lua_State *L) {
  size_t n, m;
  const char *a = luaL_checklstring(L, 1, &n);
  const char *b = luaL_checklstring(L, 2, &m);
  lua_pushboolean(L, n == m && sodium.sodium_memcmp(a, b, n) == 0);
  return 1;
}

void sh_open_signing(lua_State *L) {
  static const luaL_Reg list[] = { { "sign", sign },
                                   { "same_signature", same },
                                   { NULL, NULL } };
  luaL_setfuncs(L, list, 0);
}
