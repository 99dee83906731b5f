/* addresses.c - see addresses.h. */
#include "hub/overlay/addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "os/statefile.h"

#define FILE_NAME  "addresses.json"
#define FILE_MAX   (64u << 20)
#define WRITE_EACH (2 * NSEC_PER_SEC)

/* The file is long when thousands of nodes are in it, and while machines join, there is always
 * something new: so many bytes a second are written at most. */
#define WRITE_RATE (50 << 10)

void addresses_open(struct addresses *a, const char *state_dir)
{
    _cleanup_(freep) char *path = NULL;
    _cleanup_(freep) char *text = NULL;
    struct err e = ERR_NULL;
    json_error_t why;
    int r;

    if (asprintf(&path, "%s/" FILE_NAME, state_dir) < 0) {
        path = NULL;
        return;
    }
    r = statefile_read(path, FILE_MAX, &text, NULL, &e);
    if (r < 0) {
        log_warning("%s; nodes come back by themselves, more slowly", err_text(&e));
        return;
    }
    if (r == 0) {
        a->known = json_loads(text, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(a->known)) {
            log_warning("%s, line %d: %s; it is left as it is, and nodes come back by themselves, "
                        "more slowly",
                path, why.line, a->known ? "not an object" : why.text);
            return;
        }
    }
    a->path = TAKE_PTR(path);
}

void addresses_close(struct addresses *a)
{
    json_decref(a->known);
    a->known = NULL;
    free(a->path);
    a->path = NULL;
}

bool addresses_find(const struct addresses *a, const char *network, const struct x25519_public *key,
    struct endpoint *ret)
{
    const json_t *known = json_object_get(a->known, network);
    char name[X25519_BASE64_MAX];
    const char *text = json_string_value(json_object_get(known, x25519_public_format(key, name)));

    return text && endpoint_parse(ret, text, NULL) == 0;
}

bool addresses_may_write(const struct addresses *a, nsec_t now)
{
    return a->path && now >= a->write_at;
}

void addresses_add(json_t *network, const struct x25519_public *key, const struct endpoint *at)
{
    char name[X25519_BASE64_MAX];
    char text[ENDPOINT_TEXT_MAX];

    (void)json_object_set_new(
        network, x25519_public_format(key, name), json_string(endpoint_format(at, text)));
}

void addresses_write(struct addresses *a, json_t *all, nsec_t now)
{
    _cleanup_(freep) char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    struct err e = ERR_NULL;

    json_decref(all);
    a->write_at = now + nsec_max(WRITE_EACH, (text ? strlen(text) : 0) * NSEC_PER_SEC / WRITE_RATE);
    if (!text || statefile_replace(a->path, text, strlen(text), 0600, &e) < 0)
        log_limited(&a->limit, now, LOG_LEVEL_WARNING, "%s",
            text ? err_text(&e) : "no memory to remember addresses");
}
