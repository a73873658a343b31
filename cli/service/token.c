/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry token`: a new token for the service. */
#include "config.h"

#include "cli/call/call.h"

#ifdef HAVE_SERVER
#include "server/service/service.h"

static int run (call *c) {
  char text[80], line[160];
  const char *owner = call_text (c, "owner"), *role = call_text (c, "role");
  if (!owner) {
    call_usage (c, "--owner NAME says whose token it is");
    return call_failed (c);
  }
  if (!token_make (owner, role ? role : "submit", text, line, &c->err))
    return call_failed (c);
  printf ("%s\n", line);
  fprintf (stderr, "%s\n", text);
  return EXIT_YES;
}

#else

static int run (call *c) {
  call_usage (c, "this ferry was built --without-server");
  return call_failed (c);
}

#endif

static const cli_option options[] = {
  { 0, "owner", "NAME", "the owner of the token" },
  { 0, "role", "read|site|submit|admin", "what the token allows; default: submit" },
  OPTIONS_END,
};

const cli_command command_token = {
  .name = "token",
  .says = "make a token for `ferry serve --tokens`",
  .operands = "",
  .least = 0,
  .most = 0,
  .about =
      "Prints on standard output the line for the file of tokens, which has only the token's "
      "digest, and on standard error the token itself: `(umask 077; ferry token --owner ada "
      ">>tokens)`. Clients take it from FERRY_TOKEN.\n",
  .options = options,
  .run = run,
};
