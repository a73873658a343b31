/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that write a trace. */
#pragma once

#include "base/json.h"
#include "trace/trace.h"

void trace_write_op_index (json_writer *w, int32_t op); /* NO_OP: null */
/* The defaults of a tensor of this kind. */
bool trace_write_persists (const tensor *x);

/* "ops" and "tensors" as columns. */
void trace_write_ops (json_writer *w, const trace *t);
void trace_write_tensors (json_writer *w, const trace *t);
