/* route.c - see route.h. */
#include "route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "base/err.h"

void response_deinit(struct response *rs)
{
    json_decref(rs->body);
    free(rs->text);
    *rs = (struct response){0};
}

void response_json(struct response *rs, int status, json_t *body)
{
    response_deinit(rs);
    rs->status = body ? status : 500;
    rs->body = body;
}

void response_text(struct response *rs, int status, char *text, const char *type)
{
    response_deinit(rs);
    rs->status = text ? status : 500;
    rs->text = text;
    rs->type = type;
}

void response_empty(struct response *rs)
{
    response_deinit(rs);
    rs->status = 204;
}

void response_refuse(struct response *rs, int status, const char *fmt, ...)
{
    char sentence[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    response_json(rs, status, body_refusal(sentence));
}

void response_fail(struct response *rs, const struct err *e)
{
    int status = 500;

    if (e->code == -ENOSPC)
        status = 507;
    else if (e->code == -EINVAL)
        status = 400;
    response_refuse(rs, status, "%s", err_text(e));
}

static bool is_param_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._:", c));
}

/* A variable part at @path into @param; what follows it, or NULL if it is none. */
static const char *take_param(const char *path, char param[ROUTE_PARAM_MAX + 1])
{
    size_t n = 0;

    while (is_param_char(path[n]))
        if (++n > ROUTE_PARAM_MAX)
            return NULL;
    if (n == 0)
        return NULL;
    memcpy(param, path, n);
    param[n] = '\0';
    return path + n;
}

static bool path_matches(
    const char *pattern, const char *path, char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1])
{
    unsigned n = 0;

    while (*pattern) {
        if (*pattern == '{' && n < ROUTE_PARAMS_MAX) {
            path = take_param(path, params[n++]);
            if (!path)
                return false;
            pattern = strchr(pattern, '}') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

static void refuse_door(struct response *rs, enum door door, const struct route *row)
{
    if (door == DOOR_PUBLIC && (row->doors & DOOR_ADMIN))
        response_refuse(rs, 401,
            "%s %s is for administrators: it needs \"Authorization: Bearer TOKEN\" with the "
            "hub's admin token",
            row->method, row->path);
    else if (row->doors & DOOR_OVERLAY)
        response_refuse(
            rs, 403, "%s %s is for members, at the hub's overlay address", row->method, row->path);
    else
        response_refuse(rs, 403, "%s %s is not for members", row->method, row->path);
}

const struct route *route_find(const struct route *table, enum door door, const char *method,
    const char *path, char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1], struct response *rs)
{
    const struct route *same_path = NULL;

    if (strnlen(path, ROUTE_PATH_MAX + 1) > ROUTE_PATH_MAX) {
        response_refuse(rs, 404, "the path is longer than %d characters", ROUTE_PATH_MAX);
        return NULL;
    }
    for (const struct route *row = table; row->method; row++) {
        if (!path_matches(row->path, path, params))
            continue;
        same_path = row;
        if (strcmp(row->method, method) != 0)
            continue;
        if (row->doors & door)
            return row;
        refuse_door(rs, door, row);
        return NULL;
    }
    if (same_path)
        response_refuse(rs, 405, "%s takes no %.20s", same_path->path, method);
    else
        response_refuse(rs, 404, "there is no \"%.100s\"", path);
    return NULL;
}
