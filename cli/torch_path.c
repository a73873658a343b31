/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `ferry torch-path`: where the Python package ferry_torch lies. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/inputs/beside.h"

static int run (call *c) {
  static const char *const beside[] = { "../executor/torch", "executor/torch",
                                        "../../executor/torch", "../share/ferry/torch" };
  const char *folder = path_beside (c, beside, (int)(sizeof beside / sizeof *beside));
  if (!folder && c->err.code == ERR_none)
    folder = FERRY_DATADIR "/torch";
  if (folder && access (folder, R_OK) != 0)
    error_set (&c->err, ERR_file, "%s is not there: in the sources it is executor/torch", folder);
  if (c->err.code != ERR_none)
    return call_failed (c);
  char *real = realpath (folder, NULL);
  puts (real ? real : folder);
  free (real);
  return EXIT_YES;
}

const cli_command command_torch_path = {
  .name = "torch-path",
  .says = "print the folder of the package for PyTorch",
  .operands = "",
  .about =
      "Prints the folder of ferry_torch, the Python package that records a step of a PyTorch "
      "program and follows a plan: `pip install $(ferry torch-path)`. docs/pytorch.md shows "
      "both.\n",
  .run = run,
};
