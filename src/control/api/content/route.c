/* route.c - see route.h. */
#include "route.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/text.h"

/* ---- who asks, and what that allows --------------------------------------------------------- */

const char *const role_names[] = {
    [ROLE_NONE] = "none",
    [ROLE_VIEWER] = "viewer",
    [ROLE_OPERATOR] = "operator",
    [ROLE_ADMIN] = "admin",
};
_Static_assert(sizeof(role_names) / sizeof(*role_names) == ROLE_N, "a name per role");

enum role role_parse(const char *text)
{
    size_t role = parse_word(text, role_names, ROLE_N);

    return role < ROLE_N ? (enum role)role : ROLE_NONE;
}

/* ---- routes --------------------------------------------------------------------------------- */

void response_deinit(struct response *rs)
{
    json_decref(rs->body);
    free(rs->text);
    free(rs->cookie);
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
    /* It may quote what a stranger sent, and cut that within a character. */
    text_make_plain(sentence, '?');
    response_json(rs, status, body_refusal(sentence));
}

void response_fail(struct response *rs, const struct err *e)
{
    int status = 500;

    if (e->code == -ENOSPC)
        status = 507;
    else if (e->code == -EAGAIN)
        status = 503;
    else if (e->code == -EINVAL)
        status = 400;
    response_refuse(rs, status, "%s", err_text(e));
}

static bool is_param_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._:", c));
}

/* Copies the variable part at @path into @param. What follows it; NULL: there is none, or it is too
 * long. */
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

/* Does the pattern's part at @pattern, "{name}" or "{name=word}", allow @param? */
static bool is_allowed(const char *pattern, const char *param)
{
    size_t len = strcspn(pattern, "=}");
    const char *word = pattern + len + 1;

    return pattern[len] == '}' ||
           (strlen(param) == strcspn(word, "}") && strncmp(word, param, strlen(param)) == 0);
}

static bool path_matches(
    const char *pattern, const char *path, char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1])
{
    unsigned n = 0;

    while (*pattern) {
        if (*pattern == '{' && n < ROUTE_PARAMS_MAX) {
            path = take_param(path, params[n]);
            if (!path || !is_allowed(pattern, params[n]))
                return false;
            n++;
            pattern = strchr(pattern, '}') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

const struct route *route_find(const struct route *table, const char *method, const char *path,
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX + 1], struct response *rs)
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
        if (strcmp(row->method, method) == 0)
            return row;
    }
    if (same_path)
        response_refuse(rs, 405, "%s takes no %.20s", same_path->path, method);
    else
        response_refuse(rs, 404, "there is no \"%.100s\"", path);
    return NULL;
}

/* Refuses a call of administrators that came to the public API without a valid admin token. */
static void refuse_stranger(
    struct response *rs, const struct route *row, const struct caller *caller)
{
    switch (caller->verdict) {
    case CALLER_NONE:
    case CALLER_KNOWN:
        response_refuse(rs, 401,
            "%s %s is for administrators: it needs \"Authorization: Bearer TOKEN\" with an "
            "admin token of role \"%s\"",
            row->method, row->path, role_names[row->role]);
        break;
    case CALLER_UNKNOWN:
        response_refuse(rs, 401,
            "the hub does not know this admin token: it is another hub's, or was removed or "
            "replaced; \"weft admin new NAME --role %s\" on the hub makes one",
            role_names[row->role]);
        break;
    case CALLER_EXPIRED:
        response_refuse(rs, 401,
            "the admin token of %s has expired, by the hub's clock: \"weft admin new NAME --role "
            "%s\" on the hub makes another",
            caller->name, role_names[row->role]);
        break;
    case CALLER_LIMITED:
        response_refuse(
            rs, 429, "too many wrong admin tokens came from this address: try again in a minute");
        break;
    }
}

static bool admits_caller(const struct route *row, const struct request *rq, struct response *rs)
{
    const struct caller *caller = &rq->caller;

    if (caller->session != 0 && !row->is_for_page && strcmp(row->method, "GET") != 0) {
        response_refuse(rs, 403,
            "%s %s is not for the page: ask with an admin token, or on the hub", row->method,
            row->path);
        return false;
    }
    if (caller->role < row->role) {
        response_refuse(rs, 403, "%s %s needs an admin token of role \"%s\"; %s has role \"%s\"",
            row->method, row->path, role_names[row->role], caller->name, role_names[caller->role]);
        return false;
    }
    if (caller->network[0] == '\0' || row->scope == ROUTE_SCOPE_FILTERED ||
        (row->scope == ROUTE_SCOPE_NETWORK && strcmp(rq->params[0], caller->network) == 0))
        return true;
    response_refuse(rs, 403,
        "%s %s needs an admin token of role \"%s\" for %s; %s is for network \"%s\" only",
        row->method, row->path, role_names[row->role],
        row->scope == ROUTE_SCOPE_NETWORK ? "that network" : "all networks", caller->name,
        caller->network);
    return false;
}

bool route_admits(const struct route *row, const struct request *rq, struct response *rs)
{
    if (row->access & rq->access) {
        /* A call that strangers may make, or that a member makes, needs no role. */
        return rq->access != API_ACCESS_ADMIN || (row->access & API_ACCESS_PUBLIC) ||
               admits_caller(row, rq, rs);
    }
    if (rq->access == API_ACCESS_PUBLIC && (row->access & API_ACCESS_ADMIN))
        refuse_stranger(rs, row, &rq->caller);
    else if (rq->access == API_ACCESS_METRICS)
        response_refuse(rs, 404, "%s %s is not here: GET /metrics is all that this address answers",
            row->method, row->path);
    else if (row->access & API_ACCESS_OVERLAY)
        response_refuse(
            rs, 403, "%s %s is for members, at the hub's overlay address", row->method, row->path);
    else
        response_refuse(rs, 403, "%s %s is not for members", row->method, row->path);
    return false;
}

int route_check(const struct route *table, struct err *e)
{
    for (const struct route *row = table; row->method; row++)
        if ((row->access & API_ACCESS_ADMIN) && !(row->access & API_ACCESS_PUBLIC) &&
            row->role == ROLE_NONE)
            return err_set(
                e, -EINVAL, "%s %s names no role that may call it", row->method, row->path);
    return 0;
}

/* ---- a program, or a web page? -------------------------------------------------------------- */

/* Is @host an address: "ADDRESS", "ADDRESS:PORT", "[ADDRESS]" or "[ADDRESS]:PORT"? Sets @ret. */
static bool is_address(const char *host, struct ip_addr *ret)
{
    struct endpoint ep = {.port = 0};
    size_t len = strnlen(host, ENDPOINT_TEXT_MAX);
    char inner[ENDPOINT_TEXT_MAX];

    if (len >= ENDPOINT_TEXT_MAX)
        return false;
    if (endpoint_parse(&ep, host, NULL) == 0) {
        *ret = ep.addr;
        return true;
    }
    if (ip_addr_parse(ret, host, NULL) == 0)
        return true;
    if (len < 2 || host[0] != '[' || host[len - 1] != ']')
        return false;
    (void)snprintf(inner, sizeof(inner), "%.*s", (int)len - 2, host + 1);
    return ip_addr_parse(ret, inner, NULL) == 0;
}

static bool names_address(const char *host, const struct ip_addr *own)
{
    struct ip_addr address;

    return is_address(host, &address) && ip_addr_equal(&address, own);
}

/* Is @host, with or without a port, a name that nobody can have in the world's DNS? */
static bool is_private_name(const char *host)
{
    static const char zone[] = ".weft";
    size_t len = strcspn(host, ":");

    if (!memchr(host, '.', len))
        return len > 0 && host[0] != '[';
    return len >= sizeof(zone) && strncmp(host + len - (sizeof(zone) - 1), zone, strlen(zone)) == 0;
}

int origin_check(const struct origin *o, struct err *e)
{
    char text[IP_ADDR_TEXT_MAX];
    struct ip_addr address;

    if (o->access == API_ACCESS_PUBLIC || o->is_page)
        return 0;
    if (o->origin)
        return err_set(e, -EPERM,
            "\"Origin: %.80s\" says that a web page asks, and this is no access for web pages",
            o->origin);
    if (o->access == API_ACCESS_OVERLAY && o->host && !names_address(o->host, &o->own))
        return err_set(e, -EPERM, "\"Host: %.80s\" is not this hub's overlay address, %s", o->host,
            ip_addr_format(&o->own, text));
    if (o->access == API_ACCESS_METRICS && o->host && !is_address(o->host, &address) &&
        !is_private_name(o->host))
        return err_set(e, -EPERM,
            "\"Host: %.80s\" is a name that anybody may have: figures are asked for by an address, "
            "by a name without a dot, or by a node's name in .weft",
            o->host);
    /* A name of one label, as "localhost" is, may be any machine's own. */
    if (o->is_unix && o->host && (o->host[0] == '\0' || strpbrk(o->host, ".:[]")))
        return err_set(e, -EPERM,
            "\"Host: %.80s\" is a name of the network, and this is a socket of this machine: "
            "\"localhost\" is its name",
            o->host);
    return 0;
}
