# SPDX-License-Identifier: GPL-3.0-or-later
# A step as networks have them, drawn at random by `seed`, tensors `size` times as large: a way there and a way back, some ops in place, some that skip;
# with `layers`, of that many; with `beside`, of ops on the way back that have a tensor each for themselves; with `moves`, results are copied and sums begin with a fill.
function draw(n) { return int(rand() * n) }
function tensor(name, kib, kind) { kib_of[n] = kib; tensors = tensors (tensors == "" ? "" : ",\n") sprintf("{\"name\": \"%s\", \"bytes\": %d, \"kind\": \"%s\"}", name, kib * 4096 * (size ? size : 1), kind); return n++ }
function op(name, reads, writes) { ops = ops (ops == "" ? "" : ",\n") sprintf("{\"name\": \"%s\", \"ns\": %d, \"reads\": [%s], \"writes\": [%s]}", name, 20000 + draw(4) * 60000, reads, writes) }
BEGIN {
  srand(seed)
  layers = layers ? layers : 8 + draw(8)
  at[0] = tensor("in", 32 + 8 * draw(12), "input")
  op("load", "", at[0])
  for (i = 1; i <= layers; i++) {
    w[i] = tensor("w" i, 16 + 8 * draw(3), "parameter")
    at[i] = tensor("a" i, 32 + 8 * draw(16), "activation")
    skip = i > 2 && draw(3) == 0 ? ", " at[i - 2] : ""
    if (moves && i % 2)
      op("memset" i, "", at[i])
    op("f" i, at[i - 1] ", " w[i] skip (moves && i % 2 ? ", " at[i] : ""), at[i])
    if (moves && i % 3 == 0) {
      op("memcpy" i, at[i], c = tensor("c" i, kib_of[at[i]], "activation"))
      at[i] = c
    }
    if (draw(4) == 0)
      op("inplace" i, at[i], at[i])
    if (draw(3) == 0) { # what only passes
      op("pre" i, at[i], p = tensor("p" i, 32 + 8 * draw(8), "activation"))
      op("post" i, p, at[i] = tensor("b" i, 32 + 8 * draw(8), "activation"))
    }
  }
  g = tensor("g", 32 + 8 * draw(8), "gradient")
  op("loss", at[layers], g)
  for (i = layers; i >= 1; i--) {
    next_g = tensor("g" i, 32 + 8 * draw(8), "gradient")
    op("b" i, at[i] ", " at[i - 1] ", " g ", " w[i], next_g)
    op("u" i, w[i] ", " g, w[i])
    if (beside)
      op("s" i, s = tensor("s" i, 16, "parameter"), s)
    g = next_g
  }
  printf "{\"format\": \"ferry-trace/1\", \"name\": \"made\", \"source\": {\"kind\": \"test\"}, \"tensors\": [%s],\n\"ops\": [%s]}\n", tensors, ops
}
