/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sends open files from one process to another, over a socket pair that keeps messages apart. */
#pragma once

#include <stdbool.h>

enum { MOST_PASSED = 8 };

/* False: nobody is at the other end any more. */
bool passing_send (int socket, const int *files, int n);
/* Waits for exactly `n` of them; false: the other end was closed, or sent something else. */
bool passing_take (int socket, int *files, int n);
