#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canonical form of a trace and its digest, written from docs/formats.md alone.

canonical.py PATH...      one line a trace: the digest, two spaces, the path; of a folder, all of its
                          traces
canonical.py --text FILE  the canonical form itself

Tests compare it with what the library says; nothing else uses it.
"""
import gzip
import hashlib
import json
import os
import subprocess
import sys

TENSOR = {"name": "", "bytes": None, "kind": "temporary", "split": None, "persistent": None,
          "pinned": False, "born_before": None, "dies_after": None}
REMADE = {"again": "freely", "placed": False}  # there only where they say something
OP = {"name": "", "ns": 0, "gap_ns": 0, "workspace_bytes": 0, "parts": 1, "phase": "other",
      "reads": [], "writes": [], "side": [], "compute": None}
STREAMS = {"stream": 0, "after": [], "collective": "", "group": "", "group_bytes": 0}  # likewise
LISTS = ("reads", "writes", "side", "after")


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(data)


def unpack(columns, keys):
    """Rows of an object of columns; a list of rows is returned as it is."""
    if isinstance(columns, list):
        return columns
    plain = {}
    for key, column in columns.items():
        if key not in keys:
            continue
        if key in LISTS and isinstance(column, dict):
            index, offset = column["index"], column["offset"]
            column = [index[a:b] for a, b in zip(offset, offset[1:])]
        if column is not None:
            plain[key] = column
    lengths = {len(column) for column in plain.values()}
    if len(lengths) != 1:
        raise ValueError("columns of different lengths")
    return [{key: column[i] for key, column in plain.items()} for i in range(lengths.pop())]


def filled(row, keys):
    """Known keys only, and the default for each that is absent or null."""
    return {key: default if row.get(key) is None else row[key] for key, default in keys.items()}


def canonical(trace):
    tensors = [{**filled(row, TENSOR), **{k: row[k] for k, d in REMADE.items() if row.get(k) not in (None, d)}}
               for row in unpack(trace.get("tensors", []), {**TENSOR, **REMADE})]
    for t in tensors:
        if t["persistent"] is None:
            t["persistent"] = t["kind"] in ("parameter", "optimizer")
    form = {"format": trace["format"], "batch": trace.get("batch") or 1, "tensors": tensors,
            "ops": [{**filled(row, OP), **{k: row[k] for k in STREAMS if row.get(k)}} for row in unpack(trace["ops"], {**OP, **STREAMS})]}
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(trace):
    return "sha256:" + hashlib.sha256(canonical(trace).encode("utf-8")).hexdigest()


def traces(path):
    """The path and content of each trace at or under the path."""
    if not os.path.isdir(path):
        yield path, load(path)
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if not name.endswith((".json", ".json.gz", ".json.zst")):
                continue
            found = load(os.path.join(folder, name))
            if isinstance(found, dict) and found.get("format") == "ferry-trace/1":
                yield os.path.join(folder, name), found


def main(arguments):
    if arguments[:1] == ["--text"]:
        sys.stdout.write(canonical(load(arguments[1])))
        return
    for argument in arguments:
        for path, trace in traces(argument):
            print(digest(trace) + "  " + path)


if __name__ == "__main__":
    main(sys.argv[1:])
