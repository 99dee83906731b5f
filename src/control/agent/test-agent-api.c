/*
 * test-agent-api.c - what an agent answers at its own socket, and does for it.
 *
 * The server is on the agent's loop, and this test asks it there. The hub is away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "base/err.h"
#include "mesh/names/hosts.h"
#include "net/address/sockaddr.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "net/tun/offload.h"
#include "test/support/agent_world.h"
#include "test/support/heard_log.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static struct world {
    struct agent_world *of; /* lent */
    struct server *server;
    char dir[64];
    char socket_path[96];
    char answer[65536];      /* the last one, without its head */
    struct endpoint metrics; /* where it answers Prometheus */
} w;

static int enter(void **state)
{
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-api.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.socket_path, sizeof(w.socket_path), "%s/sock", w.dir);
    return netns_enter(state);
}

static struct agent *open_api(void **state)
{
    struct err e = ERR_NULL;

    w.of = agent_world_make(state);
    w.of->config.state_dir = w.dir;
    w.of->config.socket_path = w.socket_path;
    if (agent_api_open(&w.server, &w.of->agent, &e) != 0)
        fail_msg("%s", err_text(&e));
    return &w.of->agent;
}

static void close_api(void)
{
    server_stop(w.server);
    agent_world_end(w.of);
    w.server = server_free(w.server);
}

static int leave(void **state)
{
    (void)state_remove(w.dir, NULL);
    (void)rmdir(w.dir);
    return netns_leave(state);
}

/* The status of the answer at the connection @fd, which is taken. */
static int ask_by(int fd, const char *host, const char *method, const char *path, const char *body)
{
    char request[1024];
    size_t len = 0;
    char *text;
    int status;

    assert_true(fd >= 0);
    (void)snprintf(request, sizeof(request),
        "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        method, path, host, strlen(body), body);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    for (ssize_t n = 1; n != 0; len += n > 0 ? (size_t)n : 0) {
        (void)uv_run(&w.of->agent.loop, UV_RUN_NOWAIT);
        n = read(fd, w.answer + len, sizeof(w.answer) - 1 - len);
    }
    (void)close(fd);
    w.answer[len] = '\0';
    assert_memory_equal(w.answer, "HTTP/1.1 ", 9);
    status = (int)strtol(w.answer + 9, NULL, 10);
    text = strstr(w.answer, "\r\n\r\n");
    assert_non_null(text);
    memmove(w.answer, text + 4, strlen(text + 4) + 1);
    return status;
}

/* At the socket with that suffix. */
static int ask_at(const char *suffix, const char *method, const char *path, const char *body)
{
    char place[128];

    (void)snprintf(place, sizeof(place), "%s%s", w.socket_path, suffix);
    return ask_by(unix_socket_connect(place, SOCK_STREAM), "weft", method, path, body);
}

/* Over plain HTTP, as Prometheus does. */
static int scrape(const char *host, const char *method, const char *path)
{
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &w.metrics);
    int fd = socket(sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, &sa.any, len), 0);
    return ask_by(fd, host, method, path, "");
}

static int ask(const char *method, const char *path, const char *body)
{
    return ask_at("", method, path, body);
}

/* What is answered with status 200; a new reference. */
static json_t *get(const char *method, const char *path, const char *body)
{
    json_t *json;

    assert_int_equal(ask(method, path, body), 200);
    json = json_loads(w.answer, 0, NULL);
    assert_non_null(json);
    return json;
}

static void expect_refusal(
    int status, const char *words, const char *method, const char *path, const char *body)
{
    json_t *json;

    assert_int_equal(ask(method, path, body), status);
    json = json_loads(w.answer, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "error")), words);
    json_decref(json);
}

/* @expected: all of the JSON. */
static void expect_answer(const char *expected, const char *method, const char *path)
{
    json_t *json = get(method, path, "");
    char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static const char *text_of(const json_t *o, const char *field)
{
    const char *text = json_string_value(json_object_get(o, field));

    return text ? text : "";
}

/* ---- reading --------------------------------------------------------------------------------- */

static void test_the_status(void **state)
{
    struct agent *a = open_api(state);
    struct offloads offloads = offloads_all();
    const json_t *self;
    const json_t *hub;
    json_t *status;

    a->reconcile.engine = NULL;
    status = get("GET", "/v1/status", "");
    self = json_object_get(status, "self");
    hub = json_object_get(status, "hub");
    assert_int_equal(a->poll.polled_at, w.of->now);
    assert_true(json_is_null(json_object_get(self, "engine")));
    assert_true(json_is_null(json_object_get(self, "offloads")));
    assert_true(json_is_null(json_object_get(hub, "silentSeconds")));
    assert_int_equal(json_integer_value(json_object_get(hub, "quietSeconds")), 7);
    assert_true(json_is_false(json_object_get(hub, "reachable")));
    json_decref(status);
    a->reconcile.engine = &w.of->engine.engine;
    status = get("GET", "/v1/status", "");
    self = json_object_get(status, "self");
    assert_string_equal(text_of(self, "engine"), "kernel");
    assert_true(json_is_null(json_object_get(self, "offloads")));
    json_decref(status);
    w.of->engine.offloads = &offloads;
    w.of->now += 7 * SEC;
    status = get("GET", "/v1/status", "");
    self = json_object_get(status, "self");
    assert_int_equal(json_array_size(json_object_get(self, "offloads")), OFFLOAD_N);
    /* Its clocks are the agent's. */
    self = json_array_get(json_object_get(status, "peers"), 0);
    assert_int_equal(json_integer_value(json_object_get(self, "sinceSeconds")), 7);
    assert_int_equal(
        json_integer_value(json_object_get(self, "since")), (agent_world_wall() - 7 * SEC) / SEC);
    json_decref(status);
    close_api();
}

static void set_forwarding(const char *family, const char *value)
{
    char path[80];
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/weft0/forwarding", family);
    f = fopen(path, "we");
    if (!f)
        skip();
    (void)fputs(value, f);
    assert_int_equal(fclose(f), 0);
}

/* Why this node is not yet the way to its first or its second subnet; "": it is. */
static const char *why_not(unsigned i)
{
    static char why[256];
    json_t *status = get("GET", "/v1/status", "");

    (void)snprintf(why, sizeof(why), "%s",
        text_of(json_array_get(json_object_get(status, "ownRoutes"), i), "why"));
    json_decref(status);
    return why;
}

static void test_whether_this_machine_forwards(void **state)
{
    struct agent *a = open_api(state);
    struct node *self = (struct node *)snapshot_self(&a->snapshot);

    self->routes = calloc(1, sizeof(*self->routes));
    assert_non_null(self->routes);
    assert_int_equal(subnets_parse(self->routes, "10.9.0.0/24,fd09::/64", NULL), 0);
    set_forwarding("ipv4", "1");
    set_forwarding("ipv6", "0");
    assert_string_equal(why_not(0), "");
    assert_memory_equal(why_not(1), "this machine forwards no IPv6", 29);
    set_forwarding("ipv4", "0");
    set_forwarding("ipv6", "1");
    assert_memory_equal(why_not(0), "this machine forwards no IPv4", 29);
    assert_string_equal(why_not(1), "");
    close_api();
}

static void test_the_metrics(void **state)
{
    struct agent *a = open_api(state);
    struct meter *m = &a->meter.meter;

    agent_core_poll(a);
    agent_core_pass(a);
    a->pass.n_failed = 3;
    a->reconcile.n_foreign = 4;
    *m = (struct meter){.id = 7, .has_counters = true};
    agent_core_poll(a);
    agent_world_peer(w.of, 3)->facts.tx_bytes = 1500;
    agent_core_poll(a);
    assert_int_equal(ask("GET", "/v1/metrics", ""), 200);
    assert_non_null(strstr(w.answer, "result=\"changed\"} 1\n"));
    assert_non_null(strstr(w.answer, " 3\n"));
    assert_non_null(strstr(w.answer, " 4\n"));
    assert_non_null(strstr(w.answer, "} 1500\n"));
    close_api();
}

/* At the address for Prometheus there are figures and nothing else, for programs only. */
static void test_the_port_for_prometheus(void **state)
{
    struct agent *a = open_api(state);

    (void)netns_raise_loopback(w.of->nl);
    assert_true(agent_core_due(a) > 0);
    assert_int_equal(
        metrics_place_parse(&w.of->config.metrics, "127.0.0.1:9586", METRICS_PORT_AGENT, NULL), 0);
    metrics_port_init(&a->metrics, &w.of->config.metrics, w.server, &a->snapshot);
    assert_int_equal(agent_core_due(a), 0);
    agent_core_poll(a);
    agent_core_run(a, w.of->now);
    assert_true(a->metrics.is_open);
    w.metrics = a->metrics.at;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(scrape("127.0.0.1:9586", "GET", i == 0 ? "/metrics" : "/v1/metrics"), 200);
        assert_non_null(strstr(w.answer, "weft_agent_passes_failing "));
        assert_non_null(strstr(w.answer, "weft_agent_hub_reachable 0\n"));
        assert_non_null(strstr(w.answer, "weft_agent_peers "));
    }
    assert_int_equal(ask("GET", "/metrics", ""), 200);
    assert_non_null(strstr(w.answer, "weft_agent_peers "));
    assert_int_equal(scrape("n2.default.weft:9586", "GET", "/metrics"), 200);
    assert_int_equal(scrape("evil.example", "GET", "/metrics"), 403);
    assert_int_equal(scrape("127.0.0.1", "GET", "/v1/status"), 404);
    assert_non_null(strstr(w.answer, "GET /metrics is all that this address answers"));
    assert_int_equal(scrape("127.0.0.1", "POST", "/v1/down"), 404);
    assert_int_equal(scrape("127.0.0.1", "POST", "/metrics"), 405);
    assert_int_equal(scrape("127.0.0.1", "GET", "/"), 404);
    /* At the overlay address only members are answered. */
    a->metrics.is_overlay = true;
    assert_int_equal(scrape("127.0.0.1", "GET", "/metrics"), 403);
    assert_non_null(strstr(w.answer, "members of the network only"));
    close_api();
}

static void test_the_network_and_the_way_to_a_peer(void **state)
{
    struct agent *a = open_api(state);
    json_t *json = get("GET", "/v1/snapshot", "");
    json_t *expected = snapshot_encode(&a->snapshot);

    assert_true(json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
    expect_refusal(404, "\"n9\" is no peer of this node", "GET", "/v1/paths/n9", "");
    assert_int_equal(a->poll.polled_at, w.of->now);
    expect_refusal(404, "\"n2\" is no peer of this node", "GET", "/v1/paths/n2", "");
    w.of->now += 5 * SEC;
    json = get("GET", "/v1/paths/n3", "");
    assert_string_equal(text_of(json, "name"), "n3");
    assert_int_equal(json_integer_value(json_object_get(json, "sinceSeconds")), 5);
    json_decref(json);
    close_api();
}

/* ---- running --------------------------------------------------------------------------------- */

#define JOB    "/v1/jobs/train/rendezvous"
#define NO_HUB "this node knows of no hub yet"

/* No hub can be asked; what runs here is known all the same. */
static void test_a_job_that_runs_here(void **state)
{
    struct agent *a = open_api(state);
    const struct node_job *job = &a->running.items[0];

    a->poll = (struct poll_plan)POLL_PLAN_NULL;
    expect_refusal(502, NO_HUB, "POST", JOB, "{\"dryRun\":true}");
    expect_refusal(400,
        "job \"No.Name\" is not a name: 1 to 63 of a-z, 0-9 and '-', not first or last a '-'",
        "POST", "/v1/jobs/No.Name/rendezvous", "{}");
    assert_int_equal(a->running.n, 0);
    assert_false(a->poll.has_changes);
    expect_refusal(502, NO_HUB, "POST", JOB, "{}");
    assert_int_equal(a->running.n, 1);
    assert_true(a->poll.has_changes);
    assert_string_equal(job->job, "train");
    assert_int_equal(job->pid, getpid());
    assert_false(job->is_started);
    expect_refusal(502, NO_HUB, "GET", JOB, "");
    assert_true(job->is_started);
    a->running.items[0].is_started = false;
    expect_refusal(502, NO_HUB, "PUT", JOB, "{}");
    assert_true(job->is_started);
    expect_refusal(502, NO_HUB, "GET", "/v1/jobs", "");
    expect_refusal(502, NO_HUB, "PUT", "/v1/jobs/train/samples", "{}");
    w.of->now += SEC;
    expect_refusal(502, NO_HUB, "DELETE", JOB, "");
    assert_int_equal(a->running.n, 0);
    assert_int_equal(a->poll.polled_at, w.of->now);
    assert_int_equal(a->poll.due_at, w.of->now);
    close_api();
}

static void test_what_nccl_took(void **state)
{
    struct agent *a = open_api(state);
    json_t *status;
    const json_t *job;

    expect_refusal(502, NO_HUB, "POST", JOB, "{}");
    assert_int_equal(ask("POST", "/v1/jobs/train/nccl", "{\"verdict\":7}"), 400);
    assert_null(a->running.items[0].nccl);
    expect_refusal(502, NO_HUB, "POST", "/v1/jobs/train/nccl",
        "{\"run\":\"r\",\"verdict\":\"wanted\",\"profile\":\"p\",\"text\":\"it uses weft0\"}");
    status = get("GET", "/v1/status", "");
    job = json_array_get(json_object_get(status, "jobs"), 0);
    assert_string_equal(text_of(job, "job"), "train");
    assert_string_equal(text_of(json_object_get(job, "nccl"), "text"), "it uses weft0");
    json_decref(status);
    close_api();
}

static void test_proofs(void **state)
{
    static const char order[] =
        "{\"id\":\"00000000000000000000000000000000\",\"purpose\":\"bench\",\"seconds\":60,"
        "\"challenges\":{\"10.42.0.3\":\"01020300000000000000000000000000\"}}";
    json_t *answer;

    (void)open_api(state);
    answer = get("POST", "/v1/measure/proofs", order);
    assert_int_equal(json_object_size(json_object_get(answer, "proofs")), 1);
    json_decref(answer);
    assert_int_equal(ask("POST", "/v1/measure/proofs", "{}"), 400);
    close_api();
}

static void test_a_sample_of_a_line(void **state)
{
    struct agent *a = open_api(state);

    assert_int_equal(
        ask("POST", "/v1/measure/daily", "{\"peer\":\"n3\",\"sample\":[20786,9,8,7,6,5,4]}"), 204);
    assert_int_equal(a->daily.n, 1);
    assert_int_equal(a->daily.peers[0].sample.raw_kbit[1], 6);
    assert_int_equal(ask("POST", "/v1/measure/daily", "{\"peer\":\"n3\",\"sample\":[]}"), 400);
    assert_int_equal(
        ask("POST", "/v1/measure/daily", "{\"peer\":\"x\",\"sample\":[1,0,0,0,0,0,0]}"), 400);
    close_api();
}

/* Members of the group read and run, and change nothing of the node. */
static void test_who_may_do_what(void **state)
{
    struct agent *a = open_api(state);

    assert_int_equal(ask_at(UNIX_SOCKET_USERS_SUFFIX, "GET", "/v1/snapshot", ""), 200);
    assert_int_equal(ask_at(UNIX_SOCKET_USERS_SUFFIX, "POST", JOB, "{}"), 502);
    assert_int_equal(a->running.n, 1);
    assert_int_equal(ask_at(UNIX_SOCKET_USERS_SUFFIX, "POST", "/v1/down", ""), 403);
    assert_int_equal(ask_at(UNIX_SOCKET_USERS_SUFFIX, "POST", "/v1/leave", ""), 403);
    assert_int_equal(ask_at(UNIX_SOCKET_USERS_SUFFIX, "POST", "/v1/engine", ""), 403);
    assert_false(a->is_ending);
    close_api();
}

/* ---- administering --------------------------------------------------------------------------- */

static void test_the_kernels_engine_is_not_renewed(void **state)
{
    struct agent *a = open_api(state);

    expect_answer(
        "{\"interface\":\"weft0\",\"engine\":\"kernel\",\"renewed\":false}", "POST", "/v1/engine");
    a->reconcile.engine = NULL;
    expect_refusal(500, "no engine runs weft0", "POST", "/v1/engine", "");
    close_api();
}

static void test_it_is_taken_down(void **state)
{
    struct agent *a = open_api(state);

    agent_core_poll(a);
    agent_core_pass(a);
    heard_log_begin();
    expect_answer("{\"interface\":\"weft0\",\"namesWhy\":\"\"}", "POST", "/v1/down");
    assert_string_equal(heard_log_end(), "info: weft: the interface weft0 was taken down\n");
    assert_true(a->is_ending);
    assert_int_equal(a->end, AGENT_END_DOWN);
    assert_null(a->reconcile.engine);
    /* That is said once, and what was begun ends. */
    expect_refusal(409, "the agent is ending already", "POST", "/v1/down", "");
    expect_refusal(409, "the agent is ending already", "POST", "/v1/leave", "");
    expect_refusal(500, "the agent is ending", "POST", "/v1/engine", "");
    assert_int_equal(a->end, AGENT_END_DOWN);
    close_api();
}

/* Then it goes on as before: nothing was left, and nothing forgotten. */
static void test_an_interface_that_stays(void **state)
{
    static const char words[] = "the interface lo cannot be removed: ";
    struct agent *a = open_api(state);
    json_t *answer;

    assert_int_equal(state_write(&a->state, w.dir, NULL), 0);
    a->reconcile.engine = NULL;
    a->reconcile.interface = "lo";
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ask("POST", i == 0 ? "/v1/down" : "/v1/leave", ""), 500);
        answer = json_loads(w.answer, 0, NULL);
        assert_memory_equal(text_of(answer, "error"), words, sizeof(words) - 1);
        json_decref(answer);
    }
    assert_false(a->is_ending);
    assert_true(state_is_there(w.dir));
    close_api();
}

static void test_names_that_stay(void **state)
{
    struct agent *a = open_api(state);
    json_t *answer;

    a->names.opt = (struct node_names_options){.is_on = true, .file = "/"};
    answer = get("POST", "/v1/down", "");
    assert_string_not_equal(text_of(answer, "namesWhy"), "");
    json_decref(answer);
    close_api();
}

/* Also when the hub cannot be told. */
static void test_it_leaves(void **state)
{
    struct agent *a = open_api(state);
    char owner[HOSTS_OWNER_MAX];
    char words[512];
    json_t *answer;

    assert_int_equal(state_write(&a->state, w.dir, NULL), 0);
    heard_log_begin();
    answer = get("POST", "/v1/leave", "");
    (void)snprintf(words, sizeof(words),
        "info: weft: this node has left the network default, but the hub could not be told: %s\n",
        text_of(answer, "why"));
    assert_string_equal(heard_log_end(), words);
    assert_string_not_equal(text_of(answer, "why"), "");
    assert_true(json_is_false(json_object_get(answer, "hubTold")));
    assert_string_equal(text_of(answer, "network"), "default");
    assert_string_equal(text_of(answer, "node"), "n2");
    assert_string_equal(text_of(answer, "interface"), "weft0");
    assert_string_equal(text_of(answer, "hostsOwner"), hosts_owner(&a->state.snapshot, owner));
    assert_string_equal(text_of(answer, "namesWhy"), "");
    json_decref(answer);
    assert_int_equal(a->end, AGENT_END_LEFT);
    assert_false(state_is_there(w.dir));
    close_api();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        TEST(test_the_status),
        TEST(test_whether_this_machine_forwards),
        TEST(test_the_metrics),
        TEST(test_the_port_for_prometheus),
        TEST(test_the_network_and_the_way_to_a_peer),
        TEST(test_a_job_that_runs_here),
        TEST(test_what_nccl_took),
        TEST(test_proofs),
        TEST(test_a_sample_of_a_line),
        TEST(test_who_may_do_what),
        TEST(test_the_kernels_engine_is_not_renewed),
        TEST(test_it_is_taken_down),
        TEST(test_an_interface_that_stays),
        TEST(test_names_that_stay),
        TEST(test_it_leaves),
    };

    /* As the engine's process, which cannot run here. */
    if (argc > 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
