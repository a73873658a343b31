# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows walks that `ferry export --walk` wrote, by what stands in the file alone: every op and copy must find
what it touches in the place that the file says.  walk.py SCHEMA WALK..."""
import json
import random
import sys


def granules(runs):
    return [g for first, count in zip(runs[::2], runs[1::2]) for g in range(first, first + count)]


class Walker:
    """Four steps; each time any queue that may goes on, but one only where all others wait, or by rare chance."""

    def __init__(self, walk, seed):
        self.walk, self.random, self.slow = walk, random.Random(seed), ("op", "out", "in", "")[seed % 4]
        self.queues = {q: sorted((i for i in walk["items"] if i["queue"] == q), key=lambda i: i["position"])
                       for q in ("op", "out", "in")}
        self.ended = dict.fromkeys(self.queues, 0)
        self.device, self.where = {}, {}  # by granule: whose it is; by part: its granules, None while it is away
        self.births = {(row["tensors"][0], row["part"]): row["granules"] for row in walk["births"]}
        self.unit, self.parts, self.first = {}, {}, {}
        for row in walk["births"] + walk["moves"]:
            unit = row["tensors"][0]
            self.unit.update(dict.fromkeys(row["tensors"], unit))
            self.parts[unit] = row["of"]
        for k, op in enumerate(walk["ops"]):
            for unit in self.units(op):
                self.first.setdefault(unit, k)

    def units(self, op):
        return {self.unit[t] for t in (*op["reads"], *op["writes"]) if t in self.unit}

    def put_first(self):
        """What persists is where the last copy in of a step puts it, or where it is born, unless it is away."""
        ins = sorted(self.queues["in"], key=lambda i: self.walk["moves"][i["index"]]["in_before"])
        places = dict(self.births)
        for item in ins:
            move = self.walk["moves"][item["index"]]
            places[move["tensors"][0], move["part"]] = item["granules"]
        for move in self.walk["moves"]:
            if move["in_before"] <= move["out_after"]:
                places[move["tensors"][0], move["part"]] = None
        for part, place in places.items():
            if self.walk["tensors"][part[0]].get("persistent"):
                self.put(part, place)

    def may(self, queue):
        step, position = divmod(self.ended[queue], len(self.queues[queue]))
        waits = self.queues[queue][position]["waits"]
        return step < 4 and all(
            w["steps_ago"] > step or w.get("implied") or
            self.ended[w["queue"]] > (step - w["steps_ago"]) * len(self.queues[w["queue"]]) + w["position"]
            for w in waits)

    def put(self, part, place):
        self.where[part] = place
        self.device.update(dict.fromkeys(granules(place or []), part))

    def look(self, part, item):
        place = self.where.get(part)
        assert place is not None, f"{item['queue']} {item['index']}: part {part} is away"
        assert all(self.device[g] == part for g in granules(place)), f"{item['queue']} {item['index']}: {part} is lost"

    def op(self, item):
        for unit in self.units(self.walk["ops"][item["index"]]):
            for part in range(self.parts[unit]):
                if self.first[unit] == item["index"] and not self.walk["tensors"][unit].get("persistent"):
                    self.put((unit, part), self.births[unit, part])
                self.look((unit, part), item)
        self.device.update(dict.fromkeys(granules(item["granules"]), "workspace"))
        for move in self.walk["moves"]:
            if move["clean"] and move["out_after"] == item["index"]:
                self.where[move["tensors"][0], move["part"]] = None

    def copy(self, item):
        move = self.walk["moves"][item["index"]]
        part = move["tensors"][0], move["part"]
        if item["queue"] == "in":
            self.put(part, item["granules"])
        else:
            self.look(part, item)
            assert self.where[part] == item["granules"], f"move {item['index']} leaves another place"
            self.where[part] = None

    def run(self):
        self.put_first()
        while True:
            ready = [q for q, items in self.queues.items() if items and self.may(q)]
            if not ready:
                break
            queue = self.random.choices(ready, [1 if q == self.slow else 1000 for q in ready])[0]
            item = self.queues[queue][self.ended[queue] % len(self.queues[queue])]
            (self.op if queue == "op" else self.copy)(item)
            self.ended[queue] += 1
        assert all(self.ended[q] == 4 * len(items) for q, items in self.queues.items()), "it hangs"


def issued_in_time(walk):
    """A thread that issues copies behind the ops that they name has issued all that they wait for."""
    n = len(walk["ops"])
    at = {(i["queue"], i["position"]): i["index"] if i["queue"] == "op"
          else i["behind"]["op"] - n * i["behind"]["steps_ago"] for i in walk["items"]}
    for i in walk["items"]:
        for w in i["waits"]:
            if i["queue"] != "op":
                assert at[w["queue"], w["position"]] - n * w["steps_ago"] <= at[i["queue"], i["position"]], i


def main(schema, *paths):
    for path in paths:
        with open(path) as file:
            walk = json.load(file)
        try:
            from jsonschema import Draft202012Validator
            with open(schema) as file:
                Draft202012Validator(json.load(file)).validate(walk)
        except ImportError:
            pass
        issued_in_time(walk)
        for seed in range(20):
            Walker(walk, seed).run()


main(*sys.argv[1:])
