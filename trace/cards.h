/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The card that a trace's times are of: by the trace's own word, and by the name of a device file.
 */
#pragma once

#include "trace/device.h"

/* The device file that ferry ships for a card that calls itself so; NULL: none. */
const char *card_device (const char *called);
/* The most that its memory reads and writes; 0: not known. */
int64_t card_memory_bytes_per_s (const char *called);

/* The year in which the card of a shipped device file came to be sold; 0: not known. */
int card_year (const char *device);

/* The source of the times, for people: the card as it calls itself, or the device that a trace of
   the zoo was made for; NULL: not known. */
const char *card_of_trace (const trace *t);
/* The name of the device file of that; NULL: not known, or there is none. */
const char *card_device_of_trace (const trace *t);
