#!/bin/sh
# Fuzzes what reads files with clang's libFuzzer under sanitizers.
#   tests/files/fuzz/run.sh [npy|png|safetensors|csv] [SECONDS [CORPUS]]
# npy if nothing is named; 60 seconds, a temporary corpus.  The builds and what
# it finds go to build-fuzz/.
set -eu
cd "$(dirname "$0")/../../.."
format=npy
case ${1-} in npy | png | safetensors | csv) format=$1 && shift ;; esac
seconds=${1:-60}
out=build-fuzz
corpus=${2:-$out/corpus-$format}
mkdir -p "$out" "$corpus"

flags="-std=c17 -g -O1 -fwrapv -fsanitize=address,undefined -Icore"
flags="$flags -fno-sanitize-recover=all -w"
sources=$(find core -name '*.c' ! -name kernels.c)
if [ $format = npy ]; then
  seed=scripts/data/digits-labels.npy
  set -- -dict=tests/files/fuzz/npy.dict
elif [ $format = safetensors ]; then
  seed=
  set -- -dict=tests/files/fuzz/safetensors.dict
  [ "$(ls -A "$corpus")" ] || printf \
    '\100\0\0\0\0\0\0\0{"w":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]}}         ab' \
    >"$corpus/two"
elif [ $format = csv ]; then
  seed=
  set --
  [ "$(ls -A "$corpus")" ] || printf '\004"a b",c\n1,2.5e3\n-3,"nan"\n' \
    >"$corpus/two"
else
  sources="$sources bindings/io/libpng.c"
  seed=
  set --
  # the smallest image there is: one black pixel
  [ "$(ls -A "$corpus")" ] || printf '%b' \
    '\0211PNG\0015\0012\0032\0012\0000\0000\0000\0015IHDR'\
'\0000\0000\0000\0001\0000\0000\0000\0001\0010\0000\0000\0000\0000:~\0233U\0000\0000\0000\0012IDAT'\
'\0010\0231c`\0000\0000\0000\0002\0000\0001\0364qd\0246\0000\0000\0000\0000IEND\0256B`\0202' \
    >"$corpus/pixel.png"
fi
[ -z "$seed" ] || [ "$(ls -A "$corpus")" ] || cp $seed "$corpus"/
# shellcheck disable=SC2086
${CC:-clang} $flags -fsanitize=fuzzer -DNC_ISA=any tests/files/fuzz/fuzz_$format.c \
  core/cpu/kernels/kernels.c $sources -lm -lpthread -ldl -o "$out/fuzz_$format"
exec "$out/fuzz_$format" -max_total_time="$seconds" -max_len=4096 "$@" \
  -print_final_stats=1 -artifact_prefix="$out/" "$corpus"
