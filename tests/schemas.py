# SPDX-License-Identifier: GPL-3.0-or-later
"""Every trace, device and plan under the given folders keeps to its schema, plain and packed; and the
schemas refuse what is wrong.  schemas.py SCHEMAS FOLDER..."""
import copy
import json
import os
import sys

from canonical import load

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is missing")
    sys.exit(77)

LISTS = {"reads", "writes", "side", "after", "digested", "unknown", "runs"}


def pack(rows, keys):
    columns = {}
    for key in keys:
        if key in LISTS:
            index, offset = [], [0]
            for row in rows:
                index += row.get(key) or []
                offset.append(len(index))
            columns[key] = {"index": index, "offset": offset}
        elif any(key in row for row in rows):
            columns[key] = [row.get(key) for row in rows]
    return columns


def packed(document):
    """The same in the other form, where it has rows."""
    other = copy.deepcopy(document)
    for holder, key in ((other, "tensors"), (other, "ops"), (other, "moves"), (other, "op_waits"),
                        (other.get("placement", {}), "stays")):
        rows = holder.get(key)
        if isinstance(rows, list) and rows:
            holder[key] = pack(rows, sorted({name for row in rows for name in row}))
    return other


def found(folders):
    for top in folders:
        for folder, inner, names in os.walk(top):
            inner.sort()
            if os.path.basename(folder) == "schema":
                continue
            for name in sorted(names):
                if name.endswith((".json", ".json.gz", ".json.zst")):
                    path = os.path.join(folder, name)
                    try:
                        document = load(path)
                    except ValueError:
                        continue  # not JSON at all
                    form = document.get("format", "") if isinstance(document, dict) else ""
                    if str(form).startswith("ferry-"):
                        yield path, document


# (file under tests/cases/machine, where, what to put there; None: take it away)
WRONG = [
    ("wrapping/trace.json", ["format"], "ferry-trace/2"),
    ("wrapping/trace.json", ["tensors", 0, "bytes"], 0),
    ("wrapping/trace.json", ["tensors", 0, "bytes"], None),
    ("wrapping/trace.json", ["tensors", 0, "bytes"], 1.5),
    ("wrapping/trace.json", ["tensors", 0, "kind"], "weight"),
    ("wrapping/trace.json", ["tensors", 0, "split"], "time"),
    ("wrapping/trace.json", ["tensors", 0, "colour"], "red"),
    ("wrapping/trace.json", ["ops"], []),
    ("wrapping/trace.json", ["ops", 0, "ns"], -1),
    ("wrapping/trace.json", ["ops", 0, "ns"], 2**53 + 1),
    ("wrapping/trace.json", ["ops", 0, "reads"], [0, 0]),
    ("wrapping/trace.json", ["ops", 0, "name"], "two\nlines"),
    ("wrapping/trace.json", ["source", "confidence"], "probably"),
    ("wrapping/plan.json", ["trace"], "sha256:12"),
    ("wrapping/plan.json", ["device", "granule_bytes"], 1000),
    ("wrapping/plan.json", ["device", "link", "d2h_bytes_per_s"], 999999),
    ("wrapping/plan.json", ["moves", 0, "host_offset"], 7),
    ("wrapping/plan.json", ["moves", 0, "out_after"], None),
    ("wrapping/plan.json", ["placement"], None),
    ("wrapping/plan.json", ["placement", "stays", 0, "workspace"], 1),
    ("wrapping/plan.json", ["placement", "stays", 0, "runs"], None),
    ("depth-section/plan.json", ["sections", 0, "parts"], 1),
    ("depth-section/plan.json", ["sections", 0, "order"], "breadth"),
    ("recompute/plan.json", ["recompute", 0, "ops"], []),
]


def spoil(document, path, value):
    at = document
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


def main(schemas, folders):
    validators, passed, failed = {}, 0, 0
    for name in ("trace", "device", "host", "plan"):
        schema = load(os.path.join(schemas, name + ".schema.json"))
        Draft202012Validator.check_schema(schema)
        validators["ferry-%s/1" % name] = Draft202012Validator(schema)

    def claim(holds, text):
        nonlocal passed, failed
        passed, failed = passed + bool(holds), failed + (not holds)
        if not holds:
            print("does not hold:", text)

    golden = None
    for path, document in found(folders):
        validator = validators.get(document["format"])
        if not validator:
            continue
        if path.endswith("machine/wrapping/trace.json"):
            golden = path[: -len("wrapping/trace.json")]
        for form, what in ((document, "as it is"), (packed(document), "packed")):
            errors = [e.message[:100] for e in validator.iter_errors(form)]
            claim(not errors, "%s, %s: %s" % (path, what, errors[:1]))
    for path, where, value in WRONG:
        document = spoil(load(golden + path), where, value)
        kind = "trace" if path.endswith("trace.json") else "plan"
        claim(not validators["ferry-%s/1" % kind].is_valid(document),
              "%s with %s = %r is refused" % (path, where, value))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
