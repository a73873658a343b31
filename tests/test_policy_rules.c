/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each policy's choice on a trace of a few ops was worked out on paper from its rule; here it is
   the triggers that are golden, never a cost.  Then where a description misleads, or its code
   differs from it: which side was taken. */
#include "tests/policy_paper.h"
#include "tests/suite.h"

/* The chain with two convolutions. */
static const char conv_ops[] =
    "f f0 1 w > x0 |f conv1 1 x0 > x1 |f conv2 1 x1 > x2 |f f3 1 x2 > x3 |"
    "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
    "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";

static const paper papers[] = {
  { "tf-latest", NULL, NULL, NULL, 9, "x1 2>6 @6 w; x2 3>5 @5 w" },
  { "tf-latest", NULL, NULL, NULL, 15, "x2 3>5 @5 w" },
  { "alvaro-earliest", NULL, NULL, NULL, 9, "x1 2>6 @6 w; x2 3>5 @5 w" },
  { "alvaro-earliest", NULL, NULL, NULL, 15, "x1 3>6 @5 w" },
  { "meng", NULL, NULL, NULL, 10, "x0 1>7 @6" },
  { "tflms-v1", NULL, NULL, NULL, 9, "x0 1>7 @7; x1 2>6 @6; x2 3>5 @4; g 4>5 @5" },
  { "tflms-v2", NULL, NULL, NULL, 11, "x0 1>7 @6" },
  { "tflms-v2", "threshold=2", NULL, NULL, 9, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @4" },
  { "vdnn-all", NULL, NULL, NULL, 9, "x0 1>7 @6 w; x1 2>6 @5 w; x2 3>5 @5 w" },
  { "vdnn-conv", NULL, NULL, conv_ops, 9, "x0 1>7 @6 w; x1 2>6 @5 w" },
  { "vdnn-dyn", NULL, NULL, NULL, 10, "x0 1>7 @6 w; x1 2>6 @5 w; x2 3>5 @5 w" },
  { "superneurons", NULL, NULL, conv_ops, 7, "x1 3>6 @6; drop x0 1>7 s0" },
  { "autoswap", NULL, NULL, NULL, 10, "w 0>8 @7; x0 1>7 @6" },
  { "capuchin", NULL, NULL, NULL, 10, "w 0>8 @7; x0 1>7 @6" },
  { "swapadvisor-planner", NULL, NULL, NULL, 10, "x0 1>7 @6; w 0>8 @2" },
  { "g10", NULL, NULL, NULL, 10, "x0 1>7 @3; w 0>8 @6" },
  { "flashneuron", NULL, NULL, NULL, 10, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @4" },
  { "tf-grappler", NULL, NULL, NULL, 10, "x0 1>7 @6 w" },
  { "tensile", NULL, NULL, NULL, 10, "x0 1>7 @6" },
  { "greedy-largest", NULL, NULL, NULL, 9, "x0 1>7 @6; w 0>8 @7" },
  { "torchtune", "stash=1", NULL, NULL, 9, "x0 1>7 @6 w2; x1 2>6 @5 w3" },
  { "lru", NULL, NULL, NULL, 10, "x0 3>7 @7; w 2>8 @8" },
  { "checkpoint-every-k", NULL, NULL, NULL, 9, "drop x1 2>6 s0; drop x2 3>5 s0" },
  { "knapsack", NULL, NULL, NULL, 10, "drop x0 1>7 +" },
  { "dtr", NULL, NULL, NULL, 10, "again f0 @7 = x0" },
};

CLAIM (a_choice_on_paper_is_the_choice_made) {
  for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
    paper_holds (&papers[i]);
}

CLAIM (every_policy_was_worked_on_paper) {
  for (int i = 0; i < POLICIES; i++) {
    bool found = false;
    for (size_t n = 0; n < sizeof papers / sizeof *papers; n++)
      found |= policy_named (papers[n].policy) == (policy_id)i;
    ck_assert_msg (found, "%s", policy_at ((policy_id)i)->name);
  }
}

/* ---- where descriptions mislead: which side was taken ---- */

/* Two backward users of x, far apart. */
static const char twice_ops[] = "f f0 1 w > x |f f1 1 x > y |f loss 1 y > g |b b1 1 g > h |"
                                "b b2 1 h x > i |b b3 1 i > j |b b4 1 j > k |b b5 1 k x > l |"
                                "u up 1 l w > w";
static const char twice_tensors[] = "w:1! x:4 y:1 g:1 h:1 i:1 j:1 k:1 l:1";
/* x1 is dear to make, x2 cheap; both are idle at the peak, and copies are far too slow for either.
 */
static const char cheap_ops[] = "f f0 1 w > x0 |f f1 90 x0 > x1 |f f2 1 x0 > x2 |"
                                "f loss 1 x1 x2 > g |b b0 1 g > h |b b2 1 h x2 > i |"
                                "b b1 1 i x1 > j |u up 1 j w > w";
static const char cheap_tensors[] = "w:1! x0:1 x1:40 x2:40 g:1 h:1 i:1 j:1";

/* x is read by two forward ops. */
static const char branch_tensors[] = "w:1! x:4 y:2 z:1 g:1 h:1 i:1 j:1";
static const char branch_ops[] =
    "f conv0 1 w > x |f conv1 1 x > y |f join 1 x y > z |f loss 1 z > g |"
    "b b2 1 g y > h |b b1 1 h x > i |b b0 1 i > j |u up 1 j w > w";

/* The chain with a larger x1; with heavier weights; with three large feature maps; with an output
   that nothing reads. */
static const char slow_tensors[] = "w:1! x0:4 x1:12 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char heavy_tensors[] = "w:10! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char large_tensors[] = "w:1! x0:16 x1:12 x2:8 x3:1 g:1 g3:1 g2:1 g1:1";
static const char huge_tensors[] = "w:1! x0:24 x1:12 x2:8 x3:1 g:1 g3:1 g2:1 g1:1";
static const char wide_tensors[] = "w:1! x0:12 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char five_tensors[] = "w:1! x0:4 x1:5 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char unread_tensors[] = "w:1! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1 z:9";
static const char unread_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 z |"
                                 "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                                 "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";
/* The chain with ops of 10^8 ms. */
static const char long_ops[] =
    "f f0 100000000 w > x0 |f f1 100000000 x0 > x1 |f f2 100000000 x1 > x2 |"
    "f f3 100000000 x2 > x3 |f loss 100000000 x3 > g |b b3 100000000 g x2 > g3 |"
    "b b2 100000000 g3 x1 > g2 |b b1 100000000 g2 x0 > g1 |u up 100000000 g1 w > w";
/* A weight p that one op of the chain reads: f1, or b1. */
static const char early_tensors[] = "w:1! p:4! x0:4 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char early_ops[] = "f f0 1 w > x0 |f f1 1 x0 p > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 |"
                                "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                                "b b1 1 g2 x0 > g1 |u up 1 g1 w > w";
static const char late_tensors[] = "w:1! p:8! x0:8 x1:3 x2:2 x3:1 g:1 g3:1 g2:1 g1:1";
static const char late_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > x2 |f f3 1 x2 > x3 |"
                               "f loss 1 x3 > g |b b3 1 g x2 > g3 |b b2 1 g3 x1 > g2 |"
                               "b b1 1 g2 x0 p > g1 |u up 1 g1 w > w";
/* Two forward readers at one distance. */
static const char fork_tensors[] = "w:1! x:4 y:1 z:1 g:1 h:1 i:1 j:1";
static const char fork_ops[] = "f f0 1 w > x |f f1 1 x > y |f f2 1 x > z |f loss 1 y z > g |"
                               "b b1 1 g y > h |b b2 1 h z > i |b b3 1 i x > j |u up 1 j w > w";
/* A weight's gradient stands beside the way back to x. */
static const char aside_tensors[] = "w:1! x:4 y:1 g:1 v:1 h:1 k:1 l:1";
static const char aside_ops[] = "f f0 1 w > x |f f1 1 x > y |f loss 1 y > g |b bw 1 g > v |"
                                "b b1 1 g > h |b b2 1 h > k |b b3 1 k x > l |u up 1 l v w > w";
/* x is read at 1, 6, 11 and 15; q fills memory at 3 and 4, k at 8 and 9. */
static const char often_tensors[] =
    "w:1! x:4 y:1 p:1 q:5 g:1 h:1 i:1 j:1 k:5 m:1 n:1 l:1 r:1 s:1 t:1 u:1";
static const char often_ops[] =
    "f f0 1 w > x |f f1 1 x > y |f f2 1 y > p |f f3 1 p > q |f loss 1 q > g |b b1 1 g > h |"
    "b b2 1 h x > i |b b3 1 i > j |b b4 1 j > k |b b5 1 k > m |b b6 1 m > n |b b7 1 n x > l |"
    "b b8 1 l > r |b b9 1 r > s |b ba 1 s > t |b bb 1 t x > u |u up 1 u w > w";
/* k fills memory until an op before x is read. */
static const char tight_tensors[] = "w:1! x:4 y:1 g:1 k:5 m:1 n:1";
static const char tight_ops[] = "f f0 1 w > x |f f1 1 x > y |f loss 1 y > g |b b1 1 g > k |"
                                "b b2 1 k > m |b b3 1 m x > n |u up 1 n w > w";
/* x and y are idle between the same ops. */
static const char pair_tensors[] = "w:1! x:2 y:1 z:1 g:1 h:1 i:1 j:1 k:1";
static const char pair_ops[] = "f f0 1 w > x y |f f1 1 x y > z |f loss 1 z > g |b b1 1 g > h |"
                               "b b2 1 h > i |b b3 1 i > j |b b4 1 j x y > k |u up 1 k w > w";
/* x1 is made from x0; y is updated in place, so it cannot be made again. */
static const char again_tensors[] = "w:1! x0:40 x1:16 y:18 g:1 h:1 i:1 j:1";
static const char again_ops[] = "f f0 1 w > x0 y |f f1 4 x0 > x1 |f loss 1 x1 y > g y |"
                                "b bz 1 g > h |b b1 1 h x1 y > i |b b0 1 i x0 > j |u up 1 j w > w";
/* One op makes b before a; the peak is far behind both. */
static const char listed_tensors[] = "w:1! a:4 b:4 c:1 g:1 u1:2 u2:2 u3:2 u4:2 v:1";
static const char listed_ops[] =
    "f f0 1 w > b a |f f1 1 a > c |f loss 1 c > g |b b1 1 g > u1 |b b2 1 g > u2 |"
    "b b3 1 g b > u3 |b b4 1 g a > u4 |b b5 1 u1 u2 > v |u up 1 v u3 u4 w > w";
static const char busy_ops[] =
    "f f0 1 w > b a |f f1 1 a b > c |f loss 1 c b > g |b b1 1 g b > u1 |b b2 1 g > u2 |"
    "b b3 1 g > u3 |b b4 1 g a > u4 |b b5 1 u1 u2 > v |u up 1 v u3 u4 w > w";
/* x1 is made from x0, and far too large to move. */
static const char made_tensors[] = "w:1! x0:4 x1:40 z:1 g:1 h:1 hh:1 i:1 j:1";
static const char made_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 > z |f loss 1 z > g |"
                               "b b1 1 g > h |b b2 1 h > hh |b b3 1 hh x1 > i |b b4 1 i x0 > j |"
                               "u up 1 j w > w";
/* What x1 is made from is there later, or is not: f2 writes over it. */
static const char kept_tensors[] = "w:1! x0:1 x1:4 x2:1 g:1 h:1 i:1";
static const char kept_ops[] = "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 x0 > x2 |f loss 1 x2 > g |"
                               "b b1 1 g > h |b b2 1 h x1 > i |u up 1 i w > w";
static const char gone_ops[] =
    "f f0 1 w > x0 |f f1 1 x0 > x1 |f f2 1 x1 x0 > x2 x0 |f loss 1 x2 > g |"
    "b b1 1 g > h |b b2 1 h x1 > i |u up 1 i w > w";

static const paper traps[] = {
  /* A small value that was passed over is forgotten, although it would do later. */
  { "alvaro-earliest", "floor=3MiB", NULL, NULL, 15, "" },
  /* The first value that was pushed never leaves. */
  { "alvaro-earliest", NULL, NULL, NULL, 11, "x1 2>6 @6 w; x2 3>5 @5 w" },
  /* x1 is still on its way out for 2 ms when op 5 asks for it back: it counts as away. */
  { "alvaro-earliest", NULL, slow_tensors, NULL, 28, "x1 3>6 @5 w" },
  /* Weights count: with 9 MiB more of them, 70 % of 28 MiB is passed at op 3. */
  { "alvaro-earliest", NULL, NULL, NULL, 28, "" },
  { "alvaro-earliest", NULL, heavy_tensors, NULL, 28, "x1 3>6 @5 w" },
  /* Where there is no need nothing moves. */
  { "alvaro-earliest", NULL, NULL, NULL, 100, "" },
  /* At 70 % exactly nothing leaves: above, not at. */
  { "tf-latest", "occupancy=100%", NULL, NULL, 12, "" },
  /* Without fusing, a tensor travels once for each backward user. */
  { "tflms-v1", "n_tensors=1", twice_tensors, twice_ops, 9, "x 1>4 @4; x 4>7 @5" },
  { "tflms-v1", "n_tensors=1,fuse_swapins=on", twice_tensors, twice_ops, 9, "x 1>4 @4" },
  { "tflms-v1", "n_tensors=0", NULL, NULL, 9, "" },
  /* Two steps forward of f0 stands f2, whose backward user is op 5; for the others that would be in
     the forward pass, so the trigger is found by order. */
  { "tflms-v1", "lb=2", NULL, NULL, 9, "x0 1>7 @6; x1 2>6 @4; x2 3>5 @4; g 4>5 @5" },
  /* Of several backward users at one distance (ops 4 and 5 for x) the lowest. */
  { "tflms-v1", NULL, fork_tensors, fork_ops, 9, "x 2>6 @5; y 3>4 @4; z 3>5 @5; g 3>4 @4" },
  /* An ancestor depends: bw is as far as b1 is, and earlier, but x's reader does not wait for it.
   */
  { "tflms-v1", "ctrld_strategy=direct_order", aside_tensors, aside_ops, 9, "x 1>6 @5; g 2>3 @3" },
  /* The tuner, in 90 % of 7 MiB: threshold 1 fits, 9 and 6 do not, 4 and 5 do: 5. Prefetching 9, 4
     and 2 levels ahead does not fit: 1. Groups of up to 17 and 8 levels do not, 3 does, where it
     stops: so 11 and 15 have a copy in each, although a group of 4 would fit. */
  { "tflms-v2", NULL, often_tensors, often_ops, 8, "x 1>6 @5; x 6>11 @10; x 11>15 @14" },
  /* A level ahead does not fit, so the tuner goes on to the mode in which copies in are waited for.
   */
  { "tflms-v2", NULL, tight_tensors, tight_ops, 8, "x 1>5 @5" },
  { "tflms-v2", "threshold=4", tight_tensors, tight_ops, 8, "x 1>5 @4" },
  /* What nothing reads is not counted: it sees 11 of 20 MiB and has nothing to do. */
  { "tflms-v2", NULL, unread_tensors, unread_ops, 14, "" },
  /* Groups are by distance of levels: 7 - 4 = 3 joins the two users, 2 does not. */
  { "tflms-v2", "threshold=2,groupby=3", twice_tensors, twice_ops, 4, "x 1>4 @3" },
  { "tflms-v2", "threshold=2,groupby=2", twice_tensors, twice_ops, 4, "x 1>4 @3; x 4>7 @6" },
  { "tflms-v2", "threshold=2,sync_mode=3", NULL, NULL, 9, "x0 1>7 @7 w; x1 2>6 @6 w; x2 3>5 @5 w" },
  /* vDNN++ does without the waits at the end of a layer. */
  { "vdnn-all", "sync=off", NULL, NULL, 9, "x0 1>7 @6; x1 2>6 @5; x2 3>5 @5" },
  /* Without convolutions nothing moves. */
  { "vdnn-conv", NULL, NULL, NULL, 9, "" },
  /* Outputs count once: x0's segment has 4 MiB, below the 6 of b1, so it is run again as one. */
  { "superneurons", "cache=off", NULL, conv_ops, 7, "x1 2>6 @6; x2 3>5 @5; drop x0 1>7 s0" },
  /* No checkpoint at all: one segment, larger than any op, and each op makes its own again. */
  { "superneurons", NULL, NULL, NULL, 7, "drop x0 1>7 -; drop x1 2>6 -; drop x2 3>5 -" },
  { "superneurons", "recompute=off,cache=off", NULL, conv_ops, 7, "x1 2>6 @6; x2 3>5 @5" },
  /* What hides well goes before what is large, or behind it; the limit is met strictly. */
  { "autoswap", "score=doa", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "score=aoa", NULL, NULL, 11, "x0 1>7 @6" },
  { "autoswap", "score=vote", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "score=swdoa", NULL, NULL, 11, "w 0>8 @7; x0 1>7 @6" },
  { "autoswap", "floor=2MiB", NULL, NULL, 11, "x0 1>7 @6" },
  /* Both copies are taken off the idle time: x0 is idle for longer than x1, but -1 ms are left. */
  { "autoswap", "score=doa", wide_tensors, NULL, 19, "w 0>8 @7; x1 2>6 @5" },
  /* What is below zero is divided by the size: x1 (-3/12), x0 (-7/24), x2 (-3/8). */
  { "autoswap", "score=aoa", huge_tensors, NULL, 40, "w 0>8 @7; x0 1>7 @2; x1 2>6 @3" },
  /* At their own times: x2 would be back when it has just left, so it never leaves. */
  { "autoswap", "score=aoa,mode=free", NULL, NULL, 7, "w 0>8 @7; x0 1>7 @6; x1 2>6 @5" },
  { "autoswap", "score=aoa", NULL, NULL, 7, "w 0>8 @7; x0 1>7 @6; x1 2>6 @5; x2 3>5 @4" },
  /* x0 was last read by op 1: its copy out begins behind op 5, the last before it is fetched. */
  { "autoswap", "score=aoa,delay=on", NULL, NULL, 11, "x0 5>7 @6" },
  /* Bytes per time: the cheap tensor is run again, not the dear one. */
  { "capuchin", NULL, cheap_tensors, cheap_ops, 70, "w 0>7 @6; drop x2 3>5 +" },
  /* Op 5 carries y's trigger, so x comes an op earlier than it need. */
  { "capuchin", NULL, pair_tensors, pair_ops, 2, "w 0>7 @6; y 1>6 @5; x 1>6 @4" },
  /* x0 goes first (40 MiB in 1 ms). Then x1 would be run from w: 5 ms, dearer than y's 4.5. */
  { "capuchin", NULL, again_tensors, again_ops, 10, "w 0>6 @5; y 2>4 @4; drop x0 1>5 +" },
  /* The last access is followed by the next step: p is idle from op 1 to op 1. */
  { "capuchin", NULL, early_tensors, early_ops, 11, "w 0>8 @7; p 1>1 @0" },
  { "capuchin", "recompute=off", cheap_tensors, cheap_ops, 70, "w 0>7 @6; x1 3>6 @6" },
  /* The sum of all saved tensors counts, not the peak: too little room for weights and the largest
     op, and nothing is even tried. */
  { "flashneuron", NULL, NULL, NULL, 8, "" },
  /* In the order of the op's list, not of the tensors: b leaves, and then it fits. */
  { "flashneuron", NULL, listed_tensors, listed_ops, 15, "b 0>5 @4" },
  /* b is never idle, so a leaves, and it does not fit. */
  { "flashneuron", NULL, listed_tensors, busy_ops, 13, "a 1>6 @5" },
  /* Squares of 4 x 10^14 ns: x0 is far ahead of the others. */
  { "tf-grappler", NULL, NULL, long_ops, 10, "x0 1>7 @6 w" },
  /* Tensors that do not live long enough stay. */
  { "tf-grappler", "life=8ms", NULL, NULL, 10, "" },
  /* Nothing hides behind 1 ms ops: what saves most bytes per time is run again. */
  { "tensile", NULL, cheap_tensors, cheap_ops, 70, "w 0>7 @6; drop x2 3>5 +; drop x1 3>6 +" },
  /* x0 is swapped, so x1 is not run again from it. */
  { "tensile", NULL, made_tensors, made_ops, 20, "x0 1>7 @6; w 0>8 @7" },
  /* x is read at 1, 6, 11 and 15, and memory is short at 3 first: it leaves behind its first
     reader, and is only released behind the others. */
  { "tensile", NULL, often_tensors, often_ops, 8, "x 1>6 @5; x 6>11 @10; x 11>15 @14" },
  /* What is still in the stash when the forward pass ends is used from there. */
  { "torchtune", NULL, NULL, NULL, 9, "" },
  { "torchtune", "stash=0,lead=0", NULL, NULL, 9, "x0 1>7 @7; x1 2>6 @6; x2 3>5 @5" },
  /* The prefetching relative looks at one op ahead only: room for x0 costs x1, which is next. */
  { "lru", "ahead=2", NULL, NULL, 10, "x0 3>7 @5; x1 4>6 @6; w 2>8 @6" },
  /* Every output a checkpoint: nothing is run again. */
  { "checkpoint-every-k", "k=1", NULL, NULL, 9, "" },
  { "checkpoint-every-k", "k=2", NULL, NULL, 9, "drop x1 2>6 s0" },
  /* What a segment is made from has to be as it was. */
  { "checkpoint-every-k", "k=2", kept_tensors, kept_ops, 9, "drop x1 2>5 s0" },
  { "checkpoint-every-k", "k=2", kept_tensors, gone_ops, 9, "" },
  /* A branch: x has two forward readers and leaves behind the last, when its count is zero; while
     join goes back, x is what the search finds, and y was missed. */
  { "vdnn-all", NULL, branch_tensors, branch_ops, 9, "x 2>5 @4 w; y 2>4 @4 w" },
  /* What comes back early is not asked for its size: x0 is there again from op 3 on, where memory
     was below the line by less. */
  { "g10", NULL, NULL, NULL, 8, "x0 1>7 @3; w 0>8 @7" },
  /* A wrapping interval does not charge the tables: with p's 8 MiB in ops 5 and 6, x0's would end
     with op 3, while its copy out still runs. */
  { "g10", "delta=10%", late_tensors, late_ops, 15, "x0 1>7 @4; w 0>8 @7; p 7>7 @5" },
  /* The host has room for x0, and then for nothing. */
  { "g10", "host=4", NULL, NULL, 10, "x0 1>7 @3" },
  /* x1 is promised 5 of 6 MiB of the host before the link's tables refuse it, and keeps them. */
  { "g10", "delta=0%,latency=0s,host=6", five_tensors, NULL, 12, "w 0>8 @6" },
  /* Each later reader has a pair of copies of its own. */
  { "tf-grappler", NULL, twice_tensors, twice_ops, 4, "x 1>4 @3 w; x 4>7 @6 w" },
  /* Triggers by order instead of by forward distance: strictly before the reader less lb; x2 has
     none behind its maker at lb=2 and may come at once. */
  { "tflms-v1", "ctrld_strategy=direct_order", NULL, NULL, 9,
    "x0 1>7 @6; x1 2>6 @5; x2 3>5 @4; g 4>5 @5" },
  { "tflms-v1", "ctrld_strategy=direct_order,lb=2", NULL, NULL, 9,
    "x0 1>7 @5; x1 2>6 @4; x2 3>5 @4; g 4>5 @5" },
  /* The peak of the moment is op 6, where x0 is on its way back and only w is idle: more would do
     elsewhere, but is not asked. */
  { "tensile", NULL, NULL, NULL, 8, "x0 1>7 @6; w 0>8 @7" },
  { "greedy-largest", NULL, NULL, NULL, 7, "x0 1>7 @6; w 0>8 @7" },
  /* What is needed furthest away goes first, and is back as early as it fits, in order of need. */
  { "swapadvisor-planner", NULL, NULL, NULL, 7, "x0 1>7 @7; w 0>8 @6" },
  /* From the loss backwards; where even all of them do not suffice, all leave. */
  { "meng", NULL, NULL, NULL, 8, "x2 3>5 @4; x1 2>6 @5; x0 1>7 @6" },
  /* Copies in that want the link at the same time do not see each other: x0 and x1 both at op 3. */
  { "meng", NULL, large_tensors, NULL, 30, "x2 3>5 @4; x1 2>6 @3; x0 1>7 @3" },
  /* What is dearest per byte is kept first; 56 % of 9 MiB have room for x2 and x1, 45 % for x2. */
  { "knapsack", "solver=greedy,c=56%", NULL, NULL, 10, "drop x0 1>7 +" },
  { "knapsack", "solver=greedy,c=45%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
  { "knapsack", "solver=dp,c=45%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
  { "knapsack", "solver=ilp,c=25%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
  /* 5 of 9 MiB, in 1e-4: rounded up 2223 + 3334 = 5557 do not fit 5556, so the table keeps one of
     both; the program knows the bytes. */
  { "knapsack", "solver=dp,c=55.56%", NULL, NULL, 10, "drop x1 2>6 +; drop x0 1>7 +" },
  { "knapsack", "solver=ilp,c=55.56%", NULL, NULL, 10, "drop x0 1>7 +" },
};

/* a goes for d: 10 ms over 15 against 20 over 15.  For e, b's own 20 over 45 are less than c's 15
   over 30; with a gone, b takes 30. */
static const char dearer_tensors[] = "w:1! a:4 b:4 c:4 d:4 e:4 g:1 h:1 i:1 j:1";
static const char dearer_ops[] = "f fa 10 w > a |f fb 20 a > b |f fc 15 w > c |f fd 30 w > d |"
                                 "f fe 1 w > e |f loss 1 d e > g |b bc 1 g c > h |b bb 1 h b > i |"
                                 "b ba 1 i a > j |u up 1 j w > w";

CLAIM (what_is_gone_beside_a_tensor_makes_it_dearer) {
  static const paper asked[] = {
    { "dtr", "cost=own", dearer_tensors, dearer_ops, 14, "again fa fb @7 = a b" },
    { "dtr", "cost=classes", dearer_tensors, dearer_ops, 14, "again fc @6 = c; again fa @8 = a" },
    { "dtr", "cost=all", dearer_tensors, dearer_ops, 14, "again fc @6 = c; again fa @8 = a" },
  };
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
    paper_holds (&asked[i]);
}

CLAIM (where_a_description_misleads_one_side_is_taken) {
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
    paper_holds (&traps[i]);
}

/* ---- what the answers say ---- */

/* By its own times x0 is away at ops 3, 4 and 5 only, and 10 MiB are needed at op 2. */
CLAIM_IN_ARENA (autoswap_without_waiting_needs_what_its_times_make_of_memory) {
  static const paper asked[] = {
    { "autoswap", "score=aoa,mode=free", NULL, NULL, 9, "" },
    { "autoswap", "score=aoa,mode=free", NULL, NULL, 10, "" },
    { "autoswap", "score=aoa", NULL, NULL, 9, "" },
  };
  policy_answer answer[3];
  for (int i = 0; i < 3; i++)
    paper_ask (&asked[i], a, &answer[i]);
  ck_assert (!answer[0].fits && !answer[0].plan);
  ck_assert_int_eq (answer[0].reached_bytes, 10 * MIB);
  ck_assert_int_eq (answer[0].cost.stall_ns, 0);
  ck_assert (answer[1].fits);
  ck_assert_int_eq (answer[1].cost.peak_bytes, 10 * MIB);
  ck_assert_int_eq (answer[1].cost.stall_ns, 0);
  ck_assert (answer[2].fits);
  ck_assert_int_gt (answer[2].cost.stall_ns, 0);
}

/* x is read before its first write: what b reads came from a, and a's copy needs x as a found it,
   which b cannot make. */
CLAIM_IN_ARENA (making_inputs_again_ends_where_two_ops_feed_each_other) {
  static const char *const options[] = { "k=2", "k=3", "k=4", "k=5" };
  int64_t drops = 0;
  for (int i = 0; i < 4; i++) {
    const paper one = { "checkpoint-every-k",
                        options[i],
                        "x:4 y:4 z:4 v:4 g:1 h:1",
                        "f a 1 x > y |f b 1 y > x |f c 1 x > z |f d 1 z > v |f loss 1 v > g |"
                        "b e 1 g z > h |b i 1 h y > h |b j 1 h x > h",
                        13,
                        "" };
    policy_answer answer;
    paper_ask (&one, a, &answer);
    drops += answer.drops;
  }
  ck_assert_int_gt (drops, 0);
}

/* Each rung reads both of the one below, and a tensor that has changed since: no rung can be made,
   and who walks down from each rung twice never ends. */
CLAIM_IN_ARENA (what_cannot_be_made_is_walked_once) {
  enum { RUNGS = 60 };
  const char *tensors = "w:1! s:1 a0:1 b0:1 z:4 y:4 g:1 h:1";
  const char *ops = "f i 1 w > s |f a0 1 w > a0 |f b0 1 w > b0";
  for (int i = 1; i <= RUNGS; i++) {
    tensors = arena_format (a, &err, "%s a%d:1 b%d:1", tensors, i, i);
    ops = arena_format (a, &err, "%s |f a%d 1 a%d b%d s > a%d |f b%d 1 a%d b%d s > b%d", ops, i,
                        i - 1, i - 1, i, i, i - 1, i - 1, i);
  }
  ops = arena_format (a, &err,
                      "%s |f c 1 s > s |f z 1 a%d b%d > z |f y 1 z > y |f loss 1 y > g |"
                      "b d 1 g y > g |b e 1 g z > h",
                      ops, RUNGS, RUNGS);
  ck_assert_ptr_nonnull (ops);
  const paper one = { "checkpoint-every-k", "k=3", tensors, ops, 12, "" };
  policy_answer answer;
  paper_ask (&one, a, &answer);
  ck_assert_int_gt (answer.drops, 0);
}

/* All of the chain is one segment: behind the loss it is there at once, as if nothing had been
   dropped. */
CLAIM_IN_ARENA (a_segment_that_runs_again_adds_its_own_bytes) {
  static const paper one = { "checkpoint-every-k", "k=5", NULL, NULL, 11, "" };
  policy_answer answer;
  paper_ask (&one, a, &answer);
  ck_assert (!answer.fits);
  ck_assert_int_eq (answer.drops, 2);
  ck_assert_int_eq (answer.reached_bytes, 12 * MIB);
}

/* Two chains in 20 MiB: their peaks of 12 are added as if they came together, and each job's x0 has
   the link at the times that it would have alone, although they are the same. */
CLAIM_IN_ARENA (tensile_adds_the_jobs_peaks_and_gives_each_a_link_of_its_own) {
  device d = paper_link_device ();
  trace *t = paper_trace (a, paper_chain_tensors, paper_chain_ops);
  policy_view views[2];
  policy_choice choices[2] = { 0 };
  int64_t peaks[2];
  for (int i = 0; i < 2; i++)
    ck_assert (policy_view_build (t, &d, 20 * MIB, d.host_bytes, a, &views[i], &err));
  ck_assert (policy_tensile_jobs (views, 2, 24 * MIB, a, choices, peaks, &err));
  ck_assert_int_eq (choices[0].n_moves + choices[1].n_moves, 0);
  ck_assert (policy_tensile_jobs (views, 2, 20 * MIB, a, choices, peaks, &err));
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq (peaks[i], 10 * MIB);
    ck_assert_int_eq (choices[i].n_moves, 1);
    ck_assert_str_eq (t->tensors[choices[i].moves[0].tensor].name, "x0");
    ck_assert_int_eq (choices[i].moves[0].in_not_before, 6);
  }
}

int main (void) {
  return suite_run ("policy rules", 60);
}
