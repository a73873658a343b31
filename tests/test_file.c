/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/coding.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/suite.h"

typedef struct folder {
  char path[64];
} folder;

static folder folder_new (void) {
  folder f = { "/tmp/ferry-test-XXXXXX" };
  ck_assert_ptr_nonnull (mkdtemp (f.path));
  return f;
}

static const char *in (const folder *f, const char *name, char path[128]) {
  snprintf (path, 128, "%s/%s", f->path, name);
  return path;
}

static int entries (const folder *f) {
  char command[128];
  int n = -1;
  snprintf (command, sizeof command, "ls -A %s | wc -l", f->path);
  FILE *p = popen (command, "r");
  ck_assert_int_eq (fscanf (p, "%d", &n), 1);
  pclose (p);
  return n;
}

static void folder_free (const folder *f) {
  char command[128];
  snprintf (command, sizeof command, "rm -rf %s", f->path);
  FILE *p = popen (command, "r");
  pclose (p);
}

/* Text that compresses, but not to nothing. */
static bytes sample (int64_t size) {
  bytes b = { 0 };
  error err = { 0 };
  random_state r = random_seed ((uint64_t)size);
  ck_assert (bytes_room (&b, size, &err));
  for (; b.size < size; b.size++)
    b.data[b.size] = (char)('a' + random_between (&r, 0, 5));
  b.data[b.size] = 0;
  return b;
}

static void same (const bytes *a, const bytes *b) {
  ck_assert_int_eq (a->size, b->size);
  ck_assert_int_eq (memcmp (a->data, b->data, (size_t)b->size), 0);
  ck_assert_int_eq (a->data[a->size], 0);
}

static const int64_t sizes[] = {
  0, 1, 100, 131071, 131072, 131073, 262144, 524288, 655360, 3000001
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* 131072 and its multiples fill the decoders' chunks to the last byte. */
CLAIM (what_is_written_is_read_back_in_every_coding) {
  static const char *const names[] = { "x", "x.gz", "x.zst" };
  folder f = folder_new ();
  for (int i = 0; i < SIZES; i++)
    for (int coding = FILE_PLAIN; coding <= FILE_ZSTD; coding++) {
      char path[128];
      error err = { 0 };
      bytes wrote = sample (sizes[i]), got = { 0 };
      in (&f, names[coding], path);
      ck_assert_int_eq (file_coding_of (path), coding);
      ck_assert_msg (file_write (path, wrote.data, wrote.size, coding, &err), "%s", err.text);
      ck_assert_msg (file_read (path, 0, &got, &err), "%s, %d bytes: %s", names[coding],
                     (int)sizes[i], err.text);
      same (&got, &wrote);
      bytes_free (&got);
      bytes_free (&wrote);
    }
  ck_assert_int_eq (entries (&f), 3);
  folder_free (&f);
}

CLAIM (several_compressed_files_in_a_row_are_one) {
  for (int i = 0; i < SIZES; i++)
    for (int zstd = 0; zstd <= 1; zstd++) {
      error err = { 0 };
      bytes one = sample (sizes[i]), both = { 0 }, coded = { 0 }, got = { 0 };
      for (int k = 0; k < 2; k++) {
        ck_assert (zstd ? zstd_encode (one.data, one.size, &coded, &err)
                        : gzip_encode (one.data, one.size, &coded, &err));
        ck_assert (bytes_append (&both, one.data, one.size, &err));
      }
      ck_assert_msg (file_decode (coded.data, coded.size, 0, &got, &err), "%d bytes: %s",
                     (int)sizes[i], err.text);
      same (&got, &both);
      bytes_free (&one);
      bytes_free (&both);
      bytes_free (&coded);
      bytes_free (&got);
    }
}

CLAIM (what_is_packed_twice_is_named) {
  for (int ways = 0; ways < 4; ways++) {
    error err = { 0 };
    bytes text = sample (100), once = { 0 }, twice = { 0 }, got = { 0 };
    ck_assert (ways & 1 ? zstd_encode (text.data, text.size, &once, &err)
                        : gzip_encode (text.data, text.size, &once, &err));
    ck_assert (ways & 2 ? zstd_encode (once.data, once.size, &twice, &err)
                        : gzip_encode (once.data, once.size, &twice, &err));
    ck_assert (!file_decode (twice.data, twice.size, 0, &got, &err));
    ck_assert_int_eq (err.code, ERR_input);
    ck_assert_ptr_nonnull (strstr (err.text, "packed twice"));
    bytes_free (&text);
    bytes_free (&once);
    bytes_free (&twice);
  }
}

CLAIM (every_truncation_is_noticed) {
  for (int zstd = 0; zstd <= 1; zstd++) {
    error err = { 0 };
    bytes text = sample (2000), coded = { 0 };
    ck_assert (zstd ? zstd_encode (text.data, text.size, &coded, &err)
                    : gzip_encode (text.data, text.size, &coded, &err));
    for (int64_t size = 4; size < coded.size; size++) {
      bytes got = { 0 };
      err = (error){ 0 };
      ck_assert_msg (!file_decode (coded.data, size, 0, &got, &err), "%d of %d bytes", (int)size,
                     (int)coded.size);
      ck_assert_int_eq (err.code, ERR_input);
      ck_assert_ptr_null (got.data);
    }
    bytes_free (&text);
    bytes_free (&coded);
  }
}

CLAIM (rubbish_behind_compressed_data_is_refused) {
  for (int zstd = 0; zstd <= 1; zstd++) {
    error err = { 0 };
    bytes text = sample (2000), coded = { 0 }, got = { 0 };
    ck_assert (zstd ? zstd_encode (text.data, text.size, &coded, &err)
                    : gzip_encode (text.data, text.size, &coded, &err));
    ck_assert (bytes_append (&coded, "rubbish, and more of it", 23, &err));
    ck_assert (!file_decode (coded.data, coded.size, 0, &got, &err));
    ck_assert_int_eq (err.code, ERR_input);
    bytes_free (&text);
    bytes_free (&coded);
  }
}

CLAIM (a_bomb_is_refused_before_it_fills_memory) {
  for (int zstd = 0; zstd <= 1; zstd++) {
    error err = { 0 };
    bytes zeros = { 0 }, coded = { 0 }, got = { 0 };
    ck_assert (bytes_room (&zeros, 64 << 20, &err));
    memset (zeros.data, 0, 64 << 20);
    ck_assert (zstd ? zstd_encode (zeros.data, 64 << 20, &coded, &err)
                    : gzip_encode (zeros.data, 64 << 20, &coded, &err));
    ck_assert_int_lt (coded.size, 100000);
    ck_assert (!file_decode (coded.data, coded.size, 1 << 20, &got, &err));
    ck_says (&err, "the file is larger than 1.00 MiB when decompressed");
    ck_assert_int_eq (err.code, ERR_too_large);
    bytes_free (&zeros);
    bytes_free (&coded);
  }
}

CLAIM (the_limit_is_the_largest_size_that_is_read) {
  folder f = folder_new ();
  char path[128];
  error err = { 0 };
  bytes text = sample (5000), got = { 0 };
  in (&f, "x", path);
  ck_assert (file_write (path, text.data, text.size, FILE_PLAIN, &err));
  ck_assert (file_read (path, 5000, &got, &err));
  bytes_free (&got);
  ck_assert (!file_read (path, 4999, &got, &err));
  ck_assert_str_eq (err.path, path);
  ck_assert_str_eq (err.text, "the file is larger than 4.88 KiB");
  bytes_free (&text);
  folder_free (&f);
}

CLAIM (a_file_that_is_not_there_is_named) {
  error err = { 0 };
  bytes got = { 0 };
  ck_assert (!file_read ("/nowhere/at.all", 0, &got, &err));
  ck_assert_int_eq (err.code, ERR_file);
  ck_says (&err, "/nowhere/at.all: cannot be opened: No such file or directory");
  err = (error){ 0 };
  ck_assert (!file_read ("/tmp", 0, &got, &err));
  ck_assert_int_eq (err.code, ERR_file);
}

CLAIM (a_failed_write_leaves_the_old_file_and_nothing_beside_it) {
  folder f = folder_new ();
  char path[128], other[128];
  error err = { 0 };
  bytes got = { 0 };
  in (&f, "x", path);
  ck_assert (file_write (path, "old", 3, FILE_PLAIN, &err));
  in (&f, "none/x", other);
  ck_assert (!file_write (other, "new", 3, FILE_PLAIN, &err));
  ck_assert_int_eq (err.code, ERR_file);
  ck_assert_str_eq (err.path, other);
  err = (error){ 0 };
  ck_assert (!file_write (f.path, "new", 3, FILE_PLAIN, &err)); /* a folder */
  err = (error){ 0 };
  ck_assert (file_read (path, 0, &got, &err));
  ck_assert_str_eq (got.data, "old");
  ck_assert_int_eq (entries (&f), 1);
  bytes_free (&got);
  folder_free (&f);
}

CLAIM (a_reader_keeps_the_old_file_while_it_is_replaced) {
  folder f = folder_new ();
  char path[128], text[8] = "";
  error err = { 0 };
  in (&f, "x", path);
  ck_assert (file_write (path, "old", 3, FILE_PLAIN, &err));
  int fd = open (path, O_RDONLY);
  ck_assert (file_write (path, "newer", 5, FILE_PLAIN, &err));
  ck_assert_int_eq (read (fd, text, sizeof text), 3);
  ck_assert_str_eq (text, "old");
  close (fd);
  folder_free (&f);
}

CLAIM (a_new_file_has_the_mode_that_the_mask_leaves) {
  folder f = folder_new ();
  char path[128];
  error err = { 0 };
  struct stat st;
  mode_t before = umask (027);
  ck_assert (file_write (in (&f, "x", path), "x", 1, FILE_PLAIN, &err));
  umask (before);
  ck_assert_int_eq (stat (path, &st), 0);
  ck_assert_int_eq (st.st_mode & 0777, 0640);
  folder_free (&f);
}

CLAIM (a_link_stays_a_link_and_its_target_is_replaced) {
  folder f = folder_new ();
  char path[128], link[128];
  error err = { 0 };
  struct stat st;
  bytes got = { 0 };
  in (&f, "target", path);
  in (&f, "link", link);
  ck_assert (file_write (path, "old", 3, FILE_PLAIN, &err));
  ck_assert_int_eq (symlink ("target", link), 0);
  ck_assert_msg (file_write (link, "new", 3, FILE_PLAIN, &err), "%s", err.text);
  ck_assert_int_eq (lstat (link, &st), 0);
  ck_assert (S_ISLNK (st.st_mode));
  ck_assert (file_read (path, 0, &got, &err));
  ck_assert_str_eq (got.data, "new");
  bytes_free (&got);
  folder_free (&f);
}

CLAIM (a_pipe_is_written_to_and_not_replaced) {
  folder f = folder_new ();
  char path[128], text[8] = "";
  error err = { 0 };
  struct stat st;
  in (&f, "pipe", path);
  ck_assert_int_eq (mkfifo (path, 0600), 0);
  int fd = open (path, O_RDONLY | O_NONBLOCK);
  ck_assert (file_write (path, "hello", 5, FILE_PLAIN, &err));
  ck_assert_int_eq (read (fd, text, sizeof text - 1), 5);
  ck_assert_str_eq (text, "hello");
  ck_assert_int_eq (lstat (path, &st), 0);
  ck_assert (S_ISFIFO (st.st_mode));
  close (fd);
  folder_free (&f);
}

/* Files that other programs wrote, and ours read by their libraries. */
CLAIM (other_writers_and_readers_agree) {
  folder f = folder_new ();
  char path[128], back[5001] = "";
  error err = { 0 };
  bytes text = sample (5000), got = { 0 };
  gzFile gz = gzopen (in (&f, "x", path), "wb"); /* its name does not say that it is gzip */
  ck_assert_int_eq (gzwrite (gz, text.data, 5000), 5000);
  gzclose (gz);
  ck_assert (file_read (path, 0, &got, &err));
  same (&got, &text);
  bytes_free (&got);
  ck_assert (file_write (in (&f, "y.gz", path), text.data, text.size, FILE_GZIP, &err));
  gz = gzopen (path, "rb");
  ck_assert_int_eq (gzread (gz, back, 5001), 5000);
  gzclose (gz);
  ck_assert_str_eq (back, text.data);
  bytes coded = { 0 };
  ck_assert (zstd_encode (text.data, text.size, &coded, &err));
  ck_assert_uint_eq (ZSTD_decompress (back, 5000, coded.data, (size_t)coded.size), 5000);
  ck_assert_str_eq (back, text.data);
  bytes_free (&coded);
  bytes_free (&text);
  folder_free (&f);
}

int main (void) {
  return suite_run ("file", 30);
}
