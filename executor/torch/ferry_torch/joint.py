# SPDX-License-Identifier: GPL-3.0-or-later
"""The joint graph of a forward and a backward pass, as torch.compile has it, as a ferry trace.

It is exact: functional ops, each with what it reads and makes. A view has the storage of what it is a view of.
"""
import operator

import torch
from torch.utils import _pytree as pytree

from .calls import FUNCTIONS
from .scratch import looks

TANGENT = "tangents"


def value(node):
    found = node.meta.get("val")
    return found if isinstance(found, torch.Tensor) else None


def has_bytes(node):
    return value(node) is not None and value(node).untyped_storage().nbytes() > 0


def is_view(node):
    """Does it give its first argument's storage, or a part of what does so, as of a split?"""
    if node.target is operator.getitem:
        return is_view(node.args[0])
    schema = getattr(node.target, "_schema", None)
    return schema is not None and len(schema.returns) == 1 and schema.returns[0].alias_info is not None


def is_pointwise(node):
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.pointwise in target.tags and FUNCTIONS[target].steady


def needed_for(nodes):
    """All nodes from which these are made, and they themselves."""
    found, left = set(), [n for n in nodes if isinstance(n, torch.fx.Node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found


def written_in(nodes):
    """What the graph itself changes, be it in a list or through a view, with all views of it."""
    root, found = {}, set()
    for node in nodes:
        sources = node.all_input_nodes
        root[node] = root[sources[0]] if sources and is_view(node) else node
        if isinstance(node.target, torch._ops.OpOverload):
            given = [node.args[i] if i < len(node.args) else node.kwargs.get(name) for i, name in FUNCTIONS[node.target].changed]
            found.update(root[n] for n in pytree.arg_tree_leaves(given) if isinstance(n, torch.fx.Node))
    return {node for node in nodes if root[node] in found}


def changed_behind(graph, outputs):
    """Inputs that may get new values behind the way there, as running statistics do: a functional graph gives those back
    among its first `outputs`, and no gradient."""
    given = [n for n in graph.nodes if n.op == "placeholder" and TANGENT not in n.name]
    made = list(pytree.arg_tree_leaves(*list(graph.nodes)[-1].args))
    back = {looks(value(n)) for n in made[:outputs] if isinstance(n, torch.fx.Node) and value(n) is not None}
    gradients = made[outputs:]
    return {n for k, n in enumerate(given) if (k >= len(gradients) or gradients[k] is None) and value(n) is not None
            and looks(value(n)) in back}


def stays(node, written):
    """Would it make something else on the way back? Numbers are drawn in the program's order; what it reads may be new by then."""
    if node.meta.get("partitioner_tag") in ("is_backward", "must_be_in_backward") or node.op != "call_function":
        return False
    target = node.target
    if isinstance(target, torch._ops.OpOverload) and (not FUNCTIONS[target].steady or FUNCTIONS[target].changed):
        return True
    return isinstance(target, torch._ops.HigherOrderOperator) or any(n in written for n in node.all_input_nodes)


def way_back(nodes, outputs, written):
    """All nodes that the way there does not need, and the order of all: one of these that stands amid the way there goes to its
    first user, and so does each view, which is no op of its own."""
    tangents = set()
    for node in nodes:
        if TANGENT in node.name and node.op == "placeholder" or any(n in tangents for n in node.all_input_nodes):
            tangents.add(node)
    there = needed_for(pytree.arg_tree_leaves(*nodes[-1].args)[:outputs])
    last = max((k for k, n in enumerate(nodes) if n in there and n.op == "call_function"), default=-1)
    there |= needed_for([n for n in nodes if n not in tangents and stays(n, written)])
    there.update(n for n in nodes if n.target is operator.getitem and n.args[0] in there)  # one op gives them all
    back = tangents | {n for n in nodes if n.op != "placeholder" and n not in there}
    place = {}
    for k in reversed(range(len(nodes))):
        node = nodes[k]
        moved = node in back and node.op == "call_function" and node.users and (k < last or is_view(node))
        place[node] = min(map(place.get, node.users))[:-1] + (is_view(node), k, len(nodes)) if moved else (k, len(nodes))
    return back, sorted(nodes, key=place.get)


class Joint:
    """Nodes as ops and storages, with their numbers in the trace; the forward pass makes the first `outputs` of the graph.
    With `fuse` what a compiler makes within the one kernel that uses it is no tensor of its own."""

    def __init__(self, graph, clock, fuse, outputs):
        self.graph, self.clock, self.fuse = graph, clock, fuse
        self.fused = {}  # of each such node, what it reads
        self.base, self.number, self.op_of, self.makers = {}, {}, {}, []
        self.written = written_in(list(graph.nodes)) | changed_behind(graph, outputs)
        self.backward, self.nodes = way_back(list(graph.nodes), outputs, self.written)
        self.tensors, self.ops = [], []
        for node in self.nodes:
            self.meet(node)
        self.end_lives()

    def put_in_order(self):
        """The graph's nodes as the trace has them."""
        for before, node in zip(self.nodes, self.nodes[1:]):
            if before.next is not node:
                before.append(node)

    def meet(self, node):
        if node.op == "placeholder":
            if has_bytes(node):
                self.own(node, "gradient" if node in self.backward else "parameter")
        elif node.op == "call_function":
            self.meet_call(node)

    def own(self, node, kind):
        tensor = value(node)
        self.base[node], self.number[node] = node, len(self.tensors)
        row = {"name": node.name, "bytes": tensor.untyped_storage().nbytes(), "kind": kind}
        if kind == "gradient":
            row.update(born_before=0)
        self.tensors.append(row)

    def meet_call(self, node):
        if is_view(node) and node.all_input_nodes and node.all_input_nodes[0] in self.base:
            self.base[node] = self.base[node.all_input_nodes[0]]
            return
        if node.target is operator.getitem:
            source = node.args[0]
            if source in self.op_of and has_bytes(node):
                self.own(node, "temporary" if node in self.backward else "activation")
                self.op_of[node] = self.op_of[source]
                self.ops[self.op_of[source]]["writes"].append(self.number[node])
            return
        reads = {self.number[self.base[n]] for n in node.all_input_nodes if n in self.base}
        reads = sorted(reads.union(*(self.fused.get(n, ()) for n in node.all_input_nodes)))
        if self.fuse and self.is_within(node):
            self.fused[node] = reads
            return
        self.op_of[node] = len(self.ops)
        self.makers.append(node)
        phase = "backward" if node in self.backward else "forward"
        self.ops.append({"name": node.name, "ns": self.time_of(node), "phase": phase, "reads": reads, "writes": [],
                         "compute": {"kind": "torch"}})
        if has_bytes(node):
            self.own(node, "temporary" if node in self.backward else "activation")
            self.ops[-1]["writes"].append(self.number[node])

    def is_within(self, node):
        """Does the one kernel that asks for it make it itself?"""
        user = next(iter(node.users), None)
        return len(node.users) == 1 and is_pointwise(node) and is_pointwise(user) \
            and (node in self.backward) == (user in self.backward)

    def time_of(self, node):
        def of(thing):
            return value(thing) if isinstance(thing, torch.fx.Node) else thing
        args = torch.fx.node.map_arg(node.args, of)
        made = node.meta.get("val")
        return max(1, self.clock(node.target, args, made))

    def end_lives(self):
        """What is given back lives to the end; what the way back asks for is saved."""
        last, output = len(self.ops) - 1, self.nodes[-1]
        for node in output.all_input_nodes:
            if node in self.base and self.tensors[self.number[self.base[node]]]["kind"] != "parameter":
                self.tensors[self.number[self.base[node]]]["dies_after"] = last
        uses = {}
        for k, op in enumerate(self.ops):
            for t in op["reads"] + op["writes"]:
                uses.setdefault(t, []).append(k)
        for node, t in self.number.items():
            row, at = self.tensors[t], uses.get(t, [])
            if row["kind"] == "gradient" and node.op == "placeholder" and not at:
                row["dies_after"] = 0
            if row["kind"] == "activation" and "dies_after" not in row:
                self.save(t, at)
        for node in self.makers:
            self.let_run_again(node)
        self.ops[0]["compute"]["leave"] = []

    def calls(self):
        """Of each op the function and what it is given."""
        def of(thing):
            return thing.meta.get("val") if isinstance(thing, torch.fx.Node) else thing
        return {k: (node.target, *torch.fx.node.map_arg((node.args, node.kwargs), of)) for k, node in enumerate(self.makers)}

    def save(self, t, at):
        there = [k for k in at if self.ops[k]["phase"] == "forward"]
        back = [k for k in at if self.ops[k]["phase"] == "backward"]
        if there and back:
            self.ops[there[-1]]["compute"].setdefault("free", []).append(t)
            self.ops[back[0]]["compute"].setdefault("unpack", []).append(t)

    def let_run_again(self, node):
        """What it reads must still be there, as it was."""
        op = self.ops[self.op_of[node]]
        steady = isinstance(node.target, torch._ops.OpOverload) and FUNCTIONS[node.target].steady
        if op["phase"] == "forward" and steady and not any(n in self.written for n in node.all_input_nodes):
            op["compute"].update({"in": op["reads"], "out": op["writes"]})

    def trace(self, name):
        return {"format": "ferry-trace/1", "name": name, "batch": 1, "tensors": self.tensors, "ops": self.ops,
                "source": {"kind": "ferry_torch.backend", "detail": "the joint graph of torch.compile", "confidence": "exact"}}
