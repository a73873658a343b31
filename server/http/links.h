/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The connections that are open, and which of them are too slow: a head must be complete ten
   seconds after it could begin, and a body bring a KiB a second after its first ten. A client that
   goes away before its request is complete is noticed within a second. */
#ifndef FERRY_SERVER_HTTP_LINKS_H
#define FERRY_SERVER_HTTP_LINKS_H

#include "base/error.h"

#include <stdint.h>

typedef struct links links;
typedef struct link_state link_state;
typedef enum link_phase { LINK_HEAD, LINK_BODY, LINK_BUSY } link_phase;

links *links_start (error *err) MUST_CHECK;
void links_stop (links *l);
link_state *links_add (links *l, int fd); /* NULL: it is not watched */
void links_remove (links *l, link_state *s);
void links_busy (links *l, link_state *s, link_phase phase);
void links_bytes (links *l, link_state *s, int64_t bytes);

#endif
