/*
 * etcd_intent.c - the steps of large commits, of whichever hub; see etcd_large.c.
 *
 * The hub that makes a large commit brings it to its end here, and so does any hub that finds one
 * unfinished.
 */
#include "backends/etcd/etcd_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"

/* How long a large commit of somebody else may stand still in each of its states. */
#define HELP_APPLY_NS (500 * NSEC_PER_MSEC)
#define HELP_CHECK_NS (3 * NSEC_PER_SEC)

/* Names of parts that are cleaned at once. */
#define CLEAN_MAX 1000

const char *etcd__part_name(
    char buf[static ETCD_NAME_MAX + 1], const struct etcd_writer *w, uint64_t part)
{
    (void)snprintf(buf, ETCD_NAME_MAX + 1, "d/%s.%" PRIu64 "/%04" PRIu64, w->session, w->seq, part);
    return buf;
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* The operations of a part, as operations of a transaction. False: it is damaged. */
static bool add_part(struct etcd *q, const struct etcd_kv *part, uint64_t revision, struct str *to)
{
    char *p = part->value;
    const char *end = part->value + part->len;
    char name[ETCD_NAME_MAX + 1];

    while (p < end) {
        struct store_op op;
        char behind;

        if (!etcd_part_next(&p, end, &op))
            return false;
        str_add(to, ",");
        (void)snprintf(name, sizeof(name), "k/%s", op.key);
        behind = *p;
        *p = '\0';
        if (op.kind == STORE_OP_PUT)
            etcd__add_put(q, &op, revision, to);
        else
            etcd_add_delete(to, q->client.prefix, name);
        *p = behind;
    }
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Send a transaction that fails where its comparisons do not hold. @ret_mod: etcd's revision of it;
 * NULL: not wanted. */
int etcd__step(struct etcd *q, struct str *body, nsec_t until, uint64_t *ret_mod, struct err *e)
{
    json_t *answer = NULL;
    int r = etcd__ask(q, "/v3/kv/txn", body, until, &answer, e);

    str_deinit(body);
    if (r == 0 && !etcd_answer_succeeded(answer))
        r = ETCD_E_LOST_HEAD;
    else if (r == 0 && ret_mod)
        r = etcd_answer_revision(answer, ret_mod, e);
    json_decref(answer);
    return r;
}

/* What "i" is. @ret_mod: etcd's revision; 0: it is absent. */
int etcd__read_head(
    struct etcd *q, nsec_t until, struct etcd_large_head *ret, uint64_t *ret_mod, struct err *e)
{
    struct str body = STR_NULL;
    struct etcd_kvs kvs = ETCD_KVS_NULL;
    json_t *answer = NULL;
    int r;

    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, &(struct etcd_span){.from = "i", .end = "i!"});
    str_add(&body, "}");
    r = etcd__ask(q, "/v3/kv/range", &body, until, &answer, e);
    str_deinit(&body);
    if (r == 0)
        r = etcd_answer_kvs(answer, q->client.prefix, &kvs, e);
    json_decref(answer);
    if (r == 0 && kvs.n > 0 && !etcd_large_head_parse(ret, kvs.items[0].value))
        r = err_set(e, -EBADMSG, "etcd's key \"%si\" is not a large commit: \"%.60s\"",
            q->client.prefix, kvs.items[0].value);
    if (r == 0)
        *ret_mod = kvs.n > 0 ? kvs.items[0].mod : 0;
    etcd_kvs_deinit(&kvs);
    return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
}

/* Remove "i", if it is as @mod says. */
int etcd__remove_head(struct etcd *q, uint64_t mod, nsec_t until, struct err *e)
{
    struct str body = STR_NULL;

    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, q->client.prefix, "i", mod);
    str_add(&body, "],\"success\":[");
    etcd_add_delete(&body, q->client.prefix, "i");
    str_add(&body, "]}");
    return etcd__step(q, &body, until, NULL, e);
}

/* Step 5, for one part. Also 0 when another hub has done it. */
static int apply_part(struct etcd *q, const struct etcd_large_head *head, uint64_t mod,
    uint64_t number, nsec_t until, struct err *e)
{
    char name[ETCD_NAME_MAX + 1];
    char end[ETCD_NAME_MAX + 2];
    struct str body = STR_NULL;
    struct etcd_kvs kvs = ETCD_KVS_NULL;
    json_t *answer = NULL;
    int r;

    (void)etcd__part_name(name, &head->writer, number);
    (void)snprintf(end, sizeof(end), "%s!", name);
    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix, &(struct etcd_span){.from = name, .end = end});
    str_add(&body, "}");
    r = etcd__ask(q, "/v3/kv/range", &body, until, &answer, e);
    str_deinit(&body);
    if (r == 0)
        r = etcd_answer_kvs(answer, q->client.prefix, &kvs, e);
    json_decref(answer);
    if (r == 0 && kvs.n > 0) {
        str_add(&body, "{\"compare\":[");
        etcd_add_compare(&body, q->client.prefix, "i", mod);
        str_add(&body, ",");
        etcd_add_exists(&body, q->client.prefix, name);
        str_add(&body, "],\"success\":[");
        etcd_add_delete(&body, q->client.prefix, name);
        if (!add_part(q, &kvs.items[0], mod - q->news.base, &body))
            r = err_set(e, -EBADMSG, "etcd's key \"%s%s\" is no part of a large commit",
                q->client.prefix, name);
        str_add(&body, "]}");
        if (r == 0)
            r = etcd__step(q, &body, until, NULL, e);
        str_deinit(&body);
    }
    etcd_kvs_deinit(&kvs);
    return r == ETCD_E_LOST_HEAD ? 0 : r;
}

/* Steps 5 and 6. Another hub may do the same steps at the same time. */
int etcd__apply(
    struct etcd *q, const struct etcd_large_head *head, uint64_t mod, nsec_t until, struct err *e)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < head->n_parts; i++)
        r = apply_part(q, head, mod, i, until, e);
    if (r == 0)
        r = etcd__remove_head(q, mod, until, e);
    return r == ETCD_E_LOST_HEAD ? 0 : r;
}

/* ---- another one's -------------------------------------------------------------------------- */

int etcd__large_help(struct etcd *q, nsec_t until, struct err *e)
{
    struct etcd_large_head head = {0};
    uint64_t first = 0;
    uint64_t mod = 0;
    nsec_t since = clock_now();
    int r = etcd__read_head(q, until, &head, &first, e);

    mod = first;
    while (r == 0 && mod != 0 && mod == first) {
        nsec_t now = clock_now();

        if (head.is_applied && now - since >= HELP_APPLY_NS)
            return etcd__apply(q, &head, mod, until, e);
        if (!head.is_applied && now - since >= HELP_CHECK_NS) {
            r = etcd__remove_head(q, mod, until, e);
            return r == ETCD_E_LOST_HEAD ? 0 : r;
        }
        if (now >= until)
            return err_set(e, ETCD_E_AWAY, "a large commit of another hub is being made");
        etcd__wait(q, -1, 100);
        r = etcd__read_head(q, until, &head, &mod, e);
    }
    return r;
}

/* ---- what was left -------------------------------------------------------------------------- */

/* Remove the part @name, if its session is gone and no large commit is being made. */
static void clean_part(struct etcd *q, const char *name, nsec_t until)
{
    char session[ETCD_SESSION_MAX + 1];
    char key[ETCD_SESSION_MAX + 3];
    const char *dot = strchr(name + 2, '.');
    struct str body = STR_NULL;
    struct err e;

    if (!dot || dot - name - 2 > ETCD_SESSION_MAX)
        return;
    (void)snprintf(session, sizeof(session), "%.*s", (int)(dot - name - 2), name + 2);
    str_add(&body, "{\"compare\":[");
    etcd_add_compare(&body, q->client.prefix, etcd_session_key(session, key), 0);
    str_add(&body, ",");
    etcd_add_compare(&body, q->client.prefix, "i", 0);
    str_add(&body, "],\"success\":[");
    etcd_add_delete(&body, q->client.prefix, name);
    str_add(&body, "]}");
    (void)etcd__step(q, &body, until, NULL, &e);
}

void etcd__large_clean(struct etcd *q, nsec_t until)
{
    struct str body = STR_NULL;
    struct etcd_kvs kvs = ETCD_KVS_NULL;
    json_t *answer = NULL;
    struct err e = ERR_NULL;
    int r;

    str_add(&body, "{");
    etcd_add_span(&body, q->client.prefix,
        &(struct etcd_span){.from = "d/", .end = "d/~", .limit = CLEAN_MAX, .is_bare = true});
    str_add(&body, "}");
    r = etcd__ask(q, "/v3/kv/range", &body, until, &answer, &e);
    str_deinit(&body);
    if (r == 0)
        r = etcd_answer_kvs(answer, q->client.prefix, &kvs, &e);
    for (size_t i = 0; r == 0 && i < kvs.n; i++)
        clean_part(q, kvs.items[i].name, until);
    etcd_kvs_deinit(&kvs);
    json_decref(answer);
}
