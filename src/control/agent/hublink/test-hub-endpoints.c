/* test-hub-endpoints.c - where the hub may be: what it says, and what its name leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/hublink/hub_health.h"
#include "net/address/resolve.h"

#define SEC NSEC_PER_SEC

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static struct network network(void)
{
    struct network net = {.mtu = 1420};

    assert_int_equal(ip_prefix_parse(&net.cidr4, "10.77.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&net.cidr6, "fd5a::/64", NULL), 0);
    return net;
}

static struct node_hub hub(void)
{
    return (struct node_hub){.endpoints = {endpoint("192.0.2.1:51820")},
        .n_endpoints = 1,
        .names = {"hub.example.org:51820"},
        .n_names = 1,
        .api_port = 8443};
}

static struct resolve_answer answer(const char *a, const char *b)
{
    struct resolve_answer ans = {.text = "hub.example.org:51820"};

    ans.endpoints[ans.n++] = endpoint(a);
    if (b)
        ans.endpoints[ans.n++] = endpoint(b);
    return ans;
}

static void assert_endpoints(const struct hub_endpoints *w, const char *wanted)
{
    char text[ENDPOINT_TEXT_MAX];
    char got[HUB_ENDPOINTS_MAX * ENDPOINT_TEXT_MAX] = "";

    for (unsigned i = 0; i < w->n; i++)
        (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "",
            endpoint_format(&w->all[i], text));
    assert_string_equal(got, wanted);
}

static void test_what_is_found_comes_first(void **state)
{
    struct network net = network();
    struct node_hub h = hub();
    struct hub_endpoints w = {.n = 0};
    struct resolve_answer moved = answer("203.0.113.9:51820", "[2001:db8::9]:51820");
    struct resolve_answer nothing = {.n = 0};

    hub_endpoints_poll(&w, &h, &net, false, SEC);
    assert_endpoints(&w, "192.0.2.1:51820");
    hub_endpoints_poll(&w, &h, &net, false, 2 * SEC);
    assert_endpoints(&w, "192.0.2.1:51820");
    hub_endpoints_take(&w, &h, &net, &moved, 1);
    hub_endpoints_poll(&w, &h, &net, false, 3 * SEC);
    assert_endpoints(&w, "203.0.113.9:51820 [2001:db8::9]:51820 192.0.2.1:51820");
    /* A name server that knows nothing for a while takes nothing back. */
    hub_endpoints_take(&w, &h, &net, &nothing, 1);
    hub_endpoints_poll(&w, &h, &net, false, 4 * SEC);
    assert_endpoints(&w, "203.0.113.9:51820 [2001:db8::9]:51820 192.0.2.1:51820");
    /* The hub says so itself now. */
    h.endpoints[0] = endpoint("203.0.113.9:51820");
    hub_endpoints_poll(&w, &h, &net, false, 5 * SEC);
    assert_endpoints(&w, "203.0.113.9:51820 [2001:db8::9]:51820");
}

/* The hosts file of a member may lead the hub's name into the overlay, or to this machine. */
static void test_what_is_no_way(void **state)
{
    struct network net = network();
    struct node_hub h = hub();
    struct hub_endpoints w = {.n = 0};
    struct resolve_answer inside = answer("10.77.0.1:51820", "127.0.1.1:51820");
    struct resolve_answer half = answer("[fd5a::1]:51820", "203.0.113.9:51820");

    hub_endpoints_take(&w, &h, &net, &inside, 1);
    hub_endpoints_poll(&w, &h, &net, false, SEC);
    assert_endpoints(&w, "192.0.2.1:51820");
    hub_endpoints_take(&w, &h, &net, &half, 1);
    hub_endpoints_poll(&w, &h, &net, false, SEC);
    assert_endpoints(&w, "203.0.113.9:51820 192.0.2.1:51820");
}

/* Eight of those that were found, and then what the hub says; none twice. */
static void test_more_than_there_is_room_for(void **state)
{
    struct network net = network();
    struct node_hub h = {.n_names = 1};
    struct hub_endpoints w = {.n = 0};
    struct resolve_answer answers[OBJECT_ENDPOINTS_MAX];
    char text[64];

    for (unsigned i = 0; i < OBJECT_ENDPOINTS_MAX; i++) {
        answers[i] = (struct resolve_answer){.text = "hub.example.org:51820"};
        for (unsigned k = 0; k < 2; k++) {
            (void)snprintf(text, sizeof(text), "203.0.113.%u:51820", 1 + i + k);
            answers[i].endpoints[answers[i].n++] = endpoint(text);
        }
        (void)snprintf(text, sizeof(text), "192.0.2.%u:51820", i);
        h.endpoints[h.n_endpoints++] = endpoint(text);
    }
    hub_endpoints_take(&w, &h, &net, answers, OBJECT_ENDPOINTS_MAX);
    assert_int_equal(w.n_found, OBJECT_ENDPOINTS_MAX);
    for (unsigned i = 0; i < OBJECT_ENDPOINTS_MAX; i++) {
        (void)snprintf(text, sizeof(text), "203.0.113.%u:51820", 1 + i);
        assert_true(endpoint_equal(&w.found[i], &(struct endpoint[]){endpoint(text)}[0]));
    }
    hub_endpoints_poll(&w, &h, &net, false, SEC);
    assert_int_equal(w.n, HUB_ENDPOINTS_MAX);
    assert_true(endpoint_equal(&w.all[0], &w.found[0]));
    assert_true(endpoint_equal(&w.all[OBJECT_ENDPOINTS_MAX], &h.endpoints[0]));
    assert_true(endpoint_equal(&w.all[w.n - 1], &h.endpoints[OBJECT_ENDPOINTS_MAX - 1]));
}

/* What a name leads to now is told, unless that was known. */
static void test_what_is_told_of_names(void **state)
{
    struct network net = network();
    struct node_hub h = hub();
    struct hub_endpoints w = {.n = 0};
    struct resolve_answer moved = answer("203.0.113.9:51820", "192.0.2.1:51820");
    int terminal = dup(STDERR_FILENO);
    int file = memfd_create("log", 0);
    char said[256];
    ssize_t n;

    assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    hub_endpoints_take(&w, &h, &net, &moved, 1);
    hub_endpoints_take(&w, &h, &net, &moved, 1);
    assert_true(dup2(terminal, STDERR_FILENO) >= 0);
    n = pread(file, said, sizeof(said) - 1, 0);
    assert_true(n >= 0);
    said[n] = '\0';
    assert_string_equal(
        said, "info: weft: the hub's name hub.example.org:51820 leads to 203.0.113.9:51820 now\n");
    (void)close(file);
    (void)close(terminal);
}

/* Without a name there is nothing to look up; with one, it is, and nobody waits for it. */
static void test_looked_up_while_silent(void **state)
{
    struct network net = network();
    struct node_hub h = hub();
    struct hub_endpoints w = {.n = 0};

    hub_endpoints_poll(&w, &h, &net, false, SEC);
    assert_null(w.task);
    hub_endpoints_poll(&w, &h, &net, true, 2 * SEC);
    assert_non_null(w.task);
    hub_endpoints_deinit(&w);
    hub_endpoints_deinit(&w);
    w = (struct hub_endpoints){.n = 0};
    h.n_names = 0;
    hub_endpoints_poll(&w, &h, &net, true, 3 * SEC);
    assert_null(w.task);
}

/* The first wait is the same whether or not the hub was ever heard. */
static void test_looked_up_less_and_less_often(void **state)
{
    struct network net = network();
    struct node_hub h = hub();

    for (int was_heard = 0; was_heard < 2; was_heard++) {
        struct hub_endpoints w = {.n = 0};

        if (was_heard)
            hub_endpoints_poll(&w, &h, &net, false, 9 * SEC);
        hub_endpoints_poll(&w, &h, &net, true, 10 * SEC);
        assert_int_equal(w.look_up_at, 12 * SEC);
        hub_endpoints_deinit(&w);
        hub_endpoints_poll(&w, &h, &net, true, 11 * SEC);
        assert_null(w.task);
        hub_endpoints_poll(&w, &h, &net, true, 12 * SEC);
        assert_non_null(w.task);
        assert_int_equal(w.look_up_at, 16 * SEC);
        hub_endpoints_deinit(&w);
        for (nsec_t now = 16 * SEC; now <= 200 * SEC; now += SEC) {
            hub_endpoints_poll(&w, &h, &net, true, now);
            hub_endpoints_deinit(&w);
        }
        assert_int_equal(w.wait_for, 30 * SEC);
    }
}

static void test_public_api(void **state)
{
    struct state_hub_api endpoints = {
        .api = {"198.51.100.7:8443", "hub.example.org:8443"}, .n_api = 2};
    struct node_hub h = hub();
    struct hub_api_list api;

    h.endpoints[h.n_endpoints++] = endpoint("[2001:db8::9]:51820");
    /* Another endpoint at the same address is no other API. */
    h.endpoints[h.n_endpoints++] = endpoint("192.0.2.1:443");
    hub_api_list_make(&api, &endpoints, &h);
    assert_int_equal(api.n, 4);
    assert_string_equal(api.items[3], "[2001:db8::9]:8443");
    assert_string_equal(api.items[0], "hub.example.org:8443");
    assert_string_equal(api.items[1], "198.51.100.7:8443");
    assert_string_equal(api.items[2], "192.0.2.1:8443");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_found_comes_first),
        cmocka_unit_test(test_what_is_no_way),
        cmocka_unit_test(test_more_than_there_is_room_for),
        cmocka_unit_test(test_what_is_told_of_names),
        cmocka_unit_test(test_looked_up_while_silent),
        cmocka_unit_test(test_looked_up_less_and_less_often),
        cmocka_unit_test(test_public_api),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
