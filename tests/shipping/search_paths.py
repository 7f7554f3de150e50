#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nothing of the current folder becomes code: where the programs and libraries
of a folder look for others: search_paths.py FOLDER [COMPILER]

An element of RPATH or RUNPATH that is empty or relative is the current folder,
and so is a library whose name has a slash but does not begin with one. The
files are read here: no other program need be there. COMPILER makes files that
must be refused.
"""
import os
import struct
import subprocess
import sys
import tempfile

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
ET_EXEC, ET_DYN = 2, 3
STRTAB = 5
# An element is one name, or several with colons between them.
NAMES = {1: "NEEDED", 0x7ffffffd: "AUXILIARY", 0x7fffffff: "FILTER"}
PATHS = {15: "RPATH", 29: "RUNPATH", 0x6ffffefb: "DEPAUDIT",
         0x6ffffefc: "AUDIT"}


class Elf:
    """A program or shared library."""

    def __init__(self, data):
        self.data = data
        self.wide, self.order = data[4] == 2, "<" if data[5] == 1 else ">"
        self.kind, = self.unpack("H", 16)
        self.segments = []
        if self.kind in (ET_EXEC, ET_DYN):
            start, = self.unpack("Q" if self.wide else "I",
                                 32 if self.wide else 28)
            size, count = self.unpack("HH", 54 if self.wide else 42)
            self.segments = [self.segment(start + i * size)
                             for i in range(count)]

    def unpack(self, form, place):
        return struct.unpack_from(self.order + form, self.data, place)

    def segment(self, place):
        """(type, place in the file, address, bytes in the file)"""
        if self.wide:
            kind, _, offset, address, _, size = self.unpack("IIQQQQ", place)
        else:
            kind, offset, address, _, size = self.unpack("IIIII", place)
        return kind, offset, address, size

    def text(self, place):
        return self.data[place:self.data.index(b"\0", place)].decode(
            errors="replace")

    def in_file(self, address):
        for kind, offset, start, size in self.segments:
            if kind == PT_LOAD and start <= address < start + size:
                return address - start + offset
        raise ValueError(f"no byte of the file is at {address:#x}")

    def entries(self):
        """The dynamic section: (tag, value)."""
        form = "qQ" if self.wide else "iI"
        each = struct.calcsize(self.order + form)
        for kind, offset, _, size in self.segments:
            if kind == PT_DYNAMIC:
                for place in range(offset, offset + size, each):
                    tag, value = self.unpack(form, place)
                    if tag == 0:
                        break
                    yield tag, value

    def wrong(self):
        """What the dynamic loader would take from the current folder."""
        found = list(self.entries())
        strings = [self.in_file(v) for tag, v in found if tag == STRTAB]
        for tag, value in found:
            if tag in PATHS:
                path = self.text(strings[0] + value)
                if not all(map(fixed, path.split(":"))):
                    yield f"{PATHS[tag]} [{path}]"
            elif tag in NAMES:
                name = self.text(strings[0] + value)
                if not name or "/" in name and not fixed(name):
                    yield f"{NAMES[tag]} [{name}]"
        for kind, offset, _, _ in self.segments:
            if kind == PT_INTERP and not fixed(self.text(offset)):
                yield f"interpreter [{self.text(offset)}]"


def fixed(path):
    """It begins at the root, or where the file is."""
    return path.split("/")[0] in ("", "$ORIGIN", "${ORIGIN}") and path != ""


def elf_files(folder):
    """(path, Elf) of each program and shared library, links left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
                file.seek(0)
                elf = Elf(file.read())
            if elf.kind in (ET_EXEC, ET_DYN):
                yield path, elf


def check(folder):
    """Fails if a file of the folder is wrong, or if there are none."""
    files = list(elf_files(folder))
    assert any(os.path.basename(path) == "nacre" for path, _ in files), (
        f"{folder} has no program")
    wrong = [f"{path}: {what}" for path, elf in files for what in elf.wrong()]
    assert not wrong, "\n".join(wrong)
    return len(files)


def self_test(compiler):
    """What the linker makes of such paths is found, and what is right not."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "lib.so")
        os.mkdir(os.path.join(folder, "made"))
        for option, wrong in (
                ("-rpath,::::", True), ("-rpath,/usr/lib:", True),
                ("-rpath,:/usr/lib", True), ("-rpath,.", True),
                ("-rpath,lib", True), ("-rpath,/a::/b", True),
                ("-rpath,$LIB", True), ("-f,./x.so", True),
                ("-rpath,$ORIGIN/../lib", False), ("-f,x.so", False),
                ("-rpath,/a:${ORIGIN}:/b", False)):
            for form in "--enable-new-dtags", "--disable-new-dtags":
                link(compiler, folder, library, f"-Wl,{form},{option}")
                (_, elf), = elf_files(folder)
                assert bool(list(elf.wrong())) == wrong, (option, form)
                os.remove(library)
        made = os.path.join("made", "needed.so") # it has no name of its own
        link(compiler, folder, made)
        link(compiler, folder, library, "-Wl,--no-as-needed", made)
        wrong = [w for _, elf in elf_files(folder) for w in elf.wrong()]
        assert wrong == [f"NEEDED [{made}]"], wrong


def link(compiler, folder, output, *options):
    subprocess.run([compiler, "-shared", "-nostdlib", "-o", output, "-xc",
                    os.devnull, "-xnone", *options], cwd=folder, check=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        self_test(sys.argv[2])
    print(check(sys.argv[1]), "files")
