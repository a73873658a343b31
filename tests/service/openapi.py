# SPDX-License-Identifier: GPL-3.0-or-later
# server/openapi.json is made from the tables of the service: members.def, kinds.def, routes.def,
# problems.def. `openapi.py --write` makes it; without, it is compared, and looked through.
import json, os, re, sys

root = os.environ.get ("srcdir") or os.path.join (os.path.dirname (os.path.abspath (__file__)), "../..")
def rows (name, word):
  text = re.sub (r"/\*.*?\*/", "", open (f"{root}/server/{name}").read (), flags=re.S)
  for row in re.findall (word + r" \((.*)\)\n", text):
    yield [p.strip ().strip ("\"'") for p in re.findall (r"\"[^\"]*\"|'.'|[^,]+", row)]

NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"}
DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
LIMITS = {"MOST_INT": 1 << 53}

def integer (least, most):
  number = lambda n: LIMITS.get (n) or int (n)
  return {"type": "integer", "minimum": number (least), "maximum": number (most)}

def a_list (of):
  return {"type": "array", "items": of, "minItems": 1}

def member (type, least, most, words):
  word = {"type": "string", "enum": words.split ()} if words != "NULL" else None
  return {
    "TYPE_INT": lambda: integer (least, most), "TYPE_SHARE": lambda: integer (least, most),
    "TYPE_PERCENT": lambda: integer (least, most), "TYPE_FLAG": lambda: {"type": "boolean"},
    "TYPE_WORD": lambda: word, "TYPE_WORD_OR_INT": lambda: {"oneOf": [word, integer (least, most)]},
    "TYPE_NAME": lambda: NAME, "TYPE_NETWORK": lambda: NAME, "TYPE_POLICY": lambda: NAME, "TYPE_POLICIES": lambda: a_list (NAME), "TYPE_DEVICES": lambda: a_list (NAME),
    "TYPE_PAIRS": lambda: {"type": "string", "pattern": "^[A-Za-z0-9._=,%-]{1,200}$"},
    "TYPE_DEVICE": lambda: {"oneOf": [NAME, {"type": "object", "description": "a device as in docs/formats.md"}]},
    "TYPE_HOST": lambda: {"oneOf": [NAME, {"type": "object", "description": "a host as in docs/hosts.md"}]},
    "TYPE_SIZES": lambda: a_list ({"oneOf": [integer (least, most), {"type": "string", "pattern": "^[0-9]{1,4}([.][0-9]{1,4})?%$"}]}),
    "TYPE_RATES": lambda: a_list (integer (least, most)), "TYPE_TIMES": lambda: a_list (integer (least, most)), "TYPE_COUNTS": lambda: a_list (integer (least, most)),
    "TYPE_TRACE": lambda: DIGEST, "TYPE_TRACES": lambda: {**a_list (DIGEST), "maxItems": 9},
    "TYPE_JOBS": lambda: {"type": "array", "minItems": 1, "maxItems": 10, "items": {
      "type": "object", "additionalProperties": False, "required": ["name", "trace"], "properties": {"name": NAME, "trace": DIGEST}}},
  }[type] ()

def requests ():
  out = {}
  for letter, name, *_, most in rows ("protocol/kinds.def", "KIND"):
    if letter == "I": continue
    own = [r for r in rows ("protocol/members.def", "MEMBER") if letter in r[6]]
    properties = {r[0]: member (*r[2:6]) for r in own}
    for p in properties.values ():
      if p.get ("type") == "array": p.setdefault ("maxItems", int (most))
    properties["validate_only"] = {"type": "boolean"}
    out["request-" + name] = {"type": "object", "additionalProperties": False,
                              "required": [r[0] for r in own if (r[1] == "NULL" and r[2] != "TYPE_TRACES") or (letter, r[0]) == ("B", "device")], "properties": properties}
  return out

KINDS = [r[1] for r in rows ("protocol/kinds.def", "KIND")]
SAYS = {
  "api_page": "the page", "api_health": "the process is alive", "api_metrics": "metrics, in Prometheus' text form",
  "api_openapi": "this description", "api_ready": "the store answers, and the service is not stopping",
  "api_k8s_filter": "nodes on which the pod fits, for a Kubernetes scheduler",
  "api_k8s_prioritize": "the node with the least that suffices scores highest", "api_k8s_mutate": "an AdmissionReview: the figures of a fingerprint for pods, their templates and claims; bindings and ends of pods", "api_advice": "memory for a known profile, from its newest curve; with a host, how many ranks fit it, from its newest what-if there",
  "api_version": "which ferry this is", "api_devices": "names that device may have in a request", "api_traces": "the caller's traces", "api_upload": "a trace, or a profile that ferry import reads",
  "api_trace": "what is known of a trace", "api_trace_drop": "the caller's claim on it goes", "api_trace_content": "the trace itself",
  "api_uploaded": "the trace of bytes that were sent before, by their SHA-256", "api_jobs": "the caller's jobs", "api_submit": "a job: the same request is the same job",
  "api_job": "its status, in every state", "api_cancel": "the caller's claim goes; the work stops when nobody is left",
  "api_result": "what the command prints as JSON", "api_file": "plan, picture, timeline, chrome or log; plan.NAME of a pack, plan.1 and further ones of ranks", "api_events": "incumbents and the end, as they come" }
FORMS = {"api_page": "text/html", "api_health": "text/plain", "api_metrics": "text/plain", "api_ready": "text/plain", "api_events": "text/event-stream"}
OTHER = {
  "api_submit": {"202": "queued or running", "429": "queue_full", "422": "invalid", "404": "not_found: the caller has given the job up while this waited for it", "507": "disk_full"}, "api_upload": {"201": "new", "202": "still importing", "410": "cancelled", "422": "import_failed", "429": "queue_full", "507": "disk_full"},
  "api_job": {"304": "not modified"}, "api_result": {"304": "not modified", "406": "not_acceptable", "409": "not_finished, or failed", "410": "cancelled"},
  "api_file": {"304": "not modified", "409": "not_finished, or failed", "410": "cancelled"}, "api_cancel": {"202": "stopping", "412": "changed"}, "api_trace_drop": {"412": "changed"},
  "api_traces": {"422": "invalid"}, "api_jobs": {"422": "invalid"}, "api_trace_content": {"304": "not modified"}, "api_advice": {"422": "invalid"}, "api_k8s_filter": {"422": "invalid"}, "api_k8s_prioritize": {"422": "invalid"}, "api_k8s_mutate": {"422": "invalid"} }
ANSWERS = {"api_job": "job", "api_jobs": "jobs", "api_trace": "trace", "api_upload": "trace", "api_uploaded": "trace", "api_traces": "traces", "api_advice": "advice",
           "api_version": "version", "api_devices": "devices", "api_k8s_filter": "k8s-filter", "api_k8s_prioritize": "k8s-scores", "api_k8s_mutate": "k8s-review"}

def problem (says):
  return {"description": says, "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/problem"}}}}

def operation (method, path, role, body, query, function, kind):
  names = [n for n in re.findall (r"\{(\w+)\}", path)]
  ref = lambda name: {"$ref": "#/components/schemas/" + name}
  job = ref ("job")
  schema = ref (ANSWERS[function]) if function in ANSWERS else {"type": "string"} if function in FORMS else {}
  if function == "api_submit": schema = {"oneOf": [job, ref ("valid")]}
  responses = {"200": {"description": "the answer", "content": {FORMS.get (function, "application/json"): {"schema": schema}}}}
  if function in ("api_cancel", "api_trace_drop"): responses = {"204": {"description": "over"}}
  for status, says in OTHER.get (function, {}).items ():
    responses[status] = problem (says) if int (status) >= 400 else {"description": says}
    if status in ("201", "202") and function != "api_cancel":
      responses[status]["content"] = {"application/json": {"schema": job if status == "202" else schema}}
  if role != "none": responses.update ({"401": problem ("unauthorized"), "403": problem ("forbidden")})
  if names: responses["404"] = problem ("not_found")
  if function == "api_advice": responses["404"] = problem ("unknown_profile")
  if body != "BODY_NONE": responses["415"] = problem ("wrong_type")
  responses.update ({"400": problem ("malformed"), "413": problem ("too_large"), "421": problem ("wrong_host"), "431": problem ("too_many"), "503": problem ("unavailable")})
  out = {"operationId": function + (f"_{kind}" if kind else "_file" if path == "/ui/{name}" else "_of" if "{token}" in path else ""), "summary": SAYS[function], "responses": dict (sorted (responses.items ()))}
  out["security"] = [] if role == "none" else [{"token": []}, {}]
  out["parameters"] = [{"name": n, "in": "path", "required": True, "schema": NAME if n in ("name", "token") else DIGEST} for n in names]
  out["parameters"] += [{"name": n, "in": "query", "required": function == "api_advice" and n == "fingerprint",
                         "schema": NAME if n in ("fingerprint", "host") else {"type": "string"} if n in ("after", "timeout", "name") else integer ("0", "100000000" if n == "max_slowdown_ppm" else "MOST_INT")} for n in query if n != "format"]
  if function in ("api_submit", "api_job"):
    out["parameters"].append ({"name": "Prefer", "in": "header", "required": False, "schema": {"type": "string"},
                               "description": "wait=N: the reply comes when the job has ended, after N seconds at most (30)"})
  if function in ("api_cancel", "api_trace_drop"):
    out["parameters"].append ({"name": "If-Match", "in": "header", "required": False, "schema": {"type": "string"}, "description": "an ETag that it must still have, else 412"})
  if function == "api_submit":
    out["parameters"].append ({"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 128},
                               "description": "a name for this request; 422 where it stood for another"})
  if function == "api_result":
    out["parameters"].append ({"name": "format", "in": "query", "required": False, "schema": {"enum": ["json", "csv", "svg", "chrome"]},
                               "description": "without it, Accept decides; csv of curves, comparisons and what-if, svg where there is a picture, chrome where there is a plan"})
    out["responses"]["200"]["content"].update ({t: {"schema": {"type": "string"}} for t in ("text/csv", "image/svg+xml")})
  if body == "BODY_UPLOAD":
    out["requestBody"] = {"required": True, "content": {
      "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
      "multipart/form-data": {"schema": {"type": "object", "required": ["file"], "properties": {
        "file": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "format": "binary"},
                 "description": "the files of one run, such as an execution trace and its Kineto file"}}}}}}
  elif body != "BODY_NONE":
    schema = {"$ref": f"#/components/schemas/request-{kind}"} if kind else {"type": "object"}
    out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
  return out

JOB = {"type": "object", "required": ["id", "kind", "state", "attempt", "links", "request"], "properties": {
  "id": DIGEST, "kind": {"enum": KINDS}, "state": {"enum": [r[0] for r in rows ("store/states.def", "STATE")]},
  "attempt": {"type": "integer"}, "events": {"type": "integer"}, "exit": {"type": "integer"}, "position": {"type": "integer"},
  "created_ms": {"type": "integer"}, "started_ms": {"type": "integer"}, "finished_ms": {"type": "integer"},
  "links": {"type": "object"}, "request": {"type": "object"}, "result": {"type": "object"}, "verified": {"type": "object"}, "problem": {"type": "object"}}}
PROBLEM = {"type": "object", "required": ["type", "title", "status", "detail", "instance", "request_id"], "properties": {
  "type": {"enum": ["/problems/" + r[0].replace ("_", "-") for r in rows ("protocol/problems.def", "PROBLEM")]}, "title": {"type": "string"},
  "status": {"type": "integer"}, "detail": {"type": "string"}, "instance": {"type": "string"}, "request_id": {"type": "string"},
  "errors": {"type": "array", "items": {"type": "object", "required": ["detail", "pointer"], "properties": {"detail": {"type": "string"}, "pointer": {"type": "string"}}}}}}

def an_object (properties, optional=(), says=None):
  out = {"type": "object", "required": [n for n in properties if n not in optional], "properties": properties}
  return {"description": says, **out} if says else out

COUNT, TEXT, BOOL, REAL = {"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "boolean"}, {"type": "number"}
def said (schema, says): return {**schema, "description": says}
POINT = {
  "memory_bytes": said (COUNT, "the budget that suffices"), "memory_mib": said (COUNT, "card_bytes, rounded up"), "card_bytes": said (COUNT, "of a card: the budget, and what the process takes beside it"), "reserved_bytes": said (COUNT, "the latter"),
  "device_peak_bytes": said (COUNT, "the most that its plan holds on the device"), "pinned_host_bytes": said (COUNT, "the most that it holds on the host"),
  "d2h_bytes": said (COUNT, "copied out in a step"), "h2d_bytes": said (COUNT, "copied in"), "step_ns": COUNT,
  "slowdown": said (REAL, "of that plan: 0.05 is 5 % more than with everything on the device"),
  "slowdown_bound": said (REAL, "no plan in this memory has less")}
HOST_POINT = {n: POINT[n] for n in ("memory_bytes", "memory_mib", "card_bytes", "step_ns")}
HOST_POINT.update ({"pinned_host_bytes": said (COUNT, "by all ranks"), "slowdown": said (REAL, "of all ranks together, simulated"), "slowdown_bound": said (REAL, "no plans of these ranks in this memory have less")})
TRACE = an_object ({
  "trace": DIGEST, "fingerprint": said (NAME, "the newest name that its owner gave to it, or its id"),
  "info": an_object ({
    "name": {"type": ["string", "null"]}, "batch": COUNT, "ops": COUNT, "tensors": COUNT, "compute_ns": COUNT, "idle_ns": COUNT, "peak_bytes": said (COUNT, "with everything on the device"),
    "device": said ({"type": ["string", "null"]}, "the name of the card that its times are of"), "floor_bytes": said (COUNT, "no plan of whole ops takes less"), "plannable": BOOL, "confidence": {"type": ["string", "null"]}, "doubt": TEXT, "digest": TEXT, "trace": DIGEST}, optional=("device", "doubt"))})
REPLIES = {
  "valid": an_object ({"id": said (DIGEST, "of the job that the request would be"), "valid": {"const": True}}, says="of a request with validate_only"),
  "devices": an_object ({"devices": {"type": "array", "items": NAME}, "files": said ({"type": "array", "items": {"type": "object"}}, "the same as devices of docs/formats.md"),
    "hosts": said ({"type": "array", "items": {"type": "object"}}, "whose names host may be, as files of docs/hosts.md")}, optional=("files", "hosts")), "version": an_object ({"api": TEXT, "ferry": TEXT}), "trace": TRACE,
  "traces": an_object ({"traces": {"type": "array", "items": {"$ref": "#/components/schemas/trace"}}}, says="the header Link has the next page"),
  "jobs": an_object ({"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/job"}}}, says="the header Link has the next page"),
  "advice": {"anyOf": [an_object ({
    "fits": said (BOOL, "on gpu_memory_bytes, or, without it, on some card"), "reason": said ({"type": ["string", "null"]}, "why it does not fit"), **POINT,
    "floor_bytes": said (COUNT, "no plan of whole ops takes less"), "fingerprint": NAME, "trace": DIGEST, "curve": said (DIGEST, "the job in /v1/curves that this was read from"),
    "device": said ({"type": ["string", "null"]}, "whose link the times are for, as the curve was asked for; null: that of the trace"),
    "assumptions": {"type": "array", "items": TEXT}}, POINT, "without memory and times where no budget of the curve is fast enough"), an_object ({
    "fits": said (BOOL, "the ranks that were asked for, or, without a number, any"), "reason": said ({"type": ["string", "null"]}, "why not"), "host": NAME, "cards": said (COUNT, "of the host"), "ranks": said (COUNT, "the most that fit"),
    "baseline_ns": said (COUNT, "of a rank with everything on its card"), "needs_bytes": said (COUNT, "the memory of that"), "host_bytes": said (COUNT, "memory of the host"), "pinnable_bytes": said (COUNT, "how much of it may be pinned"),
    "rank_host_bytes": said (COUNT, "as asked"), "reserved_bytes": COUNT, "fingerprint": NAME, "trace": DIGEST, "curve": said (DIGEST, "the job in /v1/what-if that this was read from"), "device": TEXT, "assumptions": {"type": "array", "items": TEXT},
    **HOST_POINT}, HOST_POINT, "with a host: without memory and times where no ranks fit")]},
  "k8s-filter": an_object ({
    "Error": TEXT, "FailedNodes": said ({"type": "object", "additionalProperties": TEXT}, "by name, why the pod does not fit there"), "FailedAndUnresolvableNodes": {"type": "object"},
    "NodeNames": {"type": ["array", "null"], "items": TEXT}, "Nodes": {"type": ["object", "null"]}}),
  "k8s-review": an_object ({
    "apiVersion": {"const": "admission.k8s.io/v1"}, "kind": {"const": "AdmissionReview"},
    "response": an_object ({"uid": TEXT, "allowed": {"const": True}, "patch": said (TEXT, "a JSON patch in base64"), "patchType": {"const": "JSONPatch"}, "warnings": {"type": "array", "items": TEXT}}, ("patch", "patchType", "warnings"))}),
  "k8s-scores": {"type": "array", "items": an_object ({"Host": TEXT, "Score": {"type": "integer", "minimum": 0, "maximum": 10}})}}

def description ():
  paths = {}
  for method, path, role, body, query, function in rows ("api/routes.def", "ROUTE"):
    kinds = [k for k in KINDS if k != "imports" or function not in ("api_submit",)] if "{kind}" in path else [None]
    for kind in kinds:
      p = path.replace ("{kind}", kind or "")
      paths.setdefault (p, {})[method.lower ()] = operation (method, p, role, body, query.replace ("NULL", "").split (), function, kind)
  version = re.search (r"AC_INIT\(\[ferry\],\[(.*?)\]", open (f"{root}/configure.ac").read ()).group (1)
  return {"openapi": "3.1.0", "info": {"title": "ferry", "version": version, "license": {"name": "GPL-3.0-or-later", "identifier": "GPL-3.0-or-later"},
            "description": "Traces in; plans, curves, smallest memory, packings, comparisons and advice out. Results are what the commands print as JSON."},
          "servers": [{"url": "http://127.0.0.1:8077"}], "paths": dict (sorted (paths.items ())),
          "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
                         "schemas": {"job": JOB, "problem": PROBLEM, **REPLIES, **requests ()}}}

def written (value, depth=0): # a line for each path and schema
  if depth == 3 or not isinstance (value, dict): return json.dumps (value)
  return "{\n" + ",\n".join ("  " * (depth + 1) + json.dumps (k) + ": " + written (v, depth + 1) for k, v in value.items ()) + "}"
text = written (description ()) + "\n"
if "--write" in sys.argv:
  open (f"{root}/server/openapi.json", "w").write (text)
  sys.exit ()

passed = failed = 0
def claim (says, holds):
  global passed, failed
  passed, failed = passed + bool (holds), failed + (not holds)
  if not holds: print ("does not hold:", says)

there = open (f"{root}/server/openapi.json").read ()
claim ("server/openapi.json is what python3 tests/service/openapi.py --write makes", there == text)
doc = json.loads (there)
refs = re.findall (r'"\$ref": "#/components/schemas/([^"]+)"', there)
claim ("every reference leads somewhere", set (refs) <= set (doc["components"]["schemas"]))
ids = [o["operationId"] for p in doc["paths"].values () for o in p.values ()]
claim ("every operation has an id of its own", len (ids) == len (set (ids)))
for p, methods in doc["paths"].items ():
  for m, o in methods.items ():
    claim (f"{m} {p} declares its path's parameters", set (re.findall (r"\{(\w+)\}", p)) == {q["name"] for q in o["parameters"] if q["in"] == "path"})
    claim (f"{m} {p} has an answer that is no problem", any (int (s) < 300 for s in o["responses"]))
try:
  import jsonschema
  for name, schema in doc["components"]["schemas"].items ():
    try: jsonschema.Draft202012Validator.check_schema (schema); claim (name, True)
    except jsonschema.SchemaError as e: print (e); claim (f"{name} is a JSON Schema", False)
except ImportError:
  print ("skipped: jsonschema is not here")
# Every option that a member names is one of the command's.
options = set (os.popen (os.path.join (os.environ.get ("builddir", "build"), "ferry") + " completion --list").read ().split ("\n"))
commands = {r[0]: r[2] for r in rows ("protocol/kinds.def", "KIND")}
for name, option, *_, kinds in rows ("protocol/members.def", "MEMBER"):
  for k in kinds:
    claim (f"{commands[k]} has the option --{option} of {name}", option == "NULL" or f"{commands[k]} --{option}" in options)
names = [r[0] for r in rows ("protocol/members.def", "MEMBER")]
claim ("the members are sorted", names == sorted (names))
print (f"{passed} passed, {failed} failed")
sys.exit (failed > 0)
