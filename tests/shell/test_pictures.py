#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures at a terminal: which way :show goes, and the line of
nacre.progress.  Usage: test_pictures.py PROGRAM"""
import base64
import os
import re
import subprocess
import sys
import tempfile
import time

import pexpect

PROGRAM = os.path.abspath(sys.argv[1])
SHOW = ':show nacre.linspace(0,1,64):reshape(8,8)'
ASK = '\x1b_Gi=1,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c'
HOME = tempfile.mkdtemp()
CLEAN = {'PATH': os.environ['PATH'], 'HOME': HOME, 'LANG': 'C.UTF-8',
         'TERM': 'xterm-256color'}


class Session:
    def __init__(self, **env):
        self.p = pexpect.spawn(PROGRAM, ['-q', '--no-rc', '--no-history'],
                               env={**CLEAN, **env}, dimensions=(40, 80),
                               encoding='utf-8', timeout=60)
        self.p.expect('> ')

    def show(self, answer=None, code=SHOW):
        """What stands between the line typed and the note below."""
        self.p.sendline(code)
        if answer is not None:
            self.p.expect_exact(ASK)
            self.p.send(answer)
        self.p.expect(r'8x8 grey, 0\.\.1\r\n')
        out = self.p.before
        if answer is None:  # then the line typed stands before it
            out = out[out.index('\r\n') + 2:]
        return out.replace('\x1b[?2004l', '')

    def end(self):
        """No key went astray: the shell still reads."""
        self.p.sendline('6 * 7')
        self.p.expect(r'[\r\n]42\r\n')
        self.p.close(force=True)


def shown(answer=None, **env):
    s = Session(**env)
    out = s.show(answer)
    s.end()
    return out


def image(data):
    """The PNG image that base64 digits stand for."""
    raw = base64.b64decode(data, validate=True)
    assert raw[:8] == b'\x89PNG\r\n\x1a\n', raw[:8]


def test_protocols():
    out = shown(KITTY_WINDOW_ID='1')
    m = re.search('\x1b_Gf=100,a=T,q=2,c=8,r=4,m=0;([^\x1b]*)\x1b\\\\', out)
    assert m, out
    image(m.group(1))
    assert m.group(0) in shown(TERM='xterm-kitty')
    assert m.group(0) in shown(TERM_PROGRAM='ghostty')
    out = shown(TERM_PROGRAM='WezTerm')
    m = re.search('\x1b]1337;File=inline=1;size=(\\d+);width=8;height=4:'
                  '([^\x07]*)\x07', out)
    assert m and len(base64.b64decode(m.group(2))) == int(m.group(1)), out
    image(m.group(2))


def test_questions():
    assert '\x1b_Gf=100' in shown('\x1b_Gi=1;OK\x1b\\\x1b[?62c')
    out = shown('\x1b[?62;4;22c')
    assert '\x1bPq"1;1;64;64#0;2;0;0;0' in out and '\x1b\\' in out, out
    assert '▀' in shown('\x1b[?62;14;22c')
    begin = time.time()
    s = Session()
    assert '▀' in s.show('')  # a terminal that answers nothing
    assert time.time() - begin < 15
    assert ASK not in s.show()  # it is asked once
    s.end()


def test_blocks():
    exact = shown(TMUX='x', KITTY_WINDOW_ID='1', COLORTERM='truecolor')
    assert '\x1b[0;38;2;0;0;0;48;2;' in exact and ASK not in exact, exact
    assert '\x1b[0;38;5;16;48;5;' in shown(STY='x')
    for line in exact.rstrip('\r\n').split('\r\n'):
        assert line.endswith('\x1b[0m') and line.count('▀') == 32, line


def test_plain():
    for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
        out = shown(KITTY_WINDOW_ID='1', **env)
        assert '@@@@' in out and '\x1b_' not in out and '\x1bP' not in out
        assert '\x1b[0' not in out, out


def test_set():
    s = Session(KITTY_WINDOW_ID='1')
    s.p.sendline(':set graphics sixel')
    s.p.expect('> ')
    assert '\x1bPq' in s.show()
    s.p.sendline(':set graphics off')
    s.p.expect('> ')
    assert '\x1b_' not in s.show()
    s.end()


def test_heat():
    s = Session(COLORTERM='truecolor')
    s.p.sendline(':heat nacre.tensor{{-1,0},{1,2}}')
    s.p.expect('-2 .* 2\r\n')  # on both sides of 0: as far on each
    assert '▀' in s.p.before + s.p.after
    s.end()


def test_pipe():
    """No escape goes into a pipe, whatever the environment wants."""
    code = '%s\n:heat nacre.eye(3)\n:plot nacre.rand(9)\n' \
           'for i in nacre.progress(3) do end\n' % SHOW
    for env in ({'KITTY_WINDOW_ID': '1'}, {'CLICOLOR_FORCE': '1'}):
        r = subprocess.run([PROGRAM, '-i', '--no-rc'], input=code.encode(),
                           env={**CLEAN, **env}, capture_output=True)
        text = r.stdout + r.stderr
        assert b'@@' in text, text
        for bad in (b'\x1b_', b'\x1bP', b'\x1b]', b'38;'):
            assert bad not in text, text


def test_silence():
    loop = 'for i in nacre.progress(8) do ' \
           'local t = nacre.clock() while nacre.clock() < t + 0.1 do end end'
    r = subprocess.run([PROGRAM, '-e', loop], env=CLEAN, capture_output=True)
    assert r.stdout + r.stderr == b'' and r.returncode == 0, r


def test_progress():
    loop = 'for i in nacre.progress(%d, "epochs") do ' \
           'local t = nacre.clock() while nacre.clock() < t + 0.05 do end ' \
           '%s end'
    s = Session()
    s.p.sendline(loop % (24, ''))
    s.p.expect(r'epochs +\d+%  \d+/24  [\d.]+/s  [\d.]+ m?s left')
    s.p.expect(r'\repochs  24 in [\d.]+ s  [\d.]+/s\r\n')
    s.p.sendline(loop % (100, 'if i == 16 then break end'))
    s.p.expect(r'\repochs  15 of 100 in [\d.]+ (m?)s  [\d.]+/s\r\n')
    s.p.sendline(loop % (1000, ''))
    s.p.expect('left')
    s.p.sendintr()
    s.p.expect(r'epochs  \d+ of 1000 in ')
    s.p.expect('interrupted')
    s.end()


def test_progress_and_print():
    """What the loop prints has its lines for itself."""
    s = Session()
    s.p.sendline('p, w = print, io.write')
    s.p.sendline('for i in nacre.progress(24, "epochs") do '
                 'local t = nacre.clock() while nacre.clock() < t + 0.05 do '
                 'end (i % 2 == 0 and print or io.write)("row ", i, "\\n") end')
    s.p.expect(r'epochs +\d+%[^\r]*left *\r')
    s.p.expect(r'\r +\rrow [\t ]*\d+[\t ]*\r\n')
    s.p.expect(r'epochs +\d+%[^\r]*left *\r')
    s.p.expect(r'\r +\rrow [\t ]*\d+[\t ]*\r\n')
    s.p.expect(r'epochs  24 in [\d.]+ s  [\d.]+/s\r\n')
    s.p.sendline('print == p and io.write == w and "same"')
    s.p.expect('"same"\r\n')
    s.end()


def main():
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            test()
            print('ok', name[5:])


main()
