/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Imports of texts that are cut or packed, and the report as text and as JSON.  What becomes of
   whole texts, and which mistakes are told, say the folders tests/cases/import-*. */
#include <string.h>
#include <zlib.h>

#include "tests/import_case.h"
#include "trace/import/kineto/kineto.h"
#include "trace/import/import.h"
#include "tests/import_texts.h"

CLAIM_EACH (a_text_cut_anywhere_is_refused_or_read_but_never_crashes, 0, 3) {
  static const char *const texts[] = { EVENTS (TINY TINY_MEMORY LAST), ET (TINY_ET), PLAIN };
  const char *text = texts[_i];
  size_t size = strlen (text);
  for (size_t n = 0; n < size; n += 1 + n / 200) {
    char *cut = malloc (n + 1);
    import_report r;
    error err = { 0 };
    trace *t;
    memcpy (cut, text, n);
    cut[n] = 0;
    arena *a = arena_new (0);
    import_source source = { "cut", cut, (int64_t)n };
    bool ok = import_memory (&source, 1, NULL, a, &t, &r, &err);
    ck_assert (ok || err.code != ERR_none);
    ck_assert (!ok || _i == 2); /* only a cut of lines may still be whole */
    if (!ok && _i < 2 && n > 60)
      ck_assert_ptr_nonnull (strstr (err.text, "byte "));
    arena_free (a);
    free (cut);
  }
}

static bytes zip (const void *data, int64_t size) {
  z_stream z = { 0 };
  bytes out = { 0 };
  error err = { 0 };
  ck_assert_int_eq (deflateInit2 (&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
  ck_assert (bytes_room (&out, size / 2 + 1000, &err));
  z.next_in = (unsigned char *)(uintptr_t)data;
  z.avail_in = (unsigned)size;
  z.next_out = (unsigned char *)out.data;
  z.avail_out = (unsigned)out.capacity;
  ck_assert_int_eq (deflate (&z, Z_FINISH), Z_STREAM_END);
  out.size = (int64_t)z.total_out;
  deflateEnd (&z);
  return out;
}

CLAIM (compressed_files_are_undone_bounded_and_told_when_cut) {
  import_report r;
  trace *t;
  error err = { 0 };
  bytes whole = zip (PLAIN, (int64_t)strlen (PLAIN));
  import_source source = { "dir/x.txt.gz", whole.data, whole.size };
  ck_assert (import_memory (&source, 1, NULL, import_arena (), &t, &r, &err));
  ck_assert_str_eq (r.read[0].name, "x.txt.gz");
  source.size -= 20;
  ck_assert (!import_memory (&source, 1, NULL, import_arena (), &t, &r, &err));
  ck_assert_ptr_nonnull (strstr (err.text, "the gzip data ends early, after byte"));
  char *zeros = calloc (1, 8 << 20);
  bytes bomb = zip (zeros, 8 << 20);
  import_options o = IMPORT_DEFAULTS;
  o.limit_bytes = 1 << 20;
  source = (import_source){ "bomb.gz", bomb.data, bomb.size };
  err = (error){ 0 };
  ck_assert (!import_memory (&source, 1, &o, import_arena (), &t, &r, &err));
  ck_says (&err, "bomb.gz: the file is larger than 1.00 MiB when decompressed");
  free (zeros);
  bytes_free (&bomb);
  bytes_free (&whole);
}

CLAIM (the_report_reads_as_text_and_as_json) {
  import_report r;
  error err = { 0 };
  bytes text = { 0 }, json = { 0 };
  json_writer w;
  import_good (EVENTS (TINY TINY_MEMORY LAST), &r);
  ck_assert (import_report_text (&r, &text, &err));
  static const char *const lines[] = {
    "\niteration   ProfilerStep#5 of 1 step, 0.100 ms\n",
    "\nops         4  forward 2  backward 1  update 1\n",
    "\nconfidence  approximate: reads are those of all ops that may read", "\ndropped     none\n",
    "\nwarnings    none\n"
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    ck_assert_msg (strstr (text.data, lines[i]) != NULL, "%s in\n%s", lines[i], text.data);
  json_begin (&w, 1);
  import_report_json (&r, &w);
  ck_assert (json_finish (&w, &json, &err));
  json_document *d = json_open (json.data, json.size, &err);
  ck_assert_ptr_nonnull (d);
  json_close (d);
  bytes_free (&text);
  bytes_free (&json);
}

/* Sizes are of 65 and of 96 MiB, and what an allocator that is set so makes of them. */
CLAIM (blocks_that_are_larger_than_asked_hold_their_tensors) {
  const int64_t mib = (int64_t)1 << 20, inputs[] = { 512, 3 * mib / 2, 65 * mib, 96 * mib };
  int64_t blocks[][3] = { { 65 * mib, 3 * mib / 2, 97 * mib - 512 },
                          { 80 * mib, 96 * mib, 3 * mib / 2 },
                          { 96 * mib, 76 * mib, 2 * mib } };
  const kineto_slack found[] = { { 0, false }, { 4, false }, { 0, true } };
  for (int i = 0; i < 3; i++) {
    kineto_slack s = kineto_slack_of (inputs, 4, blocks[i], 3);
    ck_assert_int_eq (s.divisions, found[i].divisions);
    ck_assert_int_eq (s.unsplit, found[i].unsplit);
  }
  ck_assert_int_eq (kineto_least_slack (found[0], 80 * mib), 79 * mib);
  ck_assert_int_eq (kineto_least_slack (found[1], 80 * mib), 64 * mib + 1);
  ck_assert_int_eq (kineto_least_slack (found[1], 81 * mib), 64 * mib + 1);
  ck_assert_int_eq (kineto_least_slack (found[2], 76 * mib), 56 * mib);
  ck_assert_int_eq (kineto_least_slack (found[2], 2 * mib), mib + 1);
  ck_assert_int_eq (kineto_least_slack (found[2], mib), mib);
}

int main (void) {
  return suite_run ("import", 20);
}
