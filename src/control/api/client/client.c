/*
 * client.c - calls that wait for their answer, and calls and streams on a libuv loop.
 *
 * Theory of operation of the loop. libcurl's multi interface says which sockets it wants
 * watched and when it wants to be woken; each socket becomes a uv_poll, and the
 * time a uv_timer. libcurl must not be called from inside its own callbacks, and the
 * line callback of a stream is called from one. So what is started or
 * cancelled there is only noted, and settle() does it once libcurl has returned.
 */
#include "api/client/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <uv.h>

#include "api/client/client_exchange.h"
#include "api/content/token.h"
#include "base/addr.h"
#include "base/containers.h"
#include "base/err.h"
#include "net/socket/tcp.h"

/* ==== which proxy leads to the hub =========================================================== */

/* What follows the scheme; NULL when the scheme is neither http nor https. */
static const char *skip_scheme(const char *text)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (unsigned i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return text + strlen(schemes[i]);
    return strstr(text, "://") ? NULL : text;
}

/* Where HOST:PORT begins, behind scheme, user and password; a path may follow it. NULL: as
 * skip_scheme(). */
static const char *find_address(const char *text)
{
    const char *rest = skip_scheme(text);
    const char *at = rest ? strrchr(rest, '@') : NULL;

    return at ? at + 1 : rest;
}

const char *proxy_name(const char *text, char buf[static PROXY_TEXT_MAX])
{
    const char *address = find_address(text);

    (void)snprintf(buf, PROXY_TEXT_MAX, "%s", address ? address : "?");
    buf[strcspn(buf, "/")] = '\0';
    return buf;
}

int proxy_check(const char *text, struct err *e)
{
    char name[PROXY_TEXT_MAX];
    struct err why = ERR_NULL;
    bool printable = true;

    for (const char *p = text; *p; p++)
        printable &= *p > ' ' && *p < 0x7f;
    if (printable && !skip_scheme(text))
        return err_set(e, -EINVAL, "the proxy's scheme \"%.*s\" is neither http nor https",
            (int)strcspn(text, ":"), text);
    if (strlen(text) >= PROXY_TEXT_MAX || !printable || !find_address(text) ||
        host_port_check(proxy_name(text, name), &why) != 0)
        return err_set(e, -EINVAL,
            "the proxy \"%s\" is not http://[USER:PASSWORD@]HOST:PORT, of at most %d characters",
            proxy_name(text, name), PROXY_TEXT_MAX - 1);
    return 0;
}

/* ---- the environment ------------------------------------------------------------------------ */

/* Is @host excepted by one word of the list: an address, a block of them, or the end of a name? */
static bool is_meant(const char *word, const char *host)
{
    size_t n_word;
    size_t n_host = strlen(host);
    struct ip_prefix block;
    struct ip_addr addr;

    if (strcmp(word, "*") == 0)
        return true;
    if (ip_addr_parse(&addr, host, NULL) == 0)
        return ip_prefix_parse(&block, word, NULL) == 0 && ip_prefix_has(&block, &addr);
    while (*word == '.')
        word++;
    n_word = strlen(word);
    if (n_word == 0 || n_word > n_host || strcasecmp(host + n_host - n_word, word) != 0)
        return false;
    return n_word == n_host || host[n_host - n_word - 1] == '.';
}

/* The host of "HOST:PORT" or "[v6]:PORT". */
static void host_of(const char *address, char host[static TOKEN_API_MAX + 1])
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : strlen(address);

    if (address[0] == '[' && len >= 2 && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    (void)snprintf(host, TOKEN_API_MAX + 1, "%.*s", (int)len, address);
}

bool proxy_is_excepted(const char *list, const char *address)
{
    char host[TOKEN_API_MAX + 1];
    char word[TOKEN_API_MAX + 1];

    host_of(address, host);
    while (*list) {
        size_t len = strcspn(list, ", ");

        if (len > 0 && len < sizeof(word)) {
            memcpy(word, list, len);
            word[len] = '\0';
            if (is_meant(word, host))
                return true;
        }
        list += len;
        list += strspn(list, ", ");
    }
    return false;
}

static const char *variable(const char *lower, const char *upper)
{
    const char *value = getenv(lower);

    if (!value || !*value)
        value = getenv(upper);
    return value && *value ? value : NULL;
}

int proxy_from_environment(const char *address, char ret[static PROXY_TEXT_MAX], struct err *e)
{
    const char *proxy = variable("https_proxy", "HTTPS_PROXY");
    const char *except = variable("no_proxy", "NO_PROXY");
    int r;

    if (!proxy || (except && proxy_is_excepted(except, address)))
        return PROXY_E_NONE;
    r = proxy_check(proxy, e);
    if (r != 0) {
        (void)err_prefix(e, "https_proxy");
        return r;
    }
    (void)snprintf(ret, PROXY_TEXT_MAX, "%s", proxy);
    return 0;
}

/* ==== calls that wait for their answer, and calls and streams on a libuv loop ================ */

/* See CLIENT_WATCH_PROBE_S. */
#define WATCH_REPEAT_S 1L
#define WATCH_REPEATS  60

void client_answer_deinit(struct client_answer *a)
{
    json_decref(a->body);
    *a = (struct client_answer)CLIENT_ANSWER_NULL;
}

int client_call(const struct client_target *target, const char *method, const char *path,
    const json_t *body, unsigned timeout_ms, struct client_answer *ret, struct err *e)
{
    struct client_exchange x;
    int r = client_exchange_init(&x, target, method, path, body, e);

    if (r != 0)
        return r;
    curl_easy_setopt(x.http.easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    r = client_exchange_end(&x, curl_easy_perform(x.http.easy), ret, e);
    client_exchange_deinit(&x);
    return r;
}

/* ---- calls on a loop ------------------------------------------------------------------------ */

struct client_loop {
    uv_loop_t *loop;      /* pins */
    CURLM *multi;         /* owns */
    uv_timer_t timer;     /* when libcurl wants to be woken */
    struct list requests; /* all of them */
    unsigned inside;      /* depth of calls into libcurl */
};

struct client_request {
    struct list link;         /* in the loop's requests */
    struct client_loop *cl;   /* pins */
    struct client_exchange x; /* the HTTP part */
    client_line_fn line;      /* of a stream; NULL for a call */
    client_done_fn done;      /* at the end */
    void *ctx;                /* pins: for both */
    curl_socket_t fd;         /* libcurl's, while it watches one for this; else CURL_SOCKET_BAD */
    bool added;               /* libcurl knows it */
    bool cancelled;           /* to be released without calling its callbacks */
};

/** A socket of libcurl's. */
struct watched {
    uv_poll_t poll;         /* the handle; its close frees this */
    struct client_loop *cl; /* pins */
    curl_socket_t fd;       /* libcurl's */
};

static void request_free(struct client_request *rq)
{
    list_remove(&rq->link);
    if (rq->added)
        curl_multi_remove_handle(rq->cl->multi, rq->x.http.easy);
    client_exchange_deinit(&rq->x);
    free(rq);
}

static void finish(struct client_request *rq, CURLcode code)
{
    struct client_answer answer = CLIENT_ANSWER_NULL;
    client_done_fn done = rq->done;
    void *ctx = rq->ctx;
    struct err e = ERR_NULL;
    int r;

    if (rq->line && http_exchange_status(&rq->x.http) == 200)
        rq->x.http.got.len = 0; /* the beginning of a line that was cut off */
    r = client_exchange_end(&rq->x, code, &answer, &e);
    request_free(rq);
    done(ctx, r, &answer, &e);
    client_answer_deinit(&answer);
}

static int request_add(struct client_request *rq, struct err *e)
{
    if (curl_multi_add_handle(rq->cl->multi, rq->x.http.easy) != CURLM_OK)
        return err_set(e, -ENOMEM, "no memory for a request");
    rq->added = true;
    return 0;
}

/* libcurl has returned: does what had to wait for that, then finishes the requests that have ended.
 */
static void settle(struct client_loop *cl)
{
    struct client_request *rq;
    struct client_request *tmp;
    CURLMsg *m;
    int left;

    if (cl->inside > 0)
        return;
    list_foreach_safe(rq, tmp, &cl->requests, link) {
        if (rq->cancelled)
            request_free(rq);
        else if (!rq->added)
            /* If there is no memory for it, the next settle() tries again. */
            (void)request_add(rq, NULL);
    }
    while ((m = curl_multi_info_read(cl->multi, &left))) {
        CURLcode code = m->data.result;
        void *x = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
        finish(container_of(x, struct client_request, x.http), code);
    }
}

static void act(struct client_loop *cl, curl_socket_t fd, int events)
{
    int running;

    cl->inside++;
    (void)curl_multi_socket_action(cl->multi, fd, events, &running);
    cl->inside--;
    settle(cl);
}

static void on_timer(uv_timer_t *timer)
{
    act(container_of(timer, struct client_loop, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct watched *w = container_of(poll, struct watched, poll);
    int mask = 0;

    if (status < 0)
        mask = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        mask |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        mask |= CURL_CSELECT_OUT;
    act(w->cl, w->fd, mask);
}

static void on_watched_closed(uv_handle_t *h)
{
    free(container_of((uv_poll_t *)h, struct watched, poll));
}

/* libcurl: call me in @timeout_ms, or never. */
static int want_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct client_loop *cl = ctx;

    if (timeout_ms < 0)
        uv_timer_stop(&cl->timer);
    else
        uv_timer_start(&cl->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

/* Notes a request's socket; CURLINFO_ACTIVESOCKET would tell it only at the end of the request. */
static void note_socket(CURL *easy, curl_socket_t fd, int what)
{
    struct client_request *rq;
    void *x = NULL;

    /* libcurl closes idle connections with a handle of its own. */
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &x) != CURLE_OK || !x)
        return;
    rq = container_of(x, struct client_request, x.http);
    if (what != CURL_POLL_REMOVE)
        rq->fd = fd;
    else if (rq->fd == fd)
        rq->fd = CURL_SOCKET_BAD;
}

/* libcurl: watch this socket, or stop watching it. */
static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    struct client_loop *cl = ctx;
    struct watched *w = socket_ctx;
    int events = 0;

    note_socket(easy, fd, what);
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            curl_multi_assign(cl->multi, fd, NULL);
            uv_close((uv_handle_t *)&w->poll, on_watched_closed);
        }
        return 0;
    }
    if (!w) {
        w = calloc(1, sizeof(*w));
        if (!w)
            return -1;
        w->cl = cl;
        w->fd = fd;
        if (uv_poll_init(cl->loop, &w->poll, fd) != 0) {
            free(w);
            return -1;
        }
        curl_multi_assign(cl->multi, fd, w);
    }
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&w->poll, events, on_socket) == 0 ? 0 : -1;
}

int client_loop_new(struct client_loop **ret, struct uv_loop_s *loop, struct err *e)
{
    struct client_loop *cl = calloc(1, sizeof(*cl));

    if (cl)
        cl->multi = http_exchange_multi();
    if (!cl || !cl->multi) {
        free(cl);
        return err_set(e, -ENOMEM, "no memory for a client");
    }
    cl->loop = loop;
    list_init(&cl->requests);
    uv_timer_init(loop, &cl->timer);
    curl_multi_setopt(cl->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(cl->multi, CURLMOPT_TIMERDATA, cl);
    curl_multi_setopt(cl->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(cl->multi, CURLMOPT_SOCKETDATA, cl);
    *ret = cl;
    return 0;
}

static void on_loop_closed(uv_handle_t *h)
{
    free(container_of((uv_timer_t *)h, struct client_loop, timer));
}

struct client_loop *client_loop_free(struct client_loop *cl)
{
    struct client_request *rq;
    struct client_request *tmp;

    if (!cl)
        return NULL;
    assert(cl->inside == 0);
    list_foreach_safe(rq, tmp, &cl->requests, link)
        request_free(rq);
    /* Closes the connections that are left, each through want_socket(). */
    curl_multi_cleanup(cl->multi);
    uv_close((uv_handle_t *)&cl->timer, on_loop_closed);
    return NULL;
}

static int request_new(struct client_request **ret, struct client_loop *cl,
    const struct client_target *target, const char *method, const char *path, const json_t *body,
    struct err *e)
{
    struct client_request *rq = calloc(1, sizeof(*rq));
    int r;

    if (!rq)
        return err_set(e, -ENOMEM, "no memory for a request");
    r = client_exchange_init(&rq->x, target, method, path, body, e);
    if (r != 0) {
        free(rq);
        return r;
    }
    rq->cl = cl;
    rq->fd = CURL_SOCKET_BAD;
    list_add_tail(&cl->requests, &rq->link);
    *ret = rq;
    return 0;
}

/* Hands the request to libcurl: now, or in settle() when this is called from within libcurl. */
static int begin(struct client_request *rq, struct client_request **ret, struct err *e)
{
    int r = rq->cl->inside > 0 ? 0 : request_add(rq, e);

    if (r != 0) {
        request_free(rq);
        return r;
    }
    if (ret)
        *ret = rq;
    return 0;
}

int client_start(struct client_loop *cl, const struct client_target *target, const char *method,
    const char *path, const json_t *body, unsigned timeout_ms, client_done_fn done, void *ctx,
    struct client_request **ret, struct err *e)
{
    struct client_request *rq = NULL;
    int r = request_new(&rq, cl, target, method, path, body, e);

    if (r != 0)
        return r;
    rq->done = done;
    rq->ctx = ctx;
    curl_easy_setopt(rq->x.http.easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    return begin(rq, ret, e);
}

static bool on_line(void *ctx, const char *line, size_t len)
{
    struct client_request *rq = ctx;

    rq->line(rq->ctx, line, len);
    return !rq->cancelled;
}

static size_t on_stream(char *p, size_t size, size_t n, void *ctx)
{
    struct client_request *rq = ctx;
    struct http_exchange *http = &rq->x.http;
    bool ok;

    /* By a callback of another request in the same call into libcurl. */
    if (rq->cancelled)
        return 0;
    ok = http_exchange_status(http) == 200
             ? http_exchange_take_lines(http, p, size * n, on_line, rq)
             : http_exchange_take(http, p, size * n);
    return ok ? size * n : 0;
}

int client_watch(struct client_loop *cl, const struct client_target *target, const char *path,
    unsigned connect_ms, size_t line_max, client_line_fn line, client_done_fn done, void *ctx,
    struct client_request **ret, struct err *e)
{
    struct client_request *rq = NULL;
    int r = request_new(&rq, cl, target, "GET", path, NULL, e);

    if (r != 0)
        return r;
    rq->line = line;
    rq->done = done;
    rq->ctx = ctx;
    rq->x.http.max = line_max;
    curl_easy_setopt(rq->x.http.easy, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(rq->x.http.easy, CURLOPT_WRITEDATA, rq);
    curl_easy_setopt(rq->x.http.easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    /* A hub sends it packed if it can. "": all that this libcurl unpacks. */
    curl_easy_setopt(rq->x.http.easy, CURLOPT_ACCEPT_ENCODING, "");
    /*
     * A stream only receives. Over the overlay something has to be sent as well: WireGuard notices
     * only then that the other end was restarted and has lost the session.
     */
    curl_easy_setopt(rq->x.http.easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(rq->x.http.easy, CURLOPT_TCP_KEEPIDLE, (long)CLIENT_WATCH_PROBE_S);
    curl_easy_setopt(rq->x.http.easy, CURLOPT_TCP_KEEPINTVL, WATCH_REPEAT_S);
    rq->x.n_probes = WATCH_REPEATS;
    return begin(rq, ret, e);
}

void client_set_probes(const struct client_request *rq, unsigned idle_s)
{
    const int idle = (int)idle_s;

    if (rq->fd != CURL_SOCKET_BAD)
        (void)setsockopt(rq->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}

bool client_traffic(const struct client_request *rq, struct tcp_traffic *ret)
{
    return rq->fd != CURL_SOCKET_BAD && tcp_traffic_read(rq->fd, ret);
}

struct client_request *client_cancel(struct client_request *rq)
{
    if (!rq)
        return NULL;
    rq->cancelled = true;
    if (rq->cl->inside == 0)
        request_free(rq);
    return NULL;
}
