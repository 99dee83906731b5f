/* sample_hub.c - see sample_hub.h. */
#include "test/support/sample_hub.h"

#include <assert.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/content/body.h"
#include "api/server/server.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "hub/model/proof.h"
#include "hub/networks/networks.h"
#include "hub/watch/view.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/watch_event.h"
#include "os/log.h"
#include "test/support/store_now.h"

static uint64_t seed_now;

void sample_hub_seed(uint64_t seed)
{
    seed_now = seed;
}

void sample_hub_fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "\nthe seed was %llu\n", (unsigned long long)seed_now);
    assert(false);
    __builtin_unreachable();
}

/* ---- life ----------------------------------------------------------------------------------- */

void sample_hub_make_dir(struct sample_hub *s, bool on_disk)
{
    (void)snprintf(s->dir, sizeof(s->dir), "/tmp/weft-test-hub.XXXXXX");
    if (!mkdtemp(s->dir))
        sample_hub_fail("no directory");
    (void)snprintf(s->url, sizeof(s->url), "%s%s%s",
        on_disk ? "sqlite:" : "memory:", on_disk ? s->dir : "", on_disk ? "/hub.db" : "");
    s->now = 1000 * NSEC_PER_SEC;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

void sample_hub_remove_dir(struct sample_hub *s)
{
    if (nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        sample_hub_fail("%s stays", s->dir);
}

static void on_network(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    if (r != 0)
        sample_hub_fail("no network: %s", err_text(e));
}

/* As hub_start() does, but for the sockets. */
void sample_hub_open(struct sample_hub *s)
{
    struct network wanted = {
        .meta.name = "default", .mtu = NETWORK_MTU_DEFAULT, .keepalive = NETWORK_KEEPALIVE_AUTO};
    struct err e = ERR_NULL;

    log_init("hub", LOG_LEVEL_ERROR);
    (void)uv_loop_init(&s->loop);
    s->config = (struct hub_config){.state_dir = s->dir,
        .store_url = s->url,
        .store = s->store,
        .interface_prefix = "wt",
        .udp_port = 51820,
        .public_addresses.n = 1};
    (void)hub_public_parse(&s->config.public_addresses.items[0], "192.0.2.1", 51820, NULL);
    if (hub_new(&s->hub, &s->loop, &s->config, NULL, &e) != 0)
        sample_hub_fail("a hub does not start: %s", err_text(&e));
    hub__start_loop(s->hub);
    s->hub->networks.api_port = 8443;
    s->hub->handlers.api_port = 8443;
    if (!s->has_begun && networks_add(&s->hub->networks, &wanted, on_network, NULL, &e) != 0)
        sample_hub_fail("no network: %s", err_text(&e));
    store_wait(s->hub->store);
    s->has_begun = strncmp(s->url, "memory:", 7) != 0;
    if (networks_refresh(&s->hub->networks, s->now, &e) != 0)
        sample_hub_fail("the hub's own node: %s", err_text(&e));
    store_wait(s->hub->store);
    if (hub__serve(s->hub, &e) != 0)
        sample_hub_fail("a network is not brought up: %s", err_text(&e));
}

static void close_ear(struct sample_ear *ear)
{
    struct stream *st = ear->stream;

    snapshot_deinit(&ear->held);
    str_deinit(&ear->part);
    *ear = (struct sample_ear){.stream = NULL};
    if (st)
        st->on_closed(st);
}

void sample_hub_close(struct sample_hub *s)
{
    for (unsigned i = 0; i < SAMPLE_HUB_EARS_MAX; i++)
        close_ear(&s->ears[i]);
    hub_stop(s->hub);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    s->hub = hub_free(s->hub);
    if (uv_loop_close(&s->loop) != 0)
        sample_hub_fail("something is left in the loop");
}

void sample_hub_begin(struct sample_hub *s)
{
    *s = (struct sample_hub){.now = 0};
    sample_hub_make_dir(s, false);
    sample_hub_open(s);
}

void sample_hub_end(struct sample_hub *s)
{
    sample_hub_close(s);
    sample_hub_remove_dir(s);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void check_answer(
    const struct sample_hub *s, const struct response *rs, const char *method, const char *path)
{
    bool is_good = rs->status >= 200 && rs->status < 300;

    if (rs->status >= 500 && rs->status != 507 && !s->may_fail)
        sample_hub_fail("%s %s: %d %s", method, path, rs->status,
            rs->body && body_refusal_text(rs->body) ? body_refusal_text(rs->body) : "");
    if (!is_good && (!rs->body || strlen(body_refusal_text(rs->body)) < 10))
        sample_hub_fail("%s %s: %d without a sentence", method, path, rs->status);
}

/* As the member's agent would; the hub derives the same key. */
static void sign(struct request *rq, struct model_node *member, char *text)
{
    const struct member_proof_key *key = proof_key(member, rq->now);
    struct member_proof_request what = {
        .method = rq->method, .path = rq->path, .body = rq->bytes, .body_len = rq->n_bytes};
    struct member_proof proof = {.boot = member->net->model->boot};

    if (!key)
        return;
    proof.sequence = member->proof->window.highest + 1;
    if (member_proof_make(&proof, key, &what))
        rq->authorization = member_proof_format(&proof, text);
}

static void handle(struct sample_hub *s, struct request *rq, struct response *rs)
{
    const struct route *row = route_find(routes, rq->method, rq->path, rq->params, rs);

    if (!row)
        return;
    if (row->access & (unsigned)rq->access)
        row->handle(&s->hub->handlers, rq, rs);
    else
        response_refuse(rs, 403, "that is by another way in's");
}

/* It comes later; as the server takes it. */
static void wait_for_answer(struct sample_hub *s, struct response *rs)
{
    struct deferred *d = rs->deferred;

    while (!d->is_ready)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    *rs = d->rs;
    d->rs = (struct response){0};
    d->on_closed(d);
}

const char *sample_hub_query_value(const void *query, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = query; *at; at += strlen(at) + 1)
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return at + len + 1;
    return NULL;
}

/* Cut the query off @path; NULL: it has none. */
static const char *cut_query(char *path)
{
    char *query = strchr(path, '?');

    if (!query)
        return NULL;
    *query++ = '\0';
    for (char *at = query; (at = strchr(at, '&')); at++)
        *at = '\0';
    return query;
}

/* Hand the request over; the answer may be still to come. 400: it is no request at all. */
static int begin_ask(struct sample_hub *s, enum api_access access, struct model_node *member,
    const char *method, const char *path, const char *text, struct response *rs)
{
    struct request rq = {.access = access, .method = method, .now = s->now};
    char proof[MEMBER_PROOF_TEXT_MAX];
    char plain[1024] = "";
    struct err e = ERR_NULL;
    json_t *body = NULL;

    (void)snprintf(plain, sizeof(plain) - 1, "%s", path);
    rq.query = cut_query(plain);
    rq.query_value = sample_hub_query_value;
    rq.path = plain;
    rq.caller.role = ROLE_ADMIN;
    (void)endpoint_parse(&rq.from, "198.51.100.7:4000", NULL);
    if (text) {
        rq.bytes = text;
        rq.n_bytes = strlen(text);
        if (rq.n_bytes > BODY_MAX || body_parse(&body, text, strlen(text), &e) != 0)
            return 400;
        rq.body = body;
    }
    if (access == API_ACCESS_OVERLAY) {
        rq.listener_ctx = (void *)member->net; /* as changes.c gives it */
        rq.from.addr = member->spec.address4;
        sign(&rq, member, proof);
    }
    handle(s, &rq, rs);
    json_decref(body);
    return 0;
}

static int finish_ask(
    struct sample_hub *s, const char *method, const char *path, struct response *rs)
{
    if (rs->deferred)
        wait_for_answer(s, rs);
    check_answer(s, rs, method, path);
    return rs->status;
}

static int ask(struct sample_hub *s, enum api_access access, struct model_node *member,
    const char *method, const char *path, const char *text, struct response *rs)
{
    int status = begin_ask(s, access, member, method, path, text, rs);

    return status != 0 ? status : finish_ask(s, method, path, rs);
}

void sample_hub_ask_both(struct sample_hub *s, const struct sample_question questions[static 2],
    int ret_statuses[static 2])
{
    struct response rs[2] = {{0}, {0}};

    for (unsigned i = 0; i < 2; i++) {
        const struct sample_question *q = &questions[i];

        if (begin_ask(s, API_ACCESS_ADMIN, NULL, q->method, q->path, q->body, &rs[i]) != 0)
            sample_hub_fail("%s %s cannot be asked", q->method, q->path);
    }
    for (unsigned i = 0; i < 2; i++) {
        ret_statuses[i] = finish_ask(s, questions[i].method, questions[i].path, &rs[i]);
        response_deinit(&rs[i]);
    }
}

struct model_network *sample_hub_network(struct sample_hub *s)
{
    return model_find_network(&s->hub->model, "default");
}

struct model_node *sample_hub_node(struct sample_hub *s, const char *name)
{
    struct model_node *node = model_find_node(sample_hub_network(s), name);

    if (!node)
        sample_hub_fail("there is no node \"%s\"", name);
    return node;
}

void sample_hub_add_node(struct sample_hub *s, const char *name)
{
    uint8_t key[32] = {[1] = (uint8_t)name[0], [2] = 1, [3] = (uint8_t)name[1]};
    char text[BASE64_SIZE(32)];
    char body[256];

    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"publicKey\":\"%s\"}", name, text);
    if (sample_hub_ask(
            s, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks/default/nodes", body, NULL) != 201)
        sample_hub_fail("the node \"%s\" is not taken", name);
}

char *sample_hub_ask_text(struct sample_hub *s, struct model_node *member, const char *path)
{
    struct response rs = {0};
    char *text;

    (void)ask(s, API_ACCESS_OVERLAY, member, "GET", path, NULL, &rs);
    text = rs.text;
    rs.text = NULL;
    response_deinit(&rs);
    return text;
}

int sample_hub_ask(struct sample_hub *s, enum api_access access, struct model_node *member,
    const char *method, const char *path, const char *body, json_t **ret)
{
    struct response rs = {0};
    int status = ask(s, access, member, method, path, body, &rs);

    if (ret)
        *ret = rs.body ? json_incref(rs.body) : rs.text ? json_loads(rs.text, 0, NULL) : NULL;
    response_deinit(&rs);
    return status;
}

json_t *sample_hub_insist(
    struct sample_hub *s, const char *method, const char *path, const char *body, int status)
{
    json_t *json = NULL;
    int is = sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, &json);

    if (is != status) {
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

        sample_hub_fail("%s %s: %d %s", method, path, is, text ? text : "");
    }
    return json;
}

void sample_hub_write(struct sample_hub *s, const char *key, const char *value)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY};

    if (store_now_commit(s->hub->store, &op, 1, s->now, NULL, NULL, NULL) != 0)
        sample_hub_fail("%s cannot be written", key);
    store_wait(s->hub->store);
}

void sample_hub_turn_edge_off(struct sample_hub *s, const char *a, const char *b)
{
    char path[96];
    char body[256];
    int status;

    (void)snprintf(path, sizeof(path), "/v1/networks/default/objects/MeshEdge/%s--%s", a, b);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"%s--%s\"},"
        "\"spec\":{\"nodes\":[\"%s\",\"%s\"],\"path\":\"off\"}}",
        a, b, a, b);
    status = sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "PUT", path, body, NULL);
    if (status != 200 && status != 201)
        sample_hub_fail("the edge %s--%s is not turned off: %d", a, b, status);
}

/* ---- listening ------------------------------------------------------------------------------ */

void sample_hub_listen(struct sample_hub *s, struct model_node *member)
{
    for (unsigned i = 0; i < SAMPLE_HUB_EARS_MAX; i++) {
        struct sample_ear *ear = &s->ears[i];
        struct response rs = {0};

        if (ear->stream)
            continue;
        if (ask(s, API_ACCESS_OVERLAY, member, "GET", "/v1/watch", NULL, &rs) != 200) {
            response_deinit(&rs);
            return;
        }
        ear->stream = rs.stream;
        (void)snprintf(ear->network, sizeof(ear->network), "%.63s", member->net->keyed.key);
        (void)snprintf(ear->name, sizeof(ear->name), "%.63s", member->keyed.key);
        watch_turn(&s->hub->watcher, s->now);
        ear->stream->on_drained(ear->stream, s->now);
        return;
    }
}

/* What hub_link.c and agent.c do with a line. */
static void hear_line(struct sample_ear *ear, const char *line, size_t len)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    struct err e = ERR_NULL;

    ear->n_events++;
    if (watch_event_decode(&ev, line, len, &e) != 0)
        sample_hub_fail("an agent refuses \"%.*s\": %s", (int)len, line, err_text(&e));
    if (ev.kind == WATCH_EVENT_REMOVED)
        ear->is_removed = true;
    if (ev.kind == WATCH_EVENT_NONE || watch_event_apply(&ear->held, &ev, &e) != 0)
        sample_hub_fail("an agent cannot use \"%.*s\": %s", (int)len, line, err_text(&e));
    if (ev.skips.n > 0)
        sample_hub_fail(
            "an agent passes over \"%.*s\": %s", (int)len, line, err_text(&ev.skips.first));
}

static void hear_lines(struct sample_ear *ear)
{
    const char *text = str_text(&ear->part);
    size_t used = 0;

    for (;;) {
        const char *end = memchr(text + used, '\n', ear->part.len - used);

        if (!end)
            break;
        hear_line(ear, text + used, (size_t)(end - text) - used);
        used = (size_t)(end - text) + 1;
    }
    if (used > 0) {
        struct str rest = STR_NULL;

        str_add_bytes(&rest, text + used, ear->part.len - used);
        str_deinit(&ear->part);
        ear->part = rest;
    }
}

void sample_hub_hear(struct sample_hub *s)
{
    char buf[4096];

    watch_turn(&s->hub->watcher, s->now);
    for (unsigned i = 0; i < SAMPLE_HUB_EARS_MAX; i++) {
        struct sample_ear *ear = &s->ears[i];
        size_t n;

        if (!ear->stream)
            continue;
        while ((n = stream_take(ear->stream, buf, sizeof(buf), s->now)) > 0)
            str_add_bytes(&ear->part, buf, n);
        if (ear->part.len > 0)
            hear_lines(ear);
        if (ear->stream->ended || ear->stream->aborted)
            close_ear(ear);
        else
            ear->stream->on_drained(ear->stream, s->now);
    }
}

void sample_hub_wait(struct sample_hub *s, unsigned seconds)
{
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < seconds; i++) {
        s->now += NSEC_PER_SEC;
        if (reports_tick(&s->hub->reports, s->now, &e) != 0 ||
            model_expire(&s->hub->model, s->now, &e) != 0)
            sample_hub_fail("what is by the clock fails: %s", err_text(&e));
        store_wait(s->hub->store);
        watch_tick(&s->hub->watcher, s->now);
        sample_hub_hear(s);
    }
    (void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

/* The node's peers, or why there are none; free(). */
static char *peers_of(const struct snapshot *s)
{
    struct render_input in = {.snapshot = s};
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    char *text =
        render_config(&c, &in, &e) == 0 ? wg_quick_format_peers(&c, s, NULL) : strdup(err_text(&e));

    wg_config_deinit(&c);
    return text;
}

/* What a stock WireGuard is told is what "weft render" makes of the snapshot. Takes statuses out of
 * @fresh, of which none counts there. */
static void compare_lent(const struct model_node *node, struct snapshot *fresh)
{
    struct snapshot lent = SNAPSHOT_NULL;
    char *a;
    char *b;

    for (size_t i = 0; i < fresh->nodes.n; i++) {
        free(fresh->nodes.items[i]->node.side);
        fresh->nodes.items[i]->node.side = NULL;
    }
    if (!view_lend_snapshot(node, &lent))
        sample_hub_fail("there is no memory");
    a = peers_of(&lent);
    b = peers_of(fresh);
    if (strcmp(a, b) != 0)
        sample_hub_fail(
            "the peers of \"%s\" are\n%s\nand by its snapshot\n%s", node->keyed.key, a, b);
    free(a);
    free(b);
    view_return_snapshot(&lent);
}

static void compare_ear(struct sample_hub *s, const struct sample_ear *ear)
{
    struct model_network *net = model_find_network(&s->hub->model, ear->network);
    struct model_node *node = net ? model_find_node(net, ear->name) : NULL;
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    struct snapshot fresh = SNAPSHOT_NULL;
    struct err e = ERR_NULL;
    json_t *json;
    json_t *a;
    json_t *b;
    char *text;

    if (!node)
        return;
    text = view_snapshot_text(node);
    json = json_loads(text, 0, NULL);
    if (snapshot_decode(&fresh, json, &skips, &e) != 0 || skips.n > 0)
        sample_hub_fail("a fresh snapshot is not taken whole: %s %s", err_text(&e), text);
    a = snapshot_encode(&fresh);
    b = snapshot_encode(&ear->held);
    json_object_del(a, "revision");
    json_object_del(b, "revision");
    if (!json_equal(a, b))
        sample_hub_fail("\"%s\" holds\n%s\nand a fresh snapshot is\n%s", ear->name,
            json_dumps(b, JSON_COMPACT), json_dumps(a, JSON_COMPACT));
    json_decref(a);
    json_decref(b);
    json_decref(json);
    free(text);
    compare_lent(node, &fresh);
    snapshot_deinit(&fresh);
}

/* Nobody gets what is another one's, whoever asked and whoever admitted. */
static void check_routes(const struct model_network *net, const struct node *node)
{
    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *other = &model_node_at(net, i)->spec;

        for (unsigned k = 0; other != node && other->routes && k < node->routes->n; k++)
            if (subnets_find(other->routes, &node->routes->items[k]))
                sample_hub_fail("nodes \"%s\" and \"%s\" have overlapping routes", node->meta.name,
                    other->meta.name);
    }
    for (unsigned k = 0; k < node->routes->n; k++)
        if (node->hub || subnets_check_network(&node->routes->items[k], &net->spec, NULL) != 0)
            sample_hub_fail("node \"%s\" has a route that none may have", node->meta.name);
}

static void check_all_routes(const struct model *m)
{
    for (size_t i = 0; i < m->networks.n; i++) {
        const struct model_network *net = model_network_at(m, i);

        for (size_t k = 0; k < net->nodes.n; k++)
            if (model_node_at(net, k)->spec.routes)
                check_routes(net, &model_node_at(net, k)->spec);
    }
}

void sample_hub_compare(struct sample_hub *s)
{
    check_all_routes(&s->hub->model);
    sample_hub_wait(s, 20);
    for (unsigned i = 0; i < SAMPLE_HUB_EARS_MAX; i++)
        if (s->ears[i].stream)
            compare_ear(s, &s->ears[i]);
}

/* ---- showing -------------------------------------------------------------------------------- */

static void show_list(struct sample_hub *s, json_t *all, const char *network, const char *kind)
{
    char path[256];
    json_t *list;
    json_t *item;
    size_t i;

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/%s", network, kind);
    if (sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &list) != 200)
        sample_hub_fail("%s is not shown", path);
    json_array_foreach(json_object_get(list, "items"), i, item) {
        json_t *status = json_object_get(item, "status");
        char key[256];

        /* When it was heard last is written once a minute. */
        json_object_del(status, "lastSeen");
        (void)snprintf(key, sizeof(key), "%s/%s/%s", kind, network,
            json_string_value(json_object_get(json_object_get(item, "metadata"), "name")));
        json_object_set(all, key, item);
    }
    json_decref(list);
}

json_t *sample_hub_show(struct sample_hub *s)
{
    json_t *all = json_object();

    for (size_t i = 0; i < s->hub->model.networks.n; i++) {
        const struct model_network *net = model_network_at(&s->hub->model, i);

        for (unsigned k = 0; object_kinds[k]; k++)
            show_list(s, all, net->keyed.key, object_kinds[k]->name);
    }
    return all;
}
