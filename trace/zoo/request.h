/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The request that a trace of the zoo was made by, as `source.zoo` of its file has it: whoever
   wants the network at another batch or for another card makes it again. */
#pragma once

#include "trace/zoo/zoo.h"

const char *zoo_request_text (const zoo_request *r, arena *a, error *err) MUST_CHECK;
/* Without the device. */
bool zoo_request_of (const trace *t, arena *a, zoo_request *out, error *err) MUST_CHECK;
