/* tls_front.c - see tls_front.h. */
#include "tls_front.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/secret.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/worker.h"

/* ==== the key and the certificate ============================================================ */

#define PEM_MAX (64u << 10)

static void pkey_freep(EVP_PKEY **p)
{
    EVP_PKEY_free(*p);
}

static void x509_freep(X509 **p)
{
    X509_free(*p);
}

static void bio_freep(BIO **p)
{
    BIO_free(*p);
}

static void wipe_freep(char **p)
{
    if (*p)
        secret_wipe(*p, strlen(*p));
    free(*p);
}

/* What was written into a memory BIO, as text; the BIO's own copy is wiped. */
static char *take_text(BIO *bio)
{
    char *p;
    long len = BIO_get_mem_data(bio, &p);
    char *text = len > 0 ? strndup(p, (size_t)len) : NULL;

    if (len > 0)
        secret_wipe(p, (size_t)len);
    return text;
}

static char *key_to_pem(EVP_PKEY *key)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        return NULL;
    return take_text(bio);
}

static EVP_PKEY *key_from_pem(const char *pem)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new_mem_buf(pem, -1);

    return bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
}

static X509 *certificate_from_pem(const char *pem)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new_mem_buf(pem, -1);

    return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

static bool add_san(X509 *cert)
{
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:hub");
    bool ok = san && X509_add_ext(cert, san, -1);

    X509_EXTENSION_free(san);
    return ok;
}

/*
 * Its dates are fixed, so that it is valid whatever the hub's clock says: a machine may start
 * without a clock, and clocks jump.
 */
static bool fill_certificate(X509 *cert, EVP_PKEY *key)
{
    X509_NAME *name = X509_get_subject_name(cert);

    return X509_set_version(cert, X509_VERSION_3) &&
           ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
           ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), "20200101000000Z") &&
           ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), "20991231235959Z") &&
           X509_NAME_add_entry_by_txt(
               name, "CN", MBSTRING_ASC, (const unsigned char *)"weft hub", -1, -1, 0) &&
           X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key) && add_san(cert) &&
           X509_sign(cert, key, EVP_sha256());
}

static char *make_certificate(EVP_PKEY *key)
{
    _cleanup_(x509_freep) X509 *cert = X509_new();
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!cert || !bio || !fill_certificate(cert, key) || !PEM_write_bio_X509(bio, cert))
        return NULL;
    return take_text(bio);
}

static int open_key(char **ret_pem, EVP_PKEY **ret, const char *path, struct err *e)
{
    _cleanup_(pkey_freep) EVP_PKEY *key = NULL;
    _cleanup_(wipe_freep) char *pem = NULL;
    int r = statefile_read(path, PEM_MAX, &pem, NULL, e);

    if (r < 0)
        return r;
    if (r == STATEFILE_E_ABSENT) {
        key = EVP_EC_gen("P-256");
        pem = key ? key_to_pem(key) : NULL;
        if (!pem)
            return err_set(e, -ENOMEM, "a TLS key could not be made");
        r = statefile_replace(path, pem, strlen(pem), 0600, e);
        if (r < 0)
            return r;
    } else {
        key = key_from_pem(pem);
        if (!key)
            return err_set(e, -EUCLEAN,
                "\"%s\" is not a private key in PEM; it is left as it is: put a copy in its place",
                path);
    }
    *ret_pem = TAKE_PTR(pem);
    *ret = TAKE_PTR(key);
    return 0;
}

static int open_certificate(char **ret_pem, EVP_PKEY *key, const char *path, struct err *e)
{
    _cleanup_(x509_freep) X509 *cert = NULL;
    _cleanup_(freep) char *pem = NULL;
    int r = statefile_read(path, PEM_MAX, &pem, NULL, e);

    if (r < 0)
        return r;
    if (r == STATEFILE_E_ABSENT) {
        pem = make_certificate(key);
        if (!pem)
            return err_set(e, -ENOMEM, "a TLS certificate could not be made");
        r = statefile_replace(path, pem, strlen(pem), 0644, e);
        if (r < 0)
            return r;
    } else {
        cert = certificate_from_pem(pem);
        if (!cert || X509_check_private_key(cert, key) != 1)
            return err_set(e, -EUCLEAN,
                "\"%s\" is not a certificate of the hub's key; it is left as it is: remove it to "
                "have it made again",
                path);
    }
    *ret_pem = TAKE_PTR(pem);
    return 0;
}

static int make_pin(struct tls_pin *ret, EVP_PKEY *key, struct err *e)
{
    unsigned char *spki = NULL;
    int len = i2d_PUBKEY(key, &spki);

    if (len <= 0)
        return err_set(e, -ENOMEM, "the TLS key could not be encoded");
    SHA256(spki, (size_t)len, ret->b);
    OPENSSL_free(spki);
    return 0;
}

int identity_open(
    struct identity *ret, const char *key_path, const char *certificate_path, struct err *e)
{
    _cleanup_(identity_close) struct identity id = IDENTITY_NULL;
    _cleanup_(pkey_freep) EVP_PKEY *key = NULL;
    int r = open_key(&id.key_pem, &key, key_path, e);

    if (r == 0)
        r = open_certificate(&id.certificate_pem, key, certificate_path, e);
    if (r == 0)
        r = make_pin(&id.pin, key, e);
    if (r != 0)
        return r;
    *ret = id;
    id = (struct identity)IDENTITY_NULL;
    return 0;
}

void identity_close(struct identity *id)
{
    wipe_freep(&id->key_pem);
    free(id->certificate_pem);
    *id = (struct identity)IDENTITY_NULL;
}

/* ==== a connection: TLS on one side, plain bytes on the other ================================ */

/*
 * epoll watches its descriptors edge-triggered, so tls_link_work() goes on until
 * both directions would block, or returns TLS_LINK_E_MORE.
 *
 * Threads: the front's, once it is handed over.
 */

/* The plaintext of one TLS record (RFC 8446 section 5.1). */
#define TLS_LINK_RECORD 16384

/* Bytes that were read from one side and are not written to the other yet. */
struct tls_link_buffer {
    size_t len; /* bytes */
    size_t off; /* how many of them are written */
    uint8_t buf[TLS_LINK_RECORD];
};

/* One connection. */
struct tls_link {
    struct list link;                /* in the front's */
    struct list busy;                /* in the front's */
    struct ssl_st *ssl;              /* owns */
    int net_fd;                      /* owns */
    int plain_fd;                    /* owns */
    bool has_handshake;              /* the TLS handshake is done */
    bool net_ended;                  /* the other end has closed */
    bool plain_ended;                /* the plain end has closed */
    bool has_shut_plain;             /* the plain end was told that the other end has closed */
    nsec_t ends_at;                  /* when it ends even with bytes left; NSEC_NEVER at first */
    struct tls_link_buffer to_net;   /* from plain */
    struct tls_link_buffer to_plain; /* from the net */
};

/* Outcomes. */
#define TLS_LINK_E_MORE 1 /* it has used up its share of this turn: call again */

#define TLS_LINK_E_ENDED 2 /* the connection is over, or has failed: free it */

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

/* Takes both descriptors, also when it fails. NULL: no memory. */
static struct tls_link *tls_link_new(struct ssl_ctx_st *ctx, int net_fd, int plain_fd)
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

/* Out of its lists, and close both sides. NULL is fine. Always NULL. */
static struct tls_link *tls_link_free(struct tls_link *l)
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

static bool is_empty(const struct tls_link_buffer *r)
{
    return r->off == r->len;
}

static void fill(struct tls_link_buffer *r, size_t len)
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

/* ---- both ways ------------------------------------------------------------------------------ */

static enum step inward(struct tls_link *l)
{
    if (!is_empty(&l->to_plain)) {
        struct tls_link_buffer *r = &l->to_plain;
        ssize_t n = send(l->plain_fd, r->buf + r->off, r->len - r->off, MSG_NOSIGNAL);

        if (n > 0)
            r->off += (size_t)n;
        if (n < 0)
            return errno == EAGAIN ? STEP_BLOCKED : STEP_FAILED;
        return STEP_MOVED;
    }
    if (!l->net_ended)
        return read_net(l);
    if (!l->has_shut_plain)
        (void)shutdown(l->plain_fd, SHUT_WR);
    l->has_shut_plain = true;
    return STEP_BLOCKED;
}

static enum step outward(struct tls_link *l, nsec_t now)
{
    if (!is_empty(&l->to_net)) {
        struct tls_link_buffer *r = &l->to_net;
        int n = SSL_write(l->ssl, r->buf + r->off, (int)(r->len - r->off));

        if (n <= 0)
            return why_not(l, n);
        r->off += (size_t)n;
        return STEP_MOVED;
    }
    return l->plain_ended ? STEP_BLOCKED : read_plain(l, now);
}

/* Move what can be moved. 0; TLS_LINK_E_MORE; TLS_LINK_E_ENDED. */
static int tls_link_work(struct tls_link *l, nsec_t now)
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
    if (l->plain_ended && is_empty(&l->to_net)) {
        /* Nothing is left to send. Sends the alert close_notify (RFC 8446 section 6.1) without
         * waiting for it. */
        (void)SSL_shutdown(l->ssl);
        ERR_clear_error();
        return TLS_LINK_E_ENDED;
    }
    return in == STEP_MOVED || out == STEP_MOVED ? TLS_LINK_E_MORE : 0;
}

/* ==== the front and its thread =============================================================== */

/* The ciphers of TLS 1.2; all of TLS 1.3 are taken. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* Most events of one turn. */
#define EVENTS_MAX 64

/* How often links are looked through for those whose time is over. */
#define SWEEP_EACH NSEC_PER_SEC

/* Room of the socket pair each way, bytes. */
#define PAIR_BUFFER (64 << 10)

struct tls_front {
    SSL_CTX *ctx;          /* owns; immutable after start */
    struct worker *worker; /* owns; takes links; NULL: it did not start */
    int epoll_fd;          /* owns */

    /* The thread's own. */
    struct list links; /* of struct tls_link */
    struct list busy;  /* of struct tls_link: those that have something to do now */
    nsec_t sweep_at;   /* when sweep() looks through @links next */
};

/* ---- the thread ----------------------------------------------------------------------------- */

/* Edge-triggered: the link goes on until each descriptor would block. */
static int watch(const struct tls_front *f, struct tls_link *l)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = l};

    if (epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, l->net_fd, &ev) < 0 ||
        epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, l->plain_fd, &ev) < 0)
        return -errno;
    return 0;
}

/*
 * To close a descriptor ends its events only when it is the last one of its socket. A process that
 * was forked a moment ago, and has not begun its program yet, has another one.
 */
static void end_link(struct tls_front *f, struct tls_link *l)
{
    (void)epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, l->net_fd, NULL);
    (void)epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, l->plain_fd, NULL);
    (void)tls_link_free(l);
}

static void work(struct tls_front *f, struct tls_link *l, nsec_t now)
{
    int r = tls_link_work(l, now);

    list_remove(&l->busy);
    if (r == TLS_LINK_E_MORE)
        list_add_tail(&f->busy, &l->busy);
    else if (r != 0)
        end_link(f, l);
}

/* Begins the links that tls_front_wrap() has handed over. */
static void take_handed(struct tls_front *f, nsec_t now)
{
    struct list *link;

    while ((link = worker_take(f->worker))) {
        struct tls_link *l = container_of(link, struct tls_link, link);

        list_add_tail(&f->links, link);
        if (watch(f, l) < 0)
            end_link(f, l);
        else
            work(f, l, now);
    }
}

static void work_on_busy(struct tls_front *f, nsec_t now)
{
    struct list turn;
    struct tls_link *l;
    struct tls_link *tmp;

    /* Each has one turn. A link that stays busy is added to @busy again, for the next round. */
    list_init(&turn);
    list_foreach_safe(l, tmp, &f->busy, busy) {
        list_remove(&l->busy);
        list_add_tail(&turn, &l->busy);
    }
    list_foreach_safe(l, tmp, &turn, busy)
        work(f, l, now);
}

/* Ends the links whose other end has not taken what is left in time. */
static void sweep(struct tls_front *f, nsec_t now)
{
    struct tls_link *l;
    struct tls_link *tmp;

    if (now < f->sweep_at)
        return;
    f->sweep_at = now + SWEEP_EACH;
    list_foreach_safe(l, tmp, &f->links, link) {
        if (now >= l->ends_at)
            end_link(f, l);
    }
}

static void run(struct worker *w, void *ctx)
{
    struct tls_front *f = ctx;
    struct epoll_event events[EVENTS_MAX];

    while (!worker_is_ending(w)) {
        int patience_ms = list_is_empty(&f->links) ? -1 : (int)(SWEEP_EACH / NSEC_PER_MSEC);
        int n =
            epoll_wait(f->epoll_fd, events, EVENTS_MAX, list_is_empty(&f->busy) ? patience_ms : 0);
        nsec_t now = clock_now();
        bool is_handed = false;

        /* A link has two descriptors, and working on it may free it. So its events are noted first.
         */
        for (int i = 0; i < n; i++) {
            struct tls_link *l = events[i].data.ptr;

            is_handed |= !l;
            if (l && list_is_empty(&l->busy))
                list_add_tail(&f->busy, &l->busy);
        }
        work_on_busy(f, now);
        if (is_handed)
            take_handed(f, now);
        sweep(f, now);
    }
}

static void drop_handed(struct list *link)
{
    (void)tls_link_free(container_of(link, struct tls_link, link));
}

/* ---- life ----------------------------------------------------------------------------------- */

static int fail(struct err *e, const char *what)
{
    unsigned long code = ERR_get_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return err_set(e, -EIO, "%s: %s", what, reason ? reason : "no memory");
}

static int load_identity(SSL_CTX *ctx, const struct identity *id, struct err *e)
{
    BIO *key_bio = BIO_new_mem_buf(id->key_pem, -1);
    BIO *cert_bio = BIO_new_mem_buf(id->certificate_pem, -1);
    EVP_PKEY *key = key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL) : NULL;
    X509 *cert = cert_bio ? PEM_read_bio_X509(cert_bio, NULL, NULL, NULL) : NULL;
    bool ok = key && cert && SSL_CTX_use_certificate(ctx, cert) == 1 &&
              SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;

    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(key_bio);
    BIO_free(cert_bio);
    return ok ? 0 : fail(e, "the TLS key and its certificate cannot be used");
}

static int make_context(SSL_CTX **ret, const struct identity *id, struct err *e)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int r;

    if (!ctx)
        return fail(e, "TLS does not start");
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_cipher_list(ctx, CIPHERS);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ctx, 1);
    r = load_identity(ctx, id, e);
    if (r != 0)
        SSL_CTX_free(ctx);
    else
        *ret = ctx;
    return r;
}

/* The thread waits for its worker's descriptor among the others. */
static int watch_worker(struct worker *w, void *ctx)
{
    const struct tls_front *f = ctx;
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};

    return epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, worker_fd(w), &wake) < 0 ? -errno : 0;
}

static int start(struct tls_front *f, struct err *e)
{
    const struct worker_config config = {
        .name = "tls", .prepare = watch_worker, .loop = run, .drop = drop_handed, .ctx = f};
    int r;

    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r = f->epoll_fd < 0 ? -errno : worker_start(&f->worker, &config);
    return r == 0 ? 0 : err_set(e, r, "the TLS thread does not start: %s", strerror(-r));
}

int tls_front_new(struct tls_front **ret, const struct identity *id, struct err *e)
{
    struct tls_front *f = calloc(1, sizeof(*f));
    int r;

    if (!f)
        return err_set(e, -ENOMEM, "no memory for TLS");
    f->epoll_fd = -1;
    list_init(&f->links);
    list_init(&f->busy);
    r = make_context(&f->ctx, id, e);
    if (r == 0)
        r = start(f, e);
    if (r != 0) {
        tls_front_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

struct tls_front *tls_front_free(struct tls_front *f)
{
    struct tls_link *l;
    struct tls_link *tmp;

    if (!f)
        return NULL;
    f->worker = worker_stop(f->worker);
    list_foreach_safe(l, tmp, &f->links, link)
        tls_link_free(l);
    closep(&f->epoll_fd);
    SSL_CTX_free(f->ctx);
    free(f);
    return NULL;
}

int tls_front_wrap(struct tls_front *f, int net_fd, int *ret_fd)
{
    struct tls_link *l;
    int size = PAIR_BUFFER;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        int r = -errno;

        (void)close(net_fd);
        return r;
    }
    for (int i = 0; i < 2; i++)
        (void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    l = tls_link_new(f->ctx, net_fd, pair[0]);
    if (!l) {
        (void)close(pair[1]);
        return -ENOMEM;
    }
    (void)worker_put(f->worker, &l->link);
    *ret_fd = pair[1];
    return 0;
}
