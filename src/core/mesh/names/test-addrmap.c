/* test-addrmap.c - which private addresses lead where, and which can lead nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "mesh/names/addrmap.h"
#include "test/support/sample_mesh.h"

/* Has node @n report candidates: "host 10.1.0.11, reflexive 203.0.113.7". */
static void report(struct snapshot *s, unsigned n, const char *candidates)
{
    struct object o = sample_node(n);
    json_t *list = json_array();
    char text[256];
    char *rest = NULL;

    (void)snprintf(text, sizeof(text), "%s", candidates);
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *type = one + strspn(one, " ");
        char *address = strchr(type, ' ');
        char endpoint[64];

        assert_non_null(address);
        *address++ = '\0';
        (void)snprintf(endpoint, sizeof(endpoint), "%s:51820", address);
        json_array_append_new(list, json_pack("{s:s, s:s}", "type", type, "endpoint", endpoint));
    }
    o.node.status = json_pack("{s:o}", "candidates", list);
    sample_put(s, o);
}

static void add_label(struct object *o, const char *key, const char *value)
{
    o->node.labels = calloc(1, sizeof(*o->node.labels));
    assert_non_null(o->node.labels);
    o->node.n_labels = 1;
    (void)snprintf(o->node.labels[0].key, OBJECT_LABEL_MAX, "%s", key);
    (void)snprintf(o->node.labels[0].value, OBJECT_LABEL_MAX, "%s", value);
}

/* The whole map as text: "n3 10.2.0.1 203.0.113.8; n4 - why". */
static void check(const struct snapshot *s, const char *expected)
{
    struct addrmap m = ADDRMAP_NULL;
    struct str out = STR_NULL;
    char from[IP_ADDR_TEXT_MAX];
    char to[IP_ADDR_TEXT_MAX];

    assert_int_equal(addrmap_make(&m, s), 0);
    for (size_t i = 0; i < m.n; i++)
        str_addf(&out, "%s %s %s; ", m.entries[i].node, ip_addr_format(&m.entries[i].private, from),
            ip_addr_format(&m.entries[i].public, to));
    for (size_t i = 0; i < m.n_gaps; i++)
        str_addf(&out, "%s - %s; ", m.gaps[i].node, m.gaps[i].why);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
    addrmap_deinit(&m);
}

static void test_map(void **state)
{
    struct snapshot s = sample_snapshot(5, 2);
    struct object o = sample_node(5);

    report(&s, 2, "host 10.1.0.2, reflexive 203.0.113.2");
    report(&s, 3, "host 10.2.0.3, host fd00::1, host 172.17.0.1, reflexive 203.0.113.3");
    report(&s, 4, "host 198.51.100.4");
    add_label(&o, ADDRMAP_LABEL_PUBLIC, "203.0.113.5");
    sample_put(&s, o);
    check(&s, "n3 10.2.0.3 203.0.113.3; n3 172.17.0.1 203.0.113.3; ");
    report(&s, 5, "host 10.2.0.5, given 203.0.113.50, reflexive 203.0.113.5");
    check(&s, "n3 10.2.0.3 203.0.113.3; n3 172.17.0.1 203.0.113.3; n5 10.2.0.5 203.0.113.50; ");
    report(&s, 3, "host 10.2.0.3, host 198.51.100.3");
    check(&s, "n3 10.2.0.3 198.51.100.3; n5 10.2.0.5 203.0.113.50; ");
    snapshot_deinit(&s);
}

/* Two docker0, two nodes behind one NAT, an address that is also ours, and a silent node. */
static void test_gaps(void **state)
{
    struct snapshot s = sample_snapshot(6, 2);

    report(&s, 2, "host 10.1.0.2, host 172.17.0.1, reflexive 203.0.113.2");
    report(&s, 3, "host 172.17.0.1, reflexive 203.0.113.3");
    report(&s, 4, "host 10.4.0.1, reflexive 203.0.113.2");
    report(&s, 5, "host 10.5.0.1");
    check(&s,
        "n3 - its private address 172.17.0.1 is that of n2, too; "
        "n4 - it shares its public address 203.0.113.2 with n2: that leads to one of them at most; "
        "n5 - its public address is not known; n6 - it has not reported its addresses; ");
    snapshot_deinit(&s);
}

/* Of several addresses the first of each kind counts, and of private ones the first eight. */
static void test_which_addresses_count(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);

    report(&s, 3,
        "reflexive 203.0.113.3, given 203.0.113.4, host 198.51.100.3, host 198.51.100.4, "
        "given 10.8.0.1, host 10.2.0.1");
    check(&s, "n3 10.2.0.1 203.0.113.3; ");
    report(&s, 3, "host 198.51.100.3, host 198.51.100.4, host 10.2.0.1");
    check(&s, "n3 10.2.0.1 198.51.100.3; ");
    report(&s, 3,
        "given [2001:db8::1], host 10.2.0.1, host 10.2.0.2, host 10.2.0.3, host 10.2.0.4, "
        "host 10.2.0.5, host 10.2.0.6");
    check(&s, "n3 - its public address is not known; ");
    report(&s, 3,
        "given 203.0.113.3, host 10.2.0.1, host 10.2.0.2, host 10.2.0.3, host 10.2.0.4, "
        "host 10.2.0.5, host 10.2.0.6, host 10.2.0.7, host 10.2.0.8, host 10.2.0.9");
    check(&s, "n3 10.2.0.1 203.0.113.3; n3 10.2.0.2 203.0.113.3; n3 10.2.0.3 203.0.113.3; "
              "n3 10.2.0.4 203.0.113.3; n3 10.2.0.5 203.0.113.3; n3 10.2.0.6 203.0.113.3; "
              "n3 10.2.0.7 203.0.113.3; n3 10.2.0.8 203.0.113.3; ");
    snapshot_deinit(&s);
}

/* An address of three nodes is none's, whichever of them stands first in the list. */
static void test_an_address_of_three(void **state)
{
    struct snapshot s = sample_snapshot(6, 6);

    report(&s, 2, "host 172.17.0.1, reflexive 203.0.113.2");
    report(&s, 3, "host 172.17.0.1, reflexive 203.0.113.3");
    report(&s, 4, "host 172.17.0.1, reflexive 203.0.113.4");
    report(&s, 5, "host 10.5.0.1, host 10.5.0.1, reflexive 203.0.113.5");
    check(&s, "n5 10.5.0.1 203.0.113.5; n5 10.5.0.1 203.0.113.5; "
              "n2 - its private address 172.17.0.1 is that of n3, too; "
              "n3 - its private address 172.17.0.1 is that of n2, too; "
              "n4 - its private address 172.17.0.1 is that of n2, too; ");
    snapshot_deinit(&s);
}

/* Of a node's candidates so many are looked at as it may have. */
static void test_so_many_candidates_are_looked_at(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);

    for (unsigned before = OBJECT_CANDIDATES_MAX - 1; before <= OBJECT_CANDIDATES_MAX; before++) {
        struct object o = sample_node(3);
        json_t *list = json_array();

        for (unsigned i = 0; i < before; i++)
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "type", "mapped", "endpoint", "203.0.113.3:1"));
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "type", "host", "endpoint", "10.2.0.3:1"));
        o.node.status = json_pack("{s:o}", "candidates", list);
        sample_put(&s, o);
        check(&s, before < OBJECT_CANDIDATES_MAX ? "n3 - its public address is not known; "
                                                 : "n3 - it has not reported its addresses; ");
    }
    snapshot_deinit(&s);
}

/* What is beyond 4096 translations is said, and of that as much. */
static void test_a_large_network(void **state)
{
    struct snapshot s = sample_snapshot(515, 2);
    struct addrmap m = ADDRMAP_NULL;

    for (unsigned n = 3; n <= 515; n++) {
        char text[256] = "";

        for (unsigned i = 1; i <= 8; i++)
            (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "host 10.%u.%u.%u,",
                n / 256, n % 256, i);
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "reflexive 203.%u.%u.1",
            n / 256, n % 256);
        report(&s, n, text);
    }
    assert_int_equal(addrmap_make(&m, &s), 0);
    assert_int_equal(m.n, 4096);
    assert_int_equal(m.n_gaps, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_string_equal(m.gaps[i].node, "n99");
        assert_string_equal(m.gaps[i].why, "there are more than 4096 addresses");
    }
    addrmap_deinit(&m);
    snapshot_deinit(&s);
    s = sample_snapshot(4099, 2);
    assert_int_equal(addrmap_make(&m, &s), 0);
    assert_int_equal(m.n, 0);
    assert_int_equal(m.n_gaps, 4096);
    addrmap_deinit(&m);
    snapshot_deinit(&s);
}

static void test_labels_win(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct object o = sample_node(3);

    add_label(&o, ADDRMAP_LABEL_PRIVATE, "10.9.9.9");
    o.node.status =
        json_loads("{\"candidates\": [{\"type\": \"host\", \"endpoint\": \"10.3.0.1:1\"}, "
                   "{\"type\": \"reflexive\", \"endpoint\": \"203.0.113.3:1\"}, "
                   "7, {\"type\": 3}, {\"type\": \"host\", \"endpoint\": \"nonsense\"}]}",
            0, NULL);
    sample_put(&s, o);
    check(&s, "n3 10.9.9.9 203.0.113.3; ");
    /* One that is no IPv4 address is passed over. */
    for (unsigned i = 0; i < 2; i++) {
        o = sample_node(3);
        add_label(&o, ADDRMAP_LABEL_PUBLIC, i == 0 ? "2001:db8::1" : "somewhere");
        sample_put(&s, o);
        check(&s, "n3 - it has not reported its addresses; ");
    }
    snapshot_deinit(&s);
}

static void test_chain(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct addrmap a = ADDRMAP_NULL;
    struct addrmap b = ADDRMAP_NULL;
    struct str out = STR_NULL;

    assert_int_equal(addrmap_make(&a, &s), 0);
    addrmap_add_chain(&out, &a);
    assert_string_equal(str_text(&out),
        "\tchain output {\n\t\ttype nat hook output priority -100; policy accept;\n\t}");
    str_deinit(&out);
    report(&s, 3, "host 10.2.0.3, reflexive 203.0.113.3");
    assert_int_equal(addrmap_make(&b, &s), 0);
    assert_false(addrmap_equal(&a, &b));
    addrmap_deinit(&a);
    assert_int_equal(addrmap_make(&a, &s), 0);
    assert_true(addrmap_equal(&a, &b));
    a.entries[0].public = a.entries[0].private;
    assert_false(addrmap_equal(&a, &b));
    a.entries[0] = b.entries[0];
    a.entries[0].private = a.entries[0].public;
    assert_false(addrmap_equal(&a, &b));
    addrmap_add_chain(&out, &b);
    assert_string_equal(str_text(&out),
        "\tchain output {\n\t\ttype nat hook output priority -100; policy accept;\n"
        "\t\tip protocol { tcp, icmp } dnat to ip daddr map {\n"
        "\t\t\t10.2.0.3 : 203.0.113.3,\n\t\t}\n\t}");
    str_deinit(&out);
    addrmap_deinit(&a);
    addrmap_deinit(&b);
    snapshot_deinit(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_which_addresses_count),
        cmocka_unit_test(test_an_address_of_three),
        cmocka_unit_test(test_so_many_candidates_are_looked_at),
        cmocka_unit_test(test_a_large_network),
        cmocka_unit_test(test_labels_win),
        cmocka_unit_test(test_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
