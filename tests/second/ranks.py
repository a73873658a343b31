# SPDX-License-Identifier: GPL-3.0-or-later
"""A second simulator of ranks on one host, written from docs/machine-model.md alone.  Reads JSON, case after case
(a host, a trace and a plan for each rank, and what ferry says of them) and compares to the nanosecond.
No sections, recompute entries or groups of tensors: traces are as they stand."""
import json
import sys
from fractions import Fraction

OUT, IN = 0, 1
STEPS, LAST = 32, 8
FROM, TO = 16, 32  # of jobs apart
NANO = 10**9
NEVER = None


def link_rates(link):
    """(alone, both) by way, whole bytes a second."""
    d2h, h2d = link["d2h_bytes_per_s"], link["h2d_bytes_per_s"]
    both = link.get("both_bytes_per_s") or d2h + h2d

    def shared(own, other):
        return int(min(Fraction(own), max(Fraction(both, 2), Fraction(both - other))))

    return (d2h, h2d), (max(1, shared(d2h, h2d)), max(1, shared(h2d, d2h)))


def deal(host, alone, both, carries):
    """carries[way]: the cards that carry. Rates by (way, card)."""
    wants = {}
    for way in (OUT, IN):
        for card in carries[way]:
            wants[way, card] = (both if card in carries[1 - way] else alone)[way]
    rates = {}
    for way in (OUT, IN):
        capacity = []
        for group in host["groups"]:
            name = ("d2h_bytes_per_s", "h2d_bytes_per_s")
            taken = [group.get("network", {}).get(name[w], 0) for w in (OUT, IN)]
            one = group[name[way]] - taken[way]
            pair = [group["both"][name[w]] - taken[w] for w in (OUT, IN)]
            against = sum(wants[1 - way, card] for card in carries[1 - way] if card in group["cards"])
            capacity.append(min(one, max(pair[way], sum(pair) - against)) if against else one)
        rising = set(carries[way])
        while rising:
            level, first = None, None
            for group, room in zip(host["groups"], capacity):
                mine = [card for card in rising if card in group["cards"]]
                if mine:
                    stopped = sum(r for (w, card), r in rates.items() if w == way and card in group["cards"])
                    at = max(1, (room - stopped) // len(mine))
                    if level is None or at < level:
                        level, first = at, mine
            least = min(wants[way, card] for card in rising)
            if level is None or least <= level:
                stops, rate = [card for card in rising if wants[way, card] == least], least
            else:
                stops, rate = first, level
            for card in stops:
                rates[way, card] = rate
            rising -= set(stops)
    return rates


class Rank:
    """One rank's queues as lists; each item knows what it waits for, in counts since step 0 began."""

    def __init__(self, job):
        trace, plan = job["trace"], job["plan"]
        self.ops = [(op.get("ns") or 0, op.get("gap_ns") or 0) for op in trace["ops"]]
        self.streams = [op.get("stream") or 0 for op in trace["ops"]]
        self.waits = [set(op.get("after") or []) for op in trace["ops"]]
        for k, stream in enumerate(self.streams):
            self.waits[k].update([i for i in range(k) if self.streams[i] == stream][-1:])
        self.meets, groups = [], {}
        for op in trace["ops"]:
            name = op.get("group") or ""
            self.meets.append((name, groups.get(name, 0)) if op.get("collective") else None)
            if op.get("collective"):
                groups[name] = groups.get(name, 0) + 1
        self.moves = moves = plan.get("moves") or []
        self.order = (plan.get("out_order") or [], plan.get("in_order") or [])
        granule = plan["placement"]["granule_bytes"]
        self.bytes = []
        for move in moves:
            size = trace["tensors"][move["unit"]]["bytes"]
            whole, of, part = -(-size // granule), move.get("of") or 1, move.get("part") or 0
            first, end = part * whole // of * granule, (part + 1) * whole // of * granule
            self.bytes.append(min(end, size) - first)
        self.op_waits = {}
        for row in plan.get("op_waits") or []:
            self.op_waits[row["op"]] = row["outs"]
        self.due = {}
        for place, m in enumerate(self.order[IN]):
            self.due[moves[m]["in_before"]] = place + 1
        for k in range(len(self.ops)):  # who waits for a copy makes those behind it in the list wait
            self.due[k] = max(self.due.get(i, 0) for i in range(k + 1))
        rows = dict(self.op_waits)
        for k in range(len(self.ops)):
            met = [rows[i] for i in range(k + 1) if i in rows]
            if met:
                self.op_waits[k] = max(met)
        self.out_place = {m: place for place, m in enumerate(self.order[OUT])}
        self.begin()

    def begin(self):
        self.step, self.ended, self.done = 0, set(), [0, 0]
        self.running, self.free_at = {}, {}  # by op: its end; when its gap has passed
        self.free(0)
        self.busy = [None, None]  # (end of the latency, work or None while it lasts)
        self.ops_at, self.copies_at = {}, ({}, {})

    @property
    def done_ops(self):
        """Those of the head of the list that have all ended."""
        return self.step * len(self.ops) + next(k for k in range(len(self.ops) + 1) if k not in self.ended)

    def has(self, meeting):
        return meeting is not None and any(m and m[0] == meeting[0] for m in self.meets)

    def free(self, now):
        """Gaps begin behind all that an op of this step waits for."""
        for k, waits in enumerate(self.waits):
            if k not in self.free_at and waits <= self.ended:
                self.free_at[k] = now + self.ops[k][1]

    def end(self, k, now):
        self.ops_at[self.step * len(self.ops) + k].append(now)
        del self.running[k]
        self.ended.add(k)
        if len(self.ended) == len(self.ops):
            self.step, self.ended, self.free_at = self.step + 1, set(), {}
        self.free(now)

    def waiting(self):
        return [k for k in self.free_at if k not in self.ended and k not in self.running]

    def counts(self):
        return len(self.ops), len(self.order[OUT]), len(self.order[IN])

    def steps_done(self):
        ops, outs, ins = self.counts()
        done = [self.done_ops // ops]
        done += [self.done[OUT] // outs] if outs else []
        done += [self.done[IN] // ins] if ins else []
        return min(done)

    def op_may(self, k, now, steps_of_all):
        _, outs, ins = self.counts()
        step = self.step
        if now < self.free_at[k] or steps_of_all < step:
            return False
        if self.due[k] and self.done[IN] < step * ins + self.due[k]:
            return False
        return k not in self.op_waits or self.done[OUT] >= step * outs + self.op_waits[k]

    def copy_may(self, way):
        ops, outs, _ = self.counts()
        if not self.order[way]:
            return False
        step, place = divmod(self.done[way], len(self.order[way]))
        m = self.order[way][place]
        move = self.moves[m]
        if way == OUT:
            return self.done_ops >= step * ops + move["out_after"] + 1
        back = 1 if move["in_before"] <= move["out_after"] else 0
        if move.get("clean"):
            if self.done_ops < (step - back) * ops + move["out_after"] + 1:
                return False
        elif self.done[OUT] < (step - back) * outs + self.out_place[m] + 1:
            return False
        if move.get("in_ops") is not None and self.done_ops < step * ops + move["in_ops"]:
            return False
        return move.get("in_outs") is None or self.done[OUT] >= step * outs + move["in_outs"]


class Machine:
    def __init__(self, case):
        self.host = case["answer"]["host"]
        self.alone, self.both = link_rates(self.host["link"])
        self.copy_ns = self.host["link"].get("copy_ns") or 0
        self.ranks = [Rank(job) for job in case["jobs"]]
        self.apart = case["apart"]  # jobs of their own: no step and no collective in common
        self.shared = False  # a group gave a copy less than its link would have

    def instant_ends(self, now):
        """All that ends now; ops of no length may start and end at once. True: something did."""
        any_end = False
        for rank in self.ranks:
            for way in (OUT, IN):
                at = rank.busy[way]
                if at and at["work"] is not None and at["work"] <= 0:
                    rank.copies_at[way].setdefault(rank.done[way], []).append(now)
                    rank.done[way] += 1
                    rank.busy[way] = None
                    any_end = True
            for k in [k for k, end in rank.running.items() if end <= now]:
                rank.end(k, now)
                any_end = True
        return any_end

    def instant_ops(self, now):
        started = False
        steps = min(rank.step for rank in self.ranks)
        may = [[k for k in rank.waiting() if rank.op_may(k, now, rank.step if self.apart else steps)]
               for rank in self.ranks]
        come = [{rank.meets[k] for k in ks if rank.meets[k]} for rank, ks in zip(self.ranks, may)]
        for rank, ks in zip(self.ranks, may):
            for k in ks:
                # a collective begins when all ranks that have its group have come to it
                if self.apart or all(rank.meets[k] in here for other, here in zip(self.ranks, come) if other.has(rank.meets[k])):
                    rank.running[k] = now + rank.ops[k][0]
                    rank.ops_at[rank.step * len(rank.ops) + k] = [now]
                    started = True
        return started

    def start_copies(self, now, held):
        for rank in self.ranks:
            for way in (OUT, IN):
                if rank.busy[way] is None and not (way == OUT and held) and rank.copy_may(way):
                    m = rank.order[way][rank.done[way] % len(rank.order[way])]
                    rank.busy[way] = {"carries_from": now + self.copy_ns, "work": None, "bytes": rank.bytes[m]}
                    rank.copies_at[way][rank.done[way]] = [now]
                at = rank.busy[way]
                if at and at["work"] is None and at["carries_from"] <= now:
                    at["work"] = at["bytes"] * NANO

    def rates(self):
        carries = [{i for i, rank in enumerate(self.ranks) if rank.busy[way] and rank.busy[way]["work"] is not None}
                   for way in (OUT, IN)]
        rates = deal(self.host, self.alone, self.both, carries)
        self.shared |= any(rate < (self.both if i in carries[1 - way] else self.alone)[way] for (way, i), rate in rates.items())
        return rates

    def next_time(self, now, rates):
        times = []
        for i, rank in enumerate(self.ranks):
            times += rank.running.values()
            times += [rank.free_at[k] for k in rank.waiting() if rank.free_at[k] > now]
            for way in (OUT, IN):
                at = rank.busy[way]
                if at:
                    times.append(at["carries_from"] if at["work"] is None else now - (-at["work"] // rates[way, i]))
        return min(times) if times else NEVER

    def run(self, laden):
        """(step_ns, settled) and the step that stands for all, as the model says."""
        now, held, looked, states = 0, laden, 0, {}
        for rank in self.ranks:
            rank.begin()
        while True:
            while True:
                ended = self.instant_ends(now)
                started = self.instant_ops(now)
                steps = min(rank.steps_done() for rank in self.ranks)
                if self.apart:
                    if steps > FROM and all(TO * len(rank.ops) in rank.ops_at for rank in self.ranks):
                        return [-(-(start(TO) - start(FROM)) // (TO - FROM)) for start in self.starts()], False, FROM
                    steps = 0
                while looked < min(steps, STEPS):
                    state = self.state(looked)
                    if state in states:
                        first = states[state]
                        start = self.start_of
                        return -(-(start(looked) - start(first)) // (looked - first)), True, first
                    states[state] = looked
                    looked += 1
                if looked >= STEPS:
                    return self.unsettled()
                if not ended and not started:
                    break
            self.start_copies(now, held)
            rates = self.rates()
            then = self.next_time(now, rates)
            if then is NEVER:
                assert held, "the plan hangs"
                held = False
                continue
            for (way, i), rate in rates.items():
                self.ranks[i].busy[way]["work"] -= rate * (then - now)
            now = then

    def start_of(self, step):
        return self.ranks[0].ops_at[step * len(self.ranks[0].ops)][0]

    def starts(self):
        return [lambda step, rank=rank: rank.ops_at[step * len(rank.ops)][0] for rank in self.ranks]

    def unsettled(self):
        starts = [self.start_of(step) for step in range(STEPS)]
        most, at = 0, 0
        for i in range(STEPS - LAST, STEPS):
            if starts[i] - starts[i - 1] > most:
                most, at = starts[i] - starts[i - 1], i - 1
        return most, False, at

    def items(self, step):
        """By rank: ops, outs and ins of a step as [start, end]."""
        for rank in self.ranks:
            ops, outs, ins = rank.counts()
            yield ([rank.ops_at[step * ops + k] for k in range(ops)],
                   [rank.copies_at[OUT][step * outs + k] for k in range(outs)],
                   [rank.copies_at[IN][step * ins + k] for k in range(ins)])

    def state(self, step):
        zero = self.start_of(step)
        return tuple(t - zero for queues in self.items(step) for queue in queues for span in queue for t in span)

    def answer(self):
        """(step_ns, settled, timelines)."""
        step_ns, settled, step = self.run(False)
        if self.apart:
            return step_ns, settled, [self.line(rank, step) for rank in self.ranks]
        if not settled:
            laden = self.run(True)
            settled = laden[1]
            if laden[0] > step_ns:
                step_ns, step = laden[0], laden[2]
            else:
                self.run(False)
        return [step_ns] * len(self.ranks), settled, [self.line(rank, step) for rank in self.ranks]

    def line(self, rank, step):
        """As ferry prints it: times from the rank's own op 0, copies by move; those without one at -1."""
        ops, outs, ins = next(found for at, found in zip(self.ranks, self.items(step)) if at is rank)
        zero = ops[0][0]
        moved = [[[-1 + zero] * 2 for _ in rank.moves] for _ in (OUT, IN)]
        for way, spans in ((OUT, outs), (IN, ins)):
            for m, span in zip(rank.order[way], spans):
                moved[way][m] = span
        flat = lambda spans: [t - zero for span in spans for t in span]
        return {"ops": flat(ops), "outs": flat(moved[OUT]), "ins": flat(moved[IN]), "step": step}


def main(text):
    wrong, n, seen = 0, 0, {"settled": 0, "several": 0, "shared": 0, "streams": 0, "collectives": 0, "apart": 0}
    at, decoder = 0, json.JSONDecoder()
    while at < len(text):
        case, at = decoder.raw_decode(text, at)
        at += 1
        machine = Machine(case)
        step_ns, settled, lines = machine.answer()
        n += 1
        seen["settled"] += settled
        seen["several"] += len(case["jobs"]) > 1
        seen["shared"] += machine.shared
        seen["apart"] += machine.apart
        seen["collectives"] += sum(any(rank.meets) for rank in machine.ranks) > 1
        seen["streams"] += any(len(set(rank.streams)) > 1 for rank in machine.ranks)
        if (step_ns, settled, lines) != (case["step_ns"], case["settled"], case["answer"]["lines"]):
            wrong += 1
            print("seed %d: ferry says %s, the second simulator %s" %
                  (case["seed"], (case["step_ns"], case["settled"]), (step_ns, settled)))
    print("%d cases: %d settled, %d with several ranks, in %d a group slowed copies, %d with streams, %d with collectives, %d of jobs apart" %
          (n, seen["settled"], seen["several"], seen["shared"], seen["streams"], seen["collectives"], seen["apart"]))
    return wrong, n, seen


if __name__ == "__main__":
    wrong, n, seen = main(sys.stdin.read())
    few = n == 0 or min(seen.values()) * 8 < n
    if few:
        print("too few of the cases are of use:", seen)
    sys.exit(wrong > 0 or few)
