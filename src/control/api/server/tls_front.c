/* tls_front.c - see tls_front.h. */
#include "tls_front.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server/identity.h"
#include "api/server/tls_link.h"
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"
#include "os/thread.h"
#include "os/wakeup.h"

/* The ciphers of TLS 1.2; all of TLS 1.3 are taken. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* Most events of one turn. */
#define EVENTS_MAX 64

/* How often links are looked through for those whose time is over. */
#define SWEEP_EACH NSEC_PER_SEC

/* Room of the socket pair each way, bytes. */
#define PAIR_BUFFER (64 << 10)

struct tls_front {
    SSL_CTX *ctx; /* owns; immutable after start */
    pthread_t thread;
    bool has_thread;
    int epoll_fd;           /* owns */
    int wake_fd;            /* owns: see os/wakeup.h */
    _Atomic bool is_ending; /* set before the thread is woken for the last time */

    /* The thread's own. */
    struct list links; /* of struct tls_link */
    struct list busy;  /* of struct tls_link: those that have something to do now */
    nsec_t sweep_at;   /* when sweep() looks through @links next */

    pthread_mutex_t lock; /* guards @handed */
    struct list handed;   /* of struct tls_link: on their way to the thread */
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
    struct list handed;
    struct tls_link *l;
    struct tls_link *tmp;

    list_init(&handed);
    (void)pthread_mutex_lock(&f->lock);
    list_foreach_safe(l, tmp, &f->handed, link) {
        list_remove(&l->link);
        list_add_tail(&handed, &l->link);
    }
    (void)pthread_mutex_unlock(&f->lock);
    list_foreach_safe(l, tmp, &handed, link) {
        list_remove(&l->link);
        list_add_tail(&f->links, &l->link);
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

static void *run(void *arg)
{
    struct tls_front *f = arg;
    struct epoll_event events[EVENTS_MAX];

    while (!atomic_load(&f->is_ending)) {
        int patience_ms = list_is_empty(&f->links) ? -1 : (int)(SWEEP_EACH / NSEC_PER_MSEC);
        int n =
            epoll_wait(f->epoll_fd, events, EVENTS_MAX, list_is_empty(&f->busy) ? patience_ms : 0);
        nsec_t now = clock_now();

        /* A link has two descriptors, and working on it may free it. So its events are noted first.
         */
        for (int i = 0; i < n; i++) {
            struct tls_link *l = events[i].data.ptr;

            if (l && list_is_empty(&l->busy))
                list_add_tail(&f->busy, &l->busy);
        }
        work_on_busy(f, now);
        if (wakeup_clear(f->wake_fd))
            take_handed(f, now);
        sweep(f, now);
    }
    return NULL;
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

static int start(struct tls_front *f, struct err *e)
{
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};
    int r;

    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->wake_fd = wakeup_open();
    if (f->epoll_fd < 0 || f->wake_fd < 0 ||
        epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->wake_fd, &wake) < 0)
        return err_set(e, -errno, "the TLS thread does not start: %s", strerror(errno));
    r = thread_start(&f->thread, "tls", -1, run, f);
    if (r < 0)
        return err_set(e, r, "the TLS thread does not start: %s", strerror(-r));
    f->has_thread = true;
    return 0;
}

int tls_front_new(struct tls_front **ret, const struct identity *id, struct err *e)
{
    struct tls_front *f = calloc(1, sizeof(*f));
    int r;

    if (!f)
        return err_set(e, -ENOMEM, "no memory for TLS");
    f->epoll_fd = -1;
    f->wake_fd = -1;
    list_init(&f->links);
    list_init(&f->busy);
    list_init(&f->handed);
    (void)pthread_mutex_init(&f->lock, NULL);
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

static void free_all(struct list *links)
{
    struct tls_link *l;
    struct tls_link *tmp;

    list_foreach_safe(l, tmp, links, link)
        tls_link_free(l);
}

struct tls_front *tls_front_free(struct tls_front *f)
{
    if (!f)
        return NULL;
    if (f->has_thread) {
        atomic_store(&f->is_ending, true);
        wakeup_signal(f->wake_fd);
        (void)pthread_join(f->thread, NULL);
    }
    free_all(&f->links);
    free_all(&f->handed);
    closep(&f->epoll_fd);
    closep(&f->wake_fd);
    SSL_CTX_free(f->ctx);
    (void)pthread_mutex_destroy(&f->lock);
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
    (void)pthread_mutex_lock(&f->lock);
    list_add_tail(&f->handed, &l->link);
    (void)pthread_mutex_unlock(&f->lock);
    wakeup_signal(f->wake_fd);
    *ret_fd = pair[1];
    return 0;
}
