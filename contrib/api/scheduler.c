/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much memory a known job needs, and its plan.  For a scheduler's author:
   cc scheduler.c -o scheduler $(pkg-config --cflags --libs libcurl jansson)
   ./scheduler http://127.0.0.1:8077 FINGERPRINT BYTES-OF-THE-CARD; 0: it fits, 1: no, 2: not known */
#include <curl/curl.h>
#include <jansson.h>

/* One request, a POST if there is a body; its reply's JSON, or NULL. */
static json_t *ask (const char *url, const char *body, long *status) {
  char *text = NULL;
  size_t size = 0;
  FILE *reply = open_memstream (&text, &size);
  CURL *curl = curl_easy_init ();
  struct curl_slist *head = curl_slist_append (NULL, "Prefer: wait=30");
  head = curl_slist_append (head, "Content-Type: application/json");
  curl_easy_setopt (curl, CURLOPT_URL, url);
  curl_easy_setopt (curl, CURLOPT_HTTPHEADER, head);
  curl_easy_setopt (curl, CURLOPT_WRITEDATA, reply);
  if (body)
    curl_easy_setopt (curl, CURLOPT_POSTFIELDS, body);
  int ok = curl_easy_perform (curl) == CURLE_OK;
  curl_easy_getinfo (curl, CURLINFO_RESPONSE_CODE, status);
  curl_slist_free_all (head);
  curl_easy_cleanup (curl);
  fclose (reply);
  json_t *json = ok ? json_loads (text, 0, NULL) : NULL;
  return free (text), json;
}

int main (int argc, char **argv) {
  char url[600], body[200];
  const char *trace = "", *reason = "", *detail = "", *state = "", *plan = "";
  json_int_t memory = 0;
  int fits = 0;
  long status = 0;
  if (argc != 4)
    return fprintf (stderr, "usage: %s URL FINGERPRINT BYTES\n", argv[0]), 2;
  snprintf (url, sizeof url, "%s/v1/advice?fingerprint=%s&gpu_memory_bytes=%s", argv[1], argv[2], argv[3]);
  json_t *advice = ask (url, NULL, &status);
  json_unpack (advice, "{s?b, s?I, s?s, s?s, s?s}", "fits", &fits, "memory_bytes", &memory, "trace",
               &trace, "detail", &detail, "reason", &reason); /* the reason may be null, so it is last */
  if (!advice)
    detail = "the service does not answer";
  if (status != 200 || !fits)
    return printf ("no: %s%s\n", reason, detail), status == 200 ? 1 : 2;
  snprintf (url, sizeof url, "%s/v1/schedules", argv[1]);
  snprintf (body, sizeof body, "{\"trace\":\"%s\",\"budget_bytes\":%lld}", trace, (long long)memory);
  json_t *job = ask (url, body, &status);
  json_unpack (job, "{s?s, s?{s?s}}", "state", &state, "links", "plan", &plan);
  return printf ("%lld bytes; the plan is %s: %s%s\n", (long long)memory, state, argv[1], plan), 0;
}
