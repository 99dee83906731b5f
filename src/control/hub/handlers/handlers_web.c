/* handlers_web.c - the page that the hub shows to a browser: its files, who is at it, and what it
 * is told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/server.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/version.h"
#include "health/finding.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "hub/networks/public_addresses.h"
#include "hub/record/request.h"
#include "hub/watch/reports.h"
#include "hub/web/live.h"
#include "hub/web/web_access.h"
#include "hub/web/web_files.h"
#include "os/clock.h"
#include "os/log.h"

/* What a browser may do with it (CSP level 3): run, style, show and ask what is the hub's own, and
 * nothing else; make no script or document of a text; and be in no frame. */
#define WEB_POLICY                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* Its prefix binds it to this host (web_access.h); cookies know no ports. */
#define COOKIE_FORMAT WEB_COOKIE "=%s; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=%lld"

/* A mark of makers that have no token of which anything could change: root, and the hub. */
#define MARK_ALWAYS 1

/* False: the page is off, and @rs says so. */
static bool is_on(const struct handlers *h, struct response *rs)
{
    if (!h->web)
        response_refuse(rs, 404, "this hub shows no page: it was started without --web");
    return h->web != NULL;
}

/* ---- its files ------------------------------------------------------------------------------ */

static void answer_file(struct response *rs, const char *name)
{
    const struct web_file *file = web_file_find(name);

    if (!file) {
        response_refuse(rs, 404, "the page has no \"%.60s\"", name);
        return;
    }
    response_text(rs, 200, strdup(file->text), file->type);
    rs->policy = WEB_POLICY;
}

/* What each code means, for who looks one up: of docs/HEALTH.md. */
static json_t *codes_json(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < FINDING_CODE_N; i++) {
        const struct finding_kind *k = &finding_kinds[i];

        (void)json_object_set_new(all, k->code,
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "severity", finding_severity_names[k->severity],
                "title", k->title, "means", k->means, "fix", k->fix, "provoke", k->provoke));
    }
    return all;
}

void handlers_web_index(void *ctx, const struct request *rq, struct response *rs)
{
    if (is_on(ctx, rs))
        answer_file(rs, "index.html");
}

void handlers_web_file(void *ctx, const struct request *rq, struct response *rs)
{
    if (!is_on(ctx, rs))
        return;
    if (strcmp(rq->params[0], "codes.json") == 0)
        response_json(rs, 200, codes_json());
    else
        answer_file(rs, rq->params[0]);
}

/* ---- who is at it --------------------------------------------------------------------------- */

/* A number of the admin token of who made a login, as it is now; 0: there is none any more. */
static uint64_t mark_of(const struct handlers *h, const char *maker)
{
    static const char prefix[] = "admin:";
    const struct admin_token *t;
    uint64_t mark;

    if (strcmp(maker, "file:admin.token") == 0) {
        memcpy(&mark, h->admins->file.b, sizeof(mark));
        return h->admins->has_file ? mark | MARK_ALWAYS : 0;
    }
    if (strncmp(maker, prefix, sizeof(prefix) - 1) != 0)
        return MARK_ALWAYS;
    t = admin_tokens_find(h->admins, maker + sizeof(prefix) - 1);
    return t && t->record.expires_at > clock_wall_s() ? t->revision : 0;
}

/* Is what was granted still what its maker may grant? */
static bool is_good(const struct handlers *h, const struct web_grant *grant)
{
    const struct model_network *net =
        grant->network[0] ? model_find_network(h->model, grant->network) : NULL;

    if (grant->network[0] && !(net && x25519_public_equal(&net->maker.key, &grant->network_key)))
        return false;
    return grant->maker_mark != 0 && mark_of(h, grant->maker) == grant->maker_mark;
}

bool access_identify_page(void *ctx, const char *cookie, nsec_t now, struct caller *ret)
{
    struct handlers *h = ctx;
    const struct web_session *s = h->web ? web_access_find(h->web, cookie, now) : NULL;

    if (!s || !is_good(h, &s->grant))
        return false;
    ret->role = s->grant.role;
    ret->session = s->id;
    memcpy(ret->network, s->grant.network, sizeof(ret->network));
    (void)snprintf(ret->name, sizeof(ret->name), "page:%.*s", CALLER_NAME_MAX - 5, s->grant.maker);
    return true;
}

static bool holds(void *ctx, uint64_t session, nsec_t now)
{
    const struct handlers *h = ctx;
    const struct web_session *s = web_access_find_id(h->web, session, now);

    return s && is_good(h, &s->grant);
}

/* Where a browser finds this hub. */
static void add_host(const struct handlers *h, struct str *out)
{
    struct node_hub here = {.n_endpoints = 0};
    struct endpoint at;
    char text[ENDPOINT_TEXT_MAX];

    hub_places_tell(&here, &h->public_addresses->here, &h->public_addresses->next);
    if (here.n_names > 0) {
        str_addf(out, "%.*s:%u", (int)(strrchr(here.names[0], ':') - here.names[0]), here.names[0],
            h->api_port);
        return;
    }
    at = (struct endpoint){.addr = here.endpoints[0].addr, .port = h->api_port};
    str_add(out, endpoint_format(&at, text));
}

char *web_login_url(struct handlers *h, struct web_grant *grant, uint32_t ttl_s, nsec_t now)
{
    struct str url = STR_NULL;
    char secret[WEB_SECRET_MAX];

    grant->maker_mark = mark_of(h, grant->maker);
    web_access_offer(h->web, grant, ttl_s, now, secret);
    str_add(&url, "https://");
    add_host(h, &url);
    str_addf(&url, "/web/#login=%s", secret);
    secret_wipe(secret, sizeof(secret));
    return str_take(&url, NULL);
}

/* What is asked for, as far as who asks has it; false: @rs says what they lack. */
static bool read_grant(const struct handlers *h, const struct request *rq,
    const struct web_request *asked, struct web_grant *ret, struct response *rs)
{
    const char *network = asked->network[0] ? asked->network : rq->caller.network;
    const struct model_network *net = network[0] ? model_find_network(h->model, network) : NULL;

    if (asked->role > (unsigned)rq->caller.role) {
        response_refuse(rs, 403,
            "a login of role \"%s\" needs an admin token of that role; %s has "
            "role \"%s\"",
            role_names[asked->role], rq->caller.name, role_names[rq->caller.role]);
        return false;
    }
    if (rq->caller.network[0] && strcmp(network, rq->caller.network) != 0) {
        response_refuse(
            rs, 403, "%s is for network \"%s\" only", rq->caller.name, rq->caller.network);
        return false;
    }
    if (network[0] && !net) {
        response_refuse(rs, 404, "there is no network \"%s\" on this hub", network);
        return false;
    }
    *ret = (struct web_grant){
        .role = asked->role != ROLE_NONE ? (enum role)asked->role : rq->caller.role};
    if (net)
        ret->network_key = net->maker.key;
    (void)snprintf(ret->network, sizeof(ret->network), "%s", network);
    (void)snprintf(ret->maker, sizeof(ret->maker), "%s", rq->caller.name);
    return true;
}

void handlers_web_offer(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    struct web_request asked;
    struct web_grant grant;
    struct err e = ERR_NULL;
    char *url;

    if (!is_on(h, rs))
        return;
    if (web_request_decode(&asked, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    if (!read_grant(h, rq, &asked, &grant, rs))
        return;
    url = web_login_url(h, &grant, asked.ttl_seconds, rq->now);
    response_json(rs, 201,
        json_pack("{s:s*, s:s, s:s*, s:I}", "url", url, "role", role_names[grant.role], "network",
            grant.network[0] ? grant.network : NULL, "expires",
            (json_int_t)(clock_wall_s() + asked.ttl_seconds)));
    log_info(
        "%s has made a login for the page, of role \"%s\"", grant.maker, role_names[grant.role]);
    if (url)
        secret_wipe(url, strlen(url));
    free(url);
}

/* What the page has to know of who is at it. */
static json_t *session_json(
    const struct handlers *h, const struct caller *caller, const struct web_session *s, nsec_t now)
{
    return json_pack("{s:s, s:s, s:s*, s:o*, s:s, s:s}", "name", caller->name, "role",
        role_names[caller->role], "network", caller->network[0] ? caller->network : NULL, "expires",
        s ? json_integer((json_int_t)(clock_wall_s() + (s->ends_at - now) / NSEC_PER_SEC)) : NULL,
        "hub", h->model->self, "version", version_text);
}

static void refuse_login(struct response *rs, enum web_verdict verdict)
{
    if (verdict == WEB_LIMITED)
        response_refuse(
            rs, 429, "too many wrong logins came from this address: try again in a minute");
    else if (verdict == WEB_EXPIRED)
        response_refuse(
            rs, 401, "this login was not used in time: \"weft web\" on the hub prints another one");
    else
        response_refuse(rs, 401,
            "this login was used already, or is none of this hub's: \"weft web\" on the hub prints "
            "another one");
}

void handlers_web_login(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    struct web_login_request said;
    const struct web_session *s = NULL;
    struct caller caller = {.role = ROLE_NONE};
    char secret[WEB_SECRET_MAX];
    enum web_verdict verdict;
    struct err e = ERR_NULL;
    char *cookie;

    if (!is_on(h, rs))
        return;
    if (!rq->is_from_page) {
        response_refuse(rs, 403, "a login is used by the hub's own page, and nowhere else");
        return;
    }
    if (web_login_request_decode(&said, rq->body, &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    verdict = web_access_login(h->web, said.login, &rq->from.addr, rq->now, &s, secret);
    secret_wipe(&said, sizeof(said));
    if (verdict != WEB_TAKEN) {
        refuse_login(rs, verdict);
        return;
    }
    if (asprintf(&cookie, COOKIE_FORMAT, secret, (long long)(WEB_SESSION_LIFE / NSEC_PER_SEC)) < 0)
        cookie = NULL;
    secret_wipe(secret, sizeof(secret));
    caller.role = s->grant.role;
    memcpy(caller.network, s->grant.network, sizeof(caller.network));
    (void)snprintf(
        caller.name, sizeof(caller.name), "page:%.*s", CALLER_NAME_MAX - 5, s->grant.maker);
    log_info("somebody has logged in to the page, with a login of role \"%s\" that %s has made",
        role_names[s->grant.role], s->grant.maker);
    response_json(rs, 200, session_json(h, &caller, s, rq->now));
    rs->cookie = cookie;
}

void handlers_web_session(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;

    if (is_on(h, rs))
        response_json(rs, 200,
            session_json(
                h, &rq->caller, web_access_find_id(h->web, rq->caller.session, rq->now), rq->now));
}

void handlers_web_logout(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;

    if (!is_on(h, rs))
        return;
    if (rq->caller.session == 0) {
        response_refuse(rs, 409, "%s is not at the page, so nothing ends", rq->caller.name);
        return;
    }
    web_access_end(h->web, rq->caller.session);
    live_end_session(h->live, rq->caller.session);
    response_empty(rs);
    if (asprintf(&rs->cookie, COOKIE_FORMAT, "", 0LL) < 0)
        rs->cookie = NULL;
}

/* ---- what it is told ------------------------------------------------------------------------ */

static json_t *nodes_of(void *ctx, const struct model_network *net, nsec_t now)
{
    return handlers_nodes(ctx, net, now);
}

static json_t *jobs_of(void *ctx, const struct model_network *net)
{
    return handlers_jobs(ctx, net);
}

static const struct findings *findings_of(void *ctx, const struct model_network *net)
{
    const struct handlers *h = ctx;

    return health_of(&h->reports->health, net->spec.meta.name);
}

void handlers_web_begin(struct handlers *h, struct web_access *web, struct live *live)
{
    h->web = web;
    h->live = live;
    live->model = h->model;
    live->holds = holds;
    live->sources = (struct live_sources){.ctx = h,
        .nodes = nodes_of,
        .jobs = jobs_of,
        .findings = findings_of,
        .events = &h->reports->events};
}

void handlers_live(void *ctx, const struct request *rq, struct response *rs)
{
    struct handlers *h = ctx;
    const struct model_network *net = handlers_find_network(h, rq, rs);
    struct live_asker asker = {.session = rq->caller.session, .last_event = rq->last_event};
    struct err e = ERR_NULL;

    if (!net || !is_on(h, rs))
        return;
    rs->stream = live_open(h->live, net, &asker, rq->now, &e);
    rs->status = rs->stream ? 200 : 503;
    if (!rs->stream)
        response_refuse(rs, 503, "%s", err_text(&e));
}
