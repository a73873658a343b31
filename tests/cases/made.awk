# SPDX-License-Identifier: GPL-3.0-or-later
# A profile from a list of what is in it, a line each; columns are split by " | ".
#   Kineto            step | K | TS | DUR            op | NAME | THREAD | TS | DUR | ARGS
#                     note | NAME | THREAD | TS | DUR | ARGS      launch | CORRELATION | THREAD | TS
#                     kernel | CORRELATION | DEVICE | STREAM | TS | DUR
#                     memory | THREAD | TS | ADDRESS | BYTES | TOTAL
#   execution traces  node | NAME | ID | RF | PARENT | FW THREAD | SCHEMA | INPUTS | OUTPUTS
#                     STORAGExELEMENTS is a tensor of floats; the rest of the lists is JSON
#   either            head | JSON, before the list       { ... }: an entry as it is
BEGIN { FS = " [|] ?" }
function event(phase, cat, name, process, thread, ts, dur, args) {
  return sprintf("{\"ph\": \"%s\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %s, \"tid\": %s, \"ts\": %s%s, \"args\": {%s}}",
    phase, cat, name, process, thread, ts, dur == "" ? "" : ", \"dur\": " dur, args)
}
function tensors(list,   out, at) {
  while (match(list, /[0-9]+x[0-9]+/)) {
    at = substr(list, RSTART, RLENGTH); sub("x", ",0,", at)
    out = out substr(list, 1, RSTART - 1) "[1," at ",4,\"cuda:0\"]"
    list = substr(list, RSTART + RLENGTH)
  }
  return out list
}
/^#/ || /^$/ { next }
$1 == "head" { head = head $2 ", "; next }
$1 == "node" { nodes = 1
  entry = sprintf("{\"name\": \"%s\", \"id\": %s, \"rf_id\": %s, \"parent\": %s, \"tid\": 1, \"fw_tid\": %s, \"op_schema\": \"%s\", \"inputs\": [%s], \"outputs\": [%s]}",
    $2, $3, $4, $5, $6, $7, tensors($8), tensors($9)) }
$1 == "step" { entry = event("X", "user_annotation", "ProfilerStep#" $2, 1, 1, $3, $4, "") }
$1 == "note" { entry = event("X", "user_annotation", $2, 1, $3, $4, $5, $6) }
$1 == "op" { entry = event("X", "cpu_op", $2, 1, $3, $4, $5, $6) }
$1 == "launch" { entry = event("X", "cuda_runtime", "cudaLaunchKernel", 1, $3, $4, 1, "\"correlation\": " $2 ", \"External id\": 999") }
$1 == "kernel" { entry = event("X", "kernel", "k", $3, $4, $5, $6,
    "\"External id\": 999, \"device\": " $3 ", \"stream\": " $4 ", \"correlation\": " $2) }
$1 == "memory" { entry = event("i", "cpu_instant_event", "[memory]", 1, $2, $3, "",
    "\"Device Type\": 1, \"Device Id\": 0, \"Addr\": " $4 ", \"Bytes\": " $5 ", \"Total Allocated\": " $6 ", \"Total Reserved\": 9999") }
/^\{/ { entry = $0 }
{ entries = entries entry ",\n" }
END {
  if (nodes)
    printf "{%s\"schema\": \"1.0.1\", \"nodes\": [\n%s{\"name\": \"[pytorch|process]\", \"id\": 1, \"rf_id\": 0, \"parent\": 1, \"inputs\": [], \"outputs\": []}]}\n", head, entries
  else
    printf "{%s\"schemaVersion\": 1, \"traceEvents\": [\n%s{\"ph\": \"M\", \"name\": \"process_name\"}]}\n", head, entries
}
