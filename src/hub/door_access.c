/* door_access.c - who may administer, who may join, and who did what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "hub/backup.h"
#include "hub/doors.h"
#include "hub/hub_internal.h"

/* ---- admin tokens --------------------------------------------------------------------------- */

static json_t *admin_json(const struct admin_token *t)
{
    const struct admin_record *a = &t->record;
    json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:s}", "name", a->name, "role",
        role_name(a->role), "created", (json_int_t)a->created, "expires", (json_int_t)a->expires,
        "createdBy", a->created_by);

    if (json && a->network[0])
        json_object_set_new(json, "network", json_string(a->network));
    if (json && t->last_used > 0)
        json_object_set_new(json, "lastUsed", json_integer((json_int_t)t->last_used));
    return json;
}

void door_admins_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    json_t *list = json_array();

    for (size_t i = 0; i < hub->admins.n; i++)
        json_array_append_new(list, admin_json(&hub->admins.items[i]));
    response_json(rs, 200, json_pack("{s:o}", "adminTokens", list));
}

void door_admins_add(void *ctx, const struct request *rq, struct response *rs)
{
    struct x25519_public hub_key = {{0}};
    struct hub *hub = ctx;
    struct admin_request ar;
    struct err e = ERR_NULL;
    char text[ADMIN_TEXT_MAX] = "";
    json_t *json;
    int r = admin_request_decode(&ar, rq->body, &e);

    if (r == 0 && ar.network[0]) {
        const struct model_network *net = model_find_network(&hub->model, ar.network);

        if (!net) {
            response_refuse(rs, 404, "there is no network \"%s\" on this hub", ar.network);
            return;
        }
        hub_key = net->pub.public;
    }
    if (r == 0)
        r = admin_tokens_add(
            &hub->admins, &ar, &hub_key, rq->caller.name, rq->now, hub__wall(), text, &e);
    if (r > 0) {
        response_refuse(rs, 409, "%s", err_text(&e));
    } else if (r != 0) {
        response_fail(rs, &e);
    } else {
        log_info("%s has made the admin token \"%s\" of role \"%s\"", rq->caller.name, ar.name,
            role_name(ar.role));
        json = admin_json(admin_tokens_find(&hub->admins, ar.name));
        if (json)
            json_object_set_new(json, "token", json_string(text));
        response_json(rs, 201, json);
    }
    secret_wipe(text, sizeof(text));
}

void door_admins_remove(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];

    if (!admin_tokens_find(&hub->admins, rq->params[0]) &&
        !damaged_find(&hub->model.damaged, admin_record_key(key, rq->params[0]))) {
        response_refuse(rs, 404, "there is no admin token \"%s\" on this hub", rq->params[0]);
        return;
    }
    if (admin_tokens_remove(&hub->admins, rq->params[0], rq->now, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("%s has removed the admin token \"%s\"", rq->caller.name, rq->params[0]);
    response_empty(rs);
}

void door_admin_file_rotate(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct err e = ERR_NULL;
    char path[512];

    if (audit_note(&hub->audit, "change", "file/admin.token", rq->now, &e) != 0 ||
        admin_tokens_rotate_file(&hub->admins, hub__path(hub, path, "admin.token"), &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("%s has replaced the token in %s", rq->caller.name, path);
    response_json(rs, 200, json_pack("{s:s}", "path", path));
}

/* ---- a copy of all of it --------------------------------------------------------------------- */

void door_backup(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct err e = ERR_NULL;
    char path[512];
    int r;

    /* Who takes the hub's keys away is told of in the log that goes with them. */
    r = audit_note(&hub->audit, "copy", "file/backup", rq->now, &e);
    if (r == 0)
        r = backup_make(hub->store, hub->config.state_dir, path, &e);
    if (r == STORE_E_NO_FILES) {
        response_refuse(rs, 409, "%s", err_text(&e));
        return;
    }
    if (r != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("%s has copied the hub's state to %s", rq->caller.name, path);
    response_json(rs, 200, json_pack("{s:s}", "path", path));
}

/* ---- join tokens ---------------------------------------------------------------------------- */

/* Is it one of this very network, and not of a former one of the name? */
static bool is_of(const struct model_token *t, const struct model_network *net)
{
    return strcmp(t->record.network, net->pub.spec.meta.name) == 0 &&
           x25519_public_equal(&t->record.hub_key, &net->pub.public);
}

static json_t *token_json(const struct model_token *t)
{
    const struct token_record *record = &t->record;
    char id[AUDIT_TOKEN_ID_LEN + 1];
    json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:b, s:b}", "id", audit_token_id(id, &t->hash),
        "network", record->network, "expires", (json_int_t)record->expires, "usesLeft",
        (json_int_t)record->uses, "ephemeral", (int)record->ephemeral, "relay", (int)record->relay);

    if (json && record->routes.n > 0)
        json_object_set_new(json, "routes", subnets_encode(&record->routes));
    if (json && record->created > 0) {
        json_object_set_new(json, "created", json_integer((json_int_t)record->created));
        json_object_set_new(json, "createdBy", json_string(record->created_by));
    }
    return json;
}

void door_tokens_list(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    const struct model_network *net = door_find_network(hub, rq, rs);
    json_t *list;
    size_t cursor = 0;

    if (!net)
        return;
    list = json_array();
    for (struct htab_link *l = htab_each(&hub->model.tokens, &cursor, NULL); l;
         l = htab_each(&hub->model.tokens, &cursor, l)) {
        const struct model_token *t = container_of(l, struct model_token, link);

        if (is_of(t, net))
            json_array_append_new(list, token_json(t));
    }
    response_json(rs, 200, json_pack("{s:o}", "tokens", list));
}

static const struct model_token *find_token(
    const struct hub *hub, const struct model_network *net, const char *id)
{
    char own[AUDIT_TOKEN_ID_LEN + 1];
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&hub->model.tokens, &cursor, NULL); l;
         l = htab_each(&hub->model.tokens, &cursor, l)) {
        const struct model_token *t = container_of(l, struct model_token, link);

        if (is_of(t, net) && strcmp(audit_token_id(own, &t->hash), id) == 0)
            return t;
    }
    return NULL;
}

void door_tokens_remove(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    const struct model_network *net = door_find_network(hub, rq, rs);
    const struct model_token *t = net ? find_token(hub, net, rq->params[1]) : NULL;
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = STORE_OP_DELETE, .expect = STORE_EXPECT_ANY};

    if (!net)
        return;
    if (!t) {
        response_refuse(
            rs, 404, "network \"%s\" has no join token \"%s\"", rq->params[0], rq->params[1]);
        return;
    }
    op.key = token_hash_key(key, &t->hash);
    if (model_commit(&hub->model, &op, 1, rq->now, NULL, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("%s has removed the join token %s of network \"%s\"", rq->caller.name, rq->params[1],
        rq->params[0]);
    response_empty(rs);
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

static bool read_number(const struct request *rq, const char *name, uint64_t min, uint64_t max,
    uint64_t *ret, struct response *rs)
{
    const char *text = request_query(rq, name);
    struct err e = ERR_NULL;

    if (!text || parse_u64(ret, text, min, max, name, &e) == 0)
        return true;
    response_refuse(rs, 400, "%s", err_text(&e));
    return false;
}

/* The network that is asked for; a caller for one only gets that one. */
static bool read_network(
    const struct request *rq, char ret[static NAME_MAX_LEN + 1], struct response *rs)
{
    const char *text = request_query(rq, "network");
    const char *only = rq->caller.network;
    struct err e = ERR_NULL;

    if (text && parse_name(text, "network", &e) != 0) {
        response_refuse(rs, 400, "%s", err_text(&e));
        return false;
    }
    if (text && only[0] && strcmp(text, only) != 0) {
        response_refuse(rs, 403, "%s is for network \"%s\" only", rq->caller.name, only);
        return false;
    }
    (void)snprintf(ret, NAME_MAX_LEN + 1, "%s", text ? text : only);
    return true;
}

void door_audit(void *ctx, const struct request *rq, struct response *rs)
{
    struct hub *hub = ctx;
    struct audit_query query = {.limit = 0};
    uint64_t limit = AUDIT_PAGE_DEFAULT;
    uint64_t since = 0;
    struct err e = ERR_NULL;
    json_t *json = NULL;

    if (!read_id(rq, "after", query.after, rs) || !read_id(rq, "before", query.before, rs) ||
        !read_number(rq, "since", 0, INT64_MAX, &since, rs) ||
        !read_number(rq, "limit", 1, AUDIT_PAGE_MAX, &limit, rs) ||
        !read_network(rq, query.network, rs))
        return;
    query.since = (int64_t)since;
    query.limit = (unsigned)limit;
    if (audit_read(hub->store, &query, &json, &e) != 0)
        response_fail(rs, &e);
    else
        response_json(rs, 200, json);
}

/* ---- the routes themselves ------------------------------------------------------------------ */

void door_routes_list(void *ctx, const struct request *rq, struct response *rs)
{
    static const struct {
        enum door door;
        const char *name;
    } doors[] = {{DOOR_PUBLIC, "public"}, {DOOR_OVERLAY, "overlay"}, {DOOR_ADMIN, "admin"}};
    static const char *const scopes[] = {
        [ROUTE_SCOPE_HUB] = "hub",
        [ROUTE_SCOPE_NETWORK] = "network",
        [ROUTE_SCOPE_FILTERED] = "filtered",
    };
    json_t *list = json_array();

    for (const struct route *row = hub__routes; row->method; row++) {
        json_t *open = json_array();

        for (size_t i = 0; i < sizeof(doors) / sizeof(*doors); i++)
            if (row->doors & doors[i].door)
                json_array_append_new(open, json_string(doors[i].name));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "method", row->method, "path",
                      row->path, "doors", open, "role", role_name(row->role), "scope",
                      scopes[row->scope], "help", row->help));
    }
    response_json(rs, 200, json_pack("{s:o}", "routes", list));
}
