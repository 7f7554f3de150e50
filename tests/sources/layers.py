#!/bin/sh
# Checks who includes whom, and what core must never do; prints FILE:LINE of
# every violation and fails if there is one.
#
#   tests/sources/layers.sh DIR               check the source tree DIR
#   tests/sources/layers.sh --self-test DIR   plant violations in a copy of DIR and see
#                                     that each one is reported
#
# An #include whose file is a macro is not followed; the macro's
# definition ("#define GENERIC "vectorized.inc"") counts as the include.
set -eu

check() ( # check DIR
  cd -- "$1"
  # Core comes first: it declares the devices that nobody else may name.
  # shellcheck disable=SC2046
  set -- $(for d in core cuda bindings repl tests; do
    [ ! -d $d ] || find $d -type f \( -name '*.[ch]' -o -name '*.cu' \
      -o -name '*.cuh' -o -name '*.inc' -o -name '*.def' \) | LC_ALL=C sort
  done)
  [ $# -gt 0 ] || { echo "no sources in $PWD"; exit 1; }
  LC_ALL=C awk '
    BEGIN {
      # Of core, the plug-ins and the bindings may see these.
      split("tensor.h ops.def operators.def ops_end.h dtype.h", a)
      for (i in a) bindings["core/" a[i]] = cuda["core/" a[i]] = 1
      # What one row becomes is compiled for every device, so also the loops,
      # and random numbers are the same on all.
      split("pointwise/scalar.h pointwise/for_each_compute_type.h base/philox.h portable.h", a)
      for (i in a) cuda["core/" a[i]] = 1
      limit = 400 # lines of the public header
      for (i = 1; i < ARGC; i++) ours[ARGV[i]] = 1
    }

    FNR == 1 { folder = dir = FILENAME; sub(/\/.*/, "", folder)
               sub(/\/[^\/]*$/, "", dir); comment = 0 }

    { code = strip($0) } # also sets bare: the code without its strings

    code ~ /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      angle = code ~ /^[^"<]*</
      gsub(/^[^"<]*["<]|[">].*$/, "", code)
      includes(code, angle)
    }
    code ~ /^[ \t]*#[ \t]*define[ \t]+[A-Za-z_0-9]+[ \t]+"[^"]*\.(h|inc|def|c|cu)"/ {
      gsub(/^[^"]*"|".*$/, "", code)
      includes(code, 0)
    }

    folder == "core" && match(bare, /(^|[^A-Za-z0-9_.>])(abort|exit|_exit|_Exit|quick_exit|(sig)?longjmp|(sig)?setjmp|v?printf|puts|putchar|perror|assert)[ \t]*\(/) {
      call = substr(bare, RSTART, RLENGTH)
      gsub(/[^A-Za-z_]/, "", call)
      fail("core calls " call)
    }
    folder == "core" && match(bare, /(^|[^A-Za-z0-9_])(stdout|stderr)([^A-Za-z0-9_]|$)/) {
      fail("core uses stdout or stderr")
    }
    FILENAME == "core/tensor.h" && FNR == limit + 1 {
      fail("the public header has more than " limit " lines")
    }

    folder == "core" && match(bare, /(^|[^A-Za-z0-9_])Device[ \t]+nc_[a-z0-9_]+[ \t]*[;=]/) {
      name = substr(bare, RSTART, RLENGTH)
      gsub(/^.*Device[ \t]+|[ \t]*[;=]$/, "", name)
      device[name] = 1
    }
    match(bare, /Device[ \t]*\*[ \t]*(const[ \t]*)?[A-Za-z0-9_]+[ \t]*\[[^]]*\][ \t]*=/) {
      if (table) fail("a second list of devices, the first is at " table)
      else if (folder != "core") fail("a list of devices outside core")
      table = FILENAME ":" FNR
    }
    folder ~ /^(cuda|bindings|repl)$/ {
      for (name in device)
        if ((" " bare " ") ~ ("[^A-Za-z0-9_]" name "[^A-Za-z0-9_]"))
          fail(folder " names the device " name)
    }

    END {
      if (failures) { print "layers: " failures " violations"; exit 1 }
      print "layers: " ARGC - 1 " files, none breaks a rule"
    }

    function fail(why) { print FILENAME ":" FNR ": " why; failures++ }

    # An #include of name, in quotes or in angle brackets, in the current file.
    function includes(name, angle,   to, where) {
      if (name ~ /^(lua[0-9.-]*\/)?(lua|lualib|lauxlib|luaconf)\.h/ && folder ~ /^(core|cuda)$/)
        fail(folder " includes Lua: " name)
      if (name ~ /^(cuda|cublas|cudnn|curand|cusolver|cusparse|cufft|cutensor|nvrtc|nvml|nvtx|nccl|cub\/|thrust\/|cooperative_groups)/ \
          && folder ~ /^(core|bindings|repl)$/)
        fail(folder " includes CUDA: " name)
      if (name ~ /^((readline|editline)\/|(readline|history)\.h)/ && folder != "repl")
        fail(folder " includes readline: " name)
      to = find(name, angle)
      if (to == "") return
      where = to
      sub(/\/.*/, "", where)
      if (where == folder || folder == "tests") return
      if (folder == "core" || where == "tests" || where == "repl" || where == "cuda" ||
          folder == "cuda" && where != "core")
        fail(folder " includes " to)
      else if (folder == "bindings" && !(to in bindings) ||
               folder == "cuda" && !(to in cuda) && to !~ /\.inc$/)
        fail(folder " includes a private file of core: " to)
    }

    # Which of our files an #include means; empty if none.
    function find(name, angle,   i, n, place, path) {
      if (angle) return name in ours ? name : ""
      n = split(dir " . core bindings cuda repl tests", place, " ")
      for (i = 1; i <= n; i++) {
        path = place[i] "/" name
        while (sub(/(^|\/)\.\//, "/", path));
        while (sub(/[^\/.]+\/\.\.\//, "", path));
        sub(/^\//, "", path)
        if (path in ours) return path
      }
      return ""
    }

    # The line without comments; bare becomes the same without literals.
    function strip(s,   out, c) {
      out = bare = ""
      while (s != "") {
        if (comment) {
          if (!match(s, /\*\//)) break
          comment = 0
          s = substr(s, RSTART + 2)
          continue
        }
        if (!match(s, /\/\*|\/\/|"|\x27/)) { out = out s; bare = bare s; break }
        c = substr(s, RSTART, RLENGTH)
        out = out substr(s, 1, RSTART - 1)
        bare = bare substr(s, 1, RSTART - 1)
        s = substr(s, RSTART)
        if (c == "//") break
        if (c == "/*") { comment = 1; out = out " "; bare = bare " "; s = substr(s, 3); continue }
        if (!match(s, c == "\"" ? "^\"([^\"\\\\]|\\\\.)*\"" : "^\x27([^\x27\\\\]|\\\\.)+\x27"))
          RLENGTH = 1
        out = out substr(s, 1, RLENGTH)
        bare = bare c c
        s = substr(s, RLENGTH + 1)
      }
      return out
    }
  ' "$@"
)

# ---- the self-test ----

# plant FILE LINE [pass]: is LINE, appended to FILE, reported (or passed)?
plant() {
  mkdir -p "$copy/${1%/*}"
  [ ! -f "$copy/$1" ] || cp "$copy/$1" "$copy/saved"
  printf '%s\n' "$2" >>"$copy/$1"
  at=$1:$(($(wc -l <"$copy/$1")))
  said=$(check "$copy" | grep "^$at: " || :)
  if [ "${3-}" = pass ]; then
    [ -z "$said" ] || bad "false alarm: $said ($2)"
  else
    [ -n "$said" ] || bad "not caught: $2 (in $1)"
  fi
  planted=$((planted + 1))
  if [ -f "$copy/saved" ]; then mv "$copy/saved" "$copy/$1"; else rm "$copy/$1"; fi
}

bad() { echo "$*"; failed=1; }

selftest() { # selftest DIR
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  trap 'exit 1' INT TERM
  mkdir -p "$copy/core" "$copy/bindings" "$copy/repl" "$copy/cuda"
  for d in core cuda bindings repl; do
    [ ! -d "$1/$d" ] || cp -r "$1/$d" "$copy/"
  done
  # The names the plants use must exist, whatever the tree calls its files.
  echo '/* */' >"$copy/bindings/planted.h"
  echo '/* */' >"$copy/repl/planted.h"
  echo '/* */' >"$copy/cuda/planted.h"
  echo '/* */' >"$copy/core/hidden.h"
  echo 'extern const Device nc_planted;' >"$copy/core/aaa.h"
  [ -f "$copy/core/tensor.h" ] || echo '/* */' >"$copy/core/tensor.h"
  failed=0 planted=0

  plant core/planted.c '#include "../bindings/planted.h"'
  plant core/planted.c '#include "bindings/planted.h"'
  plant core/planted.c '#include "planted.h"'
  plant core/planted.c '#  include <repl/planted.h>'
  plant core/planted.c '#include <lua.h>'
  plant core/planted.c '#include "lauxlib.h"'
  plant core/planted.c '#include <lua5.4/lualib.h>'
  plant core/planted.c '#include <cuda_runtime.h>'
  plant core/planted.c '#include <cublas_v2.h>'
  plant core/planted.h '#include <readline/readline.h>'
  for f in abort exit _exit longjmp siglongjmp printf assert puts; do
    plant core/planted.c "int f(void) { $f (1); }"
  done
  plant core/planted.inc '  assert(n > 0);'
  plant core/planted.c '/* a */ abort(); /* b */'
  plant core/planted.c "c = '\"'; exit(1);"
  plant core/planted.c '  fprintf(stderr, "x");'
  plant core/planted.c 'static const Device *const l1[] = { 0 }; /*
*/ static const Device *l2[2] = { 0 };'
  plant cuda/planted.cu '#include "core/hidden.h"'
  plant cuda/planted.cu '#define GENERIC "../core/hidden.h"'
  plant cuda/planted.cu '#include "bindings/planted.h"'
  plant cuda/planted.cu '#include <lua.h>'
  plant cuda/planted.cu '  run(&nc_planted);'
  plant bindings/planted.c '#include "../core/hidden.h"'
  plant bindings/planted.c '#include "hidden.h"'
  plant bindings/planted.c '#include "core/pointwise/scalar.h"' "$([ -f "$copy/core/pointwise/scalar.h" ] || echo pass)"
  plant bindings/planted.c '#include "../cuda/planted.h"'
  plant bindings/planted.c '#include <cuda.h>'
  plant bindings/planted.c '#include "../repl/planted.h"'
  plant bindings/planted.c '#include <readline/history.h>'
  plant bindings/planted.c '  d = &nc_planted;'
  plant bindings/planted.c 'const Device *all[] = { 0 };'
  plant repl/planted.c '#include "../cuda/planted.h"'
  plant repl/planted.c 'f(nc_planted);'
  plant tests/planted.c '#include <readline/readline.h>'

  plant core/planted.c '  snprintf(s, n, "exit(1)"); /* abort() */' pass
  plant core/planted.c '  static_assert(sizeof(int) == 4, "int"); // abort()' pass
  plant core/planted.c '  nc_exit(d->exit(1), print_exit(2));' pass
  plant core/planted.c '#include <memory.h>' pass
  plant core/planted.c '#include "tensor.h"' pass
  plant core/planted.c '#include "../core/hidden.h"' pass
  plant core/planted.c '/* #include <lua.h> */' pass
  plant cuda/planted.cu '#include "../core/tensor.h"' pass
  plant cuda/planted.cu '#include <cuda_runtime.h>' pass
  plant bindings/planted.c '#include "core/tensor.h"' pass
  plant bindings/planted.c '#include <lauxlib.h>' pass
  plant bindings/planted.c '  d = nc_planted_name; /* nc_planted */' pass
  plant repl/planted.c '#include <readline/readline.h>' pass
  plant repl/planted.c '#include "../bindings/planted.h"' pass

  # The length of the public header.
  head -n 400 "$copy/core/tensor.h" >"$copy/head"
  mv "$copy/head" "$copy/core/tensor.h"
  lines=$(wc -l <"$copy/core/tensor.h")
  while [ "$lines" -lt 400 ]; do
    echo >>"$copy/core/tensor.h"
    lines=$((lines + 1))
  done
  plant core/tensor.h '/* the line too many */'

  [ $failed = 0 ] || exit 1
  echo "layers: $planted plants, each one judged rightly"
}

case ${1-} in
  --self-test) selftest "${2:-.}" ;;
  -*) echo "usage: tests/sources/layers.sh [--self-test] DIR" >&2; exit 2 ;;
  *) check "${1:-.}" ;;
esac
