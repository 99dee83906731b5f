/* tls_link.c - see tls_link.h. */
#include "tls_link.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most records each way in one call, so that other links get their turns. */
#define ROUNDS 8

/* How long the other end may take for what is left after the plain end has closed. */
#define DRAIN_TIME (10 * NSEC_PER_SEC)

/** Whether bytes could be moved one way. */
enum step {
    STEP_MOVED,   /* some were moved: try again */
    STEP_BLOCKED, /* none, until a descriptor is ready */
    STEP_FAILED,  /* the connection has failed */
};

struct tls_link *tls_link_new(struct ssl_ctx_st *ctx, int net_fd, int plain_fd)
{
    struct tls_link *l = calloc(1, sizeof(*l));
    SSL *ssl = SSL_new(ctx);

    if (!l || !ssl || SSL_set_fd(ssl, net_fd) != 1) {
        ERR_clear_error();
        SSL_free(ssl);
        free(l);
        (void)close(net_fd);
        (void)close(plain_fd);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    l->ssl = ssl;
    l->net_fd = net_fd;
    l->plain_fd = plain_fd;
    l->ends_at = NSEC_NEVER;
    list_init(&l->link);
    list_init(&l->busy);
    return l;
}

struct tls_link *tls_link_free(struct tls_link *l)
{
    if (!l)
        return NULL;
    list_remove(&l->link);
    list_remove(&l->busy);
    SSL_free(l->ssl);
    (void)close(l->net_fd);
    (void)close(l->plain_fd);
    free(l);
    return NULL;
}

/* ---- one step ------------------------------------------------------------------------------- */

static bool is_empty(const struct tls_link_room *r)
{
    return r->off == r->len;
}

static void fill(struct tls_link_room *r, size_t len)
{
    r->len = len;
    r->off = 0;
}

/* Why an operation of TLS did not succeed. */
static enum step why_not(struct tls_link *l, int result)
{
    int why = SSL_get_error(l->ssl, result);

    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? STEP_BLOCKED : STEP_FAILED;
}

static enum step handshake(struct tls_link *l)
{
    int n = SSL_do_handshake(l->ssl);

    if (n != 1)
        return why_not(l, n);
    l->has_handshake = true;
    return STEP_MOVED;
}

static enum step read_net(struct tls_link *l)
{
    int n = SSL_read(l->ssl, l->to_plain.buf, TLS_LINK_RECORD);

    if (n > 0) {
        fill(&l->to_plain, (size_t)n);
        return STEP_MOVED;
    }
    if (SSL_get_error(l->ssl, n) != SSL_ERROR_ZERO_RETURN)
        return why_not(l, n);
    l->net_ended = true;
    return STEP_MOVED;
}

static enum step write_plain(struct tls_link *l)
{
    struct tls_link_room *r = &l->to_plain;
    ssize_t n = send(l->plain_fd, r->buf + r->off, r->len - r->off, MSG_NOSIGNAL);

    if (n > 0)
        r->off += (size_t)n;
    if (n < 0)
        return errno == EAGAIN ? STEP_BLOCKED : STEP_FAILED;
    return STEP_MOVED;
}

static enum step read_plain(struct tls_link *l, nsec_t now)
{
    ssize_t n = recv(l->plain_fd, l->to_net.buf, TLS_LINK_RECORD, 0);

    if (n > 0) {
        fill(&l->to_net, (size_t)n);
        return STEP_MOVED;
    }
    if (n < 0)
        return errno == EAGAIN ? STEP_BLOCKED : STEP_FAILED;
    l->plain_ended = true;
    l->ends_at = now + DRAIN_TIME;
    return STEP_MOVED;
}

static enum step write_net(struct tls_link *l)
{
    struct tls_link_room *r = &l->to_net;
    int n = SSL_write(l->ssl, r->buf + r->off, (int)(r->len - r->off));

    if (n <= 0)
        return why_not(l, n);
    r->off += (size_t)n;
    return STEP_MOVED;
}

/* ---- both ways ------------------------------------------------------------------------------ */

static enum step inward(struct tls_link *l)
{
    if (!is_empty(&l->to_plain))
        return write_plain(l);
    if (!l->net_ended)
        return read_net(l);
    if (!l->told_plain)
        (void)shutdown(l->plain_fd, SHUT_WR);
    l->told_plain = true;
    return STEP_BLOCKED;
}

static enum step outward(struct tls_link *l, nsec_t now)
{
    if (!is_empty(&l->to_net))
        return write_net(l);
    return l->plain_ended ? STEP_BLOCKED : read_plain(l, now);
}

/* Nothing is left to send. Sends the alert close_notify (RFC 8446 section 6.1) without waiting for
 * it. */
static int end(struct tls_link *l)
{
    (void)SSL_shutdown(l->ssl);
    ERR_clear_error();
    return TLS_LINK_E_ENDED;
}

int tls_link_work(struct tls_link *l, nsec_t now)
{
    enum step in = STEP_MOVED;
    enum step out = STEP_MOVED;

    if (now >= l->ends_at)
        return TLS_LINK_E_ENDED;
    if (!l->has_handshake) {
        char byte;
        enum step s = handshake(l);

        if (s == STEP_FAILED)
            return TLS_LINK_E_ENDED;
        /* If the plain end has closed meanwhile, the server has given the connection up. */
        if (s == STEP_BLOCKED)
            return recv(l->plain_fd, &byte, 1, MSG_PEEK) == 0 ? TLS_LINK_E_ENDED : 0;
    }
    for (int i = 0; i < 2 * ROUNDS && (in == STEP_MOVED || out == STEP_MOVED); i++) {
        in = inward(l);
        out = outward(l, now);
        if (in == STEP_FAILED || out == STEP_FAILED)
            return TLS_LINK_E_ENDED;
    }
    if (l->plain_ended && is_empty(&l->to_net))
        return end(l);
    return in == STEP_MOVED || out == STEP_MOVED ? TLS_LINK_E_MORE : 0;
}
