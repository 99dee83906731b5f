/* public_addresses.c - see public_addresses.h. */
#include "hub/networks/public_addresses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/content/body.h"
#include "base/err.h"
#include "hub/record/request.h"
#include "mesh/object/fields.h"
#include "net/address/resolve.h"
#include "os/file.h"

#define MOVE_FILE_MAX 8192
#define LOOK_UP_EACH  (30 * NSEC_PER_SEC)

_Static_assert(2 * OBJECT_ENDPOINTS_MAX <= RESOLVE_TASK_TEXTS, "all places are one task");

/* ---- what is announced ---------------------------------------------------------------------- */

void public_addresses_load(struct public_addresses *p, const char *path, uint16_t dflt_port)
{
    _cleanup_(freep) char *text = NULL;
    struct err e = ERR_NULL;
    json_t *json = NULL;
    size_t len = 0;
    int r = statefile_read(path, MOVE_FILE_MAX, &text, &len, &e);

    if (r == STATEFILE_E_ABSENT)
        return;
    if (r == 0)
        r = body_parse(&json, text, len, &e);
    if (r == 0)
        r = move_request_decode(&p->next, json, dflt_port, &e);
    json_decref(json);
    if (r != 0)
        log_error(
            "nodes are not told where this hub will be, %s cannot be used: %s", path, err_text(&e));
}

/* Nodes would look for the hub there in vain, and nobody would know before it has moved. */
static int check_name(const char *text, struct err *e)
{
    struct endpoint found[OBJECT_ENDPOINTS_MAX];
    struct err why = ERR_NULL;
    unsigned n = 0;

    if (resolve_host(text, 1, found, OBJECT_ENDPOINTS_MAX, &n, &why) != 0)
        return err_set(e, -EINVAL,
            "nothing is announced, since \"%.100s\" leads nowhere yet: %s. Make the name first, or "
            "give --force",
            text, err_text(&why));
    for (unsigned i = 0; i < n; i++)
        if (!block_find_reserved(&found[i].addr))
            return 0;
    return err_set(e, -EINVAL,
        "nothing is announced, since \"%.100s\" leads only to addresses at which no other machine "
        "reaches a hub. Mend the name first, or give --force",
        text);
}

int public_addresses_check(const struct hub_places *next, struct err *e)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < next->n; i++)
        if (next->items[i].is_name)
            r = check_name(next->items[i].text, e);
    return r;
}

int public_addresses_write(const struct hub_places *next, const char *path, struct err *e)
{
    json_t *json = json_pack("{s:o}", "public", hub_places_encode(next));
    _cleanup_(freep) char *text = json ? body_format(json) : NULL;
    int r = text ? 0 : err_set(e, -ENOMEM, "no memory to write %s", path);

    json_decref(json);
    if (r == 0 && next->n > 0)
        r = statefile_replace(path, text, strlen(text), 0600, e);
    else if (r == 0 && unlink(path) < 0 && errno != ENOENT)
        r = err_set(e, -errno, "%s cannot be removed: %s", path, strerror(errno));
    return r;
}

void public_addresses_set_next(struct public_addresses *p, const struct hub_places *next)
{
    p->next = *next;
    p->task = resolve_task_free(p->task);
    p->look_up_at = 0;
}

/* ---- looking up again ----------------------------------------------------------------------- */

static unsigned list_names(
    const struct hub_places *places, char (*ret)[HOST_PORT_MAX + 1], unsigned n)
{
    for (unsigned i = 0; i < places->n; i++)
        if (places->items[i].is_name)
            (void)snprintf(ret[n++], sizeof(*ret), "%s", places->items[i].text);
    return n;
}

/* Are these the same endpoints, in any order? Name servers change the order each time. */
static bool is_same(const struct hub_public *a, const struct hub_public *b)
{
    unsigned n = 0;

    for (unsigned i = 0; i < a->n; i++)
        for (unsigned k = 0; k < b->n; k++)
            n += endpoint_equal(&a->at[i], &b->at[k]);
    return a->n == b->n && n == a->n;
}

/* Take in a name server's answer. If there is none, or only addresses at which no other machine
 * reaches this one, nothing changes. */
static bool take_answer(struct public_addresses *p, struct hub_public *place,
    const struct resolve_answer *answer, nsec_t now)
{
    struct hub_public found = {.n = 0};
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < answer->n; i++)
        if (!block_find_reserved(&answer->endpoints[i].addr))
            found.at[found.n++] = answer->endpoints[i];
    if (found.n == 0) {
        log_limited(&p->limit, now, LOG_LEVEL_WARNING,
            "the name %s leads nowhere now, nodes are told what they were: %s", place->text,
            answer->n > 0 ? "no other machine reaches this one at its addresses"
                          : err_text(&answer->why));
        return false;
    }
    if (is_same(&found, place))
        return false;
    log_info("the name %s leads to %s now", place->text, endpoint_format(&found.at[0], text));
    memcpy(place->at, found.at, sizeof(found.at));
    place->n = found.n;
    return true;
}

static bool take_answers(struct public_addresses *p, struct hub_places *places,
    const struct resolve_answer *answers, unsigned n, nsec_t now)
{
    bool changed = false;

    for (unsigned i = 0; i < places->n; i++)
        for (unsigned k = 0; k < n; k++)
            if (places->items[i].is_name && strcmp(places->items[i].text, answers[k].text) == 0)
                changed |= take_answer(p, &places->items[i], &answers[k], now);
    return changed;
}

bool public_addresses_tick(struct public_addresses *p, nsec_t now)
{
    struct resolve_answer answers[RESOLVE_TASK_TEXTS];
    char names[RESOLVE_TASK_TEXTS][HOST_PORT_MAX + 1];
    unsigned n = p->task ? resolve_task_take(p->task, answers) : 0;
    struct err e = ERR_NULL;
    bool changed = false;

    if (n > 0) {
        p->task = resolve_task_free(p->task);
        changed = take_answers(p, &p->here, answers, n, now);
        changed |= take_answers(p, &p->next, answers, n, now);
    }
    if (p->task || now < p->look_up_at)
        return changed;
    p->look_up_at = now + LOOK_UP_EACH;
    n = list_names(&p->next, names, list_names(&p->here, names, 0));
    if (n > 0 && resolve_task_start(&p->task, names, n, 0, &e) < 0)
        log_limited(
            &p->limit, now, LOG_LEVEL_WARNING, "the hub's name is not looked up: %s", err_text(&e));
    return changed;
}
