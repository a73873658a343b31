#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of operator calls for `ferry import`, of steps that are long and odd.

made_log.py gan STEPS > LOG: a GAN whose discriminator is unrolled over so many updates, four layers each.
made_log.py lstm STEPS > LOG: one LSTM layer over so many moments.

Ops stand on a tape and their gradients on the same tape, so gradients of gradients come out as in a framework."""
import json
import sys

FLOPS, BYTES_PER_S, LEAST_NS = 5e12, 700e9, 3000
ROWS, GAN_WIDTH, LSTM_ROWS, LSTM_WIDTH, LAYERS = 4096, 1024, 2048, 1024, 4


class Tensor:
  def __init__ (self, index, shape):
    self.id, self.shape = index, shape
    self.items = 1
    for edge in shape:
      self.items *= edge
    self.bytes = 4 * self.items


class Tape:
  def __init__ (self):
    self.ops, self.constants, self.count = [], [], 0

  def new (self, shape):
    self.count += 1
    return Tensor (self.count - 1, shape)

  def constant (self, rows, columns):
    self.constants.append (self.new ((rows, columns)))
    return self.constants[-1]

  def op (self, name, args, shape, flops, back=None):
    out = self.new (shape)
    self.ops.append ((name, args, out, flops, back))
    return out

  def product (self, a, b, turn_a=False, turn_b=False):
    m, k = (a.shape[1], a.shape[0]) if turn_a else a.shape
    n = b.shape[0] if turn_b else b.shape[1]

    def back (g):
      of_a = self.product (b, g, turn_b, True) if turn_a else self.product (g, b, False, not turn_b)
      of_b = self.product (g, a, True, turn_a) if turn_b else self.product (a, g, not turn_a, False)
      return [(a, of_a), (b, of_b)]
    return self.op ("mm", [a, b], (m, n), 2 * m * k * n, back)

  def each (self, name, a):
    return self.op (name, [a], a.shape, a.items * 10, lambda g: [(a, self.pair (name + "_b", g, a))])

  def pair (self, name, a, b):
    def back (g):
      if name in ("add", "sub"):
        return [(a, g), (b, g)]
      return [(a, self.pair ("mul", g, b)), (b, self.pair ("mul", g, a))]
    return self.op (name, [a, b], a.shape, a.items * 10, back)

  def loss (self, a):
    return self.op ("sum", [a], (1,), a.items * 5,
                    lambda g: [(a, self.op ("expand", [g], a.shape, a.items * 5))])

  def gradients (self, of, to):
    grads = {of.id: self.op ("ones", [], of.shape, 1)}
    depends, ops = {x.id for x in to}, list (self.ops)
    for _, args, out, _, _ in ops:
      if any (a.id in depends for a in args):
        depends.add (out.id)
    for _, args, out, _, back in reversed (ops):
      if out.id not in grads or not back or not any (a.id in depends for a in args):
        continue
      for a, g in back (grads[out.id]):
        if a.id in depends:
          grads[a.id] = self.pair ("add", grads[a.id], g) if a.id in grads else g
    return [grads[x.id] for x in to]

  def used (self, keep):
    """The ops that something kept depends on."""
    wanted, ops = {t.id for t in keep}, []
    for op in reversed (self.ops):
      if op[2].id in wanted:
        ops.append (op)
        wanted |= {a.id for a in op[1]}
    return ops[::-1], wanted

  def write (self, keep):
    def put (**fields):
      print (json.dumps (fields, sort_keys=True))
    ops, wanted = self.used (keep)
    last = {a.id: i for i, op in enumerate (ops) for a in op[1] + [op[2]]}
    stays = {t.id for t in keep} | {t.id for t in self.constants}
    put (INSTRUCTION="ANNOTATE", ANNOTATION="START")
    for t in self.constants:
      if t.id in wanted:
        put (INSTRUCTION="CONSTANT", NAME="x%d" % t.id)
        put (INSTRUCTION="MEMORY", NAME="x%d" % t.id, MEMORY=str (t.bytes))
    for i, (name, args, out, flops, _) in enumerate (ops):
      moved = sum (t.bytes for t in args + [out])
      ns = int (max (LEAST_NS, flops / FLOPS * 1e9, moved / BYTES_PER_S * 1e9))
      put (INSTRUCTION="CALL", NAME=name, ARGS=["x%d" % a for a in dict.fromkeys (a.id for a in args)],
           RESULT=["x%d" % out.id], TIME=str (ns))
      put (INSTRUCTION="MEMORY", NAME="x%d" % out.id, MEMORY=str (out.bytes))
      put (INSTRUCTION="ALIAS", NAME="x%d" % out.id, ALIAS="-1")
      for a in dict.fromkeys ([a.id for a in args] + [out.id]):
        if last[a] == i and a not in stays:
          put (INSTRUCTION="RELEASE", NAME="x%d" % a)


def gan (steps):
  t = Tape ()
  noise, real = t.constant (ROWS, GAN_WIDTH), t.constant (ROWS, GAN_WIDTH)
  maker = [t.constant (GAN_WIDTH, GAN_WIDTH) for _ in range (LAYERS)]
  judge = [t.constant (GAN_WIDTH, GAN_WIDTH) for _ in range (LAYERS)]

  def layers (x, weights):
    for w in weights:
      x = t.each ("tanh", t.product (x, w))
    return x
  for _ in range (steps):
    fake = layers (noise, maker)
    wrong = t.loss (t.pair ("add", layers (fake, judge), layers (real, judge)))
    judge = [t.pair ("sub", w, g) for w, g in zip (judge, t.gradients (wrong, judge))]
  end = t.loss (layers (layers (noise, maker), judge))
  t.write (t.gradients (end, maker) + [end])


def lstm (steps):
  t = Tape ()
  inputs = [t.constant (LSTM_ROWS, LSTM_WIDTH) for _ in range (steps)]
  of_x = [t.constant (LSTM_WIDTH, LSTM_WIDTH) for _ in range (4)]
  of_h = [t.constant (LSTM_WIDTH, LSTM_WIDTH) for _ in range (4)]
  h, c = t.constant (LSTM_ROWS, LSTM_WIDTH), t.constant (LSTM_ROWS, LSTM_WIDTH)
  for x in inputs:
    sums = [t.pair ("add", t.product (x, a), t.product (h, b)) for a, b in zip (of_x, of_h)]
    take, forget, show = [t.each ("sigmoid", s) for s in sums[:3]]
    new = t.each ("tanh", sums[3])
    c = t.pair ("add", t.pair ("mul", forget, c), t.pair ("mul", take, new))
    h = t.pair ("mul", show, t.each ("tanh", c))
  end = t.loss (h)
  t.write (t.gradients (end, of_x + of_h) + [end])


if len (sys.argv) != 3 or sys.argv[1] not in ("gan", "lstm"):
  sys.exit (__doc__)
{"gan": gan, "lstm": lstm}[sys.argv[1]] (int (sys.argv[2]))
