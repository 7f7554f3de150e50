#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is installed serves other programs: test_installed.py SOURCE BUILD [CUDA]

Installs into a folder and there: what the libraries export, the examples of C
(by pkg-config and by CMake) and of Lua, the module in its host, packages. CUDA is
the plug-in with the emulated device, if it was built.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import search_paths

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(nacre 0.1 REQUIRED)
add_executable(tensors {source}/library/examples/fit_line.c)
target_link_libraries(tensors PRIVATE nacre::nacre)
"""

CPLUSPLUS = """#include <nacre/tensors.h>
int main() {
  const nacre_arg all[] = {nacre_named("x", nacre_int(1))};
  return all[0].n == 1 && *nacre_version() ? 0 : 1;
}
"""


def output(*command, **options):
    """The output of a command that succeeds."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def read(*path):
    """The text of a file."""
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def exported(library):
    """The names of the dynamic symbols that a library defines."""
    lines = output("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[2].split("@")[0] for line in lines
            if line.split()[1] != "A"}


def missing(library, form):
    """The undefined dynamic symbols of this form."""
    lines = output("nm", "-D", "--undefined-only", library).split()
    return [name for name in lines if re.match(form, name) and
            not name.startswith("nl_langinfo")]  # of the system


def check_symbols(source, library, module):
    """A symbol comes or goes only together with the header and the list."""
    listed = set(re.findall(r"\b(nacre_\w+);",
                            read(source, "library/libnacre.map")))
    declared = set(re.findall(r"NACRE_API[^;(]*?\b(nacre_\w+)\(",
                              read(source, "library/nacre/tensors.h")))
    assert exported(library) == listed == declared, (
        exported(library) ^ listed, listed ^ declared)
    assert exported(module) == {"luaopen_nacre"}, exported(module)
    for file in library, module:
        assert not missing(file, "(nc|nl|sh|lib)_"), missing(file, "n[cl]_")
        dynamic = output("readelf", "-dW", file)
        assert "liblua" not in dynamic and "readline" not in dynamic, dynamic
        assert "NODELETE" in dynamic and "STATIC_TLS" not in dynamic, dynamic
        assert "TEXTREL" not in dynamic and "PATH" not in dynamic, dynamic
    version = re.search(r'NC_VERSION "(\d+\.\d+)\.\d+"',
                        read(source, "core/tensor.h"))[1]
    assert f"[libnacre.so.{version}]" in output("readelf", "-dW", library)
    assert missing(module, "lua_"), "the module does not use the host's Lua"


def check_c(source, prefix, folder):
    """The example by pkg-config and by CMake; the header in C++."""
    lib = os.path.join(prefix, "lib")
    env = {**os.environ, "LD_LIBRARY_PATH": lib,
           "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig")}
    flags = output("pkg-config", "--cflags", "--libs", "nacre", env=env).split()
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    example = os.path.join(source, "library/examples/fit_line.c")
    program = os.path.join(folder, "tensors")
    output("cc", "-std=c11", *strict, example, *flags, "-o", program, env=env)
    assert output(program, env=env) == "slope 3.000\n"
    weights = os.path.join(folder, "net.safetensors")
    network = source + "/library/examples/inference"
    output(prefix + "/bin/nacre", network + ".lua", weights)
    output("cc", "-std=c11", *strict, network + ".c", *flags, "-o", program,
           env=env)
    assert output(program, weights, env=env) == \
        "classes: the same as in Lua\ndecoded: the same as in Lua\n"
    user = os.path.join(folder, "user.cpp")
    for file, text in ((user, CPLUSPLUS), (os.path.join(
            folder, "CMakeLists.txt"), CMAKE.format(source=source))):
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
    if shutil.which("c++"):
        output("c++", *strict, user, *flags, "-o", program, env=env)
        output(program, env=env)
    output("cmake", "-S", folder, "-B", folder + "/made",
           f"-DCMAKE_PREFIX_PATH={prefix}")
    output("cmake", "--build", folder + "/made")
    assert output(folder + "/made/tensors") == "slope 3.000\n"


def interpreter():
    """The name of a Lua 5.4, or None."""
    for name in "lua5.4", "lua54", "lua":
        if shutil.which(name) and "Lua 5.4" in output(name, "-v"):
            return name
    return None


def check_lua(source, prefix, cuda):
    """The example, and the module in a host that watches it."""
    lua = interpreter()
    if not lua:
        print("a Lua 5.4 was not found: the module is not tested")
        return False
    env = {**os.environ, "NACRE_CUDA": "off",
           "LUA_CPATH": os.path.join(prefix, "lib/lua/5.4/?.so")}
    text = output(lua, source + "/library/examples/fit_line.lua", env=env)
    assert text.startswith("slope 3.000\nfalse\tinner sizes differ"), text
    test = source + "/tests/shipping/module.lua"
    assert output(lua, test, env=env) == "ok\n"
    shown = source + "/tests/shipping/shown_tensors.lua"
    text = output(lua, shown, env=env)
    assert text == output(prefix + "/bin/nacre", shown, env=env), text
    assert "  of a dry run, no values\n" in text and "  ...  " in text, text
    if cuda: # not beside the module, nor in the working folder: in lib/nacre
        assert os.path.exists(prefix + "/lib/nacre/" + os.path.basename(cuda))
        env.update(NACRE_CUDA="emulated", LUA_CPATH="./lib/lua/5.4/?.so")
        assert output(lua, test, "cuda", env=env, cwd=prefix) == "ok\n"
    return True


def check_rockspec(source):
    """It is for this version."""
    rocks = glob.glob(source + "/*.rockspec")
    assert len(rocks) == 1, rocks
    version = re.search(r'NC_VERSION "([^"]*)"', read(source, "core/tensor.h"))
    assert rocks[0].endswith(f"/nacre-{version[1]}-1.rockspec"), rocks
    if shutil.which("luarocks"):
        output("luarocks", "lint", rocks[0])


def check_headers(source, folder):
    """The module is compiled with the headers that LuaRocks names, and needs
    no library of Lua."""
    place, build = folder + "/its own Lua", folder + "/module"
    os.mkdir(place)
    with open(place + "/lua.h", "w", encoding="utf-8") as f:
        f.write('#define LUA_VERSION_MAJOR "5"\n#define LUA_VERSION_MINOR "4"\n'
                '#define LUA_VERSION_RELEASE "9"\n')
    off = [f"-D{name}=OFF" for name in
           ("NACRE_PROGRAM", "NACRE_LIBRARY", "NACRE_EMULATED", "NACRE_CUDA",
            "BUILD_TESTING")]
    output("cmake", "-S", source, "-B", build, "-DLUA_INCLUDE_DIR=" + place,
           "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *off)
    commands = read(build, "compile_commands.json")
    assert "its own Lua" in commands, "other headers are included"
    assert "include/lua5" not in commands, "other headers are included, too"


def check_packages(source, build, folder):
    """The packages hold what is installed, and run elsewhere. Both tools write
    the build's install_manifest.txt, which uninstalling must not read."""
    output("cpack", "-G", "TGZ", "-B", folder, cwd=build)
    archive, = glob.glob(folder + "/*.tar.gz")
    output("tar", "xf", archive, "-C", folder)
    roots = glob.glob(folder + "/nacre-*/")
    if all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "file"))):
        output("cpack", "-G", "DEB", "-B", folder, cwd=build)
        package, = glob.glob(folder + "/*.deb")
        depends = output("dpkg-deb", "-f", package, "Depends")
        assert "libc6" in depends and "liblua5.4-0" in depends, depends
        output("dpkg-deb", "-x", package, folder + "/root")
        roots.append(folder + "/root/usr/")
    for root in roots:
        search_paths.check(root)
        for file in ("share/man/man1/nacre.1.gz", "lib/libnacre.so",
                     "share/bash-completion/completions/nacre",
                     "share/zsh/site-functions/_nacre", "lib/lua/5.4/nacre.so",
                     "share/doc/nacre/copyright", "lib/pkgconfig/nacre.pc"):
            assert os.path.exists(root + file), root + file
        assert not os.path.exists(root + "lib/nacre/installed_files.txt")
        env = {"PATH": "/usr/bin:/bin", "HOME": folder}
        output(root + "bin/nacre", "--tour", env=env, cwd=folder,
               stdin=subprocess.DEVNULL)


def check_uninstall(source, prefix):
    """What was installed goes, with the folders made for it; a stranger's file
    and empty folder stay, and so does what packages made later were made of."""
    kept = os.path.join(prefix, "lib/lua/5.4/theirs.lua")
    with open(kept, "w", encoding="utf-8"):
        pass
    env = {"PATH": os.environ["PATH"], "HOME": prefix}
    said = output(source + "/bootstrap", "uninstall", prefix, env=env)
    left = [os.path.join(where, file) for where, _, files in os.walk(prefix)
            for file in files]
    assert left == [kept], (left, said)
    assert not os.path.exists(prefix + "/share"), "a folder of ours stays"
    assert os.listdir(prefix + "/bin") == [], "a stranger's folder is gone"
    again = subprocess.run([source + "/bootstrap", "uninstall", prefix],
                           env=env, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "nothing to remove" in again.stderr, again


def main(source, build, cuda=""):
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "prefix")
        os.makedirs(prefix + "/bin")            # somebody else's, and empty
        output("cmake", "--install", build, "--prefix", prefix)
        search_paths.check(prefix)
        check_symbols(source, prefix + "/lib/libnacre.so",
                      prefix + "/lib/lua/5.4/nacre.so")
        check_c(source, prefix, folder)
        check_rockspec(source)
        check_headers(source, folder)
        check_packages(source, build, folder)
        skipped = not check_lua(source, prefix, cuda)
        check_uninstall(source, prefix)
        if skipped:
            sys.exit(77)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
