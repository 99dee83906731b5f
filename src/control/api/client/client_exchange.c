/* client_exchange.c - see client_exchange.h. */
#include "api/client/client_exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "net/socket/tcp.h"
#include "wire/member_proof.h"

bool client_buffer_add(struct client_buffer *b, const void *p, size_t len, size_t max)
{
    if (len > max - b->len)
        return false;
    if (b->len + len > b->cap) {
        size_t cap = b->cap ? b->cap : 4096;
        char *bigger;

        while (cap < b->len + len)
            cap *= 2;
        bigger = realloc(b->p, cap);
        if (!bigger)
            return false;
        b->p = bigger;
        b->cap = cap;
    }
    memcpy(b->p + b->len, p, len);
    b->len += len;
    return true;
}

static size_t on_answer(char *p, size_t size, size_t n, void *ctx)
{
    struct client_exchange *x = ctx;

    if (client_buffer_add(&x->got, p, size * n, x->max))
        return size * n;
    x->too_long = true;
    return 0;
}

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

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    /* Without memory the first curl_easy_init() fails too, and that is handled. */
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
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

static int set_url(
    struct client_exchange *x, const struct client_target *t, const char *path, struct err *e)
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
    if (curl_easy_setopt(x->easy, CURLOPT_URL, url) != CURLE_OK)
        return err_set(e, -ENOMEM, "no memory for a request");
    if (t->access == CLIENT_ACCESS_UNIX &&
        curl_easy_setopt(x->easy, CURLOPT_UNIX_SOCKET_PATH, t->address) != CURLE_OK)
        return err_set(e, -ENOMEM, "no memory for a request");
    return 0;
}

static CURLcode set_proxy(struct client_exchange *x, const char *proxy)
{
    curl_easy_setopt(x->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(x->easy, CURLOPT_NOPROXY, "");
    return curl_easy_setopt(x->easy, CURLOPT_PROXY, proxy);
}

static int set_access(struct client_exchange *x, const struct client_target *t, struct err *e)
{
    char text[BASE64_ROOM(sizeof(t->pin.b)) + 10] = "sha256//";
    char device[64];
    CURLcode code = CURLE_OK;

    if (t->access == CLIENT_ACCESS_HTTPS) {
        /* Nothing but the pin is trusted. libcurl checks it also when it verifies nothing else. */
        base64_encode(t->pin.b, sizeof(t->pin.b), text + strlen(text));
        curl_easy_setopt(x->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(x->easy, CURLOPT_SSL_VERIFYHOST, 0L);
        code = curl_easy_setopt(x->easy, CURLOPT_PINNEDPUBLICKEY, text);
        if (code == CURLE_OK && t->proxy)
            code = set_proxy(x, t->proxy);
    } else if (t->access == CLIENT_ACCESS_OVERLAY && t->interface) {
        (void)snprintf(device, sizeof(device), "if!%.20s", t->interface);
        code = curl_easy_setopt(x->easy, CURLOPT_INTERFACE, device);
    }
    return code == CURLE_OK ? 0 : err_set(e, -ENOMEM, "no memory for a request");
}

static bool add_header(struct client_exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->headers, line);

    if (longer)
        x->headers = longer;
    return longer != NULL;
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
           add_header(x, line);
}

static int set_headers(struct client_exchange *x, const struct client_target *t, const char *method,
    const char *path, struct err *e)
{
    char line[600];
    /* Without "Expect: 100-continue", which takes a round trip before the body. Ours are small. */
    bool ok = add_header(x, "Expect:") && add_header(x, "Content-Type: application/json");

    if (ok && t->bearer) {
        (void)snprintf(line, sizeof(line), "Authorization: Bearer %.500s", t->bearer);
        ok = add_header(x, line);
        secret_wipe(line, sizeof(line));
    }
    if (ok && t->signer)
        ok = add_proof(x, t, method, path);
    if (ok)
        ok = curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
    return ok ? 0 : err_set(e, -ENOMEM, "no memory for a request");
}

static int set_body(
    struct client_exchange *x, const char *method, const json_t *body, struct err *e)
{
    CURLcode code = curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, method);

    if (body) {
        x->sent = body_format(body);
        if (!x->sent)
            return err_set(e, -ENOMEM, "no memory for a request");
        curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(x->sent));
        curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, x->sent);
    }
    return code == CURLE_OK ? 0 : err_set(e, -ENOMEM, "no memory for a request");
}

static void set_fixed(struct client_exchange *x)
{
    curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->reason);
    curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(x->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* libcurl shall not read the proxies of the environment: proxy.h does. */
    curl_easy_setopt(x->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(x->easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(x->easy, CURLOPT_SOCKOPTDATA, x);
    curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
}

int client_exchange_init(struct client_exchange *x, const struct client_target *target,
    const char *method, const char *path, const json_t *body, struct err *e)
{
    int r;

    (void)pthread_once(&curl_once, init_curl);
    *x = (struct client_exchange){
        .max = CLIENT_ANSWER_MAX, .is_overlay = target->access == CLIENT_ACCESS_OVERLAY};
    x->easy = curl_easy_init();
    x->address = strdup(target->address);
    if (x->easy && x->address) {
        set_fixed(x);
        r = set_url(x, target, path, e);
    } else {
        r = err_set(e, -ENOMEM, "no memory for a request");
    }
    if (r == 0)
        r = set_access(x, target, e);
    if (r == 0)
        r = set_body(x, method, body, e);
    if (r == 0)
        r = set_headers(x, target, method, path, e);
    if (r != 0)
        client_exchange_deinit(x);
    return r;
}

void client_exchange_deinit(struct client_exchange *x)
{
    if (x->easy)
        curl_easy_cleanup(x->easy);
    curl_slist_free_all(x->headers);
    if (x->sent)
        secret_wipe(x->sent, strlen(x->sent));
    free(x->sent);
    free(x->address);
    free(x->got.p);
    *x = (struct client_exchange){0};
}

/* A date beyond it is none: twice as many seconds still have a number of nanoseconds. */
#define DATE_MAX (NSEC_NEVER / NSEC_PER_SEC / 2)

/* The date that the server has put above its answer; 0: none that can be read. */
static int64_t read_date(struct client_exchange *x)
{
    struct curl_header *date;
    time_t t;

    if (curl_easy_header(x->easy, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK)
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
    long status = 0;
    int r;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(x->easy, CURLINFO_CONTENT_TYPE, &type);
    a.status = (int)status;
    a.date_s = read_date(x);
    if (status < 300 && type && strncmp(type, "text/html", 9) == 0) {
        a.body = json_stringn(x->got.p, x->got.len);
        if (!a.body)
            return err_set(e, CLIENT_E_UNREACHABLE, "the page of \"%s\" is no UTF-8", x->address);
    } else if (x->got.len > 0) {
        r = body_parse(&a.body, x->got.p, x->got.len, e);
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
    return err_set(e, CLIENT_E_REFUSED, "\"%s\" answered %ld", x->address, status);
}

/* Did all or a part of the request go out? */
static bool was_sent(const struct client_exchange *x)
{
    long sent = 0;

    curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
    return sent > 0;
}

/* Did the exchange fail for a reason that may be over soon? Not where a proxy refuses, nor where
 * something else than a weft answers. */
static bool may_pass(const struct client_exchange *x, CURLcode code)
{
    static const CURLcode passing[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
        CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT};
    long proxy_status = 0;

    curl_easy_getinfo(x->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
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
    *ret = (struct client_answer){.is_lost = was_sent(x), .may_pass = may_pass(x, code)};
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        return err_set(e, CLIENT_E_UNTRUSTED,
            "\"%s\" does not have the key that is pinned: it is another machine, or somebody sits "
            "in between",
            x->address);
    if (code == CURLE_OUT_OF_MEMORY)
        return err_set(e, -ENOMEM, "no memory to ask \"%s\"", x->address);
    if (x->too_long)
        return err_set(e, CLIENT_E_UNREACHABLE, "the answer of \"%s\" is longer than %zu bytes",
            x->address, x->max);
    return err_set(e, CLIENT_E_UNREACHABLE, "\"%s\" does not answer: %s", x->address,
        x->reason[0] ? x->reason : curl_easy_strerror(code));
}
