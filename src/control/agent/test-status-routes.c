/* test-status-routes.c - the subnets in a node's status, for people, and what is found of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/node_findings.h"
#include "agent/status.h"
#include "agent/status_text.h"
#include "base/text.h"
#include "mesh/object/subnets.h"
#include "test/support/sample_mesh.h"

static char *format_routes(const struct status_input *in)
{
    struct str out = STR_NULL;
    json_t *status = status_encode(in);

    assert_non_null(status);
    status_text_format_routes(status, &out);
    json_decref(status);
    return str_take(&out, NULL);
}

/* The sentence that is found of subnets; "": nothing is. */
static const char *find_sentence(struct agent *a, const struct status_input *in)
{
    const struct finding *found;

    node_findings_look(&a->findings, in);
    found = findings_find(&a->findings, FINDING_SUBNET_UNREADY, "n2");
    return found ? found->text : "";
}

/* Each thing that keeps a subnet from being reached has its words, and what helps. */
static void test_routes(void **state)
{
    struct subnet_route others[4] = {{.node = "n3"}, {.node = "n3"}, {.node = "n4"},
        {.node = "n5", .why = "this machine reaches 10.3.0.0/24 by lan0 itself"}};
    struct agent_hub hub = {.name = "hub"};
    struct agent a = {.snapshot = sample_snapshot(2, 2),
        .hubs = {.items = {&hub}, .n = 1, .serving = &hub},
        .reconcile = {.interface = "weft0", .subnets = {.items = others, .n = 4}},
        .state = {.keeps_sources = true}};
    const struct render_input render = {.snapshot = &a.snapshot};
    struct status_input in = {.agent = &a, .render = &render, .forwards4 = 1, .forwards6 = 1};
    struct subnets *admitted = calloc(1, sizeof(*admitted));
    struct object self = sample_node(2);
    char *text;

    assert_non_null(admitted);
    self.node.routes = admitted;
    sample_put(&a.snapshot, self);

    for (unsigned i = 0; i < 4; i++)
        others[i].to = (struct ip_prefix){
            .addr = ip_addr_v4((const uint8_t[4]){10, (uint8_t)i, 0, 0}), .len = 24};
    assert_int_equal(subnets_parse(admitted, "10.9.0.0/24,fd09::/64", NULL), 0);
    assert_int_equal(subnets_parse(&a.state.routes, "10.8.0.0/24,10.9.0.0/24", NULL), 0);
    text = format_routes(&in);
    assert_string_equal(text,
        "this node is the way to 10.9.0.0/24\n"
        "this node is the way to fd09::/64\n"
        "through n3: 10.0.0.0/24, 10.1.0.0/24\n"
        "through n4: 10.2.0.0/24\n"
        "not through n5: 10.3.0.0/24, this machine reaches 10.3.0.0/24 by lan0 itself\n");
    free(text);
    assert_string_equal(find_sentence(&a, &in),
        "this node is not yet the way to 10.8.0.0/24: the hub has not admitted it; on the hub: "
        "weft node set n2 --route 10.8.0.0/24");

    a.reconcile.subnets.n = 0;
    a.state.routes.n = 0;
    in.forwards4 = 0;
    in.forwards6 = -1; /* who cannot see it does not complain */
    text = format_routes(&in);
    assert_string_equal(text, "this node is the way to fd09::/64\n");
    free(text);
    assert_string_equal(find_sentence(&a, &in),
        "this node is not yet the way to 10.9.0.0/24: this machine forwards no IPv4: sysctl -w "
        "net.ipv4.ip_forward=1, and a line in /etc/sysctl.d keeps it so");
    in.forwards4 = 1;
    (void)err_set(&a.rules.guard_fault, -EOPNOTSUPP, "no nf_tables here");
    admitted->n = 1;
    assert_string_equal(find_sentence(&a, &in),
        "this node is not yet the way to 10.9.0.0/24: the packet filter does not take its rules: "
        "no nf_tables here");
    a.rules.guard_fault = (struct err)ERR_NULL;
    assert_string_equal(find_sentence(&a, &in), "");
    findings_deinit(&a.findings);
    snapshot_deinit(&a.snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
