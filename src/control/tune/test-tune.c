/* test-tune.c - the rules of each setting, by their figures, and what is kept of before. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "tune/tune.h"

/* A machine as a distribution leaves it, with a line of 10 Gbit/s and 20 ms. */
static struct tune_facts usual(void)
{
    return (struct tune_facts){.now = {"212992", "212992", "4096 131072 6291456",
                                   "4096 16384 4194304", "1000", "1", "0", "fq_codel", "cubic"},
        .has_bbr = true,
        .has_fq = true,
        .rate_bps = 10e9,
        .rtt_s = 0.02,
        .source = "as measured with gpu-3"};
}

static void set(struct tune_facts *f, enum tune_setting s, const char *value)
{
    (void)snprintf(f->now[s], sizeof(f->now[s]), "%s", value);
}

/* What becomes of a setting; NULL: it stays. Lent until the next call. */
static const char *wanted(const struct tune_facts *f, enum tune_setting s)
{
    static struct tune_plan p;

    tune_plan_make(&p, f);
    assert_true(p.items[s].why[0] != '\0');
    if (!p.items[s].changes)
        assert_string_equal(p.items[s].wanted, f->now[s]);
    return p.items[s].changes ? p.items[s].wanted : NULL;
}

static const char *why(const struct tune_facts *f, enum tune_setting s)
{
    static struct tune_plan p;

    tune_plan_make(&p, f);
    return p.items[s].why;
}

/* 25 MB are under way; twice that is 47.7 MiB. */
static void test_buffers(void **state)
{
    struct tune_facts f = usual();

    assert_string_equal(wanted(&f, TUNE_RMEM_MAX), "50331648");
    assert_string_equal(wanted(&f, TUNE_WMEM_MAX), "50331648");
    assert_string_equal(wanted(&f, TUNE_TCP_RMEM), "4096 131072 50331648");
    assert_string_equal(wanted(&f, TUNE_TCP_WMEM), "4096 16384 50331648");
    assert_string_equal(why(&f, TUNE_TCP_RMEM),
        "25.0 MB are under way at once, and the kernel's own part is as much");
    /* What the kernel has from the start is enough nearby. */
    f.rtt_s = 0.0002;
    assert_null(wanted(&f, TUNE_TCP_RMEM));
    assert_string_equal(wanted(&f, TUNE_RMEM_MAX), "1048576");
}

static void test_nothing_is_lowered(void **state)
{
    struct tune_facts f = usual();

    set(&f, TUNE_RMEM_MAX, "50331648");
    set(&f, TUNE_TCP_RMEM, "4096 131072 536870912");
    set(&f, TUNE_BACKLOG, "300000");
    set(&f, TUNE_MTU_PROBING, "2");
    set(&f, TUNE_RESTART, "0");
    assert_null(wanted(&f, TUNE_RMEM_MAX));
    assert_null(wanted(&f, TUNE_TCP_RMEM));
    assert_null(wanted(&f, TUNE_BACKLOG));
    assert_null(wanted(&f, TUNE_MTU_PROBING));
    assert_null(wanted(&f, TUNE_RESTART));
    assert_string_equal(why(&f, TUNE_RMEM_MAX), "enough: 25.0 MB are under way at once");
}

/* A number of the kernel's has 31 bits. */
static void test_the_largest(void **state)
{
    struct tune_facts f = usual();

    f.rate_bps = 1e15;
    f.rtt_s = 10;
    assert_string_equal(wanted(&f, TUNE_TCP_RMEM), "4096 131072 1073741824");
    assert_string_equal(wanted(&f, TUNE_BACKLOG), "65000");
}

static void test_without_a_measurement(void **state)
{
    struct tune_facts f = usual();

    f.rate_bps = f.rtt_s = 0;
    assert_null(wanted(&f, TUNE_RMEM_MAX));
    assert_null(wanted(&f, TUNE_TCP_WMEM));
    assert_null(wanted(&f, TUNE_BACKLOG));
    assert_non_null(strstr(why(&f, TUNE_TCP_WMEM), "weft preflight measures them"));
    /* These need none. */
    assert_string_equal(wanted(&f, TUNE_RESTART), "0");
    assert_string_equal(wanted(&f, TUNE_MTU_PROBING), "1");
}

static void test_backlog(void **state)
{
    struct tune_facts f = usual();

    assert_string_equal(wanted(&f, TUNE_BACKLOG), "9000");
    f.rate_bps = 100e6;
    assert_null(wanted(&f, TUNE_BACKLOG));
    set(&f, TUNE_BACKLOG, "100");
    assert_string_equal(wanted(&f, TUNE_BACKLOG), "1000");
}

/* BBR only where a long line loses packets, and the kernel has it. */
static void test_bbr(void **state)
{
    static const struct {
        double loss;
        double rtt;
        bool has_bbr;
        bool has_fq;
        const char *congestion;
        const char *qdisc;
    } cases[] = {
        {0, 0, true, true, NULL, NULL},
        {0.0009, 0.05, true, true, NULL, NULL},
        {0.001, 0.05, true, true, "bbr", "fq"},
        {0.02, 0.005, true, true, NULL, NULL},
        {0.02, 0.0051, true, true, "bbr", "fq"},
        {0.02, 0.05, true, false, "bbr", NULL},
        {0.02, 0.05, false, true, NULL, NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tune_facts f = usual();

        f.loss = cases[i].loss;
        f.loss_rtt = cases[i].rtt;
        f.has_bbr = cases[i].has_bbr;
        f.has_fq = cases[i].has_fq;
        (void)snprintf(f.loss_peer, sizeof(f.loss_peer), "gpu-3");
        print_message("case %zu: %s\n", i, why(&f, TUNE_CONGESTION));
        if (cases[i].congestion)
            assert_string_equal(wanted(&f, TUNE_CONGESTION), cases[i].congestion);
        else
            assert_null(wanted(&f, TUNE_CONGESTION));
        if (cases[i].qdisc)
            assert_string_equal(wanted(&f, TUNE_QDISC), cases[i].qdisc);
        else
            assert_null(wanted(&f, TUNE_QDISC));
        /* BBR keeps its rate over a pause. */
        assert_int_equal(wanted(&f, TUNE_RESTART) == NULL, cases[i].congestion != NULL);
    }
}

static void test_why_bbr(void **state)
{
    struct tune_facts f = usual();

    f.loss = 0.02;
    f.loss_rtt = 0.05;
    (void)snprintf(f.loss_peer, sizeof(f.loss_peer), "gpu-3");
    assert_string_equal(why(&f, TUNE_CONGESTION),
        "to gpu-3 2.00 % are lost with an RTT of 50.0 ms, which slows down BBR less");
    f.has_bbr = false;
    assert_non_null(strstr(why(&f, TUNE_CONGESTION), "this kernel has none (tcp_bbr)"));
    set(&f, TUNE_CONGESTION, "bbr");
    assert_null(wanted(&f, TUNE_CONGESTION));
    assert_string_equal(wanted(&f, TUNE_QDISC), "fq");
}

/* In a network namespace some are the whole machine's. */
static void test_what_cannot_be_set(void **state)
{
    struct tune_facts f = usual();
    struct tune_plan p;

    set(&f, TUNE_BACKLOG, "");
    f.is_fixed[TUNE_RMEM_MAX] = true;
    f.is_fixed[TUNE_QDISC] = true;
    tune_plan_make(&p, &f);
    assert_false(p.items[TUNE_BACKLOG].changes);
    assert_string_equal(p.items[TUNE_BACKLOG].wanted, "");
    assert_non_null(strstr(p.items[TUNE_BACKLOG].why, "not in this network namespace"));
    assert_false(p.items[TUNE_RMEM_MAX].changes);
    assert_string_equal(p.items[TUNE_RMEM_MAX].wanted, "212992");
    assert_non_null(strstr(p.items[TUNE_RMEM_MAX].why, "50331648 would be better"));
    assert_string_equal(p.items[TUNE_QDISC].why, "fq is for BBR");
    assert_int_equal(p.n_changes, 5);
}

/* 10 Gbit/s are 1,667 packets in 2 ms. */
static void test_devices(void **state)
{
    struct tune_facts f = usual();
    struct tune_device *d = &f.devices[0];
    struct tune_plan p;

    f.n_devices = 1;
    *d =
        (struct tune_device){.name = "eth0", .now = {"512", "4096", "off"}, .max = {8192, 8192, 0}};
    tune_plan_make(&p, &f);
    assert_string_equal(p.devices[0][TUNE_RING_RX].wanted, "2048");
    assert_true(p.devices[0][TUNE_RING_RX].changes);
    assert_string_equal(p.devices[0][TUNE_RING_TX].wanted, "4096");
    assert_false(p.devices[0][TUNE_RING_TX].changes);
    /* The kernel's WireGuard has no use for merged datagrams. */
    assert_false(p.devices[0][TUNE_GRO_FORWARDING].changes);
    f.is_userspace = true;
    (void)snprintf(f.merging_device, sizeof(f.merging_device), "eth0");
    d->has_gro = true;
    d->max[TUNE_RING_RX] = 1000;
    tune_plan_make(&p, &f);
    assert_string_equal(p.devices[0][TUNE_RING_RX].wanted, "1000");
    assert_string_equal(p.devices[0][TUNE_GRO_FORWARDING].wanted, "on");
    assert_int_equal(p.n_changes, 7 + 2);
    (void)snprintf(d->now[TUNE_RING_RX], TUNE_VALUE_MAX, "1000");
    (void)snprintf(d->now[TUNE_GRO_FORWARDING], TUNE_VALUE_MAX, "on");
    d->now[TUNE_RING_TX][0] = '\0';
    tune_plan_make(&p, &f);
    assert_int_equal(p.n_changes, 7);
    f.rate_bps = 0;
    (void)snprintf(d->now[TUNE_RING_RX], TUNE_VALUE_MAX, "64");
    tune_plan_make(&p, &f);
    assert_false(p.devices[0][TUNE_RING_RX].changes);
}

/* By which evidence datagrams are to be merged, and what is said of it. */
static void test_merging(void **state)
{
    static const struct {
        const char *now;
        const char *seen_at;
        unsigned percent;
        bool has_gro;
        bool changes;
        const char *why;
    } cases[] = {
        {"off", "", 0, true, false,
            "too few datagrams came at once to see whether they arrive merged: weft bench"},
        {"off", "eth1", 0, true, false,
            "too few datagrams came at once to see whether they arrive merged: weft bench"},
        {"off", "eth0", 1, true, true,
            "of datagrams right behind one of their flow 1 % came merged, 12 s ago"},
        {"off", "eth0", 2, true, false,
            "of datagrams right behind one of their flow 2 % came merged, 12 s ago"},
        {"on", "eth0", 0, true, false,
            "of datagrams right behind one of their flow 0 % came merged, 12 s ago"},
        {"off", "eth0", 0, false, false,
            "none come merged: gro is off (ethtool -K eth0 gro on), or of another device"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tune_facts f = usual();
        struct tune_plan p;

        f.is_userspace = true;
        f.n_devices = 1;
        f.devices[0] = (struct tune_device){.name = "eth0", .has_gro = cases[i].has_gro};
        (void)snprintf(f.devices[0].now[TUNE_GRO_FORWARDING], TUNE_VALUE_MAX, "%s", cases[i].now);
        (void)snprintf(f.merging_device, sizeof(f.merging_device), "%s", cases[i].seen_at);
        f.merging_percent = cases[i].percent;
        f.merging_age_s = 12;
        tune_plan_make(&p, &f);
        assert_string_equal(p.devices[0][TUNE_GRO_FORWARDING].why, cases[i].why);
        assert_int_equal(p.devices[0][TUNE_GRO_FORWARDING].changes, cases[i].changes);
    }
}

/* What the agent says of it; anything else is as if it said nothing. */
static void test_take_merging(void **state)
{
    static const char *const wrong[] = {"null", "{}", "{\"merging\": 7}",
        "{\"merging\": {\"device\": 7}}",
        "{\"merging\": {\"device\": \"a-name-of-16-let\", \"percent\": 1, \"ageSeconds\": 1}}",
        "{\"merging\": {\"device\": \"../a\", \"percent\": 1, \"ageSeconds\": 1}}",
        "{\"merging\": {\"device\": \"eth0\", \"percent\": 101, \"ageSeconds\": 1}}",
        "{\"merging\": {\"device\": \"eth0\", \"percent\": -1, \"ageSeconds\": 1}}",
        "{\"merging\": {\"device\": \"eth0\", \"percent\": 1, \"ageSeconds\": -1}}"};
    struct tune_facts f = {.rate_bps = 0};
    json_t *json;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        json = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        tune_take_merging(&f, json);
        assert_string_equal(f.merging_device, "");
        json_decref(json);
    }
    json = json_loads(
        "{\"merging\": {\"device\": \"eth0\", \"percent\": 97, \"ageSeconds\": 12}}", 0, NULL);
    tune_take_merging(&f, json);
    assert_string_equal(f.merging_device, "eth0");
    assert_int_equal(f.merging_percent, 97);
    assert_int_equal(f.merging_age_s, 12);
    json_decref(json);
}

/* ---- what was measured ----------------------------------------------------------------------- */

#define WAYS(us)                                                                                   \
    "\"ways\": [{\"rttMedianUs\": " us ", \"sent\": 50, \"heard\": 50}, "                          \
    "{\"rttMedianUs\": " us ", \"sent\": 50, \"heard\": 50}]"
#define LOSS(there, back)                                                                          \
    "\"lossAToB\": {\"by\": \"datagrams\", \"ppm\": " there "}, "                                  \
    "\"lossBToA\": {\"by\": \"datagrams\", \"ppm\": " back "}"
#define RATE(out, in)                                                                              \
    "\"oneStream\": {\"outBitsPerSecond\": 1, \"inBitsPerSecond\": 1}, "                           \
    "\"streams\": {\"outBitsPerSecond\": " out ", \"inBitsPerSecond\": " in "}"

/* a is near b, and far from c; b and c are no matter of a's. */
static const char measured[] =
    "{\"nodes\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}], \"pairs\": ["
    "{\"nodes\": [\"a\", \"b\"], " WAYS("200") ", " LOSS("50000", "50000") ", " RATE("40000000000",
        "9000000000") "},"
                      "{\"nodes\": [\"a\", \"c\"], " WAYS("50000") ", " LOSS(
                          "900", "20000") ", " RATE("100000000",
                          "900000000") "},"
                                       "{\"nodes\": [\"b\", \"c\"], " WAYS("500000") ", " LOSS(
                                           "90000", "90000") ", " RATE("9000000000",
                                           "9000000000") "}]}";

static struct tune_facts take(const char *text, const char *own)
{
    struct tune_facts f = {.rate_bps = 0};
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    tune_take_measured(&f, json, own);
    json_decref(json);
    return f;
}

static void test_measured(void **state)
{
    struct tune_facts f = take(measured, "a");

    /* 5.6 MB are under way from c, and to b no more than 1 MB. */
    assert_true(f.rate_bps == 900e6);
    assert_true(fabs(f.rtt_s - 0.05) < 1e-9);
    assert_string_equal(f.source, "as measured with c");
    /* What c loses of what it sends is c's, and b is near. */
    assert_true(f.loss == 0);
    f = take(measured, "c");
    assert_true(f.rate_bps == 9e9);
    assert_string_equal(f.source, "as measured with b");
    assert_true(fabs(f.loss - 0.09) < 1e-9);
    assert_string_equal(f.loss_peer, "b");
    f = take(measured, "d");
    assert_true(f.rate_bps == 0 && f.loss == 0);
}

/* Of a node of another version, or of a benchmark, there are no datagrams. */
static void test_measured_without_loss(void **state)
{
    static const char *const losses[] = {"null", "7", "{\"by\": \"pings\", \"ppm\": 90000}",
        "{\"by\": \"datagrams\"}", "{\"by\": \"datagrams\", \"ppm\": -1}",
        "{\"by\": \"datagrams\", \"ppm\": 1e9}", "{\"by\": \"datagrams\", \"ppm\": \"90000\"}"};

    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        char text[1024];
        struct tune_facts f;

        (void)snprintf(text, sizeof(text),
            "{\"nodes\": [\"a\", \"b\"], \"pairs\": [{\"nodes\": [\"a\", \"b\"], " WAYS(
                "50000") ", \"lossAToB\": %s, " RATE("5", "5") "}]}",
            losses[i]);
        f = take(text, "a");
        if (f.loss != 0)
            fail_msg("%s is a loss of %f", losses[i], f.loss);
        assert_true(f.rate_bps == 5);
    }
    assert_true(take("[]", "a").rate_bps == 0);
    assert_true(take("{\"pairs\": [1, {\"nodes\": [1, \"a\"]}]}", "a").rate_bps == 0);
}

/* ---- text and files -------------------------------------------------------------------------- */

static void test_texts(void **state)
{
    struct tune_facts f = usual();
    struct str out = STR_NULL;
    struct tune_plan p;
    const json_t *item;
    json_t *json;

    tune_plan_make(&p, &f);
    tune_format(&p, &f, &out);
    assert_non_null(strstr(str_text(&out),
        "For 10.000 Gbit/s with an RTT of 20.0 ms, as measured with gpu-3.\n\nNAME "));
    assert_non_null(strstr(str_text(&out), "\nnet.ipv4.tcp_rmem                   4096 131072 "
                                           "6291456  4096 131072 50331648  25.0 MB"));
    assert_non_null(strstr(str_text(&out),
        "\nnet.core.default_qdisc              fq_codel             -                     fq is"));
    str_deinit(&out);
    json = tune_encode(&p, &f);
    assert_int_equal(json_integer_value(json_object_get(json, "rateBitsPerSecond")), 10000000000);
    item = json_array_get(json_object_get(json, "settings"), TUNE_RESTART);
    assert_string_equal(json_string_value(json_object_get(item, "wanted")), "0");
    assert_true(json_is_true(json_object_get(item, "changes")));
    json_decref(json);
    set(&f, TUNE_RMEM_MAX, "");
    f.rate_bps = 0;
    tune_plan_make(&p, &f);
    json = tune_encode(&p, &f);
    assert_true(json_is_null(json_object_get(json, "rttMs")));
    item = json_array_get(json_object_get(json, "settings"), TUNE_RMEM_MAX);
    assert_true(json_is_null(json_object_get(item, "now")));
    json_decref(json);
    tune_format(&p, &f, &out);
    assert_non_null(strstr(str_text(&out), "lines are not known."));
    str_deinit(&out);
}

/* What was there before the first change is what counts. */
static void test_saved(void **state)
{
    struct tune_facts f = usual();
    struct tune_saved s = {.has = {false}};
    struct tune_saved again;
    struct str out = STR_NULL;
    struct tune_plan p;
    json_t *json;

    f.n_devices = 1;
    f.devices[0] =
        (struct tune_device){.name = "eth0", .now = {"512", "4096", "on"}, .max = {8192, 8192, 0}};
    tune_plan_make(&p, &f);
    assert_true(tune_saved_add(&s, &p, &f));
    assert_true(s.has[TUNE_TCP_RMEM] && !s.has[TUNE_CONGESTION]);
    set(&f, TUNE_TCP_RMEM, "4096 131072 50331648");
    (void)snprintf(f.devices[0].now[TUNE_RING_RX], TUNE_VALUE_MAX, "2048");
    set(&f, TUNE_RESTART, "0");
    f.rate_bps = 20e9;
    tune_plan_make(&p, &f);
    assert_true(p.devices[0][TUNE_RING_RX].changes);
    assert_true(tune_saved_add(&s, &p, &f));
    assert_string_equal(s.before[TUNE_TCP_RMEM], "4096 131072 6291456");
    assert_string_equal(s.before[TUNE_RESTART], "1");
    assert_string_equal(s.devices[0].name, "eth0");
    assert_string_equal(s.devices[0].now[TUNE_RING_RX], "512");
    assert_string_equal(s.devices[0].now[TUNE_RING_TX], "");
    assert_string_equal(s.wanted[0][TUNE_RING_RX], "4096");
    assert_string_equal(s.wanted[0][TUNE_RING_TX], "");
    json = tune_saved_encode(&s);
    assert_int_equal(tune_saved_decode(&again, json, NULL), 0);
    assert_memory_equal(&again, &s, sizeof(s));
    json_decref(json);
    /* All that was ever changed is set at a boot, as it is to be now. */
    tune_boot_format(&s, &p, &out);
    assert_non_null(strstr(str_text(&out), "\nnet.ipv4.tcp_rmem = 4096 131072 100663296\n"));
    assert_non_null(strstr(str_text(&out), "\nnet.ipv4.tcp_slow_start_after_idle = 0\n"));
    assert_null(strstr(str_text(&out), "tcp_congestion_control"));
    str_deinit(&out);
    tune_restored_format(&s, &out);
    assert_non_null(strstr(str_text(&out), "net.ipv4.tcp_slow_start_after_idle is 1 again\n"));
    str_deinit(&out);
    json = tune_restored_encode(&s);
    assert_int_equal(json_array_size(json_object_get(json, "restored")), 8);
    json_decref(json);
    /* More devices than are kept. */
    for (unsigned i = 1; i < TUNE_DEVICES_MAX; i++) {
        (void)snprintf(f.devices[0].name, IFNAMSIZ, "eth%u", i);
        assert_true(tune_saved_add(&s, &p, &f));
    }
    (void)snprintf(f.devices[0].name, IFNAMSIZ, "eth9");
    assert_false(tune_saved_add(&s, &p, &f));
}

/* An earlier version kept nothing for the next boot. */
static void test_saved_by_an_earlier_version(void **state)
{
    json_t *json = json_loads("{\"before\": {\"eth0 ring-rx\": \"512\"}}", 0, NULL);
    struct tune_saved s;

    assert_int_equal(tune_saved_decode(&s, json, NULL), 0);
    assert_string_equal(s.devices[0].now[TUNE_RING_RX], "512");
    assert_string_equal(s.wanted[0][TUNE_RING_RX], "");
    json_decref(json);
}

static void test_saved_that_is_damaged(void **state)
{
    static const char *const texts[] = {"{}", "[]", "{\"before\": {}}",
        "{\"before\": {\"kernel.panic\": \"1\"}}", "{\"before\": {\"eth0 speed\": \"1\"}}",
        "{\"before\": {\" ring-rx\": \"1\"}}", "{\"before\": {\"../x ring-rx\": \"1\"}}",
        "{\"before\": {\"a-name-of-16-let ring-rx\": \"1\"}}",
        "{\"before\": {\"a ring-rx\": \"1\", \"b ring-rx\": \"1\", \"c ring-rx\": \"1\", "
        "\"d ring-rx\": \"1\", \"e ring-rx\": \"1\"}}",
        "{\"before\": {\"eth0 ring-rx\": \"1\"}, \"wanted\": {\"eth0 ring-tx\": \"1\"}}",
        "{\"before\": {\"eth0 ring-rx\": \"1\"}, \"wanted\": {\"eth1 ring-rx\": \"1\"}}",
        "{\"before\": {\"eth0 ring-rx\": \"1\"}, \"wanted\": {\"eth0 ring-rx\": \"\"}}",
        "{\"before\": {\"eth0 ring-rx\": \"1\"}, \"wanted\": {\"net.core.rmem_max\": \"1\"}}",
        "{\"before\": {\"net.core.rmem_max\": 1}}", "{\"before\": {\"net.core.rmem_max\": \"\"}}",
        "{\"before\": {\"net.core.rmem_max\": \"1\\n2\"}}",
        "{\"before\": {\"net.core.rmem_max\": \"0000000000000000000000000000000000000000000000000"
        "000000000000000\"}}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        json_t *json = json_loads(texts[i], 0, NULL);
        struct tune_saved s;
        struct err e = ERR_NULL;

        assert_non_null(json);
        if (tune_saved_decode(&s, json, &e) != -EINVAL || e.text[0] == '\0')
            fail_msg("%s is taken", texts[i]);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_nothing_is_lowered),
        cmocka_unit_test(test_the_largest),
        cmocka_unit_test(test_without_a_measurement),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_bbr),
        cmocka_unit_test(test_why_bbr),
        cmocka_unit_test(test_what_cannot_be_set),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_take_merging),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_measured_without_loss),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_saved_by_an_earlier_version),
        cmocka_unit_test(test_saved_that_is_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
