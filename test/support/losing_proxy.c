/* losing_proxy.c - see losing_proxy.h. */
#include "test/support/losing_proxy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/thread.h"

/* Longest head of a request, and longest request. */
#define HEAD_MAX    (8u << 10)
#define REQUEST_MAX (4u << 20)

/* Connections at a time; each has a thread. */
#define CONNS_MAX 256

struct losing_proxy {
    struct losing_proxy_rules rules;
    struct sockaddr_in upstream;
    char server[40];
    int listen_fd;
    int stop_fd; /* readable: the proxy ends */
    pthread_t thread;
    pthread_mutex_t lock;          /* guards the calls of the rules */
    struct conn *conns[CONNS_MAX]; /* owns; the accepting thread's */
    size_t n_conns;
};

/* A connection, in its thread. */
struct conn {
    struct losing_proxy *p; /* pins */
    pthread_t thread;
    atomic_bool is_over; /* the thread has nothing more to do */
    int client;
    int upstream;
    char *buf; /* owns; the request that is being read */
    size_t len;
};

/* ---- sockets --------------------------------------------------------------------------------- */

static void be_quick(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Waits for one of @a and @b; gives which of them. -1: the proxy ends. */
static int wait_for(const struct conn *c, int a, int b)
{
    struct pollfd p[3] = {{.fd = c->p->stop_fd, .events = POLLIN}, {.fd = a, .events = POLLIN},
        {.fd = b, .events = POLLIN}};

    while (poll(p, 3, -1) < 0)
        ;
    if (p[0].revents)
        return -1;
    return p[1].revents ? a : b;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The length of the request whose head is whole: with its body. 0: the head is not whole yet. */
static size_t request_len(const struct conn *c)
{
    const char *end = memmem(c->buf, c->len, "\r\n\r\n", 4);
    const char *field;

    if (!end)
        return 0;
    c->buf[c->len] = '\0';
    field = strcasestr(c->buf, "\r\nContent-Length:");
    return (size_t)(end - c->buf) + 4 +
           (field && field < end ? strtoul(field + strlen("\r\nContent-Length:"), NULL, 10) : 0);
}

/* Reads one request into the buffer. False: the connection ends. */
static bool read_request(struct conn *c)
{
    size_t want = 0;
    ssize_t n;

    c->len = 0;
    while (want == 0 || c->len < want) {
        assert(c->len < REQUEST_MAX && (want > 0 || c->len < HEAD_MAX + REQUEST_MAX / 2));
        if (wait_for(c, c->client, -1) < 0)
            return false;
        n = recv(c->client, c->buf + c->len, REQUEST_MAX - c->len, 0);
        if (n <= 0)
            return false;
        c->len += (size_t)n;
        want = request_len(c);
    }
    /* A client without pipelining sends nothing behind it. */
    assert(c->len == want);
    return true;
}

static enum losing_proxy_fate decide(struct conn *c)
{
    struct losing_proxy *p = c->p;
    const char *from = strchr(c->buf, ' ');
    char path[64] = "";
    enum losing_proxy_fate fate;

    if (from)
        (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(from + 1, " ?"), from + 1);
    (void)pthread_mutex_lock(&p->lock);
    fate = p->rules.decide(p->rules.ctx, path);
    (void)pthread_mutex_unlock(&p->lock);
    return fate;
}

/* @fn: one of the rules; NULL: nothing is done. */
static void tell(struct losing_proxy *p, void (*fn)(void *ctx))
{
    if (!fn)
        return;
    (void)pthread_mutex_lock(&p->lock);
    fn(p->rules.ctx);
    (void)pthread_mutex_unlock(&p->lock);
}

/* Passes the answer on until the client says something. False: the connection ends. */
static bool pass_answer(struct conn *c)
{
    char data[16384];
    bool has_begun = false;
    ssize_t n;
    int fd;

    while ((fd = wait_for(c, c->upstream, c->client)) == c->upstream) {
        n = recv(fd, data, sizeof(data), 0);
        if (n <= 0 || !send_all(c->client, data, (size_t)n))
            return false;
        has_begun = true;
    }
    if (fd >= 0 && !has_begun)
        tell(c->p, c->p->rules.given_up);
    return fd >= 0;
}

static void lose_answer(struct conn *c)
{
    if (wait_for(c, c->upstream, -1) >= 0)
        tell(c->p, c->p->rules.lost);
}

static void hold_answer(struct conn *c)
{
    if (wait_for(c, c->client, -1) >= 0)
        tell(c->p, c->p->rules.given_up);
}

static void serve(struct conn *c)
{
    while (read_request(c)) {
        enum losing_proxy_fate fate = decide(c);

        if (fate == LOSING_PROXY_LOSE_REQUEST || !send_all(c->upstream, c->buf, c->len))
            return;
        if (fate == LOSING_PROXY_LOSE_ANSWER) {
            lose_answer(c);
            return;
        }
        if (fate == LOSING_PROXY_HOLD_ANSWER) {
            hold_answer(c);
            return;
        }
        if (!pass_answer(c))
            return;
    }
}

static void *run_conn(void *arg)
{
    struct conn *c = arg;

    c->upstream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->buf = malloc(REQUEST_MAX + 1);
    be_quick(c->client);
    be_quick(c->upstream);
    /* A server that is dead refuses, and so does this. */
    if (c->buf &&
        connect(c->upstream, (struct sockaddr *)&c->p->upstream, sizeof(c->p->upstream)) == 0)
        serve(c);
    (void)close(c->upstream);
    (void)close(c->client);
    free(c->buf);
    atomic_store(&c->is_over, true);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void end_conn(struct conn *c)
{
    (void)pthread_join(c->thread, NULL);
    free(c);
}

/* A thread that has ended keeps its stack until it is joined. */
static void end_those_over(struct losing_proxy *p)
{
    for (size_t i = p->n_conns; i-- > 0;)
        if (atomic_load(&p->conns[i]->is_over)) {
            end_conn(p->conns[i]);
            p->conns[i] = p->conns[--p->n_conns];
        }
}

static void *run_proxy(void *arg)
{
    struct losing_proxy *p = arg;
    struct pollfd fds[2] = {
        {.fd = p->stop_fd, .events = POLLIN}, {.fd = p->listen_fd, .events = POLLIN}};

    for (;;) {
        struct conn *c;
        int fd;

        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        end_those_over(p);
        assert(p->n_conns < CONNS_MAX);
        c = calloc(1, sizeof(*c));
        *c = (struct conn){.p = p, .client = fd};
        if (pthread_create(&c->thread, NULL, run_conn, c) != 0)
            abort();
        p->conns[p->n_conns++] = c;
    }
}

static void parse_server(const char *server, struct sockaddr_in *ret)
{
    const char *colon = strrchr(server, ':');
    char host[32];

    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - server), server);
    *ret = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    if (inet_pton(AF_INET, host, &ret->sin_addr) != 1)
        abort();
}

struct losing_proxy *losing_proxy_start(const char *server, const struct losing_proxy_rules *rules)
{
    struct losing_proxy *p = calloc(1, sizeof(*p));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *p = (struct losing_proxy){.rules = *rules, .stop_fd = wakeup_open()};
    parse_server(server, &p->upstream);
    (void)pthread_mutex_init(&p->lock, NULL);
    p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(p->listen_fd, (struct sockaddr *)&at, len) != 0 || listen(p->listen_fd, 64) != 0 ||
        getsockname(p->listen_fd, (struct sockaddr *)&at, &len) != 0)
        abort();
    (void)snprintf(p->server, sizeof(p->server), "127.0.0.1:%u", ntohs(at.sin_port));
    if (pthread_create(&p->thread, NULL, run_proxy, p) != 0)
        abort();
    return p;
}

const char *losing_proxy_server(const struct losing_proxy *p)
{
    return p->server;
}

struct losing_proxy *losing_proxy_free(struct losing_proxy *p)
{
    if (!p)
        return NULL;
    wakeup_signal(p->stop_fd);
    (void)pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->n_conns; i++)
        end_conn(p->conns[i]);
    (void)close(p->listen_fd);
    (void)close(p->stop_fd);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}
