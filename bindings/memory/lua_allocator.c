/* SPDX-License-Identifier: MIT */
/*
** lua_allocator.c - the lua_Alloc of the program: free lists for small blocks.
**
** A tensor userdata often lives for one operation only. malloc would return the
** top of its heap to the system between collections and request it again, which
** costs more than the operation; here small blocks are kept. When memory runs
** out, the cache of tensor memory is freed and the request repeated. After
** Ctrl-C the program gets no more large blocks.
*/

#include <stdlib.h>
#include <string.h>

#include "bindings/nacre.h"
#include "core/tensor.h"

#define UNIT 16
#define SMALL 128 /* larger blocks come from malloc */
#define CHUNK 16384
#define LARGE (1 << 20)

typedef struct FreeBlock {
  struct FreeBlock *next;
} FreeBlock;

static FreeBlock *lists[SMALL / UNIT + 1];
static FreeBlock *chunks; /* keeps the chunks reachable for leak checkers */

static int sizeclass(size_t n) {
  return (int)((n + UNIT - 1) / UNIT);
}

/* Puts a small block of n bytes on its free list. */
static void give(void *p, size_t n) {
  FreeBlock *f = p;
  f->next = lists[sizeclass(n)];
  lists[sizeclass(n)] = f;
}

/* Adds the blocks of a new chunk to the free list of size n. */
static int refill(size_t n) {
  size_t size = (size_t)sizeclass(n) * UNIT;
  char *p = malloc(CHUNK);
  if (p == NULL) return 0;
  ((FreeBlock *)p)->next = chunks;
  chunks = (FreeBlock *)p;
  for (size_t at = UNIT; at + size <= CHUNK; at += size) give(p + at, size);
  return 1;
}

static void *take(size_t n) {
  FreeBlock **list = &lists[sizeclass(n)], *f;
  if (*list == NULL && !refill(n)) return NULL;
  f = *list;
  *list = f->next;
  return f;
}

#if defined(__SANITIZE_ADDRESS__)
#define issmall(n) 0 /* the sanitizer must see every block */
#else
#define issmall(n) ((n) <= SMALL)
#endif

static void *resize(void *p, size_t old, size_t n) {
  void *q;
  if (!issmall(old) && !issmall(n)) return realloc(p, n);
  q = issmall(n) ? take(n) : malloc(n);
  if (q == NULL) return NULL;
  memcpy(q, p, old < n ? old : n);
  if (issmall(old)) give(p, old);
  else free(p);
  return q;
}

int (*nacre_refuses_memory)(void);

void *nacre_alloc(void *ud, void *p, size_t old, size_t n) {
  (void)ud;
  if (n > LARGE && (p == NULL || n > old) && nacre_refuses_memory &&
      nacre_refuses_memory())
    return NULL;
  if (n == 0) {
    if (p == NULL) return NULL;
    if (issmall(old)) give(p, old);
    else free(p);
    return NULL;
  }
  for (int attempt = 0;; attempt++) {
    void *q = p ? resize(p, old, n) : issmall(n) ? take(n) : malloc(n);
    if (q || attempt > 0) return q;
    nc_trimcache(0);
  }
}
