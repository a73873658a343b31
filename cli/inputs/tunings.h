/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `--tune list`: every strategy and number of the search. */
#ifndef FERRY_CLI_INPUTS_TUNINGS_H
#define FERRY_CLI_INPUTS_TUNINGS_H

void tunings_list (void);

#endif
