/* Gives every file of the corpus to the fuzz target it is linked with: whole, cut short at many
   places, and with single bytes changed. */
#include <stdbool.h>
#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "base/random.h"
#include "tests/fuzz.h"

enum { CUTS = 60, CHANGES = 300 };

/* A copy of exactly that size, so that a read beyond its end is seen by the sanitizers. */
static void give (const char *data, size_t size, size_t at, char change) {
  char *copy = malloc (size ? size : 1);
  if (!copy)
    abort ();
  memcpy (copy, data, size);
  if (at < size)
    copy[at] = change;
  LLVMFuzzerTestOneInput ((const uint8_t *)copy, size);
  free (copy);
}

static int replay (const bytes *file) {
  static const char changes[] = "0-9{}[],\":.x \n\xff";
  random_state r = random_seed ((uint64_t)file->size);
  size_t size = (size_t)file->size;
  give (file->data, size, size, 0);
  for (int i = 0; i < CUTS && size; i++)
    give (file->data, (size_t)random_between (&r, 0, file->size - 1), size, 0);
  for (int i = 0; i < CHANGES && size; i++)
    give (file->data, size, (size_t)random_between (&r, 0, file->size - 1),
          changes[random_between (&r, 0, sizeof changes - 1)]);
  return size ? 1 + CUTS + CHANGES : 1;
}

/* Folders of the corpus and single files; missing ones are an error. */
static int replay_path (const char *path) {
  DIR *dir = opendir (path);
  struct dirent *entry;
  char inside[4096];
  bytes file = { 0 };
  error err = { 0 };
  int given = 0;
  if (!dir) {
    FILE *in = fopen (path, "rb");
    if (!in)
      return 0;
    int c;
    for (char one; (c = getc (in)) != EOF;) {
      one = (char)c;
      if (!bytes_append (&file, &one, 1, &err))
        abort ();
    }
    fclose (in);
    given = replay (&file);
    bytes_free (&file);
    return given;
  }
  while ((entry = readdir (dir)))
    if (entry->d_name[0] != '.') {
      snprintf (inside, sizeof inside, "%s/%s", path, entry->d_name);
      given += replay_path (inside);
    }
  closedir (dir);
  return given;
}

/* tests/replay_trace replays tests/corpus/trace of the source folder, or what it is given. */
int main (int argc, char **argv) {
  int given = 0;
  char folder[4096];
  const char *kind = strrchr (argv[0], '_'), *source = getenv ("srcdir");
  snprintf (folder, sizeof folder, "%s/tests/corpus/%s", source ? source : ".",
            kind ? kind + 1 : "");
  for (int i = argc > 1; i < argc; i++) {
    const char *path = i ? argv[i] : folder;
    int here = replay_path (path);
    if (here == 0) {
      fprintf (stderr, "%s: nothing to replay\n", path);
      return 1;
    }
    given += here;
    if (i == 0)
      break;
  }
  printf ("%d passed, 0 failed\n", given);
  return 0;
}
