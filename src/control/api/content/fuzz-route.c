/* fuzz-route.c - paths and bodies as a stranger sends them, before any handler. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/content/route.h"
#include "base/err.h"
#include "test/support/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void handle(void *ctx, const struct request *rq, struct response *rs)
{
    response_empty(rs);
}

static const struct route table[] = {
    {"GET", "/v1/health", API_ACCESS_PUBLIC, handle, ""},
    {"GET", "/v1/networks/{network}/objects/{kind}", API_ACCESS_ADMIN, handle, "", ROLE_VIEWER,
        ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/networks/{network}/objects/{kind=Network}/{name}", API_ACCESS_ADMIN, handle, "",
        ROLE_ADMIN, ROUTE_SCOPE_NETWORK},
    {"PUT", "/v1/networks/{network}/objects/{kind}/{name}", API_ACCESS_ADMIN, handle, "",
        ROLE_OPERATOR, ROUTE_SCOPE_NETWORK},
    {"GET", "/v1/watch", API_ACCESS_OVERLAY, handle, ""},
    ROUTES_END,
};

static void check_path(const char *path, enum api_access access)
{
    struct request rq = {.access = access, .caller = {.role = ROLE_VIEWER, .network = "one"}};
    struct response rs = {0};
    const struct route *row = route_find(table, "GET", path, rq.params, &rs);

    if (row && route_admits(row, &rq, &rs)) {
        assert(row->access & access);
        assert(access != API_ACCESS_ADMIN || row->role <= ROLE_VIEWER);
        assert(row->scope != ROUTE_SCOPE_NETWORK || access != API_ACCESS_ADMIN ||
               strcmp(rq.params[0], "one") == 0);
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

/* Whatever "Host" says, it is this listener or it is refused in words. */
static void check_host(const char *text, bool is_unix)
{
    struct origin o = {.host = text,
        .access = is_unix ? API_ACCESS_ADMIN : API_ACCESS_OVERLAY,
        .is_unix = is_unix,
        .own = ip_addr_v4((const uint8_t[4]){10, 42, 0, 1})};
    struct err e = ERR_NULL;
    int r = origin_check(&o, &e);

    assert(r == 0 || (r < 0 && e.text[0]));
    if (r == 0)
        assert(is_unix ? !strchr(text, '.') : strstr(text, "10.42.0.1") || strchr(text, ':'));
    o.origin = text;
    assert(origin_check(&o, NULL) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);

    check_path(text, API_ACCESS_PUBLIC);
    check_path(text, API_ACCESS_OVERLAY);
    check_path(text, API_ACCESS_ADMIN);
    check_host(text, false);
    check_host(text, true);
    check_body(text, len);
    free(text);
    return 0;
}
