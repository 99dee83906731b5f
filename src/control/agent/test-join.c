/*
 * test-join.c - a machine becomes a node, and ends being one.
 *
 * The hub is a thread of the test that answers by TLS what the test has it say. All is in a network
 * namespace of its own.
 */
#include "agent/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
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

#include "agent/agent.h"
#include "agent/leave.h"
#include "api/server/server.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/secret.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "wire/member_proof.h"

/* ---- the hub --------------------------------------------------------------------------------- */

/** Written before it is asked, or by its thread while it is. */
static struct hub {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t end;
    struct server *server;
    struct identity identity;
    char address[32];
    struct x25519_public key;

    /* What it answers. */
    const char *cidr4;     /* of the network, as it says to a dry run; NULL: not at all */
    const char *cidr6;     /* and the second one */
    const char *network;   /* its name in the answer */
    bool has_names;        /* each name that is asked for is taken */
    bool has_other_key;    /* the hub of the answer has another key than the token's */
    bool has_no_hub;       /* the answer has none */
    bool is_about_another; /* the answer has another key for this node */
    unsigned refuses;      /* so many dry runs, with 403 */
    int leave_status;      /* to who leaves */

    /* What it was asked. */
    char asked[512]; /* "dry|join|leave|" */
    json_t *request; /* the last that was no dry run */
    char left[256];  /* path of the last one who left */
} hub;

static void note(const char *what)
{
    size_t len = strlen(hub.asked);

    (void)snprintf(hub.asked + len, sizeof(hub.asked) - len, "%s|", what);
}

/* The network with this hub and two nodes, as the node n2 sees it. */
static json_t *encode_network(const json_t *request)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct object first = sample_node(1);
    struct object self = sample_node(2);
    const char *key = json_string_value(json_object_get(request, "publicKey"));
    json_t *json;

    assert_int_equal(x25519_public_parse(&self.node.key, key, NULL), 0);
    if (hub.is_about_another)
        self.node.key.b[1] ^= 1;
    sample_put(&s, self);
    first.node.key = hub.key;
    if (hub.has_other_key)
        first.node.key.b[1] ^= 1;
    if (hub.has_no_hub) {
        free(first.node.hub);
        first.node.hub = NULL;
    }
    sample_put(&s, first);
    (void)snprintf(s.network.meta.name, sizeof(s.network.meta.name), "%s", hub.network);
    for (size_t i = 0; i < s.nodes.n; i++)
        (void)snprintf(s.nodes.items[i]->meta.network, sizeof(s.nodes.items[i]->meta.network), "%s",
            hub.network);
    json = snapshot_encode(&s);
    snapshot_deinit(&s);
    return json;
}

static void post_enrol(void *ctx, const struct request *rq, struct response *rs)
{
    if (hub.has_names && json_object_get(rq->body, "name")) {
        note("taken");
        response_refuse(rs, 409, "there is such a name already");
    } else if (!json_is_true(json_object_get(rq->body, "dryRun"))) {
        note("join");
        json_decref(hub.request);
        hub.request = json_deep_copy(rq->body);
        response_json(rs, 200, encode_network(rq->body));
    } else if (hub.refuses > 0) {
        note("refused");
        hub.refuses--;
        response_refuse(rs, 403, "there is such a node already");
    } else {
        note("dry");
        response_json(rs, 200, json_pack("{s:s*, s:s*}", "cidr4", hub.cidr4, "cidr6", hub.cidr6));
    }
}

static void post_leave(void *ctx, const struct request *rq, struct response *rs)
{
    note("leave");
    (void)snprintf(hub.left, sizeof(hub.left), "%s", rq->path);
    if (hub.leave_status == 204)
        response_empty(rs);
    else
        response_refuse(rs, hub.leave_status, "not now");
}

static const struct route routes[] = {
    {"POST", "/v1/enrol", API_ACCESS_PUBLIC, post_enrol, ""},
    {"POST", "/v1/leave/{network}/{key}", API_ACCESS_PUBLIC, post_leave, ""},
    ROUTES_END,
};

static void on_end(uv_async_t *end)
{
    server_stop(hub.server);
    uv_close((uv_handle_t *)end, NULL);
}

static void *serve(void *arg)
{
    (void)uv_run(&hub.loop, UV_RUN_DEFAULT);
    return NULL;
}

static void start_hub(const char *dir)
{
    static const struct x25519_secret secret = {.b = {6, [31] = 0x40}};
    struct endpoint at = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    const struct server_config config = {
        .loop = &hub.loop, .routes = routes, .identity = &hub.identity};
    struct err e = ERR_NULL;
    char certificate[128];
    char key[128];
    uint16_t port;

    (void)snprintf(key, sizeof(key), "%s/tls.key", dir);
    (void)snprintf(certificate, sizeof(certificate), "%s/tls.crt", dir);
    hub = (struct hub){.identity = IDENTITY_NULL,
        .cidr4 = "10.42.0.0/16",
        .cidr6 = "fd5a:1::/64",
        .network = "default",
        .leave_status = 204};
    assert_true(x25519_derive_public(&secret, &hub.key));
    assert_int_equal(uv_loop_init(&hub.loop), 0);
    assert_int_equal(uv_async_init(&hub.loop, &hub.end, on_end), 0);
    if (identity_open(&hub.identity, key, certificate, &e) != 0 ||
        server_new(&hub.server, &config, &e) != 0 ||
        server_listen_tls(hub.server, &at, &port, &e) != 0)
        fail_msg("%s", err_text(&e));
    (void)snprintf(hub.address, sizeof(hub.address), "127.0.0.1:%u", port);
    assert_int_equal(pthread_create(&hub.thread, NULL, serve, NULL), 0);
}

/* The hub is away from now on. */
static void stop_hub(void)
{
    if (!hub.server)
        return;
    (void)uv_async_send(&hub.end);
    assert_int_equal(pthread_join(hub.thread, NULL), 0);
    hub.server = server_free(hub.server);
    assert_int_equal(uv_loop_close(&hub.loop), 0);
    json_decref(hub.request);
    hub.request = NULL;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static struct machine {
    char dir[64]; /* of the hub's files */
    char state_dir[80];
    char socket_path[80];
    struct token token;
    struct join_options options;
    struct state joined;
    struct err e;
} m;

static int enter(void **state)
{
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    memset(&m, 0, sizeof(m));
    (void)netns_raise_loopback(*state);
    (void)snprintf(m.dir, sizeof(m.dir), "/tmp/weft-test-join.XXXXXX");
    assert_non_null(mkdtemp(m.dir));
    (void)snprintf(m.state_dir, sizeof(m.state_dir), "%s/node", m.dir);
    (void)snprintf(m.socket_path, sizeof(m.socket_path), "%s/sock", m.dir);
    start_hub(m.dir);
    m.token = (struct token){.n_api = 1, .pin = hub.identity.pin, .hub_key = hub.key};
    (void)snprintf(m.token.network, sizeof(m.token.network), "default");
    (void)snprintf(m.token.api[0], sizeof(m.token.api[0]), "%s", hub.address);
    m.options = (struct join_options){.token = &m.token,
        .name = "n2",
        .engine = ENGINE_KIND_USERSPACE,
        .proxy = "none",
        .interface = "weft0",
        .state_dir = m.state_dir};
    return 0;
}

static void remove_files(const char *dir)
{
    DIR *d = opendir(dir);
    char path[400];
    struct dirent *entry;

    while (d && (entry = readdir(d))) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        (void)unlink(path);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(dir);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    stop_hub();
    identity_close(&hub.identity);
    state_deinit(&m.joined);
    remove_files(m.state_dir);
    remove_files(m.dir);
    return netns_leave(state);
}

static int join(void)
{
    m.e = (struct err)ERR_NULL;
    return join_enrol(&m.options, &m.joined, &m.e);
}

static void join_well(void)
{
    if (join() != 0)
        fail_msg("%s", err_text(&m.e));
}

static bool exists(const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", m.state_dir, name);
    return access(path, F_OK) == 0;
}

/* Beside the directory is a file with its name and that suffix. */
static bool exists_beside(const char *suffix)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s%s", m.state_dir, suffix);
    return access(path, F_OK) == 0;
}

static const char *said(const char *field)
{
    return json_string_value(json_object_get(hub.request, field));
}

/* ---- joining --------------------------------------------------------------------------------- */

static void test_a_machine_joins(void **state)
{
    struct state st = STATE_NULL;
    struct x25519_public key;
    char text[X25519_BASE64_MAX];

    (void)netns_need(state);
    m.options.routes = &(struct subnets)SUBNETS_NULL;
    join_well();
    /* It is asked first whether the machine could have the network's block. */
    assert_string_equal(hub.asked, "dry|join|");
    assert_string_equal(said("name"), "n2");
    assert_string_equal(said("engine"), "userspace");
    assert_true(json_is_false(json_object_get(hub.request, "dryRun")));
    assert_int_equal(json_object_size(json_object_get(hub.request, "labels")), 0);
    assert_null(json_object_get(hub.request, "routes"));
    /* What is on the disk is what is returned. */
    assert_int_equal(state_read(&st, m.state_dir, NULL), 0);
    assert_true(x25519_derive_public(&st.secret, &key));
    assert_string_equal(said("publicKey"), x25519_public_format(&key, text));
    assert_memory_equal(&st.secret, &m.joined.secret, sizeof(st.secret));
    assert_string_equal(st.interface, "weft0");
    assert_int_equal(st.engine, ENGINE_KIND_USERSPACE);
    assert_string_equal(st.snapshot.self, "n2");
    assert_int_equal(st.hub_api.n_api, 1);
    assert_string_equal(st.hub_api.api[0], hub.address);
    assert_memory_equal(&st.hub_api.pin, &hub.identity.pin, sizeof(st.hub_api.pin));
    assert_string_equal(st.hub_api.proxy, "");
    assert_true(st.has_machine);
    assert_false(st.wants_relay || st.keeps_hosts || st.answers_dns || st.keeps_sources);
    state_deinit(&st);
    assert_true(exists("snapshot.json"));
    assert_false(exists("join.key"));
}

static void test_what_is_asked_for_is_kept(void **state)
{
    static const struct label labels[] = {{"rack", "7"}, {"gpu", "h200"}};
    struct subnets subnets = SUBNETS_NULL;
    struct endpoint given[2];
    struct state st = STATE_NULL;

    (void)netns_need(state);
    assert_int_equal(subnets_parse(&subnets, "192.168.7.0/24", NULL), 0);
    assert_int_equal(endpoint_parse(&given[0], "192.0.2.1:7", NULL), 0);
    assert_int_equal(endpoint_parse(&given[1], "192.0.2.2:8", NULL), 0);
    m.options.labels = labels;
    m.options.n_labels = 2;
    m.options.routes = &subnets;
    m.options.wants_relay = true;
    m.options.engine = ENGINE_KIND_AUTO;
    m.options.answers_dns = true;
    m.options.keeps_sources = true;
    m.options.accepts = SUBNETS_ACCEPT_NONE;
    m.options.listen_port = 40123;
    m.options.given = given;
    m.options.n_given = 2;
    m.options.keeps_hosts = true;
    join_well();
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(hub.request, "labels"), "gpu")), "h200");
    assert_int_equal(json_array_size(json_object_get(hub.request, "routes")), 1);
    /* A relay takes the engine in user space. */
    assert_string_equal(said("engine"), "userspace");
    assert_int_equal(state_read(&st, m.state_dir, NULL), 0);
    assert_int_equal(st.engine, ENGINE_KIND_USERSPACE);
    assert_true(st.wants_relay && st.answers_dns && st.keeps_sources);
    assert_int_equal(st.accepts, SUBNETS_ACCEPT_NONE);
    assert_int_equal(st.listen_port, 40123);
    assert_int_equal(st.routes.n, 1);
    assert_int_equal(st.n_given, 2);
    assert_true(endpoint_equal(&st.given[0], &given[0]));
    assert_true(endpoint_equal(&st.given[1], &given[1]));
    /* Names in the hosts file are wanted: what may stand there is kept as well. */
    assert_true(st.keeps_hosts);
    assert_true(exists_beside(".blocks"));
    state_deinit(&st);
}

/* A name is made of the host's, if there is anything in it that a name may have. */
static void test_the_host_s_name(void **state)
{
    static const struct {
        const char *host;
        const char *name; /* NULL: the hub chooses one */
    } cases[] = {
        {"gpu-1", "gpu-1"},
        {"Node-AZ.example.org", "node-az"},
        {"gpu__7:x", "gpu-7-x"},
        {"_a9z0_", "a9z0"},
        {"localhost", NULL},
        {"--_", NULL},
        {"[`{@/:", NULL},
        {"a123456789b123456789c123456789d123456789e123456789f123456789gABZ",
            "a123456789b123456789c123456789d123456789e123456789f123456789gab"},
    };

    (void)netns_need(state);
    m.options.name = NULL;
    assert_int_equal(unshare(CLONE_NEWUTS), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *name;

        assert_int_equal(sethostname(cases[i].host, strlen(cases[i].host)), 0);
        join_well();
        state_deinit(&m.joined);
        name = said("name");
        if (cases[i].name)
            assert_string_equal(name, cases[i].name);
        else
            assert_null(name);
        assert_int_equal(state_remove(m.state_dir, NULL), 0);
    }
}

/* A name of the host's that is taken is left; one that was asked for is not. */
static void test_a_name_that_is_taken(void **state)
{
    (void)netns_need(state);
    hub.has_names = true;
    assert_int_equal(join(), CLIENT_E_REFUSED);
    assert_string_equal(m.e.text, "the hub refuses: there is such a name already");
    assert_string_equal(hub.asked, "taken|");
    hub.asked[0] = '\0';
    m.options.name = NULL;
    assert_int_equal(unshare(CLONE_NEWUTS), 0);
    assert_int_equal(sethostname("gpu-1", 5), 0);
    join_well();
    assert_string_equal(hub.asked, "taken|dry|taken|join|");
    assert_null(said("name"));
}

/* The proxy is the one that was said, else the environment's, and is kept for the streams in TLS.
 */
static void test_the_proxy_is_kept(void **state)
{
    (void)netns_need(state);
    m.options.proxy = "http://127.0.0.1:1";
    join_well();
    assert_string_equal(m.joined.hub_api.proxy, "http://127.0.0.1:1");
    state_deinit(&m.joined);
    assert_int_equal(state_remove(m.state_dir, NULL), 0);
    m.options.proxy = NULL;
    assert_int_equal(unsetenv("https_proxy") | unsetenv("HTTPS_PROXY"), 0);
    join_well();
    assert_string_equal(m.joined.hub_api.proxy, "");
    state_deinit(&m.joined);
    assert_int_equal(state_remove(m.state_dir, NULL), 0);
    assert_int_equal(setenv("https_proxy", "http://127.0.0.1:2", 1), 0);
    join_well();
    assert_string_equal(m.joined.hub_api.proxy, "http://127.0.0.1:2");
    assert_int_equal(unsetenv("https_proxy"), 0);
}

/* The hub made the network anew, say: what tells of the removal goes with the next join. */
static void test_a_machine_that_was_removed_joins_again(void **state)
{
    struct removed rm = {
        .node = "n2", .network = "default", .reason = "x", .socket_path = "/x", .at = 1};

    (void)netns_need(state);
    assert_int_equal(statefile_make_dir(m.state_dir, 0700, NULL), 0);
    assert_int_equal(removed_write(&rm, m.state_dir, NULL), 0);
    join_well();
    assert_false(exists("removed.json"));
}

static void test_a_hub_that_knows_no_dry_run(void **state)
{
    (void)netns_need(state);
    hub.cidr6 = NULL;
    join_well();
    state_deinit(&m.joined);
    assert_int_equal(state_remove(m.state_dir, NULL), 0);
    hub.cidr4 = NULL;
    hub.cidr6 = "fd5a:1::/64";
    join_well();
    assert_string_equal(hub.asked, "dry|join|dry|join|");
}

/* ---- what is refused before the hub is asked ------------------------------------------------- */

static void fails(int r, const char *words)
{
    assert_int_equal(join(), r);
    if (!strstr(m.e.text, words))
        fail_msg("\"%s\", and not \"%s\"", m.e.text, words);
    assert_string_equal(hub.asked, "");
    assert_false(exists("node.json"));
}

static void test_a_relay_in_the_kernel(void **state)
{
    (void)netns_need(state);
    m.options.wants_relay = true;
    m.options.engine = ENGINE_KIND_KERNEL;
    fails(-EINVAL, "a relay needs the userspace engine, and --engine says kernel");
}

static void test_an_interface_that_exists(void **state)
{
    assert_int_equal(rtnl_add_link(netns_need(state), "weft0", "bridge"), 0);
    fails(-EEXIST, "an interface weft0 exists already; --interface chooses another name");
}

static void test_a_name_that_no_interface_has(void **state)
{
    (void)netns_need(state);
    m.options.interface = "a/b";
    fails(-EINVAL, "interface \"a/b\" is not a name: 1 to 15 printable characters");
    m.options.state_dir = "";
    fails(-EINVAL, "the state directory \"\" is not 1 to ");
}

static void test_a_port_that_is_taken(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(40124)};
    int fd;

    (void)netns_need(state);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    m.options.listen_port = 40124;
    assert_int_not_equal(join(), 0);
    assert_memory_equal(m.e.text, "--listen cannot be had, and the token is not used: ", 51);
    /* What is found first is said. */
    m.options.proxy = "ftp://127.0.0.1";
    assert_int_not_equal(join(), 0);
    assert_memory_equal(m.e.text, "--listen cannot be had, and the token is not used: ", 51);
    assert_int_equal(rtnl_add_link(netns_need(state), "weft0", "bridge"), 0);
    assert_int_equal(join(), -EEXIST);
    assert_memory_equal(m.e.text, "an interface weft0 exists already; ", 35);
    assert_string_equal(hub.asked, "");
    (void)close(fd);
}

static void test_a_proxy_that_is_none(void **state)
{
    (void)netns_need(state);
    m.options.proxy = "ftp://127.0.0.1";
    assert_true(join() < 0);
    assert_string_equal(hub.asked, "");
}

static void test_a_second_join(void **state)
{
    (void)netns_need(state);
    join_well();
    state_deinit(&m.joined);
    assert_int_equal(join(), -EEXIST);
    assert_non_null(strstr(m.e.text,
        "this machine is \"n2\" in the network \"default\" already; weft leave ends that, "));
    assert_string_equal(hub.asked, "dry|join|");
}

static void test_a_state_that_somebody_has(void **state)
{
    int fd;

    (void)netns_need(state);
    assert_int_equal(statefile_make_dir(m.state_dir, 0700, NULL), 0);
    assert_int_equal(state_lock(m.state_dir, &fd, NULL), 0);
    fails(-EBUSY, "");
    (void)close(fd);
}

/* ---- what is refused by the hub, or because of its answer ------------------------------------ */

static void use_block(struct netlink *nl, const char *address)
{
    struct ip_prefix p = netns_prefix(address);
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(nl, "br0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "br0", &link), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &p, false), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
}

/* The token is not used, and no node is left at the hub. */
static void test_a_block_that_is_in_use_here(void **state)
{
    use_block(netns_need(state), "10.42.7.1/24");
    assert_int_equal(join(), -EADDRINUSE);
    assert_non_null(
        strstr(m.e.text, "the token is not used: the network \"default\" cannot be joined here: "));
    assert_string_equal(hub.asked, "dry|");
    assert_false(exists("node.json"));
}

static void test_the_second_block_is_in_use_here(void **state)
{
    use_block(netns_need(state), "fd5a:1::7/64");
    assert_int_equal(join(), -EADDRINUSE);
    assert_string_equal(hub.asked, "dry|");
}

static void test_a_block_that_is_none(void **state)
{
    (void)netns_need(state);
    hub.cidr4 = "10.42.0.0/77";
    assert_int_equal(join(), -EINVAL);
    assert_memory_equal(m.e.text, "the hub's answer cannot be used: ", 33);
    hub.cidr4 = "10.42.0.0/16";
    hub.cidr6 = "fd5a:1::/177";
    assert_int_equal(join(), -EINVAL);
    assert_memory_equal(m.e.text, "the hub's answer cannot be used: ", 33);
    assert_string_equal(hub.asked, "dry|dry|");
}

/* What only the second answer says is found out when the hub has the node: it removes it again. */
static void undone(int r, const char *words)
{
    char key[2 * sizeof(hub.key) + 32];

    assert_int_equal(join(), r);
    if (!strstr(m.e.text, words))
        fail_msg("\"%s\", and not \"%s\"", m.e.text, words);
    assert_string_equal(hub.asked, "dry|join|leave|");
    assert_non_null(strstr(
        m.e.text, "; the hub has removed the machine again, and the token can be used once more"));
    (void)snprintf(key, sizeof(key), "/v1/leave/default/");
    assert_memory_equal(hub.left, key, strlen(key));
    assert_int_equal(strlen(hub.left), strlen(key) + 64);
    assert_false(exists("node.json"));
    assert_false(exists("join.key"));
}

static void test_another_block_than_the_hub_had_said(void **state)
{
    use_block(netns_need(state), "10.42.7.1/24");
    hub.cidr4 = "10.99.0.0/16";
    undone(-EADDRINUSE, "the network \"default\" cannot be joined here: ");
}

static void test_the_answer_of_another_network(void **state)
{
    (void)netns_need(state);
    hub.network = "other";
    undone(-EINVAL, "the token is for the network \"default\", and the hub says \"other\"");
}

static void test_an_answer_without_a_hub(void **state)
{
    (void)netns_need(state);
    hub.has_no_hub = true;
    undone(-EINVAL, "the hub's answer names no hub");
}

static void test_the_answer_of_another_hub(void **state)
{
    (void)netns_need(state);
    hub.has_other_key = true;
    undone(-EINVAL, "the hub's key is ");
}

static void test_an_answer_about_another_node(void **state)
{
    (void)netns_need(state);
    hub.is_about_another = true;
    undone(-EINVAL, "the hub's answer is about another node's key");
}

static void test_a_hub_that_cannot_undo_it(void **state)
{
    (void)netns_need(state);
    hub.network = "other";
    hub.leave_status = 500;
    assert_int_equal(join(), -EINVAL);
    assert_non_null(strstr(m.e.text, "; the hub has it as a node already and could not be told ("));
    assert_non_null(strstr(m.e.text, "): the same command goes on where this one ended"));
    /* With the same key. */
    assert_true(exists("join.key"));
}

static void test_a_refusal(void **state)
{
    (void)netns_need(state);
    hub.refuses = 1;
    assert_int_equal(join(), CLIENT_E_REFUSED);
    assert_string_equal(m.e.text, "the hub refuses: there is such a node already");
    assert_string_equal(hub.asked, "refused|");
}

/* A join that was killed has left a node behind, with the key that is there. */
static void test_a_node_of_an_earlier_try(void **state)
{
    struct x25519_secret secret;
    bool is_old;

    (void)netns_need(state);
    assert_int_equal(statefile_make_dir(m.state_dir, 0700, NULL), 0);
    assert_int_equal(state_join_key(&secret, &is_old, m.state_dir, NULL), 0);
    hub.refuses = 1;
    join_well();
    assert_string_equal(hub.asked, "refused|leave|dry|join|");
    assert_memory_equal(&m.joined.secret, &secret, sizeof(secret));
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void make_socket(const char *suffix)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s%s", m.socket_path, suffix);
    (void)close(unix_socket_listen(path, SOCK_STREAM, 0600));
    assert_int_equal(access(path, F_OK), 0);
}

static bool has_socket(const char *suffix)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s%s", m.socket_path, suffix);
    return access(path, F_OK) == 0;
}

static void test_a_machine_that_has_nothing_to_leave(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    assert_int_equal(
        leave_without_agent(m.state_dir, m.socket_path, false, &left, &e), STATE_E_ABSENT);
    assert_non_null(strstr(e.text, "this machine has not joined a network ("));
    assert_int_equal(
        leave_without_agent(m.state_dir, m.socket_path, true, &left, &e), STATE_E_ABSENT);
}

static void test_a_machine_that_was_removed(void **state)
{
    struct removed rm = {
        .node = "n2", .network = "default", .reason = "x", .socket_path = "/x", .at = 1};
    struct leave_result left;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    assert_int_equal(statefile_make_dir(m.state_dir, 0700, NULL), 0);
    assert_int_equal(removed_write(&rm, m.state_dir, NULL), 0);
    assert_int_equal(
        leave_without_agent(m.state_dir, m.socket_path, false, &left, &e), LEAVE_E_REMOVED);
    assert_memory_equal(e.text, "nothing of it is left here: ", 28);
}

/* The interface is gone; the machine is a node still. */
static void test_a_node_is_taken_down(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    join_well();
    make_socket("");
    make_socket(AGENT_MEASURE_SUFFIX);
    make_socket(UNIX_SOCKET_USERS_SUFFIX);
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, true, &left, &e), 0);
    assert_string_equal(left.network, "default");
    assert_string_equal(left.interface, "weft0");
    assert_string_equal(left.names_why, "");
    assert_string_not_equal(left.hosts_owner, "");
    assert_false(has_socket(""));
    assert_false(has_socket(AGENT_MEASURE_SUFFIX));
    assert_false(has_socket(UNIX_SOCKET_USERS_SUFFIX));
    assert_true(exists("node.json"));
    assert_string_equal(hub.asked, "dry|join|");
}

/* Whatever else is at the path is not the agent's. */
static void test_a_file_where_the_socket_was(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;
    FILE *f;

    (void)netns_need(state);
    join_well();
    f = fopen(m.socket_path, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, true, &left, &e), 0);
    assert_true(has_socket(""));
}

/* The tunnel does not carry, so the hub is told by its public API. */
static void test_a_node_leaves(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    join_well();
    make_socket("");
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, false, &left, &e), 0);
    assert_string_equal(hub.asked, "dry|join|leave|");
    assert_true(left.has_reported_hub);
    assert_string_equal(left.why, "");
    assert_false(exists("node.json"));
    assert_false(exists("snapshot.json"));
    assert_false(has_socket(""));
}

static void test_a_node_leaves_a_hub_that_is_away(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    join_well();
    stop_hub();
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, false, &left, &e), 0);
    assert_false(left.has_reported_hub);
    assert_string_not_equal(left.why, "");
    assert_false(exists("node.json"));
}

/* Then that does it. */
static void test_an_agent_runs(void **state)
{
    struct leave_result left;
    struct err e = ERR_NULL;
    int fd;

    (void)netns_need(state);
    join_well();
    assert_int_equal(state_lock(m.state_dir, &fd, NULL), 0);
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, false, &left, &e), -EBUSY);
    assert_int_equal(leave_without_agent(m.state_dir, m.socket_path, true, &left, &e), -EBUSY);
    assert_true(exists("node.json"));
    assert_string_equal(hub.asked, "dry|join|");
    (void)close(fd);
}

/* Of two hubs the one that is there is told, by a proof that is made for it. */
static void test_the_second_hub_is_told(void **state)
{
    struct state st = STATE_NULL;
    struct object second = sample_node(1);
    struct x25519_secret secret = {.b = {7, [31] = 0x40}};
    struct endpoint api;
    struct err e = ERR_NULL;
    struct member_proof_signer signer;

    (void)netns_need(state);
    join_well();
    assert_int_equal(state_read(&st, m.state_dir, NULL), 0);
    (void)snprintf(second.node.meta.name, sizeof(second.node.meta.name), "hub-b");
    assert_true(x25519_derive_public(&secret, &second.node.key));
    second.node.address4.b[15] = 99;
    second.node.address6.b[15] = 99;
    second.node.hub->has_tls_pin = true;
    sample_put(&st.snapshot, second);
    assert_int_equal(endpoint_parse(&api, "10.42.0.99:8443", NULL), 0);
    assert_true(member_proof_signer_init(&signer, &st.secret, &second.node.key));
    assert_int_equal(leave_tell_hub(&st, &st.snapshot, &api, &signer, &e), 0);
    assert_string_equal(hub.asked, "dry|join|leave|");
    state_deinit(&st);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_machine_joins),
        TEST(test_what_is_asked_for_is_kept),
        TEST(test_the_host_s_name),
        TEST(test_a_name_that_is_taken),
        TEST(test_the_proxy_is_kept),
        TEST(test_a_machine_that_was_removed_joins_again),
        TEST(test_a_hub_that_knows_no_dry_run),
        TEST(test_a_relay_in_the_kernel),
        TEST(test_an_interface_that_exists),
        TEST(test_a_name_that_no_interface_has),
        TEST(test_a_port_that_is_taken),
        TEST(test_a_proxy_that_is_none),
        TEST(test_a_second_join),
        TEST(test_a_state_that_somebody_has),
        TEST(test_a_block_that_is_in_use_here),
        TEST(test_the_second_block_is_in_use_here),
        TEST(test_a_block_that_is_none),
        TEST(test_another_block_than_the_hub_had_said),
        TEST(test_the_answer_of_another_network),
        TEST(test_an_answer_without_a_hub),
        TEST(test_the_answer_of_another_hub),
        TEST(test_an_answer_about_another_node),
        TEST(test_a_hub_that_cannot_undo_it),
        TEST(test_a_refusal),
        TEST(test_a_node_of_an_earlier_try),
        TEST(test_a_machine_that_has_nothing_to_leave),
        TEST(test_a_machine_that_was_removed),
        TEST(test_a_node_is_taken_down),
        TEST(test_a_file_where_the_socket_was),
        TEST(test_a_node_leaves),
        TEST(test_a_node_leaves_a_hub_that_is_away),
        TEST(test_an_agent_runs),
        TEST(test_the_second_hub_is_told),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
