# SPDX-License-Identifier: GPL-3.0-or-later
# Requests made from server/openapi.json, and mutated: what is valid is never refused as malformed, what
# is not is a problem with a 4xx; a reply keeps to its schema, where jsonschema is there to say so; never a
# 5xx, never a hang, and the daemon lives, in the same memory.
# fuzz.py REQUESTS SEED
import random, urllib.parse
from common import *
try: from jsonschema import Draft202012Validator
except ImportError: Draft202012Validator = None

requests, seed = int (sys.argv[1]), int (sys.argv[2])
dice = random.Random (seed)
work = scratch ()
doc = json.load (open (os.path.join (os.environ["srcdir"], "server/openapi.json")))
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
s = Server (work, "--workers", "1", "--job-seconds", "2", "--max-queue", "30", "--worker-memory", "2GiB", "--max-body", "1MiB", "-q")
trace = s.upload ("a.json")

def valid (schema):
  if "$ref" in schema: schema = doc["components"]["schemas"][schema["$ref"].rsplit ("/", 1)[1]]
  if "oneOf" in schema: return valid (dice.choice (schema["oneOf"]))
  if "enum" in schema: return dice.choice (schema["enum"])
  kind = schema.get ("type")
  if kind == "boolean": return dice.random () < 0.5
  if kind == "integer":
    low, high = schema.get ("minimum", 0), schema.get ("maximum", 1 << 53)
    return dice.choice ([low, high, min (high, low + dice.randrange (1000)), dice.randrange (low, high + 1)])
  if kind == "array": return [valid (schema["items"]) for _ in range (dice.randrange (1, 4))]
  if kind == "object":
    names = [n for n in schema.get ("properties", {}) if n in schema.get ("required", []) or dice.random () < 0.3]
    return {n: valid (schema["properties"][n]) for n in names}
  if kind == "string":
    pattern = schema.get ("pattern", "")
    if "a-f" in pattern: return trace if dice.random () < 0.8 else "%064x" % dice.getrandbits (256)
    if "%" in pattern and "[.]" in pattern: return f"{dice.randrange (1, 100)}%"
    if "=" in pattern: return "a=1"
    return dice.choice (["v100", "h200", "alexnet", "lru", "x" * 64, "a.b-c_d"])
  return None

ODD = [None, True, -1, 0, 1 << 53, (1 << 63) - 1, 1 << 64, 1e300, 0.5, "", "x", "..", "/etc/passwd", "a" * 5000, "\u0000", "é\U0001f600", [], {}, [[]], {"": 1}, "0" * 64]
def mutate (value):
  if isinstance (value, dict) and value and dice.random () < 0.8:
    out, name = dict (value), dice.choice (sorted (value))
    how = dice.randrange (4)
    if how == 0: del out[name]
    elif how == 1: out[dice.choice (["zzz", "", "trace ", "__proto__", "validate_only"])] = dice.choice (ODD)
    else: out[name] = mutate (out[name])
    return out
  if isinstance (value, list) and value and dice.random () < 0.5:
    return [mutate (v) for v in value] * dice.choice ([1, 1, 50])
  return dice.choice (ODD)

def spoil (text):
  data = bytearray (text)
  for _ in range (dice.randrange (1, 6)):
    at = dice.randrange (len (data) + 1)
    how = dice.randrange (3)
    if how == 0: data[at:at] = bytes ([dice.randrange (256)])
    elif how == 1 and at < len (data): data[at] = dice.randrange (256)
    else: del data[at:at + dice.randrange (1, 9)]
  return bytes (data)

operations = [(m, p, o) for p, ms in doc["paths"].items () for m, o in ms.items () if not p.endswith ("/events")]
seen, wrong, slowest = {}, [], 0

def promised (content):
  # What a reply of this type keeps to, or None.
  schema = content.get ("application/json", {}).get ("schema")
  return Draft202012Validator ({**schema, "components": doc["components"]}) if schema and Draft202012Validator else None
schemas = {(m, p, status): promised (r.get ("content", {})) for m, p, o in operations for status, r in o["responses"].items ()}

def fill (path, odd):
  for name in ("id", "digest", "name"):
    good = {"id": trace, "digest": trace, "name": "plan"}[name]
    path = path.replace ("{" + name + "}", dice.choice (["..", "%00", "a" * 300, "%2e%2e%2f", "-", urllib.parse.quote (bytes (dice.choices (range (33, 127), k=20)), safe=""), good]) if odd else good)
  return path

def memory ():
  return int (open (f"/proc/{s.process.pid}/statm").read ().split ()[1]) * 4096

for n in range (requests):
  method, path, op = dice.choice (operations)
  odd = dice.random () < 0.6
  headers = dict (dice.choice ([(), (("Prefer", "wait=0"),), (("Accept", "*/*"),), (("If-None-Match", '"x"'),), (("Last-Event-ID", "9"),), (("Accept", "text/csv"),), (("Idempotency-Key", "x"),)] +
                               ([(("Content-Encoding", "zstd"),), (("Prefer", "wait=x"),), (("traceparent", "00-"),), (("Origin", "null"),), (("Accept", "a/b"),)] if odd else [])))
  body, called_valid = None, False
  if "requestBody" in op:
    content = op["requestBody"]["content"]
    if "application/json" in content:
      value = valid (content["application/json"]["schema"])
      sent = dict (value) if isinstance (value, dict) else {}
      if not odd: sent["validate_only"] = True
      called_valid = not odd and "$ref" in content["application/json"]["schema"]
      if path.startswith ("/k8s"): sent = {"Pod": {"metadata": {"annotations": {"ferry.dev/fingerprint": "x"}}}, "NodeNames": ["a", "b"]}
      if odd: sent = mutate (sent)
      body = json.dumps (sent).encode ()
      if odd and dice.random () < 0.3: body = spoil (body)
      headers["Content-Type"] = "application/json"
    else:
      body = spoil (open ("a.json", "rb").read ()[:dice.randrange (1, 4000)])
  query = "?" + dice.choice (["fingerprint=x", "limit=-1", "limit=9999999999999999999", "after=%ff", "gpu_memory_bytes=x", "x"]) if dice.random () < 0.2 else ""
  start = time.time ()
  try:
    r = s.ask (method.upper (), fill (path, odd) + query, body, headers, timeout=30)
  except Exception as e:
    wrong.append ((method, path, headers, body, repr (e)))
    break
  slowest = max (slowest, time.time () - start)
  seen[r.status] = seen.get (r.status, 0) + 1
  documented = set (op["responses"]) | {"404", "400", "421", "403", "405", "406", "415", "422", "304", "200"}
  if r.status >= 500 and r.status != 503: wrong.append ((method, path, headers, body, r.status, r.body))
  if r.status >= 400 and r.status != 503:
    try: problem (r, r.status)
    except Exception as e: wrong.append ((method, path, r.status, r.body[:200]))
  if str (r.status) not in documented and r.status != 429: wrong.append ((method, path, "undocumented", r.status))
  if called_valid and not query and r.status == 400: wrong.append ((method, path, "valid, and called malformed", body, r.body))
  schema = schemas.get ((method, path, str (r.status)))
  if schema and not query and r.headers["Content-Type"] == "application/json":
    wrong += [(method, path, r.status, e.message[:200]) for e in schema.iter_errors (r.json ())]
  if n == requests // 3: settled = memory ()

@claim ("never a 5xx, a hang, or an answer that is not described")
def _ (): assert not wrong, wrong[:5]
@claim ("the daemon lives, and its memory does not grow")
def _ ():
  assert s.ask ("GET", "/readyz").status == 200
  assert memory () < settled * 1.5 + (16 << 20), (settled, memory ())
@claim ("good and bad were both tried")
def _ (): assert seen.get (200) and seen.get (422) and seen.get (400) and seen.get (404), seen
@claim ("it ends in order")
def _ (): assert s.stop () == 0
print (f"{requests} requests: {dict (sorted (seen.items ()))}, the slowest took {slowest:.2f} s")
finish ()
