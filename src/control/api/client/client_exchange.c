/* client_exchange.c - see client_exchange.h. */
#include "api/client/client_exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "net/socket/tcp.h"
#include "os/clock.h"
#include "wire/member_proof.h"

/* A connection begins. libcurl 7.88 has no option for the number of probes. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const struct client_exchange *x = ctx;

    if (x->is_overlay)
        tcp_mark_control(fd);
    if (x->n_probes > 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &x->n_probes, sizeof(x->n_probes));
    return CURL_SOCKOPT_OK;
}

/* Takes only the characters of hosts, addresses and ports, so that nothing else becomes part of the
 * URL. */
static int check_address(const char *address, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%";

    if (address[0] && strlen(address) <= 300 && address[strspn(address, allowed)] == '\0')
        return 0;
    return err_set(e, -EINVAL, "\"%.80s\" is not HOST:PORT", address);
}

static int set_request(struct client_exchange *x, const struct client_target *t, const char *method,
    const char *path, struct err *e)
{
    const char *scheme = t->access == CLIENT_ACCESS_HTTPS ? "https" : "http";
    const char *host = t->access == CLIENT_ACCESS_UNIX ? "localhost" : t->address;
    _cleanup_(freep) char *url = NULL;

    if (t->access != CLIENT_ACCESS_UNIX && check_address(t->address, e) != 0)
        return -EINVAL;
    if (asprintf(&url, "%s://%s%s", scheme, host, path) < 0) {
        url = NULL; /* undefined after a failure */
        return err_set(e, -ENOMEM, "no memory for a request");
    }
    if (!http_exchange_init(&x->http, method, url, CLIENT_ANSWER_MAX) ||
        (t->access == CLIENT_ACCESS_UNIX &&
            curl_easy_setopt(x->http.easy, CURLOPT_UNIX_SOCKET_PATH, t->address) != CURLE_OK))
        return err_set(e, -ENOMEM, "no memory for a request");
    curl_easy_setopt(x->http.easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(x->http.easy, CURLOPT_SOCKOPTDATA, x);
    return 0;
}

static int set_access(struct client_exchange *x, const struct client_target *t, struct err *e)
{
    char text[BASE64_SIZE(sizeof(t->pin.b)) + 10] = "sha256//";
    char device[64];
    CURLcode code = CURLE_OK;

    if (t->access == CLIENT_ACCESS_HTTPS) {
        /* Nothing but the pin is trusted. libcurl checks it also when it verifies nothing else. */
        base64_encode(t->pin.b, sizeof(t->pin.b), text + strlen(text));
        curl_easy_setopt(x->http.easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(x->http.easy, CURLOPT_SSL_VERIFYHOST, 0L);
        code = curl_easy_setopt(x->http.easy, CURLOPT_PINNEDPUBLICKEY, text);
        if (code == CURLE_OK && t->proxy) {
            curl_easy_setopt(x->http.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
            curl_easy_setopt(x->http.easy, CURLOPT_NOPROXY, "");
            code = curl_easy_setopt(x->http.easy, CURLOPT_PROXY, t->proxy);
        }
    } else if (t->access == CLIENT_ACCESS_OVERLAY && t->interface) {
        (void)snprintf(device, sizeof(device), "if!%.20s", t->interface);
        code = curl_easy_setopt(x->http.easy, CURLOPT_INTERFACE, device);
    }
    return code == CURLE_OK ? 0 : err_set(e, -ENOMEM, "no memory for a request");
}

/* Adds "Authorization" with the member's proof. It is about the whole request: set the body before.
 */
static bool add_proof(
    struct client_exchange *x, const struct client_target *t, const char *method, const char *path)
{
    static const char name[] = "Authorization: ";
    char bare[MEMBER_PROOF_PATH_MAX + 1];
    struct member_proof_request rq = {
        .method = method, .path = bare, .body = x->sent, .body_len = x->sent ? strlen(x->sent) : 0};
    char line[sizeof(name) + MEMBER_PROOF_TEXT_MAX];
    /* The proof is about the path without its query. */
    int len = snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(path, "?"), path);

    memcpy(line, name, sizeof(name));
    return len < (int)sizeof(bare) && member_proof_sign(t->signer, &rq, line + sizeof(name) - 1) &&
           http_exchange_add_header(&x->http, line);
}

static int set_headers(struct client_exchange *x, const struct client_target *t, const char *method,
    const char *path, struct err *e)
{
    char line[600];
    bool ok = http_exchange_add_header(&x->http, "Content-Type: application/json");

    if (ok && t->bearer) {
        (void)snprintf(line, sizeof(line), "Authorization: Bearer %.500s", t->bearer);
        ok = http_exchange_add_header(&x->http, line);
        secret_wipe(line, sizeof(line));
    }
    if (ok && t->signer)
        ok = add_proof(x, t, method, path);
    return ok ? 0 : err_set(e, -ENOMEM, "no memory for a request");
}

static int set_body(struct client_exchange *x, const json_t *body, struct err *e)
{
    if (!body)
        return 0;
    x->sent = body_format(body);
    if (!x->sent)
        return err_set(e, -ENOMEM, "no memory for a request");
    curl_easy_setopt(x->http.easy, CURLOPT_POSTFIELDSIZE, (long)strlen(x->sent));
    curl_easy_setopt(x->http.easy, CURLOPT_POSTFIELDS, x->sent);
    return 0;
}

int client_exchange_init(struct client_exchange *x, const struct client_target *target,
    const char *method, const char *path, const json_t *body, struct err *e)
{
    int r;

    *x = (struct client_exchange){
        .address = strdup(target->address), .is_overlay = target->access == CLIENT_ACCESS_OVERLAY};
    r = x->address ? set_request(x, target, method, path, e)
                   : err_set(e, -ENOMEM, "no memory for a request");
    if (r == 0)
        r = set_access(x, target, e);
    if (r == 0)
        r = set_body(x, body, e);
    if (r == 0)
        r = set_headers(x, target, method, path, e);
    if (r != 0)
        client_exchange_deinit(x);
    return r;
}

void client_exchange_deinit(struct client_exchange *x)
{
    http_exchange_deinit(&x->http);
    if (x->sent)
        secret_wipe(x->sent, strlen(x->sent));
    free(x->sent);
    free(x->address);
    *x = (struct client_exchange){.sent = NULL};
}

/* A date beyond it is none: twice as many seconds still have a number of nanoseconds. */
#define DATE_MAX (NSEC_NEVER / NSEC_PER_SEC / 2)

/* The date that the server has put above its answer; 0: none that can be read. */
static int64_t read_date(struct client_exchange *x)
{
    struct curl_header *date;
    time_t t;

    if (curl_easy_header(x->http.easy, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK)
        return 0;
    t = curl_getdate(date->value, NULL);
    return t > 0 && (int64_t)t <= DATE_MAX ? (int64_t)t : 0;
}

/* The server has answered: sets @ret, and turns the status into a result. */
static int take_answer(struct client_exchange *x, struct client_answer *ret, struct err *e)
{
    struct client_answer a = CLIENT_ANSWER_NULL;
    const char *sentence;
    const char *type = NULL;
    int status = http_exchange_status(&x->http);
    int r;

    curl_easy_getinfo(x->http.easy, CURLINFO_CONTENT_TYPE, &type);
    a.status = status;
    a.date_s = read_date(x);
    if (status < 300 && type && strncmp(type, "text/html", 9) == 0) {
        a.body = json_stringn(str_text(&x->http.got), x->http.got.len);
        if (!a.body)
            return err_set(e, CLIENT_E_UNREACHABLE, "the page of \"%s\" is no UTF-8", x->address);
    } else if (x->http.got.len > 0) {
        r = body_parse(&a.body, x->http.got.text, x->http.got.len, e);
        if (r != 0 && status < 300)
            return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer as a weft does: %s",
                x->address, e ? e->text : "not JSON");
    }
    *ret = a;
    if (status >= 200 && status < 300)
        return 0;
    sentence = body_refusal_text(a.body);
    if (sentence)
        return err_set(e, CLIENT_E_REFUSED, "%s", sentence);
    return err_set(e, CLIENT_E_REFUSED, "\"%s\" answered %d", x->address, status);
}

/* Did the exchange fail for a reason that may be over soon? Not where a proxy refuses, nor where
 * something else than a weft answers. */
static bool may_pass(const struct client_exchange *x, CURLcode code)
{
    static const CURLcode passing[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
        CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT};
    long proxy_status = 0;

    curl_easy_getinfo(x->http.easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    if (proxy_status >= 400 && proxy_status < 500)
        return false;
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
        if (code == passing[i])
            return true;
    return false;
}

int client_exchange_end(
    struct client_exchange *x, CURLcode code, struct client_answer *ret, struct err *e)
{
    if (code == CURLE_OK)
        return take_answer(x, ret, e);
    *ret = (struct client_answer){
        .is_lost = http_exchange_was_sent(&x->http), .may_pass = may_pass(x, code)};
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        return err_set(e, CLIENT_E_UNTRUSTED,
            "\"%s\" does not have the key that is pinned: it is another machine, or somebody sits "
            "in between",
            x->address);
    if (code == CURLE_OUT_OF_MEMORY || x->http.got.failed)
        return err_set(e, -ENOMEM, "no memory to ask \"%s\"", x->address);
    if (x->http.is_too_long)
        return err_set(e, CLIENT_E_UNREACHABLE, "the answer of \"%s\" is longer than %zu bytes",
            x->address, x->http.max);
    return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer: %s", x->address,
        http_exchange_reason(&x->http, code));
}

/* ==== a connection that becomes bytes both ways ============================================== */

/* libcurl makes the connection, with its proxy and TLS. */

/* How often is_unwanted() is asked while this waits. */
#define ASK_EACH_MS 100

/* Room for the head of an answer; the sentence of a refusal has to fit behind it. */
#define HEAD_MAX 8192

/* How long bytes may be unacknowledged before the kernel ends the connection. */
#define TCP_GIVE_UP_MS 15000

/* Most unsent bytes that the kernel takes: more would delay everything behind them. */
#define UNSENT_MAX (256 << 10)

struct client_upgrade {
    struct client_exchange x; /* owns the connection */
    int fd;                   /* libcurl's */
    char head[HEAD_MAX + 1];  /* the answer's first bytes, zero-terminated */
    size_t len;               /* how many bytes of @head there are */
    size_t taken;             /* how many of them are used: the head, and what was read already */
};

/* ---- bytes ---------------------------------------------------------------------------------- */

static ssize_t read_bytes(struct client_upgrade *u, void *buf, size_t cap)
{
    size_t n = 0;
    CURLcode code = curl_easy_recv(u->x.http.easy, buf, cap, &n);

    if (code == CURLE_OK)
        return (ssize_t)n;
    return code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

ssize_t client_upgrade_read(struct client_upgrade *u, void *buf, size_t cap)
{
    size_t early = u->len - u->taken; /* came together with the answer's head */

    if (early == 0)
        return read_bytes(u, buf, cap);
    if (early > cap)
        early = cap;
    memcpy(buf, u->head + u->taken, early);
    u->taken += early;
    return (ssize_t)early;
}

ssize_t client_upgrade_write(struct client_upgrade *u, const void *buf, size_t len)
{
    size_t n = 0;
    CURLcode code = curl_easy_send(u->x.http.easy, buf, len, &n);

    if (code == CURLE_OK)
        return (ssize_t)n;
    return code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

int client_upgrade_fd(const struct client_upgrade *u)
{
    return u->fd;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* libcurl asks while it connects; not 0 makes it stop. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct client_upgrade_options *opt = ctx;

    return opt->is_unwanted(opt->ctx) ? 1 : 0;
}

static int connect_it(
    struct client_upgrade *u, const struct client_upgrade_options *opt, struct err *e)
{
    struct client_answer none = CLIENT_ANSWER_NULL;
    curl_socket_t fd = CURL_SOCKET_BAD;
    int give_up = TCP_GIVE_UP_MS;
    int unsent = UNSENT_MAX;
    CURLcode code;

    curl_easy_setopt(u->x.http.easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(u->x.http.easy, CURLOPT_TIMEOUT_MS, (long)opt->timeout_ms);
    curl_easy_setopt(u->x.http.easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(u->x.http.easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(u->x.http.easy, CURLOPT_XFERINFODATA, (void *)(uintptr_t)opt);
    code = curl_easy_perform(u->x.http.easy);
    if (code != CURLE_OK)
        return client_exchange_end(&u->x, code, &none, e);
    curl_easy_setopt(u->x.http.easy, CURLOPT_NOPROGRESS, 1L);
    if (curl_easy_getinfo(u->x.http.easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd < 0)
        return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" has closed the connection", u->x.address);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof(give_up));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    u->fd = fd;
    return 0;
}

/* Waits until the socket is ready for @events. CLIENT_E_UNREACHABLE with words at the deadline, or
 * when the connection is not wanted any more. */
static int wait_for(const struct client_upgrade *u, const struct client_upgrade_options *opt,
    short events, nsec_t deadline, struct err *e)
{
    struct pollfd p = {.fd = u->fd, .events = events};

    while (poll(&p, 1, ASK_EACH_MS) <= 0)
        if (clock_now() >= deadline || opt->is_unwanted(opt->ctx))
            return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer in time", u->x.address);
    return 0;
}

static int send_request(struct client_upgrade *u, const struct client_upgrade_options *opt,
    nsec_t deadline, struct err *e)
{
    char text[1024];
    int len = snprintf(text, sizeof(text),
        "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s%s%s\r\n",
        opt->path, u->x.address, opt->protocol, opt->authorization ? "Authorization: " : "",
        opt->authorization ? opt->authorization : "", opt->authorization ? "\r\n" : "");
    int sent = 0;
    int r = 0;

    if (len >= (int)sizeof(text))
        r = err_set(e, -EINVAL, "the request for \"%s\" is too long", u->x.address);
    while (r == 0 && sent < len) {
        ssize_t n = client_upgrade_write(u, text + sent, (size_t)(len - sent));

        if (n >= 0)
            sent += (int)n;
        else if (n == -EAGAIN)
            r = wait_for(u, opt, POLLOUT, deadline, e);
        else
            r = err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" has closed the connection", u->x.address);
    }
    secret_wipe(text, sizeof(text));
    return r;
}

/* Reads more of the answer. 0; CLIENT_E_REFUSED, without words, when there is no more; or as
 * wait_for(). */
static int read_more(struct client_upgrade *u, const struct client_upgrade_options *opt,
    nsec_t deadline, struct err *e)
{
    for (;;) {
        ssize_t n = read_bytes(u, u->head + u->len, HEAD_MAX - u->len);
        int r;

        if (n > 0) {
            u->len += (size_t)n;
            u->head[u->len] = '\0';
            return 0;
        }
        if (n != -EAGAIN)
            return CLIENT_E_REFUSED;
        r = wait_for(u, opt, POLLIN, deadline, e);
        if (r != 0)
            return r;
    }
}

/* The server has refused: takes its sentence from the body, which ends with the connection. */
static int describe_refusal(struct client_upgrade *u, const struct client_upgrade_options *opt,
    nsec_t deadline, const char *body, struct err *e)
{
    struct err ignored = ERR_NULL;
    json_t *json = NULL;
    const char *sentence = NULL;
    uint64_t status = 0;
    char code[4] = "";

    while (u->len < HEAD_MAX && read_more(u, opt, deadline, &ignored) == 0)
        ;
    if (body_parse(&json, body, strlen(body), &ignored) == 0)
        sentence = body_refusal_text(json);
    if (strncmp(u->head, "HTTP/1.", 7) == 0 && strlen(u->head) > 12)
        memcpy(code, u->head + 9, 3);
    (void)parse_u64(&status, code, 100, 599, "status", NULL);
    if (sentence)
        (void)err_set(e, CLIENT_E_REFUSED, "%s", sentence);
    else
        (void)err_set(e, CLIENT_E_REFUSED, "\"%s\" answered %u", u->x.address, (unsigned)status);
    json_decref(json);
    return CLIENT_E_REFUSED;
}

static int read_answer(struct client_upgrade *u, const struct client_upgrade_options *opt,
    nsec_t deadline, struct err *e)
{
    const char *end = NULL;

    while (!end) {
        int r = u->len < HEAD_MAX ? read_more(u, opt, deadline, e) : CLIENT_E_REFUSED;

        if (r == CLIENT_E_REFUSED)
            return err_set(
                e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer as a weft does", u->x.address);
        if (r != 0)
            return r;
        end = strstr(u->head, "\r\n\r\n");
    }
    end += 4;
    if (strncmp(u->head, "HTTP/1.1 101 ", 13) != 0)
        return describe_refusal(u, opt, deadline, end, e);
    u->taken = (size_t)(end - u->head);
    return 0;
}

int client_upgrade_open(
    struct client_upgrade **ret, const struct client_upgrade_options *opt, struct err *e)
{
    nsec_t deadline = clock_now() + (nsec_t)opt->timeout_ms * NSEC_PER_MSEC;
    struct client_upgrade *u = calloc(1, sizeof(*u));
    int r;

    if (!u)
        return err_set(e, -ENOMEM, "no memory for a connection");
    r = client_exchange_init(&u->x, opt->target, "GET", opt->path, NULL, e);
    if (r != 0) {
        free(u);
        return r;
    }
    r = connect_it(u, opt, e);
    if (r == 0)
        r = send_request(u, opt, deadline, e);
    if (r == 0)
        r = read_answer(u, opt, deadline, e);
    if (r != 0) {
        client_upgrade_close(u);
        return r;
    }
    *ret = u;
    return 0;
}

struct client_upgrade *client_upgrade_close(struct client_upgrade *u)
{
    if (u)
        client_exchange_deinit(&u->x);
    free(u);
    return NULL;
}
