/* arrivals.c - see arrivals.h. */
#include "hub/handlers/arrivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define KEY_MAX (2 * NAME_MAX_LEN + 2)

void arrivals_deinit(struct arrivals *a)
{
    json_decref(a->jobs);
    *a = (struct arrivals)ARRIVALS_NULL;
}

static const char *make_key(char buf[static KEY_MAX], const char *network, const char *job)
{
    (void)snprintf(buf, KEY_MAX, "%.*s/%.*s", NAME_MAX_LEN, network, NAME_MAX_LEN, job);
    return buf;
}

/* Those of that run; NULL: there are none. */
static json_t *members_of(const struct arrivals *a, const char *key, const char *run)
{
    json_t *job = json_object_get(a->jobs, key);
    const char *known = json_string_value(json_object_get(job, "run"));

    return known && strcmp(known, run) == 0 ? json_object_get(job, "members") : NULL;
}

/* Without memory somebody is not told of, which does no harm. */
void arrivals_add(
    struct arrivals *a, const char *network, const char *job, const char *run, const char *member)
{
    char key[KEY_MAX];

    if (json_object_size(a->jobs) >= ARRIVALS_JOBS_MAX)
        arrivals_deinit(a);
    if (!a->jobs)
        a->jobs = json_object();
    if (!members_of(a, make_key(key, network, job), run))
        (void)json_object_set_new(a->jobs, key, json_pack("{s:s, s:{}}", "run", run, "members"));
    (void)json_object_set_new(members_of(a, key, run), member, json_true());
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *arrivals_list(
    const struct arrivals *a, const char *network, const char *job, const char *run)
{
    char key[KEY_MAX];
    json_t *members = members_of(a, make_key(key, network, job), run);
    const char **names = calloc(json_object_size(members) + 1, sizeof(*names));
    json_t *list = names ? json_array() : NULL;
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach(members, name, value)
        if (names)
            names[n++] = name;
    if (n > 0)
        qsort(names, n, sizeof(*names), compare);
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_string(names[i])) < 0)
            list = (json_decref(list), NULL);
    free(names);
    return list;
}
