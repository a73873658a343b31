/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A text to learn, of sentences from a small grammar, and what can be known of a text. */
#ifndef FERRY_TESTS_BENCH_MADE_TEXT_H
#define FERRY_TESTS_BENCH_MADE_TEXT_H

#include <stdint.h>

/* *nats: of the choices made, by letter: no model can be surer than that. Free the text; NULL: no
   memory. */
char *made_text (int64_t bytes, double *nats);
/* What the best model of single letters reaches, and of pairs: the text's own entropies in nats. */
void text_entropies (const void *text, int64_t bytes, double *one, double *two);

#endif
