/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asserts that cost as much as the work that they watch: on where warnings are errors, off in a
   release.  Plain asserts are always on. */
#pragma once

#include <assert.h>

#ifdef FERRY_DEAR_ASSERTS
#define ASSERT_DEAR(holds) assert (holds)
#else
#define ASSERT_DEAR(holds) ((void)(0 && (holds)))
#endif
