/* SPDX-License-Identifier: MIT */
/*
** transpose_copy.cu - copies whose source and destination are contiguous along
** different dimensions.  Tiles pass through shared memory, so that loads and
** stores are both coalesced.  A thread first loads its whole part of a tile, so
** that several loads are in flight.  pointwise.c calls nc_transposes.
**
** Elements of one or two bytes are moved in aligned words of four bytes where
** possible; moved one by one, they would be limited by instructions, not by
** bandwidth.
*/
#include "cuda/pointwise/launch.h"

#define LANES 32
#define ROWS 8
#define EACH(i, n) NC_UNROLL for (int i = 0; i < (n); i++)

/* The tile of a block: the offsets of its first element in x and y, and the
   number of elements from there to the end, which can exceed the tile. */
typedef struct Tile {
  uint64_t x, y;
  uint32_t wide, high; /* along dimensions 0 and 1 */
} Tile;

NC_DEVICE Tile tileof(const Transpose &t, int side) {
  const uint32_t other = nc_quotient(blockIdx.x, t.tiles[0]);
  const uint32_t across = (blockIdx.x - other * t.tiles[0].d) * side;
  const uint32_t batch = nc_quotient(other, t.tiles[1]);
  const uint32_t down = (other - batch * t.tiles[1].d) * side;
  uint64_t at[2];
  Tile c;
  nc_offsets_at(at, &t.rest, batch, 2);
  c.x = at[1] + across * t.xstep[0] + down * t.xstep[1];
  c.y = at[0] + across * t.ystep[0] + down * t.ystep[1];
  c.wide = t.size[0] - across;
  c.high = t.size[1] - down;
  return c;
}

/* Grid: one block for each tile.  A row in shared memory is padded by a word,
   so that the elements of a column are in different banks. */
#define SINGLE(T, side)                                                       \
  NC_KERNEL_OF(LANES *ROWS) transpose_##T(const Transpose t) {                \
    enum { OVER = side / LANES, UP = side / ROWS };                           \
    NC_SHARED2(T, cell, side, side + (sizeof(T) < 4 ? 4 / sizeof(T) : 1));    \
    const Tile c = tileof(t, side);                                           \
    const uint32_t lane = threadIdx.x, row = threadIdx.y;                     \
    const T *x = (const T *)t.x + c.x + row * t.xstep[0] + lane * t.xstep[1]; \
    T *y = (T *)t.y + c.y + lane * t.ystep[0] + row * t.ystep[1];             \
    T v[UP][OVER];                                                            \
    EACH(i, UP) EACH(j, OVER) {                                               \
      v[i][j] = 0;                                                            \
      if (row + i * ROWS < c.wide && lane + j * LANES < c.high)               \
        v[i][j] = x[i * ROWS * t.xstep[0] + j * LANES * t.xstep[1]];          \
    }                                                                         \
    EACH(i, UP)                                                               \
    EACH(j, OVER) cell[row + i * ROWS][lane + j * LANES] = v[i][j];           \
    __syncthreads();                                                          \
    EACH(i, UP)                                                               \
    EACH(j, OVER)                                                             \
    if (lane + j * LANES < c.wide && row + i * ROWS < c.high)                 \
      y[j * LANES * t.ystep[0] + i * ROWS * t.ystep[1]] =                     \
          cell[lane + j * LANES][row + i * ROWS];                             \
  }
SINGLE(uint8_t, 64)
SINGLE(uint16_t, 64)
SINGLE(uint32_t, 64)
SINGLE(uint64_t, 32)

/* Transposes a square of `each' by `each' elements, whose rows are the words
   w[]. */
NC_DEVICE void turned(uint32_t w[], int each) {
  if (each == 4) {
    const uint32_t low = 0x00ff00ff, high = 0xff00ff00;
    const uint32_t a = (w[0] & low) | (w[1] & low) << 8;
    const uint32_t b = (w[0] >> 8 & low) | (w[1] & high);
    const uint32_t c = (w[2] & low) | (w[3] & low) << 8;
    const uint32_t d = (w[2] >> 8 & low) | (w[3] & high);
    w[0] = (a & 0xffff) | c << 16;
    w[1] = (b & 0xffff) | d << 16;
    w[2] = a >> 16 | (c & 0xffff0000);
    w[3] = b >> 16 | (d & 0xffff0000);
  } else {
    const uint32_t a = w[0];
    w[0] = (a & 0xffff) | w[1] << 16;
    w[1] = a >> 16 | (w[1] & 0xffff0000);
  }
}

/* Grid: one block for each tile, which is LANES words wide and high, with
   `each' elements in a word.  Each row in shared memory is rotated by its
   number, so that the words of a column are in different banks. */
#define WORDS(T, each)                                                     \
  NC_KERNEL_OF(LANES *ROWS) words_##T(const Transpose t) {                 \
    enum { SIDE = LANES * each, UP = SIDE / ROWS };                        \
    NC_SHARED2(uint32_t, cell, SIDE, LANES);                               \
    const Tile c = tileof(t, SIDE);                                        \
    const uint32_t lane = threadIdx.x, row = threadIdx.y;                  \
    const T *x = (const T *)t.x + c.x + row * t.xstep[0] + lane * each;    \
    uint32_t v[UP];                                                        \
    EACH(i, UP) {                                                          \
      v[i] = 0;                                                            \
      if (row + i * ROWS < c.wide && lane * each < c.high)                 \
        v[i] = *(const uint32_t *)(x + i * ROWS * t.xstep[0]);             \
    }                                                                      \
    EACH(i, UP) {                                                          \
      const uint32_t r = row + i * ROWS;                                   \
      cell[r][(lane + r / each) % LANES] = v[i];                           \
    }                                                                      \
    __syncthreads();                                                       \
    EACH(i, LANES / ROWS) {                                                \
      const uint32_t column = row + i * ROWS;                              \
      T *y = (T *)t.y + c.y + lane * each + column * each * t.ystep[1];    \
      uint32_t w[each];                                                    \
      EACH(k, each) w[k] = cell[lane * each + k][(column + lane) % LANES]; \
      turned(w, each);                                                     \
      if (lane * each < c.wide && column * each < c.high)                  \
        EACH(k, each) * (uint32_t *)(y + k * t.ystep[1]) = w[k];           \
    }                                                                      \
  }
WORDS(uint8_t, 4)
WORDS(uint16_t, 2)

extern "C" cudaError_t nc_transposes(int size, const Transpose *t,
                                     uint32_t batches, cudaStream_t stream) {
  void (*kernel)(const Transpose) = size == 1   ? transpose_uint8_t
                                    : size == 2 ? transpose_uint16_t
                                    : size == 4 ? transpose_uint32_t
                                                : transpose_uint64_t;
  if (t->words) kernel = size == 1 ? words_uint8_t : words_uint16_t;
  return NC_LAUNCH(kernel, t->tiles[0].d * t->tiles[1].d * batches,
                   dim3(LANES, ROWS), 0, stream, *t);
}
