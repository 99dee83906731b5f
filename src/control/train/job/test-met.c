/*
 * test-met.c - has a command met another node of its job? By connections on the loopback, where
 * 127.0.0.1 is this node's address, and those after it are others'.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "train/job/node.h"
#include "train/job/lost.h"
#include "train/job/run.h"
#include "test/support/said_agent.h"

#define MEMBERS(names) "{\"run\":\"job.1\",\"epoch\":\"a\",\"members\":[" names "]}"

static const char *const two = MEMBERS("\"n1\",\"n2\"");
static const char *const alone = MEMBERS("\"n1\"");
static const char *const status =
    "{\"peers\":[{\"name\":\"n2\",\"address4\":\"127.0.0.2\",\"address6\":\"fd77::2\"},"
    "{\"name\":\"n3\",\"address4\":\"127.0.0.3\",\"address6\":\"fd77::3\"}]}";

/* ---- what happens --------------------------------------------------------------------------- */

/* Listens at 127.0.0.@host, on any port: *@ret_port. */
static int listen_at(uint8_t host, uint16_t *ret_port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* A connection from 127.0.0.1 that has come and gone; @says: data was exchanged on it. */
static void visit(int listener, bool says)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in to;
    socklen_t len = sizeof(to);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int other;
    char buf[4];

    assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &len), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    other = accept(listener, NULL, NULL);
    assert_true(other >= 0);
    if (says) {
        assert_int_equal(send(fd, "abc", 3, 0), 3);
        assert_int_equal(recv(other, buf, sizeof(buf), 0), 3);
    }
    (void)close(fd);
    (void)close(other);
}

/* A command of the job "job.1" of two nodes, on n1. */
static void begin(struct met *m, struct run *run, const struct said_agent *a, uint16_t store_port)
{
    *run = (struct run){.socket_path = a->path,
        .job = "job",
        .rendezvous = {.id = "job.1"},
        .min_nodes = 2,
        .command.program = "python3",
        .node = {.name = "n1", .interface = "lo"}};
    (void)snprintf(
        run->rendezvous.c10d, sizeof(run->rendezvous.c10d), "127.0.0.9:%u", (unsigned)store_port);
    met_begin(m, run);
    if (!m->is_on)
        skip(); /* as on a kernel without inet_diag */
}

struct happening {
    uint8_t host; /* of the other end; 0: nothing happens */
    bool says;
    bool is_store; /* it is the job's */
    bool used_torch;
    const char *answers[2]; /* of the hub and the agent; NULL: they are not asked any more */
    enum met_verdict verdict;
};

static void check(const struct happening *h)
{
    struct said_agent a = {.fd = -1};
    uint16_t port = 0;
    int listener = listen_at(h->host ? h->host : 2, &port);
    struct run run;
    struct met m;

    for (size_t i = 0; i < 2 && h->answers[i]; i++)
        a.answers[i] = (struct said){200, h->answers[i]};
    said_agent_start(&a);
    begin(&m, &run, &a, h->is_store ? port : 1);
    if (h->host)
        visit(listener, h->says);
    m.used_torch = h->used_torch;
    assert_int_equal(met_end(&m), h->verdict);
    met_deinit(&m);
    met_deinit(&m);
    said_agent_end(&a);
    (void)close(listener);
}

static void test_verdicts(void **state)
{
    const struct happening happenings[] = {
        /* Data with n2, which has come to the job, also where torch was used. */
        {2, true, false, true, {two, status}, MET_VERDICT_MET},
        {0, false, false, false, {alone}, MET_VERDICT_ALONE},
        {0, false, false, true, {two}, MET_VERDICT_STRAYED},
        /* A port that was only tried. */
        {2, false, false, true, {two}, MET_VERDICT_STRAYED},
        {9, true, true, true, {two}, MET_VERDICT_MET},
        /* It was in the store, and nobody else has come to the job, now and a little later. */
        {9, true, true, true, {alone, alone}, MET_VERDICT_STRAYED},
    };

    for (size_t i = 0; i < sizeof(happenings) / sizeof(*happenings); i++)
        check(&happenings[i]);
}

/* Data with a node that is not of the job is none with the job. Each time that something was seen,
 * the hub and the agent are asked; at the end once more. */
static void test_another_node_is_not_enough(void **state)
{
    struct said_agent a = {.answers = {{200, two}, {200, status}, {200, two}, {200, status}}};
    uint16_t port;
    int listener = listen_at(3, &port);
    struct run run;
    struct met m;

    said_agent_start(&a);
    begin(&m, &run, &a, 1);
    visit(listener, true);
    assert_int_equal(met_end(&m), MET_VERDICT_ALONE);
    met_deinit(&m);
    said_agent_end(&a);
    (void)close(listener);
}

/* In how many ms who is missing is said again, when hub and agent have answered this. */
static unsigned report(struct said first, struct said second)
{
    struct said_agent a = {.answers = {first, second, {second.status ? 200 : 0, "{}"}}};
    struct run run = {.socket_path = a.path,
        .job = "job",
        .rendezvous = {.id = "job.1"},
        .min_nodes = 2,
        .node = {.name = "n1"}};
    unsigned ms;

    said_agent_start(&a);
    ms = missing_report(&run);
    said_agent_end(&a);
    return ms;
}

/* A hub that does not answer once, or has just been started, is asked again before long. */
static void test_who_is_missing_is_said_again(void **state)
{
    const struct said none = {.status = 0};

    assert_int_equal(report((struct said){200, alone}, (struct said){200, status}), 60000);
    assert_int_equal(report((struct said){200, two}, none), 0);
    assert_int_equal(report((struct said){502, "{}"}, none), 5000);
    assert_int_equal(report((struct said){200, MEMBERS("")}, none), 5000);
    /* A hub of before does not say who has come. */
    assert_int_equal(report((struct said){200, "{\"run\":\"job.1\"}"}, none), 0);
}

/* What is not seen is not judged, and what has met once has met. */
static void test_not_looked_at(void **state)
{
    struct said_agent a = {.path = "/nowhere"};
    struct run run;
    struct met m;

    begin(&m, &run, &a, 1);
    m.is_elsewhere = true;
    assert_int_equal(met_end(&m), MET_VERDICT_MET);
    met_deinit(&m);
    run.has_met = true;
    met_begin(&m, &run);
    assert_int_equal(m.look_at, NSEC_NEVER);
    assert_int_equal(met_end(&m), MET_VERDICT_MET);
    run.has_met = false;
    run.rendezvous.id[0] = '\0'; /* --rendezvous none */
    met_begin(&m, &run);
    assert_int_equal(met_end(&m), MET_VERDICT_MET);
    assert_true(met_starts_elsewhere("docker"));
    assert_true(met_starts_elsewhere("ssh"));
    assert_false(met_starts_elsewhere("python3"));
    assert_false(met_starts_elsewhere(""));
}

static void test_addresses(void **state)
{
    json_auto_t *st = json_loads(status, 0, NULL);
    json_auto_t *members = json_loads("[\"n1\",\"n2\"]", 0, NULL);
    struct island_mate mate = {.name = "n2"};
    const struct island_lan island = {.mates = &mate, .n = 1};
    struct ip_addr n2, n2_6, n3, lan;

    assert_int_equal(ip_addr_parse(&n2, "127.0.0.2", NULL), 0);
    assert_int_equal(ip_addr_parse(&n2_6, "fd77::2", NULL), 0);
    assert_int_equal(ip_addr_parse(&n3, "127.0.0.3", NULL), 0);
    assert_int_equal(ip_addr_parse(&lan, "10.0.0.2", NULL), 0);
    mate.lan = lan;
    assert_true(met_is_of_member(&n2, st, members, NULL));
    assert_true(met_is_of_member(&n2_6, st, members, NULL));
    assert_false(met_is_of_member(&n3, st, members, NULL));
    assert_false(met_is_of_member(&lan, st, members, NULL));
    assert_true(met_is_of_member(&lan, st, members, &island));
    /* Who has come is not known. */
    assert_true(met_is_of_member(&n3, st, NULL, NULL));
    assert_false(met_is_of_member(&lan, NULL, NULL, NULL));
}

/* ---- what is said --------------------------------------------------------------------------- */

static const char *const jobs =
    "{\"jobs\":[{\"job\":\"train\",\"present\":[\"n1\",\"n3\"]},"
    "{\"job\":\"eval\",\"present\":[\"n3\"]},{\"job\":\"BAD NAME\",\"present\":[\"n2\"]}]}";

static void check_words(const char *present, unsigned min_nodes, const char *network,
    const char *missing, const char *unmet)
{
    json_auto_t *st = json_loads(network, 0, NULL);
    json_auto_t *all = json_loads(jobs, 0, NULL);
    json_auto_t *here = json_loads(present, 0, NULL);
    const struct missing_facts f = {.present = here,
        .status = st,
        .jobs = all,
        .job = "train",
        .self = "n1",
        .min_nodes = min_nodes};
    _cleanup_(str_deinit) struct str a = STR_NULL;
    _cleanup_(str_deinit) struct str b = STR_NULL;

    missing_format(&f, &a);
    assert_string_equal(str_text(&a), missing);
    missing_format_unmet(&f, &b);
    assert_string_equal(str_text(&b), unmet);
}

static void test_words(void **state)
{
    check_words("[\"n1\"]", 3, status,
        "n2: start the same command there; n3 is in the job eval: give all the same --job",
        "n2 has not started it; n3 is in the job eval");
    check_words("[\"n1\",\"n2\"]", 2, status, "n3 is in the job eval: give all the same --job",
        "n2 has started it, too, and was not met");
    check_words("[\"n1\",\"n2\",\"n3\"]", 4, status,
        "no other node of the network: are there enough?",
        "n2, n3 have started it, too, and were not met");
    check_words("[\"n1\"]", 2, "{\"peers\":[]}", "no other node of the network: are there enough?",
        "the network has no other node");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_who_is_missing_is_said_again),
        cmocka_unit_test(test_another_node_is_not_enough),
        cmocka_unit_test(test_not_looked_at),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
