/* kube_part.c - see kube_part.h. */
#include "backends/kubernetes/kube_part.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "os/clock.h"

/* A clock that is ahead by so much, s, says nothing of an age. */
#define AHEAD_MAX 300

#define PATH_SIZE 1500

/* ---- whose it is, and how old ---------------------------------------------------------------- */

void kube_part_stamp(json_t *part, int64_t at, int64_t every_s)
{
    char text[CLOCK_TEXT_MAX];

    (void)json_object_set_new(part, KUBE_PART_AT, json_string(clock_text(text, at)));
    (void)json_object_set_new(part, KUBE_PART_EVERY, json_integer(every_s));
}

bool kube_part_is_own(const json_t *part, int64_t *ret_at, int64_t *ret_every_s)
{
    const json_t *every = json_object_get(part, KUBE_PART_EVERY);
    int64_t every_s = json_is_integer(every) ? json_integer_value(every) : 0;

    if (every_s < 1 || every_s > KUBE_PART_EVERY_MAX ||
        !clock_text_parse(json_string_value(json_object_get(part, KUBE_PART_AT)), ret_at))
        return false;
    *ret_every_s = every_s;
    return true;
}

bool kube_part_is_old(int64_t at, int64_t every_s, int64_t now)
{
    return now - at > every_s * 5 / 2 || at - now > AHEAD_MAX;
}

void kube_part_says(char ret[static KUBE_PART_SAYS_MAX], const json_t *part)
{
    const char *path = json_string_value(json_object_get(part, "path"));
    const char *tunnel = json_string_value(json_object_get(part, "tunnel"));
    const char *underlay = json_string_value(json_object_get(part, "underlay"));

    ret[0] = '\0';
    if (path)
        (void)snprintf(ret, KUBE_PART_SAYS_MAX, "%.16s", path);
    else if (tunnel)
        (void)snprintf(
            ret, KUBE_PART_SAYS_MAX, "%.16s, UDP %.16s", tunnel, underlay ? underlay : "unknown");
}

/* ---- what is worth a write ------------------------------------------------------------------- */

/* Fields that change all the time: a write for another reason takes them along. */
static const char *const restless[] = {"lastSeen", "handshakeAgeSeconds", "tunnelRttMs",
    "underlayRttMs", "rttUs", "revision", "lastTransitionTime", KUBE_PART_AT, KUBE_PART_EVERY};

bool kube_part_is_restless(const char *field)
{
    for (size_t i = 0; i < sizeof(restless) / sizeof(*restless); i++)
        if (strcmp(restless[i], field) == 0)
            return true;
    return false;
}

static void drop_restless(json_t *json)
{
    const char *key;
    json_t *below;
    size_t i;

    for (i = 0; json_is_object(json) && i < sizeof(restless) / sizeof(*restless); i++)
        (void)json_object_del(json, restless[i]);
    json_object_foreach(json, key, below)
        drop_restless(below);
    json_array_foreach(json, i, below)
        drop_restless(below);
}

void kube_part_hash(char ret[static KUBE_SPEC_HASH_MAX], const json_t *status)
{
    json_t *copy = json_deep_copy(status);

    drop_restless(copy);
    kube_spec_hash_json(ret, copy);
    json_decref(copy);
}

void kube_part_drop_empty(json_t *status)
{
    const char *key;
    json_t *below;
    void *tmp;
    size_t i;

    json_object_foreach_safe(status, tmp, key, below)
        if (json_is_string(below) && json_string_length(below) == 0)
            (void)json_object_del(status, key);
    json_object_foreach(status, key, below)
        kube_part_drop_empty(below);
    json_array_foreach(status, i, below)
        kube_part_drop_empty(below);
}

/* ---- writing it ------------------------------------------------------------------------------ */

int kube_part_apply(struct kube_client *c, const struct object_kind *kind, const char *name,
    const char *manager, const json_t *status, bool by_force, nsec_t until, json_t **ret,
    struct err *e)
{
    json_auto_t *body = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", KUBE_API, "kind",
        kind->name, "metadata", "name", name, "status", status);
    char escaped[3 * KUBE_PART_MANAGER_MAX + 1] = "";
    char path[PATH_SIZE];
    struct kube_request rq = {.method = "PATCH",
        .path = path,
        .content_type = "application/apply-patch+yaml",
        .body = body};
    size_t n = 0;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for a status");
    /* Names of managers are those of nodes, with a slash. */
    for (const char *p = manager; *p && p < manager + KUBE_PART_MANAGER_MAX; p++)
        n += (size_t)snprintf(escaped + n, sizeof(escaped) - n, *p == '/' ? "%%2F" : "%c", *p);
    (void)snprintf(path, sizeof(path),
        "/apis/" KUBE_API "/namespaces/%s/%s/%s/status?%sfieldManager=%s", c->config.namespace,
        kind->plural, name, by_force ? "force=true&" : "", escaped);
    return kube_client_ask(c, &rq, until, ret, e);
}
