/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "plot/chrome.h"
#include "plot/html.h"
#include "plot/scale.h"
#include "plot/svg.h"
#include "plot/svg_inner.h"
#include "plot/term.h"
#include "plot/tsv.h"
#include "tests/suite.h"

static const figure_point stack_low[] = { { 0, 4, 0, NULL }, { 50, 2, 0, NULL } };
static const figure_point stack_top[] = { { 0, 4, 4, NULL }, { 50, 8, 2, NULL } };
static const figure_series stack[] = {
  { "a<b", FIGURE_AREA, TONE_parameter, false, stack_low, 2 },
  { "top", FIGURE_AREA, TONE_activation, false, stack_top, 2 },
};
static const figure_mark marks[] = { { MARK_Y, 0, 10, "budget", TONE_limit } };
static const figure memory = {
  .id = "memory",
  .title = "Memory & more",
  .x = { "time", FIGURE_NS, true, NULL, 0 },
  .y = { "held", FIGURE_BYTES, true, NULL, 0 },
  .x_end = 100,
  .series = stack,
  .n_series = 2,
  .marks = marks,
  .n_marks = 1,
};

static const figure_span ops[] = {
  { 0, 1500, "conv \"1\"", 0, TONE_compute },
  { 1500, 2000, "relu", 0, TONE_stall },
  { 2000, 2001, "relu", 0, TONE_compute },
};
static const figure_span outs[] = { { 1500, 2500, "x", 4096, TONE_out } };
static const figure_lane lanes[] = { { "compute", ops, 3 }, { "copy out", outs, 1 } };

static bool contains (const bytes *text, const char *part) {
  return strstr (text->data, part) != NULL;
}

static int32_t times (const bytes *text, const char *part) {
  int32_t n = 0;
  for (const char *at = text->data; (at = strstr (at, part)); at += strlen (part))
    n++;
  return n;
}

CLAIM (ticks_are_round_in_their_unit_and_hold_the_ends) {
  char text[UNITS_TEXT];
  scale s = scale_of (FIGURE_BYTES, 0, 11LL << 30, 6, true);
  ck_assert_int_eq (s.n_ticks, 7);
  ck_assert_int_eq (s.high, 12LL << 30);
  ck_assert_str_eq (scale_label (&s, 1, text), "2");
  ck_assert_str_eq (s.unit_name, "GiB");
  s = scale_of (FIGURE_NS, 0, 3290000000, 9, false);
  ck_assert_int_eq (s.ticks[1], 500000000);
  ck_assert_str_eq (scale_label (&s, 1, text), "0.5");
  ck_assert_int_eq (scale_place (&s, 3290000000 / 2, 1000), 500);
  for (int64_t high = 1; high < INT64_MAX / 8; high = high * 3 + 1)
    for (int unit = FIGURE_BYTES; unit <= FIGURE_COUNT; unit++) {
      s = scale_of ((figure_unit)unit, -high / 3, high, 8, true);
      ck_assert (s.low <= -high / 3 && s.high >= high);
      ck_assert (s.n_ticks >= 2 && s.n_ticks <= 9);
      for (int i = 1; i < s.n_ticks; i++)
        ck_assert (s.ticks[i] > s.ticks[i - 1]);
    }
}

CLAIM (layers_of_a_stack_are_drawn_from_the_top_one_down_to_the_floor) {
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (svg_figure (&memory, &out, &err));
  /* the frame is 874 wide and 240 high, from (70, 66) on; 10 B is the whole height */
  const char *top =
      strstr (out.data, "<path class=\"f-activation\" d=\"M70 306V210H507V114H944V306Z\"/>");
  const char *low =
      strstr (out.data, "<path class=\"f-parameter\" d=\"M70 306V210H507V258H944V306Z\"/>");
  ck_assert_msg (top && low && top < low, "%s", out.data);
  ck_assert (contains (&out, "<path class=\"mark s-limit\" d=\"M70 66H944\"/>"));
  ck_assert (contains (&out, ">a&lt;b</text>") && contains (&out, ">Memory &amp; more</text>"));
  bytes_free (&out);
}

CLAIM (what_is_too_fine_to_see_still_shows_its_highest) {
  static figure_point points[20000];
  figure_series s = { "x", FIGURE_AREA, TONE_plain, false, points, 20000 };
  figure f = memory;
  f.series = &s;
  f.n_series = 1;
  f.x_end = 20000;
  f.n_marks = 0;
  for (int i = 0; i < 20000; i++)
    points[i] = (figure_point){ i, i == 7777 ? 1000 : 1, 0, NULL };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (svg_figure (&f, &out, &err));
  ck_assert (contains (&out, "V46H")); /* the top of the frame */
  ck_assert_int_lt (out.size, 40000);
  bytes_free (&out);
}

CLAIM_IN_ARENA (tables_say_what_a_layer_adds_and_their_units) {
  bytes out = { 0 };
  figure all[] = { memory,
                   { .id = "lanes",
                     .title = "Lanes",
                     .x = { "t", FIGURE_NS, true, NULL, 0 },
                     .lanes = lanes,
                     .n_lanes = 2 } };
  figure_page page = { .title = "p", .figures = all, .n_figures = 2 };
  ck_assert (tsv_page (&page, a, &out, &err));
  ck_assert_str_eq (out.data, "# memory: Memory & more\n"
                              "time_ns\ta<b_bytes\ttop_bytes\n0\t4\t0\n50\t2\t6\n\n"
                              "# lanes: Lanes\n"
                              "lane\tkind\tname\tstart_ns\tend_ns\tbytes\n"
                              "compute\tcompute\tconv \"1\"\t0\t1500\t0\n"
                              "compute\tstall\trelu\t1500\t2000\t0\n"
                              "compute\tcompute\trelu\t2000\t2001\t0\n"
                              "copy out\tout\tx\t1500\t2500\t4096\n");
  bytes_free (&out);
}

CLAIM_IN_ARENA (a_page_fetches_nothing_and_has_every_number) {
  bytes out = { 0 };
  figure_fact fact = { "step", "2 us", 2001 };
  figure_page page = {
    .title = "</title><script>", .figures = &memory, .n_figures = 1, .facts = &fact, .n_facts = 1
  };
  ck_assert (html_page (&page, a, &out, &err));
  ck_assert_int_eq (times (&out, "<script>"), 1);
  ck_assert (!contains (&out, "src=") && !contains (&out, "@import"));
  ck_assert (contains (&out, "value=\"2001\">2 us<"));
  ck_assert (contains (&out, "<td data-v=\"6\">6 B</td>"));
  bytes_free (&out);
}

CLAIM (times_of_a_chrome_trace_keep_every_nanosecond) {
  bytes out = { 0 };
  error err = { 0 };
  chrome_arrow arrow = { 0, 1, 2000, 1500 };
  figure_series counter = { "memory", FIGURE_STEP, TONE_plain, false, stack_low, 2 };
  chrome_trace t = { .title = "x",
                     .lanes = lanes,
                     .counters = &counter,
                     .arrows = &arrow,
                     .n_lanes = 2,
                     .n_counters = 1,
                     .n_arrows = 1 };
  ck_assert (chrome_text (&t, &out, &err));
  ck_assert (contains (&out, "\"dur\": 0.001") && contains (&out, "\"ts\": 2.000"));
  ck_assert_int_eq (times (&out, "\"ph\": \"X\""), 4);
  ck_assert_int_eq (times (&out, "\"ph\": \"C\""), 2);
  ck_assert_int_eq (times (&out, "\"ph\": \"s\""), 1);
  ck_assert_int_eq (times (&out, "\"ph\": \"f\""), 1);
  json_document *d = json_open (out.data, out.size, &err);
  ck_assert_ptr_nonnull (d);
  json_close (d);
  bytes_free (&out);
}

/* ---- goldens ---- */

static const figure_point band[] = {
  { 2LL << 30, 800000000, 760000000, NULL }, { 3LL << 30, 560000000, 530000000, NULL },
  { 4LL << 30, FIGURE_HOLE, 0, NULL },       { 5LL << 30, 460000000, 455000000, NULL },
  { 6LL << 30, 450000000, 450000000, NULL },
};
static const figure_series lines[] = {
  { "not known", FIGURE_BAND, TONE_plain, false, band, 5 },
  { "bound", FIGURE_LINE, TONE_bound, true, band, 3 },
  { "step", FIGURE_LINE, TONE_compute, false, band, 5 },
  { "planned at", FIGURE_POINTS, TONE_compute, false, band, 5 },
};
static const figure_mark curve_marks[] = {
  { MARK_Y, 0, 450000000, "without swaps 450 ms", TONE_plain },
  { MARK_X, 5LL << 30, 0, "the card", TONE_limit },
  { MARK_POINT, 3LL << 30, 560000000, "knee: 3 GiB", TONE_limit },
};

static const char *const who[] = { "ferry", "a policy with a name that is too long for any picture",
                                   "another" };
static const figure_point worst[] = {
  { 0, 610000, 0, NULL },
  { 1, FIGURE_HOLE, 0, "does not fit: 82 MiB too much, and nothing is left that would help" },
  { 2, 2400000, 0, "the slowest" },
};
static const figure_point mean[] = { { 0, 300000, 0, NULL }, { 2, -200000, 0, NULL } };
static const figure_series bars[] = {
  { "slowest job", FIGURE_BARS, TONE_stall, false, worst, 3 },
  { "mean", FIGURE_BARS, TONE_compute, false, mean, 2 },
};
static const figure_mark bar_mark = { MARK_Y, 0, 1000000, "half as fast", TONE_limit };

/* The page as it was when somebody looked at it. GOLDEN=update: rewritten; look at it again. */
static void is_golden (const figure *figures, int n, const char *name) {
  bytes out = { 0 }, was = { 0 };
  error err = { 0 };
  char path[4096];
  const char *root = getenv ("srcdir"), *wish = getenv ("GOLDEN");
  figure_fact facts[] = { { "step", "460 ms", 460000000 }, { "peak", "6 GiB", 6LL << 30 } };
  figure_page page = { .title = "A < B & C",
                       .subtitle = "as drawn once",
                       .figures = figures,
                       .n_figures = n,
                       .facts = facts,
                       .n_facts = 2 };
  snprintf (path, sizeof path, "%s/tests/plot/%s.svg", root ? root : "..", name);
  ck_assert_msg (svg_page (&page, &out, &err), "%s", err.text);
  if (wish && strcmp (wish, "update") == 0)
    ck_assert_msg (file_write (path, out.data, out.size, FILE_PLAIN, &err), "%s", err.text);
  ck_assert_msg (file_read (path, 1 << 20, &was, &err), "%s", err.text);
  ck_assert_int_eq (was.size, out.size);
  ck_assert_msg (memcmp (was.data, out.data, (size_t)out.size) == 0, "%s differs", name);
  bytes_free (&was);
  bytes_free (&out);
}

CLAIM (pictures_are_those_that_were_looked_at) {
  figure step[] = { memory,
                    { .id = "lanes",
                      .title = "Who is busy when",
                      .x = { "time", FIGURE_NS, true, NULL, 0 },
                      .lanes = lanes,
                      .n_lanes = 2 } };
  figure curve = { .id = "curve",
                   .title = "Step and memory",
                   .x = { "budget", FIGURE_BYTES, false, NULL, 0 },
                   .y = { "step", FIGURE_NS, true, NULL, 0 },
                   .series = lines,
                   .n_series = 4,
                   .marks = curve_marks,
                   .n_marks = 3 };
  figure compared = { .id = "bars",
                      .title = "Longer than alone",
                      .x = { "", FIGURE_NAME, false, who, 3 },
                      .y = { "longer", FIGURE_SHARE, true, NULL, 0 },
                      .series = bars,
                      .n_series = 2,
                      .marks = &bar_mark,
                      .n_marks = 1 };
  is_golden (step, 2, "step");
  is_golden (&curve, 1, "curve");
  is_golden (&compared, 1, "bars");
}

CLAIM (a_curve_in_a_terminal_has_its_ends_where_they_belong) {
  static const term_curve_point points[] = {
    { 1LL << 30, 400000000, 400000000 },
    { 2LL << 30, 200000000, 100000000 },
    { 3LL << 30, 200000000, 100000000 },
  };
  bytes out = { 0 };
  error err = { 0 };
  term_style style = { .columns = 36 };
  ck_assert (term_curve (points, 3, 2LL << 30, 4, &style, &out, &err));
  ck_assert_str_eq (out.data, "    400 ms |****\n"
                              "           |   .******\n"
                              "    200 ms |       . ***************\n"
                              "   71.0 ms |          . .. .. .. ..\n"
                              "            1.00 GiB        3.00 GiB\n"
                              "         knee 2.00 GiB ^\n"
                              "            *: the step that was found; .: what no plan can beat\n");
  bytes_free (&out);
  style.utf8 = true;
  ck_assert (term_curve (points, 3, -1, 4, &style, &out, &err));
  ck_assert (contains (&out, "400 ms \xe2\x94\x82\xe2\xa0") && !contains (&out, "*"));
  bytes_free (&out);
}

CLAIM (a_curve_begins_near_its_least_time) {
  static const term_curve_point points[] = {
    { 1LL << 30, 410000000, 410000000 },
    { 2LL << 30, 400000000, 400000000 },
  };
  bytes out = { 0 };
  error err = { 0 };
  term_style style = { .columns = 36 };
  ck_assert (term_curve (points, 2, -1, 4, &style, &out, &err));
  ck_assert (contains (&out, "    395 ms |") && contains (&out, "    410 ms |*"));
  bytes_free (&out);
  figure_point at[] = { { 1, 410, 0, NULL }, { 2, 400, 0, NULL } };
  figure_series s = { "step", FIGURE_LINE, TONE_compute, false, at, 2 };
  figure f = { .series = &s, .n_series = 1 };
  int64_t low, high;
  figure_y_range (&f, &low, &high);
  ck_assert (low > 390 && low < 400 && high == 410);
}

int main (void) {
  return suite_run ("plot", 20);
}
