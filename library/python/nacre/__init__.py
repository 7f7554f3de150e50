# SPDX-License-Identifier: MIT
"""Nacre, the interactive shell for tensors, installed by pip.

The program is the command `nacre`, which is not written in Python; `python -m
nacre` runs the one of this environment.
"""
