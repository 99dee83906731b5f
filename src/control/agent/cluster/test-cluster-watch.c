/*
 * test-cluster-watch.c - the network as a cluster's API tells it: listed, watched, lost and found.
 *
 * The API server is a thread of the test: it answers lists with what the test has written down, and
 * keeps watches open, into which the test says lines.
 */
#include "agent/cluster/cluster_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "backends/kubernetes/kube_client.h"
#include "base/err.h"
#include "mesh/object/rule.h"
#include "mesh/snapshot/watch_event.h"
#include "os/clock.h"
#include "test/support/sample_mesh.h"

enum kind { NETWORKS, NODES, EDGES, RULES, KINDS };

static const char *const plurals[KINDS] = {"/networks?", "/nodes?", "/meshedges?", "/rules?"};

/* ---- the API server -------------------------------------------------------------------------- */

static struct api {
    pthread_mutex_t lock; /* of all below */
    pthread_t thread;
    int fd; /* listens */
    char where[128];
    char config[64];
    char *lists[KINDS];       /* own: JSON */
    const char *second_page;  /* of the nodes; NULL: there is none */
    const char *list_status;  /* such as "200 OK" */
    const char *watch_status; /* likewise; NULL: watches are not answered yet */
    int watches[KINDS];       /* -1: not open */
    unsigned n_watches;       /* that were opened */
    unsigned n_lists;         /* that were asked for */
    char asked[KINDS][256];   /* for the last watch of each kind */
    char listed[KINDS][1024]; /* for the last list of each kind */
} api = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(int fd, const char *status, const char *body)
{
    char head[128];

    (void)snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nConnection: close\r\n\r\n", status);
    (void)!write(fd, head, strlen(head));
    (void)!write(fd, body, strlen(body));
}

static void take_request(int fd, const char *request)
{
    unsigned kind = 0;

    while (kind < KINDS && !strstr(request, plurals[kind]))
        kind++;
    assert_true(kind < KINDS);
    if (!strstr(request, "watch=true")) {
        api.n_lists++;
        (void)snprintf(api.listed[kind], sizeof(api.listed[kind]), "%.*s",
            (int)strcspn(request, "\r"), request);
        answer(
            fd, api.list_status, strstr(request, "continue=") ? api.second_page : api.lists[kind]);
        (void)close(fd);
        return;
    }
    (void)snprintf(
        api.asked[kind], sizeof(api.asked[kind]), "%.*s", (int)strcspn(request, "\r"), request);
    api.n_watches++;
    if (api.watch_status)
        answer(fd, api.watch_status, strncmp(api.watch_status, "200", 3) == 0 ? "" : "no");
    if (api.watch_status && strncmp(api.watch_status, "200", 3) != 0) {
        (void)close(fd);
        return;
    }
    if (api.watches[kind] >= 0)
        (void)close(api.watches[kind]);
    api.watches[kind] = fd;
}

static void *serve(void *arg)
{
    for (;;) {
        int fd = accept(api.fd, NULL, NULL);
        char request[2048] = "";
        size_t len = 0;
        ssize_t n = 1;

        if (fd < 0)
            return NULL;
        while (n > 0 && !strstr(request, "\r\n\r\n")) {
            n = read(fd, request + len, sizeof(request) - 1 - len);
            len += n > 0 ? (size_t)n : 0;
            request[len] = '\0';
        }
        (void)pthread_mutex_lock(&api.lock);
        take_request(fd, request);
        (void)pthread_mutex_unlock(&api.lock);
    }
}

/* What the API server has of an object that the hub has accepted; with @is_accepted false a person
 * has made it, and no hub has said anything yet. */
static json_t *resource(const struct object *o, bool is_accepted)
{
    json_t *object = object_encode(o);
    json_t *spec = json_object_get(object, "spec");
    const char *name = o->meta.name;
    char hash[KUBE_SPEC_HASH_MAX];
    char full[OBJECT_NAME_MAX + 16];
    json_t *json;

    kube_spec_hash(hash, o->kind, "default", name, spec);
    (void)snprintf(full, sizeof(full), "%s%s", o->kind->is_network ? "" : "default.", name);
    json = json_pack("{s:{s:s, s:s, s:{s:s, s:s*}}, s:O}", "metadata", "name", full,
        "resourceVersion", "31", "annotations", KUBE_SPEC_REVISION, "50", KUBE_SPEC_ACCEPTED,
        is_accepted ? hash : NULL, "spec", spec);
    json_decref(object);
    assert_non_null(json);
    return json;
}

static json_t *node_resource(unsigned n, bool is_accepted)
{
    struct object o = sample_node(n);
    json_t *json = resource(&o, is_accepted);

    object_deinit(&o);
    return json;
}

/* @items is taken; @more: "": the list ends here. */
static char *list_of(json_t *items, const char *more)
{
    json_t *json = json_pack("{s:{s:s, s:s}, s:o}", "metadata", "resourceVersion", "77", "continue",
        more, "items", items);
    char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    return text;
}

static void set_list(enum kind kind, char *list)
{
    (void)pthread_mutex_lock(&api.lock);
    free(api.lists[kind]);
    api.lists[kind] = list;
    (void)pthread_mutex_unlock(&api.lock);
}

/* The network, its hub and n2; no edges. */
static void set_lists(void)
{
    struct snapshot s = sample_snapshot(2, 2);
    struct object network = {.kind = &network_kind, .network = s.network};

    set_list(NETWORKS, list_of(json_pack("[o]", resource(&network, true)), ""));
    set_list(
        NODES, list_of(json_pack("[o, o]", node_resource(1, true), node_resource(2, true)), ""));
    set_list(EDGES, list_of(json_array(), ""));
    set_list(RULES, list_of(json_array(), ""));
    snapshot_deinit(&s);
}

static void start_api(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    FILE *f;

    api.list_status = api.watch_status = "200 OK";
    api.second_page = NULL;
    api.n_lists = api.n_watches = 0;
    for (unsigned i = 0; i < KINDS; i++)
        api.watches[i] = -1;
    api.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(api.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(api.fd, 8), 0);
    assert_int_equal(getsockname(api.fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(api.config, sizeof(api.config), "/tmp/weft-test-kubeconfig.%d", (int)getpid());
    (void)snprintf(api.where, sizeof(api.where), "?kubeconfig=%s", api.config);
    f = fopen(api.config, "w");
    assert_non_null(f);
    (void)fprintf(f,
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: weft}}]\n",
        ntohs(at.sin_port));
    (void)fclose(f);
    set_lists();
    assert_int_equal(pthread_create(&api.thread, NULL, serve, NULL), 0);
}

static void stop_api(void)
{
    (void)shutdown(api.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(api.thread, NULL), 0);
    (void)close(api.fd);
    (void)unlink(api.config);
    for (unsigned i = 0; i < KINDS; i++) {
        if (api.watches[i] >= 0)
            (void)close(api.watches[i]);
        free(api.lists[i]);
        api.lists[i] = NULL;
    }
}

/* At once. */
static void say_text(enum kind kind, const char *text)
{
    (void)pthread_mutex_lock(&api.lock);
    assert_true(api.watches[kind] >= 0);
    (void)!write(api.watches[kind], text, strlen(text));
    (void)pthread_mutex_unlock(&api.lock);
}

/* @json: taken; NULL: the watch ends. */
static void say(enum kind kind, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    (void)pthread_mutex_lock(&api.lock);
    assert_true(api.watches[kind] >= 0);
    if (text) {
        (void)!write(api.watches[kind], text, strlen(text));
        (void)!write(api.watches[kind], "\n", 1);
    } else {
        (void)close(api.watches[kind]);
        api.watches[kind] = -1;
    }
    (void)pthread_mutex_unlock(&api.lock);
    free(text);
    json_decref(json);
}

static unsigned get(const unsigned *n)
{
    unsigned is;

    (void)pthread_mutex_lock(&api.lock);
    is = *n;
    (void)pthread_mutex_unlock(&api.lock);
    return is;
}

/* ---- who is told ----------------------------------------------------------------------------- */

static struct world {
    uv_loop_t loop;
    uv_timer_t turn;
    struct cluster_watch *cw;
    struct snapshot snapshot; /* as of the last one */
    unsigned n_snapshots;
    unsigned n_puts;
    unsigned n_deletes;
    char last[NAME_MAX_LEN + 1]; /* of the last put or delete */
    char kept[256];              /* of the last snapshot, as JSON */
    unsigned n_changes;
    bool is_heard;
    char why[256];
} w;

static void on_event(void *ctx, struct watch_event *ev, const json_t *kept)
{
    char *text = kept ? json_dumps(kept, JSON_COMPACT) : NULL;

    (void)snprintf(w.kept, sizeof(w.kept), "%s", text ? text : "");
    free(text);
    if (ev->kind == WATCH_EVENT_SNAPSHOT) {
        w.n_snapshots++;
        snapshot_deinit(&w.snapshot);
        w.snapshot = ev->snapshot;
        ev->snapshot = (struct snapshot)SNAPSHOT_NULL;
    } else if (ev->kind == WATCH_EVENT_PUT) {
        w.n_puts++;
        (void)snprintf(w.last, sizeof(w.last), "%.*s", NAME_MAX_LEN, ev->object.meta.name);
    } else if (ev->kind == WATCH_EVENT_DELETE) {
        w.n_deletes++;
        (void)snprintf(w.last, sizeof(w.last), "%.*s", NAME_MAX_LEN, ev->deleted.name);
    }
}

static void on_change(void *ctx, bool heard, const char *why)
{
    w.n_changes++;
    w.is_heard = heard;
    (void)snprintf(w.why, sizeof(w.why), "%s", why);
}

static void on_turn(uv_timer_t *timer)
{
}

static int enter(void **state)
{
    memset(&w, 0, sizeof(w));
    start_api();
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    return uv_timer_start(&w.turn, on_turn, 5, 5);
}

static int leave(void **state)
{
    w.cw = cluster_watch_free(w.cw);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    stop_api();
    snapshot_deinit(&w.snapshot);
    return uv_loop_close(&w.loop);
}

static void begin(void)
{
    const struct cluster_self self = {.network = "default", .node = "n2"};
    const struct cluster_listener listener = {.on_event = on_event, .on_change = on_change};
    struct err e = ERR_NULL;

    if (cluster_watch_new(&w.cw, &w.loop, api.where, &self, &listener, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static void wait_for(const unsigned *n, unsigned wanted)
{
    for (unsigned i = 0; i < 2000 && get(n) < wanted; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    if (get(n) < wanted)
        fail_msg("%u of %u within 10 s: %s", get(n), wanted, w.why);
}

static void begin_well(void)
{
    begin();
    wait_for(&w.n_changes, 1);
    assert_true(w.is_heard);
    wait_for(&api.n_watches, KINDS);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_what_there_is_comes_as_one_snapshot(void **state)
{
    begin_well();
    assert_int_equal(w.n_snapshots, 1);
    assert_string_equal(w.snapshot.self, "n2");
    assert_string_equal(w.snapshot.network.meta.name, "default");
    assert_int_equal(w.snapshot.nodes.n, 2);
    assert_int_equal(w.snapshot.revision, 50);
    assert_string_equal(w.kept, "{}");
    assert_int_equal(get(&api.n_lists), KINDS);
    assert_string_equal(api.listed[EDGES],
        "GET /apis/weft.dev/v1alpha1/namespaces/weft/meshedges?limit=500 HTTP/1.1");
    /* Each watch goes on where its list ended. */
    for (unsigned i = 0; i < KINDS; i++)
        assert_non_null(
            strstr(api.asked[i], "?watch=true&allowWatchBookmarks=true&resourceVersion=77 "));
    assert_memory_equal(api.asked[NODES], "GET /apis/weft.dev/v1alpha1/namespaces/weft/nodes?", 50);
}

/* Without them the node would let in whoever comes. */
static void test_rules(void **state)
{
    struct object o = OBJECT_NULL;
    json_t *json = json_pack("{s:s, s:{s:s, s:s}, s:{s:[s], s:[s], s:[s]}}", "kind", "Rule",
        "metadata", "name", "ssh", "network", "default", "spec", "from", "members", "to", "members",
        "allow", "tcp/22");

    assert_int_equal(object_decode(&o, json, OBJECT_STRICT, NULL), 0);
    json_decref(json);
    set_list(RULES, list_of(json_pack("[o, o]", resource(&o, true), resource(&o, false)), ""));
    begin_well();
    assert_int_equal(snapshot_list(&w.snapshot, &rule_kind)->n, 1);
    assert_string_equal(w.kept, "{\"rules\":[\"ssh\"]}");
    say(RULES, json_pack("{s:s, s:o}", "type", "DELETED", "object", resource(&o, true)));
    wait_for(&w.n_deletes, 1);
    assert_string_equal(w.last, "ssh");
    object_deinit(&o);
}

/* What the hub has not accepted does not count; an object that was there before stays. */
static void test_what_is_not_accepted_is_kept(void **state)
{
    set_list(
        NODES, list_of(json_pack("[o, o, o, o]", node_resource(1, true), node_resource(2, true),
                           node_resource(3, false), node_resource(4, false)),
                   ""));
    begin_well();
    assert_int_equal(w.snapshot.nodes.n, 2);
    assert_string_equal(w.kept, "{\"nodes\":[\"n3\",\"n4\"]}");
}

static void test_a_list_of_two_pages(void **state)
{
    char *second = list_of(json_pack("[o]", node_resource(3, true)), "");

    set_list(NODES, list_of(json_pack("[o, o]", node_resource(1, true), node_resource(2, true)),
                        "abcXYZ-_.=9"));
    api.second_page = second;
    begin_well();
    assert_int_equal(w.snapshot.nodes.n, 3);
    assert_int_equal(get(&api.n_lists), KINDS + 1);
    assert_string_equal(api.listed[NODES], "GET /apis/weft.dev/v1alpha1/namespaces/weft/nodes?"
                                           "limit=500&continue=abcXYZ-_.=9 HTTP/1.1");
    w.cw = cluster_watch_free(w.cw);
    free(second);
}

/* It would become a part of a URL. */
static void test_a_page_that_cannot_be_continued(void **state)
{
    set_list(NODES, list_of(json_array(), "a&b"));
    begin();
    wait_for(&w.n_changes, 1);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "the API server's list cannot be continued: \"a&b\"");
    assert_int_equal(w.n_snapshots, 0);
}

/* What continues a list has 511 bytes at most. */
static void test_a_page_that_is_continued_at_length(void **state)
{
    char *second = list_of(json_pack("[o]", node_resource(3, true)), "");
    char token[513] = "";

    memset(token, 'a', 511);
    set_list(
        NODES, list_of(json_pack("[o, o]", node_resource(1, true), node_resource(2, true)), token));
    api.second_page = second;
    begin_well();
    assert_int_equal(w.snapshot.nodes.n, 3);
    token[511] = 'a';
    set_list(NODES, list_of(json_array(), token));
    say(EDGES, json_pack("{s:s}", "type", "ADDED"));
    wait_for(&w.n_changes, 2);
    assert_string_equal(w.why, "the API server's list cannot be continued: "
                               "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"");
    w.cw = cluster_watch_free(w.cw);
    free(second);
}

/* This node is not among those that there are. */
static void test_a_list_that_cannot_be_used(void **state)
{
    set_list(NODES, list_of(json_pack("[o]", node_resource(1, true)), ""));
    begin();
    wait_for(&w.n_changes, 1);
    assert_false(w.is_heard);
    assert_int_equal(strncmp(w.why, "what the namespace \"weft\" has: ", 31), 0);
    assert_int_equal(w.n_snapshots, 0);
}

static void test_a_namespace_without_a_network(void **state)
{
    set_list(NETWORKS, list_of(json_array(), ""));
    begin();
    wait_for(&w.n_changes, 1);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "the namespace \"weft\" has no Network \"default\" of a hub's");
    /* It is there later. */
    set_lists();
    wait_for(&w.n_changes, 2);
    assert_true(w.is_heard);
    assert_int_equal(w.n_snapshots, 1);
}

static void test_an_api_that_does_not_answer(void **state)
{
    api.list_status = "403 Forbidden";
    begin();
    wait_for(&w.n_changes, 1);
    assert_false(w.is_heard);
    /* That is said once. */
    wait_for(&api.n_lists, 2);
    assert_int_equal(w.n_changes, 1);
}

static void test_a_change(void **state)
{
    begin_well();
    say(NODES, json_pack("{s:s, s:o}", "type", "ADDED", "object", node_resource(3, true)));
    wait_for(&w.n_puts, 1);
    assert_string_equal(w.last, "n3");
    assert_string_equal(w.kept, "");
    say(NODES, json_pack("{s:s, s:o}", "type", "DELETED", "object", node_resource(3, true)));
    wait_for(&w.n_deletes, 1);
    assert_int_equal(w.n_snapshots, 1);
    assert_int_equal(w.n_changes, 1);
}

/* A watch that ends is opened again where it was, and nothing is listed. */
static void test_a_watch_that_ends(void **state)
{
    begin_well();
    say(NODES, json_pack("{s:s, s:{s:{s:s}}}", "type", "BOOKMARK", "object", "metadata",
                   "resourceVersion", "123"));
    say(NODES, NULL);
    wait_for(&api.n_watches, KINDS + 1);
    assert_non_null(strstr(api.asked[NODES], "resourceVersion=123 "));
    assert_non_null(strstr(api.asked[EDGES], "resourceVersion=77 "));
    assert_int_equal(get(&api.n_lists), KINDS);
    assert_int_equal(w.n_changes, 1);
    say(NODES, json_pack("{s:s, s:o}", "type", "ADDED", "object", node_resource(3, true)));
    wait_for(&w.n_puts, 1);
}

static void test_a_version_that_is_too_old(void **state)
{
    begin_well();
    set_list(NODES, list_of(json_pack("[o, o, o]", node_resource(1, true), node_resource(2, true),
                                node_resource(3, true)),
                        ""));
    say(NODES, json_pack("{s:s, s:{s:i, s:s}}", "type", "ERROR", "object", "code", 410, "message",
                   "too old"));
    wait_for(&w.n_snapshots, 2);
    assert_int_equal(w.snapshot.nodes.n, 3);
    wait_for(&api.n_watches, 2 * KINDS);
    assert_true(w.is_heard);
}

static void test_a_line_that_cannot_be_read(void **state)
{
    begin_well();
    say(EDGES, json_pack("{s:s}", "type", "ADDED"));
    wait_for(&w.n_snapshots, 2);
    assert_int_equal(w.n_changes, 1);
}

static void test_an_error_of_the_server(void **state)
{
    begin_well();
    say(NODES, json_pack("{s:s, s:{s:i, s:s}}", "type", "ERROR", "object", "code", 500, "message",
                   "no disk"));
    wait_for(&w.n_changes, 2);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "the API server ends a watch with 500: no disk");
    /* It is tried again, and answers. */
    wait_for(&w.n_changes, 3);
    assert_true(w.is_heard);
    assert_int_equal(w.n_snapshots, 1);
}

/* It is tried again, ever more slowly, and is not heard before it was taken. */
static void test_a_watch_that_is_refused(void **state)
{
    api.watch_status = "403 Forbidden";
    begin();
    wait_for(&w.n_changes, 2);
    assert_false(w.is_heard);
    assert_string_equal(w.why, "the API server answers a watch with 403: no");
    /* Tries that are further apart than it takes until a watch counts. */
    wait_for(&api.n_watches, 8 * KINDS);
    assert_int_equal(w.n_changes, 2);
    assert_int_equal(w.n_snapshots, 1);
}

static void set_watch_status(const char *status)
{
    (void)pthread_mutex_lock(&api.lock);
    api.watch_status = status;
    (void)pthread_mutex_unlock(&api.lock);
}

/* That watches are open says nothing while the server has not answered them. */
static void test_watches_that_are_not_answered(void **state)
{
    nsec_t until;
    unsigned n;

    api.watch_status = "403 Forbidden";
    begin();
    wait_for(&w.n_changes, 2);
    set_watch_status(NULL);
    /* Those that are refused still are not among the next three that stay. */
    n = get(&api.n_watches);
    wait_for(&api.n_watches, n + KINDS);
    /* Twice as long as it takes an open watch to count, and a turn of the thread. */
    for (until = clock_now() + 3 * NSEC_PER_SEC; clock_now() < until;)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(w.n_changes, 2);
    for (unsigned i = 0; i < KINDS; i++)
        say_text((enum kind)i, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    wait_for(&w.n_changes, 3);
    assert_true(w.is_heard);
}

/* The status says what an error in the watch would say: its beginning is not known any more. */
static void test_a_watch_that_begins_too_early(void **state)
{
    api.watch_status = "410 Gone";
    begin();
    wait_for(&w.n_snapshots, 2);
    assert_true(w.is_heard);
    assert_int_equal(w.n_changes, 1);
}

/* After an error, or a line that cannot be read, nothing more is taken from that watch. */
static void test_lines_after_the_last_one(void **state)
{
    json_t *added = json_pack("{s:s, s:o}", "type", "ADDED", "object", node_resource(3, true));
    char *text = json_dumps(added, JSON_COMPACT);
    char lines[4096];

    begin_well();
    (void)snprintf(lines, sizeof(lines), "{\"type\":\"ADDED\"}\n%s\n", text);
    say_text(NODES, lines);
    wait_for(&w.n_snapshots, 2);
    wait_for(&api.n_watches, 2 * KINDS);
    (void)snprintf(
        lines, sizeof(lines), "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n%s\n", text);
    say_text(NODES, lines);
    wait_for(&w.n_changes, 2);
    assert_int_equal(w.n_puts, 0);
    free(text);
    json_decref(added);
}

/* What the thread has said and nobody has heard goes with the watch. */
static void test_an_end_before_the_first_word(void **state)
{
    begin();
    while (get(&api.n_watches) < KINDS)
        (void)sched_yield();
    w.cw = cluster_watch_free(w.cw);
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_int_equal(w.n_snapshots, 0);
    assert_int_equal(w.n_changes, 0);
}

/* The network that was seen once stays, also if the next list lacks it. */
static void test_a_network_that_is_deleted(void **state)
{
    begin_well();
    set_list(NETWORKS, list_of(json_array(), ""));
    say(EDGES, json_pack("{s:s}", "type", "ADDED"));
    wait_for(&w.n_snapshots, 2);
    assert_string_equal(w.snapshot.network.meta.name, "default");
}

static void test_a_place_that_is_none(void **state)
{
    const struct cluster_self self = {.network = "default", .node = "n2"};
    const struct cluster_listener listener = {.on_event = on_event, .on_change = on_change};
    struct err e = ERR_NULL;

    assert_true(cluster_watch_new(
                    &w.cw, &w.loop, "?kubeconfig=/nonexistent/file", &self, &listener, &e) < 0);
    assert_non_null(strstr(e.text, "/nonexistent/file"));
    assert_null(w.cw);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_there_is_comes_as_one_snapshot),
        TEST(test_rules),
        TEST(test_what_is_not_accepted_is_kept),
        TEST(test_a_list_of_two_pages),
        TEST(test_a_page_that_cannot_be_continued),
        TEST(test_a_page_that_is_continued_at_length),
        TEST(test_a_list_that_cannot_be_used),
        TEST(test_a_namespace_without_a_network),
        TEST(test_an_api_that_does_not_answer),
        TEST(test_a_change),
        TEST(test_a_watch_that_ends),
        TEST(test_a_version_that_is_too_old),
        TEST(test_a_line_that_cannot_be_read),
        TEST(test_an_error_of_the_server),
        TEST(test_a_watch_that_is_refused),
        TEST(test_watches_that_are_not_answered),
        TEST(test_a_watch_that_begins_too_early),
        TEST(test_lines_after_the_last_one),
        TEST(test_an_end_before_the_first_word),
        TEST(test_a_network_that_is_deleted),
        TEST(test_a_place_that_is_none),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
