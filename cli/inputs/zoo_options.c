#include "cli/inputs/zoo_options.h"

bool zoo_options_read (call *c, zoo_request *r) {
  enum { MOST = 1 << 24 };
  int dtype = DTYPE_FP32, optimizer = ZOO_MOMENTUM;
  *r = (zoo_request){ .name = c->operands[0] };
  bool ok = call_count (c, "image", 1, MOST, &r->image) &&
            call_count (c, "seq", 1, MOST, &r->seq) &&
            call_count (c, "classes", 1, MOST, &r->classes) &&
            call_count (c, "width-divisor", 1, MOST, &r->width_divisor) &&
            call_count (c, "depth-divisor", 1, MOST, &r->depth_divisor) &&
            call_word (c, "dtype", compute_dtype_names, &dtype) &&
            call_word (c, "optimizer", zoo_optimizer_names, &optimizer);
  r->dtype = (compute_dtype)dtype;
  r->optimizer = (zoo_optimizer)optimizer;
  r->explicit_attention = call_flag (c, "explicit-attention");
  r->workspaces = call_flag (c, "workspaces");
  return ok;
}
