/* door_access.c - who may administer, and who may join: admin tokens and join tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
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

    if (!admin_tokens_find(&hub->admins, rq->params[0])) {
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

    if (admin_tokens_rotate_file(&hub->admins, hub__path(hub, path, "admin.token"), &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    log_info("%s has replaced the token in %s", rq->caller.name, path);
    response_json(rs, 200, json_pack("{s:s}", "path", path));
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
