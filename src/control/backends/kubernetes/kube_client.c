/* kube_client.c - see kube_client.h. */
#include "kube_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "os/clock.h"
#include "os/rng_kernel.h"
#include "os/statefile.h"

/* A ServiceAccount's token is replaced in its file while the old one still holds; it is read as
 * often as client-go does. */
#define TOKEN_NS (60 * NSEC_PER_SEC)

#define TOKEN_MAX  (64u << 10) /* bytes of a token's file */
#define ANSWER_MAX (4u << 20)  /* bytes of an answer, and of a line of a watch */
#define TIMEOUT_MS 5000        /* of one request */
#define CONNECT_MS 2000

/* An API server that has just begun does not have custom resources for so long. */
#define STARTING_NS (2 * NSEC_PER_SEC)

#define PATH_MAX_LEN 512

void kube_record_deinit(struct kube_record *r)
{
    free(r->data);
    free(r->version);
    *r = (struct kube_record)KUBE_RECORD_NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int kube_client_init(struct kube_client *ret, const char *where, struct err *e)
{
    struct remote_http_config config = {.n_servers = 1, .connect_ms = CONNECT_MS};
    int r;

    *ret = (struct kube_client)KUBE_CLIENT_NULL;
    r = kube_config_read(&ret->config, where, e);
    if (r != 0)
        return r;
    config.servers[0] = ret->config.server;
    config.ca_file = ret->config.ca_file;
    config.cert_file = ret->config.cert_file;
    config.key_file = ret->config.key_file;
    return remote_http_new(&ret->http, &config, e);
}

void kube_client_deinit(struct kube_client *c)
{
    c->http = remote_http_free(c->http);
    kube_config_deinit(&c->config);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int set_token(struct kube_client *c, const char *token, struct err *e)
{
    char *value = NULL;
    int r = -ENOMEM;

    if (asprintf(&value, "Bearer %.*s", (int)strcspn(token, "\r\n"), token) >= 0) {
        r = remote_http_set_authorization(c->http, value);
        secret_wipe(value, strlen(value));
        free(value);
    }
    return r == 0 ? 0 : err_set(e, r, "no memory for a token");
}

/* Read the token again when it was not read for TOKEN_NS. */
static int authorize(struct kube_client *c, struct err *e)
{
    const char *path = c->config.token_file;
    nsec_t now = clock_now();
    char *text = NULL;
    size_t len = 0;
    int r;

    if (c->token_at && (!path || now - c->token_at < TOKEN_NS))
        return 0;
    c->token_at = now;
    if (!path)
        return c->config.token ? set_token(c, c->config.token, e) : 0;
    r = statefile_read(path, TOKEN_MAX, &text, &len, e);
    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "the token's file \"%s\" does not exist", path);
    if (r != 0)
        return r;
    r = set_token(c, text, e);
    secret_wipe(text, len);
    free(text);
    return r;
}

/* The server's own words, of a Status or of anything else. */
static int refuse(int status, const struct remote_http_answer *answer, struct err *e)
{
    json_t *json = json_loadb(answer->body, answer->len, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "message"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    int r = -EIO;

    if (status == 404 && reason && strcmp(reason, "NotFound") == 0 &&
        json_object_get(json_object_get(json, "details"), "name"))
        r = KUBE_E_ABSENT;
    else if (status == 404)
        r = -ENOENT;
    else if (status == 409)
        r = KUBE_E_EXISTS;
    else if (status == 401 || status == 403)
        r = -EACCES;
    else if (status >= 500)
        r = KUBE_E_LOST;
    else if (status == 429)
        r = KUBE_E_AWAY;
    if (r == -ENOENT)
        (void)err_set(e, r,
            "the API server does not have the resources of " KUBE_API ": apply "
            "deploy/kubernetes/crds.yaml");
    else
        (void)err_set(e, r, "the API server answers %d: %.300s", status, text ? text : "");
    json_decref(json);
    return r;
}

static int ask_once(
    struct kube_client *c, const struct remote_http_request *rq, json_t **ret, struct err *e)
{
    struct remote_http_answer answer = REMOTE_HTTP_ANSWER_NULL;
    json_t *json = NULL;
    int r = authorize(c, e);

    if (r != 0)
        return r;
    r = remote_http_call(c->http, rq, &answer, e);
    if (r == REMOTE_HTTP_E_UNSENT || r == REMOTE_HTTP_E_LOST)
        return r == REMOTE_HTTP_E_UNSENT ? KUBE_E_AWAY : KUBE_E_LOST;
    if (r != 0)
        return r < 0 ? r : -EIO;
    if (answer.status == 401)
        c->token_at = 0;
    if (answer.status < 200 || answer.status > 299)
        r = refuse(answer.status, &answer, e);
    else if (!(json = json_loadb(answer.body, answer.len, 0, NULL)))
        r = err_set(e, KUBE_E_LOST, "the API server's answer is not JSON");
    remote_http_answer_deinit(&answer);
    if (r == 0)
        *ret = json;
    return r;
}

/* Repeat a request until it is answered. One that was answered with 5xx may have been done. What is
 * said to a repeated request says nothing of the one before: an API server that has just begun
 * forbids what it will allow, and does not have resources which it will have. */
static int ask(struct kube_client *c, const struct remote_http_request *rq, nsec_t until,
    json_t **ret, struct err *e)
{
    const struct rng rng = rng_kernel();
    struct remote_http_backoff backoff = {0};
    nsec_t began_at = clock_now();
    bool is_sent = false;

    for (;;) {
        int r = ask_once(c, rq, ret, e);
        nsec_t now = clock_now();
        bool may_change = r == KUBE_E_AWAY || r == KUBE_E_LOST ||
                          (r == -ENOENT && now - began_at < STARTING_NS && now < until);

        is_sent |= r == KUBE_E_LOST;
        if (!may_change)
            return is_sent && r < 0 ? KUBE_E_LOST : r;
        if (now >= until)
            return is_sent ? KUBE_E_LOST : r;
        remote_http_wait(c->http, -1, remote_http_backoff_next(&backoff, &rng));
    }
}

/* ---- Records --------------------------------------------------------------------------------- */

static const char *path_of(
    const struct kube_client *c, char buf[static PATH_MAX_LEN], const char *name)
{
    (void)snprintf(buf, PATH_MAX_LEN, "/apis/" KUBE_API "/namespaces/%s/records%s%s",
        c->config.namespace, name[0] ? "/" : "", name);
    return buf;
}

int kube_client_read(
    struct kube_client *c, const char *name, nsec_t until, struct kube_record *ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    struct remote_http_request rq = {.method = "GET",
        .path = path_of(c, path, name),
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    struct kube_record record;
    const char *data;
    const char *version;
    json_t *json = NULL;
    int r = ask(c, &rq, until, &json, e);

    if (r != 0)
        return r;
    data = json_string_value(json_object_get(json, "data"));
    version =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));
    if (!data || !version) {
        json_decref(json);
        return err_set(e, -EINVAL, "the record \"%s\" has no data", name);
    }
    record = (struct kube_record){.data = strdup(data), .version = strdup(version)};
    json_decref(json);
    if (!record.data || !record.version) {
        kube_record_deinit(&record);
        return err_set(e, -ENOMEM, "no memory for a record");
    }
    *ret = record;
    return 0;
}

/* @version: NULL for a new one. */
static int write_record(struct kube_client *c, const char *name, const char *data,
    const char *version, nsec_t until, struct err *e)
{
    char path[PATH_MAX_LEN];
    struct remote_http_request rq = {.method = version ? "PUT" : "POST",
        .path = path_of(c, path, version ? name : ""),
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    json_t *json = json_pack("{s:s, s:s, s:{s:s, s:s*}, s:s}", "apiVersion", KUBE_API, "kind",
        "Record", "metadata", "name", name, "resourceVersion", version, "data", data);
    char *body = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_t *answer = NULL;
    int r;

    json_decref(json);
    if (!body)
        return err_set(e, -ENOMEM, "no memory for a record");
    rq.body = body;
    rq.body_len = strlen(body);
    r = ask(c, &rq, until, &answer, e);
    free(body);
    json_decref(answer);
    return r;
}

int kube_client_make(
    struct kube_client *c, const char *name, const char *data, nsec_t until, struct err *e)
{
    return write_record(c, name, data, NULL, until, e);
}

int kube_client_replace(struct kube_client *c, const char *name, const char *data,
    const char *version, nsec_t until, struct err *e)
{
    return write_record(c, name, data, version, until, e);
}

int kube_client_remove(struct kube_client *c, const char *name, nsec_t until, struct err *e)
{
    char path[PATH_MAX_LEN];
    struct remote_http_request rq = {.method = "DELETE",
        .path = path_of(c, path, name),
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    json_t *answer = NULL;
    int r = ask(c, &rq, until, &answer, e);

    json_decref(answer);
    return r == KUBE_E_ABSENT ? 0 : r;
}

int kube_client_version(struct kube_client *c, nsec_t until, char **ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    char with_limit[PATH_MAX_LEN + 16];
    struct remote_http_request rq = {
        .method = "GET", .path = with_limit, .timeout_ms = TIMEOUT_MS, .max = ANSWER_MAX};
    const char *version;
    json_t *json = NULL;
    int r;

    (void)snprintf(with_limit, sizeof(with_limit), "%s?limit=1", path_of(c, path, ""));
    r = ask(c, &rq, until, &json, e);
    if (r != 0)
        return r;
    version =
        json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));
    *ret = version ? strdup(version) : NULL;
    json_decref(json);
    return *ret ? 0 : err_set(e, -EIO, "the API server's list has no resourceVersion");
}

int kube_client_names(struct kube_client *c, const char *from, nsec_t until, json_t **ret,
    char **ret_next, struct err *e)
{
    char path[PATH_MAX_LEN];
    char query[4 * PATH_MAX_LEN];
    struct remote_http_request rq = {.method = "GET",
        .path = query,
        .accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    json_t *names = json_array();
    json_t *json = NULL;
    const char *next;
    json_t *one;
    size_t i;
    int r;

    (void)snprintf(query, sizeof(query), "%s?limit=500%s%.1000s", path_of(c, path, ""),
        from ? "&continue=" : "", from ? from : "");
    r = names ? ask(c, &rq, until, &json, e) : err_set(e, -ENOMEM, "no memory for names");
    if (r != 0) {
        json_decref(names);
        return r;
    }
    json_array_foreach(json_object_get(json, "items"), i, one)
        (void)json_array_append(names, json_object_get(json_object_get(one, "metadata"), "name"));
    next = json_string_value(json_object_get(json_object_get(json, "metadata"), "continue"));
    *ret_next = next && next[0] ? strdup(next) : NULL;
    *ret = names;
    json_decref(json);
    return 0;
}

int kube_client_watch(struct kube_client *c, const char *version, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    char query[PATH_MAX_LEN + 128];
    struct remote_http_request rq = {.method = "GET", .path = query, .max = ANSWER_MAX};
    int r = authorize(c, e);

    if (r != 0)
        return r;
    (void)snprintf(query, sizeof(query),
        "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%.40s", path_of(c, path, ""),
        version);
    return remote_http_open(c->http, &rq, fn, ctx, ret, e);
}

/* ---- anything else --------------------------------------------------------------------------- */

int kube_client_ask(
    struct kube_client *c, const struct kube_request *rq, nsec_t until, json_t **ret, struct err *e)
{
    struct remote_http_request http = {.method = rq->method,
        .path = rq->path,
        .content_type = rq->content_type,
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    char *body = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;
    json_t *answer = NULL;
    int r;

    if (rq->body && !body)
        return err_set(e, -ENOMEM, "no memory for a request");
    http.body = body;
    http.body_len = body ? strlen(body) : 0;
    r = ask(c, &http, until, &answer, e);
    free(body);
    if (r == 0 && ret)
        *ret = answer;
    else
        json_decref(answer);
    return r;
}

int kube_client_open(struct kube_client *c, const char *path, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e)
{
    struct remote_http_request rq = {.method = "GET", .path = path, .max = ANSWER_MAX};
    int r = authorize(c, e);

    return r == 0 ? remote_http_open(c->http, &rq, fn, ctx, ret, e) : r;
}
