# SPDX-License-Identifier: GPL-3.0-or-later
"""A backend for torch.compile that keeps a step within a budget.

    step = torch.compile(model, backend=ferry_torch.backend(budget="10GiB"))

The joint graph of forward and backward is the trace. `ferry solve` says what is kept, made again, and carried to the
host, and the graph is cut in two accordingly, with copies and waits as ops of their own.
"""
import ctypes
import operator
import os
import sys
import tempfile
import weakref

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import partitioners
from torch._subclasses.fake_tensor import unset_fake_temporarily

from . import lanes, tool
from . import trace as traces
from .arena import Arena
from .card import require_budget, require_options, roof_here, this_card, to_plan, too_small
from .clock import Roofline
from .errors import Refused
from .joint import Joint, is_view, value
from .pieces import Waits
from .plan import Plan, walk_of
from .report import bytes_text, time_text
from .scratch import workspaces
from .storages import Form, as_bytes

HOSTS = {}  # of each planned graph, its host memory, by number


class Host:
    """The arena of one graph, and the copy that was made last to each place."""

    def __init__(self, device, size, beside=True):
        self.beside = beside  # ops; else each copy is over before the next op, as inductor may order those otherwise
        self.lanes = lanes.choose(device)
        self.arena, self.signals, self.rooms, self.forms = Arena(self.lanes, size), {}, {}, {}
        self.number = len(HOSTS)
        HOSTS[self.number] = self

    def out(self, tensor, offset):
        raw, self.forms[offset] = as_bytes(tensor), Form(tensor)
        room = self.rooms[offset] = self.arena.take(offset, raw.numel())
        self.signals[offset] = self.lanes.out(raw, room.bytes, room.signals)
        self.end(offset)
        return lent(room)

    def back(self, raw, offset):
        """The place is another's behind this copy."""
        room, signal = self.rooms[offset], self.lanes.back(self.rooms[offset].bytes, raw, [self.signals[offset]])
        self.signals[offset], room.signals = signal, [signal]
        self.end(offset)

    def end(self, offset):
        if not self.beside:
            self.signals[offset].wait()


def lent(room):
    """The place's bytes as a tensor; when nobody has it any more, the place is another's."""
    size = room.bytes.numel()
    buffer = type("Place", (ctypes.c_char * size,), {}).from_address(room.bytes.data_ptr())
    buffer.memory = room.bytes
    weakref.finalize(buffer, room.leave)
    return torch.frombuffer(buffer, dtype=torch.uint8)


@torch.library.custom_op("ferry::out", mutates_args=())
def out(tensor: torch.Tensor, host: int, offset: int) -> torch.Tensor:
    return HOSTS[host].out(tensor, offset)


@out.register_fake
def _(tensor, host, offset):
    return torch.empty(tensor.untyped_storage().nbytes(), dtype=torch.uint8)


@torch.library.custom_op("ferry::gone", mutates_args=())
def gone(place: torch.Tensor, source: torch.Tensor, host: int, offset: int) -> torch.Tensor:
    """Behind it the source's memory is another's."""
    HOSTS[host].signals[offset].wait()
    return torch.empty(0, dtype=torch.uint8)


@gone.register_fake
def _(place, source, host, offset):
    return torch.empty(0, dtype=torch.uint8)


@torch.library.custom_op("ferry::back", mutates_args=())
def back(place: torch.Tensor, gone: torch.Tensor, host: int, offset: int, size: list[int], stride: list[int],
         dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    raw = torch.empty(place.numel(), dtype=torch.uint8, device=device)
    HOSTS[host].back(raw, offset)
    return HOSTS[host].forms[offset].of(raw)  # as it left: kernels may make another type than torch says, as mixed norms on a CPU


@back.register_fake
def _(place, gone, host, offset, size, stride, dtype, device):
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


@torch.library.custom_op("ferry::came", mutates_args=("tensor",))
def came(tensor: torch.Tensor, host: int, offset: int) -> None:
    """Behind it the copy has its bytes: it changes the tensor, so no compiler takes a use of it before this."""
    HOSTS[host].signals[offset].wait()


@came.register_fake
def _(tensor, host, offset):
    return None


class Cut:
    """The joint graph with what the plan says between its two passes."""

    def __init__(self, joint, plan, host):
        self.joint, self.plan, self.host, self.graph = joint, plan, host, joint.graph
        joint.put_in_order()
        self.node_of = {t: node for node, t in joint.number.items()}
        self.waits = Waits(plan)
        self.now, self.over, self.views = {}, set(), {}  # now: what stands for a tensor of the way there, up to the next entry
        self.added = set()
        for t, move in {m.tensor: m for m in plan.moves if m.tensor not in plan.maker}.items():
            self.carry(t, move)
        for node in joint.nodes:
            if node in joint.backward and node.op != "placeholder":
                with self.graph.inserting_before(node):
                    self.begin(joint.op_of.get(node))
                    node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.there)

    def begin(self, op):
        for entry in self.plan.entries:
            if entry.before == op:
                self.make_again(entry)

    def make_again(self, entry):
        """Its ops once more. What it makes on the way is its own: another entry makes that anew, and nobody keeps it so long."""
        if entry.number in self.over:
            return
        self.over.add(entry.number)
        own = {}
        for k in entry.ops:
            node = self.joint.makers[k]
            own[node] = self.copy(node, lambda n: self.there(n, own))
            for part in [n for n in node.users if n in self.joint.number and n.target is operator.getitem]:
                own[part] = self.copy(part, own.get)
        self.now.update((self.node_of[t], own[self.node_of[t]]) for t in entry.replaces)

    def copy(self, node, of):
        found = self.graph.node_copy(node, of)
        self.added.add(found)
        return found

    def is_forward(self, node):
        return node not in self.joint.backward and node.op == "call_function"

    def add(self, function, *args):
        node = self.graph.call_function(function, args)
        given = [value(a) if isinstance(a, torch.fx.Node) else a for a in args]
        with next(t for t in given if isinstance(t, torch.Tensor)).fake_mode:
            node.meta["val"] = function(*given)
        return node

    def carry(self, t, move):
        """The copy out stands behind the last use on the way there, and its source goes where the plan counts on its room. The
        copy in stands where the plan begins it, and its end before the first use."""
        node, ops, here = self.node_of[t], torch.ops.ferry, (self.host.number, move.offset)
        order, makers = self.joint.nodes, self.joint.makers
        at = max(order.index(makers[move.out_after]), order.index(node))
        while order[at + 1].op == "call_function" and order[at + 1] not in makers:
            at += 1  # its results, and views
        with self.graph.inserting_after(order[at]):
            place = self.add(ops.out.default, node, *here)
        begins = max(move.trigger, next(k for k, op in enumerate(self.joint.ops) if op["phase"] == "backward"))
        used = min(order.index(makers[move.in_before]), self.asked_for(node))
        back = min(order.index(makers[min(begins, move.in_before)]), used)
        gone = self.waits.gone(move)
        gone = min(order.index(makers[gone]), back) if gone < len(makers) else back
        gone = order[max(gone, at + 1)]
        with self.graph.inserting_before(gone):
            token = self.add(ops.gone.default, place, node, *here)
        if gone in self.joint.backward and gone.op == "call_function":
            self.added.add(token)
        made = value(node)
        with self.graph.inserting_before(order[back]):
            self.now[node] = self.add(ops.back.default, place, token, *here, list(made.shape), list(made.stride()), made.dtype,
                                      made.device)
        with self.graph.inserting_before(order[used]):
            there = self.now[node], self.add(ops.came.default, self.now[node], *here)
        self.added.update(there)
        for own in there:  # the way there has all that they ask for
            own.meta["partitioner_tag"] = "must_be_in_backward"

    def asked_for(self, node):
        """The place of what first asks for it on the way back, be it a view."""
        return next(k for k, n in enumerate(self.joint.nodes) if n in self.joint.backward
                    and any(self.joint.base.get(source) is node for source in n.all_input_nodes))

    def there(self, node, own=None):
        """What stands for it on the way back: what the entry has made, its copy, itself where it is kept. A view, and what a
        compiler makes within one kernel, is made here once more."""
        if not self.is_forward(node):
            return node
        if own and node in own:
            return own[node]
        if self.joint.base.get(node) is node:
            return self.tensor(node)
        if node in self.joint.op_of or node.target is operator.getitem and node.args[0] in self.joint.op_of:
            return None if node.meta.get("val") is None else node  # it has no bytes
        sources = {source: self.there(source, own) for source in node.all_input_nodes}
        key = (node, *sources.values())
        if key not in self.views:
            self.views[key] = self.copy(node, sources.get)
        return self.views[key]

    def tensor(self, node):
        """One that leads to no entry that has run is in the kernel of an op that one stands before."""
        t = self.joint.number[node]
        if node not in self.now and t in self.plan.maker:
            self.make_again(next(e for e in self.plan.entries if t in e.replaces and e.number not in self.over))
        return self.now.get(node, node)

    def saved(self):
        """Nodes of the way there that the way back asks for."""
        behind, found = set(self.joint.backward) | self.added, {}
        for node in self.graph.nodes:
            if node in behind and node.op != "output":
                for source in node.all_input_nodes:
                    if source not in behind:
                        found[source] = True
        return list(found)


def say_on_stderr(text):
    print(text, file=sys.stderr)


class Planner:
    """Cuts each joint graph that torch.compile hands on."""

    def __init__(self, budget, device, recompute, say, fuse):
        self.budget, self.device, self.recompute, self.say, self.fuse = budget, device, recompute, say, fuse
        self.reports = []  # of each graph, what is predicted of it

    def __call__(self, module, inputs, *, num_fwd_outputs, **more):
        try:
            return self.cut(module, num_fwd_outputs)
        except Refused as why:
            self.say(f"ferry: this graph runs without a budget: {why}")
        without = partitioners.min_cut_rematerialization_partition if "compiler" in more else partitioners.default_partition
        return without(module, inputs, num_fwd_outputs=num_fwd_outputs, **more)

    def cut(self, module, num_fwd_outputs):
        if any(isinstance(n.meta.get("val"), torch.SymInt) for n in module.graph.nodes):
            raise Refused("its sizes are symbols; compile with dynamic=False")
        place = next((value(n).device for n in module.graph.nodes if value(n) is not None), torch.device("cpu"))
        with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
            card, clock = card_of(self.device, place, folder)
            joint = Joint(module.graph, clock, self.fuse, num_fwd_outputs)
            with unset_fake_temporarily():  # what runs here is real
                for k, room in workspaces(joint.calls(), place, self.device is not None).items():
                    joint.ops[k]["workspace_bytes"] = room
            plan = self.planned(joint, card, place, folder)
        with unset_fake_temporarily():
            host = Host(place, plan.host_bytes, not self.fuse)
        cut = Cut(joint, plan, host)
        module.graph.lint()
        if len(self.reports) > 1:
            self.say(f"ferry: the model is {len(self.reports)} graphs; the budget is each one's")
        return partitioners._extract_fwd_bwd_modules(module, cut.saved(), [], num_fwd_outputs=num_fwd_outputs)

    def planned(self, joint, card, place, folder):
        trace, path = os.path.join(folder, "step.json"), os.path.join(folder, "plan.json")
        found = joint.trace("graph")
        traces.store(found, trace)
        said = tool.answer("solve", trace, "-d", card, "--for", "compile", "--budget", to_plan(place, self.budget),
                           "--recompute", self.recompute, "-o", path, "--json", accept=(0, 1, 4))
        if not said["fits"]:
            raise Refused(too_small(place, said))
        expected = said["predicted"]
        self.reports.append(expected)
        self.say(f"ferry: {time_text(expected['step_ns'])} in {bytes_text(expected['peak_bytes'])}, "
                 f"{time_text(expected['baseline_ns'])} without a limit")
        return Plan(walk_of(trace, path), found)


def card_of(device, place, folder):
    """The card's file or name, and how long an op takes on it: of a GPU that is here by rates that it reaches, on a CPU by bytes."""
    if device is not None:
        return device, by_roofline(Roofline(device))
    card = this_card(place)
    path = os.path.join(folder, "card.json")
    traces.store(card, path)
    return path, bytes_moved if place.type != "cuda" else by_roofline(Roofline(card["name"], roof_here(place)))


def by_roofline(roof):
    return lambda func, args, made: roof.stop(None, (func, args, made))


def bytes_moved(func, args, made):
    from .storages import tensors_in
    moved = tensors_in([args, made if isinstance(made, (list, tuple)) else [made]], [])
    return sum(t.numel() * t.element_size() for t in moved) // 10  # 10 GB/s


def eager(planner):
    from torch._dynamo.backends.debugging import boxed_nop
    return aot_autograd(partition_fn=planner, fw_compiler=boxed_nop, bw_compiler=boxed_nop)


def inductor(planner):
    """Its own passes over the joint graph come first; what it has cached knows nothing of the host's memory."""
    from torch._inductor import config
    if not hasattr(config, "custom_partitioner_fn"):
        raise Refused("inductor of this torch takes no cut graph; take a newer torch, or inner=\"eager\"")
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Partitioner(CustomPartitionerFn):
        def __call__(self, module, inputs, **more):
            return planner(module, inputs, **more)

        def uuid(self):
            return None  # no cache

    def compiler(module, inputs):
        return compile_fx(module, inputs, config_patches={"custom_partitioner_fn": Partitioner(), "fx_graph_cache": False,
                                                          "reorder_for_peak_memory": False,
                                                          "layout_optimization": False})  # copies keep the graph's strides
    return compiler


INNER = {"inductor": inductor, "eager": eager}


def backend(budget, device=None, inner="inductor", recompute="auto", say=say_on_stderr):
    """For `torch.compile(model, backend=...)`. `inner` compiles what was cut: "inductor", or "eager"."""
    if isinstance(budget, torch.fx.GraphModule):
        raise Refused("ferry_torch.backend is called first: torch.compile(model, backend=ferry_torch.backend(budget=\"10GiB\"))")
    require_budget(budget)
    require_options(device, recompute)
    if inner not in INNER:
        raise Refused(f"inner is \"inductor\" or \"eager\", not {inner!r}")
    planner = Planner(budget, device, recompute, say, inner == "inductor")
    made = INNER[inner](planner)
    made.planner = planner
    return made
