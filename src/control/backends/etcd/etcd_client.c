/* etcd_client.c - see etcd_client.h. */
#include "etcd_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/text.h"
#include "os/clock.h"

/* Length of the lease, s. The hub renews it each third of that time. */
#define ETCD_SESSION_TTL_S 600

/* Bytes of changes in the queue, above which the watch ends until it is empty. */
#define ETCD_FEED_BYTES_MAX (32u << 20)

/* Most time for a connection, and for one try of a request, ms. */
#define CONNECT_MS 1000
#define TRY_MS     2000
/* Even when nothing is left of a request's time, one try has this much, ms, and twice as much after
 * each try that got no answer. */
#define TRY_MIN_MS 300

/* Longest answer, bytes. */
#define ANSWER_MAX (48u << 20)

/* Codes of gRPC. */
enum grpc_code {
    GRPC_INVALID = 3,
    GRPC_NOT_FOUND = 5,
    GRPC_FORBIDDEN = 7,
    GRPC_EXHAUSTED = 8,
    GRPC_PRECONDITION = 9,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAUTHENTICATED = 16,
};

int etcd_client_init(struct etcd_client *c, const struct etcd_url *url, struct err *e)
{
    struct remote_http_config config = {.n_servers = url->n_servers,
        .ca_file = url->ca_file,
        .cert_file = url->cert_file,
        .key_file = url->key_file,
        .connect_ms = CONNECT_MS};
    int r = 0;

    *c = (struct etcd_client){.rng = rng_kernel()};
    (void)snprintf(c->prefix, sizeof(c->prefix), "%s", url->prefix);
    if (url->user) {
        (void)snprintf(c->user, sizeof(c->user), "%s", url->user);
        r = etcd_url_password(url, c->password, e);
    }
    for (size_t i = 0; i < url->n_servers; i++)
        config.servers[i] = url->servers[i];
    return r == 0 ? remote_http_new(&c->http, &config, e) : r;
}

/* ---- what an answer means ------------------------------------------------------------------- */

/* What to do after a try. */
enum verdict {
    VERDICT_DONE,  /* there is an answer */
    VERDICT_FINAL, /* there will be no other one */
    VERDICT_LOGIN, /* get a token, and try again */
    VERDICT_AGAIN, /* try again */
};

static bool says(const struct etcd_refusal *refusal, const char *words)
{
    return strstr(refusal->text, words) != NULL;
}

/* Etcd said no. @r: set for VERDICT_FINAL. */
static enum verdict assess_refusal(
    const struct etcd_client *c, const struct etcd_refusal *refusal, int *r)
{
    switch (refusal->code) {
    case GRPC_UNAUTHENTICATED:
        *r = -EACCES;
        return c->user[0] ? VERDICT_LOGIN : VERDICT_FINAL;
    case GRPC_INVALID:
        /* The token is older than the last change of users; or there was no token, for which older
         * servers answer with this code. */
        *r = says(refusal, "authentication failed") ? -EACCES : -EINVAL;
        return c->user[0] &&
                       (says(refusal, "auth store is old") || says(refusal, "user name is empty"))
                   ? VERDICT_LOGIN
                   : VERDICT_FINAL;
    case GRPC_FORBIDDEN:
        *r = -EACCES;
        return VERDICT_FINAL;
    case GRPC_NOT_FOUND:
        *r = says(refusal, "lease not found") ? ETCD_E_NO_LEASE : -EIO;
        return VERDICT_FINAL;
    case GRPC_EXHAUSTED:
        *r = -ENOSPC;
        return says(refusal, "too many requests") ? VERDICT_AGAIN : VERDICT_FINAL;
    case GRPC_PRECONDITION:
    case GRPC_OUT_OF_RANGE:
    case GRPC_UNIMPLEMENTED:
        *r = -EIO;
        return VERDICT_FINAL;
    default:
        /* There is no leader, a time-out, or a member that ends: a later try can succeed. */
        return VERDICT_AGAIN;
    }
}

static enum verdict assess(const struct etcd_client *c, const struct remote_http_answer *a,
    json_t **ret, int *r, struct err *e)
{
    const char *server = remote_http_server(c->http);
    struct etcd_refusal refusal;
    enum verdict verdict;

    if (a->status == 200) {
        *ret = json_loadb(a->body, a->len, JSON_DISABLE_EOF_CHECK, NULL);
        if (json_is_object(*ret))
            return VERDICT_DONE;
        json_decref(*ret);
        (void)err_set(
            e, -EBADMSG, "\"%s\" does not answer as an etcd does: \"%.60s\"", server, a->body);
        return VERDICT_AGAIN;
    }
    etcd_refusal_decode(a->body, a->len, &refusal);
    verdict = assess_refusal(c, &refusal, r);
    (void)err_set(
        e, -EIO, "etcd at \"%s\" refuses: %s (HTTP status %d)", server, refusal.text, a->status);
    return verdict;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* One try. @is_lost: set when the request may have been done although no answer came. */
static enum verdict try_once(struct etcd_client *c, const char *path, const char *body,
    unsigned timeout_ms, json_t **ret, bool *is_lost, int *r, struct err *e)
{
    struct remote_http_request rq = {.method = "POST",
        .path = path,
        .body = body,
        .body_len = strlen(body),
        .timeout_ms = timeout_ms,
        .max = ANSWER_MAX};
    struct remote_http_answer a = REMOTE_HTTP_ANSWER_NULL;
    enum verdict verdict = VERDICT_AGAIN;

    *r = remote_http_call(c->http, &rq, &a, e);
    c->n_unanswered = *r == 0 ? 0 : c->n_unanswered + 1;
    if (*r == 0) {
        verdict = assess(c, &a, ret, r, e);
        if (verdict == VERDICT_AGAIN) {
            *is_lost = true;
            remote_http_turn(c->http);
        }
    } else if (*r == REMOTE_HTTP_E_LOST) {
        *is_lost = true;
    } else if (*r == REMOTE_HTTP_E_TOO_BIG) {
        *r = ETCD_E_TOO_BIG;
        verdict = VERDICT_FINAL;
    } else if (*r == REMOTE_HTTP_E_DISTRUST) {
        *r = -EACCES;
        verdict = VERDICT_FINAL;
    } else if (*r < 0) {
        verdict = VERDICT_FINAL;
    }
    remote_http_answer_deinit(&a);
    return verdict;
}

/* Get a token for the user, and show it from then on. */
static enum verdict login(struct etcd_client *c, unsigned timeout_ms, int *r, struct err *e)
{
    json_t *rq = json_pack("{s:s, s:s}", "name", c->user, "password", c->password);
    char *body = rq ? json_dumps(rq, JSON_COMPACT) : NULL;
    json_t *answer = NULL;
    enum verdict verdict = VERDICT_FINAL;
    bool ignored = false;

    *r = -ENOMEM;
    (void)remote_http_set_authorization(c->http, NULL);
    if (body)
        verdict = try_once(c, "/v3/auth/authenticate", body, timeout_ms, &answer, &ignored, r, e);
    else
        (void)err_set(e, *r, "no memory to authenticate with etcd");
    if (verdict == VERDICT_DONE) {
        const char *token = json_string_value(json_object_get(answer, "token"));

        *r = token ? remote_http_set_authorization(c->http, token) : -EACCES;
        verdict = *r == 0 ? VERDICT_DONE : VERDICT_FINAL;
        if (*r != 0)
            (void)err_set(e, *r, "etcd gives no token to user \"%s\"", c->user);
    } else if (verdict == VERDICT_FINAL && *r == -EINVAL) {
        *r = -EACCES;
    }
    json_decref(answer);
    if (body)
        secret_wipe(body, strlen(body));
    free(body);
    json_decref(rq);
    return verdict;
}

static unsigned time_for_try(const struct etcd_client *c, nsec_t until)
{
    nsec_t left = (until - clock_now()) / NSEC_PER_MSEC;
    nsec_t least = TRY_MIN_MS;

    for (unsigned i = 0; i < c->n_unanswered && least < TRY_MS; i++)
        least *= 2;
    if (left < least)
        left = least;
    return left > TRY_MS ? TRY_MS : (unsigned)left;
}

int etcd_client_ask(struct etcd_client *c, const char *path, const char *body, nsec_t until,
    json_t **ret, struct err *e)
{
    unsigned n_logins = 0;
    bool is_lost = false;
    int r = 0;

    for (;;) {
        enum verdict verdict =
            try_once(c, path, body, time_for_try(c, until), ret, &is_lost, &r, e);

        /* Twice, because the member that gave the token may know of it before the one that is
         * asked next. */
        if (verdict == VERDICT_LOGIN && n_logins++ < 2) {
            verdict = login(c, time_for_try(c, until), &r, e);
            if (verdict == VERDICT_DONE)
                continue;
        }
        if (verdict == VERDICT_DONE) {
            c->backoff.n = 0;
            return 0;
        }
        if (verdict != VERDICT_AGAIN)
            return r;
        if (clock_now() >= until)
            return is_lost ? ETCD_E_LOST : ETCD_E_AWAY;
        remote_http_wait(c->http, -1, remote_http_backoff_next(&c->backoff, &c->rng));
    }
}

/* ---- this hub's session ---------------------------------------------------------------------- */

const char *etcd_session_key(const char *session, char buf[static ETCD_SESSION_MAX + 3])
{
    (void)snprintf(buf, ETCD_SESSION_MAX + 3, "s/%s", session);
    return buf;
}

int etcd_session_begin(struct etcd_session *s, struct etcd_client *c, nsec_t until, struct err *e)
{
    char body[40];
    uint8_t name[8];
    json_auto_t *answer = NULL;
    int r;

    (void)snprintf(body, sizeof(body), "{\"TTL\":\"%d\"}", ETCD_SESSION_TTL_S);
    r = etcd_client_ask(c, "/v3/lease/grant", body, until, &answer, e);
    /* A lease whose answer was lost ends by itself. */
    if (r != 0)
        return r == ETCD_E_LOST ? ETCD_E_AWAY : r;
    *s = (struct etcd_session){.lease = etcd_answer_number(answer, "ID"),
        .keep_at = clock_now() + ETCD_SESSION_TTL_S / 3 * NSEC_PER_SEC};
    if (s->lease == 0)
        return err_set(e, -EBADMSG, "etcd's answer has no lease");
    rng_fill(&c->rng, name, sizeof(name));
    hex_encode(name, sizeof(name), s->name);
    return 0;
}

void etcd_session_keep(struct etcd_session *s, struct etcd_client *c, nsec_t now, nsec_t until)
{
    char body[40];
    json_auto_t *answer = NULL;
    bool is_kept;
    int r;

    if (s->name[0] == '\0' || now < s->keep_at)
        return;
    (void)snprintf(body, sizeof(body), "{\"ID\":\"%" PRIu64 "\"}", s->lease);
    r = etcd_client_ask(c, "/v3/lease/keepalive", body, until, &answer, NULL);
    /* Of a lease that has ended it says that none of its time is left, by leaving it out. */
    is_kept = etcd_answer_number(json_object_get(answer, "result"), "TTL") > 0;
    if (r == 0 && !is_kept)
        *s = (struct etcd_session)ETCD_SESSION_NULL;
    else
        s->keep_at = now + (r == 0 ? ETCD_SESSION_TTL_S / 3 : 5) * NSEC_PER_SEC;
}

void etcd_session_end(struct etcd_session *s, struct etcd_client *c, nsec_t until)
{
    char body[40];
    json_auto_t *answer = NULL;

    if (s->name[0] == '\0')
        return;
    (void)snprintf(body, sizeof(body), "{\"ID\":\"%" PRIu64 "\"}", s->lease);
    (void)etcd_client_ask(c, "/v3/lease/revoke", body, until, &answer, NULL);
    *s = (struct etcd_session)ETCD_SESSION_NULL;
}

/* ---- the feed of changes --------------------------------------------------------------------- */

/* Longest line: a fragment is about 1.5 MiB, a single value at most ETCD_RAW_MAX; in base64. */
#define LINE_MAX_BYTES (8u << 20)

void etcd_feed_init(struct etcd_feed *f, struct etcd_client *client, uint64_t last)
{
    *f = (struct etcd_feed){.client = client, .last = last};
    list_init(&f->revisions);
}

static void stop(struct etcd_feed *f)
{
    f->stream = remote_http_close(f->stream);
    etcd_kvs_deinit(&f->parts);
    f->is_broken = false;
}

struct etcd_revision *etcd_feed_next(struct etcd_feed *f)
{
    return list_first(&f->revisions, struct etcd_revision, link);
}

void etcd_feed_drop(struct etcd_feed *f)
{
    struct etcd_revision *rev = etcd_feed_next(f);

    f->bytes -= etcd_kvs_bytes(&rev->events);
    list_remove(&rev->link);
    etcd_kvs_deinit(&rev->events);
    free(rev);
}

void etcd_feed_deinit(struct etcd_feed *f)
{
    stop(f);
    while (etcd_feed_next(f))
        etcd_feed_drop(f);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Move the events of @from behind those of @to. */
static int append(struct etcd_kvs *to, struct etcd_kvs *from)
{
    struct etcd_kv *items = realloc(to->items, (to->n + from->n + 1) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    to->items = items;
    if (from->n > 0)
        memcpy(to->items + to->n, from->items, from->n * sizeof(*items));
    to->n += from->n;
    free(from->items);
    *from = (struct etcd_kvs)ETCD_KVS_NULL;
    return 0;
}

/* Queue @n events, all of one revision, which are taken. */
static int queue(struct etcd_feed *f, struct etcd_kv *events, size_t n)
{
    struct etcd_revision *rev = calloc(1, sizeof(*rev));

    if (rev)
        rev->events.items = calloc(n, sizeof(*events));
    if (!rev || !rev->events.items) {
        free(rev);
        return -ENOMEM;
    }
    memcpy(rev->events.items, events, n * sizeof(*events));
    memset(events, 0, n * sizeof(*events));
    rev->events.n = n;
    rev->number = rev->events.items[0].mod;
    list_init(&rev->link);
    list_add_tail(&f->revisions, &rev->link);
    f->bytes += etcd_kvs_bytes(&rev->events);
    f->last = rev->number;
    return 0;
}

/* The events of whole revisions. What has come before is dropped. */
static int take_events(struct etcd_feed *f, struct etcd_kvs *events)
{
    size_t i = 0;
    int r = 0;

    while (r == 0 && i < events->n) {
        uint64_t number = events->items[i].mod;
        size_t n = 1;

        while (i + n < events->n && events->items[i + n].mod == number)
            n++;
        if (number > f->last)
            r = queue(f, &events->items[i], n);
        i += n;
    }
    return r;
}

static void on_line(void *ctx, const char *line, size_t len)
{
    struct etcd_feed *f = ctx;
    struct etcd_watch_line l;
    int r;

    if (f->is_broken)
        return;
    f->heard_at = clock_now();
    r = etcd_watch_line_decode(line, len, f->client->prefix, &l, &f->e);
    if (r != 0) {
        f->is_broken = true;
        return;
    }
    r = append(&f->parts, &l.events);
    if (r == 0 && !l.is_fragment) {
        r = take_events(f, &f->parts);
        etcd_kvs_deinit(&f->parts);
    }
    etcd_kvs_deinit(&l.events);
    if (l.is_over)
        f->compacted = l.compacted;
    else if (r == 0)
        f->backoff.n = 0;
    f->is_broken = r != 0 || l.is_over || f->bytes > ETCD_FEED_BYTES_MAX;
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void open_stream(struct etcd_feed *f, nsec_t now)
{
    struct str body = STR_NULL;
    struct remote_http_request rq = {.method = "POST", .path = "/v3/watch", .max = LINE_MAX_BYTES};
    int r = -ENOMEM;

    etcd_add_watch(&body, f->client->prefix, "i", "t", f->last + 1, f->deletions_only);
    rq.body = body.text;
    rq.body_len = body.len;
    f->server = remote_http_server(f->client->http);
    if (!body.failed)
        r = remote_http_open(f->client->http, &rq, on_line, f, &f->stream, &f->e);
    str_deinit(&body);
    f->heard_at = now;
    if (r != 0)
        f->open_at = now + remote_http_backoff_next(&f->backoff, &f->client->rng) * NSEC_PER_MSEC;
}

void etcd_feed_tend(struct etcd_feed *f, nsec_t now)
{
    struct remote_http_end end;
    bool is_turned = f->stream && f->server != remote_http_server(f->client->http);
    bool has_ended = f->stream && remote_http_has_ended(f->stream, &end, &f->e);

    if (f->stream && (has_ended || f->is_broken || is_turned)) {
        bool is_full = f->bytes > ETCD_FEED_BYTES_MAX;

        stop(f);
        if (!is_turned && !is_full && !f->compacted) {
            remote_http_turn(f->client->http);
            f->open_at =
                now + remote_http_backoff_next(&f->backoff, &f->client->rng) * NSEC_PER_MSEC;
        }
    }
    if (f->stream || f->compacted || now < f->open_at ||
        (f->bytes > 0 && f->bytes > ETCD_FEED_BYTES_MAX / 2))
        return;
    open_stream(f, now);
}
