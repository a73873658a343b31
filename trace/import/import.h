/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles that somebody already has, turned into traces: files in, a trace and a report out.
   What a file is, is seen from its content; `import.def` is the table of what can be read. */
#pragma once

#include "trace/import/common/report.h"

const char *import_format_says (import_format f);

/* True: *out is a trace, plannable or not (trace_is_plannable; the report has the advice).  False:
   nothing was imported; ERR_infeasible where the files are sound but hold nothing to import. */
bool import_files (const char *const *paths, int n_paths, const import_options *o, arena *a,
                   trace **out, import_report *report, error *err) MUST_CHECK;
bool import_memory (const import_source *sources, int n_sources, const import_options *o, arena *a,
                    trace **out, import_report *report, error *err) MUST_CHECK;
