# SPDX-License-Identifier: GPL-3.0-or-later
"""A ferry trace as a file, and the digest by which a plan names it (docs/formats.md)."""
import gzip
import hashlib
import json
import os
import tempfile

from .errors import Refused

TENSOR = {"name": "", "bytes": None, "kind": "temporary", "split": None, "persistent": None,
          "pinned": False, "born_before": None, "dies_after": None}
OP = {"name": "", "ns": 0, "gap_ns": 0, "workspace_bytes": 0, "parts": 1, "phase": "other",
      "reads": [], "writes": [], "side": [], "compute": None}
SELDOM = {"stream": 0, "after": [], "collective": None, "group": None, "group_bytes": 0}  # digested where they differ from this
LISTS = ("reads", "writes", "side", "after")


def load(path):
    """The JSON of a file, gzip or plain."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror}); name a file that ferry has written") from None
    if data[:4] == b"\x28\xb5\x2f\xfd":
        raise Refused(f"{path} is packed with zstd; `ferry convert` makes a .json or .json.gz of it")
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        return json.loads(data)
    except ValueError:
        raise Refused(f"{path} is not JSON, so it is neither a trace nor a plan") from None


def require_room(path):
    """Said before the step that is to be written there."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise Refused(f"{path} cannot be written; name a file in a folder that is there and may be written to")


def store(what, path):
    """Writes under another name first, so that nobody ever reads half a file."""
    data = json.dumps(what, separators=(",", ":")).encode()
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    folder = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(dir=folder, prefix=".ferry-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.rename(name, path)
    except BaseException:
        os.unlink(name)
        raise


def rows(table, keys):
    """The rows of a table, which may be packed by columns."""
    if isinstance(table, list):
        return table
    plain = {}
    for key, column in table.items():
        if key in LISTS and isinstance(column, dict):
            at = column["offset"]
            column = [column["index"][a:b] for a, b in zip(at, at[1:])]
        if key in keys and column is not None:
            plain[key] = column
    count = len(next(iter(plain.values()))) if plain else 0
    return [{key: column[i] for key, column in plain.items()} for i in range(count)]


def filled(row, keys):
    return {key: value if row.get(key) is None else row[key] for key, value in keys.items()}


def tensors_and_ops(trace):
    """Both as lists of rows with every default filled in."""
    tensors = [filled(row, TENSOR) for row in rows(trace["tensors"], TENSOR)]
    for row in tensors:
        if row["persistent"] is None:
            row["persistent"] = row["kind"] in ("parameter", "optimizer")
    ops = rows(trace["ops"], {**OP, **SELDOM})
    return tensors, [{**filled(row, OP), **{k: row[k] for k, usual in SELDOM.items() if row.get(k, usual) not in (None, usual)}}
                     for row in ops]


def digest(trace):
    tensors, ops = tensors_and_ops(trace)
    form = {"format": trace["format"], "batch": trace.get("batch") or 1, "tensors": tensors, "ops": ops}
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
