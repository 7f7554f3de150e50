#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ARCHITECTURE, CONTRIBUTING and the READMEs of the folders name is
there: files, folders, functions of the C sources.

    developer_pages.py PROGRAM (which is not used)
"""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
TOPS = ('core', 'cuda', 'mpi', 'bindings', 'library', 'repl', 'tests', 'scripts',
        'docs')
FILE = r'[\w./-]+\.(?:c|h|cu|inc|def|lua|py|md|sh|cmake|txt|json|nacre)'
FOLDER = r'[\w.-]+/[\w./-]*/'


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def tree():
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def there(page, path):
    return any(os.path.exists(os.path.join(ROOT, folder, path))
               for folder in ('', os.path.dirname(page), page.split('/')[0],
                              'core'))


def missing(page, words, names):
    text = read(page)
    new = set(re.findall(r'^`(\S+)`, new:$', text, re.M))
    text = re.sub(r'^```.*?^```', '', text, flags=re.M | re.S)
    for term in set(re.findall(r'`([^`\n]+)`', text)) - new:
        for word in re.findall(r'\b(?:nc|nl|sh)_\w*\w\b', term):
            if word not in words and not re.search('_$|[A-Z]', word):
                yield word
        if re.fullmatch(FILE, term) and '/' not in term:
            if term not in names and term != 'NAME.lua':
                yield term
        elif re.fullmatch(f'{FILE}|{FOLDER}', term) and not there(page, term):
            yield term


def main():
    files = list(tree())
    words = set()
    for path in files:
        if path.endswith(('.c', '.h', '.cu', '.inc', '.def')):
            words.update(re.findall(r'\w+', read(path)))
    names = {os.path.basename(path) for path in files} | set(os.listdir(ROOT))
    pages = ['docs/ARCHITECTURE.md', 'CONTRIBUTING.md'] + [
        path for path in files if path.endswith('README.md') and
        not path.startswith('docs/')]
    bad = [f'{page}: there is no {term}' for page in pages
           for term in missing(page, words, names)]
    print('\n'.join(bad) or f'{len(pages)} pages')
    return bool(bad)


sys.exit(main())
