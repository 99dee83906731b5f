/* fuzz-route.c - paths and bodies as a stranger sends them, before any handler. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/route.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void handle(void *ctx, const struct request *rq, struct response *rs)
{
    response_empty(rs);
}

static const struct route table[] = {
    {"GET", "/v1/health", DOOR_PUBLIC, handle, ""},
    {"GET", "/v1/networks/{network}/objects/{kind}", DOOR_ADMIN, handle, ""},
    {"PUT", "/v1/networks/{network}/objects/{kind}/{name}", DOOR_ADMIN, handle, ""},
    {"GET", "/v1/watch", DOOR_OVERLAY, handle, ""},
    ROUTES_END,
};

static void check_path(const char *path, enum door door)
{
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1];
    struct response rs = {0};
    const struct route *row = route_find(table, door, "GET", path, params, &rs);

    if (row) {
        assert(row->doors & door);
    } else {
        assert(rs.status >= 400 && rs.status < 500);
        assert(body_refusal_text(rs.body));
    }
    response_deinit(&rs);
}

static void check_body(const char *text, size_t len)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;

    if (body_parse(&json, text, len, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    assert(json_is_object(json));
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    check_path(text, DOOR_PUBLIC);
    check_path(text, DOOR_OVERLAY);
    check_path(text, DOOR_ADMIN);
    check_body(text, len);
    free(text);
    return 0;
}
