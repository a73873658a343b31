# SPDX-License-Identifier: GPL-3.0-or-later
# Kubernetes without a cluster: reviews as an API server sends them, what a scheduler asks, and the manifests of
# contrib/kubernetes. PyPI's kubernetes-validate carries the API server's own OpenAPI of each version; without it, objects
# are held against the schemas below alone, of the published API as far as it is used.
import base64, copy, re
from common import *

work = scratch ()
root = os.environ["srcdir"] + "/contrib/kubernetes"
ferry ("zoo", "-q", *SMALL, "-o", "a.json")
lines, made = "", {}
for name, role in (("ada", "submit"), ("site", "site"), ("eve", "read")):
  p = ferry ("token", "--owner", name, "--role", role)
  made[name], lines = p.stderr.strip (), lines + p.stdout
with open ("tokens", "w") as f:
  os.chmod ("tokens", 0o600)
  f.write (lines)
s = Server (work, "--tokens", "tokens", "--workers", "1")
trace = s.upload ("a.json", made["ada"], "?fingerprint=Net_1")
s.job ("curves", {"trace": trace, "points": 4, "limit_ticks": 1000, "sections": "off"}, made["ada"])
a = s.ask ("GET", "/v1/advice?fingerprint=Net_1&max_slowdown_ppm=1000000", token=made["site"]).json ()
CARD, MIB, PINNED = a["card_bytes"], a["memory_mib"], a["pinned_host_bytes"]
assert PINNED > 0, a
NOTES = {"ferry.dev/fingerprint": "Net_1", "ferry.dev/max-slowdown-ppm": "1000000"}

try: import kubernetes_validate
except ImportError: kubernetes_validate = print ("kubernetes-validate is not here: no object is held against the API server's OpenAPI")
held, VERSIONS = set (), {"Pod": "v1", "Job": "batch/v1", "ResourceClaim": "resource.k8s.io/v1", "ResourceClaimTemplate": "resource.k8s.io/v1"}

def takes (d):
  # As API servers would, to which an unknown field is an error.
  if kubernetes_validate:
    for version in ("1.34", "1.37"): kubernetes_validate.validate (d, version, strict=True)
  held.add (d["kind"])

def is_whole (typed, object):
  try: takes ({**typed, **object})
  except Exception: return False
  return True

def review (kind, object, operation="CREATE", group="", sub=None, old=None, dry=False):
  return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
    "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": {"group": group, "version": "v1", "kind": kind},
    "resource": {"group": group, "version": "v1", "resource": kind.lower () + "s"}, **({"subResource": sub} if sub else {}), "namespace": "default", "operation": operation,
    "userInfo": {"username": "system:admin", "groups": ["system:masters"]}, "object": object, "oldObject": old, "dryRun": dry, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}}}

def apply (object, changes):
  out = copy.deepcopy (object)
  for c in changes:
    assert c["op"] == "add", c
    *way, last = [p.replace ("~1", "/").replace ("~0", "~") for p in c["path"].split ("/")[1:]]
    at = out
    for p in way: at = at[int (p)] if isinstance (at, list) else at[p]
    if isinstance (at, list): at.insert (len (at) if last == "-" else int (last), c["value"])
    else: at[last] = c["value"]
  return out

def mutate (kind, object, token="site", **more):
  r = s.ask ("POST", "/k8s/mutate?timeout=2s", review (kind, object, **more), token=made[token])
  assert r.status == 200, r.body
  out = r.json ()
  assert (out["apiVersion"], out["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
  answer = out["response"]
  assert answer["allowed"] is True and answer["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
  assert ("patch" in answer) == ("patchType" in answer) and answer.get ("patchType", "JSONPatch") == "JSONPatch"
  out = apply (object, json.loads (base64.b64decode (answer["patch"]))) if "patch" in answer else object
  if kind in VERSIONS and "patch" in answer and is_whole (typed := {"apiVersion": VERSIONS[kind], "kind": kind}, object): takes ({**typed, **out})
  return out, answer.get ("warnings", [])

def pod (notes=NOTES, uid=None, resources=None, **spec):
  meta = {"generateName": "train-", **({"annotations": notes} if notes is not None else {}), **({"uid": uid} if uid else {})}
  return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "side", "image": "side"}, {"name": "train", "image": "train", "resources": resources or {"limits": {"nvidia.com/gpu": 1, "memory": "2Gi"}, "requests": {"memory": "1Gi"}}}], **spec}}

@claim ("a pod that names a fingerprint gets its memory, its container the pinned memory, once")
def _ ():
  out, warnings = mutate ("Pod", pod ())
  assert not warnings and out["metadata"]["annotations"]["ferry.dev/gpu-memory-bytes"] == str (CARD) and out["metadata"]["annotations"]["ferry.dev/pinned-host-bytes"] == str (PINNED)
  assert out["metadata"]["annotations"]["ferry.dev/slowdown-ppm"].isdigit () and "ferry.dev/ranks" not in out["metadata"]["annotations"]
  r = out["spec"]["containers"][1]["resources"]
  assert r == {"limits": {"nvidia.com/gpu": 1, "memory": str ((2 << 30) + PINNED)}, "requests": {"memory": str ((1 << 30) + PINNED)}}, r
  assert out["spec"]["containers"][0] == {"name": "side", "image": "side"}
  again, _ = mutate ("Pod", out)
  assert again == out

@claim ("it is written in the words of who shares the cards: HAMi, KAI or a claim")
def _ ():
  share = lambda how, **more: mutate ("Pod", pod ({**NOTES, "ferry.dev/share": how}, **more))[0]
  assert share ("hami")["spec"]["containers"][1]["resources"]["limits"]["nvidia.com/gpumem"] == str (MIB)
  assert share ("kai")["metadata"]["annotations"]["gpu-memory"] == str (MIB)
  bare = {"metadata": {"annotations": {**NOTES, "ferry.dev/share": "dra"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
  for object in (pod ({**NOTES, "ferry.dev/share": "dra"}), bare, {**bare, "spec": {**bare["spec"], "resourceClaims": [{"name": "nic", "resourceClaimName": "nic"}]}}):
    out, _ = mutate ("Pod", object)
    assert {"name": "ferry", "resourceClaimTemplateName": "ferry-net-1"} in out["spec"]["resourceClaims"]
    assert sum (c.get ("resources", {}).get ("claims", []) == [{"name": "ferry"}] for c in out["spec"]["containers"]) == 1
    assert mutate ("Pod", out)[0] == out
  assert mutate ("Pod", {**bare, "metadata": {"annotations": {**NOTES, "ferry.dev/share": "hami"}}})[0]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpumem": str (MIB)}}

@claim ("a claim, and a template of claims, ask for the card's memory and say who keeps to it")
def _ ():
  devices = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
  meta = {"name": "ferry-net-1", "annotations": NOTES}
  full = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "capacity": {"requests": {"memory": "1Mi", "compute": "10"}}}}]}}
  for spec, want in ((devices, {"memory": f"{MIB}Mi"}), (full, {"memory": f"{MIB}Mi", "compute": "10"})):
    claim_, _ = mutate ("ResourceClaim", {"metadata": meta, "spec": spec}, group="resource.k8s.io")
    template, _ = mutate ("ResourceClaimTemplate", {"metadata": meta, "spec": {"spec": spec}}, group="resource.k8s.io")
    assert claim_["spec"] == template["spec"]["spec"] and claim_["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"] == want, claim_
    assert "0.5.0" in template["metadata"]["annotations"]["ferry.dev/honoured-by"]
  said = ferry ("advise", "Net_1", "-s", "100%", "--format", "dra", "--server", s.url, env=dict (os.environ, FERRY_TOKEN=made["ada"])).stdout
  assert f"memory: {MIB}Mi\n" in said and "name: ferry-net-1\n" in said and "0.5.0" in said

@claim ("Kueue's workload and a Job's template get the same, by their own fingerprint or the object's")
def _ ():
  template = {"metadata": {"annotations": NOTES}, "spec": pod ()["spec"]}
  bare = {"spec": pod ()["spec"]}
  for kind, object, at in (("Workload", {"metadata": {}, "spec": {"podSets": [{"name": "a", "count": 2, "template": bare}, {"name": "main", "count": 1, "template": template}]}}, lambda o: o["spec"]["podSets"][1]["template"]),
                           ("Workload", {"metadata": {"annotations": NOTES}, "spec": {"podSets": [{"name": "main", "count": 1, "template": bare}]}}, lambda o: o["spec"]["podSets"][0]["template"]),
                           ("Job", {"metadata": {}, "spec": {"template": template}}, lambda o: o["spec"]["template"]), ("Job", {"metadata": {"annotations": NOTES}, "spec": {"template": bare}}, lambda o: o["spec"]["template"])):
    out, warnings = mutate (kind, object)
    assert not warnings and at (out)["metadata"]["annotations"]["ferry.dev/gpu-memory-bytes"] == str (CARD), out
    assert at (out)["metadata"]["annotations"]["ferry.dev/fingerprint"] == "Net_1"
    assert at (out)["spec"]["containers"][1]["resources"]["requests"]["memory"] == str ((1 << 30) + PINNED)
    assert mutate ("Pod", {"metadata": at (out)["metadata"], "spec": at (out)["spec"]})[0]["spec"] == at (out)["spec"] # not a second time

@claim ("what is not known, or not understood, is a warning and no change; what asks for nothing is left alone")
def _ ():
  for notes, warned in (({"ferry.dev/fingerprint": "nobody"}, True), ({"ferry.dev/fingerprint": "a b"}, True), ({**NOTES, "ferry.dev/max-slowdown-ppm": "5%"}, True), ({}, False), (None, False)):
    object = pod (notes)
    out, warnings = mutate ("Pod", object)
    assert out == object and bool (warnings) == warned, (notes, warnings)
  assert mutate ("Pod", pod (), token="eve")[0] == pod () # another owner's
  odd = pod (resources={"limits": {"nvidia.com/gpu": 1, "memory": "1.5Gi"}})
  out, warnings = mutate ("Pod", odd)
  assert warnings and out["spec"] == odd["spec"]
  for object in ({}, {"metadata": None}, {"metadata": {"annotations": 1}}, {"metadata": {"annotations": NOTES}}, {"metadata": {"annotations": NOTES}, "spec": {"containers": {}}}, {"metadata": {"annotations": {"ferry.dev/fingerprint": 1}}}, [], None, 1):
    for kind in ("Pod", "Job", "Workload", "ResourceClaim", "ResourceClaimTemplate", "Binding", "Nonsense"): mutate (kind, object)
  many = {"metadata": {"annotations": NOTES}, "spec": {"podSets": [{"template": {}}] * 20000}}
  out, warnings = mutate ("Workload", many) # each would be looked up
  assert out == many and warnings
  ask = lambda body: s.ask ("POST", "/k8s/mutate", body, {"Content-Type": "application/json"}, made["site"])
  problem (ask (b"{"), 400)
  for body in ({}, [], {**review ("Pod", pod ()), "apiVersion": "admission.k8s.io/v1beta1"}, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}): problem (ask (json.dumps (body).encode ()), 422)
  assert s.ask ("POST", "/k8s/mutate", review ("Pod", pod ())).status == 401
  assert s.ask ("POST", f"/k8s/{made['site']}/mutate", review ("Pod", pod ())).status == 200

def node (name, cards=None, mib=CARD * 3 // 2 >> 20, **labels):
  return {"metadata": {"name": name, "labels": {"nvidia.com/gpu.memory": str (mib), **({"nvidia.com/gpu.count": str (cards)} if cards else {}), **labels}}}
def filtered (uid, *nodes, token="site"):
  r = s.ask ("POST", "/k8s/filter", {"Pod": pod (uid=uid), "Nodes": {"items": nodes}}, token=made[token]).json ()
  return [n["metadata"]["name"] for n in r["Nodes"]["items"]], r["FailedNodes"]
def bind (uid, name, **more):
  mutate ("Binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "train-x", "namespace": "default", "uid": uid}, "target": {"kind": "Node", "name": name}}, sub="binding", **more)

@claim ("labels of the GPU operator say how large a card is")
def _ ():
  large, small = node ("large"), node ("small", mib=(CARD >> 20) - 1)
  assert filtered ("u0", large, small)[0] == ["large"]
  assert filtered ("u0", node ("odd", mib="much"), node ("own", **{"ferry.dev/gpu-memory-bytes": "1"}))[0] == ["odd"]

@claim ("two pods that fit alone do not both fit one card: what is bound is not free until it ends")
def _ ():
  one, two = node ("one"), node ("two", 2)
  assert filtered ("u1", one, two)[0] == ["one", "two"]
  bind ("u1", "one", dry=True)
  assert filtered ("u2", one)[0] == ["one"]
  bind ("u1", "one", token="ada")
  assert filtered ("u2", one)[0] == ["one"] # whoever may not place pods does not
  bind ("u1", "one")
  names, failed = filtered ("u2", one, two)
  assert names == ["two"] and "free" in failed["one"], failed
  assert filtered ("u1", one)[0] == ["one"] # its own memory is not in its way
  scores = lambda uid: {h["Host"]: h["Score"] for h in s.ask ("POST", "/k8s/prioritize", {"Pod": pod (uid=uid), "Nodes": {"items": [one, two]}}, token=made["site"]).json ()}
  assert scores ("u2")["one"] == 0 < scores ("u2")["two"]
  bind ("u2", "two")
  assert filtered ("u3", two)[0] == ["two"] # the second of its cards
  bind ("u3", "two")
  assert filtered ("u4", one, two)[0] == []
  mutate ("Pod", {**pod (uid="u2"), "status": {"phase": "Running"}}, operation="UPDATE", sub="status")
  assert filtered ("u4", two)[0] == []
  mutate ("Pod", {**pod (uid="u2"), "status": {"phase": "Succeeded"}}, operation="UPDATE", sub="status")
  assert filtered ("u4", two)[0] == ["two"]
  mutate ("Pod", None, operation="DELETE", old=pod (uid="u1"))
  assert filtered ("u4", one)[0] == ["one"]

@claim ("what is placed outlives the daemon")
def _ ():
  assert filtered ("u8", node ("kept"))[0] == ["kept"]
  bind ("u8", "kept")
  assert s.stop () == 0
  s.start ()
  assert filtered ("u9", node ("kept"))[0] == []

def documents (text):
  import yaml
  return [d for d in yaml.safe_load_all (text) if d]

def built (of): return documents (subprocess.run (["kubectl", "kustomize", f"{root}/{of}"], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout)
META = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}}}
PROBE = {"type": "object", "required": ["httpGet"], "additionalProperties": False, "properties": {"httpGet": {"type": "object", "required": ["path", "port"], "additionalProperties": False, "properties": {"path": {"pattern": "^/"}, "port": {}}}, **{k: {"type": "integer"} for k in ("failureThreshold", "periodSeconds", "timeoutSeconds")}}}
CONTAINER = {"type": "object", "required": ["name", "image"], "additionalProperties": False, "properties": {**{k: {} for k in ("name", "image", "args", "env", "ports", "resources", "securityContext", "volumeMounts")}, **{k: PROBE for k in ("startupProbe", "readinessProbe", "livenessProbe")}}}
RULE = {"type": "object", "required": ["apiGroups", "apiVersions", "operations", "resources"], "additionalProperties": False, "properties": {**{k: {"type": "array", "items": {"type": "string"}, "minItems": 1} for k in ("apiGroups", "apiVersions", "resources")}, "operations": {"type": "array", "items": {"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]}}}}
WEBHOOK = {"type": "object", "required": ["name", "admissionReviewVersions", "sideEffects", "clientConfig"], "additionalProperties": False, "properties": {"name": {"pattern": r"^[a-z0-9-]+(\.[a-z0-9-]+){2,}$"}, "admissionReviewVersions": {"const": ["v1"]}, "sideEffects": {"enum": ["None", "NoneOnDryRun"]}, "failurePolicy": {"enum": ["Ignore", "Fail"]}, "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": 30}, "reinvocationPolicy": {"enum": ["Never", "IfNeeded"]}, "clientConfig": {"type": "object"}, "matchConditions": {"type": "array", "items": {"type": "object", "required": ["name", "expression"], "additionalProperties": False, "properties": {"name": {}, "expression": {"type": "string"}}}}, "rules": {"type": "array", "items": RULE}}}
SHAPES = {"Namespace": {}, "ConfigMap": {}, "PersistentVolumeClaim": {}, "Service": {}, "NetworkPolicy": {},
          "Deployment": {"properties": {"spec": {"properties": {"template": {"properties": {"spec": {"properties": {"containers": {"items": CONTAINER}}}}}}}}},
          "MutatingWebhookConfiguration": {"required": ["webhooks"], "properties": {"webhooks": {"items": WEBHOOK}}}}

def check_made (made_of, of):
  import jsonschema
  assert set (made_of) == set (SHAPES) - ({"PersistentVolumeClaim"} if of == "postgres" else set ()), set (made_of) ^ set (SHAPES)
  for kind, d in made_of.items (): jsonschema.validate (d, {**SHAPES[kind], "required": ["apiVersion", "kind", "metadata"] + SHAPES[kind].get ("required", []), "properties": {**SHAPES[kind].get ("properties", {}), "metadata": META}})
  spec = made_of["Deployment"]["spec"]["template"]["spec"]
  volumes = {v["name"] for v in spec["volumes"]}
  assert all (len (v) == 2 for v in spec["volumes"]) and ("persistentVolumeClaim" in spec["volumes"][0] or "emptyDir" in next (v for v in spec["volumes"] if v["name"] == "state")), spec["volumes"]
  ports = {p["name"] for c in spec["containers"] for p in c["ports"]}
  for c in spec["containers"]:
    assert {m["name"] for m in c["volumeMounts"]} <= volumes and c["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    for k in ("startupProbe", "readinessProbe", "livenessProbe"):
      if k in c: assert s.ask ("GET", c[k]["httpGet"]["path"]).status == 200 and c[k]["httpGet"]["port"] in ports
  assert made_of["Service"]["spec"]["ports"][0]["targetPort"] in ports and made_of["Service"]["spec"]["selector"].items () <= made_of["Deployment"]["spec"]["template"]["metadata"]["labels"].items ()
  for w in made_of["MutatingWebhookConfiguration"]["webhooks"]: assert w["clientConfig"]["service"]["name"] == made_of["Service"]["metadata"]["name"] and s.ask ("POST", w["clientConfig"]["service"]["path"], review ("Pod", pod ()), token=made["site"]).status == 200
  serve = next (c for c in spec["containers"] if c["name"] == "ferry")["args"]
  options = ferry (*serve[:1], "--help").stdout
  assert all (o in options for o in serve if o.startswith ("--"))
  for d in documents (open (root + "/pod.yaml").read ()): assert d["metadata"]["annotations"]["ferry.dev/fingerprint"]
  extender = documents (open (root + "/scheduler.yaml").read ())[0]["extenders"][0]
  for verb in ("filterVerb", "prioritizeVerb"): assert s.ask ("POST", "/k8s/" + extender[verb], {"Pod": pod (), "Nodes": {"items": []}}, token=made["site"]).status == 200

@claim ("the manifests are what Kubernetes takes, and name each other")
def _ ():
  try: import jsonschema, yaml
  except ImportError: return
  if not shutil.which ("kubectl"): return
  for of in ("postgres", "base"):
    for d in built (of): takes (d)
    check_made ({d["kind"]: d for d in built (of)}, of)
  for d in documents (open (root + "/pod.yaml").read ()): takes (d)
  for shape in ("dra", "hami", "kai", "k8s"):
    for d in documents (ferry ("advise", "Net_1", "--format", shape, "--server", s.url, env={**os.environ, "FERRY_TOKEN": made["ada"]}).stdout):
      if shape == "dra" or "kind" in d: takes (d)
  if kubernetes_validate: assert held >= {"Deployment", "NetworkPolicy", "MutatingWebhookConfiguration", "Pod", "Job", "ResourceClaim", "ResourceClaimTemplate"}, held

@claim ("who cannot send a token shows a certificate to the proxy, or has a token in its path")
def _ ():
  nginx = shutil.which ("nginx") or shutil.which ("/usr/sbin/nginx")
  if not nginx or not shutil.which ("openssl"): return
  import ssl
  def run (*words): subprocess.run (words, check=True, capture_output=True, timeout=PATIENCE)
  for d in ("tls", "clients", "site", "tmp"): os.mkdir (d)
  run ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls/tls.key", "-out", "tls/tls.crt", "-subj", "/CN=localhost", "-days", "2")
  run ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "clients/ca.key", "-out", "clients/ca.crt", "-subj", "/CN=clients", "-days", "2")
  run ("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "clients/tls.key", "-out", "clients/tls.csr", "-subj", "/CN=kube-scheduler")
  run ("openssl", "x509", "-req", "-in", "clients/tls.csr", "-CA", "clients/ca.crt", "-CAkey", "clients/ca.key", "-CAcreateserial", "-out", "clients/tls.crt", "-days", "2")
  open ("site/authorization.conf", "w").write (f'proxy_set_header Authorization "Bearer {made["site"]}";\n')
  with socket.create_server (("127.0.0.1", 0)) as free: port = free.getsockname ()[1]
  text = open (root + "/base/nginx.conf").read ().replace ("8443", f"127.0.0.1:{port}").replace ("127.0.0.1:8077", f"127.0.0.1:{s.port}").replace ("events {}", "events {} daemon off; master_process off;")
  text = re.sub (r" (/(tls|clients|site|tmp)/)", rf" {work}\1", text)
  open ("nginx.conf", "w").write (text)
  proxy = subprocess.Popen ([nginx, "-c", work + "/nginx.conf", "-e", work + "/nginx.log"])
  def ask (path, certificate):
    way = ssl._create_unverified_context ()
    if certificate: way.load_cert_chain ("clients/tls.crt", "clients/tls.key")
    c = http.client.HTTPSConnection ("127.0.0.1", port, timeout=PATIENCE, context=way)
    c.request ("POST", path, json.dumps (review ("Pod", pod ())), {"Content-Type": "application/json"})
    r = c.getresponse ()
    return r.status, r.read ()
  try:
    end = time.time () + 20
    while True:
      try:
        socket.create_connection (("127.0.0.1", port)).close ()
        break
      except OSError: assert time.time () < end and proxy.poll () is None, open ("nginx.log").read ()
      time.sleep (0.05)
    assert ask ("/k8s/mutate", False)[0] == 403
    status, body = ask ("/k8s/mutate", True)
    assert status == 200 and "patch" in json.loads (body)["response"], body
    assert ask (f"/k8s/{made['site']}/mutate", False)[0] == 200
    assert ask ("/k8s/ferry_0/mutate", False)[0] == 401
  finally:
    proxy.terminate ()
    proxy.wait ()

@claim ("it ends in order")
def _ (): assert s.stop () == 0
finish ()
