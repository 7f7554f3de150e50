#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is written about the program is so: its options in the table, in
--help, in the manual page and in the completions of bash and zsh; the links
and the code of the guides.  Usage: test_documentation.py PROGRAM"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
PROGRAM = os.path.abspath(sys.argv[1])
CLEAN = {**os.environ, 'LC_ALL': 'C.UTF-8'}
NAME = r'(?<![\w-])--?[A-Za-z][A-Za-z-]*'


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def output(*words, check=True):
    r = subprocess.run(words, capture_output=True, text=True, env=CLEAN,
                       cwd=ROOT, check=False)
    assert not check or r.returncode == 0, (words, r.stderr)
    return r.stdout + r.stderr


def table():
    """The options in repl/host/options.c."""
    text = read('repl/host/options.c')
    rows = text[text.index('} known[] = {'):text.index('};\n\nenum { NKNOWN')]
    names = set(re.findall(r'\{ "(--?[A-Za-z-]+)"', rows))
    assert len(names) > 20, names
    return names


def listed(text):
    """The options that a --help speaks of."""
    return set(re.findall(NAME, re.sub(r'^usage:.*$', '', text, flags=re.M)))


def same(what, got, want):
    assert got == want, f'{what}: too many {sorted(got - want)}, ' \
                        f'missing {sorted(want - got)}'


def test_help():
    same('--help', listed(output(PROGRAM, '--help')), table())


def test_manual():
    text = read('docs/nacre.1').replace('\\-', '-')
    text = re.sub(r'\\f.|"', '', text)
    options = text[text.index('.SH OPTIONS'):text.index('.SH AT THE PROMPT')]
    heads = re.findall(r'^\.TP\n\.[BIR]+ (.*)$', options, re.M)
    same('nacre.1', set(re.findall(NAME, '\n'.join(heads))), table())
    if shutil.which('groff'):
        said = output('groff', '-man', '-ww', '-z', '-Tutf8', 'docs/nacre.1')
        assert said == '', said


def test_version():
    """One number, in core/tensor.h; the commit is that of the checkout."""
    number = re.search('#define NC_VERSION "(.*)"', read('core/tensor.h')).group(1)
    assert f'"nacre {number}"' in read('docs/nacre.1')
    for option in '-v', '--version':
        line = output(PROGRAM, option).splitlines()[0]
        found = re.fullmatch(r'nacre (\S+)( \([0-9a-f]{7,}(-dirty)?\))?  '
                             r'Lua 5\.4\.\d+', line)
        assert found and found.group(1) == number, line


def commit(source, git):
    """What a build of that folder says of its commit."""
    out = os.path.join(source, 'out.c')
    output('cmake', f'-DGIT={git}', f'-DSOURCE={source}', f'-DOUTPUT={out}',
           '-P', 'repl/commit.cmake')
    with open(out, encoding='utf-8') as f:
        return re.search('sh_commit.. = "(.*)";', f.read()).group(1)


def test_commit():
    git = shutil.which('git')
    if not git or not shutil.which('cmake'):
        return
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            return output(git, '-C', folder, '-c', 'user.name=n',
                          '-c', 'user.email=e', *words)
        file = os.path.join(folder, 'file')
        for text in 'one', 'two':
            with open(file, 'w', encoding='utf-8') as f:
                f.write(text)
            if text == 'one':
                assert commit(folder, '') == ''
                run('init', '-q')
                run('add', 'file')
            else:
                assert commit(folder, git) == f' ({name}-dirty)'
            run('commit', '-q', '-am', text)
            name = run('rev-parse', '--short', 'HEAD').strip()
            assert commit(folder, git) == f' ({name})', name
        assert commit(folder, '') == ''


def bash(*words):
    """What bash offers for the last word."""
    script = 'source scripts/completion/nacre.bash; COMP_WORDS=("$@"); ' \
             'COMP_CWORD=$(($# - 1)); _nacre; printf "%s\\n" "${COMPREPLY[@]}"'
    out = output('bash', '-c', script, 'bash', PROGRAM, *words, check=False)
    return set(out.split())


def test_bash():
    if not shutil.which('bash'):
        return
    names = table()
    same('bash', bash('-'), names)
    same('bash, long', bash('--'), {n for n in names if n[:2] == '--'})
    assert bash('--see') == {'--seed'}
    assert bash('--color', '=', 'a') == {'auto', 'always'}
    assert bash('--nan', '=') == {'off', 'warn', 'trap'}
    assert bash('--device', 'c') == {'cpu', 'cuda'}
    assert bash('scripts/dig') == {'scripts/digits.lua'}
    same('bash, --test', bash('--test', '-'),
         listed(output(PROGRAM, '--test', '--help')))
    assert 'tests/transcripts/first.nacre' in bash('--test', 'tests/transcripts/fi')


def zsh(*words):
    script = '_describe() { print -rl -- $specs }; compadd() { print -rl $* };' \
             '_files() { print files $2 }; words=("$@"); CURRENT=$#;' \
             'source scripts/completion/_nacre'
    return output('zsh', '-f', '-c', script, 'zsh', PROGRAM, *words)


def test_files_of_completion():
    """Each kind of file that is opened by its name is offered."""
    rows = re.findall(r'^  (?:ONE|MANY|TEXT|ALSO) *\((\w+),',
                      read('core/file_formats.h'), re.M)
    kinds = set(rows) | {'lua', 'gz'}
    assert len(kinds) > 10, kinds
    names = re.findall(r'^\| (`\..*?) \|', read('docs/guide/files.md'), re.M)
    same('docs/guide/files.md', set(re.findall(r'`\.(\w+)`', ' '.join(names))),
         kinds - {'lua'})
    with tempfile.TemporaryDirectory() as folder:
        names = {os.path.join(folder, 'x.' + kind) for kind in kinds | {'c'}}
        for name in names:
            with open(name, 'w', encoding='utf-8'):
                pass
        if shutil.which('bash'):
            same('files of bash', bash(os.path.join(folder, 'x')),
                 names - {os.path.join(folder, 'x.c')})
    if shutil.which('zsh'):
        offered = zsh('x').split('*.(')[1].split(')')[0]
        same('files of zsh', set(offered.split('|')), kinds)


def test_zsh():
    if not shutil.which('zsh'):
        return
    lines = zsh('-').splitlines()
    same('zsh', {line.split(':')[0] for line in lines}, table())
    assert '--seed:seed of the random numbers' in lines, lines
    assert 'cuda' in zsh('--device', '').split()
    assert zsh('') == 'files *.lua\n'
    tests = {line.split(':')[0] for line in zsh('--test', '-').splitlines()}
    same('zsh, --test', tests, listed(output(PROGRAM, '--test', '--help')))


def pages():
    yield 'README.md'
    for folder, _, files in os.walk(os.path.join(ROOT, 'docs')):
        for name in files:
            if name.endswith('.md'):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def anchors(text):
    for head in re.findall(r'^#+ (.*)$', text, re.M):
        yield re.sub(r'[^\w -]', '', head.lower()).replace(' ', '-')


def test_links():
    for page in pages():
        text = read(page)
        for to in re.findall(r'\]\(([^)]+)\)', text):
            if '://' in to:
                continue
            path, _, anchor = to.partition('#')
            there = os.path.normpath(
                os.path.join(os.path.dirname(page), path) if path else page)
            assert os.path.exists(os.path.join(ROOT, there)), (page, to)
            assert not anchor or anchor in anchors(read(there)), (page, to)


def test_index():
    index = read('docs/guide/README.md')
    for name in os.listdir(os.path.join(ROOT, 'docs/guide')):
        if name.endswith('.md') and name != 'README.md':
            assert f'({name})' in index, name


def sources(*ends):
    """The text of each file of the product that has one of these endings."""
    for top in 'core', 'cuda', 'mpi', 'bindings', 'library', 'repl':
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            for name in files:
                if name.endswith(ends):
                    yield read(os.path.join(folder, name))


def source(name):
    """The text of the one file of the product of this name."""
    found, = [os.path.join(folder, name)
              for top in ('core', 'cuda', 'bindings', 'library', 'repl')
              for folder, _, files in os.walk(os.path.join(ROOT, top))
              if name in files]
    return read(found)


def section(page, head):
    return re.search(rf'^## {head}\n(.*?)(?=^## |\Z)', read(page),
                     re.M | re.S).group(1)


def cells(text):
    """The rows of the tables, without their heads."""
    rows = [[cell.strip() for cell in row.strip('|').split('|')]
            for row in re.findall(r'^\|.*\|$', text, re.M)]
    return [row for k, row in enumerate(rows)
            if not row[0].startswith('---') and
            (k + 1 == len(rows) or not rows[k + 1][0].startswith('---'))]


MEASUREMENTS = 'docs/measurements'


def test_measurements():
    """One file for each kind of measurement, whose command the README says."""
    kinds = {row[0].strip('`') for row in
             cells(section(f'{MEASUREMENTS}/README.md', 'The commands'))}
    have = []
    for name in os.listdir(os.path.join(ROOT, MEASUREMENTS)):
        if name != 'README.md':
            found = re.fullmatch(r'\d{4}-\d\d-\d\d-([a-z]+)\.md', name)
            assert found and found[1] in kinds, name
            have.append(found[1])
    old = {kind for kind in have if have.count(kind) > 1}
    assert not old, f'an older run of {old} is still there'


def sources_of_figures(page):
    """The rows of tables, each with the measurement that is named in it or at
    the end of the paragraph above the table, as a match, or None."""
    link = r'\[([^]]*)\]\((?:\S*/)?(\d{4}-\d\d-\d\d)(-[a-z]+\.md)\)'
    above = None
    for block in re.split(r'\n\n+', read(page)):
        for row in cells(block):
            yield row, re.search(link, ' '.join(row)) or above
        above = re.search(link + r'\):$', block)


def check_figures(page, row, link):
    """The number of figures of a row, which the measurement has."""
    title, date, kind = link.groups()
    assert title == date or not title.startswith('20'), (page, title)
    text = read(f'{MEASUREMENTS}/{date}{kind}')
    have = [float(n) for n in re.findall(r'\d+(?:\.\d+)?', text)]
    figures = re.findall(r'(?<![\w.-])\d+\.\d+(?![\w.-])', ' '.join(row[1:]))
    for figure in figures:
        digits = len(figure.split('.')[1])
        assert any(round(n, digits) == float(figure) for n in have), \
            (page, row, figure)
    return len(figures)


def test_figures():
    """A figure in a table of a page is in the measurement that is named; every
    table of performance.md names one."""
    figures = 0
    for page in 'docs/guide/performance.md', 'docs/guide/fusion.md':
        for row, link in sources_of_figures(page):
            assert link or 'performance' not in page, (page, row)
            figures += check_figures(page, row, link) if link else 0
    assert figures > 30, figures


def test_newest_figures():
    """README.md and performance.md have the figures of the newest files."""
    output(sys.executable, 'scripts/bench/figures.py', '--check')


SETTINGS = 'docs/guide/settings.md'


def test_environment():
    """Every variable that is read is on the page, and in the manual page if it
    is ours; what is on the page is in the sources."""
    page = set(re.findall('`([A-Z][A-Z0-9_]+)`', '\n'.join(
        row[0] for row in cells(section(SETTINGS, 'Environment variables')))))
    read_ = set()
    text = '\n'.join(sources('.c', '.lua', '.h', '.cu'))
    for reader in (r'(?:getenv|variable|inlist)\(?[^";]{0,12}"([A-Z_0-9]+)"',
                   r'"(NACRE_[A-Z_]+)"'):
        read_ |= set(re.findall(reader, text))
    read_ -= {'_5_4', 'PWD'}            # PWD is in the text of a hint
    quoted = set(re.findall('"=?([A-Z][A-Z_0-9]+)"', text))
    same('environment variables', page & (read_ | quoted), page)
    same('environment variables', read_ & page, read_)
    manual = section_of_manual('ENVIRONMENT')
    ours = {name for name in read_ if name.startswith('NACRE_')}
    same('nacre.1, environment', ours & set(re.findall('[A-Z0-9_]+', manual)), ours)


def section_of_manual(head):
    return re.search(rf'^\.SH {head}\n(.*?)(?=^\.SH )', read('docs/nacre.1'),
                     re.M | re.S).group(1)


def test_settings():
    """Names, values and what they may be, as :set has them."""
    script = """local settings = require "nacre.settings"
      for _, row in ipairs(settings.list) do
        print(table.concat({row[1], settings.may(row[1])}, "|"))
      end"""
    have = output(PROGRAM, '-e', script).split('\n')
    rows = cells(section(SETTINGS, 'Settings'))
    assert [f'{row[0][1:-1]}|{row[2]}' for row in rows] == have[:-1], have
    for name, first, *_ in rows:
        if first[0] == '`' and name != '`device`':
            says = output(PROGRAM, '-e', 'require "nacre.set_command".run('
                          f'{{fail = print}}, "{name[1:-1]}")')
            assert says.split()[:2] == [name[1:-1], first[1:-1]], says


def test_keys():
    page = set(re.findall('`(nacre-[a-z-]+)`', section(SETTINGS, 'Keys')))
    code = ''.join(source('readline_%s.c' % part)
                   for part in ('keys', 'draw', 'menu', 'suggest'))
    same('keys', page, set(re.findall(r'rl_add_defun\("([a-z-]+)"', code)))


def test_build_options():
    page = set(re.findall('^\\| `(NACRE_[A-Z_]+)`',
                          section('docs/guide/install.md', 'Build options'),
                          re.M))
    text = ''
    for folder, dirs, files in os.walk(ROOT):
        dirs[:] = [d for d in dirs if not d.startswith(('build', '.'))]
        for name in files:
            if name == 'CMakeLists.txt' or name.endswith('.cmake'):
                text += read(os.path.join(folder, name))
    same('build options', page, set(re.findall(
        r'^ *(?:option|set)\((NACRE_[A-Z_]+) (?=[^)]*CACHE|")', text, re.M)))


def test_errors():
    """The codes of core/error_codes.h and what they mean."""
    have = re.findall(r'X\((E\w+), +"(.*?)"\)', source('error_codes.h'))
    rows = cells(section('docs/guide/errors.md', 'Codes'))
    assert sorted((row[0][1:-1], row[1]) for row in rows) == sorted(have), have


def test_limits():
    page = dict(cells(section('docs/guide/limits.md', 'Numbers')))
    text = '\n'.join(sources('.c', '.h', 'settings.lua'))
    for name, pattern in (
            ('dimensions of a tensor', r'define NC_MAXDIM (\d+)'),
            ('CPU threads', r'"threads", external[^}]*integer\(1, (\d+)\)'),
            ('CUDA devices', r'define NC_MAXACCEL (\d+)'),
            ('emulated CUDA devices', r'define EMU_DEVICES +(\d+)'),
            ('bytes of a `.npy` header', r'define NPY_MAXHEADER (\d+)')):
        assert set(re.findall(pattern, text)) == {page[name]}, name
    einsum = re.search(r'define\("einsum",.*?"sums of',
                       source('tensor_products.lua'), re.S)[0]
    assert page['operands of `einsum` that are not in a list'] == \
        str(einsum.count(':any'))


def test_embedding():
    code = read('docs/guide/embedding.c')
    blocks = re.findall(r'```c\n(.*?)```', read('docs/guide/embedding.md'), re.S)
    assert len(blocks) == 3
    for block in blocks:
        assert block in code, block


def test_list_of_tests():
    """tests/README.md names files that are there, and the pitfall in each."""
    text = read('tests/README.md')
    rows = re.findall(r'^\| (.*?) \|(?:.*\|)? (`.*`) \|$', text, re.M)
    names = [row[0] for row in rows]
    assert [n for n in names if n[0] == 'P'] == \
        ['P%d' % i for i in range(1, 20) if i != 16], names
    assert len([n for n in names if n[0] != 'P']) == 12, names
    for name, files in rows:
        for path in re.findall(r'`(.*?)`', files):
            found = read('tests/' + path)
            assert name[0] != 'P' or re.search(rf'\b{name}\b', found), \
                (name, path)


def test_scripts():
    """Those with arguments say what they take, and refuse what they do not."""
    for words in ((PROGRAM, 'scripts/crossover.lua'),
                  (sys.executable, 'scripts/bench/suite.py', PROGRAM),
                  (sys.executable, 'scripts/bench/process_bench.py', PROGRAM)):
        assert output(*words, '--help').startswith('usage: '), words
        r = subprocess.run([*words, 'nosuch'], capture_output=True,
                           text=True, env=CLEAN, cwd=ROOT, check=False)
        assert r.returncode == 2 and 'nosuch' in r.stderr, (words, r.stderr)
        assert 'usage: ' in r.stderr and r.stdout == '', (words, r.stdout)


def main():
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            try:
                test()
                print('ok', name[5:])
            except AssertionError as e:
                failed += 1
                print('FAIL', name[5:], e)
    return failed > 0


sys.exit(main())
