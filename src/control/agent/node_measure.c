/* node_measure.c - see node_measure.h. */
#include "agent/node_measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/paths/edge/reach.h"
#include "api/content/body.h"
#include "base/containers.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "measure/order.h"
#include "measure/service.h"
#include "measure/service_process.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"
#include "wire/measure_proof.h"

/* Keys that are derived in one node_measure_tell(), each of which takes some 50 us. */
#define KEYS_AT_ONCE 128

/* ---- the process ---------------------------------------------------------------------------- */

/*
 * The agent's end of its measuring process: started, told, started again.
 *
 * Theory of operation. The process is this same program, started with one end of a socket pair;
 * what it does, and what it is told, is in measure/service_process.h. It sends nothing, so the
 * socket becomes readable only when the process has ended. Then another one is started and told
 * everything anew: soon the first time, and later each time that the next one ends early, too. The
 * agent's end of the pair is the only one, so the process ends whenever the agent does.
 *
 * What does not fit into the socket waits here: at most the list that is being sent and the newest.
 */

/* Time from the end of a process to the start of the next. */
#define BACKOFF_FIRST (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX   (30 * NSEC_PER_SEC)

/* After a process that ran for longer than this the wait begins with BACKOFF_FIRST again. */
#define WELL_AFTER (60 * NSEC_PER_SEC)

/* A process that is to end is killed after this time. */
#define END_MS 2000

/* The connection to one process; it is released by the loop, perhaps after the host. */
struct measure_link {
    uv_poll_t poll;            /* of @fd */
    struct measure_host *host; /* borrowed, until this link is closing */
    int fd;                    /* owns */
};

struct measure_host {
    uv_loop_t *loop;
    uv_timer_t timer;           /* until the next start */
    struct service_wire config; /* immutable */
    struct rlimit memlock;      /* immutable */
    struct measure_link *link;  /* NULL: there is no process */
    pid_t pid;                  /* to be waited for; 0: none */
    nsec_t started_at;          /* time of that process's start; 0: there is none */
    nsec_t backoff;
    struct ip_addr own;             /* this node's, as of the last node_measure_tell() */
    struct service_member *members; /* owns; the same; NULL: there was none */
    size_t n_members;
    bool is_behind;  /* the process has not been told @members */
    uint32_t n_jobs; /* commands of jobs that run here */
    uint32_t n_sent; /* as the process was told */
    struct str out;  /* to be said */
    size_t out_off;  /* bytes of it that were */
};

static void on_event(uv_poll_t *poll, int status, int events);
static void host_on_timer(uv_timer_t *timer);

/* ---- the end of a process ------------------------------------------------------------------- */

static void on_link_closed(uv_handle_t *handle)
{
    free(container_of((uv_poll_t *)handle, struct measure_link, poll));
}

static void hang_up(struct measure_host *h)
{
    struct measure_link *link = h->link;

    if (!link)
        return;
    h->link = NULL;
    uv_close((uv_handle_t *)&link->poll, on_link_closed);
    (void)close(link->fd);
    str_deinit(&h->out);
    h->out_off = 0;
}

/* Plans the next start, each time later than before. */
static void plan_start(struct measure_host *h)
{
    bool was_well = h->started_at != 0 && clock_now() - h->started_at > WELL_AFTER;

    h->backoff =
        was_well || h->backoff == 0 ? BACKOFF_FIRST : nsec_min(2 * h->backoff, BACKOFF_MAX);
    h->started_at = 0;
    (void)uv_timer_start(&h->timer, host_on_timer, (uint64_t)(h->backoff / NSEC_PER_MSEC), 0);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Sends as much as the socket takes now. The process's end is noticed by the poll. */
static void host_flush(struct measure_host *h)
{
    while (h->out_off < h->out.len) {
        ssize_t n = send(h->link->fd, h->out.text + h->out_off, h->out.len - h->out_off,
            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        h->out_off += (size_t)n;
    }
    /* One that has failed is for host_pump() to see. */
    if (h->out.failed)
        return;
    str_deinit(&h->out);
    h->out_off = 0;
}

/* Wipes the texts that it makes, because a member has a key. */
static void put_message(struct measure_host *h, const struct service_wire *m)
{
    json_t *json = service_wire_encode(m);
    char *text = json ? body_format(json) : NULL;

    if (text) {
        str_addf(&h->out, "%s\n", text);
        secret_wipe(text, strlen(text));
    } else {
        h->out.failed = true;
    }
    free(text);
    body_wipe_text(json, "key");
    json_decref(json);
}

static void put_members(struct measure_host *h)
{
    struct service_wire m = {.type = SERVICE_WIRE_LIST, .own = h->own, .n = (uint32_t)h->n_members};

    put_message(h, &m);
    m.type = SERVICE_WIRE_MEMBER;
    for (size_t i = 0; i < h->n_members; i++) {
        m.member = h->members[i];
        put_message(h, &m);
    }
}

/* Sends what waits. Of several lists of which nothing was sent yet only the newest is sent. */
static void host_pump(struct measure_host *h)
{
    int events;

    host_flush(h);
    if (h->is_behind && h->out.len == 0) {
        put_members(h);
        h->is_behind = false;
        host_flush(h);
    }
    if (h->n_sent != h->n_jobs && h->out.len == 0) {
        put_message(h, &(struct service_wire){.type = SERVICE_WIRE_JOBS, .n = h->n_jobs});
        h->n_sent = h->n_jobs;
        host_flush(h);
    }
    /* Without memory for a whole list the connection is given up; the next process is told all. */
    if (h->out.failed)
        (void)shutdown(h->link->fd, SHUT_RDWR);
    events = UV_READABLE | UV_DISCONNECT;
    if (h->out.len > 0)
        events |= UV_WRITABLE;
    (void)uv_poll_start(&h->link->poll, events, on_event);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct measure_host *h = container_of(poll, struct measure_link, poll)->host;

    if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) {
        hang_up(h);
        (void)kill(h->pid, SIGKILL);
        log_warning(
            "the process that lets members measure this node has ended; it is started again");
        plan_start(h);
    } else {
        host_pump(h);
    }
}

/* ---- the beginning -------------------------------------------------------------------------- */

static int host_start(struct measure_host *h, struct err *e)
{
    /* This very program, also if another version has replaced its file by now. */
    const char *const argv[] = {"/proc/self/exe", "measuring", NULL};
    struct measure_link *link = calloc(1, sizeof(*link));
    _cleanup_(closep) int theirs = -1;
    int pair[2];
    int r;

    if (!link)
        return err_set(e, -ENOMEM, "no memory");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        r = err_set(e, -errno, "no socket: %s", strerror(errno));
        free(link);
        return r;
    }
    theirs = pair[1];
    r = process_link(argv, theirs, &h->pid, e);
    if (r < 0) {
        (void)close(pair[0]);
        free(link);
        return r;
    }
    /* Lowering a limit needs no right. If this fails the process only tells a wrong limit. */
    (void)prlimit(h->pid, RLIMIT_MEMLOCK, &h->memlock, NULL);
    *link = (struct measure_link){.host = h, .fd = pair[0]};
    (void)uv_poll_init(h->loop, &link->poll, link->fd);
    h->link = link;
    h->started_at = clock_now();
    put_message(h, &h->config);
    h->is_behind = h->members != NULL;
    h->n_sent = 0;
    host_pump(h);
    return 0;
}

static void try_start(struct measure_host *h)
{
    struct err e = ERR_NULL;

    if (host_start(h, &e) == 0)
        return;
    log_warning("weft preflight and weft bench do not find this node: no process for them: %s",
        err_text(&e));
    plan_start(h);
}

static void host_on_timer(uv_timer_t *timer)
{
    struct measure_host *h = container_of(timer, struct measure_host, timer);

    if (h->pid > 0 && !process_has_ended(h->pid)) {
        plan_start(h);
        return;
    }
    h->pid = 0;
    try_start(h);
}

/* ---- telling it the members ----------------------------------------------------------------- */

static void free_members(struct service_member *members, size_t n)
{
    if (members)
        secret_wipe(members, n * sizeof(*members));
    free(members);
}

/* A list that the process knows is not sent again; it is then told to check its interface.
 * @members: taken. */
static void measure_host_tell(
    struct measure_host *h, const struct ip_addr *own, struct service_member *members, size_t n)
{
    if (h->members && n == h->n_members && ip_addr_equal(own, &h->own) &&
        memcmp(members, h->members, n * sizeof(*members)) == 0) {
        free_members(members, n);
    } else {
        free_members(h->members, h->n_members);
        h->members = members;
        h->n_members = n;
        h->own = *own;
        h->is_behind = true;
    }
    if (!h->link)
        return;
    /* A list that is still to be sent makes it check its interface as well. */
    if (!h->is_behind && h->out.len == 0)
        put_message(h, &(struct service_wire){.type = SERVICE_WIRE_LOOK});
    host_pump(h);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    free(container_of((uv_timer_t *)handle, struct measure_host, timer));
}

/* The loop has to turn once more. */
static struct measure_host *measure_host_free(struct measure_host *h)
{
    if (!h)
        return NULL;
    hang_up(h);
    if (h->pid > 0) {
        _cleanup_(closep) int pid_fd = pidfd_open(h->pid, 0);
        struct pollfd wait = {.fd = pid_fd, .events = POLLIN};

        /* 2 s at most. */
        if (pid_fd < 0 || poll(&wait, 1, END_MS) <= 0)
            (void)kill(h->pid, SIGKILL);
        while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free_members(h->members, h->n_members);
    uv_close((uv_handle_t *)&h->timer, on_timer_closed);
    return NULL;
}

/* ---- its life, and who may ask it ----------------------------------------------------------- */

/** The key that checks the orders of one member. Wiped after use. */
struct node_measure_key {
    char name[NAME_MAX_LEN + 1]; /* of the member */
    struct x25519_public public;
    struct measure_proof_key key;
};

void node_measure_start(struct node_measure *nm, uv_loop_t *loop,
    const struct x25519_secret *secret, const char *interface, const char *socket_path,
    const struct rlimit *memlock)
{
    struct measure_host *h = calloc(1, sizeof(*h));

    nm->secret = secret;
    if (!h) {
        log_warning("weft preflight and weft bench will not find this node: no memory for the "
                    "measuring process");
        return;
    }
    h->loop = loop;
    h->memlock = *memlock;
    h->config = (struct service_wire){.type = SERVICE_WIRE_CONFIG, .port = PROBE_PORT};
    (void)snprintf(h->config.interface, sizeof(h->config.interface), "%s", interface);
    (void)snprintf(h->config.socket_path, sizeof(h->config.socket_path), "%.*s%s",
        (int)(sizeof(h->config.socket_path) - sizeof(AGENT_MEASURE_SUFFIX)), socket_path,
        AGENT_MEASURE_SUFFIX);
    (void)uv_timer_init(loop, &h->timer);
    /* One that does not start is tried again. */
    try_start(h);
    nm->host = h;
}

/* Where a hub answers STUN: on its UDP port, by IPv4 if it can, since NATs are mostly there. */
static void set_stun_server(struct service_member *m, const struct node_hub *hub)
{
    for (unsigned i = 0; i < hub->n_endpoints; i++) {
        const struct endpoint *at = &hub->endpoints[i];

        if (m->stun_port != 0 && !(ip_addr_is_v4(&at->addr) && !ip_addr_is_v4(&m->underlay)))
            continue;
        m->underlay = at->addr;
        m->stun_port = at->port;
    }
}

static void set_member(
    struct service_member *m, const struct node *node, const struct reach_peer *path)
{
    *m = (struct service_member){.address = node->address4, .is_hub = node->hub != NULL};
    (void)snprintf(m->name, sizeof(m->name), "%.*s", NAME_MAX_LEN, node->meta.name);
    (void)snprintf(m->hostname, sizeof(m->hostname), "%s", node->hostname ? node->hostname : "");
    if (node->hub)
        set_stun_server(m, node->hub);
    if (!path)
        return;
    m->underlay = path->underlay;
    (void)snprintf(m->path, sizeof(m->path), "%s", path_kind_names[path->kind]);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void forget_keys(struct node_measure *nm)
{
    if (nm->keys)
        secret_wipe(nm->keys, nm->n_keys * sizeof(*nm->keys));
    free(nm->keys);
    nm->keys = NULL;
    nm->n_keys = 0;
}

/* Keys of the members that there are now: those that are known, and a few new ones. What is not
 * derived yet is so by a later call; until then that member's orders are refused. Both lists are in
 * the order of the names. */
static void renew_keys(struct node_measure *nm, const struct snapshot *s)
{
    struct node_measure_key *keys = nm->secret ? calloc(s->nodes.n + 1, sizeof(*keys)) : NULL;
    const struct x25519_public *own = &snapshot_self(s)->key;
    unsigned budget = KEYS_AT_ONCE;
    size_t n = 0;
    size_t old = 0;

    for (size_t i = 0; keys && i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        struct node_measure_key *k = &keys[n];

        while (old < nm->n_keys && strcmp(nm->keys[old].name, node->meta.name) < 0)
            old++;
        if (old < nm->n_keys && strcmp(nm->keys[old].name, node->meta.name) == 0 &&
            x25519_public_equal(&nm->keys[old].public, &node->key)) {
            keys[n++] = nm->keys[old];
            continue;
        }
        if (budget == 0 || (!node_has_agent(node) && !node->hub) ||
            x25519_public_equal(&node->key, own))
            continue;
        budget--;
        if (!measure_proof_key_make(&k->key, nm->secret, &node->key, &node->key, own))
            continue;
        (void)snprintf(k->name, sizeof(k->name), "%.*s", NAME_MAX_LEN, node->meta.name);
        k->public = node->key;
        n++;
    }
    if (!keys)
        return;
    forget_keys(nm);
    nm->keys = keys;
    nm->n_keys = n;
}

/* ---- members -------------------------------------------------------------------------------- */

size_t node_measure_list(struct node_measure *nm, const struct snapshot *s,
    const struct reach *reach, struct service_member *ret, size_t cap)
{
    size_t n = s->nodes.n < cap ? s->nodes.n : cap;
    size_t key = 0;

    renew_keys(nm, s);

    for (size_t i = 0; i < n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        set_member(&ret[i], node, reach_find(reach, node->meta.name));
        /* @key: where in the keys the last one was found; members come in the order of the keys. */
        while (key < nm->n_keys && strcmp(nm->keys[key].name, ret[i].name) < 0)
            key++;
        ret[i].has_key = key < nm->n_keys && strcmp(nm->keys[key].name, ret[i].name) == 0;
        if (ret[i].has_key)
            ret[i].key = nm->keys[key].key;
    }
    return n;
}

void node_measure_tell(struct node_measure *nm, const struct snapshot *s, const struct reach *reach)
{
    struct service_member *members;

    if (!nm->host)
        return;
    /* Without memory the members of before stay. */
    members = calloc(s->nodes.n + 1, sizeof(*members));
    if (members)
        measure_host_tell(nm->host, &snapshot_self(s)->address4, members,
            node_measure_list(nm, s, reach, members, SERVICE_WIRE_MEMBERS_MAX));
}

void node_measure_tell_jobs(struct node_measure *nm, unsigned n)
{
    if (nm->host) {
        nm->host->n_jobs = n < SERVICE_WIRE_JOBS_MAX ? n : SERVICE_WIRE_JOBS_MAX;
        if (nm->host->link && nm->host->n_sent != nm->host->n_jobs)
            host_pump(nm->host);
    }
}

void node_measure_stop(struct node_measure *nm)
{
    nm->host = measure_host_free(nm->host);
    forget_keys(nm);
}

/* ---- orders of this node -------------------------------------------------------------------- */

static bool prove_to(const struct x25519_secret *secret, const struct snapshot *s,
    const struct order *o, const char *address, const json_t *challenge, json_t *proofs)
{
    const struct x25519_public *own = &snapshot_self(s)->key;
    const char *text = json_string_value(challenge);
    char mac_text[2 * MEASURE_PROOF_MAC + 1];
    uint8_t mac[MEASURE_PROOF_MAC];
    struct measure_proof_key key;
    struct order_challenge c;
    struct measure_proof p;
    struct ip_addr a;

    if (!text || !hex_decode(text, c.b, sizeof(c.b)) || ip_addr_parse(&a, address, NULL) < 0)
        return false;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!ip_addr_equal(&node->address4, &a) ||
            !measure_proof_key_make(&key, secret, &node->key, own, &node->key))
            continue;
        p = order_proof_input(o, &c);
        measure_proof_make(mac, &key, &p);
        secret_wipe(&key, sizeof(key));
        hex_encode(mac, sizeof(mac), mac_text);
        return json_object_set_new(proofs, address, json_string(mac_text)) == 0;
    }
    return true;
}

int node_measure_prove(const struct x25519_secret *secret, const struct snapshot *s,
    const json_t *asked, json_t **ret, struct err *e)
{
    const json_t *challenges = json_object_get(asked, "challenges");
    json_auto_t *order = json_copy((json_t *)asked);
    json_auto_t *proofs = json_object();
    struct order o = ORDER_NULL;
    const char *address;
    json_t *challenge;
    int r;

    if (!order || !proofs || json_object_set_new(order, "op", json_string("session")) < 0)
        return err_set(e, -EINVAL, "the body is no object with \"id\", \"purpose\", \"seconds\"");
    r = order_decode(&o, order, e);
    if (r < 0)
        return r;
    if (!json_is_object(challenges) || json_object_size(challenges) > ORDER_NODES_MAX)
        r = err_set(
            e, -EINVAL, "\"challenges\" is no object of at most %d addresses", ORDER_NODES_MAX);
    if (r == 0)
        json_object_foreach((json_t *)challenges, address, challenge)
            if (r == 0 && !prove_to(secret, s, &o, address, challenge, proofs))
                r = err_set(e, -EINVAL, "\"challenges\" has what is no address with 32 hex digits");
    order_deinit(&o);
    if (r == 0)
        *ret = json_pack("{s:O}", "proofs", proofs);
    return r == 0 && !*ret ? -ENOMEM : r;
}
