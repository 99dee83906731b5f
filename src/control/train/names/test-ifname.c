/* test-ifname.c - NCCL's and Gloo's choice, case by case as their documents have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "train/names/ifname.h"

/* "eth0 10.0.0.1, weft0 10.42.0.2" to facts; a '-' before a name: it does not run. */
static struct facts machine(const char *text)
{
    struct facts f = {.n_interfaces = 0};

    while (*text != '\0') {
        struct facts_interface *itf = &f.interfaces[f.n_interfaces++];
        char address[64];
        int used = 0;

        itf->running = *text != '-';
        text += *text == '-';
        used = (int)strcspn(text, " ");
        (void)snprintf(itf->name, sizeof(itf->name), "%.*s", used, text);
        text += used + 1;
        used = (int)strcspn(text, ",");
        (void)snprintf(address, sizeof(address), "%.*s", used, text);
        assert_int_equal(ip_addr_parse(&itf->address, address, NULL), 0);
        text += used;
        text += strspn(text, ", ");
    }
    return f;
}

#define CLOUD "lo 127.0.0.1, eth0 10.0.0.1, docker0 172.17.0.1, weft0 10.42.0.2"

static void test_nccl(void **state)
{
    static const struct {
        const char *machine;
        const char *list;
        const char *family;
        const char *chosen;
    } cases[] = {
        /* Nothing said: everything but docker, lo, virbr; so the private address, too. */
        {CLOUD, NULL, NULL, "eth0, weft0"},
        {CLOUD, "", NULL, "eth0, weft0"},
        {CLOUD ", virbr0 192.168.122.1", NULL, NULL, "eth0, weft0"},
        /* ib first, and then nothing else. */
        {CLOUD ", ib0 10.9.0.1, ibs1 10.9.0.2", NULL, NULL, "ib0, ibs1"},
        {CLOUD ", -ib0 10.9.0.1", NULL, NULL, "eth0, weft0"},
        /* The last resorts. */
        {"lo 127.0.0.1, docker0 172.17.0.1", NULL, NULL, "docker0"},
        {"lo 127.0.0.1, virbr0 10.0.0.1", NULL, NULL, "lo"},
        {"virbr0 10.0.0.1", NULL, NULL, "virbr0"},
        {"-eth0 10.0.0.1", NULL, NULL, "none"},
        /* Prefixes, whole names, and all but. */
        {CLOUD, "eth", NULL, "eth0"},
        {CLOUD ", weft01 10.43.0.1", "weft0", NULL, "weft0, weft01"},
        {CLOUD ", weft01 10.43.0.1", "=weft0", NULL, "weft0"},
        {CLOUD, "=weft", NULL, "none"},
        {CLOUD, "weft,eth", NULL, "eth0, weft0"},
        {CLOUD, "=weft0,eth0", NULL, "eth0, weft0"},
        {CLOUD, "^eth,lo", NULL, "docker0, weft0"},
        {CLOUD, "^=eth", NULL, "lo, eth0, docker0, weft0"},
        {CLOUD, "^=eth0,lo,docker0", NULL, "weft0"},
        {CLOUD, "eth0:1234", NULL, "eth0"},
        /* A value of one character is none; one that matches nothing is an end. */
        {CLOUD, "e", NULL, "eth0, weft0"},
        {CLOUD, "wlan", NULL, "none"},
        {CLOUD, "lo", NULL, "lo"},
        /* Families. */
        {"eth0 10.0.0.1, weft0 10.42.0.2, weft0 fd00::2", NULL, "AF_INET6", "weft0"},
        {"eth0 fd01::1, weft0 10.42.0.2", NULL, "AF_INET", "weft0"},
        {"lo ::1, weft0 10.42.0.2, weft0 fd00::2", "^eth", NULL, "weft0"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct facts f = machine(cases[i].machine);
        struct ifname_choice c = ifname_nccl(&f, cases[i].list, cases[i].family);
        char text[128];

        print_message("case %zu: \"%s\"\n", i, cases[i].list ? cases[i].list : "(unset)");
        assert_string_equal(ifname_format(&c, text), cases[i].chosen);
    }
}

static void test_nccl_takes_sixteen(void **state)
{
    struct facts f = {.n_interfaces = 20};
    struct ifname_choice c;

    for (size_t i = 0; i < f.n_interfaces; i++) {
        (void)snprintf(f.interfaces[i].name, IFNAMSIZ, "eth%u", (unsigned)i);
        assert_int_equal(ip_addr_parse(&f.interfaces[i].address, "10.0.0.1", NULL), 0);
        f.interfaces[i].running = true;
    }
    c = ifname_nccl(&f, NULL, NULL);
    assert_int_equal(c.n, IFNAME_MAX);
}

static void test_gloo(void **state)
{
    static const struct {
        const char *list;
        const char *host; /* what the machine's own name leads to; NULL: nothing */
        const char *chosen;
    } cases[] = {
        {"weft0", NULL, "weft0"},
        {"weft0,eth0", NULL, "weft0, eth0"},
        /* NCCL's forms are none of Gloo's. */
        {"=weft0", NULL, "none"},
        {"weft", NULL, "none"},
        {NULL, "10.0.0.1", "eth0"},
        {NULL, "10.42.0.2", "weft0"},
        {NULL, "127.0.1.1", "lo"},
        {NULL, NULL, "lo"},
        {"", "10.0.0.1", "eth0"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct facts f = machine(CLOUD);
        struct ifname_choice c;
        char text[128];

        if (cases[i].host)
            assert_int_equal(ip_addr_parse(&f.host_address, cases[i].host, NULL), 0);
        c = ifname_gloo(&f, cases[i].list);
        print_message("case %zu: \"%s\"\n", i, cases[i].list ? cases[i].list : "(unset)");
        assert_string_equal(ifname_format(&c, text), cases[i].chosen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_nccl_takes_sixteen),
        cmocka_unit_test(test_gloo),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
