/* etcd_session.c - see etcd_session.h. */
#include "etcd_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"
#include "os/clock.h"

const char *etcd_session_key(const char *session, char buf[static ETCD_SESSION_MAX + 3])
{
    (void)snprintf(buf, ETCD_SESSION_MAX + 3, "s/%s", session);
    return buf;
}

int etcd_session_begin(struct etcd_session *s, struct etcd_client *c, nsec_t until, struct err *e)
{
    char body[40];
    uint8_t name[8];
    json_t *answer = NULL;
    int r;

    (void)snprintf(body, sizeof(body), "{\"TTL\":\"%d\"}", ETCD_SESSION_TTL_S);
    r = etcd_client_ask(c, "/v3/lease/grant", body, until, &answer, e);
    /* A lease whose answer was lost ends by itself. */
    if (r != 0)
        return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
    *s = (struct etcd_session){.lease = etcd_answer_number(answer, "ID"),
        .keep_at = clock_now() + ETCD_SESSION_TTL_S / 3 * NSEC_PER_SEC};
    json_decref(answer);
    if (s->lease == 0)
        return err_set(e, -EBADMSG, "etcd's answer has no lease");
    rng_fill(&c->rng, name, sizeof(name));
    hex_encode(name, sizeof(name), s->name);
    return 0;
}

void etcd_session_keep(struct etcd_session *s, struct etcd_client *c, nsec_t now, nsec_t until)
{
    char body[40];
    json_t *answer = NULL;
    bool is_kept;
    int r;

    if (s->name[0] == '\0' || now < s->keep_at)
        return;
    (void)snprintf(body, sizeof(body), "{\"ID\":\"%" PRIu64 "\"}", s->lease);
    r = etcd_client_ask(c, "/v3/lease/keepalive", body, until, &answer, NULL);
    /* Of a lease that has ended it says that none of its time is left, by leaving it out. */
    is_kept = etcd_answer_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    if (r == 0 && !is_kept)
        *s = (struct etcd_session)ETCD_SESSION_NULL;
    else
        s->keep_at = now + (r == 0 ? ETCD_SESSION_TTL_S / 3 : 5) * NSEC_PER_SEC;
}

void etcd_session_end(struct etcd_session *s, struct etcd_client *c, nsec_t until)
{
    char body[40];
    json_t *answer = NULL;

    if (s->name[0] == '\0')
        return;
    (void)snprintf(body, sizeof(body), "{\"ID\":\"%" PRIu64 "\"}", s->lease);
    (void)etcd_client_ask(c, "/v3/lease/revoke", body, until, &answer, NULL);
    json_decref(answer);
    *s = (struct etcd_session)ETCD_SESSION_NULL;
}

void etcd_session_add_compare(const struct etcd_session *s, const char *prefix, struct str *to)
{
    char key[ETCD_SESSION_MAX + 3];

    etcd_add_compare(to, prefix, etcd_session_key(s->name, key), s->mod);
}

void etcd_session_add_put(
    const struct etcd_session *s, const char *prefix, uint64_t seq, struct str *to)
{
    char key[ETCD_SESSION_MAX + 3];
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRIu64, seq);

    etcd_add_put(to, prefix, etcd_session_key(s->name, key), text, (size_t)len, s->lease);
}
