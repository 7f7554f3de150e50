# SPDX-License-Identifier: MIT
# Read by ./bootstrap: what a machine has, and the packages in which each system
# has the rest. $options and $build are those of ./bootstrap.

# ---- what is there ----

cc() { # the compiler, with the words of CC
  # shellcheck disable=SC2086
  command ${CC:-cc} "$@"
}

header() { # header FILE... [CONDITION]: all exist and the condition holds
  {
    for f in "$1" "$2"; do printf '#include <%s>\n' "$f"; done
    printf '#if !(%s)\n#error\n#endif\n' "${3:-1}"
  } | cc -E -xc - >/dev/null 2>&1
}

module() { pkg-config --exists "$@" 2>/dev/null; }

python() { # python MODULE: a python3 that has it
  for p in python3 /usr/bin/python3; do
    ! have "$p" || ! "$p" -c "import sys, importlib.util as u
sys.exit(u.find_spec('$1') is None)" 2>/dev/null || return 0
  done
  return 1
}

library() { # library NAME: the loader knows libNAME.so
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep "lib$1\.so" >/dev/null
}

there() { # there THING: is it on this machine?
  case $1 in
    compiler) cc --version >/dev/null 2>&1 && header stdio.h stdlib.h ;;
    c++) command ${CXX:-c++} --version >/dev/null 2>&1 ;;
    make) have make || have ninja ;;
    cmake | ccache | ninja | pkg-config | python3 | zstd) have "$1" ;;
    file) have file || ! have dpkg ;;
    dpkg-dev) have dpkg-shlibdeps || ! have dpkg ;;
    lua) module lua5.4 || module lua-5.4 || module lua54 ||
      module 'lua >= 5.4' 'lua < 5.5' || header lua5.4/lua.h stdio.h ||
      header stdio.h lua.h 'LUA_VERSION_NUM == 504' ;;
    lua-interpreter) have lua5.4 || have lua54 || have lua ;;
    readline) header stdio.h readline/readline.h || wants_no_readline ;;
    blas) library openblas || module openblas ;;
    onednn) library dnnl || module dnnl ;;
    png) library png16 || module libpng16 ;;
    jpeg) library turbojpeg || module libturbojpeg ;;
    zip) library zip || module libzip ;;
    hdf5) library hdf5_serial || library hdf5 || module hdf5 ;;
    libpython) library 'python3\.[0-9]*' ;;
    rsvg) library rsvg-2 || module librsvg-2.0 ;;
    cmocka) module cmocka || header stdio.h cmocka.h ;;
    openmpi) have mpicc && have mpirun ;;
    pexpect | numpy | h5py | torch | nbconvert) python "$1" ;;
    python3-zmq) python zmq ;;
  esac
}

wants_no_readline() {
  case " $options " in
    *" -DNACRE_READLINE=OFF "*) return 0 ;;
    *" -DNACRE_READLINE=ON "*) return 1 ;;
  esac
  grep -q '^NACRE_READLINE:[A-Z]*=OFF' "$build/CMakeCache.txt" 2>/dev/null
}

absent() { # absent THING...: those that are not there
  list=
  for t; do there "$t" || list="$list $t"; done
  printf '%s' "${list# }"
}

# ---- the names of packages ----

system() {
  for s in apt-get dnf pacman zypper apk brew; do
    ! have $s || { printf %s $s; return; }
  done
}

packages() { # packages SYSTEM THING...: the names that system has for them
  s=$1
  shift
  for t; do
    case $s:$t in
      apt-get:compiler) printf '%s ' gcc libc6-dev ;;
      pacman:compiler) printf '%s ' base-devel ;;
      apk:compiler) printf '%s ' gcc musl-dev ;;
      brew:compiler) ;; # xcode-select --install
      *:compiler) printf '%s ' gcc ;;
      apt-get:c++ | apk:c++) printf '%s ' g++ ;;
      dnf:c++ | zypper:c++) printf '%s ' gcc-c++ ;;
      pacman:c++ | brew:c++) ;; # part of the compiler
      apt-get:lua) printf '%s ' liblua5.4-dev ;;
      apk:lua) printf '%s ' lua5.4-dev ;;
      dnf:lua) printf '%s ' lua-devel ;;
      zypper:lua) printf '%s ' lua54-devel ;;
      brew:lua) printf '%s ' lua@5.4 ;;
      pacman:lua) printf '%s ' lua54 ;;
      apt-get:lua-interpreter | apk:lua-interpreter) printf '%s ' lua5.4 ;;
      zypper:lua-interpreter | pacman:lua-interpreter) printf '%s ' lua54 ;;
      brew:lua-interpreter) printf '%s ' lua@5.4 ;;
      *:lua-interpreter) printf '%s ' lua ;;
      apt-get:readline) printf '%s ' libreadline-dev ;;
      dnf:readline | zypper:readline) printf '%s ' readline-devel ;;
      apk:readline) printf '%s ' readline-dev ;;
      apt-get:blas) printf '%s ' libopenblas0 ;;
      pacman:blas | brew:blas | apk:blas) printf '%s ' openblas ;;
      dnf:blas) printf '%s ' openblas-devel ;;
      zypper:blas) printf '%s ' openblas-devel ;;
      apt-get:onednn) printf '%s ' libdnnl-dev ;;
      dnf:onednn | zypper:onednn) printf '%s ' onednn-devel ;;
      apk:onednn) ;; # not in the distribution
      apt-get:png) printf '%s ' libpng-dev ;;
      zypper:png) printf '%s ' libpng16-16 ;;
      *:png) printf '%s ' libpng ;;
      apt-get:jpeg) printf '%s ' libturbojpeg0-dev ;;
      dnf:jpeg) printf '%s ' turbojpeg ;;
      zypper:jpeg) printf '%s ' libturbojpeg0 ;;
      brew:jpeg) printf '%s ' jpeg-turbo ;;
      *:jpeg) printf '%s ' libjpeg-turbo ;;
      apt-get:zip) printf '%s ' libzip-dev ;;
      zypper:zip) printf '%s ' libzip5 ;;
      *:zip) printf '%s ' libzip ;;
      apt-get:hdf5) printf '%s ' libhdf5-dev ;;
      apt-get:libpython) printf '%s ' libpython3-dev ;;
      zypper:libpython) printf '%s ' python3-devel ;;
      dnf:libpython) printf '%s ' python3-libs ;;
      pacman:libpython | brew:libpython) printf '%s ' python ;;
      apk:libpython) printf '%s ' python3 ;;
      apt-get:rsvg) printf '%s ' librsvg2-2 ;;
      dnf:rsvg) printf '%s ' librsvg2 ;;
      zypper:rsvg) printf '%s ' librsvg-2-2 ;;
      *:rsvg) printf '%s ' librsvg ;;
      apt-get:cmocka) printf '%s ' libcmocka-dev ;;
      dnf:cmocka | zypper:cmocka) printf '%s ' libcmocka-devel ;;
      apk:cmocka) printf '%s ' cmocka-dev ;;
      apt-get:openmpi) printf '%s ' libopenmpi-dev openmpi-bin ;;
      dnf:openmpi) printf '%s ' openmpi-devel ;;
      zypper:openmpi) printf '%s ' openmpi4-devel ;;
      apk:openmpi) printf '%s ' openmpi-dev ;;
      apt-get:pexpect | apt-get:numpy | apt-get:h5py | apt-get:torch | \
        apt-get:nbconvert) printf 'python3-%s ' "$t" ;;
      dnf:pexpect | dnf:numpy | dnf:h5py | zypper:pexpect | zypper:numpy | \
        zypper:h5py | dnf:nbconvert | zypper:nbconvert) printf 'python3-%s ' "$t" ;;
      apk:pexpect | apk:numpy | apk:h5py) printf 'py3-%s ' "$t" ;;
      apk:python3-zmq) printf '%s ' py3-pyzmq ;;
      pacman:pexpect | pacman:numpy | pacman:h5py) printf 'python-%s ' "$t" ;;
      pacman:python3-zmq) printf '%s ' python-pyzmq ;;
      pacman:nbconvert) printf '%s ' jupyter-nbconvert ;;
      brew:python3-zmq) printf '%s ' 'pyzmq(pip)' ;;
      apk:nbconvert | brew:nbconvert) printf '%s ' 'nbconvert(pip)' ;;
      *:torch) printf '%s ' 'torch(pip)' ;;
      brew:pexpect | brew:h5py) printf '%s ' "$t(pip)" ;;
      pacman:python3) printf '%s ' python ;;
      pacman:pkg-config | brew:pkg-config | apk:pkg-config) printf '%s ' pkgconf ;;
      apt-get:ninja | dnf:ninja) printf '%s ' ninja-build ;;
      *) printf '%s ' "$t" ;;
    esac
  done
}
