/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "server/api/embedded.h"

#include <string.h>

#include "server/api/embedded.inc" /* made by plot/embed.sh */

static const asset description = { "openapi.json", "application/json", openapi_json,
                                   sizeof openapi_json };

const asset *embedded_named (const char *name) {
  for (int i = 0; i < ASSETS; i++)
    if (strcmp (assets[i].name, name) == 0)
      return &assets[i];
  return strcmp (description.name, name) == 0 ? &description : NULL;
}
