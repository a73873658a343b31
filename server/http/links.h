/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The connections that are open: who must leave for a new one, and who is too slow. A head must be
   complete ten seconds after it could begin, and a body bring a KiB a second after its first ten.
   Where all places are taken, the one that has been still the longest leaves, and of those who have
   shown that they may ask nobody before the last stranger; strangers never get the last few places.
   A client that goes away before its request is complete is noticed within a second. */
#pragma once

#include "base/error.h"

#include <stdint.h>

typedef struct links links;
typedef struct link_state link_state;
/* BUSY: an answer is made, or a stream told; such a one never has to leave. */
typedef enum link_phase { LINK_HEAD, LINK_BODY, LINK_BUSY, LINK_REPLY } link_phase;

/* Those that leave may hold their place for a moment. */
enum { LINKS_LEAVING = 64 };

links *links_start (int64_t most, error *err) MUST_CHECK;
void links_stop (links *l);
/* Makes room for one more; false: there is none yet. */
bool links_have_room (links *l) MUST_CHECK;
/* A new connection, before anybody reads from it. */
bool links_take (links *l, int fd) MUST_CHECK;
/* The one of this descriptor; NULL: it is not watched, which all below allow. */
link_state *links_of (links *l, int fd);
void links_remove (links *l, link_state *s);
void links_busy (links *l, link_state *s, link_phase phase);
void links_bytes (links *l, link_state *s, int64_t bytes);
/* Its client may ask here. */
void links_know (links *l, link_state *s);
