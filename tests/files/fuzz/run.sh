#!/bin/sh
# Fuzzes what reads files with clang's libFuzzer under sanitizers.
#   tests/files/fuzz/run.sh [FORMAT [OPTION...]]
# FORMAT: csv, gguf, npy (if none is named), npz, one, onnx, pickle, safetensors,
# shards, or all, one after another.  OPTION: of libFuzzer; without any 60 seconds.
# `run.sh all -runs=2000000' is the long run.  corpus.lua writes what each begins
# with; that, the builds, new inputs and what is found go to build-fuzz/.
set -eu
cd "$(dirname "$0")/../../.."
format=${1:-npy}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- -max_total_time=60
[ "$format" != all ] || format='csv gguf npy npz one onnx pickle safetensors shards'

out=build-fuzz
here=tests/files/fuzz
cmake -S . -B $out -DCMAKE_C_COMPILER="${CC:-clang}" -DNACRE_FUZZ=ON \
  -DNACRE_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG='-O2 -g' \
  -DNACRE_CUDA=OFF -DNACRE_EMULATED=OFF -DBUILD_TESTING=OFF >/dev/null
# What the sanitizer keeps of freed memory is small: fresh pages take longer.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=8:malloc_context_size=3}"
cmake --build $out --target fuzz_corpus fuzz_files -j "$(nproc)"
for f in $format; do
  new=$out/new/$f
  mkdir -p "$new"
  dict=
  [ ! -f "$here/$f.dict" ] || dict=-dict=$here/$f.dict
  echo "fuzzing $f"
  # shellcheck disable=SC2086
  NACRE_FUZZ=$f "$out/fuzz_files" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
    -malloc_limit_mb=64 -print_final_stats=1 -artifact_prefix="$out/" \
    $dict "$@" "$new" "$out/$here/corpus/$f"
done
