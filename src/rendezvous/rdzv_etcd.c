/* rdzv_etcd.c - see rdzv_etcd.h. */
#include "rdzv_etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define KEYS "/v2/keys"

/* The version that is answered for; clients choose their words by it. */
#define VERSION "3.4.0"

void rdzv_etcd_answer_deinit(struct rdzv_etcd_answer *a)
{
    free(a->body);
    a->body = NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

static const struct {
    int code;
    int status;
    const char *message;
} refusals[] = {
    {RDZV_TREE_E_NOT_FOUND, 404, "Key not found"},
    {RDZV_TREE_E_TEST_FAILED, 412, "Compare failed"},
    {RDZV_TREE_E_NOT_FILE, 403, "Not a file"},
    {RDZV_TREE_E_NOT_DIR, 400, "Not a directory"},
    {RDZV_TREE_E_EXISTS, 412, "Key already exists"},
    {RDZV_TREE_E_ROOT, 400, "Root is read only"},
    {RDZV_TREE_E_NOT_EMPTY, 403, "Directory not empty"},
    {RDZV_TREE_E_NO_PREV_VALUE, 400, "PrevValue is Required in POST form"},
    {RDZV_TREE_E_TTL, 400, "The given TTL in POST form is not a number"},
    {RDZV_TREE_E_INDEX, 400, "The given index in POST form is not a number"},
    {RDZV_TREE_E_FIELD, 400, "Invalid field"},
    {RDZV_TREE_E_FORM, 400, "Invalid POST form"},
    {RDZV_TREE_E_REFRESH_VALUE, 400, "Value provided on refresh"},
    {RDZV_TREE_E_REFRESH_TTL, 400, "A TTL must be provided on refresh"},
    {RDZV_TREE_E_INTERNAL, 500, "Raft Internal Error"},
    {RDZV_TREE_E_CLEARED, 400, "The event in requested index is outdated and cleared"},
};

static void answer_text(struct rdzv_etcd_answer *a, int status, const char *type, const char *text)
{
    free(a->body);
    a->body = NULL;
    if (asprintf(&a->body, "%s\n", text) < 0)
        a->body = NULL;
    a->status = a->body ? status : 500;
    a->type = type;
}

/* @json is taken. */
static void answer_json(struct rdzv_etcd_answer *a, int status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    answer_text(a, text ? status : 500, "application/json", text ? text : "");
    json_decref(json);
    free(text);
}

static void answer_refusal(
    struct rdzv_etcd_answer *a, const struct rdzv_refusal *why, uint64_t index)
{
    size_t i = 0;

    while (i + 1 < sizeof(refusals) / sizeof(*refusals) && refusals[i].code != why->code)
        i++;
    answer_json(a, refusals[i].status,
        json_pack("{s:i, s:s, s:s*, s:I}", "errorCode", why->code, "message", refusals[i].message,
            "cause", why->cause[0] ? why->cause : NULL, "index", (json_int_t)index));
    a->has_index = true;
    a->index = index;
    a->is_change = false;
}

void rdzv_etcd_fail(struct rdzv_etcd_answer *a, uint64_t index, const char *cause)
{
    struct rdzv_refusal why = {.code = RDZV_TREE_E_INTERNAL};

    (void)snprintf(why.cause, sizeof(why.cause), "%s", cause);
    answer_refusal(a, &why, index);
}

void rdzv_etcd_tell(struct rdzv_etcd_answer *a, const struct rdzv_event *ev)
{
    /* As etcd ends one that has waited for too long: no event, and no error. */
    answer_text(a, 200, "application/json", ev ? ev->json : "");
}

/* ---- fields --------------------------------------------------------------------------------- */

/* What a form says, checked. */
struct fields {
    bool recursive;
    bool wait;
    bool has_exist; /* prevExist is said */
    bool exist;     /* it */
    bool no_value;  /* the answer need not show what was written */
    uint64_t since; /* waitIndex */
    const char *value;
    struct rdzv_change change;
};

static int bad(struct rdzv_refusal *why, int code, const char *fmt, const char *name)
{
    (void)snprintf(why->cause, sizeof(why->cause), fmt, name);
    return why->code = code;
}

/* As Go's strconv.ParseBool() reads it; left alone when it is not said. */
static int read_bool(const struct form *f, const char *name, bool *ret, struct rdzv_refusal *why)
{
    static const char *const words[2][6] = {
        {"0", "f", "F", "false", "FALSE", "False"}, {"1", "t", "T", "true", "TRUE", "True"}};
    const char *text = form_find(f, name);

    if (!text)
        return 0;
    for (int i = 0; i < 12; i++) {
        if (strcmp(text, words[i / 6][i % 6]) == 0) {
            *ret = i / 6;
            return 0;
        }
    }
    return bad(why, RDZV_TREE_E_FIELD, "invalid value for \"%s\"", name);
}

static int read_number(
    const struct form *f, const char *name, uint64_t *ret, int code, struct rdzv_refusal *why)
{
    const char *text = form_find(f, name);

    if (!text || parse_u64(ret, text, 0, UINT64_MAX, name, NULL) == 0)
        return 0;
    return bad(why, code, "invalid value for \"%s\"", name);
}

static int read_ttl(const struct form *f, struct rdzv_change *c, struct rdzv_refusal *why)
{
    const char *text = form_find(f, "ttl");
    uint64_t ttl = 0;
    int r;

    if (!text || text[0] == '\0')
        return 0;
    r = read_number(f, "ttl", &ttl, RDZV_TREE_E_TTL, why);
    c->has_ttl = true;
    c->ttl_seconds = ttl < RDZV_TREE_TTL_MAX ? (uint32_t)ttl : RDZV_TREE_TTL_MAX;
    return r;
}

static int read_refresh(const struct form *f, struct fields *ret, struct rdzv_refusal *why)
{
    int r = read_bool(f, "refresh", &ret->change.is_refresh, why);

    if (r != 0 || !ret->change.is_refresh)
        return r ? bad(why, RDZV_TREE_E_FIELD, "invalid value for %s", "refresh") : 0;
    if (ret->value[0] != '\0')
        return bad(why, RDZV_TREE_E_REFRESH_VALUE, "%s", "A value was provided on a refresh");
    if (!ret->change.has_ttl)
        return bad(why, RDZV_TREE_E_REFRESH_TTL, "%s", "No TTL value set");
    return 0;
}

/* In the order in which etcd looks at them, since the first mistake is the one that is told. */
static int read_fields(
    const struct rdzv_etcd_request *rq, struct fields *ret, struct rdzv_refusal *why)
{
    const struct form *f = rq->form;
    bool ignored = false;
    int r = read_number(f, "prevIndex", &ret->change.prev_index, RDZV_TREE_E_INDEX, why);

    if (r == 0)
        r = read_number(f, "waitIndex", &ret->since, RDZV_TREE_E_INDEX, why);
    if (r == 0)
        r = read_bool(f, "recursive", &ret->recursive, why);
    if (r == 0)
        r = read_bool(f, "sorted", &ignored, why);
    if (r == 0)
        r = read_bool(f, "wait", &ret->wait, why);
    if (r == 0)
        r = read_bool(f, "dir", &ret->change.is_dir, why);
    if (r == 0)
        r = read_bool(f, "quorum", &ignored, why);
    ignored = false;
    if (r == 0)
        r = read_bool(f, "stream", &ignored, why);
    if (r == 0 && ignored)
        r = bad(why, RDZV_TREE_E_FIELD, "\"%s\" is not served: wait again with the next index",
            "stream");
    if (r == 0 && ret->wait && strcmp(rq->method, "GET") != 0)
        r = bad(why, RDZV_TREE_E_FIELD, "\"%s\" can only be used with GET requests", "wait");
    ret->change.prev_value = form_find(f, "prevValue");
    if (r == 0 && ret->change.prev_value && ret->change.prev_value[0] == '\0')
        r = bad(why, RDZV_TREE_E_NO_PREV_VALUE, "\"%s\" cannot be empty", "prevValue");
    if (r == 0)
        r = read_bool(f, "noValueOnSuccess", &ret->no_value, why);
    if (r == 0)
        r = read_ttl(f, &ret->change, why);
    ret->has_exist = form_find(f, "prevExist") != NULL;
    if (r == 0 && read_bool(f, "prevExist", &ret->exist, why) != 0)
        r = bad(why, RDZV_TREE_E_FIELD, "invalid value for %s", "prevExist");
    ret->value = form_find(f, "value") ? form_find(f, "value") : "";
    if (r == 0)
        r = read_refresh(f, ret, why);
    if (r == 0 && strlen(ret->value) > RDZV_TREE_VALUE_MAX)
        r = bad(why, RDZV_TREE_E_FORM, "%s", "the value is too long");
    return r;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static int put(struct rdzv_tree *t, const char *path, const struct fields *f, struct rdzv_when when,
    struct rdzv_event **ret, struct rdzv_refusal *why)
{
    bool is_compared = f->change.prev_index > 0 || f->change.prev_value;

    if (f->has_exist && !f->exist)
        return rdzv_tree_create(t, path, f->value, &f->change, when, ret, why);
    if (is_compared)
        return rdzv_tree_swap(t, path, f->value, &f->change, when, ret, why);
    if (f->has_exist)
        return rdzv_tree_update(t, path, f->value, &f->change, when, ret, why);
    return rdzv_tree_set(t, path, f->value, &f->change, when, ret, why);
}

static int change(struct rdzv_tree *t, const char *method, const char *path, const struct fields *f,
    struct rdzv_when when, struct rdzv_event **ret, struct rdzv_refusal *why)
{
    if (strcmp(method, "PUT") == 0)
        return put(t, path, f, when, ret, why);
    if (strcmp(method, "POST") == 0)
        return rdzv_tree_create_in_order(t, path, f->value, &f->change, when, ret, why);
    if (f->change.prev_index > 0 || f->change.prev_value)
        return rdzv_tree_compare_delete(t, path, &f->change, when, ret, why);
    return rdzv_tree_delete(t, path, f->change.is_dir, f->recursive, when, ret, why);
}

static bool shows_no_value(const struct fields *f, const struct rdzv_event *ev)
{
    return f->no_value && ev->action != RDZV_ACTION_DELETE &&
           ev->action != RDZV_ACTION_COMPARE_AND_DELETE;
}

static void answer_change(
    struct rdzv_etcd_answer *a, const struct fields *f, const struct rdzv_event *ev)
{
    int status = ev->is_created ? 201 : 200;

    if (shows_no_value(f, ev)) {
        json_t *json = json_loads(ev->json, 0, NULL);

        json_object_del(json, "node");
        json_object_del(json, "prevNode");
        answer_json(a, status, json);
    } else {
        answer_text(a, status, "application/json", ev->json);
    }
    a->index = ev->index;
}

static enum rdzv_etcd_way get(struct rdzv_tree *t, const char *path, const struct fields *f,
    struct rdzv_when when, struct rdzv_watcher *w, struct rdzv_etcd_answer *a,
    struct rdzv_refusal *why)
{
    struct rdzv_event *ev = NULL;
    json_t *json = NULL;

    if (!f->wait) {
        if (rdzv_tree_get(t, path, f->recursive, when, &json, why) == 0)
            answer_json(a, 200, json);
        return RDZV_ETCD_ANSWER;
    }
    w->path = strdup(path);
    w->is_recursive = f->recursive;
    if (!w->path) {
        why->code = RDZV_TREE_E_INTERNAL;
        return RDZV_ETCD_ANSWER;
    }
    if (rdzv_tree_watch(t, w, f->since, &ev, why) != 0)
        return RDZV_ETCD_ANSWER;
    if (!ev)
        return RDZV_ETCD_WAIT;
    rdzv_etcd_tell(a, ev);
    rdzv_event_unref(ev);
    return RDZV_ETCD_ANSWER;
}

static enum rdzv_etcd_way handle_keys(struct rdzv_tree *t, const struct rdzv_etcd_request *rq,
    struct rdzv_watcher *w, struct rdzv_etcd_answer *a)
{
    struct fields f = {.value = ""};
    struct rdzv_refusal why = {.code = 0};
    char path[RDZV_TREE_PATH_MAX + 1];
    struct rdzv_event *ev = NULL;
    enum rdzv_etcd_way way = RDZV_ETCD_ANSWER;

    a->is_keys = true;
    if (read_fields(rq, &f, &why) != 0) {
        answer_refusal(a, &why, 0);
        return RDZV_ETCD_ANSWER;
    }
    a->has_index = true;
    a->is_change = true;
    a->index = t->index;
    if (!rdzv_tree_clean(rq->path + sizeof(KEYS) - 1, path)) {
        (void)bad(&why, RDZV_TREE_E_FORM, "%s", "the key is too long");
    } else if (strcmp(rq->method, "GET") == 0 || strcmp(rq->method, "HEAD") == 0) {
        way = get(t, path, &f, rq->when, w, a, &why);
    } else if (change(t, rq->method, path, &f, rq->when, &ev, &why) == 0) {
        answer_change(a, &f, ev);
        rdzv_event_unref(ev);
        way = RDZV_ETCD_SAVE;
    }
    if (why.code != 0)
        answer_refusal(a, &why, t->index);
    return way;
}

/* ---- the other paths ------------------------------------------------------------------------ */

static json_t *members_json(const struct rdzv_etcd_request *rq, const char *id)
{
    json_t *urls = json_array();
    const char *p = rq->machines;

    while (*p) {
        size_t n = strcspn(p, ",");

        json_array_append_new(urls, json_stringn(p, n));
        p += n + strspn(p + n, ", ");
    }
    return json_pack("{s:[{s:s, s:s, s:[], s:o}]}", "members", "id", id, "name", "weft", "peerURLs",
        "clientURLs", urls);
}

static void handle_other(const struct rdzv_etcd_request *rq, struct rdzv_etcd_answer *a)
{
    char id[24];

    (void)snprintf(id, sizeof(id), "%" PRIx64, rq->id);
    if (strcmp(rq->path, "/version") == 0)
        answer_json(a, 200, json_pack("{s:s, s:s}", "etcdserver", VERSION, "etcdcluster", VERSION));
    else if (strcmp(rq->path, "/health") == 0)
        answer_json(a, 200, json_pack("{s:s}", "health", "true"));
    else if (strcmp(rq->path, "/v2/members") == 0)
        answer_json(a, 200, members_json(rq, id));
    else if (strcmp(rq->path, "/v2/stats/self") == 0)
        answer_json(a, 200,
            json_pack("{s:s, s:s, s:s, s:{s:s}}", "name", "weft", "id", id, "state", "StateLeader",
                "leaderInfo", "leader", id));
    else if (strcmp(rq->path, "/v2/stats/leader") == 0)
        answer_json(a, 200, json_pack("{s:s, s:{}}", "leader", id, "followers"));
    else if (strcmp(rq->path, "/v2/machines") == 0)
        answer_text(a, 200, "text/plain; charset=utf-8", rq->machines);
    else
        answer_text(a, 404, "text/plain; charset=utf-8", "404 page not found");
}

static bool is_text(const char *p)
{
    json_t *json = json_string(p);

    json_decref(json);
    return json != NULL;
}

enum rdzv_etcd_way rdzv_etcd_handle(struct rdzv_tree *t, const struct rdzv_etcd_request *rq,
    struct rdzv_watcher *w, struct rdzv_etcd_answer *a)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    bool is_keys =
        strncmp(rq->path, KEYS, sizeof(KEYS) - 1) == 0 && strchr("/", rq->path[sizeof(KEYS) - 1]);
    size_t i = 0;

    while (i < (is_keys ? 5 : 2) && strcmp(rq->method, methods[i]) != 0)
        i++;
    if (i == (is_keys ? 5 : 2)) {
        answer_text(a, 405, "text/plain; charset=utf-8", "Method Not Allowed");
        return RDZV_ETCD_ANSWER;
    }
    if (is_keys && !is_text(rq->path)) {
        answer_text(a, 400, "text/plain; charset=utf-8", "the path is not UTF-8");
        return RDZV_ETCD_ANSWER;
    }
    if (is_keys)
        return handle_keys(t, rq, w, a);
    handle_other(rq, a);
    return RDZV_ETCD_ANSWER;
}
