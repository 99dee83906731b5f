/*
 * test-access-filter.c - packets of each kind, one after the other, through a filter: what begins a
 * connection, what belongs to one, and what is refused and counted.
 *
 * The node is 10.42.0.2 and fd00::2. Who is at .3 may reach its ssh, it may reach the web of .3,
 * and the hub, .1, may ping it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "access/access_filter.h"
#include "base/err.h"
#include "test/support/inner_packet.h"

#define SEC   NSEC_PER_SEC
#define BEGIN (1000 * SEC)
#define MUCH_LATER                                                                                 \
    (BEGIN + 2 * ACCESS_TAKE_UP_S * SEC) /* connections of before are not taken up                 \
                                          */
#define SSH    22
#define WEB    80
#define CHOSEN 40000

static const char *const lines[] = {
    "self 10.42.0.2,fd00::2",
    "refuse in",
    "refuse out",
    "set 10.42.0.1,fd00::1",
    "set 10.42.0.3,fd00::3",
    "rule",
    "allow icmp",
    "in set:0 10.42.0.2/32",
    "rule ssh",
    "allow tcp/22-22,udp/5000-5000",
    "in set:1 10.42.0.2/32",
    "in set:1 fd00::2/128",
    "rule web",
    "allow tcp/80-80,udp/53-53,icmp",
    "out set:1",
};

struct fixture {
    struct access_filter *f;
    nsec_t now;
    bool v6;
};

static void use(struct fixture *x, const char *const *text, size_t n)
{
    struct access_builder *b = access_builder_new(3);
    struct access_set *set = NULL;
    struct err e = ERR_NULL;

    for (size_t i = 0; i < n; i++)
        if (access_builder_line(b, text[i], &e) != 0)
            fail_msg("%s", err_text(&e));
    assert_int_equal(access_builder_finish(b, &set, &e), 0);
    (void)access_builder_free(b);
    access_filter_settle(x->f, access_filter_use(x->f, set, n));
}

static void use_lines(struct fixture *x)
{
    use(x, lines, sizeof(lines) / sizeof(*lines));
}

static int setup(void **state)
{
    static struct fixture x;

    x = (struct fixture){.now = MUCH_LATER};
    assert_int_equal(access_filter_new(&x.f, 2, 9, BEGIN), 0);
    *state = &x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;

    x->f = access_filter_free(x->f);
    (void)access_filter_free(x->f);
    return 0;
}

/* @host: the last byte of the other end's address. */
static bool passes(struct fixture *x, enum access_way way, unsigned host, struct inner_packet of)
{
    const char *own = x->v6 ? "fd00::2" : "10.42.0.2";
    uint8_t p[INNER_PACKET_MAX];
    char other[32];
    struct ip_info ip;
    size_t len;

    (void)snprintf(other, sizeof(other), x->v6 ? "fd00::%u" : "10.42.0.%u", host);
    of.src = way == ACCESS_IN ? other : own;
    of.dst = way == ACCESS_IN ? own : other;
    len = inner_packet_make(&of, p);
    assert_int_equal(ip_parse(p, len, &ip), 0);
    return access_filter_pass(x->f, way == ACCESS_IN ? 0 : 1, way, p, len, &ip, x->now);
}

static bool tcp(struct fixture *x, enum access_way way, unsigned host, uint16_t from, uint16_t to,
    uint8_t flags)
{
    return passes(x, way, host,
        (struct inner_packet){.protocol = 6, .from_port = from, .to_port = to, .flags = flags});
}

static bool udp(struct fixture *x, enum access_way way, unsigned host, uint16_t from, uint16_t to)
{
    return passes(
        x, way, host, (struct inner_packet){.protocol = 17, .from_port = from, .to_port = to});
}

static bool echo(struct fixture *x, enum access_way way, unsigned host, bool asks, uint16_t id)
{
    uint8_t type = x->v6 ? (asks ? 128 : 129) : (asks ? 8 : 0);

    return passes(
        x, way, host, (struct inner_packet){.protocol = x->v6 ? 58 : 1, .type = type, .id = id});
}

/* All packets of kinds that worker @part has refused between these, of @protocol. */
static uint64_t refused(struct fixture *x, unsigned part, uint8_t protocol, uint16_t port)
{
    static struct access_refused kinds[ACCESS_REFUSED_KINDS];
    uint64_t all = 0;
    unsigned n = access_filter_refused(x->f, part, kinds, &all);

    for (unsigned i = 0; i < n; i++)
        if (kinds[i].protocol == protocol && kinds[i].port == port)
            return kinds[i].packets;
    return 0;
}

static uint64_t passed(struct fixture *x, const char *rule)
{
    uint32_t cursor = 0;
    uint64_t n = 0;
    const char *name;

    while ((name = access_set_each(x->f->set, &cursor, &n)))
        if (strcmp(name, rule) == 0)
            return n;
    return 0;
}

static void test_without_rules(void **state)
{
    struct fixture *x = *state;

    assert_true(tcp(x, ACCESS_IN, 9, 1, 2, INNER_SYN));
    assert_true(tcp(x, ACCESS_OUT, 9, 1, 2, INNER_SYN));
}

static void test_a_connection(void **state)
{
    struct fixture *x = *state;

    use_lines(x);
    for (unsigned i = 0; i < 2; i++) {
        x->v6 = i == 1;
        assert_true(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_SYN));
        assert_true(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_SYN | INNER_ACK));
        assert_true(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_ACK));
        assert_true(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_ACK));
        /* Another port, another end, and the other way round. */
        assert_false(tcp(x, ACCESS_IN, 3, CHOSEN, SSH + 1, INNER_SYN));
        assert_false(tcp(x, ACCESS_IN, 4, CHOSEN, SSH, INNER_SYN));
        assert_false(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN + 1, INNER_SYN | INNER_ACK));
        assert_false(tcp(x, ACCESS_OUT, 3, CHOSEN, SSH, INNER_SYN));
        /* Who was reached may not begin one by the same ports. */
        assert_false(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_SYN));
    }
    assert_int_equal(passed(x, "ssh"), 2);
    assert_int_equal(refused(x, 0, 6, SSH + 1), 1);
    assert_int_equal(refused(x, 1, 6, CHOSEN), 1);
}

static void test_udp(void **state)
{
    struct fixture *x = *state;

    use_lines(x);
    assert_false(udp(x, ACCESS_IN, 3, 53, CHOSEN));
    assert_true(udp(x, ACCESS_OUT, 3, CHOSEN, 53));
    assert_true(udp(x, ACCESS_IN, 3, 53, CHOSEN));
    assert_false(udp(x, ACCESS_IN, 4, 53, CHOSEN));
    x->now += (ACCESS_UDP_S + 1) * SEC;
    assert_false(udp(x, ACCESS_IN, 3, 53, CHOSEN));
}

static void test_pings(void **state)
{
    struct fixture *x = *state;

    use_lines(x);
    assert_true(echo(x, ACCESS_IN, 1, true, 5));
    assert_true(echo(x, ACCESS_OUT, 1, false, 5));
    assert_false(echo(x, ACCESS_OUT, 1, true, 5));
    assert_true(echo(x, ACCESS_OUT, 3, true, 6));
    assert_true(echo(x, ACCESS_IN, 3, false, 6));
    assert_false(echo(x, ACCESS_IN, 3, false, 7));
    /* One that is asked is not let ask, by the same identifier. */
    assert_false(echo(x, ACCESS_IN, 3, true, 6));
    x->v6 = true;
    assert_true(echo(x, ACCESS_OUT, 3, true, 6));
    assert_true(echo(x, ACCESS_IN, 3, false, 6));
}

/* An error about what was sent passes, from whomever it is; one about anything else does not. */
static void test_errors(void **state)
{
    struct fixture *x = *state;
    uint8_t quoted[INNER_PACKET_MAX];
    struct inner_packet sent = {
        .src = "10.42.0.2", .dst = "10.42.0.3", .protocol = 6, .from_port = CHOSEN, .to_port = WEB};
    struct inner_packet about = {.protocol = 1, .type = 3, .quoted = quoted};

    use_lines(x);
    about.n_quoted = inner_packet_make(&sent, quoted);
    assert_false(passes(x, ACCESS_IN, 9, about));
    assert_true(tcp(x, ACCESS_OUT, 3, CHOSEN, WEB, INNER_SYN));
    assert_true(passes(x, ACCESS_IN, 9, about));
    sent.to_port = WEB + 1;
    about.n_quoted = inner_packet_make(&sent, quoted);
    assert_false(passes(x, ACCESS_IN, 9, about));
}

static void test_fragments(void **state)
{
    struct fixture *x = *state;
    struct inner_packet first = {.protocol = 17,
        .to_port = 5000,
        .is_fragment = true,
        .has_more = true,
        .datagram = 4711,
        .payload = 8};
    struct inner_packet later = first;

    later.offset = 16;
    use_lines(x);
    for (unsigned i = 0; i < 2; i++) {
        x->v6 = i == 1;
        assert_false(passes(x, ACCESS_IN, 3, later));
        assert_true(passes(x, ACCESS_IN, 3, first));
        assert_true(passes(x, ACCESS_IN, 3, later));
        /* Of another datagram, another sender, the other way, and too late. */
        later.datagram++;
        assert_false(passes(x, ACCESS_IN, 3, later));
        later.datagram--;
        assert_false(passes(x, ACCESS_IN, 4, later));
        assert_false(passes(x, ACCESS_OUT, 3, later));
        x->now += ACCESS_FRAGMENT_S * SEC;
        assert_true(passes(x, ACCESS_IN, 3, later));
        x->now += 2 * SEC;
        assert_false(passes(x, ACCESS_IN, 3, later));
        /* A first one that is refused lets none pass. */
        first.to_port = 5001;
        assert_false(passes(x, ACCESS_IN, 3, first));
        assert_false(passes(x, ACCESS_IN, 3, later));
        first.to_port = 5000;
    }
    /* What would write over a header is refused also behind its first. */
    first = (struct inner_packet){.protocol = 6,
        .to_port = SSH,
        .is_fragment = true,
        .has_more = true,
        .datagram = 5,
        .flags = INNER_SYN,
        .payload = 4};
    later = first;
    later.offset = 8;
    assert_true(passes(x, ACCESS_IN, 3, first));
    assert_false(passes(x, ACCESS_IN, 3, later));
    later.offset = 24;
    assert_true(passes(x, ACCESS_IN, 3, later));
}

/* What was under way goes on, and what begins goes by the rules that are. */
static void test_rules_that_change(void **state)
{
    static const char *const none[] = {"refuse in", "refuse out", "rule ssh"};
    struct fixture *x = *state;

    use_lines(x);
    assert_true(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_SYN));
    assert_true(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_SYN | INNER_ACK));
    assert_true(tcp(x, ACCESS_IN, 3, CHOSEN + 1, SSH, INNER_SYN));
    assert_true(udp(x, ACCESS_IN, 3, CHOSEN, 5000));
    use(x, none, 3);
    assert_true(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_ACK));
    assert_false(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_SYN));
    /* What nobody has answered. */
    assert_false(tcp(x, ACCESS_IN, 3, CHOSEN + 1, SSH, INNER_ACK));
    assert_false(udp(x, ACCESS_IN, 3, CHOSEN, 5000));
    /* Its counter goes on. */
    assert_int_equal(passed(x, "ssh"), 3);
}

/* A filter that has just begun takes up TCP that was there before, in both directions. */
static void test_what_was_there_before(void **state)
{
    struct fixture *x = *state;

    use_lines(x);
    x->now = BEGIN + SEC;
    assert_true(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_ACK));
    assert_true(tcp(x, ACCESS_IN, 3, WEB, CHOSEN, INNER_ACK));
    assert_false(tcp(x, ACCESS_IN, 3, WEB, CHOSEN, INNER_SYN));
    assert_false(tcp(x, ACCESS_IN, 3, WEB + 1, CHOSEN, INNER_ACK));
    assert_false(udp(x, ACCESS_IN, 3, 53, CHOSEN));
    x->now = MUCH_LATER;
    assert_true(tcp(x, ACCESS_OUT, 3, SSH, CHOSEN, INNER_ACK));
    assert_true(tcp(x, ACCESS_IN, 3, CHOSEN, SSH, INNER_ACK));
    assert_true(tcp(x, ACCESS_IN, 3, WEB, CHOSEN, INNER_ACK));
    assert_false(tcp(x, ACCESS_IN, 3, WEB, CHOSEN + 1, INNER_ACK));
}

/* In a network that is open a job's ports are shut, and what the node itself begins is answered. */
static void test_jobs(void **state)
{
    static const char *const job[] = {
        "self 10.42.0.2,fd00::2", "set", "set 10.42.0.3", "open 40005", "shut 40000-40009 1"};
    struct fixture *x = *state;

    use(x, job, 5);
    assert_true(tcp(x, ACCESS_IN, 3, 1000, 40001, INNER_SYN));
    assert_false(tcp(x, ACCESS_IN, 4, 1000, 40001, INNER_SYN));
    assert_true(tcp(x, ACCESS_IN, 4, 1000, 40005, INNER_SYN));
    assert_true(tcp(x, ACCESS_IN, 4, 1000, SSH, INNER_SYN));
    assert_true(udp(x, ACCESS_IN, 4, 1000, 40001));
    assert_true(tcp(x, ACCESS_OUT, 4, 40002, 1000, INNER_SYN));
    assert_true(tcp(x, ACCESS_IN, 4, 1000, 40002, INNER_SYN | INNER_ACK));
    assert_int_equal(refused(x, 0, 6, 40001), 1);
}

static void test_what_is_broken(void **state)
{
    static const char *const all[] = {"rule all", "allow any", "in 10.42.0.0/16 10.42.0.2"};
    struct fixture *x = *state;

    use(x, all, 3);
    assert_true(tcp(x, ACCESS_IN, 3, 1, 2, 0));
    assert_false(passes(x, ACCESS_IN, 3, (struct inner_packet){.protocol = 6, .cut = 1}));
}

/* More kinds than are kept apart: the sum is right. */
static void test_many_kinds(void **state)
{
    static struct access_refused kinds[ACCESS_REFUSED_KINDS];
    struct fixture *x = *state;
    uint64_t all = 0;
    uint64_t sum = 0;
    unsigned n;

    use_lines(x);
    for (unsigned i = 0; i < 4000; i++)
        assert_false(tcp(x, ACCESS_IN, 3, CHOSEN, (uint16_t)(1000 + i), INNER_SYN));
    n = access_filter_refused(x->f, 0, kinds, &all);
    for (unsigned i = 0; i < n; i++)
        sum += kinds[i].packets;
    assert_int_equal(all, 4000);
    assert_true(n > ACCESS_REFUSED_KINDS / 2 && sum == n);
    /* After a while new ones are kept in their place. */
    x->now += (ACCESS_REFUSED_S + 1) * SEC;
    assert_false(tcp(x, ACCESS_IN, 3, CHOSEN, 7000, INNER_SYN));
    assert_int_equal(refused(x, 0, 6, 7000), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_without_rules),
        TEST(test_a_connection),
        TEST(test_udp),
        TEST(test_pings),
        TEST(test_errors),
        TEST(test_fragments),
        TEST(test_rules_that_change),
        TEST(test_what_was_there_before),
        TEST(test_jobs),
        TEST(test_what_is_broken),
        TEST(test_many_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
