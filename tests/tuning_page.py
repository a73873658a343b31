#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints docs/tuning.md from solver/tuning/strategies.def, solver/tuning/stats.def and solver/tuning/tuning.def."""
import re, sys

root = sys.argv[1] if len (sys.argv) > 1 else "."


def rows (name, macro):
  """The arguments of each row; strings that stand side by side are one. A comment is a row of its own."""
  text = open (f"{root}/solver/tuning/{name}.def").read ()
  text = text[text.index ("*/") + 2:]
  for heading, body in re.findall (r"/\* ---- (.*?) ---- \*/|^(?:%s) \(((?:[^()\"]|\"[^\"]*\")*)\)$" % macro, text, re.M | re.S):
    if heading:
      yield [heading]
      continue
    yield [re.sub (r'"\s*"', "", re.sub (r"\s+", " ", x)).strip ().strip ('"')
           for x in re.findall (r'(?:"[^"]*"\s*)+|[^,"]+', body) if x.strip ()]


print ("""# Tuning

For developers and ablations; nobody who plans needs any of it. `ferry solve --tune NAME=VALUE,...` switches a
strategy off (`walk=0`) or sets a number (`walk_idle=500`, or `rounding_room_ppm.1=995000` of a list, counted from 0).
`ferry solve -v` ends with one row a strategy. This page is made by `tests/tuning_page.py` from `solver/tuning/strategies.def`,
`solver/tuning/stats.def` and `solver/tuning/tuning.def`, where these are said once. [ablation.md](ablation.md) says
what each strategy is worth, and why it stays.

## Strategies

Each stage runs its strategies in this order. A strategy may spend one part in so many of an attempt's ticks, or of
the ticks that are left to the other stages; 0: it says itself.

| stage | name | applies | part | what it tries |
|---|---|---|---|---|""")
for stage, name, applies, part, says in rows ("strategies", "STRATEGY"):
  print (f"| {stage.lower ()} | `{name}` | {applies.replace ('_', ' ')} | {part} | {says} |")
print ("""
## What is counted

| column | says |
|---|---|""")
for name, says in rows ("stats", "STAT"):
  print (f"| `{name}` | {says} |")
print ("""
## Numbers

Shares are in millionths ("ppm"), "part" is one in so many, ticks are simulated events or their like.""")
for row in rows ("tuning", "TUNE|LIST"):
  if len (row) == 1:
    print (f"\n### {row[0][0].upper ()}{row[0][1:]}\n\n| name | value | from | to | why |\n|---|---|---|---|---|")
  elif len (row) == 5:
    name, value, least, most, why = row
    print (f"| `{name}` | {value} | {least} | {most} | {why} |")
  else:
    name, count, least, most, why = row[:5]
    assert len (row) == 5 + int (count), row
    print (f"| `{name}` | {', '.join (row[5:])} | {least} | {most} | {why} |")
