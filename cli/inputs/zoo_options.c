/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/inputs/zoo_options.h"

bool zoo_options_read (call *c, zoo_request *r) {
  int dtype = DTYPE_FP32, optimizer = ZOO_MOMENTUM;
  *r = (zoo_request){ .name = c->operands[0] };
  bool ok = call_quantity (c, "image", &r->image) && call_quantity (c, "seq", &r->seq) &&
            call_quantity (c, "classes", &r->classes) &&
            call_quantity (c, "width-divisor", &r->width_divisor) &&
            call_quantity (c, "depth-divisor", &r->depth_divisor) &&
            call_word (c, "dtype", compute_dtype_names, &dtype) &&
            call_word (c, "optimizer", zoo_optimizer_names, &optimizer);
  r->dtype = (compute_dtype)dtype;
  r->optimizer = (zoo_optimizer)optimizer;
  r->explicit_attention = call_flag (c, "explicit-attention");
  r->workspaces = call_flag (c, "workspaces");
  return ok;
}
