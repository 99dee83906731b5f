/* etcd_client.c - see etcd_client.h. */
#include "etcd_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

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

void etcd_client_deinit(struct etcd_client *c)
{
    c->http = remote_http_free(c->http);
    secret_wipe(c->password, sizeof(c->password));
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
static enum verdict judge_refusal(
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

static enum verdict judge(const struct etcd_client *c, const struct remote_http_answer *a,
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
    verdict = judge_refusal(c, &refusal, r);
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
        verdict = judge(c, &a, ret, r, e);
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
