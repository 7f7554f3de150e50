/* SPDX-License-Identifier: MIT */
/*
** transpose.cu - copies where source and destination run fastest along
** different dimensions: tiles pass through shared memory, so that both are
** touched line by line.
**
** A tile's rows are one element longer than it is wide: its columns then lie
** in different banks.
*/
#include "rows.h"

#define LANES 32
#define ROWS  8

#define KERNEL(type, tile)                                                    \
  NC_KERNEL_OF(LANES * ROWS) transpose_##type(const Transpose t) {            \
    NC_SHARED2(type, cell, tile, tile + 1);                                   \
    const uint32_t other = nc_quotient(blockIdx.x, t.tiles[0]);               \
    const uint32_t across = (blockIdx.x - other * t.tiles[0].d) * tile;       \
    const uint32_t batch = nc_quotient(other, t.tiles[1]);                    \
    const uint32_t down = (other - batch * t.tiles[1].d) * tile;              \
    const type *x = (const type *)t.x;                                        \
    type *y = (type *)t.y;                                                    \
    uint64_t at[2];                                                           \
    nc_at(at, &t.rest, batch, 2);                                             \
    for (uint32_t r = threadIdx.y; r < tile; r += ROWS)                       \
      for (uint32_t l = threadIdx.x; l < tile; l += LANES)                    \
        if (across + r < t.size[0] && down + l < t.size[1])                   \
          cell[r][l] = x[at[1] + (across + r) * t.xstep[0] +                  \
                         (down + l) * t.xstep[1]];                            \
    __syncthreads();                                                          \
    for (uint32_t r = threadIdx.y; r < tile; r += ROWS)                       \
      for (uint32_t l = threadIdx.x; l < tile; l += LANES)                    \
        if (across + l < t.size[0] && down + r < t.size[1])                   \
          y[at[0] + (across + l) * t.ystep[0] + (down + r) * t.ystep[1]] =    \
              cell[l][r];                                                     \
  }
KERNEL(uint8_t, 64)
KERNEL(uint16_t, 64)
KERNEL(uint32_t, 32)
KERNEL(uint64_t, 32)

extern "C" cudaError_t nc_transposes(int size, const Transpose *t,
                                     uint32_t batches, cudaStream_t stream) {
  void (*kernel)(const Transpose) = size == 1   ? transpose_uint8_t
                                    : size == 2 ? transpose_uint16_t
                                    : size == 4 ? transpose_uint32_t
                                                : transpose_uint64_t;
  return NC_LAUNCH(kernel, t->tiles[0].d * t->tiles[1].d * batches,
                   dim3(LANES, ROWS), 0, stream, *t);
}
