/* etcd_ask.c - what every request to etcd and every answer to the owner has; see etcd_internal.h.
 */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* While etcd is away, one job in this time is tried; the others fail at once. */
#define AWAY_NS (1 * NSEC_PER_SEC)

int etcd__ask(
    struct etcd *q, const char *path, struct str *body, nsec_t until, json_t **ret, struct err *e)
{
    nsec_t now = clock_now();
    int r;

    if (body->failed)
        return err_set(e, -ENOMEM, "no memory for a request to etcd");
    if (q->away_at && now - q->away_at < AWAY_NS) {
        *e = q->away;
        return ETCD_E_AWAY;
    }
    r = etcd_client_ask(&q->client, path, str_text(body), q->away_at ? now : until, ret, e);
    now = clock_now();
    q->away_at = r == ETCD_E_AWAY || r == ETCD_E_LOST ? now : 0;
    if (r == 0)
        q->asked_at = now;
    else if (q->away_at)
        q->away = *e;
    q->is_probe_lost = q->is_probe_lost && r != 0;
    return r;
}

int etcd__probe(struct etcd *q, const char *path, struct str *body, json_t **ret, struct err *e)
{
    nsec_t now = clock_now();
    int r;

    if (q->away_at || q->is_probe_lost || body->failed)
        return etcd__ask(q, path, body, now, ret, e);
    r = etcd_client_ask(&q->client, path, str_text(body), now, ret, e);
    q->is_probe_lost = r == ETCD_E_AWAY || r == ETCD_E_LOST;
    return r;
}

void etcd__fail(struct etcd *q, struct store_job *job, int r, const struct err *e)
{
    if (r == ETCD_E_LOST)
        job->r = err_set(&job->e, STORE_E_UNKNOWN,
            "etcd has not answered, and may have done it (most of its members must be up): %s",
            e->text);
    else if (r == ETCD_E_AWAY)
        job->r =
            err_set(&job->e, -EIO, "etcd is away (most of its members must be up): %s", e->text);
    else
        job->r = err_set(&job->e, r < 0 ? r : -EIO, "%s", e->text);
    job->revision = q->news.revision;
    store__finish(&q->base, job);
}

int etcd__need_session(struct etcd *q, nsec_t until, struct err *e)
{
    return q->session.name[0] ? 0 : etcd_session_begin(&q->session, &q->client, until, e);
}

void etcd__add_put(
    const struct etcd *q, const struct store_op *op, uint64_t revision, struct str *to)
{
    struct etcd_value v = {.text = op->value,
        .len = strlen(op->value),
        .ttl_seconds = op->ttl_seconds,
        .is_untold = op->is_untold,
        .revision = revision};
    char name[ETCD_NAME_MAX + 1];
    size_t len = 0;
    char *raw = etcd_value_encode(&v, &len);

    if (!raw) {
        to->failed = true;
        return;
    }
    (void)snprintf(name, sizeof(name), "k/%s", op->key);
    etcd_add_put(to, q->client.prefix, name, raw, len, 0);
    free(raw);
}
