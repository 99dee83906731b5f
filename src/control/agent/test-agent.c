/*
 * test-agent.c - a whole agent, from its start to its end, as the commands of its machine see it.
 *
 * The agent is a process of its own in a network namespace. Its interface "weft0" is somebody
 * else's there, a bridge, which it says and leaves alone. Its hub is away.
 */
#include "agent/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/process.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

/* Exit statuses of the agent's process. */
#define ENDED  100 /* plus how */
#define FAILED 91

/** The node n2 of three. */
static struct world {
    char dir[64];
    char socket_path[96];
    char etc[80];     /* what is /etc for the agent; "": this machine's */
    bool answers_dns; /* it was told so at its join */
    bool keeps_hosts; /* and so */
    pid_t agent;
} w;

/* What an agent logs that finds its interface to be somebody else's. */
#define BEGUN                                                                                      \
    "info: weft: n2 in the network default: 10.42.0.2 and fd5a:1::2 on weft0\n"                    \
    "warning: weft: weft0 is not as the hub wants it, trying again: an interface weft0 that is "   \
    "no WireGuard but of the kind \"bridge\" was made by somebody else: it is left alone; remove " \
    "it, or join anew with --interface\n"

/* ---- the agent ------------------------------------------------------------------------------- */

static struct agent_config config = {
    .state_dir = w.dir, .socket_path = w.socket_path, .no_measure = true};

static void write_state(void)
{
    struct state st = {.secret = {.b = {5, [31] = 0x40}},
        .engine = ENGINE_KIND_KERNEL,
        .answers_dns = w.answers_dns,
        .keeps_hosts = w.keeps_hosts};
    struct object self = sample_node(2);
    struct err e = ERR_NULL;

    st.snapshot = sample_snapshot(3, 2);
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&st.snapshot, self);
    (void)snprintf(st.interface, sizeof(st.interface), "weft0");
    if (state_write_snapshot(&st.snapshot, w.dir, &e) != 0 || state_write(&st, w.dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    state_deinit(&st);
}

/* What it logs is kept in the file "log". */
static void run_agent(void)
{
    enum agent_end end = AGENT_END_STOPPED;
    struct err e = ERR_NULL;
    char path[160];
    int r;

    (void)snprintf(path, sizeof(path), "%s/log", w.dir);
    if (!freopen(path, "ae", stderr))
        exit(FAILED);
    if (w.etc[0] != '\0' &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount(w.etc, "/etc", NULL, MS_BIND, NULL) < 0))
        exit(FAILED);
    r = agent_run(&config, &end, &e);
    if (r < 0)
        (void)fprintf(stderr, "%s\n", err_text(&e));
    /* And not at once, so that what is not released is found. */
    exit(r == 0 ? ENDED + (int)end : FAILED);
}

static int ask(const char *method, const char *path, json_t *body, json_t **ret)
{
    int r = agent_ask_with(w.socket_path, method, path, body, 10000, ret, NULL);

    json_decref(body);
    return r;
}

/* Why the agent does not do that. */
static const char *refusal(const char *method, const char *path)
{
    static struct err e;

    e = (struct err)ERR_NULL;
    assert_int_equal(agent_ask_with(w.socket_path, method, path, NULL, 10000, NULL, &e), -EIO);
    return e.text;
}

static int enter(void **state)
{
    memset(&w, 0, sizeof(w));
    config =
        (struct agent_config){.state_dir = w.dir, .socket_path = w.socket_path, .no_measure = true};
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-agent.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.socket_path, sizeof(w.socket_path), "%s/sock", w.dir);
    return netns_enter(state);
}

static void remove_dir(void)
{
    DIR *d = opendir(w.dir);
    char path[400];
    struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d))) {
        (void)snprintf(path, sizeof(path), "%s/%s", w.dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    (void)rmdir(w.dir);
}

static int leave(void **state)
{
    if (w.agent > 0) {
        (void)kill(w.agent, SIGKILL);
        (void)waitpid(w.agent, NULL, 0);
    }
    remove_dir();
    return netns_leave(state);
}

static void begin(void **state)
{
    assert_int_equal(rtnl_add_link(netns_need(state), "weft0", "bridge"), 0);
    write_state();
    (void)fflush(NULL);
    w.agent = fork();
    if (w.agent == 0)
        run_agent();
}

/* The agent runs, and answers. */
static void start(void **state)
{
    begin(state);
    for (unsigned i = 0; i < 1000 && ask("GET", "/v1/snapshot", NULL, NULL) != 0; i++)
        (void)poll(NULL, 0, 10);
}

static void wait_for_end(int expected)
{
    int status;

    assert_int_equal(process_wait_end(w.agent, 10000), 0);
    assert_int_equal(waitpid(w.agent, &status, 0), w.agent);
    w.agent = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

/* All that was logged; lent until the next call. */
static const char *logged(void)
{
    static char text[16384];
    char path[160];
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof(path), "%s/log", w.dir);
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(text, 1, sizeof(text) - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

static void wait_for_log(const char *part)
{
    for (unsigned i = 0; i < 1000 && !strstr(logged(), part); i++)
        (void)poll(NULL, 0, 10);
    assert_non_null(strstr(logged(), part));
}

/* What a path of the agent's API says; a new reference. */
static json_t *get(const char *path)
{
    json_t *answer = NULL;

    assert_int_equal(ask("GET", path, NULL, &answer), 0);
    return answer;
}

static bool exists(const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", w.dir, name);
    return access(path, F_OK) == 0;
}

/* ---- its start ------------------------------------------------------------------------------- */

static void test_a_machine_that_has_not_joined(void **state)
{
    enum agent_end end;
    struct err e = ERR_NULL;
    char words[256];

    assert_int_equal(agent_run(&config, &end, &e), AGENT_E_NOT_JOINED);
    (void)snprintf(words, sizeof(words),
        "this machine has not joined a network (%s has no node.json): weft join TOKEN", w.dir);
    assert_string_equal(e.text, words);
}

static void test_a_node_that_was_removed(void **state)
{
    struct removed rm = {.node = "n2",
        .network = "default",
        .reason = "by a test",
        .socket_path = "/run/x",
        .at = 1};
    enum agent_end end;
    struct err e = ERR_NULL;

    assert_int_equal(removed_write(&rm, w.dir, NULL), 0);
    assert_int_equal(agent_run(&config, &end, &e), AGENT_E_NOT_JOINED);
    assert_non_null(strstr(e.text, "\"n2\""));
    assert_non_null(strstr(e.text, ": by a test"));
    assert_non_null(strstr(e.text, "; weft join with a new token makes it one again"));
}

/* Two agents of one node would undo what the other does. */
static void test_a_second_agent(void **state)
{
    enum agent_end end;
    struct err e = ERR_NULL;
    int fd;

    write_state();
    assert_int_equal(state_lock(w.dir, &fd, NULL), 0);
    assert_int_equal(agent_run(&config, &end, &e), -EBUSY);
    (void)close(fd);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static void test_its_status(void **state)
{
    const json_t *self;
    json_t *status;

    start(state);
    status = get("/v1/status");
    self = json_object_get(status, "self");
    assert_string_equal(json_string_value(json_object_get(self, "name")), "n2");
    assert_non_null(strstr(json_string_value(json_object_get(self, "fault")), "weft0"));
    assert_true(json_is_null(json_object_get(self, "engine")));
    assert_null(json_object_get(self, "dns"));
    assert_true(json_is_false(json_object_get(json_object_get(status, "hub"), "reachable")));
    assert_null(json_object_get(status, "cluster"));
    json_decref(status);
    /* What a probe reads of this node is written at each start. */
    assert_true(exists("public.json"));
    assert_string_equal(logged(), BEGUN);
}

/* What cannot be done is said before anything of the machine is changed. */
static void test_a_socket_that_cannot_be_made(void **state)
{
    char path[128];

    /* No folder, but a file. */
    (void)snprintf(path, sizeof(path), "%s/node.json/sock", w.dir);
    config.socket_path = path;
    begin(state);
    wait_for_end(FAILED);
    assert_non_null(strstr(logged(), "node.json"));
    assert_null(strstr(logged(), "is not as the hub wants it"));
}

static void test_a_cluster_that_is_not_there(void **state)
{
    char path[96];
    char where[128];
    const json_t *cluster;
    json_t *status;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/kubeconfig", w.dir);
    (void)snprintf(where, sizeof(where), "?kubeconfig=%s", path);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:9\"}}]\n"
                "users: [{name: u, user: {token: t}}]\n"
                "contexts: [{name: x, context: {cluster: c, user: u, namespace: weft}}]\n",
        f);
    (void)fclose(f);
    config.cluster = where;
    start(state);
    wait_for_log(
        "warning: weft: the cluster does not say who is in the network, known peers stay: ");
    status = get("/v1/status");
    cluster = json_object_get(status, "cluster");
    assert_true(json_is_false(json_object_get(cluster, "reachable")));
    assert_string_not_equal(json_string_value(json_object_get(cluster, "why")), "");
    assert_in_range(json_integer_value(json_object_get(cluster, "sinceSeconds")), 0, 60);
    json_decref(status);
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
}

static void test_a_cluster_that_cannot_be(void **state)
{
    config.cluster = "?kubeconfig=/nonexistent/kubeconfig";
    begin(state);
    wait_for_end(FAILED);
    assert_non_null(strstr(logged(), "/nonexistent/kubeconfig"));
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names_by_dns(void **state)
{
    json_t *status;

    w.answers_dns = true;
    start(state);
    status = get("/v1/status");
    assert_true(json_is_object(json_object_get(json_object_get(status, "self"), "dns")));
    json_decref(status);
    wait_for_log("by DNS");
    /* By then it may have said as well that the hub does not answer. */
    assert_non_null(strstr(logged(),
        "\ninfo: weft: the nodes' names are not answered by DNS, trying again: UDP address "
        "[fd5a:1::2]:53 cannot be used: Cannot assign requested address\n"));
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
}

/* Lent until the next call. */
static const char *read_hosts(void)
{
    static char text[4096];
    char path[96];
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/hosts", w.etc);
    f = fopen(path, "re");
    n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = '\0';
    return text;
}

static void test_names_in_the_hosts_file(void **state)
{
    char path[96];
    FILE *f;

    (void)snprintf(w.etc, sizeof(w.etc), "%s/etc", w.dir);
    assert_int_equal(mkdir(w.etc, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/hosts", w.etc);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("127.0.0.1 localhost\n", f);
    (void)fclose(f);
    w.keeps_hosts = true;
    start(state);
    assert_memory_equal(read_hosts(), "127.0.0.1 localhost\n# weft begin default/n2/", 42);
    assert_non_null(strstr(read_hosts(), "10.42.0.3\tn3.default.weft"));
    assert_int_equal(ask("POST", "/v1/down", NULL, NULL), 0);
    wait_for_end(ENDED + AGENT_END_DOWN);
    assert_string_equal(read_hosts(), "127.0.0.1 localhost\n");
    (void)unlink(path);
    (void)rmdir(w.etc);
}

static void test_the_network_as_it_knows_it(void **state)
{
    json_t *snapshot;

    start(state);
    snapshot = get("/v1/snapshot");
    assert_string_equal(json_string_value(json_object_get(snapshot, "self")), "n2");
    assert_int_equal(json_array_size(json_object_get(snapshot, "nodes")), 3);
    json_decref(snapshot);
}

static void test_what_was_tried_to_reach_a_peer(void **state)
{
    json_t *paths;

    start(state);
    paths = get("/v1/paths/n3");
    assert_true(json_is_object(paths));
    json_decref(paths);
    /* A node that is not known, and the node itself, are no peers. */
    assert_string_equal(refusal("GET", "/v1/paths/n9"), "\"n9\" is no peer of this node");
    assert_string_equal(refusal("GET", "/v1/paths/n2"), "\"n2\" is no peer of this node");
}

static void test_a_proof_for_a_measurement(void **state)
{
    static const char order[] =
        "{\"id\":\"00000000000000000000000000000000\",\"purpose\":\"bench\",\"seconds\":60,"
        "\"challenges\":{\"10.42.0.3\":\"01020300000000000000000000000000\"}}";
    json_t *answer = NULL;

    start(state);
    assert_int_equal(ask("POST", "/v1/measure/proofs", json_loads(order, 0, NULL), &answer), 0);
    assert_non_null(json_object_get(json_object_get(answer, "proofs"), "10.42.0.3"));
    json_decref(answer);
    assert_int_equal(ask("POST", "/v1/measure/proofs", json_object(), NULL), -EIO);
}

static void test_an_engine_that_cannot_be_renewed(void **state)
{
    start(state);
    assert_int_equal(ask("POST", "/v1/engine", NULL, NULL), -EIO);
    /* The interface is somebody else's still, and so it stays. */
    assert_int_not_equal(0, exists("node.json"));
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static size_t n_jobs(void)
{
    json_t *status = get("/v1/status");
    size_t n = json_array_size(json_object_get(status, "jobs"));

    json_decref(status);
    return n;
}

/* The hub cannot be asked; what runs here is known all the same. */
static void test_a_job_runs_here(void **state)
{
    static const char path[] = "/v1/jobs/train/rendezvous";

    start(state);
    assert_int_equal(ask("POST", path, json_pack("{s:b}", "dryRun", 1), NULL), -EIO);
    assert_int_equal(n_jobs(), 0);
    assert_int_equal(ask("POST", "/v1/jobs/No.Name/rendezvous", json_object(), NULL), -EIO);
    assert_int_equal(n_jobs(), 0);
    assert_int_equal(ask("POST", path, json_object(), NULL), -EIO);
    assert_int_equal(n_jobs(), 1);
    assert_int_equal(ask("DELETE", path, NULL, NULL), -EIO);
    assert_int_equal(n_jobs(), 0);
}

static void test_what_nccl_took(void **state)
{
    json_t *status;
    const json_t *job;

    start(state);
    (void)ask("POST", "/v1/jobs/train/rendezvous", json_object(), NULL);
    /* It is checked before it is shown. */
    (void)ask("POST", "/v1/jobs/train/nccl", json_pack("{s:i}", "verdict", 7), NULL);
    status = get("/v1/status");
    job = json_array_get(json_object_get(status, "jobs"), 0);
    assert_string_equal(json_string_value(json_object_get(job, "job")), "train");
    assert_true(json_is_null(json_object_get(job, "nccl")));
    json_decref(status);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* A file that is written anew has another number. */
static ino_t number_of(const char *name)
{
    struct stat st;
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", w.dir, name);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void test_a_signal_leaves_all_as_it_is(void **state)
{
    struct rtnl_link link;
    ino_t snapshot;

    start(state);
    assert_true(exists("sock"));
    snapshot = number_of("snapshot.json");
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
    assert_true(exists("node.json"));
    /* Nothing was heard that is to be kept. */
    assert_int_equal(number_of("snapshot.json"), snapshot);
    assert_false(exists("sock"));
    assert_string_equal(logged(), BEGUN);
    assert_int_equal(rtnl_find_link(netns_need(state), "weft0", &link), 0);
}

static void test_the_other_signal(void **state)
{
    start(state);
    assert_int_equal(kill(w.agent, SIGINT), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
}

static void test_it_starts_again(void **state)
{
    start(state);
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
    (void)fflush(NULL);
    w.agent = fork();
    if (w.agent == 0)
        run_agent();
    for (unsigned i = 0; i < 1000 && ask("GET", "/v1/status", NULL, NULL) != 0; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
}

static void test_it_is_taken_down(void **state)
{
    json_t *answer = NULL;

    start(state);
    assert_int_equal(ask("POST", "/v1/down", NULL, &answer), 0);
    assert_string_equal(json_string_value(json_object_get(answer, "interface")), "weft0");
    assert_string_equal(json_string_value(json_object_get(answer, "namesWhy")), "");
    json_decref(answer);
    wait_for_end(ENDED + AGENT_END_DOWN);
    assert_true(exists("node.json"));
    assert_string_equal(logged(), BEGUN "info: weft: the interface weft0 was taken down\n");
}

/* Whoever asks for nothing does not keep it from ending. */
static void test_a_connection_that_stays(void **state)
{
    int fd;

    start(state);
    fd = unix_socket_connect(w.socket_path, SOCK_STREAM);
    assert_true(fd >= 0);
    assert_int_equal(ask("GET", "/v1/snapshot", NULL, NULL), 0);
    assert_int_equal(kill(w.agent, SIGTERM), 0);
    wait_for_end(ENDED + AGENT_END_STOPPED);
    (void)close(fd);
}

/* It leaves also when the hub is away, and says that the hub does not know. */
static void test_it_leaves(void **state)
{
    json_t *answer = NULL;

    start(state);
    assert_int_equal(ask("POST", "/v1/leave", NULL, &answer), 0);
    assert_true(json_is_false(json_object_get(answer, "hubTold")));
    assert_string_not_equal(json_string_value(json_object_get(answer, "why")), "");
    assert_string_equal(json_string_value(json_object_get(answer, "network")), "default");
    assert_string_equal(json_string_value(json_object_get(answer, "node")), "n2");
    assert_string_equal(json_string_value(json_object_get(answer, "interface")), "weft0");
    assert_memory_equal(
        json_string_value(json_object_get(answer, "hostsOwner")), "default/n2/", 11);
    assert_string_equal(json_string_value(json_object_get(answer, "namesWhy")), "");
    json_decref(answer);
    wait_for_end(ENDED + AGENT_END_LEFT);
    assert_false(exists("node.json"));
    assert_false(exists("snapshot.json"));
    assert_false(exists("removed.json"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_machine_that_has_not_joined),
        TEST(test_a_node_that_was_removed),
        TEST(test_a_second_agent),
        TEST(test_its_status),
        TEST(test_a_socket_that_cannot_be_made),
        TEST(test_a_cluster_that_is_not_there),
        TEST(test_a_cluster_that_cannot_be),
        TEST(test_names_by_dns),
        TEST(test_names_in_the_hosts_file),
        TEST(test_the_network_as_it_knows_it),
        TEST(test_what_was_tried_to_reach_a_peer),
        TEST(test_a_proof_for_a_measurement),
        TEST(test_an_engine_that_cannot_be_renewed),
        TEST(test_a_job_runs_here),
        TEST(test_what_nccl_took),
        TEST(test_a_signal_leaves_all_as_it_is),
        TEST(test_the_other_signal),
        TEST(test_it_starts_again),
        TEST(test_it_is_taken_down),
        TEST(test_a_connection_that_stays),
        TEST(test_it_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
