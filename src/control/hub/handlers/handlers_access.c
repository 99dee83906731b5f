/* handlers_access.c - who may administer, who may join, and who did what. */
#include <stdio.h>
#include <string.h>

#include "api/server/server.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/audit/audit.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/networks/backup.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks.h"
#include "hub/record/record.h"
#include "os/clock.h"
#include "os/log.h"

/* ---- admin tokens --------------------------------------------------------------------------- */

static json_t *admin_json(const struct admin_token *t)
{
    const struct admin_record *a = &t->record;

    return json_pack("{s:s, s:s, s:I, s:I, s:s, s:s*, s:o*}", "name", a->name, "role",
        role_names[a->role], "created", (json_int_t)a->created_at, "expires",
        (json_int_t)a->expires_at, "createdBy", a->created_by, "network",
        a->network[0] ? a->network : NULL, "lastUsed",
        t->last_used_at > 0 ? json_integer((json_int_t)t->last_used_at) : NULL);
}

void handlers_admins_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    json_t *list = json_array();

    for (size_t i = 0; i < h->admins->n; i++)
        json_array_append_new(list, admin_json(&h->admins->items[i]));
    response_json(rs, 200, json_pack("{s:o}", "adminTokens", list));
}

/* An admin token that is being made. */
struct admin_call {
    struct reply reply;
    struct admin_request ar;
    char text[ADMIN_TEXT_MAX]; /* the token */
};

static void forget_admin(struct reply *l)
{
    struct admin_call *call = container_of(l, struct admin_call, reply);

    secret_wipe(call->text, sizeof(call->text));
}

static void admin_made(struct reply *l, struct response *rs)
{
    struct admin_call *call = container_of(l, struct admin_call, reply);
    const struct admin_token *t = admin_tokens_find(l->h->admins, call->ar.name);
    json_t *json;

    if (!t) {
        response_refuse(rs, 409, "admin token \"%s\" was made, and somebody has removed it at once",
            call->ar.name);
        return;
    }
    log_info("%s has made the admin token \"%s\" of role \"%s\"", l->rq.caller.name, call->ar.name,
        role_names[call->ar.role]);
    json = admin_json(t);
    json_object_set_new(json, "token", json_string(call->text));
    response_json(rs, 201, json);
}

/* The store has answered, whatever it says: the token does not count as on its way any more. */
static void on_admin_stored(void *ctx, const struct store_answer *a)
{
    struct admin_call *call = ctx;

    call->reply.h->admins->n_coming--;
    reply_store(&call->reply, a);
}

static void add_admin(struct reply *l, const struct request *rq, struct response *rs)
{
    static const struct x25519_public none;
    struct admin_call *call = container_of(l, struct admin_call, reply);
    struct admin_tokens *at = l->h->admins;
    _cleanup_(token_write_deinit) struct token_write w = {.value = NULL};
    const struct model_network *net = NULL;
    struct err e = ERR_NULL;
    int r = admin_request_decode(&call->ar, rq->body, &e);

    if (r == 0 && call->ar.network[0]) {
        net = model_find_network(l->h->model, call->ar.network);
        if (!net) {
            response_refuse(rs, 404, "there is no network \"%s\" on this hub", call->ar.network);
            return;
        }
    }
    if (r == 0)
        r = admin_tokens_make(at, &call->ar, net ? &net->maker.key : &none, l->rq.caller.name,
            clock_wall_s(), &w, call->text, &e);
    if (r == 0) {
        r = model_commit(at->model, &w.op, 1, l->rq.now, on_admin_stored, call, &e);
        at->n_coming += r == 0;
    }
    l->done = admin_made;
    reply_wait(l, r, &e, rs);
}

void handlers_admins_add(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct admin_call), add_admin, forget_admin);
}

static void admin_removed(struct reply *l, struct response *rs)
{
    log_info("%s has removed the admin token \"%s\"", l->rq.caller.name, l->rq.params[0]);
    response_empty(rs);
}

static void remove_admin(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct admin_token *t = admin_tokens_find(l->h->admins, rq->params[0]);
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_DELETE,
        .key = admin_record_key(key, rq->params[0]),
        .expect = t ? t->revision : STORE_EXPECT_ANY};

    if (t || damaged_find(&l->h->model->damaged, key))
        reply_commit(l, &op, 1, admin_removed, rs);
    else
        response_refuse(rs, 404, "there is no admin token \"%s\" on this hub", rq->params[0]);
}

void handlers_admins_remove(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), remove_admin, NULL);
}

/* ---- what is in files ------------------------------------------------------------------------ */

/* The file's token that is being replaced. */
struct rotation {
    struct reply reply;
    char path[HANDLERS_PATH_MAX];
    struct token_hash hash; /* of the new one */
    int r;
    struct err e;
};

static void write_file(void *arg)
{
    struct rotation *rot = arg;

    rot->r = admin_tokens_write_file(&rot->reply.h->rng, rot->path, &rot->hash, &rot->e);
}

static void on_written(void *arg)
{
    struct rotation *rot = arg;
    struct response rs = {0};

    rot->reply.h->is_rotating = false;
    if (rot->r != 0) {
        response_fail(&rs, &rot->e);
    } else {
        rot->reply.h->admins->file = rot->hash;
        rot->reply.h->admins->has_file = true;
        log_info("%s has replaced the token in %s", rot->reply.rq.caller.name, rot->path);
        response_json(&rs, 200, json_pack("{s:s}", "path", rot->path));
    }
    reply_end(&rot->reply, &rs);
}

static void rotate_file(struct reply *l, struct response *rs)
{
    struct rotation *rot = container_of(l, struct rotation, reply);

    (void)snprintf(rot->path, sizeof(rot->path), "%s/admin.token", l->h->state_dir);
    /* One at a time: else the hub might know one token, and the file hold the other. */
    if (l->h->is_rotating) {
        response_refuse(rs, 409, "%s is being replaced just now: try again", rot->path);
        return;
    }
    if (disk_work(l->h->disk, write_file, on_written, rot) != 0) {
        response_refuse(rs, 500, "no memory for a new token");
        return;
    }
    l->h->is_rotating = true;
    l->is_waiting = true;
}

static void note_rotation(struct reply *l, const struct request *rq, struct response *rs)
{
    reply_note(l, "change", "file/admin.token", rotate_file, rs);
}

void handlers_admin_file_rotate(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct rotation), note_rotation, NULL);
}

/* ---- a copy of all of it --------------------------------------------------------------------- */

static void on_copied(void *ctx, int r, const char *path, const struct err *e)
{
    struct reply *l = ctx;
    struct response rs = {0};

    networks_hold_keys(l->h->networks, false);

    if (r == STORE_E_NO_FILES) {
        response_refuse(&rs, 409, "%s", err_text(e));
    } else if (r != 0) {
        response_fail(&rs, e);
    } else {
        log_info("%s has copied the hub's state to %s", l->rq.caller.name, path);
        response_json(&rs, 200, json_pack("{s:s}", "path", path));
    }
    reply_end(l, &rs);
}

static void copy_state(struct reply *l, struct response *rs)
{
    struct handlers *h = l->h;
    struct err e = ERR_NULL;

    if (h->networks->held_keys) {
        response_refuse(rs, 409, "a copy is being made just now: try again");
        return;
    }
    if (backup_make(h->model->store, h->disk, h->state_dir, on_copied, l, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    networks_hold_keys(h->networks, true);
    l->is_waiting = true;
}

/* The entry is written first, so that the copy holds it too. */
static void note_copy(struct reply *l, const struct request *rq, struct response *rs)
{
    reply_note(l, "copy", "file/backup", copy_state, rs);
}

void handlers_backup(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), note_copy, NULL);
}

/* ---- join tokens ---------------------------------------------------------------------------- */

/* Is it a token of this network, and not of a former one of the same name? */
static bool is_of(const struct model_token *t, const struct model_network *net)
{
    return strcmp(t->record.network, net->spec.meta.name) == 0 &&
           x25519_public_equal(&t->record.hub_key, &net->maker.key);
}

static json_t *token_json(const struct model_token *t)
{
    const struct token_record *record = &t->record;
    bool says_maker = record->created_at > 0;
    char id[AUDIT_TOKEN_ID_LEN + 1];

    return json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:o*, s:o*, s:s*}", "id",
        audit_token_id(id, &t->hash), "network", record->network, "expires",
        (json_int_t)record->expires_at, "usesLeft", (json_int_t)record->uses, "ephemeral",
        (int)record->ephemeral, "relay", (int)record->relay, "routes",
        record->routes.n > 0 ? subnets_encode(&record->routes) : NULL, "created",
        says_maker ? json_integer((json_int_t)record->created_at) : NULL, "createdBy",
        says_maker ? record->created_by : NULL);
}

void handlers_tokens_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);
    json_t *list;
    size_t cursor = 0;

    if (!net)
        return;
    list = json_array();
    for (struct htab_link *l = htab_each(&h->model->tokens, &cursor, NULL); l;
         l = htab_each(&h->model->tokens, &cursor, l)) {
        const struct model_token *t = container_of(l, struct model_token, link);

        if (is_of(t, net))
            json_array_append_new(list, token_json(t));
    }
    response_json(rs, 200, json_pack("{s:o}", "tokens", list));
}

static const struct model_token *find_token(
    const struct handlers *h, const struct model_network *net, const char *id)
{
    char own[AUDIT_TOKEN_ID_LEN + 1];
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&h->model->tokens, &cursor, NULL); l;
         l = htab_each(&h->model->tokens, &cursor, l)) {
        const struct model_token *t = container_of(l, struct model_token, link);

        if (is_of(t, net) && strcmp(audit_token_id(own, &t->hash), id) == 0)
            return t;
    }
    return NULL;
}

static void token_removed(struct reply *l, struct response *rs)
{
    log_info("%s has removed the join token %s of network \"%s\"", l->rq.caller.name,
        l->rq.params[1], l->rq.params[0]);
    response_empty(rs);
}

static void remove_token(struct reply *l, const struct request *rq, struct response *rs)
{
    const struct model_network *net = handlers_find_network(l->h, rq, rs);
    const struct model_token *t = net ? find_token(l->h, net, rq->params[1]) : NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_DELETE};

    if (!net)
        return;
    if (!t) {
        response_refuse(
            rs, 404, "network \"%s\" has no join token \"%s\"", rq->params[0], rq->params[1]);
        return;
    }
    op.key = token_hash_key(key, &t->hash);
    op.expect = t->revision;
    reply_commit(l, &op, 1, token_removed, rs);
}

void handlers_tokens_remove(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), remove_token, NULL);
}

/* ---- the audit log -------------------------------------------------------------------------- */

static bool read_id(
    const struct request *rq, const char *name, char ret[static AUDIT_ID_MAX], struct response *rs)
{
    const char *text = request_query(rq, name);

    if (!text)
        return true;
    if (!audit_id_check(text)) {
        response_refuse(rs, 400, "%s \"%.40s\" is not the id of an entry", name, text);
        return false;
    }
    memcpy(ret, text, AUDIT_ID_MAX);
    return true;
}

/* Find out which network the log is asked about: a caller for one network gets that one only. */
static bool read_network(
    const struct request *rq, char ret[static NAME_MAX_LEN + 1], struct response *rs)
{
    const char *text = request_query(rq, "network");
    const char *only = rq->caller.network;
    struct err e = ERR_NULL;

    if (text && parse_name(text, "network", &e) != 0) {
        response_fail(rs, &e);
        return false;
    }
    if (text && only[0] && strcmp(text, only) != 0) {
        response_refuse(rs, 403, "%s is for network \"%s\" only", rq->caller.name, only);
        return false;
    }
    (void)snprintf(ret, NAME_MAX_LEN + 1, "%s", text ? text : only);
    return true;
}

static void on_page(void *ctx, int r, json_t *page, const struct err *e)
{
    struct response rs = {0};

    if (r == 0)
        response_json(&rs, 200, page);
    else
        response_fail(&rs, e);
    reply_end(ctx, &rs);
}

static void read_page(struct reply *l, const struct request *rq, struct response *rs)
{
    struct audit_query q = {.limit = 0};
    uint64_t limit = AUDIT_PAGE_DEFAULT;
    uint64_t since = 0;
    struct err e = ERR_NULL;

    if (!read_id(rq, "after", q.after, rs) || !read_id(rq, "before", q.before, rs) ||
        !handlers_read_number(rq, "since", 0, INT64_MAX, &since, rs) ||
        !handlers_read_number(rq, "limit", 1, AUDIT_PAGE_MAX, &limit, rs) ||
        !read_network(rq, q.network, rs))
        return;
    q.since = (int64_t)since;
    q.limit = (unsigned)limit;
    reply_wait(l, audit_read(l->h->audit, &q, on_page, l, &e), &e, rs);
}

void handlers_audit(void *ctx, const struct request *rq, struct response *rs)
{
    reply_start(ctx, rq, rs, sizeof(struct reply), read_page, NULL);
}

/* ---- the routes themselves ------------------------------------------------------------------ */

void handlers_routes_list(void *ctx, const struct request *rq, struct response *rs)
{
    static const struct {
        enum api_access access;
        const char *name;
    } accesses[] = {{API_ACCESS_PUBLIC, "public"}, {API_ACCESS_OVERLAY, "overlay"},
        {API_ACCESS_ADMIN, "admin"}};
    static const char *const scopes[] = {
        [ROUTE_SCOPE_HUB] = "hub",
        [ROUTE_SCOPE_NETWORK] = "network",
        [ROUTE_SCOPE_FILTERED] = "filtered",
    };
    const struct handlers *h = ctx;
    json_t *list = json_array();

    for (const struct route *row = h->routes; row->method; row++) {
        json_t *open = json_array();

        for (size_t i = 0; i < sizeof(accesses) / sizeof(*accesses); i++)
            if (row->access & accesses[i].access)
                json_array_append_new(open, json_string(accesses[i].name));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "method", row->method, "path",
                      row->path, "doors", open, "role", role_names[row->role], "scope",
                      scopes[row->scope], "help", row->help));
    }
    response_json(rs, 200, json_pack("{s:o}", "routes", list));
}
