#include <string.h>

#include "base/json.h"
#include "plot/chrome.h"
#include "plot/html.h"
#include "plot/scale.h"
#include "plot/svg.h"
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

START_TEST (ticks_are_round_in_their_unit_and_hold_the_ends) {
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
END_TEST

START_TEST (layers_of_a_stack_are_drawn_from_the_top_one_down_to_the_floor) {
  bytes out = { 0 };
  error err = { 0 };
  ck_assert (svg_figure (&memory, 400, &out, &err));
  /* the frame is 314 wide and 240 high, from (70, 66) on; 10 B is the whole height */
  const char *top =
      strstr (out.data, "<path class=\"f-activation\" d=\"M70 306V210H227V114H384V306Z\"/>");
  const char *low =
      strstr (out.data, "<path class=\"f-parameter\" d=\"M70 306V210H227V258H384V306Z\"/>");
  ck_assert_msg (top && low && top < low, "%s", out.data);
  ck_assert (contains (&out, "<path class=\"mark s-limit\" d=\"M70 66H384\"/>"));
  ck_assert (contains (&out, ">a&lt;b</text>") && contains (&out, ">Memory &amp; more</text>"));
  bytes_free (&out);
}
END_TEST

START_TEST (what_is_too_fine_to_see_still_shows_its_highest) {
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
  ck_assert (svg_figure (&f, 400, &out, &err));
  ck_assert (contains (&out, "V46H")); /* the top of the frame */
  ck_assert_int_lt (out.size, 40000);
  bytes_free (&out);
}
END_TEST

START_TEST (tables_say_what_a_layer_adds_and_their_units) {
  bytes out = { 0 };
  error err = { 0 };
  arena *a = arena_new (0);
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
  arena_free (a);
}
END_TEST

START_TEST (a_page_fetches_nothing_and_has_every_number) {
  bytes out = { 0 };
  error err = { 0 };
  arena *a = arena_new (0);
  figure_fact fact = { "step", "2 us", 2001 };
  figure_page page = {
    .title = "</title><script>", .figures = &memory, .n_figures = 1, .facts = &fact, .n_facts = 1
  };
  ck_assert (html_page (&page, 0, a, &out, &err));
  ck_assert_int_eq (times (&out, "<script>"), 1);
  ck_assert (!contains (&out, "src=") && !contains (&out, "@import"));
  ck_assert (contains (&out, "value=\"2001\">2 us<"));
  ck_assert (contains (&out, "<td data-v=\"6\">6 B</td>"));
  bytes_free (&out);
  arena_free (a);
}
END_TEST

START_TEST (times_of_a_chrome_trace_keep_every_nanosecond) {
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
END_TEST

int main (void) {
  const TTest *const tests[] = {
    ticks_are_round_in_their_unit_and_hold_the_ends,
    layers_of_a_stack_are_drawn_from_the_top_one_down_to_the_floor,
    what_is_too_fine_to_see_still_shows_its_highest,
    tables_say_what_a_layer_adds_and_their_units,
    a_page_fetches_nothing_and_has_every_number,
    times_of_a_chrome_trace_keep_every_nanosecond,
    NULL,
  };
  return suite_run ("plot", tests, 20);
}
