/*
 * test-service.c - whom the measuring service takes orders from, and which it refuses.
 *
 * Real services and a real coordinator, on addresses of loopback: 127.0.0.1 is this member,
 * 127.0.0.2 another one, 127.0.0.3 a stranger,
 * and 127.0.0.4 the hub.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "crypto/x25519.h"
#include "measure/coordinator.h"
#include "measure/service.h"
#include "measure/train_process.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "test/support/netns.h"

/* Outside of the range that connections get theirs from. */
#define PORT 7000

#define SEC NSEC_PER_SEC

/* Longer than anything here takes; a test that waits for it fails by it. */
#define PATIENCE (20 * SEC)

static struct ip_addr loopback(unsigned n)
{
    return (struct ip_addr){{[10] = 0xff, 0xff, 127, 0, 0, (uint8_t)n}};
}

/* Services of the first @n members, all on one port that nobody else has. */
struct world {
    struct service *services[2];
    unsigned n;
    uint16_t port;
};

/* A connection from that address of loopback to another one; -1: nobody listens. */
static int connect_from(const struct world *w, unsigned from, unsigned to)
{
    struct endpoint source = {.addr = loopback(from)};
    struct endpoint target = {.addr = loopback(to), .port = w->port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &source);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, &sa.any, len), 0);
    len = sockaddr_from_endpoint(&sa, &target);
    if (connect(fd, &sa.any, len) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* The secret key of the member with that address. */
static struct x25519_secret secret_of(unsigned n)
{
    struct x25519_secret s = {{(uint8_t)(8 * n), 1, 2, 3, [31] = 0x40}};

    return s;
}

static struct x25519_public public_of(unsigned n)
{
    struct x25519_secret s = secret_of(n);
    struct x25519_public p;

    assert_true(x25519_derive_public(&s, &p));
    return p;
}

/* The key of orders from one member to another, as that end has it which is @own. */
static struct measure_proof_key key_of(unsigned own, unsigned from, unsigned to)
{
    struct x25519_secret secret = secret_of(own);
    struct x25519_public other = public_of(own == from ? to : from);
    struct x25519_public orderer = public_of(from);
    struct x25519_public measured = public_of(to);
    struct measure_proof_key key;

    assert_true(measure_proof_key_make(&key, &secret, &other, &orderer, &measured));
    return key;
}

static void begin(struct world *w, unsigned n)
{
    struct service_member members[3] = {
        {.address = loopback(1), .name = "one", .hostname = "box1"},
        {.address = loopback(2), .name = "two", .path = "direct"},
        {.address = loopback(4), .name = "hub", .is_hub = true},
    };

    *w = (struct world){.n = n, .port = PORT};
    for (unsigned i = 0; i < n; i++) {
        struct ip_addr own = loopback(i + 1);
        int fd = -1;

        for (unsigned k = 0; k < 2; k++) {
            members[k].key = key_of(i + 1, k + 1, i + 1);
            members[k].has_key = true;
        }
        assert_int_equal(service_new(&w->services[i], NULL, NULL, w->port, NULL), 0);
        service_set_members(w->services[i], &own, members, 3);
        /* Its thread opens the port a moment later. From another address: until then a socket of
         * the same one may get that very port as its own, and would be connected to itself. */
        for (nsec_t until = clock_now() + PATIENCE; fd < 0 && clock_now() < until;)
            fd = connect_from(w, 2 - i, i + 1);
        assert_true(fd >= 0);
        (void)close(fd);
    }
}

static void end(struct world *w)
{
    for (unsigned i = 0; i < w->n; i++)
        w->services[i] = service_free(w->services[i]);
}

/* Sends a line; the answer's words, or what of a refusal is told, until the next call. */
static const char *ask(int fd, const char *line)
{
    static char text[512];
    struct line_buffer lb = LINE_BUFFER_NULL;
    json_t *json = json_loads(line, 0, NULL);
    json_t *said = NULL;
    struct err e = ERR_NULL;
    char *dumped;

    assert_non_null(json);
    assert_int_equal(line_write(fd, json, clock_now() + PATIENCE, NULL), 0);
    json_decref(json);
    if (line_read(&lb, fd, clock_now() + PATIENCE, &said, &e) != 0)
        fail_msg("no answer to %s: %s", line, err_text(&e));
    dumped = json_dumps(said, JSON_COMPACT);
    (void)snprintf(text, sizeof(text), "%s", dumped);
    free(dumped);
    json_decref(said);
    line_buffer_deinit(&lb);
    return text;
}

static void assert_said(int fd, const char *line, const char *part)
{
    const char *said = ask(fd, line);

    if (!strstr(said, part))
        fail_msg("%s: \"%s\" is not in %s", line, part, said);
}

/* The proof in answer to a challenge, in hex, by the member @from to the member @to. */
static const char *prove(
    const struct order *o, const struct order_challenge *c, unsigned from, unsigned to)
{
    static char text[2 * MEASURE_PROOF_MAC + 1];
    const struct measure_proof p = order_proof_input(o, c);
    const struct measure_proof_key key = key_of(from, from, to);
    uint8_t mac[MEASURE_PROOF_MAC];

    measure_proof_make(mac, &key, &p);
    hex_encode(mac, sizeof(mac), text);
    return text;
}

/* Orders the session @line at the member @to, proven with the key of @from. The answer's words. */
static const char *open_session(int fd, const char *line, unsigned from, unsigned to)
{
    json_t *json = json_loads(line, 0, NULL);
    json_t *refusal = json_loads(ask(fd, line), 0, NULL);
    struct order_challenge c;
    const char *said;
    struct order o;
    char *proven;

    assert_true(order_challenge_decode(&c, refusal));
    assert_int_equal(order_decode(&o, json, NULL), 0);
    (void)json_object_set_new(json, "proof", json_string(prove(&o, &c, from, to)));
    proven = json_dumps(json, 0);
    said = ask(fd, proven);
    free(proven);
    json_decref(json);
    json_decref(refusal);
    return said;
}

static void assert_opens(int fd, const char *line, unsigned from)
{
    const char *said = open_session(fd, line, from, 1);

    if (!strstr(said, "\"ok\":true"))
        fail_msg("%s", said);
}

#define SESSION(id)                                                                                \
    "{\"op\": \"session\", \"purpose\": \"bench\", \"seconds\": 60, \"id\": \"" id "\"}"
#define FIRST  "000102030405060708090a0b0c0d0e0f"
#define SECOND "100102030405060708090a0b0c0d0e0f"

/* Nor is the hub, from whose address every program of its machine connects. */
static void test_a_stranger_is_not_even_answered(void **state)
{
    static const unsigned from[] = {3, 4};
    struct world w;
    static const char order[] = "{\"op\": \"facts\"}\n";

    begin(&w, 1);
    for (unsigned i = 0; i < sizeof(from) / sizeof(*from); i++) {
        int fd = connect_from(&w, from[i], 1);
        char byte;

        assert_true(fd >= 0);
        (void)send(fd, order, sizeof(order) - 1, MSG_NOSIGNAL);
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        (void)close(fd);
    }
    end(&w);
}

static void test_a_session_comes_first(void **state)
{
    static const char *const orders[] = {"{\"op\": \"facts\"}", "{\"op\": \"heard\"}",
        "{\"op\": \"underlay\"}", "{\"op\": \"light\", \"peer\": \"127.0.0.2\", \"pings\": 1}"};
    struct world w;

    begin(&w, 1);
    for (unsigned i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        int fd = connect_from(&w, 2, 1);

        assert_said(fd, orders[i], "a session comes first");
        (void)close(fd);
    }
    end(&w);
}

static void test_one_coordinator_at_a_time(void **state)
{
    struct world w;
    int first;
    int second;

    begin(&w, 1);
    first = connect_from(&w, 1, 1);
    assert_opens(first, SESSION(FIRST), 1);
    second = connect_from(&w, 2, 1);
    assert_non_null(
        strstr(open_session(second, SESSION(SECOND), 2, 1), "it measures for one right now"));
    (void)close(second);
    /* Its end is that of the session; the service sees it a moment later. */
    (void)close(first);
    for (nsec_t until = clock_now() + PATIENCE; clock_now() < until;) {
        bool is_taken;

        second = connect_from(&w, 2, 1);
        is_taken = strstr(open_session(second, SESSION(SECOND), 2, 1), "\"ok\":true") != NULL;
        (void)close(second);
        if (is_taken)
            break;
        assert_true(clock_now() < until);
    }
    end(&w);
}

/* What a program of a member's machine says from that member's address, without its key. */
static void test_an_order_needs_the_nodes_key(void **state)
{
    static const char *const wrong[] = {
        SESSION(FIRST),
        "{\"op\": \"session\", \"purpose\": \"bench\", \"seconds\": 60, \"id\": \"" FIRST
        "\", \"proof\": \"00112233445566778899aabbccddeeff\"}",
        "{\"op\": \"facts\"}",
    };
    struct world w;
    int fd;

    begin(&w, 1);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        fd = connect_from(&w, 2, 1);
        assert_said(fd, SESSION(FIRST), "has to be proven with the node's key");
        (void)ask(fd, wrong[i]);
        /* It hangs up after that, and nobody else is kept out. */
        assert_true(recv(fd, &(char){0}, 1, 0) <= 0);
        (void)close(fd);
    }
    /* The other member's key is not this one's; nor is the key of another way. */
    fd = connect_from(&w, 2, 1);
    assert_non_null(strstr(open_session(fd, SESSION(FIRST), 1, 1), "the proof is not that of"));
    (void)close(fd);
    fd = connect_from(&w, 2, 1);
    assert_non_null(strstr(open_session(fd, SESSION(FIRST), 1, 2), "the proof is not that of"));
    (void)close(fd);
    fd = connect_from(&w, 2, 1);
    assert_opens(fd, SESSION(FIRST), 2);
    (void)close(fd);
    end(&w);
}

/* A proof is for one connection: whoever has seen it can do nothing with it. */
static void test_a_proof_is_good_once(void **state)
{
    static const struct order order = {.kind = ORDER_SESSION,
        .id = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        .purpose = "bench",
        .seconds = 60};
    struct order_challenge c;
    json_t *refusal;
    struct world w;
    char line[256];
    int first;
    int second;

    begin(&w, 1);
    first = connect_from(&w, 2, 1);
    second = connect_from(&w, 2, 1);
    refusal = json_loads(ask(first, SESSION(FIRST)), 0, NULL);
    assert_true(order_challenge_decode(&c, refusal));
    json_decref(refusal);
    (void)ask(second, SESSION(FIRST));
    (void)snprintf(line, sizeof(line),
        "{\"op\": \"session\", \"purpose\": \"bench\", \"seconds\": 60, \"id\": \"" FIRST
        "\", \"proof\": \"%s\"}",
        prove(&order, &c, 2, 1));
    assert_said(second, line, "the proof is not that of");
    assert_said(first, line, "\"ok\":true");
    (void)close(first);
    (void)close(second);
    end(&w);
}

/* Connections that say nothing take no more than their machine's share. */
static void test_one_machine_leaves_room(void **state)
{
    int held[SERVICE_CONNECTIONS_MAX];
    struct world w;
    int fd;

    begin(&w, 1);
    for (unsigned i = 0; i < SERVICE_CONNECTIONS_MAX; i++)
        held[i] = connect_from(&w, 2, 1);
    fd = connect_from(&w, 1, 1);
    assert_opens(fd, SESSION(FIRST), 1);
    (void)close(fd);
    for (unsigned i = 0; i < SERVICE_CONNECTIONS_MAX; i++)
        if (held[i] >= 0)
            (void)close(held[i]);
    end(&w);
}

/* A member that is no coordinator makes nobody send, swallow, or open a port. */
static void test_data_only_within_the_session(void **state)
{
    static const char *const orders[] = {
        "{\"op\": \"sink\", \"id\": \"" SECOND "\", \"ms\": 1000}",
        "{\"op\": \"source\", \"id\": \"" SECOND "\", \"ms\": 1000, \"bytes\": 1000}",
        "{\"op\": \"hop\", \"id\": \"" SECOND "\", \"rank\": 0}",
        "{\"op\": \"port\", \"id\": \"" SECOND "\"}",
        "{\"op\": \"catch\", \"id\": \"" SECOND "\", \"ms\": 100, \"size\": 100, \"port\": 7, "
        "\"mapped\": 0}",
    };
    struct world w;
    int coordinator;
    int fd;

    begin(&w, 1);
    coordinator = connect_from(&w, 1, 1);
    assert_opens(coordinator, SESSION(FIRST), 1);
    for (unsigned i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        fd = connect_from(&w, 2, 1);
        assert_said(fd, orders[i], "it is not in that session");
        (void)close(fd);
    }
    fd = connect_from(&w, 2, 1);
    assert_said(fd, "{\"op\": \"port\", \"id\": \"" FIRST "\"}", "no port is open");
    (void)close(fd);
    assert_said(coordinator, "{\"op\": \"underlay\"}", "\"port\":");
    fd = connect_from(&w, 2, 1);
    assert_said(fd, "{\"op\": \"port\", \"id\": \"" FIRST "\"}", "\"port\":");
    (void)close(fd);
    (void)close(coordinator);
    end(&w);
}

/* What this machine can reach or resolve besides the members is nobody's business. */
static void test_only_members_are_measured_and_named(void **state)
{
    static const struct {
        const char *order;
        const char *said;
    } cases[] = {
        {"{\"op\": \"light\", \"peer\": \"127.0.0.3\", \"pings\": 1}", "no other member"},
        {"{\"op\": \"light\", \"peer\": \"127.0.0.1\", \"pings\": 1}", "no other member"},
        {"{\"op\": \"bulk\", \"peer\": \"127.0.0.3\", \"streams\": 1, \"ms\": 1, \"bytes\": 1, "
         "\"way\": \"out\"}",
            "no other member"},
        {"{\"op\": \"loss\", \"peer\": \"127.0.0.3\", \"datagrams\": 1, \"perSecond\": 1, "
         "\"ms\": 1}",
            "no other member"},
        {"{\"op\": \"burst\", \"peer\": \"127.0.0.3\", \"ms\": 1, \"bytes\": 1}",
            "no other member"},
        /* Where it is beside the overlay nobody has found. */
        {"{\"op\": \"burst\", \"peer\": \"127.0.0.2\", \"ms\": 1, \"bytes\": 1, "
         "\"underlay\": true}",
            "there is no direct path to it beside the overlay"},
        {"{\"op\": \"warm\", \"addresses\": [\"127.0.0.2\", \"127.0.0.3\"]}",
            "not a member of this network"},
        {"{\"op\": \"allreduce\", \"addresses\": [\"127.0.0.1\", \"127.0.0.3\"], \"rank\": 0, "
         "\"bytes\": 4, \"repeats\": 1, \"ms\": 1, \"algorithm\": \"ring\"}",
            "none of this network"},
        {"{\"op\": \"names\", \"names\": [{\"name\": \"localhost\", \"address\": \"127.0.0.1\"}]}",
            "a name is not that of the member"},
        {"{\"op\": \"names\", \"names\": [{\"name\": \"two\", \"address\": \"127.0.0.1\"}]}",
            "a name is not that of the member"},
        {"{\"op\": \"names\", \"names\": []}", "\"wrong\":{}"},
        /* An order for another connection, and one with a field out of its bounds. */
        {SESSION(SECOND), "not given within a session"},
        {"{\"op\": \"sink\", \"id\": \"" FIRST "\", \"ms\": 1}", "not given within a session"},
    };
    struct world w;
    int fd;

    begin(&w, 1);
    fd = connect_from(&w, 1, 1);
    assert_opens(fd, SESSION(FIRST), 1);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_said(fd, cases[i].order, cases[i].said);
    /* A line that is no order ends the session. */
    assert_said(
        fd, "{\"op\": \"light\", \"peer\": \"127.0.0.2\", \"pings\": 1001}", "from 1 to 1000");
    (void)close(fd);
    end(&w);
}

/* ---- the coordinator ------------------------------------------------------------------------ */

static const struct order session = {
    .kind = ORDER_SESSION, .id = {{9, 9, 9}}, .purpose = "bench", .seconds = 60};
static const struct order heard = {.kind = ORDER_HEARD};
static const struct order bad = {.kind = ORDER_IDLE_TEST, .pings = 1};

/* As an agent would prove it: @ctx is the number of the member that asks. */
static int prove_all(void *ctx, const struct order *o, const struct coordinator_link *links,
    size_t n, struct order_proof *ret, bool *ret_has, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        unsigned to = links[i].address.b[15];

        if (!links[i].has_challenge)
            continue;
        ret_has[i] = true;
        assert_true(hex_decode(
            prove(o, &links[i].challenge, *(unsigned *)ctx, to), ret[i].mac, sizeof(ret[i].mac)));
    }
    return 0;
}

static int prove_nothing(void *ctx, const struct order *o, const struct coordinator_link *links,
    size_t n, struct order_proof *ret, bool *ret_has, struct err *e)
{
    return err_set(e, -EIO, "there is no agent");
}

/* Of the first member, who proves its orders. */
static struct coordinator_hooks hooks_of(const struct world *w)
{
    static unsigned first = 1;

    return (struct coordinator_hooks){
        .own = loopback(1), .port = w->port, .prove = prove_all, .ctx = &first};
}

static void test_what_is_not_proven_is_told(void **state)
{
    const struct ip_addr members[] = {loopback(1), loopback(2)};
    struct coordinator_hooks hooks;
    struct coordinator c;
    struct world w;

    begin(&w, 2);
    hooks = hooks_of(&w);
    hooks.prove = NULL; /* as a version of before */
    assert_int_equal(coordinator_open(&c, members, 2, &hooks, &session, clock_now() + PATIENCE), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_false(coordinator_has(&c, i));
        assert_non_null(strstr(c.items[i].why, "has to be proven with the node's key"));
    }
    coordinator_deinit(&c);
    hooks.prove = prove_nothing;
    assert_int_equal(coordinator_open(&c, members, 2, &hooks, &session, clock_now() + PATIENCE), 0);
    assert_false(coordinator_has(&c, 0));
    assert_string_equal(c.items[1].why, "there is no agent");
    coordinator_deinit(&c);
    end(&w);
}

/* Over loopback all arrive; what the other member says of it is believed. */
static void test_datagrams_are_counted(void **state)
{
    const struct ip_addr members[] = {loopback(1), loopback(2)};
    struct order o = {.kind = ORDER_LOSS, .datagrams = 1000, .per_second = 20000, .ms = 20000};
    const struct order *orders[] = {&o, NULL};
    struct coordinator_hooks hooks;
    struct loss_test l;
    struct coordinator c;
    struct world w;

    begin(&w, 2);
    o.peer = loopback(2);
    hooks = hooks_of(&w);
    assert_int_equal(coordinator_open(&c, members, 2, &hooks, &session, clock_now() + PATIENCE), 0);
    /* Those of the test before are not counted again. */
    for (unsigned i = 0; i < 2; i++) {
        coordinator_ask(&c, orders, clock_now() + PATIENCE);
        assert_non_null(c.items[0].answer);
        assert_int_equal(loss_test_decode(&l, c.items[0].answer, NULL), 0);
        assert_string_equal(l.why, "");
        assert_int_equal(l.sent, 1000);
        assert_int_equal(l.heard, 1000);
    }
    coordinator_deinit(&c);
    end(&w);
}

/* A burst over loopback arrives, at a rate that the other member has counted; one after the other.
 */
static void test_a_burst_arrives(void **state)
{
    const struct ip_addr members[] = {loopback(1), loopback(2)};
    struct order o = {.kind = ORDER_BURST, .ms = 100, .bytes = 4 << 20};
    const struct order *orders[] = {&o, NULL};
    struct coordinator_hooks hooks;
    struct coordinator c;
    struct world w;

    begin(&w, 2);
    o.peer = loopback(2);
    hooks = hooks_of(&w);
    assert_int_equal(coordinator_open(&c, members, 2, &hooks, &session, clock_now() + PATIENCE), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct burst b;

        /* The last one is encrypted first. */
        o.tls = i == 2;
        coordinator_ask(&c, orders, clock_now() + PATIENCE);
        assert_non_null(c.items[0].answer);
        assert_int_equal(burst_decode(&b, c.items[0].answer, NULL), 0);
        assert_string_equal(b.why, "");
        assert_string_equal(b.via, "127.0.0.2");
        assert_int_equal(b.size, ORDER_DATAGRAM_MAX);
        assert_in_range(b.sent, 16, (4 << 20) / ORDER_DATAGRAM_MAX + 8);
        assert_in_range(b.heard, 16, b.sent);
        assert_true(b.bits_per_s > 0);
        assert_in_range(b.rtt_min_us, 1, b.rtt_median_us);
    }
    /* A train is sent at the rate that was asked for, and over loopback all of it comes. */
    o.is_paced = true;
    o.bits_per_s = 100000000;
    o.at_once = 4;
    o.tls = false;
    for (unsigned i = 0; i < 10; i++) {
        struct burst b;

        coordinator_ask(&c, orders, clock_now() + PATIENCE);
        assert_non_null(c.items[0].answer);
        assert_int_equal(burst_decode(&b, c.items[0].answer, NULL), 0);
        assert_string_equal(b.why, "");
        assert_in_range((uint64_t)b.sent * ORDER_DATAGRAM_MAX * 8, 1, 100000000 / 8);
        assert_int_not_equal(b.train.verdict, TRAIN_LINE);
        /* On a machine that is busy it says nothing, and that is seen. */
        if (b.train.verdict == TRAIN_ALL) {
            assert_in_range(b.train.bits_per_s, 1, 125000000);
            break;
        }
    }
    o.is_paced = false;
    /* It may be asked for less than what says something. */
    o.bytes = 1;
    coordinator_ask(&c, orders, clock_now() + PATIENCE);
    assert_non_null(c.items[0].answer);
    assert_non_null(strstr(
        json_string_value(json_object_get(c.items[0].answer, "why")), "too few to tell a rate"));
    coordinator_deinit(&c);
    end(&w);
}

/* A hub that has a key may send, and orders nothing; nor does a member in the background. */
static void test_in_the_background_nothing_is_ordered(void **state)
{
    static const char quiet[] = "{\"op\": \"session\", \"purpose\": \"uplink\", \"seconds\": 60, "
                                "\"id\": \"" FIRST "\"}";
    static const unsigned from[] = {2, 4};
    struct ip_addr own = loopback(1);
    struct service_member members[] = {
        {.address = loopback(2), .name = "two", .key = key_of(1, 2, 1), .has_key = true},
        {.address = loopback(4),
            .name = "hub",
            .key = key_of(1, 4, 1),
            .has_key = true,
            .is_hub = true},
    };
    struct world w;
    int fd;

    begin(&w, 1);
    service_set_members(w.services[0], &own, members, 2);
    for (unsigned i = 0; i < sizeof(from) / sizeof(*from); i++) {
        fd = connect_from(&w, from[i], 1);
        assert_opens(fd, quiet, from[i]);
        assert_said(fd, "{\"op\": \"facts\"}", "\"versions\"");
        assert_said(fd, "{\"op\": \"heard\"}", "nothing is measured here");
        assert_said(fd, "{\"op\": \"burst\", \"peer\": \"127.0.0.2\", \"ms\": 1, \"bytes\": 1}",
            "nothing is measured here");
        (void)close(fd);
    }
    /* Nor for any other purpose by a hub. */
    fd = connect_from(&w, 4, 1);
    if (!strstr(open_session(fd, SESSION(FIRST), 4, 1), "the proof is not"))
        fail_msg("a hub may have it measured");
    (void)close(fd);
    end(&w);
}

/* A hub says why it could not send. */
static void test_trains_of_a_hub(void **state)
{
    struct ip_addr own = loopback(2);
    struct service_member members[] = {
        {.address = loopback(1),
            .underlay = loopback(1),
            .name = "hub",
            .key = key_of(2, 1, 2),
            .has_key = true,
            .is_hub = true},
    };
    struct train_task t = {.port = PORT,
        .own = loopback(1),
        .peer = loopback(2),
        .underlay = loopback(2),
        .key = key_of(1, 1, 2)};
    struct train_answer a;
    struct world w;

    begin(&w, 2);
    service_set_members(w.services[1], &own, members, 1);
    /* It has its session, but addresses of this machine, as those of loopback, are no peer's. */
    train_task_run(&t, &a);
    assert_int_equal(a.bits_per_s, 0);
    assert_string_equal(a.why, "there is no direct path to it beside the overlay");
    t.key.b[0] ^= 1;
    train_task_run(&t, &a);
    assert_int_equal(a.bits_per_s, 0);
    if (!strstr(a.why, "the proof is not"))
        fail_msg("%s", a.why);
    t.peer = loopback(3);
    train_task_run(&t, &a);
    assert_true(a.bits_per_s == 0 && a.why[0] != '\0');
    end(&w);
}

static void test_a_member_that_is_away_keeps_its_place(void **state)
{
    const struct ip_addr members[] = {loopback(1), loopback(4), loopback(2)};
    const struct order *orders[] = {&heard, &heard, NULL};
    struct coordinator_hooks hooks;
    struct coordinator c;
    struct world w;

    begin(&w, 2);
    hooks = hooks_of(&w);
    assert_int_equal(coordinator_open(&c, members, 3, &hooks, &session, clock_now() + PATIENCE), 0);
    assert_int_equal(c.n, 3);
    assert_true(coordinator_has(&c, 0) && coordinator_has(&c, 2));
    assert_false(coordinator_has(&c, 1));
    assert_non_null(strstr(c.items[1].why, "it has no measuring service"));
    coordinator_ask(&c, orders, clock_now() + PATIENCE);
    assert_non_null(json_object_get(c.items[0].answer, "heard"));
    assert_null(c.items[1].answer);
    /* The one that was not asked still has the answer of before. */
    assert_non_null(json_object_get(c.items[2].answer, "ok"));
    coordinator_deinit(&c);
    coordinator_deinit(&c);
    end(&w);
}

static void test_a_refusal_is_no_answer(void **state)
{
    const struct ip_addr members[] = {loopback(1)};
    struct order o = bad;
    const struct order *orders[] = {&o};
    struct coordinator_hooks hooks;
    struct coordinator c;
    struct coordinator late;
    struct world w;

    begin(&w, 1);
    o.peer = loopback(3);
    hooks = hooks_of(&w);
    assert_int_equal(coordinator_open(&c, members, 1, &hooks, &session, clock_now() + PATIENCE), 0);
    coordinator_ask(&c, orders, clock_now() + PATIENCE);
    assert_null(c.items[0].answer);
    assert_non_null(strstr(c.items[0].why, "no other member"));
    /* It is there all the same, and takes the next order. */
    assert_true(coordinator_has(&c, 0));
    orders[0] = &heard;
    coordinator_ask(&c, orders, clock_now() + PATIENCE);
    assert_non_null(c.items[0].answer);
    assert_string_equal(c.items[0].why, "");
    /* One that is refused its session is not held. */
    assert_int_equal(
        coordinator_open(&late, members, 1, &hooks, &session, clock_now() + PATIENCE), 0);
    assert_false(coordinator_has(&late, 0));
    assert_non_null(strstr(late.items[0].why, "it measures for one"));
    coordinator_deinit(&late);
    coordinator_deinit(&c);
    end(&w);
}

/* It would answer the order before when it is asked the next one. */
static void test_a_member_that_stops_answering_is_lost(void **state)
{
    const struct order *orders[] = {&heard};
    struct coordinator_link link = {.address = loopback(2)};
    struct coordinator c = {.items = calloc(1, sizeof(link)), .n = 1};
    int ends[2];

    assert_non_null(c.items);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link.fd = ends[0];
    c.items[0] = link;
    coordinator_ask(&c, orders, clock_now());
    assert_false(coordinator_has(&c, 0));
    assert_string_equal(c.items[0].why, "it has stopped answering");
    (void)close(ends[1]);
    coordinator_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stranger_is_not_even_answered),
        cmocka_unit_test(test_a_session_comes_first),
        cmocka_unit_test(test_one_coordinator_at_a_time),
        cmocka_unit_test(test_an_order_needs_the_nodes_key),
        cmocka_unit_test(test_a_proof_is_good_once),
        cmocka_unit_test(test_one_machine_leaves_room),
        cmocka_unit_test(test_data_only_within_the_session),
        cmocka_unit_test(test_only_members_are_measured_and_named),
        cmocka_unit_test(test_what_is_not_proven_is_told),
        cmocka_unit_test(test_datagrams_are_counted),
        cmocka_unit_test(test_a_burst_arrives),
        cmocka_unit_test(test_in_the_background_nothing_is_ordered),
        cmocka_unit_test(test_trains_of_a_hub),
        cmocka_unit_test(test_a_member_that_is_away_keeps_its_place),
        cmocka_unit_test(test_a_refusal_is_no_answer),
        cmocka_unit_test(test_a_member_that_stops_answering_is_lost),
    };

    netns_be_alone();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
