/*
 * test-agent-hub.c - what an agent does when its hub says something, and what it tells the hub.
 *
 * The agent is a process of its own in a network namespace. Its data plane is this program as well:
 * it answers as one that has its key and no peers, and makes an interface that is one end of a pair
 * of virtual Ethernet links. The other end is the hub's, which is this process, in another
 * namespace. So what they say passes in the clear.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "base/text.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "uapi/uapi.h"

/* The process of the hub, for the data plane. */
#define HUB_PROCESS "WEFT_TEST_HUB"

/* Exit status of the agent's process: this, and how it has ended. */
#define ENDED 100

#define STREAMS_MAX 4
#define RUN         77 /* of the hub */

/* ---- the data plane -------------------------------------------------------------------------- */

/* Gives the other end of the pair, @name, to the namespace of the process @pid. */
static int give_away(struct netlink *nl, const char *name, pid_t pid)
{
    struct netlink_message rq;
    struct ifinfomsg *ifi = netlink_start(&rq, RTM_NEWLINK, NLM_F_ACK, sizeof(*ifi));

    ifi->ifi_index = (int)if_nametoindex(name);
    mnl_attr_put_u32(rq.nlh, IFLA_NET_NS_PID, (uint32_t)pid);
    return netlink_request(nl, rq.nlh, NULL, NULL);
}

static bool make_pair(const char *interface)
{
    struct netlink nl = NETLINK_NULL;
    const char *hub = getenv(HUB_PROCESS);
    bool is_made = hub && netlink_open(&nl, NETLINK_ROUTE) == 0 &&
                   rtnl_add_link(&nl, interface, "veth") == 0 &&
                   give_away(&nl, "veth0", (pid_t)strtol(hub, NULL, 10)) == 0;

    netlink_close(&nl);
    return is_made;
}

/* Answers as a data plane without peers, until its socket is gone. */
static void serve_configuration(int fd, const char *path)
{
    char key[80] = "";

    while (access(path, F_OK) == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char request[16384] = "";
        char answer[256];
        const char *said;
        size_t len = 0;
        ssize_t n = 1;
        int client;

        if (poll(&p, 1, 50) <= 0 || (client = accept(fd, NULL, NULL)) < 0)
            continue;
        while (n > 0 && !strstr(request, "\n\n")) {
            n = read(client, request + len, sizeof(request) - 1 - len);
            len += n > 0 ? (size_t)n : 0;
            request[len] = '\0';
        }
        said = strstr(request, "private_key=");
        if (said)
            (void)snprintf(key, sizeof(key), "%.*s\n", (int)strcspn(said, "\n"), said);
        (void)snprintf(answer, sizeof(answer), "%s%serrno=0\n\n",
            strncmp(request, "get=1", 5) == 0 ? key : "",
            strncmp(request, "get=1", 5) == 0 ? "listen_port=51820\n" : "");
        (void)!write(client, answer, strlen(answer));
        (void)close(client);
    }
}

/* As `weft wg` begins: when this returns to who has started it the interface is there. */
static int be_data_plane(const char *interface)
{
    char path[96];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, interface);
    fd = unix_socket_listen(path, SOCK_STREAM, 0600);
    if (fd < 0 || !make_pair(interface))
        return 1;
    if (fork() == 0) {
        int null = open("/dev/null", O_RDWR);

        for (int i = 0; i <= 2; i++)
            (void)dup2(null, i);
        serve_configuration(fd, path);
        _exit(0);
    }
    return 0;
}

/* ---- the hub --------------------------------------------------------------------------------- */

/** The node n2 of three, and its hub. */
static struct world {
    char dir[64];
    char socket_path[96];
    char interface[16]; /* which nobody else on this machine has */
    struct snapshot snapshot;
    pid_t agent;
    uv_loop_t loop;
    uv_timer_t turn;
    struct server *server;
    struct stream streams[STREAMS_MAX];
    unsigned n_streams;
    json_t *report; /* the last one */
    unsigned n_reports;
    unsigned n_left;
    char asked[1024]; /* of each call for a job: "METHOD PATH|" */
} w;

static void say(json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT);
    struct line *l = line_new(text, strlen(text));

    assert_true(stream_push(&w.streams[w.n_streams - 1], l, clock_now()));
    (void)line_unref(l);
    free(text);
    json_decref(event);
}

static void on_drained(struct stream *s, nsec_t now)
{
}

static void on_closed(struct stream *s)
{
    stream_deinit(s);
}

static void get_watch(void *ctx, const struct request *rq, struct response *rs)
{
    json_t *event;

    assert_true(w.n_streams < STREAMS_MAX);
    rs->status = 200;
    rs->stream = &w.streams[w.n_streams++];
    stream_init(rs->stream, on_drained, on_closed);
    w.snapshot.boot = RUN;
    event = snapshot_encode(&w.snapshot);
    (void)json_object_set_new(event, "type", json_string("snapshot"));
    say(event);
}

static void put_status(void *ctx, const struct request *rq, struct response *rs)
{
    json_decref(w.report);
    w.report = json_deep_copy(rq->body);
    w.n_reports++;
    response_empty(rs);
}

static void post_leave(void *ctx, const struct request *rq, struct response *rs)
{
    w.n_left++;
    response_empty(rs);
}

static void handle_job(void *ctx, const struct request *rq, struct response *rs)
{
    size_t len = strlen(w.asked);

    (void)snprintf(w.asked + len, sizeof(w.asked) - len, "%s %s|", rq->method, rq->path);
    response_json(rs, 200, json_pack("{s:[s, s]}", "members", "n2", "n3"));
}

static const struct route routes[] = {
    {"GET", "/v1/watch", API_ACCESS_OVERLAY, get_watch, "", ROLE_VIEWER},
    {"PUT", "/v1/status", API_ACCESS_OVERLAY, put_status, "", ROLE_VIEWER},
    {"POST", "/v1/leave", API_ACCESS_OVERLAY, post_leave, "", ROLE_VIEWER},
    {"GET", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle_job, "", ROLE_VIEWER},
    {"POST", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle_job, "", ROLE_VIEWER},
    {"PUT", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle_job, "", ROLE_VIEWER},
    {"GET", "/v1/jobs", API_ACCESS_OVERLAY, handle_job, "", ROLE_VIEWER},
    {"DELETE", "/v1/jobs/{job}/{what}", API_ACCESS_OVERLAY, handle_job, "", ROLE_VIEWER},
    ROUTES_END,
};

/* The hub's end of the pair has come: it gets its address, and the hub answers there. */
static void start_hub(void)
{
    struct server_config config = {.loop = &w.loop, .routes = routes};
    struct ip_prefix own = netns_prefix("10.42.0.1/16");
    struct netlink nl = NETLINK_NULL;
    struct server_listener *listener;
    struct rtnl_link link;
    struct endpoint api;
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < 1000 && if_nametoindex("veth0") == 0; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    assert_int_equal(rtnl_find_link(&nl, "veth0", &link), 0);
    assert_int_equal(rtnl_add_address(&nl, link.ifindex, &own, false), 0);
    assert_int_equal(rtnl_set_link(&nl, link.ifindex, true, 0), 0);
    netlink_close(&nl);
    assert_int_equal(endpoint_parse(&api, "10.42.0.1:8443", NULL), 0);
    assert_int_equal(server_new(&w.server, &config, &e), 0);
    if (server_listen_overlay(w.server, &api, NULL, NULL, &listener, &e) != 0)
        fail_msg("%s", err_text(&e));
}

/* ---- the agent ------------------------------------------------------------------------------- */

static void write_state(void)
{
    struct state st = {.secret = {.b = {5, [31] = 0x40}}, .engine = ENGINE_KIND_USERSPACE};
    struct object self = sample_node(2);
    struct err e = ERR_NULL;

    w.snapshot = sample_snapshot(3, 2);
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&w.snapshot, self);
    (void)snprintf(st.interface, sizeof(st.interface), "%s", w.interface);
    st.snapshot = w.snapshot;
    if (state_write_snapshot(&w.snapshot, w.dir, &e) != 0 || state_write(&st, w.dir, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static void run_agent(void)
{
    const struct agent_config config = {
        .state_dir = w.dir, .socket_path = w.socket_path, .no_measure = true};
    enum agent_end end = AGENT_END_STOPPED;

    /* And not at once, so that what is not released is found. */
    exit(agent_run(&config, &end, NULL) == 0 ? ENDED + (int)end : 1);
}

static void on_turn(uv_timer_t *timer)
{
}

static int enter(void **state)
{
    char pid[16];
    int go[2];
    char byte;

    memset(&w, 0, sizeof(w));
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    (void)snprintf(w.interface, sizeof(w.interface), "wa%u", (unsigned)getpid() % 1000000);
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-agent.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.socket_path, sizeof(w.socket_path), "%s/sock", w.dir);
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    assert_int_equal(setenv(HUB_PROCESS, pid, 1), 0);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    assert_int_equal(uv_timer_start(&w.turn, on_turn, 5, 5), 0);
    write_state();
    assert_int_equal(pipe(go), 0);
    (void)fflush(NULL);
    w.agent = fork();
    if (w.agent == 0) {
        (void)close(go[1]);
        (void)!read(go[0], &byte, 1);
        run_agent();
    }
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    (void)close(go[0]);
    (void)close(go[1]);
    start_hub();
    return 0;
}

static void remove_files(void)
{
    DIR *d = opendir(w.dir);
    struct dirent *entry;
    char path[400];

    assert_non_null(d);
    while ((entry = readdir(d))) {
        (void)snprintf(path, sizeof(path), "%s/%s", w.dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    (void)rmdir(w.dir);
    (void)snprintf(path, sizeof(path), "%s/%s.sock", UAPI_SOCKET_DIR, w.interface);
    (void)unlink(path);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    if (w.agent > 0) {
        (void)kill(w.agent, SIGKILL);
        (void)waitpid(w.agent, NULL, 0);
    }
    if (w.server)
        server_stop(w.server);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.server = server_free(w.server);
    json_decref(w.report);
    snapshot_deinit(&w.snapshot);
    remove_files();
    (void)netns_leave(state);
    return uv_loop_close(&w.loop);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int ask(const char *method, const char *path, json_t *body, json_t **ret)
{
    int r = agent_ask_with(w.socket_path, method, path, body, 10000, ret, NULL);

    json_decref(body);
    return r;
}

static void wait_until(bool (*is_so)(void), const char *what)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (is_so())
            return;
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    }
    fail_msg("not within 10 s: %s", what);
}

static bool is_reachable(bool wanted)
{
    json_auto_t *status = NULL;

    return ask("GET", "/v1/status", NULL, &status) == 0 &&
           json_is_true(json_object_get(json_object_get(status, "hub"), "reachable")) == wanted;
}

static bool hears_the_hub(void)
{
    return is_reachable(true);
}

static bool hears_no_hub(void)
{
    return is_reachable(false);
}

static bool knows(const char *node)
{
    json_auto_t *snapshot = NULL;
    const json_t *item;
    size_t i;

    if (ask("GET", "/v1/snapshot", NULL, &snapshot) != 0)
        return false;
    json_array_foreach(json_object_get(snapshot, "nodes"), i, item) {
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "metadata"), "name"));

        if (name && strcmp(name, node) == 0)
            return true;
    }
    return false;
}

static bool knows_n4(void)
{
    return knows("n4");
}

static bool knows_no_n3(void)
{
    return !knows("n3");
}

static bool has_reported(void)
{
    return w.n_reports > 0;
}

static bool has_opened_again(void)
{
    return w.n_streams == 2;
}

static int exit_status;

static bool has_ended(void)
{
    int status;

    if (waitpid(w.agent, &status, WNOHANG) != w.agent)
        return false;
    w.agent = 0;
    exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return true;
}

static bool exists(const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", w.dir, name);
    return access(path, F_OK) == 0;
}

/* ---- what the hub says ----------------------------------------------------------------------- */

static void test_it_hears_its_hub_and_reports(void **state)
{
    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    assert_int_equal(w.n_streams, 1);
    wait_until(has_reported, "it reports");
    assert_true(json_is_object(json_object_get(w.report, "node")));
}

static void test_it_follows_what_the_hub_says(void **state)
{
    struct object n4 = sample_node(4);

    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    assert_true(knows("n3"));
    say(json_pack("{s:s, s:i, s:o}", "type", "put", "revision", 41, "object", object_encode(&n4)));
    wait_until(knows_n4, "it knows n4");
    say(json_pack(
        "{s:s, s:i, s:s, s:s}", "type", "delete", "revision", 42, "kind", "Node", "name", "n3"));
    wait_until(knows_no_n3, "it knows n3 no more");
    object_deinit(&n4);
}

/* What does not fit is not taken, and the stream begins anew. */
static void test_it_refuses_what_does_not_fit(void **state)
{
    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    say(json_pack(
        "{s:s, s:i, s:s, s:s}", "type", "delete", "revision", 1, "kind", "Node", "name", "n3"));
    wait_until(has_opened_again, "the stream is opened anew");
    wait_until(hears_the_hub, "the hub is heard again");
    assert_true(knows("n3"));
}

static void test_a_hub_that_goes_away(void **state)
{
    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    server_stop(w.server);
    wait_until(hears_no_hub, "the hub is not heard");
    /* Known peers stay. */
    assert_true(knows("n3"));
}

static void test_the_hub_removes_it(void **state)
{
    struct removed rm;

    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    say(json_pack("{s:s, s:s}", "type", "removed", "reason", "its time is over"));
    wait_until(has_ended, "it ends");
    assert_int_equal(exit_status, ENDED + AGENT_END_REMOVED);
    assert_false(exists("node.json"));
    assert_false(exists("snapshot.json"));
    assert_int_equal(removed_read(&rm, w.dir, NULL), 0);
    assert_string_equal(rm.node, "n2");
    assert_string_equal(rm.network, "default");
    assert_string_equal(rm.reason, "its time is over");
    assert_string_equal(rm.socket_path, w.socket_path);
    assert_true(rm.at > 1600000000);
}

/* What the hub has said just now is there at the next start. */
static void test_what_it_knows_is_kept(void **state)
{
    struct object n4 = sample_node(4);
    struct snapshot kept = SNAPSHOT_NULL;

    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    say(json_pack("{s:s, s:i, s:o}", "type", "put", "revision", 41, "object", object_encode(&n4)));
    wait_until(knows_n4, "it knows n4");
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_until(has_ended, "it ends");
    assert_int_equal(exit_status, ENDED + AGENT_END_STOPPED);
    assert_int_equal(state_read_snapshot(&kept, w.dir, NULL), 0);
    assert_non_null(snapshot_find_node(&kept, "n4"));
    snapshot_deinit(&kept);
    object_deinit(&n4);
}

/* ---- what it asks the hub -------------------------------------------------------------------- */

/* By a thread, while this one is the hub. */
static struct question {
    const char *method;
    const char *path;
    json_t *body; /* owned */
    json_t *answer;
    int r;
    bool is_over;
    pthread_t thread;
} question;

static void *ask_there(void *arg)
{
    question.r = ask(question.method, question.path, question.body, &question.answer);
    __atomic_store_n(&question.is_over, true, __ATOMIC_RELEASE);
    return NULL;
}

static bool is_answered(void)
{
    return __atomic_load_n(&question.is_over, __ATOMIC_ACQUIRE);
}

/* The answer is a new reference. */
static json_t *ask_hub(const char *method, const char *path, json_t *body)
{
    question = (struct question){.method = method, .path = path, .body = body};
    assert_int_equal(pthread_create(&question.thread, NULL, ask_there, NULL), 0);
    wait_until(is_answered, path);
    assert_int_equal(pthread_join(question.thread, NULL), 0);
    assert_int_equal(question.r, 0);
    return question.answer;
}

static void test_a_job_meets_at_the_hub(void **state)
{
    static const char path[] = "/v1/jobs/train/rendezvous";
    json_t *answer;

    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    answer = ask_hub("POST", path, json_pack("{s:i}", "nodes", 2));
    assert_int_equal(json_array_size(json_object_get(answer, "members")), 2);
    json_decref(answer);
    assert_non_null(strstr(w.asked, "POST /v1/jobs/train/rendezvous|"));
    json_decref(ask_hub("GET", path, NULL));
    assert_non_null(strstr(w.asked, "GET /v1/jobs/train/rendezvous|"));
    json_decref(ask_hub("PUT", path, json_object()));
    assert_non_null(strstr(w.asked, "PUT /v1/jobs/train/rendezvous|"));
    json_decref(ask_hub("GET", "/v1/jobs", NULL));
    assert_non_null(strstr(w.asked, "GET /v1/jobs|"));
    json_decref(ask_hub("DELETE", path, NULL));
    assert_non_null(strstr(w.asked, "DELETE /v1/jobs/train/rendezvous|"));
}

static void test_the_hub_is_told_that_it_leaves(void **state)
{
    json_t *answer;

    (void)netns_need(state);
    wait_until(hears_the_hub, "the hub is heard");
    answer = ask_hub("POST", "/v1/leave", NULL);
    assert_int_equal(w.n_left, 1);
    assert_true(json_is_true(json_object_get(answer, "hubTold")));
    assert_string_equal(json_string_value(json_object_get(answer, "why")), "");
    json_decref(answer);
    wait_until(has_ended, "it ends");
    assert_int_equal(exit_status, ENDED + AGENT_END_LEFT);
    assert_false(exists("node.json"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        TEST(test_it_hears_its_hub_and_reports),
        TEST(test_it_follows_what_the_hub_says),
        TEST(test_it_refuses_what_does_not_fit),
        TEST(test_a_hub_that_goes_away),
        TEST(test_the_hub_removes_it),
        TEST(test_what_it_knows_is_kept),
        TEST(test_a_job_meets_at_the_hub),
        TEST(test_the_hub_is_told_that_it_leaves),
    };

    if (argc > 3 && strcmp(argv[1], "wg") == 0)
        return be_data_plane(argv[3]);
    if (argc > 1)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
