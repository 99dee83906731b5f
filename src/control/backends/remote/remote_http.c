/* remote_http.c - see remote_http.h. */
#include "remote_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/secret.h"
#include "http/http_exchange.h"

/* What the body of a refused stream may be at most: a sentence of the server. */
#define REFUSAL_MAX (64u << 10)

/* Between probes of a connection that is silent, s. */
#define KEEPALIVE_S 5L

/* One request and what has come back of it. */
struct exchange {
    struct http_exchange http; /* owns */
    const char *server;        /* pins: for the words */
    bool is_done;              /* @code says how */
    bool is_added;             /* the multi handle has it */
    CURLcode code;             /* valid once it is done */
};

struct remote_http {
    CURLM *multi;                           /* owns */
    char *servers[REMOTE_HTTP_SERVERS_MAX]; /* owns each */
    size_t n_servers;
    size_t current;      /* index of the current server */
    char *ca_file;       /* owns; NULL: the system's */
    char *cert_file;     /* owns; NULL: none */
    char *key_file;      /* owns; NULL: none */
    char *authorization; /* owns: the whole header; NULL: none */
    unsigned connect_ms;
};

struct remote_http_stream {
    struct exchange x;
    struct remote_http *h;  /* pins */
    remote_http_line_fn fn; /* told of each line */
    void *ctx;              /* pins: for @fn */
};

void remote_http_answer_deinit(struct remote_http_answer *a)
{
    if (a->body)
        secret_wipe(a->body, a->len);
    free(a->body);
    *a = (struct remote_http_answer)REMOTE_HTTP_ANSWER_NULL;
}

/* ---- one exchange --------------------------------------------------------------------------- */

static bool add_headers(
    struct exchange *x, const struct remote_http *h, const struct remote_http_request *rq)
{
    char line[160];
    bool ok = true;

    (void)snprintf(line, sizeof(line), "Content-Type: %.100s",
        rq->content_type ? rq->content_type : "application/json");
    if (rq->body)
        ok = http_exchange_add_header(&x->http, line);
    (void)snprintf(line, sizeof(line), "Accept: %.140s", rq->accept ? rq->accept : "");
    if (ok && rq->accept)
        ok = http_exchange_add_header(&x->http, line);
    return ok && (!h->authorization || http_exchange_add_header(&x->http, h->authorization));
}

/* The method, the URL, and the body, which libcurl does not copy unless it @is_copied: it is the
 * caller's until the end. */
static bool set_request(struct exchange *x, const struct remote_http_request *rq, bool is_copied)
{
    char *url = NULL;
    bool ok;

    if (asprintf(&url, "%s%s", x->server, rq->path) < 0)
        return false;
    ok = http_exchange_init(&x->http, rq->method, url, rq->max);
    free(url);
    if (!ok || !rq->body)
        return ok;
    curl_easy_setopt(x->http.easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_len);
    return curl_easy_setopt(x->http.easy, is_copied ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS,
               rq->body) == CURLE_OK;
}

static bool set_connection(struct exchange *x, const struct remote_http *h)
{
    CURL *easy = x->http.easy;
    bool ok = true;

    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)h->connect_ms);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    if (h->ca_file) {
        ok = curl_easy_setopt(easy, CURLOPT_CAINFO, h->ca_file) == CURLE_OK;
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (ok && h->cert_file)
        ok = curl_easy_setopt(easy, CURLOPT_SSLCERT, h->cert_file) == CURLE_OK;
    if (ok && h->key_file)
        ok = curl_easy_setopt(easy, CURLOPT_SSLKEY, h->key_file) == CURLE_OK;
    return ok;
}

static void exchange_deinit(struct exchange *x, struct remote_http *h)
{
    if (x->is_added)
        curl_multi_remove_handle(h->multi, x->http.easy);
    http_exchange_deinit(&x->http);
    *x = (struct exchange){.is_added = false};
}

/* Hand it to libcurl, for the current server. */
static int exchange_start(struct exchange *x, struct remote_http *h,
    const struct remote_http_request *rq, bool is_copied, struct err *e)
{
    x->server = h->servers[h->current];
    x->is_added = set_request(x, rq, is_copied) && set_connection(x, h) && add_headers(x, h, rq) &&
                  curl_multi_add_handle(h->multi, x->http.easy) == CURLM_OK;
    if (x->is_added)
        return 0;
    exchange_deinit(x, h);
    return err_set(e, -ENOMEM, "no memory for a request to \"%s\"", h->servers[h->current]);
}

/* It failed for a certificate, which another try does not change. */
static bool is_distrust(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
           code == CURLE_SSL_CACERT_BADFILE;
}

/* What the end of it means. 0: there is an answer. */
static int exchange_result(const struct exchange *x, struct err *e)
{
    int r;

    if (x->code == CURLE_OK)
        return 0;
    if (x->http.is_too_long)
        return err_set(e, REMOTE_HTTP_E_TOO_BIG, "the answer of \"%s\" is longer than %zu bytes",
            x->server, x->http.max);
    r = http_exchange_was_sent(&x->http) ? REMOTE_HTTP_E_LOST
        : is_distrust(x->code)           ? REMOTE_HTTP_E_DISTRUST
                                         : REMOTE_HTTP_E_UNSENT;
    return err_set(
        e, r, "\"%s\" does not answer: %s", x->server, http_exchange_reason(&x->http, x->code));
}

/* ---- running -------------------------------------------------------------------------------- */

/* Let libcurl do what can be done now, and mark who is done. */
static void perform(struct remote_http *h)
{
    int n;
    CURLMsg *m;

    (void)curl_multi_perform(h->multi, &n);
    while ((m = curl_multi_info_read(h->multi, &n))) {
        void *p = NULL;
        struct exchange *x;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
        x = container_of(p, struct exchange, http);
        x->is_done = true;
        x->code = m->data.result;
    }
}

void remote_http_wait(struct remote_http *h, int wake_fd, unsigned timeout_ms)
{
    struct curl_waitfd wake = {.fd = wake_fd, .events = CURL_WAIT_POLLIN};

    perform(h);
    (void)curl_multi_poll(h->multi, &wake, wake_fd >= 0 ? 1 : 0, (int)timeout_ms, NULL);
    perform(h);
}

/* Ask the current server. */
static int ask(struct remote_http *h, const struct remote_http_request *rq,
    struct remote_http_answer *ret, struct err *e)
{
    struct exchange x = {0};
    int r = exchange_start(&x, h, rq, false, e);

    if (r != 0)
        return r;
    curl_easy_setopt(x.http.easy, CURLOPT_TIMEOUT_MS, (long)rq->timeout_ms);
    perform(h);
    while (!x.is_done) {
        (void)curl_multi_poll(h->multi, NULL, 0, 1000, NULL);
        perform(h);
    }
    r = exchange_result(&x, e);
    if (r == 0) {
        struct remote_http_answer a = {.status = http_exchange_status(&x.http)};

        /* An answer without a body is an empty text. */
        a.body = str_take(&x.http.got, &a.len);
        if (a.body)
            *ret = a;
        else
            r = err_set(e, -ENOMEM, "no memory for the answer of \"%s\"", x.server);
    }
    exchange_deinit(&x, h);
    return r;
}

int remote_http_call(struct remote_http *h, const struct remote_http_request *rq,
    struct remote_http_answer *ret, struct err *e)
{
    bool is_unsent = true;
    int r = REMOTE_HTTP_E_UNSENT;

    for (size_t i = 0; is_unsent && i < h->n_servers; i++) {
        r = ask(h, rq, ret, e);
        is_unsent = r == REMOTE_HTTP_E_UNSENT || r == REMOTE_HTTP_E_DISTRUST;
        if (is_unsent || r == REMOTE_HTTP_E_LOST)
            remote_http_turn(h);
    }
    return r;
}

/* ---- streams -------------------------------------------------------------------------------- */

static bool on_line(void *ctx, const char *line, size_t len)
{
    struct remote_http_stream *s = ctx;

    s->fn(s->ctx, line, len);
    return true;
}

static size_t on_stream(char *p, size_t size, size_t n, void *ctx)
{
    struct remote_http_stream *s = ctx;
    struct http_exchange *http = &s->x.http;
    bool ok;

    if (http_exchange_status(http) == 200) {
        ok = http_exchange_take_lines(http, p, size * n, on_line, s);
    } else {
        http->max = REFUSAL_MAX;
        ok = http_exchange_take(http, p, size * n);
    }
    return ok ? size * n : 0;
}

int remote_http_open(struct remote_http *h, const struct remote_http_request *rq,
    remote_http_line_fn fn, void *ctx, struct remote_http_stream **ret, struct err *e)
{
    struct remote_http_stream *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for a stream from \"%s\"", h->servers[h->current]);
    s->h = h;
    s->fn = fn;
    s->ctx = ctx;
    r = exchange_start(&s->x, h, rq, true, e);
    if (r != 0) {
        free(s);
        return r;
    }
    curl_easy_setopt(s->x.http.easy, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(s->x.http.easy, CURLOPT_WRITEDATA, s);
    *ret = s;
    return 0;
}

bool remote_http_is_answered(const struct remote_http_stream *s)
{
    return http_exchange_status(&s->x.http) != 0;
}

bool remote_http_has_ended(
    const struct remote_http_stream *s, struct remote_http_end *ret, struct err *e)
{
    if (!s->x.is_done)
        return false;
    *ret = (struct remote_http_end){
        .r = exchange_result(&s->x, e), .status = http_exchange_status(&s->x.http), .answer = ""};
    if (ret->status != 0 && ret->status != 200) {
        ret->answer = str_text(&s->x.http.got);
    }
    return true;
}

struct remote_http_stream *remote_http_close(struct remote_http_stream *s)
{
    if (!s)
        return NULL;
    exchange_deinit(&s->x, s->h);
    free(s);
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* Accept only characters of a scheme, a host, a port and a path, so that libcurl reads the URL as
 * it was meant. */
static int check_server(const char *url, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%/";
    const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
                       : strncmp(url, "https://", 8) == 0 ? url + 8
                                                          : "";
    size_t len = strnlen(url, REMOTE_HTTP_SERVER_MAX + 1);

    if (host[0] && host[0] != '/' && host[0] != ':' && len <= REMOTE_HTTP_SERVER_MAX &&
        url[len - 1] != '/' && host[strspn(host, allowed)] == '\0')
        return 0;
    return err_set(e, -EINVAL, "\"%.80s\" is not http://HOST:PORT or https://HOST:PORT", url);
}

/* Copy a file's name. The file has to exist: otherwise libcurl would only say so at the first
 * request. */
static int copy_file(char **ret, const char *path, struct err *e)
{
    if (!path)
        return 0;
    if (access(path, R_OK) != 0)
        return err_set(e, -EINVAL, "\"%.200s\" cannot be read: %s", path, strerror(errno));
    *ret = strdup(path);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for an HTTP client");
}

static int set_up(struct remote_http *h, const struct remote_http_config *config, struct err *e)
{
    int r = 0;

    if (config->n_servers < 1 || config->n_servers > REMOTE_HTTP_SERVERS_MAX)
        return err_set(
            e, -EINVAL, "%zu servers are not 1 to %d", config->n_servers, REMOTE_HTTP_SERVERS_MAX);
    for (size_t i = 0; r == 0 && i < config->n_servers; i++) {
        r = check_server(config->servers[i], e);
        if (r != 0)
            break;
        h->servers[h->n_servers++] = strdup(config->servers[i]);
        if (!h->servers[i])
            r = err_set(e, -ENOMEM, "no memory for an HTTP client");
    }
    if (r == 0)
        r = copy_file(&h->ca_file, config->ca_file, e);
    if (r == 0)
        r = copy_file(&h->cert_file, config->cert_file, e);
    if (r == 0)
        r = copy_file(&h->key_file, config->key_file, e);
    return r;
}

int remote_http_new(
    struct remote_http **ret, const struct remote_http_config *config, struct err *e)
{
    struct remote_http *h = calloc(1, sizeof(*h));
    int r;

    if (h)
        h->multi = http_exchange_multi();
    if (!h || !h->multi) {
        free(h);
        return err_set(e, -ENOMEM, "no memory for an HTTP client");
    }
    h->connect_ms = config->connect_ms;
    r = set_up(h, config, e);
    if (r != 0) {
        remote_http_free(h);
        return r;
    }
    *ret = h;
    return 0;
}

struct remote_http *remote_http_free(struct remote_http *h)
{
    if (!h)
        return NULL;
    (void)remote_http_set_authorization(h, NULL);
    curl_multi_cleanup(h->multi);
    for (size_t i = 0; i < h->n_servers; i++)
        free(h->servers[i]);
    free(h->ca_file);
    free(h->cert_file);
    free(h->key_file);
    free(h);
    return NULL;
}

int remote_http_set_authorization(struct remote_http *h, const char *value)
{
    char *line = NULL;

    if (value && asprintf(&line, "Authorization: %s", value) < 0)
        return -ENOMEM;
    if (h->authorization)
        secret_wipe(h->authorization, strlen(h->authorization));
    free(h->authorization);
    h->authorization = line;
    return 0;
}

const char *remote_http_server(const struct remote_http *h)
{
    return h->servers[h->current];
}

void remote_http_turn(struct remote_http *h)
{
    h->current = (h->current + 1) % h->n_servers;
}

unsigned remote_http_backoff_next(struct remote_http_backoff *b, const struct rng *rng)
{
    unsigned ms = REMOTE_HTTP_BACKOFF_FIRST_MS;

    for (unsigned i = 0; i < b->n && ms < REMOTE_HTTP_BACKOFF_MAX_MS; i++)
        ms *= 2;
    if (ms > REMOTE_HTTP_BACKOFF_MAX_MS)
        ms = REMOTE_HTTP_BACKOFF_MAX_MS;
    b->n++;
    return ms / 2 + rng_u32(rng) % (ms / 2 + 1);
}
