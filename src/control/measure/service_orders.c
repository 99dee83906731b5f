/* service_orders.c - carries out the orders that come on one connection. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "measure/allreduce.h"
#include "measure/bulk.h"
#include "measure/facts.h"
#include "measure/idle_test.h"
#include "measure/line.h"
#include "measure/names.h"
#include "measure/service_internal.h"
#include "os/rng_kernel.h"
#include "os/clock.h"
#include "os/statefile.h"

/* How long the first order is waited for. A coordinator connects to all members before it gives
 * one. */
#define FIRST_LINE_TIME (10 * NSEC_PER_SEC)
/* The same for a connection outside the overlay. */
#define STRANGER_TIME   (2 * NSEC_PER_SEC)
#define ANSWER_TIME     (5 * NSEC_PER_SEC)
#define NAMES_TIME      (3 * NSEC_PER_SEC)
#define TRAFFIC_TIME_MS 300 /* for how long the traffic of other programs is counted */

/* ---- answers ------------------------------------------------------------------------------- */

static int answer(struct service_connection *c, json_t *json)
{
    int r = line_write(c->fd, json, clock_now() + ANSWER_TIME, NULL);

    json_decref(json);
    return r;
}

static int refuse(struct service_connection *c, const char *sentence)
{
    return answer(c, body_refusal(sentence));
}

static int accept_order(struct service_connection *c)
{
    return answer(c, json_pack("{s:b}", "ok", 1));
}

static struct dial_target aim(
    const struct service_connection *c, const struct ip_addr *peer, const struct session_id *id)
{
    return (struct dial_target){.peer = *peer,
        .port = c->service->config.port,
        .interface = c->service->config.interface,
        .id = *id};
}

/* ---- facts --------------------------------------------------------------------------------- */

static uint64_t read_counter(const char *interface, const char *name)
{
    _cleanup_(freep) char *text = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", interface, name);
    if (statefile_read(path, 64, &text, NULL, NULL) != 0)
        return 0;
    return strtoull(text, NULL, 10);
}

static uint64_t read_bytes(const char *interface)
{
    return read_counter(interface, "rx_bytes") + read_counter(interface, "tx_bytes");
}

/* Traffic on the interface, bits per second. Nothing is being measured yet, so all of it is that of
 * other programs. */
static uint64_t listen_for_traffic(const char *interface)
{
    uint64_t before = read_bytes(interface);
    nsec_t start = clock_now();

    (void)poll(NULL, 0, TRAFFIC_TIME_MS);
    return (
        uint64_t)((double)(read_bytes(interface) - before) * 8e9 / (double)(clock_now() - start));
}

static int tell_facts(struct service_connection *c)
{
    const char *interface = c->service->config.interface ? c->service->config.interface : "lo";
    struct facts *f = malloc(sizeof(*f));
    struct ip_addr own;
    json_t *json;

    if (!f)
        return refuse(c, "no memory");
    (void)pthread_mutex_lock(&c->service->lock);
    own = c->service->own;
    (void)pthread_mutex_unlock(&c->service->lock);
    facts_gather(f, interface, &own);
    f->traffic = listen_for_traffic(interface);
    json = facts_encode(f);
    free(f);
    return answer(c, json);
}

/* Only members' names may be asked for. A member must not learn what other names this machine can
 * resolve. */
static bool are_names_of_members(struct service_connection *c, const struct order *o)
{
    for (size_t i = 0; i < o->n_names; i++) {
        const struct order_name *n = &o->names[i];
        struct service_member member;

        if (!service__find_member(c->service, &n->address, &member) ||
            (strcmp(n->name, member.name) != 0 && strcmp(n->name, member.hostname) != 0))
            return false;
    }
    return true;
}

/* Answers with the names that do not resolve to the address that they should. */
static int tell_names(struct service_connection *c, const struct order *o)
{
    _cleanup_(freep) struct names_answer *answers = calloc(o->n_names + 1, sizeof(*answers));
    json_t *wrong = json_object();
    char text[IP_ADDR_TEXT_MAX];
    bool late = false;

    if (!are_names_of_members(c, o)) {
        json_decref(wrong);
        return refuse(c, "a name is not that of the member with that address");
    }
    if (!answers || names_resolve(o->names, o->n_names, clock_now() + NAMES_TIME, answers) < 0) {
        json_decref(wrong);
        return refuse(c, "no memory");
    }
    for (size_t i = 0; i < o->n_names; i++) {
        const struct names_answer *a = &answers[i];

        late |= !a->known;
        if (a->known && !ip_addr_equal(&a->address, &o->names[i].address))
            (void)json_object_set_new(wrong, o->names[i].name,
                json_string(ip_addr_is_none(&a->address) ? "" : ip_addr_format(&a->address, text)));
    }
    return answer(c, json_pack("{s:o, s:b}", "wrong", wrong, "late", (int)late));
}

static int tell_heard(struct service_connection *c)
{
    size_t n;
    _cleanup_(freep) struct session_heard *heard = session_copy_heard(&c->service->session, &n);
    json_t *json = json_object();
    char text[IP_ADDR_TEXT_MAX];

    for (size_t i = 0; i < n; i++)
        (void)json_object_set_new(
            json, ip_addr_format(&heard[i].from, text), json_integer(heard[i].n));
    return answer(c, json_pack("{s:o}", "heard", json));
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Is @a the address of a member other than this node? */
static bool is_peer(struct service_connection *c, const struct ip_addr *a)
{
    struct service_member member;
    struct ip_addr own;

    (void)pthread_mutex_lock(&c->service->lock);
    own = c->service->own;
    (void)pthread_mutex_unlock(&c->service->lock);
    return !ip_addr_equal(a, &own) && service__find_member(c->service, a, &member);
}

static bool are_members(struct service_connection *c, const struct order *o)
{
    struct service_member member;

    for (size_t i = 0; i < o->n_addrs; i++)
        if (!service__find_member(c->service, &o->addrs[i], &member))
            return false;
    return true;
}

static int warm_up(struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to = aim(c, &o->addrs[0], id);

    if (!are_members(c, o))
        return refuse(c, "a peer is not a member of this network");
    idle_test_warm_up(&to, o->addrs, o->n_addrs);
    return accept_order(c);
}

static int measure_idle(
    struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to = aim(c, &o->peer, id);
    struct service_member member;
    struct idle_test result;

    if (!is_peer(c, &o->peer) || !service__find_member(c->service, &o->peer, &member))
        return refuse(c, "the peer is no other member of this network");
    idle_test_run(&result, &to, o->pings);
    memcpy(result.path, member.path, sizeof(result.path));
    return answer(c, idle_test_encode(&result));
}

static int measure_bulk(
    struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to = aim(c, &o->peer, id);
    struct service_member member;
    struct bulk result;

    if (!is_peer(c, &o->peer) || !service__find_member(c->service, &o->peer, &member))
        return refuse(c, "the peer is no other member of this network");
    bulk_run(&result, &to, o, &member.underlay);
    return answer(c, bulk_encode(&result));
}

static int take_part(
    struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to = aim(c, &o->addrs[o->rank], id);
    struct allreduce result;

    if (!are_members(c, o))
        return refuse(c, "a member of the all-reduce is none of this network");
    allreduce_run(&result, &to, o, &c->service->session);
    return answer(c, allreduce_encode(&result));
}

static int open_underlay(struct service_connection *c)
{
    int port = service__open_underlay(c->service);

    if (port < 0)
        return refuse(c, "no port can be opened");
    return answer(c, json_pack("{s:i}", "port", port));
}

static int obey(struct service_connection *c, const struct order *o, const struct session_id *id)
{
    switch (o->kind) {
    case ORDER_FACTS:
        return tell_facts(c);
    case ORDER_NAMES:
        return tell_names(c, o);
    case ORDER_WARM:
        return warm_up(c, o, id);
    case ORDER_IDLE_TEST:
        return measure_idle(c, o, id);
    case ORDER_BULK:
        return measure_bulk(c, o, id);
    case ORDER_HEARD:
        return tell_heard(c);
    case ORDER_UNDERLAY:
        return open_underlay(c);
    case ORDER_ALLREDUCE:
        return take_part(c, o, id);
    case ORDER_NONE:
    case ORDER_SESSION:
    case ORDER_SINK:
    case ORDER_SOURCE:
    case ORDER_HOP:
    case ORDER_PORT:
    case ORDER_N:
        break;
    }
    return refuse(c, "that order is not given within a session");
}

/* ---- connections --------------------------------------------------------------------------- */

static int read_order(
    struct service_connection *c, struct line_buffer *lb, nsec_t deadline, struct order *ret)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;
    int r = line_read(lb, c->fd, deadline, &json, &e);

    if (r == 0)
        r = order_decode(ret, json, &e);
    json_decref(json);
    if (r == -EINVAL)
        (void)refuse(c, err_text(&e));
    return r;
}

/* The words for who is refused, since @b has the service or is next. */
static int refuse_busy(struct service_connection *c, const struct session_busy *b)
{
    nsec_t left = nsec_max(b->free_at - clock_now(), 0) / NSEC_PER_SEC + 1;
    struct service_member member;
    char who[IP_ADDR_TEXT_MAX + NAME_MAX_LEN];
    char text[192];

    if (service__find_member(c->service, &b->owner, &member) && member.name[0])
        (void)snprintf(who, sizeof(who), "%s", member.name);
    else
        (void)ip_addr_format(&b->owner, who);
    if (b->is_waiting)
        (void)snprintf(text, sizeof(text),
            "%s has asked before and is next; try again, in %lld s at the latest", who,
            (long long)left);
    else
        (void)snprintf(text, sizeof(text),
            "it measures for %s right now, for %lld s more at most; try again", who,
            (long long)left);
    return refuse(c, text);
}

static void run_session(struct service_connection *c, struct line_buffer *lb, const struct order *o)
{
    nsec_t deadline = clock_now() + (nsec_t)o->seconds * NSEC_PER_SEC;
    struct session_busy busy;
    uint64_t number;
    int r = session_begin(&c->service->session, o, &c->from, clock_now(), &number, &busy);

    if (r == SESSION_E_BUSY) {
        (void)refuse_busy(c, &busy);
        return;
    }
    r = accept_order(c);
    while (r == 0 && clock_now() < deadline && !service__is_stopping(c->service)) {
        struct order next = ORDER_NULL;

        r = read_order(c, lb, deadline, &next);
        if (r == 0 && !session_is(&c->service->session, number, clock_now())) {
            (void)refuse(c, "its turn is over: another member has begun to measure");
            r = -ETIMEDOUT;
        }
        if (r == 0)
            r = obey(c, &next, &o->id);
        order_deinit(&next);
    }
    session_end(&c->service->session, number, clock_now());
}

static void run_data(struct service_connection *c, const struct order *o)
{
    if (!session_has(&c->service->session, &o->id, clock_now())) {
        (void)refuse(c, "it is not in that session");
        return;
    }
    if (o->kind == ORDER_PORT) {
        uint16_t port = service__underlay_port(c->service);

        (void)(port == 0 ? refuse(c, "no port is open beside the overlay")
                         : answer(c, json_pack("{s:i}", "port", (int)port)));
        return;
    }
    if (o->kind == ORDER_HOP) {
        /* The answer has to be sent first, because the thread that takes the connection writes to
         * it at once. */
        if (c->access == SERVICE_ACCESS_OVERLAY && accept_order(c) == 0 &&
            session_put_hop(&c->service->session, &o->id, o->rank, c->fd))
            c->fd = -1;
        return;
    }
    if (accept_order(c) == 0)
        bulk_serve(c->fd, o);
}

/* ---- proofs -------------------------------------------------------------------------------- */

static const char no_proof[] =
    "an order has to be proven with the node's key: weft of a version of before cannot give any "
    "here, nor can other programs of that machine";

/* Was @o made by the member itself, in answer to that challenge? */
static bool is_proven(
    struct service_connection *c, const struct order *o, const struct order_challenge *challenge)
{
    const struct measure_proof p = order_proof_input(o, challenge);
    struct service_member member;

    return o->has_proof && service__find_member(c->service, &c->from, &member) && member.has_key &&
           measure_proof_verify(o->proof.mac, &member.key, &p);
}

/* Has whoever began a session without a proof do it once more, with one for a challenge. @o is
 * replaced by that order. Return: true if it is proven; else it was refused. */
static bool demand_proof(struct service_connection *c, struct line_buffer *lb, struct order *o)
{
    struct order_challenge challenge;
    struct rng rng = rng_kernel();

    rng_fill(&rng, challenge.b, sizeof(challenge.b));
    if (answer(c, order_challenge_encode(&challenge, no_proof)) < 0)
        return false;
    order_deinit(o);
    if (read_order(c, lb, clock_now() + FIRST_LINE_TIME, o) < 0)
        return false;
    if (o->kind == ORDER_SESSION && is_proven(c, o, &challenge))
        return true;
    (void)refuse(
        c, o->has_proof ? "the proof is not that of the node with that address" : no_proof);
    return false;
}

void service__serve(struct service_connection *c)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    struct order o = ORDER_NULL;
    nsec_t patience = c->access == SERVICE_ACCESS_UNDERLAY ? STRANGER_TIME : FIRST_LINE_TIME;

    if (read_order(c, &lb, clock_now() + patience, &o) < 0)
        return;
    if (order_is_data(o.kind))
        run_data(c, &o);
    else if (o.kind != ORDER_SESSION || c->access == SERVICE_ACCESS_UNDERLAY)
        (void)refuse(c, "a session comes first");
    else if (c->access == SERVICE_ACCESS_LOCAL || demand_proof(c, &lb, &o))
        run_session(c, &lb, &o);
    order_deinit(&o);
}
