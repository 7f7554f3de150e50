/* SPDX-License-Identifier: MIT */
/*
** util_type.cuh - cub::DoubleBuffer for the emulated device: two buffers, of
** which one is current.
*/
#ifndef emulated_cub_util_type_cuh
#define emulated_cub_util_type_cuh

namespace cub {

template <class T> struct DoubleBuffer {
  T *d_buffers[2] = {};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T *current, T *alternate) : d_buffers{ current, alternate } {}
  T *Current() { return d_buffers[selector]; }
  T *Alternate() { return d_buffers[selector ^ 1]; }
};

}

#endif
