/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bearer tokens: 256 random bits each, of which only the SHA-256 is kept. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "server/service/service.h"

struct token_list {
  pthread_rwlock_t lock; /* guards all below */
  const char *path;
  token *all;
  int n;
  struct stat seen; /* the file that was read */
};

static const char *const role_names[ROLES] = { "none", "read", "site", "submit", "admin" };

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

static bool read_line (token_list *l, int number, char *line, error *err) {
  char digest[80], owner[80], name[80], rest[4];
  if (line[strspn (line, " \t\r\n")] == 0 || line[0] == '#')
    return true;
  int n = sscanf (line, "%79s %79s %79s %3s", digest, owner, name, rest);
  role r = n == 3 ? role_named (name) : ROLE_none;
  if (n != 3 || !digest_is_valid (digest) || !name_is_plain (owner) || r == ROLE_none)
    return error_set (err, ERR_input,
                      "%s, line %d: not DIGEST OWNER read|site|submit|admin; `ferry token` makes "
                      "such a line",
                      l->path, number);
  token *more = realloc (l->all, (size_t)(l->n + 1) * sizeof *more);
  if (!more)
    return error_memory (err);
  l->all = more;
  token *t = &l->all[l->n++];
  snprintf (t->digest, sizeof t->digest, "%.64s", digest);
  snprintf (t->owner, sizeof t->owner, "%.64s", owner);
  t->role = r;
  return true;
}

/* A file of another user, such as a mounted secret, is read by way of our group. */
static bool is_private (const struct stat *is) {
  mode_t others = is->st_uid == geteuid () ? S_IRWXG | S_IRWXO : S_IWGRP | S_IRWXO;
  return !(is->st_mode & others);
}

static bool read_file (token_list *l, error *err) {
  char line[512];
  FILE *in = fopen (l->path, "re");
  bool ok = in || error_set (err, ERR_file, "the file of tokens %s cannot be opened", l->path);
  if (ok && fstat (fileno (in), &l->seen) == 0 && !is_private (&l->seen))
    ok = error_set (err, ERR_file, "%s can be read by others; chmod 600 %s", l->path, l->path);
  for (int number = 1; ok && fgets (line, sizeof line, in); number++)
    ok = read_line (l, number, line, err);
  if (in)
    fclose (in);
  return ok;
}

bool tokens_read (token_list *l, error *err) {
  token_list fresh = { .path = l->path };
  bool ok = read_file (&fresh, err);
  pthread_rwlock_wrlock (&l->lock);
  token *old = ok ? l->all : fresh.all;
  if (ok) {
    l->all = fresh.all;
    l->n = fresh.n;
  }
  l->seen = fresh.seen; /* a fault of it is told once */
  pthread_rwlock_unlock (&l->lock);
  free (old);
  return ok;
}

bool tokens_follow (token_list *l, error *err) {
  struct stat is = { 0 };
  if (stat (l->path, &is) != 0)
    is = (struct stat){ 0 };
  pthread_rwlock_rdlock (&l->lock);
  bool same_file = is.st_ino == l->seen.st_ino && is.st_size == l->seen.st_size &&
                   is.st_mtim.tv_sec == l->seen.st_mtim.tv_sec &&
                   is.st_mtim.tv_nsec == l->seen.st_mtim.tv_nsec;
  pthread_rwlock_unlock (&l->lock);
  return !same_file && tokens_read (l, err);
}

token_list *tokens_open (const char *path, error *err) {
  token_list *l = calloc (1, sizeof *l);
  if (!l) {
    error_memory (err);
    return NULL;
  }
  l->path = path;
  pthread_rwlock_init (&l->lock, NULL);
  if (tokens_read (l, err) &&
      (l->n || error_set (err, ERR_input, "%s has no token; `ferry token` makes one", path)))
    return l;
  tokens_free (l);
  return NULL;
}

void tokens_free (token_list *l) {
  if (!l)
    return;
  pthread_rwlock_destroy (&l->lock);
  free (l->all);
  free (l);
}

/* Takes the same time wherever they differ. */
static bool same (const char a[65], const char b[65]) {
  unsigned differ = 0;
  for (int i = 0; i < 64; i++)
    differ |= (unsigned)(a[i] ^ b[i]);
  return differ == 0;
}

static bool find (token_list *l, const char digest[65], token *out) {
  bool found = false;
  pthread_rwlock_rdlock (&l->lock);
  for (int i = 0; i < l->n; i++)
    if (same (l->all[i].digest, digest)) {
      *out = l->all[i];
      found = true;
    }
  pthread_rwlock_unlock (&l->lock);
  return found;
}

bool tokens_find (token_list *l, const char *text, token *out) {
  char digest[65];
  if (!text)
    return false;
  digest_of (text, digest);
  return find (l, digest, out);
}

bool tokens_know (token_list *l, const char digest[65]) {
  token t;
  return find (l, digest, &t);
}

bool token_make (const char *owner, const char *role_name, char text[80], char line[160],
                 error *err) {
  unsigned char random[32];
  char digest[65];
  if (!name_is_plain (owner))
    return error_set (err, ERR_usage, "--owner: `%s` is not letters, digits, . _ -", owner);
  if (role_named (role_name) == ROLE_none)
    return error_set (err, ERR_usage, "--role: `%s` is not read, site, submit or admin", role_name);
  if (getrandom (random, sizeof random, 0) != (ssize_t)sizeof random)
    return error_set (err, ERR_internal, "the system gives no random bytes");
  snprintf (text, 80, "ferry_");
  for (int i = 0; i < 32; i++)
    snprintf (text + 6 + 2 * i, 3, "%02x", random[i]);
  digest_of (text, digest);
  snprintf (line, 160, "%s %s %s", digest, owner, role_name);
  return true;
}
