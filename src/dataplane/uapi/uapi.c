/* uapi.c - see uapi.h. */
#include "uapi/uapi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"
#include "shared/device_state.h"
#include "shared/port_state.h"
#include "uapi/uapi_internal.h"

/* Takes @in apart into lines; the empty line that ends the request is always added. */
static void take_text(struct uapi_request *req, const char *in, size_t len, struct str *out)
{
    char line[UAPI_LINE_MAX + 1];

    for (size_t off = 0; off < len;) {
        const char *end = memchr(in + off, '\n', len - off);
        size_t n = end ? (size_t)(end - in) - off : len - off;

        if (n > UAPI_LINE_MAX || memchr(in + off, '\0', n)) {
            uapi_request_break(req);
        } else {
            memcpy(line, in + off, n);
            line[n] = '\0';
            uapi_request_line(req, line, out);
        }
        off += n + 1;
    }
    uapi_request_line(req, "", out);
    secret_wipe(line, sizeof(line));
}

int uapi_handle(struct device *d, const char *in, size_t len, char **ret_out, size_t *ret_len)
{
    struct uapi_request req = {.device = d};
    struct str out = STR_NULL;

    (void)pthread_mutex_lock(&d->port->lock);
    take_text(&req, in, len, &out);
    (void)pthread_mutex_unlock(&d->port->lock);
    /* Deadlines may have changed. */
    loop_wake(&d->port->loop);
    *ret_out = str_take(&out, ret_len);
    return *ret_out ? 0 : -ENOMEM;
}

/* ---- the socket ---- */

#define CLIENTS_MAX 64

/* Read at a time, so that a long configuration does not stop the rest. */
#define READ_MAX 16384

struct uapi_server {
    struct device *device;   /* pins */
    struct loop_event event; /* the listening socket */
    struct list clients;     /* who was silent for longest comes first */
    unsigned n_clients;
    char *path; /* owns; where the socket lies */
};

struct client {
    struct uapi_server *server; /* pins */
    struct loop_event event;    /* its connection; owns the descriptor */
    struct list siblings;       /* in server->clients */
    struct uapi_request request;
    char in[READ_MAX]; /* read, of which in_done of in_len bytes are taken */
    size_t in_len;
    size_t in_done;
    struct str out; /* an answer, of which out_done bytes are sent */
    size_t out_done;
    char line[UAPI_LINE_MAX + 1]; /* begun, not ended yet */
    size_t line_len;
    bool is_too_long; /* skip to the line's end */
    bool has_ended;   /* sends no more; hang up when the last answer is out */
};

static void client_free(struct client *c)
{
    struct uapi_server *s = c->server;

    loop_remove(&s->device->port->loop, &c->event);
    (void)close(c->event.fd);
    list_remove(&c->siblings);
    s->n_clients--;
    str_deinit(&c->out);
    uapi_request_deinit(&c->request);
    secret_wipe(c, sizeof(*c));
    free(c);
}

static void take_byte(struct client *c, char byte)
{
    if (byte != '\n') {
        if (byte == '\0' || c->line_len == UAPI_LINE_MAX)
            c->is_too_long = true;
        else
            c->line[c->line_len++] = byte;
        return;
    }
    c->line[c->line_len] = '\0';
    if (c->is_too_long)
        uapi_request_break(&c->request);
    else
        uapi_request_line(&c->request, c->line, &c->out);
    c->line_len = 0;
    c->is_too_long = false;
}

static bool has_input(const struct client *c)
{
    return c->in_done < c->in_len;
}

/* False when the connection is of no use any more. */
static bool read_some(struct client *c)
{
    ssize_t n = recv(c->event.fd, c->in, sizeof(c->in), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    c->in_len = (size_t)n;
    c->in_done = 0;
    c->has_ended = n == 0;
    return true;
}

/* Up to the end of a request, which is answered at once. Nothing more is taken until all of the
 * answer is sent: so there is at most one to keep, however many are asked for in one go. */
static bool take_input(struct client *c)
{
    while (has_input(c) && c->out.len == 0)
        take_byte(c, c->in[c->in_done++]);
    if (!has_input(c)) {
        secret_wipe(c->in, c->in_len);
        c->in_len = c->in_done = 0;
    }
    return !c->out.failed;
}

static bool write_some(struct client *c)
{
    while (c->out_done < c->out.len) {
        ssize_t n = send(c->event.fd, c->out.text + c->out_done, c->out.len - c->out_done,
            MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        c->out_done += (size_t)n;
    }
    str_deinit(&c->out);
    c->out_done = 0;
    return !c->has_ended;
}

/* One request at most: who has asked for many takes its turn with the control thread's other work.
 */
static void on_client(void *ctx, uint32_t epoll_events)
{
    struct client *c = ctx;
    bool ok = true;

    list_remove(&c->siblings);
    list_add_tail(&c->server->clients, &c->siblings);
    if (c->out.len == 0 && !has_input(c))
        ok = read_some(c);
    ok = ok && take_input(c) && write_some(c);
    if (!ok)
        client_free(c);
    else
        loop_change(&c->server->device->port->loop, &c->event,
            c->out.len > 0 || has_input(c) ? EPOLLOUT : EPOLLIN);
}

static void on_connection(void *ctx, uint32_t epoll_events)
{
    struct uapi_server *s = ctx;
    _cleanup_(closep) int fd = accept4(s->event.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *c;

    if (fd < 0)
        return;
    /* Connections that say nothing must not keep out those that do. */
    if (s->n_clients == CLIENTS_MAX)
        client_free(container_of(s->clients.next, struct client, siblings));
    c = calloc(1, sizeof(*c));
    if (!c)
        return;
    c->server = s;
    c->request.device = s->device;
    c->event = (struct loop_event){.fd = fd, .fn = on_client, .ctx = c};
    if (loop_add(&s->device->port->loop, &c->event, EPOLLIN) < 0) {
        free(c);
        return;
    }
    (void)TAKE_FD(fd);
    list_add_tail(&s->clients, &c->siblings);
    s->n_clients++;
}

static int open_socket(struct uapi_server *s, const char *path, int fd, struct err *e)
{
    s->event.fd = fd;
    if (!(s->path = strdup(path)))
        return err_set(e, -ENOMEM, "no memory for socket %s", path);
    if (fd < 0)
        s->event.fd = unix_socket_listen(path, SOCK_STREAM, 0600);
    if (s->event.fd == -EADDRINUSE)
        return err_set(e, -EADDRINUSE, "another process serves %s", path);
    if (s->event.fd < 0)
        return err_set(e, s->event.fd, "cannot listen on %s: %s", path, strerror(-s->event.fd));
    return 0;
}

int uapi_server_new(
    struct uapi_server **ret, struct device *d, const char *path, int fd, struct err *e)
{
    struct uapi_server *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for socket %s", path);
    s->device = d;
    list_init(&s->clients);
    s->event = (struct loop_event){.fn = on_connection, .ctx = s};
    r = open_socket(s, path, fd, e);
    if (r >= 0) {
        r = loop_add(&d->port->loop, &s->event, EPOLLIN);
        if (r < 0)
            (void)err_set(e, r, "cannot serve %s: %s", path, strerror(-r));
    }
    if (r < 0) {
        if (s->event.fd >= 0)
            (void)close(s->event.fd);
        free(s->path);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

struct uapi_server *uapi_server_free(struct uapi_server *s)
{
    struct client *c, *next;

    if (!s)
        return NULL;
    (void)pthread_mutex_lock(&s->device->port->lock);
    list_foreach_safe(c, next, &s->clients, siblings)
        client_free(c);
    loop_remove(&s->device->port->loop, &s->event);
    (void)pthread_mutex_unlock(&s->device->port->lock);
    (void)unlink(s->path);
    (void)close(s->event.fd);
    free(s->path);
    free(s);
    return NULL;
}
