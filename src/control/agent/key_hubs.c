/* key_hubs.c - see key_hubs.h. */
#include "agent/key_hubs.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/object/fields.h"
#include "os/clock.h"
#include "os/log.h"

#define TIMEOUT_MS 10000

/* Most acknowledgements in one request, as the hub takes them. */
#define ACKS_MAX 256

/* A hub may have been started anew without a word. */
#define GIVE_AGAIN (60 * NSEC_PER_SEC)

/* Two requests to a hub do not follow each other more closely. */
#define ASK_MIN (NSEC_PER_SEC / 4)

static void forget(struct key_hub *h)
{
    h->ask = hub_ask_cancel(h->ask);
    json_decref(h->acks);
    json_decref(h->heard);
    json_decref(h->given);
    json_decref(h->giving);
    *h = (struct key_hub){.ask = NULL};
}

void key_hubs_deinit(struct key_hubs *kh)
{
    while (kh->n > 0)
        forget(&kh->items[--kh->n]);
}

static const struct key_hub *find(const struct key_hubs *kh, const char *name)
{
    for (unsigned i = 0; i < kh->n; i++)
        if (strcmp(kh->items[i].name, name) == 0)
            return &kh->items[i];
    return NULL;
}

void key_hubs_on_gone(struct key_hubs *kh, const struct hub_link *link)
{
    for (unsigned i = 0; i < kh->n; i++) {
        struct key_hub *h = &kh->items[i];

        if (h->link != link)
            continue;
        h->ask = hub_ask_cancel(h->ask);
        json_decref(h->giving);
        h->giving = NULL;
        h->link = NULL;
    }
}

/* The entry of a hub; NULL: there is no room, as while others are gone and were not cleared away.
 */
static struct key_hub *acquire(struct key_hubs *kh, const struct agent_hub *hub)
{
    struct key_hub *h = (struct key_hub *)find(kh, hub->name);

    if (!h && kh->n < HUB_CHOICE_MAX) {
        h = &kh->items[kh->n++];
        *h = (struct key_hub){.all = kh};
        (void)snprintf(h->name, sizeof(h->name), "%s", hub->name);
    }
    return h;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void take_key(struct x25519_public *ret, const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));

    *ret = (struct x25519_public){{0}};
    if (text)
        (void)x25519_public_parse(ret, text, NULL);
}

static void take_heard(struct key_hub *h, const json_t *list)
{
    json_decref(h->heard);
    h->heard = json_is_array(list) ? json_object() : NULL;
    for (size_t i = 0; h->heard && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name)
            (void)json_object_set_new(h->heard, name, json_true());
    }
}

static void take(struct key_hub *h, const json_t *body)
{
    uint64_t run = (uint64_t)json_integer_value(json_object_get(body, "run"));
    const json_t *acks = json_object_get(body, "acks");

    if (run != h->run) {
        json_decref(h->given);
        h->given = NULL;
    } else if (h->giving) {
        if (!h->given)
            h->given = json_object();
        (void)json_object_update(h->given, h->giving);
    }
    h->run = run;
    take_key(&h->key, body, "publicKey");
    take_key(&h->next, body, "next");
    json_decref(h->acks);
    h->acks = json_is_object(acks) ? json_incref((json_t *)acks) : NULL;
    take_heard(h, json_object_get(body, "heard"));
    h->answered_at = clock_now();
    h->is_refused = false;
}

static void on_answer(
    void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct key_hub *h = ctx;

    h->ask = NULL;
    if (result == 0 && json_is_object(answer->body))
        take(h, answer->body);
    else if (result == CLIENT_E_REFUSED) {
        /* What it may take later, and what proves nothing, is no refusal. */
        h->is_refused = answer->status >= 400 && answer->status < 500 && answer->status != 401 &&
                        answer->status != 429;
        log_limited(&h->all->limit, clock_now(), LOG_LEVEL_WARNING,
            "the hub %s does not take what this node says of its keys: %s", h->name, err_text(e));
    }
    json_decref(h->giving);
    h->giving = NULL;
    if (h->all->on_answer)
        h->all->on_answer(h->all->ctx);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* What is to be acknowledged and that hub does not have; a new reference, NULL: nothing. */
static json_t *to_give(struct key_hub *h, const json_t *acks, nsec_t now)
{
    json_t *part = NULL;
    const char *name;
    json_t *ack;

    if (json_object_size(acks) == 0)
        return NULL;
    if (now - h->given_at >= GIVE_AGAIN) {
        h->given_at = now;
        json_decref(h->given);
        h->given = NULL;
    }
    /* The iterator wants a mutable object; nothing is changed. */
    json_object_foreach((json_t *)acks, name, ack) {
        if (json_equal(ack, json_object_get(h->given, name)))
            continue;
        if (!part)
            part = json_object();
        if (json_object_size(part) < ACKS_MAX)
            (void)json_object_set(part, name, ack);
    }
    return part;
}

static json_t *body_of(const struct key_hubs_say *say, json_t *acks)
{
    json_t *names = say->stage ? json_array() : NULL;

    for (unsigned i = 0; names && i < 8 && say->waits[i]; i++)
        fields_append(&names, json_string(say->waits[i]));
    return json_pack("{s:s*, s:s*, s:O*, s:o*, s:o*, s:s*}", "stage", say->stage, "statement",
        say->stage ? say->statement : NULL, "acks", acks, "waits",
        say->stage ? json_integer((json_int_t)say->n_waits) : NULL, "waitsFor", names, "why",
        say->stage ? say->why : NULL);
}

static void poll_hub(
    struct key_hub *h, struct hub_link *link, const struct key_hubs_say *say, nsec_t now)
{
    bool is_due = say->stage && now - h->asked_at >= say->each;
    struct err e = ERR_NULL;
    json_t *acks;
    json_t *body;

    if (h->ask || (h->asked_at != 0 && now - h->asked_at < ASK_MIN))
        return;
    acks = to_give(h, say->acks, now);
    if (!is_due && !acks)
        return;
    body = body_of(say, acks);
    h->asked_at = now;
    h->link = link;
    if (body &&
        hub_link_ask(link, "POST", "/v1/keys", body, TIMEOUT_MS, on_answer, h, &h->ask, &e) == 0)
        h->giving = json_incref(acks);
    json_decref(acks);
    json_decref(body);
}

void key_hubs_poll(
    struct key_hubs *kh, const struct hub_set *hubs, const struct key_hubs_say *say, nsec_t now)
{
    /* Of hubs that are none any more nothing is kept. */
    for (unsigned i = 0; i < kh->n;) {
        if (hub_set_find(hubs, kh->items[i].name)) {
            i++;
            continue;
        }
        forget(&kh->items[i]);
        kh->items[i] = kh->items[--kh->n];
        /* A question that is on its way names its place. */
        if (i < kh->n && kh->items[i].ask) {
            kh->items[i].ask = hub_ask_cancel(kh->items[i].ask);
            json_decref(kh->items[i].giving);
            kh->items[i].giving = NULL;
        }
    }
    for (unsigned i = 0; i < hubs->n; i++) {
        struct agent_hub *hub = hubs->items[i];
        struct key_hub *h = hub->name[0] != '\0' ? acquire(kh, hub) : NULL;

        if (h)
            poll_hub(h, hub->link, say, now);
    }
}

/* ---- what they have -------------------------------------------------------------------------- */

bool key_hubs_all_keep(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next)
{
    for (unsigned i = 0; i < hubs->n; i++) {
        const struct key_hub *h = find(kh, hubs->items[i]->name);

        if (!h || (!x25519_public_equal(&h->next, next) && !x25519_public_equal(&h->key, next)))
            return false;
    }
    return hubs->n > 0;
}

bool key_hubs_all_moved(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next)
{
    for (unsigned i = 0; i < hubs->n; i++) {
        const struct key_hub *h = find(kh, hubs->items[i]->name);

        if (!h || !x25519_public_equal(&h->key, next))
            return false;
    }
    return hubs->n > 0;
}

bool key_hubs_all_refuse(
    const struct key_hubs *kh, const struct hub_set *hubs, const struct x25519_public *next)
{
    for (unsigned i = 0; i < hubs->n; i++) {
        const struct key_hub *h = find(kh, hubs->items[i]->name);

        if (!h || !h->is_refused || x25519_public_equal(&h->next, next) ||
            x25519_public_equal(&h->key, next))
            return false;
    }
    return hubs->n > 0;
}

bool key_hubs_may_reach(const struct key_hubs *kh, const struct hub_set *hubs, const char *node,
    nsec_t silent, nsec_t now)
{
    for (unsigned i = 0; i < hubs->n; i++) {
        const struct key_hub *h = find(kh, hubs->items[i]->name);

        if (!h || h->answered_at == 0 || now - h->answered_at >= silent || !h->heard ||
            json_object_get(h->heard, node))
            return true;
    }
    return false;
}

const char *key_hubs_ack(const struct key_hubs *kh, unsigned i, const char *node)
{
    return i < kh->n ? json_string_value(json_object_get(kh->items[i].acks, node)) : NULL;
}
