#include "server/embedded.h"

#include <string.h>

#include "server/embedded.inc" /* made by plot/embed.sh */

static const embedded_file files[] = {
  { "openapi.json", "application/json", openapi_json, sizeof openapi_json },
};

const embedded_file *embedded_named (const char *name) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (strcmp (files[i].name, name) == 0)
      return &files[i];
  return NULL;
}
