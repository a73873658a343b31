/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bearer tokens: 256 random bits each, of which only the SHA-256 is kept. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "server/service/service.h"

static const char *const role_names[ROLES] = { "none", "read", "submit", "admin" };

static role role_named (const char *name) {
  for (int i = ROLE_read; i < ROLES; i++)
    if (strcmp (role_names[i], name) == 0)
      return (role)i;
  return ROLE_none;
}

static void digest_of (const char *text, char digest[65]) {
  sha256 s;
  sha256_start (&s);
  sha256_add (&s, text, strlen (text));
  sha256_text (&s, digest);
}

static bool read_line (service *s, const char *path, int number, char *line, error *err) {
  char digest[80], owner[80], name[80], rest[4];
  if (line[strspn (line, " \t\r\n")] == 0 || line[0] == '#')
    return true;
  int n = sscanf (line, "%79s %79s %79s %3s", digest, owner, name, rest);
  role r = n == 3 ? role_named (name) : ROLE_none;
  if (n != 3 || !digest_is_valid (digest) || !name_is_plain (owner) || r == ROLE_none)
    return error_set (err, ERR_input,
                      "%s, line %d: not DIGEST OWNER read|submit|admin; `ferry token` makes such a "
                      "line",
                      path, number);
  token *more = realloc (s->tokens, (size_t)(s->n_tokens + 1) * sizeof *more);
  if (!more)
    return error_memory (err);
  s->tokens = more;
  token *t = &s->tokens[s->n_tokens++];
  snprintf (t->digest, sizeof t->digest, "%.64s", digest);
  snprintf (t->owner, sizeof t->owner, "%.64s", owner);
  t->role = r;
  return true;
}

bool tokens_read (service *s, const char *path, error *err) {
  char line[512];
  struct stat is;
  FILE *in = fopen (path, "re");
  bool ok = in || error_set (err, ERR_file, "the file of tokens %s cannot be opened", path);
  if (ok && fstat (fileno (in), &is) == 0 && (is.st_mode & 077))
    ok = error_set (err, ERR_file, "%s can be read by others; chmod 600 %s", path, path);
  for (int number = 1; ok && fgets (line, sizeof line, in); number++)
    ok = read_line (s, path, number, line, err);
  if (ok && !s->n_tokens)
    ok = error_set (err, ERR_input, "%s has no token; `ferry token` makes one", path);
  if (in)
    fclose (in);
  return ok;
}

/* Takes the same time wherever they differ. */
static bool same (const char a[65], const char b[65]) {
  unsigned differ = 0;
  for (int i = 0; i < 64; i++)
    differ |= (unsigned)(a[i] ^ b[i]);
  return differ == 0;
}

const token *tokens_find (const service *s, const char *authorization) {
  char digest[65];
  const token *found = NULL;
  if (!authorization || strncasecmp (authorization, "Bearer ", 7) != 0)
    return NULL;
  digest_of (authorization + 7, digest);
  for (int i = 0; i < s->n_tokens; i++)
    if (same (s->tokens[i].digest, digest))
      found = &s->tokens[i];
  return found;
}

bool token_make (const char *owner, const char *role_name, char text[80], char line[160],
                 error *err) {
  unsigned char random[32];
  char digest[65];
  if (!name_is_plain (owner))
    return error_set (err, ERR_usage, "--owner: `%s` is not letters, digits, . _ -", owner);
  if (role_named (role_name) == ROLE_none)
    return error_set (err, ERR_usage, "--role: `%s` is not read, submit or admin", role_name);
  if (getrandom (random, sizeof random, 0) != (ssize_t)sizeof random)
    return error_set (err, ERR_internal, "the system gives no random bytes");
  snprintf (text, 80, "ferry_");
  for (int i = 0; i < 32; i++)
    snprintf (text + 6 + 2 * i, 3, "%02x", random[i]);
  digest_of (text, digest);
  snprintf (line, 160, "%s %s %s", digest, owner, role_name);
  return true;
}
