/* SPDX-License-Identifier: MIT */
/*
** sort_short.cu - sorts short slices: a block takes as many as fit in shared
** memory.  Each thread sorts a few elements, then sorted runs are
** merged two by two, where every thread first finds its share of the result
** (merge path: Green, McColl and Bader, 2012).
*/
#include "cuda/sort/sort.h"

#define ITEMS 8 /* of a thread */

/* Items hold a key and a position: all are distinct, so that every way to sort
   them is stable.  Keys of up to 32 bits share a word with their position. */
struct Narrow {
  typedef uint64_t Item;
  enum { THREADS = 512 }; /* of a block, at most */
  static NC_MEMBER uint64_t key(SortOrder o, uint64_t raw) {
    return sort_key(o, (uint32_t)raw);
  }
  static NC_MEMBER Item make(uint64_t key, uint32_t position) {
    return key << 32 | position;
  }
  static NC_MEMBER uint32_t position(Item e) { return (uint32_t)e; }
  static NC_MEMBER bool less(Item a, Item b) { return a < b; }
};

struct WideItem { /* without padding, since a copy reads all bytes */
  uint64_t key, position;
};

struct Wide {
  typedef WideItem Item;
  enum { THREADS = 256 };
  static NC_MEMBER uint64_t key(SortOrder o, uint64_t raw) {
    return sort_key(o, raw);
  }
  static NC_MEMBER Item make(uint64_t key, uint32_t position) {
    Item e;
    e.key = key;
    e.position = position;
    return e;
  }
  static NC_MEMBER uint32_t position(const Item &e) {
    return (uint32_t)e.position;
  }
  static NC_MEMBER bool less(const Item &a, const Item &b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
  }
};

/* The place of item i in shared memory: one place is left out after every 128
   bytes, so that the items of neighbouring threads are in different banks. */
#define AT(i) ((i) + (int)((unsigned)(i) / (128u / (unsigned)sizeof(Item))))

/* Bits of element i of x. */
NC_DEVICE uint64_t load_raw(const SortPlan &k, int64_t i) {
  switch (k.bits) {
    case 8: return ((const uint8_t *)k.x)[i];
    case 16: return ((const uint16_t *)k.x)[i];
    case 32: return ((const uint32_t *)k.x)[i];
    default: return ((const uint64_t *)k.x)[i];
  }
}

NC_DEVICE void copy_element(const SortPlan &k, int64_t to, int64_t i) {
  const uint64_t raw = load_raw(k, i);
  switch (k.bits) {
    case 8: ((uint8_t *)k.y)[to] = (uint8_t)raw; break;
    case 16: ((uint16_t *)k.y)[to] = (uint16_t)raw; break;
    case 32: ((uint32_t *)k.y)[to] = (uint32_t)raw; break;
    default: ((uint64_t *)k.y)[to] = raw;
  }
}

/* Sorts in registers, by comparing neighbours. */
template <class F, class Item = typename F::Item>
NC_DEVICE void sort_registers(Item e[]) {
  NC_UNROLL for (int round = 0; round < ITEMS; round++)
      NC_UNROLL for (int i = round % 2; i + 1 < ITEMS;
                     i += 2) if (F::less(e[i + 1], e[i])) {
    const Item t = e[i];
    e[i] = e[i + 1];
    e[i + 1] = t;
  }
}

/* Merges two runs, which begin at items a and b of s, as far as the ITEMS items
   from rank `at' on. */
template <class F, class Item = typename F::Item>
NC_DEVICE void merge_runs(Item e[], const Item *s, int a, int b, int run,
                          int at) {
  int low = at > run ? at - run : 0, high = at < run ? at : run, j;
  while (low < high) { /* low = the items of a before rank at */
    const int mid = (low + high) / 2;
    if (F::less(s[AT(b + at - 1 - mid)], s[AT(a + mid)])) high = mid;
    else low = mid + 1;
  }
  j = at - low;
  NC_UNROLL for (int i = 0; i < ITEMS; i++) {
    const int second =
        low >= run || (j < run && F::less(s[AT(b + j)], s[AT(a + low)]));
    e[i] = s[AT(second ? b + j : a + low)];
    low += !second;
    j += second;
  }
}

/* The position of the element that is sorted as number c of a slice; ~0 if
   there is none. */
NC_DEVICE uint32_t position_of_slot(const SortPlan &k, int64_t slice,
                                    uint32_t c) {
  if (!is_wanted(k, slice)) return ~0u;
  if (k.candidate == NULL) return c < k.n ? c : ~0u;
  return c < k.found[slice] && c < k.room ? k.candidate[slice * k.room + c]
                                          : ~0u;
}

/* Is any of n slices to be worked on? */
NC_DEVICE bool any_is_wanted(const SortPlan &k, int64_t slice, int64_t n) {
  if (k.found == NULL) return true;
  for (int64_t i = slice; i < slice + n; i++)
    if (is_wanted(k, i)) return true;
  return false;
}

/* Each slice has `room' places in shared memory, a power of two from ITEMS
   on. */
template <class F, class Item = typename F::Item>
NC_DEVICE void sort_block(const SortPlan &k, int room) {
  NC_SHARED(Item, s, AT(F::THREADS * ITEMS));
  const int me = threadIdx.x, width = blockDim.x, mine = me * ITEMS;
  const int each = width * ITEMS / room; /* slices of the block */
  const int64_t first = blockIdx.x * (int64_t)each;
  const int64_t here = k.slices - first < each ? k.slices - first : each;
  Item e[ITEMS];
  if (!any_is_wanted(k, first, here)) return;
  NC_UNROLL for (int i = 0; i < ITEMS; i++) {
    const int slot = i * width + me, l = slot / room;
    const uint32_t c = (uint32_t)(slot - l * room);
    s[AT(slot)] = F::make(~(uint64_t)0, ~0u);
    if (l >= here) continue;
    const uint32_t at = position_of_slot(k, first + l, c);
    if (at != ~0u)
      s[AT(slot)] =
          F::make(F::key(k.order, load_raw(k, (first + l) * k.n + at)), at);
  }
  __syncthreads();
  NC_UNROLL for (int i = 0; i < ITEMS; i++) e[i] = s[AT(mine + i)];
  sort_registers<F>(e);
  for (int run = ITEMS; run < room; run *= 2) {
    const int pair = mine & ~(2 * run - 1);
    NC_UNROLL for (int i = 0; i < ITEMS; i++) s[AT(mine + i)] = e[i];
    __syncthreads();
    merge_runs<F>(e, s, pair, pair + run, run, mine - pair);
    __syncthreads();
  }
  NC_UNROLL for (int i = 0; i < ITEMS; i++) s[AT(mine + i)] = e[i];
  __syncthreads();
  for (uint32_t i = me; i < here * k.keep; i += width) {
    const uint32_t l = i / k.keep, rank = k.first + i - l * k.keep;
    const uint32_t at = F::position(s[AT(l * room + rank)]);
    if (!is_wanted(k, first + l)) continue;
    const int64_t from = (first + l) * k.n + at, to = first * k.keep + i;
    if (k.y) copy_element(k, to, from);
    k.at[to] = (int64_t)(k.from ? k.from[from] : at) + 1;
  }
}

NC_KERNEL_OF(Narrow::THREADS) sort_narrow(const SortPlan k, int room) {
  sort_block<Narrow>(k, room);
}

NC_KERNEL_WIDE(Wide::THREADS) sort_wide(const SortPlan k, int room) {
  sort_block<Wide>(k, room);
}

template <class F>
static cudaError_t launch(void (*kernel)(const SortPlan, int),
                          const SortPlan *k, cudaStream_t s) {
  int room = ITEMS, threads = 32;
  int64_t each;
  while ((uint32_t)room < (k->candidate ? k->room : k->n)) room *= 2;
  while (threads < F::THREADS && (int64_t)threads * ITEMS < k->slices * room)
    threads *= 2;
  if (threads * ITEMS < room) threads = room / ITEMS;
  each = threads * ITEMS / room;
  return NC_LAUNCH(kernel, (unsigned)((k->slices + each - 1) / each), threads,
                   0, s, *k, room);
}

cudaError_t nc_sort_short(const SortPlan *k, cudaStream_t s) {
  return k->bits == 64 ? launch<Wide>(sort_wide, k, s)
                       : launch<Narrow>(sort_narrow, k, s);
}
