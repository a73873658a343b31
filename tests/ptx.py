#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a kernel's PTX text, as far as ferry's own kernels need it.

ptx.py KERNELS.ptx ENTRY BLOCKS THREADS MEMORY PARAMETER...  MEMORY is a file, read and written; a parameter is
                                                             a number, or @N: the address of its byte N
"""
import re
import sys

ALL = (1 << 64) - 1
FIRST = 4096
OPERATIONS = {"mov": lambda a, b: a, "cvt": lambda a, b: a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
              "mul": lambda a, b: a * b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
              "xor": lambda a, b: a ^ b, "shr": lambda a, b: a >> b, "shl": lambda a, b: a << b}


def read_entry(text, entry):
    """The instructions of one kernel, the places of its labels, and the names of its parameters."""
    head, body = re.search(r"\.entry " + entry + r" \((.*?)\) \{(.*?)\n\}", text, re.S).groups()
    names = re.findall(r"\.param \.u64 (\w+)", head)
    code, labels = [], {}
    for line in (line.strip() for line in body.split("\n")):
        if line.endswith(":"):
            labels[line[:-1]] = len(code)
        elif line and not line.startswith("."):
            guard, name, rest = re.match(r"(?:@(!?%\w+) )?([\w.]+)\s*(.*);", line).groups()
            code.append((guard, name.split("."), [x.strip() for x in rest.split(",")] if rest else []))
    return code, labels, names


class Thread:
    """One thread; it stops at each shuffle until its warp has come there."""

    def __init__(self, kernel, memory, own, values):
        self.code, self.labels, self.names = kernel
        self.memory, self.r, self.values = memory, dict(own), values

    def get(self, word):
        return self.r[word] if word.startswith("%") else int(word, 0)

    def load(self, word, size):
        at = self.get(word.strip("[]")) - FIRST
        return int.from_bytes(self.memory[at:at + size], "little")

    def run(self):
        at = 0
        while True:
            guard, name, x = self.code[at]
            at += 1
            if guard and bool(self.r[guard.lstrip("!")]) == guard.startswith("!"):
                continue
            kind, mask = name[0], (1 << 32) - 1 if name[-1].endswith("32") else ALL
            if kind == "ret":
                return
            if kind == "bra":
                at = self.labels[x[0]]
            elif kind == "shfl":
                self.r[x[0]] = yield self.get(x[1]), int(x[2])
            elif kind == "red":
                place = self.get(x[0].strip("[]")) - FIRST
                new = (int.from_bytes(self.memory[place:place + 8], "little") + self.get(x[1])) & ALL
                self.memory[place:place + 8] = new.to_bytes(8, "little")
            elif kind == "ld":
                self.r[x[0]] = (self.values[self.names.index(x[1].strip("[]"))] if name[1] == "param"
                                else self.load(x[1], 1 if name[-1] == "u8" else 8))
            elif kind == "st":
                place, size = self.get(x[0].strip("[]")) - FIRST, 1 if name[-1] == "u8" else 8
                self.memory[place:place + size] = self.get(x[1]).to_bytes(8, "little")[:size]
            elif kind == "setp":
                a, b = self.get(x[1]), self.get(x[2])
                self.r[x[0]] = {"ge": a >= b, "eq": a == b, "ne": a != b}[name[1]]
            else:
                a, b = self.get(x[1]), self.get(x[2]) if len(x) > 2 else 0
                value = OPERATIONS[kind](a, b)
                narrow = kind == "cvt" and name[1] == "u32"
                self.r[x[0]] = value & ((1 << 32) - 1 if narrow else ALL if "wide" in name or kind == "cvt" else mask)


def run_warp(threads):
    runs = [t.run() for t in threads]
    asked = [next(r, None) for r in runs]
    while any(a is not None for a in asked):
        told = [asked[i + a[1]][0] if i + a[1] < len(asked) else a[0] for i, a in enumerate(asked)]
        asked = [next_of(r, v) for r, v in zip(runs, told)]


def next_of(run, value):
    try:
        return run.send(value)
    except StopIteration:
        return None


def main(path, entry, blocks, width, data, *parameters):
    with open(path, encoding="ascii") as f:
        kernel = read_entry(f.read(), entry)
    with open(data, "rb") as f:
        memory = bytearray(f.read())
    values = [FIRST + int(p[1:]) if p.startswith("@") else int(p) for p in parameters]
    for block in range(blocks):
        for warp in range(0, width, 32):
            run_warp([Thread(kernel, memory, {"%tid.x": warp + i, "%ctaid.x": block, "%ntid.x": width,
                                              "%nctaid.x": blocks}, values) for i in range(32)])
    with open(data, "wb") as f:
        f.write(memory)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
