#!/bin/sh
# Fuzzes the .npy loader with clang's libFuzzer under sanitizers.
#   tests/fuzz/run.sh [SECONDS [CORPUS]]    60 seconds, a temporary corpus
# The builds and what it finds go to build-fuzz/.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
out=build-fuzz
corpus=${2:-$out/corpus}
mkdir -p "$out" "$corpus"
[ "$(ls -A "$corpus")" ] || cp scripts/data/digits-labels.npy "$corpus"/

flags="-std=c17 -g -O1 -fwrapv -fsanitize=address,undefined -Icore"
flags="$flags -fno-sanitize-recover=all -w"
sources=$(find core -name '*.c' ! -name kernels.c)
# shellcheck disable=SC2086
${CC:-clang} $flags -fsanitize=fuzzer -DNC_ISA=any tests/fuzz/fuzz_npy.c \
  core/kernels.c $sources -lm -lpthread -ldl -o "$out/fuzz_npy"
exec "$out/fuzz_npy" -max_total_time="$seconds" -max_len=4096 \
  -dict=tests/fuzz/npy.dict -print_final_stats=1 \
  -artifact_prefix="$out/" "$corpus"
