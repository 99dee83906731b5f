/* etcd2_api.c - see etcd2_api.h. */
#include "rendezvous/etcd2/etcd2_api.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "rendezvous/etcd2/etcd2_node.h"

/* ==== what a form asks for =================================================================== */

/*
 * What the form of a request of etcd's v2 API asks for. Sans-I/O.
 *
 * The names of the fields, what each may hold, the order in which they are checked and the words of
 * refusals are etcd's.
 */

/** What a form says, checked. Starts as zeroes, with an empty value. */
struct etcd2_fields {
    bool wait;
    bool has_exist;             /* prevExist is in the form */
    bool exist;                 /* its value */
    bool no_value;              /* noValueOnSuccess: the answer leaves out what was written */
    uint64_t from_index;        /* waitIndex; 0: it is not in the form */
    struct etcd2_change change; /* its texts are borrowed from the form */
};

/* The field as a text; NULL: it is not in the form. With a zero byte inside it becomes one that no
 * number or word is. */
static const char *field_text(const struct form *f, const char *name)
{
    const struct form_field *field = form_find(f, name);

    if (!field)
        return NULL;
    return strlen(field->value) == field->value_len ? field->value : "\\0";
}

/* Reads a field as Go's strconv.ParseBool() does. @ret is unchanged when the form has no such
 * field. */
static int read_bool(const struct form *f, const char *name, bool *ret, struct etcd2_refusal *why)
{
    static const char *const words[2][6] = {
        {"0", "f", "F", "false", "FALSE", "False"}, {"1", "t", "T", "true", "TRUE", "True"}};
    const char *text = field_text(f, name);

    if (!text)
        return 0;
    for (int i = 0; i < 12; i++) {
        if (strcmp(text, words[i / 6][i % 6]) == 0) {
            *ret = i / 6;
            return 0;
        }
    }
    return etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for \"%s\"", name);
}

static int read_number(
    const struct form *f, const char *name, uint64_t *ret, int code, struct etcd2_refusal *why)
{
    const char *text = field_text(f, name);

    if (!text || parse_u64(ret, text, 0, UINT64_MAX, name, NULL) == 0)
        return 0;
    return etcd2_refusal_set(why, code, "invalid value for \"%s\"", name);
}

static int read_ttl(const struct form *f, struct etcd2_change *c, struct etcd2_refusal *why)
{
    const char *text = field_text(f, "ttl");
    uint64_t ttl = 0;
    int r;

    if (!text || text[0] == '\0')
        return 0;
    r = read_number(f, "ttl", &ttl, ETCD2_E_TTL, why);
    c->has_ttl = true;
    c->ttl_seconds = ttl < ETCD2_TTL_MAX ? (uint32_t)ttl : ETCD2_TTL_MAX;
    return r;
}

static int read_refresh(const struct form *f, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    int r = read_bool(f, "refresh", &ret->change.is_refresh, why);

    if (r != 0 || !ret->change.is_refresh)
        return r ? etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for %s", "refresh") : 0;
    if (ret->change.value.len > 0)
        return etcd2_refusal_set(
            why, ETCD2_E_REFRESH_VALUE, "%s", "A value was provided on a refresh");
    if (!ret->change.has_ttl)
        return etcd2_refusal_set(why, ETCD2_E_REFRESH_TTL, "%s", "No TTL value set");
    return 0;
}

/* Reads a field of any bytes; false when the form has no such field. */
static bool read_value(const struct form *f, const char *name, struct etcd2_text *ret)
{
    const struct form_field *field = form_find(f, name);

    if (field)
        *ret = (struct etcd2_text){field->value, field->value_len};
    return field != NULL;
}

static int read_flags(const struct form *f, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    bool ignored = false;
    bool is_stream = false;
    const struct {
        const char *name;
        bool *ret;
    } flags[] = {{"recursive", &ret->change.is_recursive}, {"sorted", &ignored},
        {"wait", &ret->wait}, {"dir", &ret->change.is_dir}, {"quorum", &ignored},
        {"stream", &is_stream}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(flags) / sizeof(*flags); i++)
        r = read_bool(f, flags[i].name, flags[i].ret, why);
    /* "stream" means something only together with "wait". */
    if (r == 0 && is_stream && ret->wait)
        r = etcd2_refusal_set(
            why, ETCD2_E_FIELD, "\"%s\" is not served: wait again with the next index", "stream");
    return r;
}

/*
 * Reads and checks the form of @rq, in etcd's order, since the answer tells the first mistake.
 *
 * Return: 0; or a code of etcd2_tree.h with @why, and then @ret is not to be used.
 */
static int etcd2_fields_read(
    const struct etcd2_request *rq, struct etcd2_fields *ret, struct etcd2_refusal *why)
{
    const struct form *f = rq->form;
    int r = rq->form_error ? etcd2_refusal_set(why, ETCD2_E_FORM, "%s", rq->form_error) : 0;

    if (r == 0)
        r = read_number(f, "prevIndex", &ret->change.prev_index, ETCD2_E_INDEX, why);
    if (r == 0)
        r = read_number(f, "waitIndex", &ret->from_index, ETCD2_E_INDEX, why);
    if (r == 0)
        r = read_flags(f, ret, why);
    if (r == 0 && ret->wait && strcmp(rq->method, "GET") != 0)
        r = etcd2_refusal_set(
            why, ETCD2_E_FIELD, "\"%s\" can only be used with GET requests", "wait");
    ret->change.has_prev_value = read_value(f, "prevValue", &ret->change.prev_value);
    if (r == 0 && ret->change.has_prev_value && ret->change.prev_value.len == 0)
        r = etcd2_refusal_set(why, ETCD2_E_NO_PREV_VALUE, "\"%s\" cannot be empty", "prevValue");
    if (r == 0)
        r = read_bool(f, "noValueOnSuccess", &ret->no_value, why);
    if (r == 0)
        r = read_ttl(f, &ret->change, why);
    ret->has_exist = form_find(f, "prevExist") != NULL;
    if (r == 0 && read_bool(f, "prevExist", &ret->exist, why) != 0)
        r = etcd2_refusal_set(why, ETCD2_E_FIELD, "invalid value for %s", "prevExist");
    (void)read_value(f, "value", &ret->change.value);
    if (r == 0)
        r = read_refresh(f, ret, why);
    if (r == 0 && ret->change.value.len > ETCD2_VALUE_MAX)
        r = etcd2_refusal_set(why, ETCD2_E_FORM, "%s", "the value is too long");
    return r;
}

#define KEYS "/v2/keys"

/* The version of etcd that is told; clients choose their requests by it. */
#define VERSION "3.4.0"

void etcd2_answer_deinit(struct etcd2_answer *a)
{
    free(a->body);
    a->body = NULL;
    a->body_len = 0;
    a->event = etcd2_event_unref(a->event);
}

struct etcd2_text etcd2_answer_text(const struct etcd2_answer *a)
{
    return a->event ? (struct etcd2_text){a->event->json, a->event->json_len}
                    : (struct etcd2_text){a->body, a->body_len};
}

/* ==== requests and their answers ============================================================= */

/* ---- answers -------------------------------------------------------------------------------- */

static const struct {
    int code;
    int status;
    const char *message;
} refusals[] = {
    {ETCD2_E_NOT_FOUND, 404, "Key not found"},
    {ETCD2_E_TEST_FAILED, 412, "Compare failed"},
    {ETCD2_E_NOT_FILE, 403, "Not a file"},
    {ETCD2_E_NOT_DIR, 400, "Not a directory"},
    {ETCD2_E_EXISTS, 412, "Key already exists"},
    {ETCD2_E_ROOT, 400, "Root is read only"},
    {ETCD2_E_NOT_EMPTY, 403, "Directory not empty"},
    {ETCD2_E_NO_PREV_VALUE, 400, "PrevValue is Required in POST form"},
    {ETCD2_E_TTL, 400, "The given TTL in POST form is not a number"},
    {ETCD2_E_INDEX, 400, "The given index in POST form is not a number"},
    {ETCD2_E_FIELD, 400, "Invalid field"},
    {ETCD2_E_FORM, 400, "Invalid POST form"},
    {ETCD2_E_REFRESH_VALUE, 400, "Value provided on refresh"},
    {ETCD2_E_REFRESH_TTL, 400, "A TTL must be provided on refresh"},
    {ETCD2_E_INTERNAL, 500, "Raft Internal Error"},
    {ETCD2_E_CLEARED, 400, "The event in requested index is outdated and cleared"},
};

/* Answers with @text, which is taken. NULL: there was no memory for it, and the answer is 500. */
static void answer_with(
    struct etcd2_answer *a, int status, const char *type, char *text, size_t len)
{
    etcd2_answer_deinit(a);
    a->body = text;
    a->body_len = text ? len : 0;
    a->status = text ? status : 500;
    a->type = type;
}

static void answer_text(struct etcd2_answer *a, int status, const char *type, const char *text)
{
    char *copy = NULL;
    int len = asprintf(&copy, "%s\n", text);

    answer_with(a, status, type, len < 0 ? NULL : copy, len < 0 ? 0 : (size_t)len);
}

static void answer_event(struct etcd2_answer *a, int status, struct etcd2_event *ev)
{
    etcd2_answer_deinit(a);
    a->event = etcd2_event_ref(ev);
    a->status = status;
    a->type = "application/json";
}

/* Answers with @json, which is taken. */
static void answer_json(struct etcd2_answer *a, int status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    answer_text(a, text ? status : 500, "application/json", text ? text : "");
    json_decref(json);
    free(text);
}

/* Writes a refusal as etcd words it. Its cause may show values, which are any bytes. */
static void write_refusal(
    struct etcd2_json *j, const struct etcd2_refusal *why, const char *message, uint64_t index)
{
    etcd2_json_raw(j, "{\"errorCode\":");
    etcd2_json_number(j, (uint64_t)why->code);
    etcd2_json_raw(j, ",\"message\":");
    etcd2_json_string(j, message, strlen(message));
    if (why->cause_len > 0) {
        etcd2_json_raw(j, ",\"cause\":");
        etcd2_json_string(j, why->cause, why->cause_len);
    }
    etcd2_json_raw(j, ",\"index\":");
    etcd2_json_number(j, index);
    etcd2_json_raw(j, "}\n");
}

static void answer_refusal(struct etcd2_answer *a, const struct etcd2_refusal *why, uint64_t index)
{
    struct etcd2_json j = {.max = SIZE_MAX};
    size_t i = 0;
    char *text;

    while (i + 1 < sizeof(refusals) / sizeof(*refusals) && refusals[i].code != why->code)
        i++;
    write_refusal(&j, why, refusals[i].message, index);
    text = malloc(j.len);
    j = (struct etcd2_json){.text = text, .max = SIZE_MAX};
    if (text)
        write_refusal(&j, why, refusals[i].message, index);
    answer_with(a, refusals[i].status, "application/json", text, j.len);
    a->has_index = true;
    a->index = index;
    a->is_change = false;
}

void etcd2_api_fail(struct etcd2_answer *a, uint64_t index, const char *cause)
{
    struct etcd2_refusal why = {.code = ETCD2_E_INTERNAL};

    (void)etcd2_refusal_set(&why, ETCD2_E_INTERNAL, "%s", cause);
    answer_refusal(a, &why, index);
}

void etcd2_api_refuse_length(struct etcd2_answer *a)
{
    answer_text(a, 413, "text/plain; charset=utf-8", "the body is too long");
}

void etcd2_api_tell(struct etcd2_answer *a, struct etcd2_event *ev)
{
    /* Without an event it is as etcd answers a wait that took too long: 200, and an empty line. */
    if (ev)
        answer_event(a, 200, ev);
    else
        answer_text(a, 200, "application/json", "");
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* What a request asks for, as /v2/stats/store counts it. */
static enum etcd2_count kind_of(const char *method, const struct etcd2_fields *f)
{
    bool is_compared = f->change.prev_index > 0 || f->change.has_prev_value;

    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        return ETCD2_COUNT_GET;
    if (strcmp(method, "DELETE") == 0)
        return is_compared ? ETCD2_COUNT_COMPARE_DELETE : ETCD2_COUNT_DELETE;
    if (strcmp(method, "POST") == 0 || (f->has_exist && !f->exist))
        return ETCD2_COUNT_CREATE;
    if (is_compared)
        return ETCD2_COUNT_SWAP;
    return f->has_exist ? ETCD2_COUNT_UPDATE : ETCD2_COUNT_SET;
}

typedef int (*change_fn)(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

static const change_fn changes[ETCD2_COUNT_N] = {
    [ETCD2_COUNT_SET] = etcd2_tree_set,
    [ETCD2_COUNT_DELETE] = etcd2_tree_delete,
    [ETCD2_COUNT_UPDATE] = etcd2_tree_update,
    [ETCD2_COUNT_CREATE] = etcd2_tree_create,
    [ETCD2_COUNT_SWAP] = etcd2_tree_swap,
    [ETCD2_COUNT_COMPARE_DELETE] = etcd2_tree_compare_delete,
};

static void answer_change(
    struct etcd2_answer *a, const struct etcd2_fields *f, struct etcd2_event *ev)
{
    static const char up_to[] = "\",";
    int status = ev->is_created ? 201 : 200;
    const char *end = memmem(ev->json, ev->json_len, up_to, sizeof(up_to) - 1);
    char *text = NULL;

    a->index = ev->index;
    if (!f->no_value || ev->action == ETCD2_ACTION_DELETE ||
        ev->action == ETCD2_ACTION_COMPARE_AND_DELETE || !end) {
        answer_event(a, status, ev);
        return;
    }
    /* Only the event's action is shown, which stands first in its text. */
    if (asprintf(&text, "%.*s\"}\n", (int)(end - ev->json), ev->json) < 0)
        text = NULL;
    answer_with(a, status, "application/json", text, text ? strlen(text) : 0);
}

static enum etcd2_api_way get(struct etcd2_tree *t, const char *path, const struct etcd2_fields *f,
    struct etcd2_watcher *w, struct etcd2_answer *a, struct etcd2_refusal *why)
{
    struct etcd2_event *ev = NULL;
    char *text = NULL;
    size_t len;

    if (!f->wait) {
        if (etcd2_tree_get(t, path, f->change.is_recursive, f->change.when, &text, &len, why) == 0)
            answer_with(a, 200, "application/json", text, len);
        return ETCD2_API_ANSWER;
    }
    w->path = strdup(path);
    w->is_recursive = f->change.is_recursive;
    if (!w->path) {
        why->code = ETCD2_E_INTERNAL;
        return ETCD2_API_ANSWER;
    }
    if (etcd2_tree_watch(t, w, f->from_index, &ev, why) != 0)
        return ETCD2_API_ANSWER;
    if (!ev)
        return ETCD2_API_WAIT;
    etcd2_api_tell(a, ev);
    etcd2_event_unref(ev);
    return ETCD2_API_ANSWER;
}

static const char *const count_names[ETCD2_COUNT_N] = {
    [ETCD2_COUNT_GET] = "getsSuccess",
    [ETCD2_COUNT_GET_FAIL] = "getsFail",
    [ETCD2_COUNT_SET] = "setsSuccess",
    [ETCD2_COUNT_SET_FAIL] = "setsFail",
    [ETCD2_COUNT_DELETE] = "deleteSuccess",
    [ETCD2_COUNT_DELETE_FAIL] = "deleteFail",
    [ETCD2_COUNT_UPDATE] = "updateSuccess",
    [ETCD2_COUNT_UPDATE_FAIL] = "updateFail",
    [ETCD2_COUNT_CREATE] = "createSuccess",
    [ETCD2_COUNT_CREATE_FAIL] = "createFail",
    [ETCD2_COUNT_SWAP] = "compareAndSwapSuccess",
    [ETCD2_COUNT_SWAP_FAIL] = "compareAndSwapFail",
    [ETCD2_COUNT_COMPARE_DELETE] = "compareAndDeleteSuccess",
    [ETCD2_COUNT_COMPARE_DELETE_FAIL] = "compareAndDeleteFail",
    [ETCD2_COUNT_EXPIRE] = "expireCount",
};

static enum etcd2_api_way handle_keys(struct etcd2_tree *t, const struct etcd2_request *rq,
    struct etcd2_watcher *w, struct etcd2_answer *a)
{
    struct etcd2_fields f = {.change = {.value = {.p = ""}, .when = rq->when}};
    bool in_order = strcmp(rq->method, "POST") == 0;
    struct etcd2_refusal why = {.code = 0};
    enum etcd2_count kind;
    char path[ETCD2_PATH_MAX + 1];
    struct etcd2_event *ev = NULL;
    enum etcd2_api_way way = ETCD2_API_ANSWER;

    a->is_keys = true;
    if (etcd2_fields_read(rq, &f, &why) != 0) {
        answer_refusal(a, &why, 0);
        return ETCD2_API_ANSWER;
    }
    a->has_index = true;
    a->is_change = true;
    a->index = t->index;
    kind = kind_of(rq->method, &f);
    if (!etcd2_path_clean(rq->path + sizeof(KEYS) - 1, path)) {
        (void)etcd2_refusal_set(&why, ETCD2_E_FORM, "%s", "the key is too long");
    } else if (kind == ETCD2_COUNT_GET) {
        way = get(t, path, &f, w, a, &why);
    } else if ((in_order ? etcd2_tree_create_in_order : changes[kind])(
                   t, path, &f.change, &ev, &why) == 0) {
        answer_change(a, &f, ev);
        etcd2_event_unref(ev);
        way = ETCD2_API_SAVE;
    }
    if (why.code == ETCD2_E_INTERNAL)
        rdzv_quota_refuse(t->nodes.quota, "the job's etcd was over a limit");
    if (why.code != 0)
        answer_refusal(a, &why, t->index);
    /* In enum etcd2_count the failures of each kind follow its successes. */
    t->counts[why.code == 0 ? kind : kind + 1]++;
    return way;
}

/* ---- the other paths ------------------------------------------------------------------------ */

static json_t *member_json(const struct etcd2_request *rq)
{
    json_t *urls = json_array();
    const char *p = rq->machines;

    while (*p) {
        size_t n = strcspn(p, ",");

        json_array_append_new(urls, json_stringn(p, n));
        p += n + strspn(p + n, ", ");
    }
    return json_pack(
        "{s:s, s:s, s:[], s:o}", "id", rq->id, "name", "weft", "peerURLs", "clientURLs", urls);
}

static void answer_version(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    answer_json(a, 200, json_pack("{s:s, s:s}", "etcdserver", VERSION, "etcdcluster", VERSION));
}

static void answer_health(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    answer_json(a, 200, json_pack("{s:s}", "health", "true"));
}

static void answer_machines(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    answer_text(a, 200, "text/plain; charset=utf-8", rq->machines);
}

static void answer_members(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    a->is_keys = true;
    answer_json(a, 200, json_pack("{s:[o]}", "members", member_json(rq)));
}

static void answer_leader(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    a->is_keys = true;
    answer_json(a, 200, member_json(rq));
}

/* The cluster has one member, which has led it since the process began. */
static void answer_self(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    nsec_t up = rq->when.wall > rq->started_at ? rq->when.wall - rq->started_at : 0;
    char started[ETCD2_TIME_MAX];
    char uptime[32];

    etcd2_time_format(rq->started_at, started);
    (void)snprintf(uptime, sizeof(uptime), "%lld.%09llds", (long long)(up / NSEC_PER_SEC),
        (long long)(up % NSEC_PER_SEC));
    answer_json(a, 200,
        json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:i, s:i}", "name", "weft", "id", rq->id,
            "state", "StateLeader", "startTime", started, "leaderInfo", "leader", rq->id, "uptime",
            uptime, "startTime", started, "recvAppendRequestCnt", 0, "sendAppendRequestCnt", 0));
}

static void answer_followers(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    answer_json(a, 200, json_pack("{s:s, s:{}}", "leader", rq->id, "followers"));
}

static void answer_counts(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    json_t *json = json_object();
    struct list *l;
    json_int_t n = 0;

    for (int i = 0; i < ETCD2_COUNT_N; i++)
        json_object_set_new(json, count_names[i], json_integer((json_int_t)t->counts[i]));
    for (l = t->events.watchers.next; l != &t->events.watchers; l = l->next)
        n++;
    json_object_set_new(json, "watchers", json_integer(n));
    answer_json(a, 200, json);
}

static const struct {
    const char *path;
    const char *allow; /* of the Allow header; NULL: none is sent */
    void (*answer)(struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a);
} others[] = {
    {"/version", "GET", answer_version},
    {"/health", "GET", answer_health},
    {"/v2/machines", "GET,HEAD", answer_machines},
    {"/v2/members", NULL, answer_members},
    {"/v2/members/", NULL, answer_members},
    {"/v2/members/leader", NULL, answer_leader},
    {"/v2/stats/self", "GET", answer_self},
    {"/v2/stats/leader", "GET", answer_followers},
    {"/v2/stats/store", "GET", answer_counts},
};

static void refuse_method(struct etcd2_answer *a, const char *allow)
{
    a->allow = allow;
    answer_text(a, 405, "text/plain; charset=utf-8", "Method Not Allowed");
}

static void handle_other(
    struct etcd2_tree *t, const struct etcd2_request *rq, struct etcd2_answer *a)
{
    bool is_get = strcmp(rq->method, "GET") == 0;
    bool is_head = strcmp(rq->method, "HEAD") == 0;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (strcmp(rq->path, others[i].path) != 0)
            continue;
        if (is_get || (is_head && others[i].allow && strstr(others[i].allow, "HEAD")))
            others[i].answer(t, rq, a);
        else
            refuse_method(a, others[i].allow);
        return;
    }
    if (strncmp(rq->path, "/v2/members/", 12) == 0) {
        a->is_keys = true;
        answer_json(a, 404, json_pack("{s:s}", "message", "Not found"));
        return;
    }
    answer_text(a, 404, "text/plain; charset=utf-8", "404 page not found");
}

enum etcd2_api_way etcd2_api_handle(struct etcd2_tree *t, const struct etcd2_request *rq,
    struct etcd2_watcher *w, struct etcd2_answer *a)
{
    static const char *const methods[] = {"HEAD", "GET", "PUT", "POST", "DELETE"};
    bool is_keys =
        strncmp(rq->path, KEYS, sizeof(KEYS) - 1) == 0 && strchr("/", rq->path[sizeof(KEYS) - 1]);

    /* A browser's preflight request. The answer has no header that would let a web page go on. */
    if (strcmp(rq->method, "OPTIONS") == 0) {
        answer_with(a, 200, NULL, calloc(1, 1), 0);
        return ETCD2_API_ANSWER;
    }
    if (!is_keys) {
        handle_other(t, rq, a);
        return ETCD2_API_ANSWER;
    }
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(rq->method, methods[i]) == 0)
            return handle_keys(t, rq, w, a);
    refuse_method(a, "HEAD,GET,PUT,POST,DELETE");
    return ETCD2_API_ANSWER;
}
