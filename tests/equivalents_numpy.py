#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of docs/guide/from-numpy.md: NumPy's cell of a row gives what
Nacre's does.  Usage: equivalents_numpy.py PROGRAM"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
GUIDE = os.path.join(HERE, '../docs/guide/from-numpy.md')


def rows(text):
    """The cells of the rows that hold code, as tests/equivalents.lua counts
    them."""
    for line in text.splitlines():
        if not line.startswith('|'):
            continue
        cells, cell, quoted = [], '', False
        for c in line:
            quoted ^= c == '`'
            if c == '|' and not quoted:
                cells.append(cell.strip())
                cell = ''
            else:
                cell += c
        if cells[2].startswith('`'):
            yield cells[1].strip('`'), cells[2].strip('`')


def text(value):
    """As equivalents.lua writes what is no tensor."""
    if isinstance(value, (tuple, list)):
        return ','.join(map(text, value))
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return str(value)


def same(got, want):
    want = np.asarray(want)
    return got.shape == want.shape and np.allclose(got, want, 1e-6, 1e-12)


def main():
    program = os.path.abspath(sys.argv[1])
    with open(GUIDE, encoding='utf-8') as f:
        guide = f.read()
    setup = re.search(r'<!-- setup -->\n```python\n(.*?)```', guide, re.S)
    compared, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, os.path.join(HERE, 'equivalents.lua'), folder],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for k, (python, lua) in enumerate(rows(guide), 1):
            names = {'np': np}
            exec(setup.group(1), names)
            want = eval(python, names)
            path = os.path.join(folder, str(k))
            if os.path.exists(path + '.npy'):
                got = np.load(path + '.npy')
                ok = same(got, want)
            else:
                with open(path + '.txt', encoding='utf-8') as f:
                    got = f.read()
                ok = got == text(want)
            compared += 1
            if not ok:
                wrong += 1
                print(f'{python}  {lua}\n{want!r}\n{got!r}')
    print(compared, 'rows compared,', wrong, 'differ')
    return wrong > 0 or compared < 80


sys.exit(main())
