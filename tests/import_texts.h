/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small profiles made by hand: one in each dialect, and what they are put together from. */
#pragma once

/* ---- plain text ---- */

#define PLAIN                                                 \
  "ferry-text/1\n"                                            \
  "name tiny\n"                                               \
  "batch 32\n"                                                \
  "# two layers\n"                                            \
  "tensor w1 4MiB parameter\n"                                \
  "tensor x 12MB input split\n"                               \
  "tensor a1 64MiB activation split\n"                        \
  "tensor stat 1KiB parameter\n"                              \
  "tensor g1 4MiB gradient\n"                                 \
  "op fc1.fwd forward 1250us reads x w1 writes a1 side stat " \
  "workspace 8MiB parts 32\n"                                 \
  "op loss forward 10us reads a1 gap 3us # the end of it\n"   \
  "op fc1.bwd backward 2ms reads a1 x writes g1\n"            \
  "free a1 x\n"                                               \
  "op sgd update 20us reads g1 w1 writes w1\n"

/* ---- Kineto ---- */

#define EVENTS(...) "{\"schemaVersion\": 1, \"traceEvents\": [" __VA_ARGS__ "]}"
#define OP(name, tid, ts, dur, args)                                                            \
  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
  ",\"dur\":" dur ",\"args\":{" args "}},"
#define NOTE(name, tid, ts, dur, args)                                                     \
  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid \
  ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}},"
#define LAUNCH(corr, tid, ts)                                                                   \
  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":" tid \
  ",\"ts\":" ts ",\"dur\":1,\"args\":{\"correlation\":" corr ",\"External id\":999}},"
#define KERNEL(corr, device, stream, ts, dur)                                          \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":" device ",\"tid\":" stream \
  ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"External id\":999,\"device\":" device    \
  ",\"stream\":" stream ",\"correlation\":" corr "}},"
#define MEMORY(tid, ts, addr, bytes, total)                                                       \
  "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":" tid      \
  ",\"ts\":" ts ",\"args\":{\"Device Type\":1,\"Device Id\":0,\"Addr\":" addr ",\"Bytes\":" bytes \
  ",\"Total Allocated\":" total ",\"Total Reserved\":9999}},"
#define LAST "{\"ph\":\"M\",\"name\":\"process_name\"}"
#define STEP(k, ts, dur) NOTE ("ProfilerStep#" k, "1", ts, dur, "")

/* A layer forward and backward, an optimizer; GPU work runs behind the CPU, the last kernel behind
   the end of the step.  The pid of the GPU row is the device. */
#define TINY                                                                             \
  STEP ("5", "1000", "100")                                                              \
  OP ("aten::linear", "1", "1010", "20", "\"Sequence number\":7")                        \
  LAUNCH ("1", "\"1\"", "1020")                                                          \
  KERNEL ("1", "0", "7", "1030", "10")                                                   \
  OP ("aten::relu", "1", "1032", "6", "")                                                \
  LAUNCH ("2", "1", "1034")                                                              \
  KERNEL ("2", "0", "7", "1042", "5")                                                    \
  OP ("LinearBackward0", "2", "1050", "10", "\"Sequence number\":7,\"Fwd thread id\":1") \
  LAUNCH ("3", "2", "1055")                                                              \
  KERNEL ("3", "0", "7", "1060", "20")                                                   \
  NOTE ("Optimizer.step#SGD.step", "1", "1070", "20", "")                                \
  OP ("aten::add_", "1", "1075", "10", "")                                               \
  LAUNCH ("4", "1", "1080")                                                              \
  KERNEL ("4", "0", "7", "1150", "8")

#define TINY_MEMORY                                                               \
  MEMORY ("1", "1012", "4096", "1024", "6024") /* of linear, freed in backward */ \
  MEMORY ("1", "1015", "8192", "512", "6536")  /* inside linear */                \
  MEMORY ("1", "1025", "8192", "-512", "6024")                                    \
  MEMORY ("2", "1052", "8192", "2048", "8072")  /* of backward, never freed */    \
  MEMORY ("2", "1058", "4096", "-1024", "7048") /* its reader has been launched, not yet run */

/* ---- execution traces ---- */

#define T(storage, elements) "[1," storage ",0," elements ",4,\"cuda:0\"]"
#define FLAT(name, id, rf, parent, fw, schema, in, out)                                    \
  "{\"name\":\"" name "\",\"id\":" id ",\"rf_id\":" rf ",\"parent\":" parent ",\"tid\":1," \
  "\"fw_tid\":" fw ",\"op_schema\":\"" schema "\",\"inputs\":[" in "],\"outputs\":[" out "]},"
#define ET(...)                                                                      \
  "{\"schema\": \"1.0.1\", \"nodes\": [" __VA_ARGS__                                 \
  "{\"name\":\"[pytorch|process]\",\"id\":1,\"rf_id\":0,\"parent\":1,\"inputs\":[]," \
  "\"outputs\":[]}]}"

/* linear: an allocation inside a composite; the storage comes back after its life; a padding of six
   integers; an empty tensor that shares the null pointer's id with another. */
#define TINY_ET                                                                                 \
  FLAT ("aten::empty", "4", "3", "3", "0", "aten::empty(SymInt[] size) -> Tensor",              \
        "[1,2,3,4,5,6]", T ("50", "256"))                                                       \
  FLAT ("aten::linear", "3", "2", "2", "0", "aten::linear(Tensor x, Tensor w) -> Tensor",       \
        T ("10", "64") "," T ("20", "100"), T ("50", "256"))                                    \
  FLAT ("aten::relu", "5", "4", "2", "0", "aten::relu(Tensor self) -> Tensor", T ("50", "256"), \
        T ("60", "128") "," T ("99", "0"))                                                      \
  FLAT ("LinearBackward0", "7", "6", "2", "1", "", T ("50", "256") "," T ("60", "128"),         \
        T ("70", "100") "," T ("99", "0"))                                                      \
  FLAT ("aten::add_", "9", "8", "8", "0",                                                       \
        "aten::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",                              \
        T ("20", "100") "," T ("70", "100"), T ("20", "100"))                                   \
  FLAT ("aten::mul", "10", "9", "8", "0", "aten::mul(Tensor a, Tensor b) -> Tensor",            \
        T ("20", "100"), T ("50", "32"))                                                        \
  FLAT ("Optimizer.step#SGD.step", "8", "7", "2", "0", "", "", "")
