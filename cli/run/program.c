/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/run/program.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/inputs/drivers.h"
#include "cli/run/emulated.h"

#define LIBRARY "libferry-shim.so"

/* ---- folders and files ---- */

static bool find_shim (call *c, char *out, size_t size) {
  static const char *const beside[] = { "/" LIBRARY, "/../lib/ferry/" LIBRARY };
  char program[PATH_MAX], whole[PATH_MAX];
  const char *given = getenv ("FERRY_SHIM_LIBRARY");
  ssize_t n = readlink ("/proc/self/exe", program, sizeof program - 1);
  program[n > 0 ? n : 0] = 0;
  char *slash = strrchr (program, '/');
  if (slash)
    *slash = 0;
  if (given && *given && realpath (given, whole) &&
      (size_t)snprintf (out, size, "%s", whole) < size && !access (out, R_OK))
    return true;
  for (size_t i = 0; slash && i < sizeof beside / sizeof *beside; i++)
    if ((size_t)snprintf (out, size, "%s%s", program, beside[i]) < size && !access (out, R_OK))
      return true;
  if ((size_t)snprintf (out, size, "%s", FERRY_LIBDIR "/" LIBRARY) < size && !access (out, R_OK))
    return true;
  return error_set (&c->err, ERR_file,
                    "%s is neither beside ferry nor in %s; "
                    "FERRY_SHIM_LIBRARY=FILE says where it is",
                    LIBRARY, FERRY_LIBDIR);
}

/* In some containers the driver is on no default path: the loader is asked, not a list of folders.
 */
static bool find_driver (call *c, char *out, size_t size) {
  void *library = dlopen ("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  struct link_map *map = NULL;
  char path[PATH_MAX];
  bool good = library && dlinfo (library, RTLD_DI_LINKMAP, &map) == 0 &&
              realpath (map->l_name, path) && (size_t)snprintf (out, size, "%s", path) < size;
  if (library)
    dlclose (library);
  return good || error_set (&c->err, ERR_unreachable,
                            "no driver: libcuda.so.1 is not found; without a GPU, use --driver "
                            "emulated");
}

/* ---- the driver ---- */

static bool read_driver (call *c, program_run *r) {
  static const char *const words[] = { "cuda", "emulated", NULL };
  char path[PATH_MAX], whole[PATH_MAX];
  int which = 0;
  if (!call_word (c, "driver", words, &which))
    return false;
  if (which == 0)
    return call_text (c, "emulated") == NULL ? find_driver (c, r->driver, sizeof r->driver)
                                             : call_usage (c, "--emulated needs --driver emulated");
  const char *library = emulator_path (path, sizeof path);
  if (!realpath (library, whole) ||
      (size_t)snprintf (r->driver, sizeof r->driver, "%s", whole) >= sizeof r->driver)
    return error_set (&c->err, ERR_unreachable,
                      "no driver: %s is not there; FERRY_EMU=FILE says "
                      "where the emulator's library lies",
                      library);
  return emulated_read (c, &r->block->config);
}

/* ---- the folder ---- */

const char *program_file (const program_run *r, char *buffer, int size, const char *name,
                          int number) {
  if (number < 0)
    snprintf (buffer, (size_t)size, "%s/%s", r->folder, name);
  else
    snprintf (buffer, (size_t)size, "%s/%s-%d", r->folder, name, number);
  return buffer;
}

/* The loader takes lists of names apart at these, or puts something else there; it knows no quotes.
 */
static bool is_word (const char *path) {
  return !strpbrk (path, " :;$");
}

/* Its path is whole, for programs that go elsewhere, and stands in the loader's lists. */
static bool make_folder (call *c, program_run *r) {
  const char *under = getenv ("TMPDIR");
  char whole[PATH_MAX];
  under = under && *under ? under : "/tmp";
  errno = 0;
  if (!realpath (under, whole) ||
      (size_t)snprintf (r->folder, sizeof r->folder, "%s/ferry-XXXXXX",
                        is_word (whole) ? whole : "/tmp") >= sizeof r->folder)
    errno = errno ? errno : ENAMETOOLONG;
  else if (mkdtemp (r->folder))
    return true;
  r->folder[0] = 0;
  return error_set (&c->err, ERR_file, "no folder for the program can be made in %s: %s", under,
                    strerror (errno));
}

/* A library that cannot stand in a list is preloaded by a link to it. */
static bool name_shim (call *c, program_run *r) {
  return is_word (r->shim) ||
         (size_t)snprintf (r->shim, sizeof r->shim, "%s/libcuda.so.1", r->folder) <
             sizeof r->shim ||
         error_set (&c->err, ERR_file, "%s: too long a name", r->folder);
}

static bool link_names (call *c, const program_run *r) {
  static const char *const names[] = { "libcuda.so", "libcuda.so.1" };
  char path[SHIM_PATH + 64];
  for (int i = 0; i < 2; i++)
    if (symlink (r->shim, program_file (r, path, sizeof path, names[i], -1)) != 0)
      return error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
  return true;
}

static bool make_block (call *c, program_run *r) {
  char path[SHIM_PATH + 64];
  int file = open (program_file (r, path, sizeof path, SHIM_BLOCK_FILE, -1),
                   O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool good = file >= 0 && ftruncate (file, sizeof *r->block) == 0;
  if (good) {
    r->block = mmap (NULL, sizeof *r->block, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    good = r->block != MAP_FAILED;
  }
  if (!good) {
    error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
    if (file >= 0)
      close (file);
    r->block = NULL;
    return false;
  }
  struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  r->file = file;
  r->block->is_held = fcntl (file, F_SETLK, &all) == 0;
  r->block->magic = SHIM_MAGIC;
  r->block->bytes = (int32_t)sizeof *r->block;
  memcpy (r->block->config.folder, r->folder, sizeof r->folder);
  return true;
}

bool program_prepare (call *c, program_run *r) {
  shim_config asked = r->block ? r->block->config : (shim_config){ 0 };
  *r = (program_run){ .child = -1 };
  if (!find_shim (c, r->shim, sizeof r->shim) || !make_folder (c, r) || !link_names (c, r) ||
      !name_shim (c, r) || !make_block (c, r))
    return false;
  memcpy (asked.folder, r->folder, sizeof r->folder);
  r->block->config = asked;
  return read_driver (c, r);
}

bool program_add_rank (call *c, const program_run *first, int rank, program_run *out) {
  shim_config asked = first->block->config;
  char path[SHIM_PATH + 64];
  *out = (program_run){ .child = -1 };
  program_file (first, path, sizeof path, SHIM_RANK, rank);
  if ((size_t)snprintf (out->folder, sizeof out->folder, "%s", path) >= sizeof out->folder ||
      mkdir (path, 0700) != 0) {
    out->folder[0] = 0;
    return error_set (&c->err, ERR_file, "%s: %s", path, strerror (errno));
  }
  if (!make_block (c, out))
    return false;
  memcpy (asked.folder, out->folder, sizeof out->folder);
  out->block->config = asked;
  memcpy (out->driver, first->driver, sizeof out->driver);
  return true;
}

int program_failed (call *c, const program_run *r) {
  int status = program_status (r);
  if (!status)
    return call_failed (c);
  c->keeps_status = true;
  return status;
}

void program_remove_folder (const char *path, const char *last) {
  DIR *all = opendir (path);
  if (!all)
    return;
  for (struct dirent *e; (e = readdir (all));)
    if (strcmp (e->d_name, last) != 0)
      unlinkat (dirfd (all), e->d_name, 0);
  unlinkat (dirfd (all), last, 0);
  closedir (all);
  rmdir (path);
}

void program_clean (program_run *r) {
  if (r->block)
    munmap (r->block, sizeof *r->block);
  r->block = NULL;
  if (r->file > 0)
    close (r->file);
  r->file = 0;
  if (r->folder[0])
    program_remove_folder (r->folder, "");
}

/* ---- the program ---- */

/* In front of what is there: `by` between the two. */
static void put_before (const char *name, const char *value, char by) {
  const char *old = getenv (name);
  char text[16384];
  if (!old || !*old)
    setenv (name, value, 1);
  else if ((size_t)snprintf (text, sizeof text, "%s%c%s", value, by, old) < sizeof text)
    setenv (name, text, 1);
}

/* PyTorch must ask the driver for each tensor. */
static void set_allocator (const char *name) {
  const char *old = getenv (name);
  if (!old || !strstr (old, "backend:"))
    put_before (name, "backend:cudaMallocAsync", ',');
}

static void set_environment (const program_run *r) {
  char path[SHIM_PATH + 64];
  put_before ("LD_PRELOAD", r->shim, ':');
  put_before ("LD_LIBRARY_PATH", r->folder, ':');
  setenv (SHIM_BLOCK, program_file (r, path, sizeof path, SHIM_BLOCK_FILE, -1), 1);
  setenv (SHIM_REAL, r->driver, 1);
  if (!r->block->config.emulated) {
    set_allocator ("PYTORCH_CUDA_ALLOC_CONF");
    set_allocator ("PYTORCH_ALLOC_CONF");
    setenv ("XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async", 0); /* JAX, likewise */
    setenv ("XLA_PYTHON_CLIENT_PREALLOCATE", "false", 0);
  }
}

static bool find_program (const char *name, char *out, size_t size) {
  const char *path = getenv ("PATH");
  if (strchr (name, '/'))
    return (size_t)snprintf (out, size, "%s", name) < size && !access (out, X_OK);
  while (path && *path) {
    size_t n = strcspn (path, ":");
    if ((size_t)snprintf (out, size, "%.*s/%s", (int)n, path, name) < size && !access (out, X_OK))
      return true;
    path += n + (path[n] == ':');
  }
  return false;
}

/* The loader heeds LD_PRELOAD neither in a static program nor in one with another user's rights. */
static bool can_be_preloaded (call *c, const char *name) {
  char path[PATH_MAX];
  struct stat about;
  unsigned char head[4096];
  if (!find_program (name, path, sizeof path) || stat (path, &about) != 0)
    return true; /* exec says what is wrong */
  if ((about.st_mode & (S_ISUID | S_ISGID)) != 0)
    return call_usage (c,
                       "%s runs with another user's rights (setuid), so nothing "
                       "can stand in front of its driver; run the program that it starts",
                       path);
  int file = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? -1 : read (file, head, sizeof head);
  if (file >= 0)
    close (file);
  const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)head;
  if (n < (ssize_t)sizeof *e || memcmp (e->e_ident, ELFMAG, SELFMAG) != 0 ||
      e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_phentsize != sizeof (Elf64_Phdr) ||
      e->e_phoff > (size_t)n || e->e_phnum > ((size_t)n - e->e_phoff) / sizeof (Elf64_Phdr))
    return true;
  for (int i = 0; i < e->e_phnum; i++) {
    Elf64_Phdr p;
    memcpy (&p, head + e->e_phoff + (size_t)i * sizeof p, sizeof p);
    if (p.p_type == PT_INTERP)
      return true;
  }
  return call_usage (c,
                     "%s is a static program, so nothing can stand in front of "
                     "its driver",
                     path);
}

/* They are the program's: the launcher stays to tell what came of it. */
static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

bool program_start (call *c, program_run *r) {
  sigset_t set;
  if (!can_be_preloaded (c, c->operands[0]))
    return false;
  sigemptyset (&set);
  for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
    sigaddset (&set, passed_on[i]);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_BLOCK, &set, NULL);
  fflush (NULL);
  /* a reader of ours that goes away is an error of a write, and leaves nothing behind */
  struct sigaction ignored = { .sa_handler = SIG_IGN }, was;
  sigaction (SIGPIPE, &ignored, &was);
  int ends[2];
  if (pipe2 (ends, O_CLOEXEC) != 0 || (r->child = fork ()) < 0)
    return error_set (&c->err, ERR_memory, "the program cannot be started: %s", strerror (errno));
  if (r->child == 0) {
    sigprocmask (SIG_UNBLOCK, &set, NULL);
    sigaction (SIGPIPE, &was, NULL);
    set_environment (r);
    execvp (c->operands[0], (char **)c->operands);
    int why = errno;
    (void)!write (ends[1], &why, sizeof why);
    _exit (127);
  }
  int why = 0;
  close (ends[1]);
  bool failed = read (ends[0], &why, sizeof why) == (ssize_t)sizeof why;
  close (ends[0]);
  if (!failed)
    return true;
  waitpid (r->child, NULL, 0);
  r->child = -1;
  return error_set (&c->err, ERR_file, "%s: %s", c->operands[0], strerror (why));
}

bool program_runs (program_run *r, bool wait) {
  sigset_t set;
  sigemptyset (&set);
  for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
    sigaddset (&set, passed_on[i]);
  sigaddset (&set, SIGCHLD);
  const struct timespec moment = { 0, 20000000 }, none = { 0, 0 };
  siginfo_t about = { 0 };
  int got = sigtimedwait (&set, &about, wait ? &moment : &none);
  /* a key of the terminal goes to all that are in front of it, the program among them */
  bool has_it = about.si_code == SI_KERNEL && r->child > 0 && getpgid (r->child) == getpgrp ();
  if (got > 0 && got != SIGCHLD && r->child > 0 && !has_it)
    kill (r->child, got);
  if (r->child > 0 && waitpid (r->child, &r->status, WNOHANG) == r->child)
    r->child = -1;
  return r->child > 0;
}

int program_status (const program_run *r) {
  return WIFSIGNALED (r->status) ? 128 + WTERMSIG (r->status) : WEXITSTATUS (r->status);
}

bool program_told (call *c, const program_run *r) {
  if (r->block->ended)
    return true;
  return error_set (
      &c->err, ERR_infeasible,
      "%s ended %s and not by exit or from main, so what ferry had seen of its ops is "
      "lost",
      c->operands[0],
      WIFSIGNALED (r->status) ? "by a signal" : "by _exit, exec or amid a driver call");
}

bool program_is_ordered (call *c, const program_run *r) {
  const shim_block *b = r->block;
  return b->races == 0 || error_set (&c->err, ERR_infeasible, "%d races in %s, the first: %s",
                                     b->races, c->operands[0], b->race.text);
}

bool program_was_seen (call *c, const program_run *r) {
  int status = program_status (r);
  if (r->block->loader_pid != 0)
    return true;
  if (status)
    return error_set (&c->err, ERR_infeasible,
                      "%s ended with status %d%s, and never called the driver", c->operands[0],
                      status, WIFSIGNALED (r->status) ? ", by a signal" : "");
  return error_set (&c->err, ERR_infeasible,
                    "%s never called the driver: either it does not use the "
                    "GPU, or its calls went past ferry (libcuda.so.1 opened with a folder in its "
                    "name)",
                    c->operands[0]);
}
