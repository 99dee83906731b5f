/* remote_http.c - see remote_http.h. */
#include "remote_http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"

/* What the body of a refused stream may be at most: a sentence of the server. */
#define REFUSAL_MAX (64u << 10)

/* Between probes of a connection that is silent, s. */
#define KEEPALIVE_S 5L

/* One request and what has come back of it. */
struct exchange {
    CURL *easy;                   /* owns */
    struct curl_slist *headers;   /* owns */
    const char *server;           /* pins: for the words */
    char *got;                    /* owns: the answer, or the beginning of a line; then a zero */
    size_t len;                   /* bytes of it */
    size_t cap;                   /* room */
    size_t max;                   /* most bytes in @got */
    bool is_too_big;              /* it would have become longer */
    bool is_done;                 /* @code says how */
    bool is_added;                /* the multi handle has it */
    CURLcode code;                /* valid once it is done */
    char reason[CURL_ERROR_SIZE]; /* libcurl's words */
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

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    /* Without memory the first curl_easy_init() fails too, and that is handled. */
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void remote_http_answer_deinit(struct remote_http_answer *a)
{
    free(a->body);
    *a = (struct remote_http_answer)REMOTE_HTTP_ANSWER_NULL;
}

/* ---- one exchange --------------------------------------------------------------------------- */

/* False: it does not fit, or there is no memory. */
static bool add_bytes(struct exchange *x, const char *p, size_t len)
{
    x->is_too_big = len > x->max - x->len;
    if (x->is_too_big)
        return false;
    if (x->len + len + 1 > x->cap) {
        size_t cap = x->cap ? x->cap : 4096;
        char *bigger;

        while (cap < x->len + len + 1)
            cap *= 2;
        bigger = realloc(x->got, cap);
        if (!bigger)
            return false;
        x->got = bigger;
        x->cap = cap;
    }
    memcpy(x->got + x->len, p, len);
    x->len += len;
    x->got[x->len] = '\0';
    return true;
}

static size_t on_answer(char *p, size_t size, size_t n, void *ctx)
{
    return add_bytes(ctx, p, size * n) ? size * n : 0;
}

static bool add_header(struct exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->headers, line);

    if (longer)
        x->headers = longer;
    return longer != NULL;
}

static bool add_headers(
    struct exchange *x, const struct remote_http *h, const struct remote_http_request *rq)
{
    char line[160];
    /* An empty "Expect:" header saves a round trip before each longer body. */
    bool ok = add_header(x, "Expect:");

    (void)snprintf(line, sizeof(line), "Content-Type: %.100s",
        rq->content_type ? rq->content_type : "application/json");
    if (ok && rq->body)
        ok = add_header(x, line);
    (void)snprintf(line, sizeof(line), "Accept: %.140s", rq->accept ? rq->accept : "");
    if (ok && rq->accept)
        ok = add_header(x, line);
    if (ok && h->authorization)
        ok = add_header(x, h->authorization);
    return ok && curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_url(struct exchange *x, const struct remote_http_request *rq)
{
    char *url = NULL;
    bool ok;

    if (asprintf(&url, "%s%s", x->server, rq->path) < 0)
        return false;
    ok = curl_easy_setopt(x->easy, CURLOPT_URL, url) == CURLE_OK;
    free(url);
    return ok;
}

/* The method and the body, which libcurl does not copy: it is the caller's until the end. */
static bool set_body(struct exchange *x, const struct remote_http_request *rq, bool is_copied)
{
    if (rq->body) {
        CURLoption how = is_copied ? CURLOPT_COPYPOSTFIELDS : CURLOPT_POSTFIELDS;

        curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_len);
        if (curl_easy_setopt(x->easy, how, rq->body) != CURLE_OK)
            return false;
    }
    return curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, rq->method) == CURLE_OK;
}

static bool set_files(struct exchange *x, const struct remote_http *h)
{
    bool ok = true;

    if (h->ca_file) {
        ok = curl_easy_setopt(x->easy, CURLOPT_CAINFO, h->ca_file) == CURLE_OK;
        curl_easy_setopt(x->easy, CURLOPT_CAPATH, NULL);
    }
    if (ok && h->cert_file)
        ok = curl_easy_setopt(x->easy, CURLOPT_SSLCERT, h->cert_file) == CURLE_OK;
    if (ok && h->key_file)
        ok = curl_easy_setopt(x->easy, CURLOPT_SSLKEY, h->key_file) == CURLE_OK;
    return ok;
}

static void set_fixed(struct exchange *x, const struct remote_http *h)
{
    curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->reason);
    curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(x->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(x->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* The store's URL names its servers, so a proxy of the environment is not used. */
    curl_easy_setopt(x->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)h->connect_ms);
    curl_easy_setopt(x->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(x->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(x->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
}

static void exchange_deinit(struct exchange *x, struct remote_http *h)
{
    if (x->is_added)
        curl_multi_remove_handle(h->multi, x->easy);
    if (x->easy)
        curl_easy_cleanup(x->easy);
    curl_slist_free_all(x->headers);
    free(x->got);
    *x = (struct exchange){0};
}

/* Hand it to libcurl, for the current server. */
static int exchange_start(struct exchange *x, struct remote_http *h,
    const struct remote_http_request *rq, bool is_copied, struct err *e)
{
    bool ok;

    x->server = h->servers[h->current];
    x->max = rq->max;
    x->easy = curl_easy_init();
    ok = x->easy && set_url(x, rq) && set_body(x, rq, is_copied) && set_files(x, h);
    if (ok)
        set_fixed(x, h);
    ok = ok && add_headers(x, h, rq) && curl_multi_add_handle(h->multi, x->easy) == CURLM_OK;
    x->is_added = ok;
    if (ok)
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
    long sent = 0;
    int r;

    if (x->code == CURLE_OK)
        return 0;
    if (x->is_too_big)
        return err_set(e, REMOTE_HTTP_E_TOO_BIG, "the answer of \"%s\" is longer than %zu bytes",
            x->server, x->max);
    curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent);
    r = sent > 0               ? REMOTE_HTTP_E_LOST
        : is_distrust(x->code) ? REMOTE_HTTP_E_DISTRUST
                               : REMOTE_HTTP_E_UNSENT;
    return err_set(e, r, "\"%s\" does not answer: %s", x->server,
        x->reason[0] ? x->reason : curl_easy_strerror(x->code));
}

static int status_of(const struct exchange *x)
{
    long status = 0;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
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
        x = p;
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
    curl_easy_setopt(x.easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(x.easy, CURLOPT_WRITEDATA, &x);
    curl_easy_setopt(x.easy, CURLOPT_TIMEOUT_MS, (long)rq->timeout_ms);
    perform(h);
    while (!x.is_done) {
        (void)curl_multi_poll(h->multi, NULL, 0, 1000, NULL);
        perform(h);
    }
    r = exchange_result(&x, e);
    /* An answer without a body is an empty text. */
    if (r == 0 && !x.got && !add_bytes(&x, "", 0))
        r = err_set(e, -ENOMEM, "no memory for the answer of \"%s\"", x.server);
    if (r == 0) {
        *ret = (struct remote_http_answer){.status = status_of(&x), .body = x.got, .len = x.len};
        x.got = NULL;
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

/* Give out the whole lines at @p, and keep the rest. False: the stream has to end. */
static bool take_lines(struct remote_http_stream *s, const char *p, size_t len)
{
    while (len > 0) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len;

        if (!add_bytes(&s->x, p, n))
            return false;
        if (!end)
            return true;
        s->fn(s->ctx, s->x.got, s->x.len);
        s->x.len = 0;
        p += n + 1;
        len -= n + 1;
    }
    return true;
}

static size_t on_stream(char *p, size_t size, size_t n, void *ctx)
{
    struct remote_http_stream *s = ctx;

    if (status_of(&s->x) == 200)
        return take_lines(s, p, size * n) ? size * n : 0;
    s->x.max = REFUSAL_MAX;
    return on_answer(p, size, n, &s->x);
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
    curl_easy_setopt(s->x.easy, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(s->x.easy, CURLOPT_WRITEDATA, s);
    *ret = s;
    return 0;
}

bool remote_http_has_ended(
    const struct remote_http_stream *s, struct remote_http_end *ret, struct err *e)
{
    bool is_refused;

    if (!s->x.is_done)
        return false;
    *ret = (struct remote_http_end){
        .r = exchange_result(&s->x, e), .status = status_of(&s->x), .answer = ""};
    is_refused = ret->status != 0 && ret->status != 200;
    if (is_refused && s->x.got) {
        ret->answer = s->x.got;
        ret->answer_len = s->x.len;
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

    (void)pthread_once(&curl_once, init_curl);
    if (h)
        h->multi = curl_multi_init();
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
