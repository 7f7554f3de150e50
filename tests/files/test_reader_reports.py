#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process that reads HDF5 files, under AddressSanitizer. Its end is an error
of the load, so that nobody would see what it reported: the reports go to files
here, and none may be about our code. Those about the HDF5 library are counted.
Run by: tests/files/test_reader_reports.py PROGRAM [OPTION OF bad_files.lua...]"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BAD_FILES = pathlib.Path(__file__).resolve().parent / "bad_files.lua"
OURS = re.compile(r"/(core|bindings)/\S+\.c:\d+")


def culprit(report):
    """Of the first frame that is not the sanitizer's: its line."""
    frames = re.findall(r"^ +#\d+ 0x.*", report, re.M)
    for frame in frames:
        if "libsanitizer" not in frame and "__interceptor" not in frame:
            return frame
    return report


with tempfile.TemporaryDirectory() as folder:
    options = os.environ.get("ASAN_OPTIONS", "")
    os.environ["ASAN_OPTIONS"] = f"{options}:log_path={folder}/report"
    done = subprocess.run([sys.argv[1], BAD_FILES, "only=hdf5",
                           *(sys.argv[2:] or ["seed=3", "files=30"])],
                          check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    reports = [path.read_text(errors="replace")
               for path in pathlib.Path(folder).iterdir()]
print(f"{done.stdout.strip()}; {len(reports)} reports about the library")
assert done.returncode == 0, done.returncode
for report in reports:
    assert not OURS.search(culprit(report)), report
