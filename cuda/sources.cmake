# The files of the plug-in. C files hold what runs on the host; kernels are
#   CUDA_KERNELS   compiled once
#   CUDA_TYPED     compiled once for each of CUDA_TYPES, with NC_TYPE defined as
#                  the type's name: `file.cu', or `file.cu:f32,f64' for some
#   CUDA_EXACT     of the above those in which a*b+c is not contracted
set(CUDA_TYPES b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64)
set(CUDA_SOURCES
  # the runtime
  plugin.c probe.c devices.c memory.c segments.c pinned.c copy.c wait.c
  stream.c event.c error.c facts.c
  # products
  product.c blas.c libraries.c
  # leaves
  lines.c sort.c moves.c conv.c norm.c
  # rows
  run.c folds.c index.c
)
set(CUDA_KERNELS
  product.cu
  linesmax.cu linesvar.cu linessum.cu linessoft.cu
  linescumsum.cu linescumprod.cu linescumlog.cu linescummax.cu
  sequence.cu draw.cu places.cu trues.cu gather.cu accumulate.cu expect.cu
  search.cu conv.cu pool.cu norm.cu
  casts.cu transpose.cu sortshort.cu sortlong.cu sortrank.cu
)
set(CUDA_TYPED
  maps.cu:u8,i8,i16,i32,i64,f16,bf16,f32,f64
  strided.cu:u8,i32,i64,f32,f64
  gradients.cu:f32,f64
  folds.cu:u8,i8,i16,i32,i64,f16,bf16,f32,f64
  foldsany.cu:i64,f32,f64
)
set(CUDA_EXACT
  draw.cu
)
