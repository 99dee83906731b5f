/*
 * service.c - see service.h. From the bottom up: what the threads share, the orders of one
 * connection, and the listening thread, which starts connections and answers pings.
 */
#include "measure/service.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/content/body.h"
#include "base/containers.h"
#include "base/err.h"
#include "measure/dial.h"
#include "measure/facts.h"
#include "measure/link_test.h"
#include "measure/order.h"
#include "measure/session.h"
#include "net/address/sockaddr.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

/* The most of them from outside the overlay. */
#define UNDERLAY_MAX (2 * ORDER_STREAMS_MAX + 4)

/* The most connections from one member's address: streams both ways, an all-reduce's hops, its
 * orders. Any program of its machine may open one, and leaves the others room. */
#define FROM_ONE_MAX (2 * ORDER_STREAMS_MAX + SESSION_HOPS_MAX + 8)

#define LOOK_PERIOD_MS 1000
#define BACKLOG        SERVICE_CONNECTIONS_MAX
#define PINGS_A_TURN   64
#define PACKET_MAX     65535
#define IP_UDP_HEADERS 28
/* Bytes of datagrams that wait to be read, while the processor is busy; the kernel gives as much of
 * that as it allows. */
#define DATAGRAMS_WAITING (1 << 20)

/* How long the first order is waited for. A coordinator connects to all members before it gives
 * one. */
#define FIRST_LINE_TIME (10 * NSEC_PER_SEC)
/* The same for a connection outside the overlay. */
#define STRANGER_TIME (2 * NSEC_PER_SEC)
#define ANSWER_TIME   (5 * NSEC_PER_SEC)
#define NAMES_TIME    (3 * NSEC_PER_SEC)

/* How a connection came in, and so who may be at its other end. */
enum service_access {
    SERVICE_ACCESS_OVERLAY,  /* a member */
    SERVICE_ACCESS_LOCAL,    /* a process on this machine that may open the unix socket */
    SERVICE_ACCESS_UNDERLAY, /* anybody who reaches the port; has to know the session's id */
};

struct service {
    const char *interface;   /* pins; immutable, as the next two are; NULL: none */
    const char *socket_path; /* pins; NULL: no unix socket */
    uint16_t port;           /* on which it listens */
    struct session session;  /* has a lock of its own */
    _Atomic uint32_t n_jobs; /* that run here, as the agent has said */
    _Atomic unsigned users; /* references: the owner's, the listening thread's, each connection's */
    _Atomic bool is_stopping;
    int wake_fd;      /* owns; eventfd; makes the listening thread check everything */
    pthread_t thread; /* the listening thread */

    pthread_mutex_t lock; /* taken before session.lock, never after it */
    /* guarded by lock: */
    struct ip_addr own;             /* none: not known yet */
    struct service_member *members; /* owns; sorted by address */
    size_t n_members;
    struct list connections; /* of struct service_connection */
    unsigned n_connections;
    unsigned n_underlay; /* how many of these came in outside the overlay */
    int underlay_fd;     /* owns; -1: not open */

    /* listening thread only: */
    int tcp_fd;
    int udp_fd;
    int unix_fd;
    unsigned ifindex;     /* interface to which tcp_fd and udp_fd are bound */
    struct ip_addr bound; /* address to which they are bound */
};

/* One connection, and its thread. */
struct service_connection {
    struct list link;        /* in the service's connections; guarded by its lock */
    struct service *service; /* owns one reference */
    int fd;                  /* owns; -1: given away */
    enum service_access access;
    struct ip_addr from; /* the other end's address; LOCAL: this node's own */
};

/* ---- references ---------------------------------------------------------------------------- */

/* The last thread that leaves it releases everything. */
static void service_unref(struct service *s)
{
    if (atomic_fetch_sub(&s->users, 1) > 1)
        return;
    session_deinit(&s->session);
    (void)pthread_mutex_destroy(&s->lock);
    (void)close(s->wake_fd);
    free(s->members);
    free(s);
}

/* ---- members --------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ip_addr));
}

_Static_assert(offsetof(struct service_member, address) == 0, "compare_members() relies on it");

void service_set_members(
    struct service *s, const struct ip_addr *own, const struct service_member *members, size_t n)
{
    struct service_member *copy = malloc((n + 1) * sizeof(*copy));

    /* Without memory the former members stay. */
    if (!copy)
        return;
    memcpy(copy, members, n * sizeof(*copy));
    qsort(copy, n, sizeof(*copy), compare_members);
    (void)pthread_mutex_lock(&s->lock);
    free(s->members);
    s->members = copy;
    s->n_members = n;
    s->own = *own;
    wakeup_signal(s->wake_fd);
    (void)pthread_mutex_unlock(&s->lock);
}

static struct ip_addr own_address(struct service *s)
{
    struct ip_addr own;

    (void)pthread_mutex_lock(&s->lock);
    own = s->own;
    (void)pthread_mutex_unlock(&s->lock);
    return own;
}

/* Which member has that address on the overlay? @ret: a copy of it. False: none has. */
static bool find_member(
    struct service *s, const struct ip_addr *address, struct service_member *ret)
{
    const struct service_member *found = NULL;

    (void)pthread_mutex_lock(&s->lock);
    if (s->n_members > 0)
        found = bsearch(address, s->members, s->n_members, sizeof(*s->members), compare_members);
    if (found)
        *ret = *found;
    (void)pthread_mutex_unlock(&s->lock);
    return found != NULL;
}

/* ---- the port outside the overlay ------------------------------------------------------------ */

/* Listens on all addresses of a family, not bound to the overlay's interface. */
static int listen_on_family(int family)
{
    union sockaddr_inet sa = {.any.sa_family = (sa_family_t)family};
    socklen_t len = family == AF_INET6 ? sizeof(sa.v6) : sizeof(sa.v4);
    _cleanup_(closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int off = 0;

    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, &sa.any, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int port_of(int fd)
{
    struct endpoint bound;
    int r = sockaddr_local(fd, &bound);

    return r < 0 ? r : bound.port;
}

/* A port that is open already is kept, because the listening thread polls it, and no other thread
 * may close it. Return: the port, or negative errno. */
static int open_underlay(struct service *s)
{
    int r = 0;

    (void)pthread_mutex_lock(&s->lock);
    /* One IPv6 socket serves both families. On a machine without IPv6 it is an IPv4 socket. */
    if (s->underlay_fd < 0)
        r = listen_on_family(AF_INET6);
    if (r < 0)
        r = listen_on_family(AF_INET);
    if (r > 0)
        s->underlay_fd = r;
    if (r >= 0)
        r = port_of(s->underlay_fd);
    (void)pthread_mutex_unlock(&s->lock);
    wakeup_signal(s->wake_fd);
    return r;
}

/* 0: none is open. */
static uint16_t underlay_port(struct service *s)
{
    int port = 0;

    (void)pthread_mutex_lock(&s->lock);
    if (s->underlay_fd >= 0)
        port = port_of(s->underlay_fd);
    (void)pthread_mutex_unlock(&s->lock);
    return port > 0 ? (uint16_t)port : 0;
}

/* For the listening thread only. */
static void close_underlay(struct service *s)
{
    (void)pthread_mutex_lock(&s->lock);
    closep(&s->underlay_fd);
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- answers ------------------------------------------------------------------------------- */

static int send_answer(struct service_connection *c, json_t *json)
{
    int r = line_write(c->fd, json, clock_now() + ANSWER_TIME, NULL);

    json_decref(json);
    return r;
}

static int send_refusal(struct service_connection *c, const char *sentence)
{
    return send_answer(c, body_refusal(sentence));
}

static int accept_order(struct service_connection *c)
{
    return send_answer(c, json_pack("{s:b}", "ok", 1));
}

static struct dial_target make_target(
    const struct service_connection *c, const struct ip_addr *peer, const struct session_id *id)
{
    return (struct dial_target){
        .peer = *peer, .port = c->service->port, .interface = c->service->interface, .id = *id};
}

/* ---- facts --------------------------------------------------------------------------------- */

static int tell_facts(struct service_connection *c)
{
    const char *interface = c->service->interface ? c->service->interface : "lo";
    struct facts *f = malloc(sizeof(*f));
    struct ip_addr own = own_address(c->service);
    uint32_t n_jobs = atomic_load(&c->service->n_jobs);
    json_t *json;

    if (!f)
        return send_refusal(c, "no memory");
    facts_gather(f, interface, &own);
    /* The agent knows of jobs that meet at the hub, and this process sees those whose processes it
     * may look at: both may be the same ones. */
    f->jobs = n_jobs > f->jobs ? n_jobs : f->jobs;
    json = facts_encode(f);
    free(f);
    return send_answer(c, json);
}

/* Only members' names may be asked for. A member must not learn what other names this machine can
 * resolve. */
static bool are_names_of_members(struct service_connection *c, const struct order *o)
{
    for (size_t i = 0; i < o->n_names; i++) {
        const struct order_name *n = &o->names[i];
        struct service_member member;

        if (!find_member(c->service, &n->address, &member) ||
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
        return send_refusal(c, "a name is not that of the member with that address");
    }
    if (!answers || names_resolve(o->names, o->n_names, clock_now() + NAMES_TIME, answers) < 0) {
        json_decref(wrong);
        return send_refusal(c, "no memory");
    }
    for (size_t i = 0; i < o->n_names; i++) {
        const struct names_answer *a = &answers[i];

        late |= !a->known;
        if (a->known && !ip_addr_equal(&a->address, &o->names[i].address))
            (void)json_object_set_new(wrong, o->names[i].name,
                json_string(ip_addr_is_none(&a->address) ? "" : ip_addr_format(&a->address, text)));
    }
    return send_answer(c, json_pack("{s:o, s:b}", "wrong", wrong, "late", (int)late));
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
    return send_answer(c, json_pack("{s:o}", "heard", json));
}

/* ---- measuring ----------------------------------------------------------------------------- */

static bool are_members(struct service_connection *c, const struct order *o)
{
    struct service_member member;

    for (size_t i = 0; i < o->n_addrs; i++)
        if (!find_member(c->service, &o->addrs[i], &member))
            return false;
    return true;
}

/* Where that member is beside the overlay, and which hub says where this end is seen. */
static struct burst_place find_place(struct service *s, const struct ip_addr *address)
{
    struct burst_place ret = {.stun = {.port = 0}};

    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_members; i++) {
        const struct service_member *m = &s->members[i];

        if (ip_addr_equal(&m->address, address))
            ret.underlay = m->underlay;
        if (m->is_hub && m->stun_port != 0)
            ret.stun = (struct endpoint){.addr = m->underlay, .port = (uint16_t)m->stun_port};
    }
    (void)pthread_mutex_unlock(&s->lock);
    return ret;
}

/* IDLE_TEST, BULK, LOSS or BURST, with one other member. */
static int measure_peer(
    struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to = make_target(c, &o->peer, id);
    struct ip_addr own = own_address(c->service);
    struct service_member member;
    struct idle_test idle;
    struct burst_place place = find_place(c->service, &o->peer);
    struct loss_test loss;
    struct burst burst;
    struct bulk bulk;

    if (ip_addr_equal(&o->peer, &own) || !find_member(c->service, &o->peer, &member))
        return send_refusal(c, "the peer is no other member of this network");
    if (o->kind == ORDER_BULK) {
        bulk_run(&bulk, &to, o, &member.underlay);
        return send_answer(c, bulk_encode(&bulk));
    }
    if (o->kind == ORDER_LOSS) {
        loss_test_run(&loss, &to, o);
        return send_answer(c, loss_test_encode(&loss));
    }
    if (o->kind == ORDER_BURST) {
        burst_run(&burst, &to, o, &place);
        return send_answer(c, burst_encode(&burst));
    }
    idle_test_run(&idle, &to, o->pings);
    memcpy(idle.path, member.path, sizeof(idle.path));
    return send_answer(c, idle_test_encode(&idle));
}

static int carry_out_order(
    struct service_connection *c, const struct order *o, const struct session_id *id)
{
    struct dial_target to;
    struct allreduce result;
    int port;

    switch (o->kind) {
    case ORDER_FACTS:
        return tell_facts(c);
    case ORDER_NAMES:
        return tell_names(c, o);
    case ORDER_WARM:
        to = make_target(c, &o->addrs[0], id);
        if (!are_members(c, o))
            return send_refusal(c, "a peer is not a member of this network");
        idle_test_warm_up(&to, o->addrs, o->n_addrs);
        return accept_order(c);
    case ORDER_IDLE_TEST:
    case ORDER_BULK:
    case ORDER_LOSS:
    case ORDER_BURST:
        return measure_peer(c, o, id);
    case ORDER_HEARD:
        return tell_heard(c);
    case ORDER_UNDERLAY:
        port = open_underlay(c->service);
        return port < 0 ? send_refusal(c, "no port can be opened")
                        : send_answer(c, json_pack("{s:i}", "port", port));
    case ORDER_ALLREDUCE:
        to = make_target(c, &o->addrs[o->rank], id);
        if (!are_members(c, o))
            return send_refusal(c, "a member of the all-reduce is none of this network");
        allreduce_run(&result, &to, o, &c->service->session);
        return send_answer(c, allreduce_encode(&result));
    case ORDER_NONE:
    case ORDER_SESSION:
    case ORDER_SINK:
    case ORDER_SOURCE:
    case ORDER_HOP:
    case ORDER_PORT:
    case ORDER_CATCH:
    case ORDER_N:
        break;
    }
    return send_refusal(c, "that order is not given within a session");
}

/* ---- the orders of a connection -------------------------------------------------------------- */

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
        (void)send_refusal(c, err_text(&e));
    return r;
}

/* The words for who is refused, since @b has the service or is next. */
static int refuse_busy(struct service_connection *c, const struct session_busy *b)
{
    char address[IP_ADDR_TEXT_MAX];
    char text[SESSION_BUSY_TEXT_MAX];
    struct service_member member;
    bool is_named = find_member(c->service, &b->owner, &member) && member.name[0];

    return send_refusal(
        c, session_busy_format(
               b, is_named ? member.name : ip_addr_format(&b->owner, address), clock_now(), text));
}

static void run_session(struct service_connection *c, struct line_buffer *lb, const struct order *o)
{
    nsec_t deadline = clock_now() + (nsec_t)o->seconds * NSEC_PER_SEC;
    bool is_quiet = session_is_in_background(o) && c->access != SERVICE_ACCESS_LOCAL;
    struct session_busy busy;
    uint64_t number;
    int r = session_begin(&c->service->session, o, &c->from, clock_now(), &number, &busy);

    if (r == SESSION_E_BUSY) {
        (void)refuse_busy(c, &busy);
        return;
    }
    r = accept_order(c);
    while (r == 0 && clock_now() < deadline && !c->service->is_stopping) {
        struct order next = ORDER_NULL;

        r = read_order(c, lb, deadline, &next);
        if (r == 0 && !session_is(&c->service->session, number, clock_now())) {
            (void)send_refusal(c, "its turn is over: another member has begun to measure");
            r = -ETIMEDOUT;
        }
        /* What is sent there is sent from the machine that has begun it. */
        if (r == 0 && is_quiet && next.kind != ORDER_FACTS)
            r = send_refusal(c, "in a session in the background nothing is measured here");
        else if (r == 0)
            r = carry_out_order(c, &next, &o->id);
        order_deinit(&next);
    }
    session_end(&c->service->session, number, clock_now());
}

static void run_data(struct service_connection *c, const struct order *o)
{
    struct burst_place place = find_place(c->service, &c->from);
    struct dial_target from = make_target(c, &c->from, &o->id);
    struct ip_addr own = own_address(c->service);

    if (!session_has(&c->service->session, &o->id, clock_now())) {
        (void)send_refusal(c, "it is not in that session");
        return;
    }
    if (o->kind == ORDER_PORT) {
        uint16_t port = underlay_port(c->service);

        (void)(port == 0 ? send_refusal(c, "no port is open beside the overlay")
                         : send_answer(c, json_pack("{s:i}", "port", (int)port)));
        return;
    }
    if (o->kind == ORDER_CATCH && c->access == SERVICE_ACCESS_OVERLAY) {
        burst_serve(c->fd, o, &from, &own, &place);
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
    if (o->kind != ORDER_CATCH && accept_order(c) == 0)
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

    return o->has_proof && find_member(c->service, &c->from, &member) && member.has_key &&
           (!member.is_hub || session_is_in_background(o)) &&
           measure_proof_verify(o->proof.mac, &member.key, &p);
}

/* Has whoever began a session without a proof do it once more, with one for a challenge. @o is
 * replaced by that order. Return: true if it is proven; else it was refused. */
static bool demand_proof(struct service_connection *c, struct line_buffer *lb, struct order *o)
{
    struct order_challenge challenge;
    struct rng rng = rng_kernel();

    rng_fill(&rng, challenge.b, sizeof(challenge.b));
    if (send_answer(c, order_challenge_encode(&challenge, no_proof)) < 0)
        return false;
    order_deinit(o);
    if (read_order(c, lb, clock_now() + FIRST_LINE_TIME, o) < 0)
        return false;
    if (o->kind == ORDER_SESSION && is_proven(c, o, &challenge))
        return true;
    (void)send_refusal(
        c, o->has_proof ? "the proof is not that of the node with that address" : no_proof);
    return false;
}

/* Carries out the orders of a connection until it ends; does not close it. */
static void serve_connection(struct service_connection *c)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    struct order o = ORDER_NULL;
    nsec_t patience = c->access == SERVICE_ACCESS_UNDERLAY ? STRANGER_TIME : FIRST_LINE_TIME;

    if (read_order(c, &lb, clock_now() + patience, &o) < 0)
        return;
    if (o.kind == ORDER_SINK || o.kind == ORDER_SOURCE || o.kind == ORDER_HOP ||
        o.kind == ORDER_PORT || o.kind == ORDER_CATCH)
        run_data(c, &o);
    else if (o.kind != ORDER_SESSION || c->access == SERVICE_ACCESS_UNDERLAY)
        (void)send_refusal(c, "a session comes first");
    else if (c->access == SERVICE_ACCESS_LOCAL || demand_proof(c, &lb, &o))
        run_session(c, &lb, &o);
    order_deinit(&o);
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* Opens a socket that is bound to @ep and, unless its address is none, to the overlay's interface.
 * The address need not exist yet. */
static int open_inet(const struct service *s, const struct endpoint *ep, int type)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, ep);
    _cleanup_(closep) int fd = socket(sa.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int waiting = DATAGRAMS_WAITING;
    int one = 1;

    if (fd < 0)
        return -errno;
    if (type == SOCK_DGRAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &waiting, sizeof(waiting));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
    if (!ip_addr_is_none(&ep->addr) && dial_bind_device(fd, s->interface) < 0)
        return -EADDRNOTAVAIL;
    if (bind(fd, &sa.any, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -errno;
    return TAKE_FD(fd);
}

static void close_overlay(struct service *s)
{
    closep(&s->tcp_fd);
    closep(&s->udp_fd);
}

/* Opens the sockets again when the interface was replaced or the node's address has changed. */
static void keep_overlay_open(struct service *s)
{
    unsigned ifindex = s->interface ? if_nametoindex(s->interface) : 1;
    struct endpoint ep = {.addr = own_address(s), .port = s->port};

    if (s->tcp_fd >= 0 && ifindex == s->ifindex && ip_addr_equal(&ep.addr, &s->bound))
        return;
    close_overlay(s);
    if (ip_addr_is_none(&ep.addr) || ifindex == 0)
        return;
    s->tcp_fd = open_inet(s, &ep, SOCK_STREAM);
    s->udp_fd = open_inet(s, &ep, SOCK_DGRAM);
    s->ifindex = ifindex;
    s->bound = ep.addr;
    if (s->tcp_fd < 0 || s->udp_fd < 0)
        close_overlay(s);
}

/* ---- connections --------------------------------------------------------------------------- */

static void add_connection(struct service *s, struct service_connection *c)
{
    (void)pthread_mutex_lock(&s->lock);
    s->users++;
    list_add_tail(&s->connections, &c->link);
    s->n_connections++;
    s->n_underlay += c->access == SERVICE_ACCESS_UNDERLAY;
    (void)pthread_mutex_unlock(&s->lock);
}

static void remove_connection(struct service *s, struct service_connection *c)
{
    (void)pthread_mutex_lock(&s->lock);
    list_remove(&c->link);
    s->n_connections--;
    s->n_underlay -= c->access == SERVICE_ACCESS_UNDERLAY;
    (void)pthread_mutex_unlock(&s->lock);
}

static void *run_connection(void *arg)
{
    struct service_connection *c = arg;

    serve_connection(c);
    closep(&c->fd);
    remove_connection(c->service, c);
    service_unref(c->service);
    free(c);
    return NULL;
}

static bool is_within_limits(
    struct service *s, enum service_access access, const struct ip_addr *from)
{
    const struct service_connection *c;
    unsigned n_same = 0;
    bool yes;

    (void)pthread_mutex_lock(&s->lock);
    list_foreach(c, &s->connections, link)
        n_same += c->access == access && ip_addr_equal(&c->from, from);
    yes = s->n_connections < SERVICE_CONNECTIONS_MAX &&
          (access != SERVICE_ACCESS_UNDERLAY || s->n_underlay < UNDERLAY_MAX) &&
          (access != SERVICE_ACCESS_OVERLAY || n_same < FROM_ONE_MAX);
    (void)pthread_mutex_unlock(&s->lock);
    return yes;
}

static void start_connection(
    struct service *s, int fd, enum service_access access, const struct ip_addr *from)
{
    struct service_connection *c = is_within_limits(s, access, from) ? calloc(1, sizeof(*c)) : NULL;
    pthread_t thread;

    if (!c) {
        (void)close(fd);
        return;
    }
    *c = (struct service_connection){.service = s, .fd = fd, .access = access, .from = *from};
    add_connection(s, c);
    if (thread_start(&thread, "measure-peer", -1, run_connection, c) < 0) {
        (void)close(fd);
        remove_connection(s, c);
        service_unref(s);
        free(c);
        return;
    }
    (void)pthread_detach(thread);
}

/* Accepts one connection. Each listener is served once in a turn, so that none keeps the others
 * waiting. */
static void accept_one(struct service *s, int listener, enum service_access access)
{
    struct service_member member;
    union sockaddr_inet sa = {0};
    socklen_t len = sizeof(sa);
    struct endpoint from = {0};
    int fd = accept4(listener, access == SERVICE_ACCESS_LOCAL ? NULL : &sa.any,
        access == SERVICE_ACCESS_LOCAL ? NULL : &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (access == SERVICE_ACCESS_LOCAL) {
        from.addr = own_address(s);
    } else if (!sockaddr_to_endpoint(&sa, &from) ||
               (access == SERVICE_ACCESS_OVERLAY &&
                   (!find_member(s, &from.addr, &member) || (member.is_hub && !member.has_key)))) {
        (void)close(fd);
        return;
    }
    start_connection(s, fd, access, &from.addr);
}

/* ---- pings --------------------------------------------------------------------------------- */

static void answer_ping(
    struct service *s, const struct frame *ping, size_t len, const union sockaddr_inet *sa)
{
    struct frame pong = *ping;
    uint8_t out[FRAME_LEN];
    struct endpoint from;

    if (ping->kind != FRAME_PING || !sockaddr_to_endpoint(sa, &from) ||
        !session_hear(
            &s->session, &ping->id, &from.addr, ping->counted, clock_now(), &pong.heard) ||
        ping->is_silent)
        return;
    pong.kind = FRAME_PONG;
    pong.arrived_at = clock_wall();
    pong.size = (uint16_t)(len + IP_UDP_HEADERS);
    frame_encode(&pong, out);
    (void)sendto(s->udp_fd, out, sizeof(out), MSG_DONTWAIT, &sa->any, sizeof(sa->v4));
}

static void take_pings(struct service *s)
{
    for (unsigned i = 0; i < PINGS_A_TURN; i++) {
        uint8_t in[FRAME_LEN];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct frame ping;
        /* MSG_TRUNC returns the whole datagram's length, though its padding is not copied. */
        ssize_t n = recvfrom(s->udp_fd, in, sizeof(in), MSG_DONTWAIT | MSG_TRUNC, &sa.any, &sa_len);

        if (n < 0)
            return;
        if ((size_t)n >= sizeof(in) && n <= PACKET_MAX - IP_UDP_HEADERS &&
            frame_decode(&ping, in, sizeof(in)))
            answer_ping(s, &ping, (size_t)n, &sa);
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void listener_turn(struct service *s)
{
    struct pollfd fds[5];
    bool is_on = session_has(&s->session, NULL, clock_now());
    int patience_ms;
    int underlay_fd;

    keep_overlay_open(s);
    if (s->socket_path && s->unix_fd < 0)
        s->unix_fd = unix_socket_listen(s->socket_path, SOCK_STREAM, 0660);
    if (!is_on)
        close_underlay(s);
    /* Nothing reports the end of a session, or that a socket can be opened now, so these are
     * checked every second. For all else service_set_members() and service_recheck() wake this
     * thread. */
    patience_ms =
        is_on || s->tcp_fd < 0 || (s->socket_path && s->unix_fd < 0) ? LOOK_PERIOD_MS : -1;
    (void)pthread_mutex_lock(&s->lock);
    underlay_fd = s->underlay_fd;
    (void)pthread_mutex_unlock(&s->lock);
    fds[0] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s->tcp_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = s->udp_fd, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = s->unix_fd, .events = POLLIN};
    fds[4] = (struct pollfd){.fd = underlay_fd, .events = POLLIN};
    if (poll(fds, 5, patience_ms) <= 0)
        return;
    if (fds[0].revents)
        (void)wakeup_clear(s->wake_fd);
    if (fds[1].revents)
        accept_one(s, s->tcp_fd, SERVICE_ACCESS_OVERLAY);
    if (fds[2].revents)
        take_pings(s);
    if (fds[3].revents)
        accept_one(s, s->unix_fd, SERVICE_ACCESS_LOCAL);
    if (fds[4].revents & POLLIN)
        accept_one(s, underlay_fd, SERVICE_ACCESS_UNDERLAY);
}

static void *run_listener(void *service)
{
    struct service *s = service;

    while (!s->is_stopping)
        listener_turn(s);
    close_overlay(s);
    /* It is unlinked before it is closed, because afterwards another process may have made a socket
     * of that name. */
    if (s->unix_fd >= 0)
        (void)unlink(s->socket_path);
    closep(&s->unix_fd);
    close_underlay(s);
    service_unref(s);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------ */

int service_new(struct service **ret, const char *interface, const char *socket_path, uint16_t port,
    struct err *e)
{
    struct service *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for the measuring service");
    s->interface = interface;
    s->socket_path = socket_path;
    s->port = port;
    s->users = 2;
    s->underlay_fd = s->tcp_fd = s->udp_fd = s->unix_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    session_init(&s->session);
    list_init(&s->connections);
    s->wake_fd = wakeup_open();
    r = s->wake_fd < 0 ? s->wake_fd : thread_start(&s->thread, "measure", -1, run_listener, s);
    if (r < 0) {
        s->users = 1;
        service_unref(s);
        return err_set(e, r, "the measuring service does not start: %s", strerror(-r));
    }
    *ret = s;
    return 0;
}

void service_set_jobs(struct service *s, uint32_t n)
{
    atomic_store(&s->n_jobs, n);
}

void service_recheck(struct service *s)
{
    wakeup_signal(s->wake_fd);
}

struct service *service_free(struct service *s)
{
    if (!s)
        return NULL;
    s->is_stopping = true;
    wakeup_signal(s->wake_fd);
    (void)pthread_join(s->thread, NULL);
    service_unref(s);
    return NULL;
}
