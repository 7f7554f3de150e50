#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ./bootstrap says while it installs: test_bootstrap.py SOURCE

On a machine without a compiler and with an apt-get that is played; then what
CMake says to compilers that are too old.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = """sh env sed grep find mktemp rm mkdir tee cat sort head tail date touch
sleep dirname ls cksum tr""".split()

# apt-get, of which the files in its folder say what it knows and does.
APT = """#!/bin/sh
here=${0%/*}
while [ "${1#-}" != "$1" ]; do
  case $1 in -o) shift ;; esac
  shift
done
verb=$1; shift
echo "$verb $*" >>"$here/calls"
case "$verb $*" in
  update*) [ ! -f "$here/offline" ] || { cat "$here/offline"; exit 0; }
    echo 'Get:1 http://a.example bookworm/main amd64 Packages [8788 kB]' ;;
  *' -s '*) for p; do ! echo "$p" | grep -qxf "$here/unknown" || exit 100
    done ;;
  *--assume-no*)
    echo '0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded.'
    echo 'Need to get 12.3 MB of archives.'
    echo 'After this operation, 45.6 MB of additional disk space will be used.'
    exit 1 ;;
  *) echo 'Get:1 http://a.example bookworm/main amd64 cmake amd64 3.25 [11 MB]'
    echo 'Unpacking cmake (3.25) ...'
    echo 'Setting up cmake (3.25) ...'
    ! [ -f "$here/broken" ] || { echo 'E: cmake does not fit'; exit 100; } ;;
esac
"""


class Machine:
    """A folder of programs, beside which there is nothing."""

    def __init__(self, source, folder):
        self.source, self.folder = source, folder
        os.mkdir(folder)
        for tool in TOOLS:
            os.symlink(shutil.which(tool), f"{folder}/{tool}")
        for name, text in (("apt-get", APT), ("nproc", "#!/bin/sh\necho 4\n"),
                           ("id", "#!/bin/sh\necho 0\n")):
            self.write(name, text)
        self.write("unknown", "")

    def write(self, name, text):
        """A program, or what the played apt-get reads."""
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(f"{self.folder}/{name}", 0o755)

    def bootstrap(self, *words, build=None):
        """The status, and the lines on stderr."""
        env = {"PATH": self.folder, "HOME": self.folder,
               "TMPDIR": self.folder,
               "NACRE_BUILD": build or self.folder + "/a build"}
        done = subprocess.run([self.source + "/bootstrap", *words], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True, check=False)
        assert done.stdout == "", done.stdout
        return done.returncode, done.stderr.splitlines()

    def calls(self):
        """The verbs and words of apt-get, since the last time."""
        with open(self.folder + "/calls", encoding="utf-8") as file:
            lines = file.read().splitlines()
        os.remove(self.folder + "/calls")
        return lines


def place(lines, *parts):
    """The number of the only line that has all the parts."""
    found = [i for i, line in enumerate(lines)
             if all(part in line for part in parts)]
    assert len(found) == 1, (parts, lines)
    return found[0]


def check_progress(machine):
    """First what comes and how long it takes, then a line for each step."""
    status, lines = machine.bootstrap("run")
    steps = [place(lines, "3 packages", "12.3 MB to download", "45.6 MB",
                   "building takes about 1 minute with 4 processors"),
             place(lines, "  downloading cmake [11 MB]"),
             place(lines, "  unpacking cmake"),
             place(lines, "  setting up cmake"),
             place(lines, "cannot build without: compiler make cmake")]
    assert steps == sorted(steps) and status == 1, lines
    for extra in "g++", "ccache", "libdnnl-dev", "librsvg2-2":
        assert not any(extra in line for line in lines), (extra, lines)
    machine.calls()
    machine.bootstrap("install")
    asked, = {line for line in machine.calls() if line.startswith("install -y")}
    assert {"g++", "ccache"} <= set(asked.split()), asked


def check_no_network(machine):
    """The cause comes first, and each package is named once."""
    packages = "gcc libc6-dev make cmake liblua5.4-dev libreadline-dev pkg-config"
    machine.write("unknown", ".*\n")
    machine.write("offline", "W: Failed to fetch http://a.example/  Temporary "
                  "failure resolving 'a.example'\n")
    status, lines = machine.bootstrap("run")
    steps = [place(lines, "Temporary failure resolving", "network?"),
             place(lines, "apt-get does not have: " + packages),
             place(lines, "cannot build without:")]
    assert steps == sorted(steps) and status == 1, lines
    words = " ".join(lines).split()
    for package in set(packages.split()) - {"make", "cmake"}: # also things
        assert words.count(package) == 1, (package, lines)
    assert not any(c.startswith("install -y") for c in machine.calls())
    machine.write("unknown", "ninja-build\n")     # the others come all the same
    _, lines = machine.bootstrap("run")
    place(lines, "apt-get does not have: ninja-build")
    asked, = {c for c in machine.calls() if c.startswith("install -y")}
    assert "cmake" in asked and "ninja-build" not in asked, asked
    os.remove(machine.folder + "/offline")
    machine.write("unknown", "")


def check_failure(machine):
    """apt's own words, when it cannot."""
    machine.write("broken", "")
    status, lines = machine.bootstrap("build")
    place(lines, "E: cmake does not fit")
    assert status == 1, lines


def check_folders(machine):
    """A folder that cannot be written is named, with what helps."""
    status, lines = machine.bootstrap("run", build="/proc/nacre")
    assert status == 1 and len(lines) == 1, lines
    assert re.search("/proc/nacre cannot be written.*NACRE_BUILD=DIR", lines[0])


OLD = """#!/bin/sh
for word; do
  case $word in {0}) echo "unknown option $word" >&2; exit 1 ;; esac
done
exec cc "$@"
"""


def check_old_compilers(source, folder):
    """One that does not know C17, or the levels of x86-64, is named."""
    flags = ["-std=c17"]
    if os.uname().machine == "x86_64":
        flags.append("-march=x86-64-v4")
    for flag in flags:
        build = folder + "/" + flag
        os.mkdir(build)
        with open(build + "/old cc", "w", encoding="utf-8") as file:
            file.write(OLD.format(flag))
        os.chmod(build + "/old cc", 0o755)
        done = subprocess.run(
            ["cmake", "-S", source, "-B", build + "/made",
             f"-DCMAKE_C_COMPILER={build}/old cc"], capture_output=True,
            text=True, check=False)
        said = " ".join(done.stderr.split())
        assert done.returncode and f"does not take {flag}: gcc 11" in said, said
        assert said.count("CMake Error") == 1, said


def main(source):
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(source, folder + "/bin")
        for check in (check_progress, check_no_network, check_failure,
                      check_folders):
            check(machine)
        check_old_compilers(source, folder)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
