/* resolver.c - see resolver.h. */
#include "agent/resolver.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "agent/resolver_upstream.h"
#include "base/bytes.h"
#include "base/err.h"
#include "mesh/names/zone.h"
#include "net/address/sockaddr.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "net/socket/tcp.h"
#include "os/file.h"
#include "os/log.h"
#include "os/thread.h"

#define PORT 53

/* ---- who asks ------------------------------------------------------------------------------- */

#define LOOPBACK 1 /* number of the loopback in every namespace */
#define PORT     53
#define TRIES    3 /* to read a bridge's ports while links come and go */

static bool is_one_of(const char *kind, const char *const *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

bool resolver_asker_is_port_inside(const char *kind)
{
    /* "tun" is a tap, of a virtual machine; libvirt keeps a "dummy" on each of its bridges. */
    static const char *const kinds[] = {"veth", "netkit", "tun", "dummy"};

    return is_one_of(kind, kinds, sizeof(kinds) / sizeof(*kinds));
}

static int take_port(const struct rtnl_link *port, void *ctx)
{
    bool *is_inside = ctx;

    *is_inside = *is_inside && resolver_asker_is_port_inside(port->kind);
    return 0;
}

/* Links at whose other end containers are. A tap may be a machine's, and a tun another overlay's.
 */
static bool leads_to_containers(struct netlink *nl, unsigned ifindex)
{
    static const char *const kinds[] = {"veth", "netkit", "openvswitch"};
    struct rtnl_link link;
    char name[IFNAMSIZ];

    if (!if_indextoname(ifindex, name) || rtnl_find_link(nl, name, &link) != 0)
        return false;
    if (strcmp(link.kind, "bridge") == 0) {
        bool is_inside = true;
        int r = -EINTR;

        for (int i = 0; i < TRIES && r == -EINTR; i++)
            r = rtnl_each_link(nl, ifindex, take_port, &is_inside);
        return r == 0 && is_inside;
    }
    return is_one_of(link.kind, kinds, sizeof(kinds) / sizeof(*kinds));
}

enum resolver_asker resolver_asker_find(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked)
{
    struct rtnl_flow flow = {.to = *asker, .from = *asked, .from_port = PORT};
    unsigned uplink = 0;
    unsigned out;

    if (ip_addr_equal(&asker->addr, asked))
        return RESOLVER_ASKER_MACHINE;
    if (rtnl_way_out(nl, &flow, &out) != 0)
        return RESOLVER_ASKER_STRANGER;
    if (out == LOOPBACK)
        return RESOLVER_ASKER_MACHINE;
    /* Addresses that nobody has (RFC 5737, RFC 3849) go by the default route. */
    flow.to.addr = ip_addr_is_v4(asked)
                       ? ip_addr_v4((const uint8_t[4]){192, 0, 2, 1})
                       : ip_addr_v6((const uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = 1});
    if (rtnl_way_out(nl, &flow, &uplink) == 0 && uplink == out)
        return RESOLVER_ASKER_STRANGER;
    return leads_to_containers(nl, out) ? RESOLVER_ASKER_CONTAINER : RESOLVER_ASKER_STRANGER;
}

/* ---- the name server ------------------------------------------------------------------------ */

#define CONNECTION_IDLE_MS 10000
#define BACKLOG            16
#define LENGTH_LEN         2 /* in front of each message over TCP (RFC 1035 section 4.2.2) */
#define ADDRESSES_N        2
#define WHY_MAX            160

/** Where the thread listens, or should. */
struct place {
    struct ip_addr addresses[ADDRESSES_N]; /* none: not there */
    unsigned ifindex; /* of the overlay's interface; 0: there is none just now */
};

/** One socket pair on one address. Freed when both handles are closed. */
struct door {
    struct resolver *owner; /* pinned */
    struct ip_addr address;
    bool is_members; /* gets what comes in by the overlay's interface */
    uv_udp_t udp;
    uv_tcp_t tcp;
    unsigned n_open; /* handles that are not closed yet */
    struct door *next;
    char space[DNS_QUERY_MAX]; /* of the datagram that is being read */
};

/** A TCP connection. Freed when both handles are closed. */
struct connection {
    struct resolver *owner; /* pinned */
    bool is_members;
    struct ip_addr address; /* of who asks, as in struct asker */
    uint64_t used_at;       /* by the loop's clock: accepted, or the last whole query came */
    uv_tcp_t tcp;
    uv_timer_t idle;
    unsigned n_open;
    struct question *asked; /* borrowed: a question of it that is under way; NULL: none */
    bool is_writing;        /* an answer is on its way */
    size_t len;             /* bytes in @space */
    uint8_t space[LENGTH_LEN + DNS_QUERY_MAX];
    struct connection *next;
};

/** What is answered to whom. */
enum right {
    RIGHT_NONE,  /* a stranger */
    RIGHT_NAMES, /* a member: the network's names */
    RIGHT_ALL,   /* this machine and its containers */
};

/** Who asks, and where an answer goes: one of both. */
struct asker {
    struct ip_addr address;        /* none: this machine, which is one asker */
    struct door *door;             /* over UDP; borrowed */
    union sockaddr_inet from;      /* over UDP */
    struct connection *connection; /* over TCP; borrowed; NULL: over UDP, or it has ended */
};

/** A question that was taken to the machine's name servers. */
struct question {
    struct resolver *owner; /* pinned */
    struct asker asker;
    struct question *next;
    struct dns_query query;
    uint8_t start[DNS_HEADER_LEN + DNS_NAME_MAX + 4]; /* of the query, up to its question's end */
};

/** An answer on its way over TCP. */
struct written {
    uv_write_t request;
    struct connection *connection; /* borrowed: it is freed after this */
    uint8_t bytes[];               /* with the length in front */
};

struct resolver {
    const char *interface; /* pinned; immutable */
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t wake; /* something of what the lock guards has changed */

    pthread_mutex_t lock;
    /* guarded by lock: */
    struct zone zone;
    struct place wanted;
    bool is_retrying; /* what could not be opened is to be tried again */
    bool is_ending;
    bool is_listening;
    struct place listened; /* @is_listening: where */
    char why[WHY_MAX];     /* not @is_listening: why */

    /* of the thread: */
    struct place place; /* where @doors are */
    struct door *doors; /* own themselves */
    struct connection *connections;
    struct question *questions; /* own themselves */
    struct resolver_upstream *upstream;
    struct netlink nl; /* tells who is a stranger */
};

/* ---- answers -------------------------------------------------------------------------------- */

static void end_connection(struct connection *c);
static void read_on(struct connection *c);

static void on_written(uv_write_t *request, int status)
{
    struct written *w = request->data;
    struct connection *c = w->connection;

    free(w);
    c->is_writing = false;
    if (status < 0)
        end_connection(c);
    else
        read_on(c);
}

/* Nothing more is taken from @c before it has taken this, so at most one answer waits for it. */
static void write_tcp(struct connection *c, const uint8_t *answer, size_t len)
{
    struct written *w = len <= UINT16_MAX ? malloc(sizeof(*w) + LENGTH_LEN + len) : NULL;
    uv_buf_t buf;

    if (!w) {
        end_connection(c);
        return;
    }
    w->connection = c;
    be16_store(w->bytes, (uint16_t)len);
    memcpy(w->bytes + LENGTH_LEN, answer, len);
    w->request.data = w;
    buf = uv_buf_init((char *)w->bytes, (unsigned)(LENGTH_LEN + len));
    c->is_writing = uv_write(&w->request, (uv_stream_t *)&c->tcp, &buf, 1, on_written) == 0;
    if (!c->is_writing) {
        free(w);
        end_connection(c);
    }
}

/* What does not fit into the socket's room is lost, as any datagram may be. */
static void send_answer(struct asker *to, uint8_t *answer, size_t len, const struct dns_query *q)
{
    uv_buf_t buf;

    if (to->connection) {
        write_tcp(to->connection, answer, len);
        return;
    }
    len = dns_truncate(answer, len, q, q->udp_len);
    buf = uv_buf_init((char *)answer, (unsigned)len);
    if (to->door)
        (void)uv_udp_try_send(&to->door->udp, &buf, 1, &to->from.any);
}

static void send_rcode(
    struct asker *to, const struct dns_query *q, const uint8_t *query, enum dns_rcode rcode)
{
    struct dns_answer a = {.rcode = rcode};
    uint8_t out[DNS_ANSWER_MAX];

    send_answer(to, out, dns_encode_answer(q, query, &a, out), q);
}

/* Return: false if it is no name of the network's. */
static bool send_ours(
    struct resolver *r, struct asker *to, const struct dns_query *q, const uint8_t *query)
{
    uint8_t out[DNS_ANSWER_MAX];
    struct zone_answer a;
    size_t len = 0;
    bool is_ours;

    (void)pthread_mutex_lock(&r->lock);
    is_ours = zone_answer(&r->zone, q, &a);
    if (is_ours)
        len = dns_encode_answer(q, query, &a.dns, out);
    (void)pthread_mutex_unlock(&r->lock);
    if (is_ours)
        send_answer(to, out, len, q);
    return is_ours;
}

static void remove_question(struct question *question)
{
    struct question **at = &question->owner->questions;

    while (*at != question)
        at = &(*at)->next;
    *at = question->next;
}

/* Whoever asks much has its own questions refused, and nobody else's. However many addresses the
 * containers have, this machine's share is left. */
static bool may_forward(const struct resolver *r, const struct asker *from)
{
    unsigned n_own = 0;
    unsigned n_containers = 0;

    for (const struct question *q = r->questions; q; q = q->next) {
        n_own += ip_addr_equal(&q->asker.address, &from->address);
        n_containers += !ip_addr_is_none(&q->asker.address);
    }
    return n_own < RESOLVER_QUESTIONS_MAX &&
           (ip_addr_is_none(&from->address) ||
               n_containers < RESOLVER_UPSTREAM_MAX - RESOLVER_QUESTIONS_MAX);
}

static void on_upstream(void *ctx, const uint8_t *answer, size_t len)
{
    struct question *question = ctx;
    struct connection *c = question->asker.connection;
    uint8_t *copy = answer ? malloc(len) : NULL;

    remove_question(question);

    if (copy) {
        memcpy(copy, answer, len);
        be16_store(copy, question->query.id);
        send_answer(&question->asker, copy, len, &question->query);
    } else {
        send_rcode(&question->asker, &question->query, question->start, DNS_SERVER_FAILURE);
    }
    free(copy);
    free(question);
    if (c) {
        c->asked = NULL;
        read_on(c);
    }
}

/* Return: false if nobody can be asked. */
static bool forward(struct resolver *r, const struct asker *from, const struct dns_query *q,
    const uint8_t *query, size_t len)
{
    struct question *question = may_forward(r, from) ? calloc(1, sizeof(*question)) : NULL;

    if (!question)
        return false;
    *question = (struct question){.owner = r, .asker = *from, .next = r->questions, .query = *q};
    r->questions = question;
    memcpy(question->start, query, DNS_HEADER_LEN + q->question_len);
    /* Set before it is asked, since the answer may come within the call. */
    if (from->connection)
        from->connection->asked = question;
    if (resolver_upstream_ask(r->upstream, query, len, on_upstream, question))
        return true;
    if (from->connection)
        from->connection->asked = NULL;
    remove_question(question);
    free(question);
    return false;
}

/* Return: false if it is no query. */
static bool take_query(
    struct resolver *r, struct asker *from, enum right right, const uint8_t *query, size_t len)
{
    struct dns_query q;
    int e = dns_decode_query(&q, query, len);

    if (e == DNS_E_OTHER)
        return false;
    if (e != 0)
        send_rcode(from, &q, query, e == DNS_E_MALFORMED ? DNS_FORMAT_ERROR : DNS_NOT_IMPLEMENTED);
    else if (right == RIGHT_NONE)
        send_rcode(from, &q, query, DNS_REFUSED);
    else if (send_ours(r, from, &q, query))
        return true;
    else if (right != RIGHT_ALL || !q.wants_recursion)
        send_rcode(from, &q, query, DNS_REFUSED);
    else if (!forward(r, from, &q, query, len))
        send_rcode(from, &q, query, DNS_SERVER_FAILURE);
    return true;
}

/* The right of who asks at @d. @ret_who: its address, or none for this machine. */
static enum right right_of(
    const struct door *d, const union sockaddr_inet *from, struct ip_addr *ret_who)
{
    struct endpoint asker;
    enum resolver_asker who;

    if (!sockaddr_to_endpoint(from, &asker))
        return RIGHT_NONE;
    *ret_who = asker.addr;
    if (d->is_members)
        return RIGHT_NAMES;
    who = resolver_asker_find(&d->owner->nl, &asker, &d->address);
    if (who == RESOLVER_ASKER_MACHINE)
        *ret_who = (struct ip_addr){0};
    return who == RESOLVER_ASKER_STRANGER ? RIGHT_NONE : RIGHT_ALL;
}

/* ---- over UDP ------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct door *d = handle->data;

    *ret = uv_buf_init(d->space, sizeof(d->space));
}

static void on_datagram(
    uv_udp_t *udp, ssize_t len, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
    struct door *d = udp->data;
    struct asker asker = {.door = d};
    enum right right;

    if (!from || (flags & UV_UDP_PARTIAL))
        return;
    memcpy(&asker.from, from,
        from->sa_family == AF_INET ? sizeof(asker.from.v4) : sizeof(asker.from.v6));
    right = right_of(d, &asker.from, &asker.address);
    (void)take_query(d->owner, &asker, right, (const uint8_t *)buf->base, (size_t)len);
}

/* ---- over TCP ------------------------------------------------------------------------------- */

static void on_connection_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;

    if (--c->n_open == 0)
        free(c);
}

static void end_connection(struct connection *c)
{
    struct resolver *r = c->owner;

    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    for (struct connection **at = &r->connections; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    /* Its answer goes nowhere when it comes. */
    if (c->asked)
        c->asked->asker.connection = NULL;
    uv_close((uv_handle_t *)&c->tcp, on_connection_closed);
    uv_close((uv_handle_t *)&c->idle, on_connection_closed);
}

static void on_idle(uv_timer_t *timer)
{
    end_connection(timer->data);
}

static void on_connection_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct connection *c = handle->data;

    *ret = uv_buf_init((char *)c->space + c->len, (unsigned)(sizeof(c->space) - c->len));
}

/* Does it wait, or has it ended, so that nothing is taken from it? */
static bool is_waiting(const struct connection *c)
{
    return c->asked || c->is_writing || uv_is_closing((const uv_handle_t *)&c->tcp);
}

/* Takes the queries that are there, until one has to wait for its answer. */
static void take_queries(struct connection *c)
{
    struct asker asker = {.address = c->address, .connection = c};

    while (!is_waiting(c) && c->len >= LENGTH_LEN) {
        uint8_t query[DNS_QUERY_MAX];
        size_t len = be16_load(c->space);

        if (len > sizeof(query)) {
            end_connection(c);
            return;
        }
        if (c->len < LENGTH_LEN + len)
            return;
        memcpy(query, c->space + LENGTH_LEN, len);
        c->len -= LENGTH_LEN + len;
        memmove(c->space, c->space + LENGTH_LEN + len, c->len);
        /* Whole queries alone keep a connection: not a byte now and then. */
        c->used_at = uv_now(&c->owner->loop);
        (void)uv_timer_again(&c->idle);
        if (!take_query(c->owner, &asker, c->is_members ? RIGHT_NAMES : RIGHT_ALL, query, len)) {
            end_connection(c);
            return;
        }
    }
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *c = stream->data;

    if (n < 0) {
        end_connection(c);
        return;
    }
    c->len += (size_t)n;
    take_queries(c);
    /* Nothing more is read from who waits for an answer; one that never comes, or is never taken,
     * is bounded by the idle timer. */
    if (is_waiting(c))
        (void)uv_read_stop(stream);
}

static void read_on(struct connection *c)
{
    take_queries(c);
    if (!is_waiting(c))
        (void)uv_read_start((uv_stream_t *)&c->tcp, on_connection_alloc, on_bytes);
}

/* Strangers are not even asked what they want, so that they use none of the others' room. */
static bool may_connect(const struct door *d, struct connection *c)
{
    union sockaddr_inet from;
    int len = sizeof(from);

    return uv_tcp_getpeername(&c->tcp, &from.any, &len) == 0 &&
           right_of(d, &from, &c->address) != RIGHT_NONE;
}

/* Where an asker, or all of @c's side, have as many as they may, the one that was idle longest
 * gives way to @c. */
static void make_space(const struct connection *c)
{
    struct connection *oldest = NULL;
    struct connection *own_oldest = NULL;
    unsigned n = 0;
    unsigned n_own = 0;

    /* The newest come first, so among equals the last one is the oldest. */
    for (struct connection *x = c->owner->connections; x; x = x->next) {
        if (x == c || x->is_members != c->is_members)
            continue;
        n++;
        if (!oldest || x->used_at <= oldest->used_at)
            oldest = x;
        if (!ip_addr_equal(&x->address, &c->address))
            continue;
        n_own++;
        if (!own_oldest || x->used_at <= own_oldest->used_at)
            own_oldest = x;
    }
    if (n_own >= RESOLVER_ASKER_CONNECTIONS_MAX)
        end_connection(own_oldest);
    else if (n >= RESOLVER_CONNECTIONS_MAX)
        end_connection(oldest);
}

static void on_connection(uv_stream_t *listener, int status)
{
    const struct door *d = listener->data;
    struct resolver *r = d->owner;
    struct connection *c = status == 0 ? calloc(1, sizeof(*c)) : NULL;

    if (!c)
        return;
    c->owner = r;
    c->is_members = d->is_members;
    c->n_open = 2;
    (void)uv_tcp_init(&r->loop, &c->tcp);
    (void)uv_timer_init(&r->loop, &c->idle);
    c->tcp.data = c;
    c->idle.data = c;
    c->next = r->connections;
    r->connections = c;
    c->used_at = uv_now(&r->loop);
    (void)uv_timer_start(&c->idle, on_idle, CONNECTION_IDLE_MS, CONNECTION_IDLE_MS);
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0 || !may_connect(d, c)) {
        end_connection(c);
        return;
    }
    make_space(c);
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_connection_alloc, on_bytes);
}

/* ---- doors ---------------------------------------------------------------------------------- */

/* The members' socket is the first one of its address, so it says who gets what. */
static int share(int fd, const struct resolver *r, bool is_members, struct err *e)
{
    int x = is_members ? socket_split_by_interface(fd, r->place.ifindex) : 0;

    return x == 0
               ? 0
               : err_set(e, x, "members' questions cannot be told from others: %s", strerror(-x));
}

static int open_udp(int *ret_fd, const struct resolver *r, const struct endpoint *at,
    bool is_members, struct err *e)
{
    char text[ENDPOINT_TEXT_MAX];
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, at);
    _cleanup_(closep) int fd =
        socket(sa.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return err_set(e, -errno, "no UDP socket: %s", strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        return err_set(e, -errno, "a port cannot be shared: %s", strerror(errno));
    if (share(fd, r, is_members, e) < 0)
        return e->code;
    if (bind(fd, &sa.any, len) < 0)
        return err_set(e, -errno, "UDP address %s cannot be used: %s", endpoint_format(at, text),
            strerror(errno));
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static void on_door_closed(uv_handle_t *handle)
{
    struct door *d = handle->data;

    if (--d->n_open == 0)
        free(d);
}

static void close_doors(struct resolver *r)
{
    /* Answers go out by the doors. */
    resolver_upstream_cancel(r->upstream);
    while (r->connections)
        end_connection(r->connections);
    while (r->doors) {
        struct door *d = r->doors;

        r->doors = d->next;
        uv_close((uv_handle_t *)&d->udp, on_door_closed);
        uv_close((uv_handle_t *)&d->tcp, on_door_closed);
    }
}

static int open_door(
    struct resolver *r, const struct ip_addr *address, bool is_members, struct err *e)
{
    const struct endpoint at = {.addr = *address, .port = PORT};
    _cleanup_(closep) int udp = -1;
    _cleanup_(closep) int tcp = -1;
    struct door *d;
    int x = open_udp(&udp, r, &at, is_members, e);

    if (x == 0)
        x = tcp_listener_open(&tcp, &at, NULL, true, e);
    if (x == 0)
        x = share(tcp, r, is_members, e);
    if (x < 0)
        return x;
    d = calloc(1, sizeof(*d));
    if (!d)
        return err_set(e, -ENOMEM, "no memory for a socket");
    d->owner = r;
    d->address = *address;
    d->is_members = is_members;
    d->n_open = 2;
    (void)uv_udp_init(&r->loop, &d->udp);
    (void)uv_tcp_init(&r->loop, &d->tcp);
    d->udp.data = d;
    d->tcp.data = d;
    d->next = r->doors;
    r->doors = d;
    x = uv_udp_open(&d->udp, udp);
    if (x == 0) {
        (void)TAKE_FD(udp);
        x = uv_tcp_open(&d->tcp, tcp);
    }
    if (x == 0) {
        (void)TAKE_FD(tcp);
        x = uv_udp_recv_start(&d->udp, on_alloc, on_datagram);
    }
    if (x == 0)
        x = uv_listen((uv_stream_t *)&d->tcp, BACKLOG, on_connection);
    return x == 0 ? 0 : err_set(e, x, "port %d cannot be listened on: %s", PORT, uv_strerror(x));
}

static int open_doors(struct resolver *r, const struct place *p, struct err *e)
{
    int x = 0;

    if (p->ifindex == 0)
        return err_set(e, -ENODEV, "there is no interface %s", r->interface);
    for (size_t i = 0; i < ADDRESSES_N && x == 0; i++) {
        if (ip_addr_is_none(&p->addresses[i]))
            continue;
        /* The order counts: see socket_split_by_interface(). */
        x = open_door(r, &p->addresses[i], true, e);
        if (x == 0)
            x = open_door(r, &p->addresses[i], false, e);
    }
    if (x < 0)
        close_doors(r);
    return x;
}

/* Notes it for the status, and logs it when it is new. */
static void resolver_tell(struct resolver *r, const struct err *e)
{
    char text[IP_ADDR_TEXT_MAX];
    bool is_new;

    (void)pthread_mutex_lock(&r->lock);
    is_new = r->is_listening != (e->code == 0) || strncmp(r->why, err_text(e), WHY_MAX - 1) != 0;
    r->is_listening = e->code == 0;
    r->listened = r->place;
    (void)snprintf(r->why, sizeof(r->why), "%s", e->code == 0 ? "" : err_text(e));
    (void)pthread_mutex_unlock(&r->lock);
    if (!is_new)
        return;
    if (e->code == 0)
        log_info("the nodes' names are answered on %s, port %d",
            ip_addr_format(&r->place.addresses[0], text), PORT);
    else if (r->place.ifindex != 0)
        log_info("the nodes' names are not answered by DNS, trying again: %s", err_text(e));
}

static void on_wake(uv_async_t *wake)
{
    struct resolver *r = wake->data;
    struct err e = ERR_NULL;
    struct place wanted;
    bool is_retrying;
    bool is_ending;

    (void)pthread_mutex_lock(&r->lock);
    wanted = r->wanted;
    /* Not what was opened after that was asked for. */
    is_retrying = r->is_retrying && !r->is_listening;
    r->is_retrying = false;
    is_ending = r->is_ending;
    (void)pthread_mutex_unlock(&r->lock);
    if (is_ending) {
        close_doors(r);
        r->upstream = resolver_upstream_free(r->upstream);
        uv_close((uv_handle_t *)&r->wake, NULL);
        return;
    }
    if (memcmp(&wanted, &r->place, sizeof(wanted)) == 0 && !is_retrying)
        return;
    close_doors(r);
    r->place = wanted;
    resolver_upstream_set_own(r->upstream, wanted.addresses, ADDRESSES_N);
    if (open_doors(r, &wanted, &e) == 0)
        e.code = 0;
    resolver_tell(r, &e);
}

static void *resolver_run(void *arg)
{
    struct resolver *r = arg;

    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- the agent's side ----------------------------------------------------------------------- */

int resolver_new(
    struct resolver **ret, const char *interface, const char *resolv_conf, struct err *e)
{
    struct resolver *r = calloc(1, sizeof(*r));
    int x;

    if (!r)
        return err_set(e, -ENOMEM, "no memory for a resolver");
    r->interface = interface;
    x = netlink_open(&r->nl, NETLINK_ROUTE);
    if (x == 0)
        x = uv_loop_init(&r->loop);
    if (x == 0) {
        (void)pthread_mutex_init(&r->lock, NULL);
        (void)uv_async_init(&r->loop, &r->wake, on_wake);
        r->wake.data = r;
        r->upstream = resolver_upstream_new(&r->loop, resolv_conf);
        x = r->upstream ? thread_start(&r->thread, "resolver", -1, resolver_run, r) : -ENOMEM;
        if (x == 0) {
            *ret = r;
            return 0;
        }
        r->upstream = resolver_upstream_free(r->upstream);
        uv_close((uv_handle_t *)&r->wake, NULL);
        (void)uv_run(&r->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&r->loop);
        (void)pthread_mutex_destroy(&r->lock);
    }
    netlink_close(&r->nl);
    free(r);
    return err_set(e, x, "the resolver cannot be started: %s", strerror(-x));
}

bool resolver_set(struct resolver *r, const struct resolver_place *place, const char *lines)
{
    struct zone zone = ZONE_NULL;
    struct zone old;

    if (zone_make(&zone, place->network, place->blocks, lines) < 0)
        return false;
    (void)pthread_mutex_lock(&r->lock);
    old = r->zone;
    r->zone = zone;
    r->wanted = (struct place){
        .addresses = {place->address4, place->address6}, .ifindex = if_nametoindex(r->interface)};
    r->is_retrying = !r->is_listening;
    (void)pthread_mutex_unlock(&r->lock);
    (void)uv_async_send(&r->wake);
    zone_deinit(&old);
    return true;
}

bool resolver_is_listening(struct resolver *r)
{
    bool is_there;

    (void)pthread_mutex_lock(&r->lock);
    is_there = r->is_listening && memcmp(&r->listened, &r->wanted, sizeof(r->wanted)) == 0;
    (void)pthread_mutex_unlock(&r->lock);
    return is_there;
}

json_t *resolver_encode(struct resolver *r)
{
    json_t *o;

    (void)pthread_mutex_lock(&r->lock);
    o = json_pack("{s:b, s:s}", "listening", (int)r->is_listening, "why", r->why);
    (void)pthread_mutex_unlock(&r->lock);
    return o;
}

struct resolver *resolver_free(struct resolver *r)
{
    if (!r)
        return NULL;
    (void)pthread_mutex_lock(&r->lock);
    r->is_ending = true;
    (void)pthread_mutex_unlock(&r->lock);
    (void)uv_async_send(&r->wake);
    (void)pthread_join(r->thread, NULL);
    (void)uv_loop_close(&r->loop);
    (void)pthread_mutex_destroy(&r->lock);
    zone_deinit(&r->zone);
    netlink_close(&r->nl);
    free(r);
    return NULL;
}
