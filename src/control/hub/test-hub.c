/*
 * test-hub.c - a hub with its sockets: what it makes at its start, whom it answers, and its end.
 *
 * It runs in a thread of its own, in a network namespace, and without a data half. Its interface
 * "wt-default" is a bridge that the test makes, where it is to have one.
 */
#include "hub/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "api/client/client.h"
#include "backends/store_open.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/hub_internal.h"
#include "hub/networks/networks.h"
#include "net/netlink/rtnl.h"
#include "net/socket/unix_socket.h"
#include "os/clock.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "store/store.h"
#include "store/store_backend.h"
#include "test/support/captured_log.h"
#include "test/support/netns.h"
#include "test/support/store_now.h"

static struct world {
    char dir[64];
    char url[96];
    char socket_path[96];
    struct hub_config config;
    uv_loop_t loop;
    uv_async_t end;
    pthread_t thread;
    struct hub *hub;
    bool is_running;
    struct err e;
    struct client_answer answer;
} w;

/* ---- life ------------------------------------------------------------------------------------ */

/* It may be told twice. */
static void on_end(uv_async_t *end)
{
    hub_stop(w.hub);
    hub_stop(w.hub);
    uv_close((uv_handle_t *)end, NULL);
}

static void *serve(void *arg)
{
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Its loop does not run yet; after a failure there is no hub. */
static int start_still(const char *network, const char *cidr4)
{
    struct ip_prefix block = {.len = 0};
    int r;

    if (cidr4)
        block = netns_prefix(cidr4);
    w.e = (struct err)ERR_NULL;
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_async_init(&w.loop, &w.end, on_end), 0);
    r = hub_new(&w.hub, &w.loop, &w.config, NULL, &w.e);
    if (r == 0) {
        r = hub_start(w.hub, network, &block, &w.e);
        if (r != 0)
            hub_stop(w.hub);
    }
    if (r == 0)
        return 0;
    uv_close((uv_handle_t *)&w.end, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.hub = hub_free(w.hub);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    return r;
}

static int start(const char *network, const char *cidr4)
{
    int r = start_still(network, cidr4);

    if (r == 0) {
        w.is_running = true;
        assert_int_equal(pthread_create(&w.thread, NULL, serve, NULL), 0);
    }
    return r;
}

/* The end of one whose loop the test runs itself. */
static void end_still(void)
{
    on_end(&w.end);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.hub = hub_free(w.hub);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

static void start_well(const char *network, const char *cidr4)
{
    if (start(network, cidr4) != 0)
        fail_msg("%s", err_text(&w.e));
}

/* Its model is there still. */
static void stop(void)
{
    (void)uv_async_send(&w.end);
    assert_int_equal(pthread_join(w.thread, NULL), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    w.is_running = false;
}

static void end(void)
{
    stop();
    w.hub = hub_free(w.hub);
}

static int enter(void **state)
{
    memset(&w, 0, sizeof(w));
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    (void)netns_raise_loopback(*state);
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-hub.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.url, sizeof(w.url), "sqlite:%s/hub.db", w.dir);
    (void)snprintf(w.socket_path, sizeof(w.socket_path), "%s/sock", w.dir);
    w.config = (struct hub_config){.state_dir = w.dir,
        .store_url = w.url,
        .socket_path = w.socket_path,
        .interface_prefix = "wt",
        .api_listen = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})},
        .udp_port = 51820,
        .public_addresses.n = 1};
    return hub_public_parse(&w.config.public_addresses.items[0], "192.0.2.1", 51820, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    if (w.is_running)
        end();
    else
        w.hub = hub_free(w.hub);
    client_answer_deinit(&w.answer);
    assert_int_equal(nftw(w.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    return netns_leave(state);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The status; 0: there was no answer. */
static int ask(
    const struct client_target *target, const char *method, const char *path, json_t *body)
{
    struct err e = ERR_NULL;

    client_answer_deinit(&w.answer);
    (void)client_call(target, method, path, body, 10000, &w.answer, &e);
    json_decref(body);
    return w.answer.status;
}

static int ask_root(const char *method, const char *path, json_t *body)
{
    const struct client_target target = {.access = CLIENT_ACCESS_UNIX, .address = w.socket_path};

    return ask(&target, method, path, body);
}

/* @bearer: NULL: none. */
static int ask_tls(const char *bearer, const char *method, const char *path, json_t *body)
{
    char text[HUB_PIN_TEXT_MAX];
    char address[32];
    struct client_target target = {
        .access = CLIENT_ACCESS_HTTPS, .address = address, .bearer = bearer};

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", hub_api_port(w.hub));
    assert_true(base64_decode(hub_pin(w.hub, text), target.pin.b, sizeof(target.pin.b)));
    return ask(&target, method, path, body);
}

/* "a b ": the networks' names. */
static const char *networks(void)
{
    const struct model_network *net = NULL;
    static char text[256];
    size_t len = 0;

    text[0] = '\0';
    while ((net = hub_next_network(w.hub, net)))
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s ", net->spec.meta.name);
    return text;
}

static const char *block_of_first(void)
{
    static char text[IP_PREFIX_TEXT_MAX];

    return ip_prefix_format(&hub_next_network(w.hub, NULL)->spec.cidr4, text);
}

/* ---- its start ------------------------------------------------------------------------------- */

static void test_its_first_network(void **state)
{
    (void)netns_need(state);
    start_well(NULL, NULL);
    stop();
    assert_string_equal(networks(), "default ");
    assert_string_equal(block_of_first(), NETWORKS_CIDR4_DEFAULT);
}

static void test_a_first_network_as_it_is_asked_for(void **state)
{
    (void)netns_need(state);
    start_well("lab", "10.99.0.0/16");
    stop();
    assert_string_equal(networks(), "lab ");
    assert_string_equal(block_of_first(), "10.99.0.0/16");
}

/* A start, what it warns of, and the networks that there are then. */
static void expect_start(
    const char *network, const char *cidr4, const char *warnings, const char *expected)
{
    struct captured_log log;

    log_init("hub", LOG_LEVEL_WARNING);
    log = captured_log_begin();
    start_well(network, cidr4);
    captured_log_end(&log, warnings);
    stop();
    assert_string_equal(networks(), expected);
    w.hub = hub_free(w.hub);
}

/* What is asked for the first start changes nothing later, and that is said. */
static void test_a_second_start_makes_no_network(void **state)
{
    (void)netns_need(state);
    expect_start("lab", "10.99.0.0/16", "", "lab ");
    expect_start("lab", "10.99.0.0/16", "", "lab ");
    expect_start("lab", NULL, "", "lab ");
    expect_start(NULL, "10.98.0.0/16", "", "lab ");
    expect_start("other", "10.98.0.0/16",
        "warning: hub: --network other is for the first start only, and this hub has other "
        "networks already: \"weft network add other\" makes it\n",
        "lab ");
    expect_start("lab", "10.98.0.0/16",
        "warning: hub: --cidr4 10.98.0.0/16 is for the first start only: network \"lab\" has "
        "10.99.0.0/16 already, for good\n",
        "lab ");
    start_well(NULL, NULL);
    stop();
    assert_string_equal(block_of_first(), "10.99.0.0/16");
}

/* Its one network is set aside, and none is made in its place. */
static void test_a_start_without_the_networks_key(void **state)
{
    char warnings[640];
    char path[128];

    (void)netns_need(state);
    expect_start(NULL, NULL, "", "default ");
    (void)snprintf(path, sizeof(path), "%s/keys/default.key", w.dir);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(warnings, sizeof(warnings),
        "error: hub: the record \"network/default\" is set aside and left as it is (see "
        "weft-hub(8)): \"%s\", the key of hub \"hub\" in network \"default\", is missing: put a "
        "copy in its place, or, if that is another hub, give this one another name (--name)\n",
        path);
    expect_start(NULL, NULL, warnings, "");
    assert_int_equal(access(path, F_OK), -1);
}

/* By another name it is another hub, whose key that is not. */
static void test_a_start_by_another_name(void **state)
{
    (void)netns_need(state);
    w.config.name = "one";
    expect_start(NULL, NULL, "", "default ");
    w.config.name = "two";
    assert_int_equal(start(NULL, NULL), -EEXIST);
    assert_string_equal(err_text(&w.e),
        "this hub's key in network \"default\" is that of node \"one\": start it with --name one, "
        "as before");
    w.config.name = "one";
    expect_start(NULL, NULL, "", "default ");
}

/* What its own node says of it is what it is now. */
static void test_what_its_node_says(void **state)
{
    struct err e = ERR_NULL;
    const struct node *node;
    char pin[HUB_PIN_TEXT_MAX];
    char text[HUB_PIN_TEXT_MAX];

    (void)netns_need(state);
    expect_start(NULL, NULL, "", "default ");
    assert_int_equal(
        hub_public_parse(&w.config.public_addresses.items[0], "192.0.2.2", 51820, NULL), 0);
    start_well(NULL, NULL);
    stop();
    assert_int_equal(hub_failure(w.hub, &e), 0);
    node = &hub_next_network(w.hub, NULL)->own->spec;
    assert_string_equal(node->meta.name, "hub");
    assert_int_equal(node->hub->n_endpoints, 1);
    assert_true(ip_addr_equal(
        &node->hub->endpoints[0].addr, &w.config.public_addresses.items[0].at[0].addr));
    assert_int_equal(node->hub->api_port, hub_api_port(w.hub));
    assert_true(node->hub->has_tls_pin);
    base64_encode(node->hub->tls_pin.b, sizeof(node->hub->tls_pin.b), pin);
    assert_string_equal(hub_pin(w.hub, text), pin);
}

static void test_a_first_network_that_cannot_be(void **state)
{
    (void)netns_need(state);
    assert_true(start("lab", "10.99.0.0/31") < 0);
    assert_string_not_equal(err_text(&w.e), "");
}

static void test_networks_in_the_order_of_their_names(void **state)
{
    (void)netns_need(state);
    start_well("m", NULL);
    assert_int_equal(ask_root("POST", "/v1/networks",
                         json_pack("{s:s, s:s}", "name", "z", "cidr4", "10.98.0.0/16")),
        201);
    assert_int_equal(ask_root("POST", "/v1/networks",
                         json_pack("{s:s, s:s}", "name", "a", "cidr4", "10.97.0.0/16")),
        201);
    stop();
    assert_string_equal(networks(), "a m z ");
}

static void test_what_it_makes_in_its_directory(void **state)
{
    static const char *const files[] = {
        "tls.key", "tls.crt", "admin.token", "hub.db", "options.json"};
    static const char *const options[] = {"--name", "x"};
    char path[128];

    (void)netns_need(state);
    w.config.options = options;
    w.config.n_options = 2;
    start_well(NULL, NULL);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", w.dir, files[i]);
        if (access(path, F_OK) != 0)
            fail_msg("%s is not there", path);
    }
}

/* Without its options, which copies of its state would hold, it serves all the same. */
static void test_options_that_cannot_be_kept(void **state)
{
    static const char *const options[] = {"--name", "x"};
    char warnings[512];
    char path[128];

    (void)netns_need(state);
    w.config.options = options;
    w.config.n_options = 2;
    (void)snprintf(path, sizeof(path), "%s/options.json", w.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(warnings, sizeof(warnings),
        "warning: hub: the options of this start are not kept, so that copies of the hub's state "
        "do not hold them: \"%s\" cannot be written: Is a directory\n",
        path);
    expect_start(NULL, NULL, warnings, "default ");
}

/* What it is told at its start, its parts have. */
static void test_what_its_parts_are_told(void **state)
{
    (void)netns_need(state);
    w.config.audit_age_s = 86400;
    assert_int_equal(start_still(NULL, NULL), 0);
    assert_int_equal(w.hub->audit.age_s, 86400);
    assert_null(w.hub->audit.hub);
    assert_int_equal(w.hub->audit.salt, 0);
    assert_int_not_equal(w.hub->model.boot, 0);
    assert_int_equal(w.hub->model.boot >> 53, 0);
    assert_int_equal(w.hub->handlers.udp_port, 51820);
    assert_int_equal(w.hub->streams.udp_port, 51820);
    assert_int_not_equal(hub_api_port(w.hub), 0);
    assert_int_equal(w.hub->changes.api_port, hub_api_port(w.hub));
    assert_int_equal(w.hub->networks.api_port, hub_api_port(w.hub));
    assert_ptr_equal(w.hub->changes.server, w.hub->server);
    assert_ptr_equal(w.hub->handlers.server, w.hub->server);
    assert_ptr_equal(w.hub->changes.jobs, w.hub->jobs);
    assert_ptr_equal(w.hub->handlers.jobs, w.hub->jobs);
    assert_ptr_equal(w.hub->changes.events, &w.hub->reports.events);
    assert_null(w.hub->spending.prices);
    assert_non_null(w.hub->stun);
    assert_true(w.hub->changes.is_running && w.hub->networks.is_serving);
    assert_int_equal(uv_timer_get_repeat(&w.hub->tick), 1000);
    end_still();
}

static void test_a_price_table_that_is_none(void **state)
{
    json_t *prices = json_pack("[i]", 7);

    (void)netns_need(state);
    w.config.price_table = prices;
    assert_true(start(NULL, NULL) < 0);
    json_decref(prices);
}

static void test_a_store_that_is_none(void **state)
{
    (void)netns_need(state);
    w.config.store_url = "strange:x";
    assert_true(start(NULL, NULL) < 0);
    assert_non_null(strstr(w.e.text, "strange:x"));
}

static void test_a_port_that_is_taken(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd;

    (void)netns_need(state);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    w.config.api_listen.port = ntohs(at.sin_port);
    assert_int_equal(start(NULL, NULL), -EADDRINUSE);
    (void)close(fd);
}

static void test_a_socket_that_somebody_serves(void **state)
{
    int fd;

    (void)netns_need(state);
    fd = unix_socket_listen(w.socket_path, SOCK_STREAM, 0600);
    assert_true(fd >= 0);
    assert_int_equal(start(NULL, NULL), -EADDRINUSE);
    (void)close(fd);
}

static void test_names_that_a_hub_may_have(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(hub_check_name("hub", &e), 0);
    assert_int_equal(hub_check_name("hub-b", &e), 0);
    assert_int_equal(hub_check_name("localhost", &e), -EINVAL);
    assert_int_equal(hub_check_name("No.Name", &e), -EINVAL);
}

/* What is said of parts that fail is not said while none does. */
static void expect_no_failure(const char *log)
{
    static const char *const said[] = {"nodes are not told", "stays until the next try",
        "kept in memory", "waits for the next try", "are lost", "is lost", "not in the audit log",
        "cannot tell", "are not served"};

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        if (strstr(log, said[i]))
            fail_msg("it says: %s", log);
}

/* Each part is told that time goes by. */
static void test_what_is_done_each_second(void **state)
{
    struct watched_text *text;
    struct model_network *net;
    nsec_t since = clock_now();
    char text_of_log[CAPTURED_LOG_MAX];
    struct captured_log log;
    const struct store_op leased = {.kind = STORE_OP_PUT,
        .key = "leased/x",
        .value = "x",
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = 1};

    (void)netns_need(state);
    log_init("hub", LOG_LEVEL_INFO);
    log = captured_log_begin();
    assert_int_equal(start_still(NULL, NULL), 0);
    net = model_find_network(&w.hub->model, NETWORKS_NAME_DEFAULT);
    net->spec.budgets.n = 1;
    text = &net->watched->texts[0];
    text->is_used = true;
    w.hub->reports.is_refusing = true;
    w.hub->networks.refresh_failure.code = -EIO;
    /* Over by now, so that the first tick finds it. */
    assert_int_equal(
        store_now_commit(w.hub->store, &leased, 1, since - NSEC_PER_SEC, NULL, NULL, NULL), 0);
    while (w.hub->reports.present_at == 0 && clock_now() - since < 10 * NSEC_PER_SEC)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_not_equal(w.hub->reports.present_at, 0);
    assert_int_not_equal(w.hub->reports.looked_at, 0);
    assert_int_not_equal(w.hub->reports.flushed_at, 0);
    assert_int_not_equal(w.hub->audit.trimmed_at, 0);
    assert_int_not_equal(w.hub->traffic.ticked_at, 0);
    assert_int_equal(w.hub->spending.networks.n, 1);
    assert_false(w.hub->reports.is_refusing);
    assert_int_equal(w.hub->networks.refresh_failure.code, 0);
    assert_false(text->is_used);
    store_wait(w.hub->store);
    assert_true(store_due(w.hub->store) == NSEC_NEVER);
    net->spec.budgets.n = 0;
    end_still();
    captured_log_take(&log, text_of_log);
    log_init("hub", LOG_LEVEL_WARNING);
    expect_no_failure(text_of_log);
}

/* What was refused is in the log when it has ended. */
static void test_the_last_refusals(void **state)
{
    (void)netns_need(state);
    assert_int_equal(start_still(NULL, NULL), 0);
    audit_refused(&w.hub->audit, "GET /a", "", 401, "no", clock_now());
    hub_stop(w.hub);
    assert_int_equal(w.hub->audit.n_pending, 0);
    assert_int_equal(w.hub->audit.n_written[AUDIT_REFUSAL], 1);
    assert_null(w.hub->stun);
    end_still();
}

/* When another process is this hub, its loop ends, and it says why. */
static void test_another_process_is_this_hub(void **state)
{
    struct err e = ERR_NULL;

    (void)netns_need(state);
    assert_int_equal(start_still(NULL, NULL), 0);
    (void)err_set(&w.hub->owners.failure, -EEXIST, "another one");
    assert_int_not_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(hub_failure(w.hub, &e), -EEXIST);
    assert_string_equal(err_text(&e), "another one");
    end_still();
}

/* ---- several hubs on a store ----------------------------------------------------------------- */

/* As another hub writes it. @value: taken. */
static void put(const char *key, char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_non_null(value);
    assert_int_equal(store_now_commit(w.config.store, &op, 1, 1, NULL, NULL, NULL), 0);
    free(value);
    store_wait(w.config.store);
}

static bool is_lab_joined(void)
{
    const struct model_network *lab = hub_next_network(w.hub, hub_next_network(w.hub, NULL));

    return lab && lab->own && lab->served->is_up && lab->served->jobs.served;
}

/* While it runs it looks each second: it joins what another hub has made, takes the jobs of that
 * when nobody has them, and says that it is there. */
static void test_a_network_that_another_hub_makes(void **state)
{
    const struct network_maker maker = {.name = "far", .key = {{3}}};
    const struct owner_record nobodys = {.epoch = 1};
    char key[RECORD_KEY_MAX];
    struct network spec;
    nsec_t since;

    (void)netns_need(state);
    assert_int_equal(store_open(&w.config.store, "memory:", clock_now(), &w.e), 0);
    w.config.store->is_shared = true;
    assert_int_equal(start_still(NULL, NULL), 0);
    spec = hub_next_network(w.hub, NULL)->spec;
    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "lab");
    spec.cidr4 = netns_prefix("10.61.0.0/16");
    assert_int_equal(ip_prefix_parse(&spec.cidr6, "fd61::/64", NULL), 0);
    put(owner_key(key, OWNER_RECORD_PREFIX, "lab"), owner_record_encode(&nobodys));
    put(record_key(key, RECORD_NETWORK, "lab", ""), record_network_encode(&spec, &maker));
    put(record_key(key, RECORD_IPAM, "lab", ""), record_ipam_encode(2, 1));
    since = clock_now();
    while (!is_lab_joined() && clock_now() - since < 20 * NSEC_PER_SEC)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_true(is_lab_joined());
    end_still();
    w.config.store = NULL;
}

static int keep_value(void *ctx, const struct store_item *item)
{
    (void)snprintf(ctx, 256, "%s", item->value);
    return 0;
}

/* At its end it gives up the jobs of its networks, so that another hub need not wait. */
static void test_jobs_are_given_up(void **state)
{
    char value[256] = "";

    (void)netns_need(state);
    assert_int_equal(store_open(&w.config.store, "memory:", clock_now(), &w.e), 0);
    w.config.store->is_shared = true;
    assert_int_equal(start_still(NULL, NULL), 0);
    assert_int_equal(store_now_get(w.hub->store, "owner/default", keep_value, value, NULL), 0);
    assert_non_null(strstr(value, "\"hub\":\"hub\""));
    hub_stop(w.hub);
    assert_int_equal(store_now_get(w.hub->store, "owner/default", keep_value, value, NULL), 0);
    assert_null(strstr(value, "\"hub\""));
    end_still();
    w.config.store = NULL;
}

/* When its start is over it serves the jobs of its networks, until another hub has them. */
static void test_the_jobs_of_a_shared_store(void **state)
{
    const struct model_network *net;
    char key[RECORD_KEY_MAX];
    uint64_t fence;
    nsec_t since;
    char *text;

    (void)netns_need(state);
    assert_int_equal(store_open(&w.config.store, "memory:", clock_now(), &w.e), 0);
    w.config.store->is_shared = true;
    assert_int_equal(start_still(NULL, NULL), 0);
    net = hub_next_network(w.hub, NULL);
    assert_non_null(net->served->jobs.served);
    assert_int_equal(net->own->spec.hub->rendezvous_epoch, 1);
    assert_string_equal(w.hub->audit.hub, "hub");
    assert_int_equal(w.hub->audit.salt, w.hub->model.boot);
    /* Its record was written anew: what was served under the former one is served no more. */
    text = owner_record_encode(&(struct owner_record){.hub = "hub", .epoch = 1});
    put(owner_key(key, OWNER_RECORD_PREFIX, "default"), text);
    fence = owners_find(&w.hub->owners, "default")->revision;
    assert_int_not_equal(jobs_fence(&net->served->jobs), fence);
    since = clock_now();
    while ((!net->served->jobs.served || jobs_fence(&net->served->jobs) != fence) &&
           clock_now() - since < 10 * NSEC_PER_SEC)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_non_null(net->served->jobs.served);
    assert_int_equal(jobs_fence(&net->served->jobs), fence);
    /* What a removed network has left is looked after, too. */
    put(owner_key(key, OWNER_RECORD_PREFIX, "gone"),
        owner_record_encode(&(struct owner_record){.epoch = 1}));
    text = owner_record_encode(&(struct owner_record){.hub = "far", .epoch = 2});
    put(owner_key(key, OWNER_RECORD_PREFIX, "default"), text);
    since = clock_now();
    while (net->served->jobs.served && clock_now() - since < 10 * NSEC_PER_SEC)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_null(net->served->jobs.served);
    assert_string_equal(w.hub->orphans.network, "gone");
    end_still();
    w.config.store = NULL;
}

/* ---- whom it answers ------------------------------------------------------------------------- */

static void test_root_at_its_socket(void **state)
{
    (void)netns_need(state);
    start_well(NULL, NULL);
    assert_int_equal(ask_root("GET", "/v1/networks", NULL), 200);
    assert_int_equal(ask_root("GET", "/v1/nothing", NULL), 404);
    /* That is a member's. */
    assert_int_not_equal(ask_root("GET", "/v1/jobs", NULL), 200);
}

static void test_an_administrator_from_afar(void **state)
{
    char path[128];
    char token[256] = "";
    FILE *f;

    (void)netns_need(state);
    start_well(NULL, NULL);
    (void)snprintf(path, sizeof(path), "%s/admin.token", w.dir);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(token, sizeof(token), f));
    (void)fclose(f);
    token[strcspn(token, "\n")] = '\0';
    assert_int_equal(ask_tls(NULL, "GET", "/v1/health", NULL), 200);
    assert_int_equal(ask_tls(NULL, "GET", "/v1/networks", NULL), 401);
    assert_int_equal(ask_tls("a-token-that-nobody-has", "GET", "/v1/networks", NULL), 401);
    assert_int_equal(ask_tls(token, "GET", "/v1/networks", NULL), 200);
}

/* Members of the group may look, and change nothing. */
static void test_members_of_the_group(void **state)
{
    char path[128];
    const struct client_target target = {.access = CLIENT_ACCESS_UNIX, .address = path};

    (void)netns_need(state);
    start_well(NULL, NULL);
    (void)snprintf(path, sizeof(path), "%s" UNIX_SOCKET_USERS_SUFFIX, w.socket_path);
    assert_int_equal(ask(&target, "GET", "/v1/networks", NULL), 200);
    assert_int_equal(ask(&target, "DELETE", "/v1/networks/default", NULL), 403);
    assert_int_equal(ask_root("DELETE", "/v1/networks/default", NULL), 204);
}

/* 0, or negative errno: -EADDRINUSE where something listens there. */
static int bind_at(const struct ip_addr *address, unsigned port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r;

    memcpy(&at.sin6_addr, address->b, 16);
    r = bind(fd, (struct sockaddr *)&at, sizeof(at));
    r = r < 0 ? -errno : 0;
    (void)close(fd);
    return r;
}

/* Is something there that listens at that address? */
static bool is_served_at(const struct ip_addr *address, unsigned port)
{
    int r = bind_at(address, port);

    assert_true(r == 0 || r == -EADDRINUSE);
    return r != 0;
}

static bool is_served(const char *address, unsigned port)
{
    struct ip_prefix p = netns_prefix(address);

    return is_served_at(&p.addr, port);
}

static unsigned add_interface(struct netlink *nl)
{
    struct ip_prefix p = netns_prefix("10.77.0.1/16");
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(nl, "wt-default", "bridge"), 0);
    assert_int_equal(rtnl_find_link(nl, "wt-default", &link), 0);
    assert_int_equal(rtnl_add_address(nl, link.ifindex, &p, false), 0);
    assert_int_equal(rtnl_set_link(nl, link.ifindex, true, 0), 0);
    return link.ifindex;
}

/* At its address on their interface, from the start to the end of the network. */
static void test_members_on_their_interface(void **state)
{
    (void)add_interface(netns_need(state));
    start_well(NULL, NULL);
    assert_true(is_served("10.77.0.1/32", hub_api_port(w.hub)));
    assert_int_equal(ask_root("DELETE", "/v1/networks/default", NULL), 204);
    for (unsigned i = 0; i < 500 && is_served("10.77.0.1/32", hub_api_port(w.hub)); i++)
        (void)poll(NULL, 0, 10);
    assert_false(is_served("10.77.0.1/32", hub_api_port(w.hub)));
}

/* At both addresses, which the interface has before the hub starts. */
static void test_members_at_both_addresses(void **state)
{
    struct netlink *nl = netns_need(state);
    struct ip_addr at[2];
    struct ip_prefix p = {.len = 64};
    const struct model_network *net;
    unsigned ifindex;
    uint16_t port;
    FILE *f;

    start_well(NULL, NULL);
    stop();
    net = hub_next_network(w.hub, NULL);
    assert_false(w.hub->changes.is_running);
    at[0] = net->address4;
    at[1] = p.addr = net->address6;
    w.hub = hub_free(w.hub);
    ifindex = add_interface(nl);
    /* Nobody else can have it. */
    f = fopen("/proc/sys/net/ipv6/conf/wt-default/accept_dad", "we");
    assert_non_null(f);
    (void)fputs("0", f);
    (void)fclose(f);
    assert_int_equal(rtnl_add_address(nl, ifindex, &p, false), 0);
    for (unsigned i = 0; i < 500 && bind_at(&p.addr, 0) < 0; i++)
        (void)poll(NULL, 0, 10);
    start_well(NULL, NULL);
    port = hub_api_port(w.hub);
    for (unsigned i = 0; i < 2; i++)
        assert_true(is_served_at(&at[i], port));
    stop();
    for (unsigned i = 0; i < 2; i++)
        assert_false(is_served_at(&at[i], port));
}

static void test_nobody_is_answered_after_its_end(void **state)
{
    uint16_t port;

    (void)add_interface(netns_need(state));
    start_well(NULL, NULL);
    port = hub_api_port(w.hub);
    end();
    assert_int_equal(access(w.socket_path, F_OK), -1);
    assert_false(is_served("10.77.0.1/32", port));
    assert_false(is_served("127.0.0.1/32", port));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        TEST(test_its_first_network),
        TEST(test_a_first_network_as_it_is_asked_for),
        TEST(test_a_second_start_makes_no_network),
        TEST(test_a_start_without_the_networks_key),
        TEST(test_a_start_by_another_name),
        TEST(test_what_its_node_says),
        TEST(test_a_first_network_that_cannot_be),
        TEST(test_networks_in_the_order_of_their_names),
        TEST(test_what_it_makes_in_its_directory),
        TEST(test_options_that_cannot_be_kept),
        TEST(test_what_its_parts_are_told),
        TEST(test_a_price_table_that_is_none),
        TEST(test_a_store_that_is_none),
        TEST(test_a_port_that_is_taken),
        TEST(test_a_socket_that_somebody_serves),
        cmocka_unit_test(test_names_that_a_hub_may_have),
        TEST(test_what_is_done_each_second),
        TEST(test_the_last_refusals),
        TEST(test_another_process_is_this_hub),
        TEST(test_jobs_are_given_up),
        TEST(test_the_jobs_of_a_shared_store),
        TEST(test_a_network_that_another_hub_makes),
        TEST(test_root_at_its_socket),
        TEST(test_an_administrator_from_afar),
        TEST(test_members_of_the_group),
        TEST(test_members_on_their_interface),
        TEST(test_members_at_both_addresses),
        TEST(test_nobody_is_answered_after_its_end),
    };

    /* The hub starts its own program for the jobs of a network, which is this one. */
    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return 1;
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
