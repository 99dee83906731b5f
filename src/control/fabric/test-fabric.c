/*
 * test-fabric.c - recorded machines: what is found of each, and what others are told of it.
 *
 * Each file test/platform/machines/NAME.tree is unpacked into a directory of its own, read as this
 * machine would be, and compared with NAME.facts. GOLDEN_REWRITE=1 writes those files anew.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/err.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "mesh/object/node_status.h"
#include "test/support/machines.h"

static void check_machine(const char *name)
{
    struct fabric_facts facts;
    struct fabric_report report;
    struct fabric_report again;
    struct err e = ERR_NULL;
    struct str out = STR_NULL;
    json_t *json;
    char *text;

    machines_read(&facts, name);
    assert_true(facts.n_claims < FABRIC_CLAIMS_MAX);
    fabric_format(&out, &facts);
    fabric_report_make(&report, &facts);
    json = fabric_report_encode(&report);
    if (fabric_report_decode(&again, json, name, &e) != 0)
        fail_msg("%s: %s", name, err_text(&e));
    text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
    str_addf(&out, "status.fabric: %s\n", text);
    machines_compare(name, "facts", str_text(&out));
    free(text);
    json_decref(json);
    str_deinit(&out);
}

static void test_machines(void **state)
{
    machines_each(check_machine);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *machine;
        enum fabric_kind kind;
    } rows[] = {
        {"p4d", FABRIC_EFA},
        {"p5", FABRIC_EFA},
        {"p5en", FABRIC_EFA},
        {"a3-high", FABRIC_TCPX},
        {"a3-mega", FABRIC_TCPXO},
        {"a3-ultra", FABRIC_GCE_RDMA},
        {"a4", FABRIC_GCE_RDMA},
        {"gvnic", FABRIC_GVNIC},
        {"azure-nd", FABRIC_INFINIBAND},
        {"on-prem-ib", FABRIC_INFINIBAND},
        {"mixed", FABRIC_INFINIBAND},
        {"container-ib", FABRIC_ETHERNET},
        {"roce", FABRIC_ROCE},
        {"marketplace-4090", FABRIC_ETHERNET},
        {"plain-vm", FABRIC_ETHERNET},
    };
    struct fabric_facts facts;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        machines_read(&facts, rows[i].machine);
        if (facts.kind != rows[i].kind)
            fail_msg("%s: %s, expected %s", rows[i].machine, fabric_kind_names[facts.kind],
                fabric_kind_names[rows[i].kind]);
    }
}

static void check_refused(enum metadata_cloud cloud, const char *text, const char *words)
{
    struct metadata_answers a = {.cloud = cloud};
    struct metadata_place place;
    struct err e = ERR_NULL;

    (void)snprintf(a.text, sizeof(a.text), "%s", text);
    assert_int_equal(metadata_decode(&place, &a, &e), -EINVAL);
    if (!strstr(e.text, words))
        fail_msg("\"%s\" has no \"%s\"", e.text, words);
}

static void test_metadata(void **state)
{
    struct metadata_answers a = {.cloud = METADATA_CLOUD_GCE,
        .text = "machine-type projects/1/machineTypes/a3-megagpu-8g\nzone projects/1/zones/z-a\n"
                "physical_host /c1/b2/h3\nunknown thing\n"};
    struct metadata_place place;

    assert_int_equal(metadata_decode(&place, &a, NULL), 0);
    assert_string_equal(place.machine, "a3-megagpu-8g");
    assert_string_equal(place.zone, "z-a");
    assert_string_equal(place.block, "c1/b2");
    assert_string_equal(place.host, "c1/b2/h3");
    assert_false(place.asked_together);
    check_refused(METADATA_CLOUD_GCE, "physical_host /c1/b2", "/CLUSTER/BLOCK/HOST");
    check_refused(METADATA_CLOUD_GCE, "physical_host /c1/b2/", "/CLUSTER/BLOCK/HOST");
    check_refused(METADATA_CLOUD_GCE, "physical_host /c1/b2/h3/x", "/CLUSTER/BLOCK/HOST");
    check_refused(METADATA_CLOUD_AWS, "group-name a\xc3\xa4", "0xc3");
    check_refused(METADATA_CLOUD_AZURE,
        "vmSize 0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
        "23456789012345678901234567890",
        "95 are allowed");
}

/* A metadata service that is switched off still leaves what AWS writes into DMI. */
static void test_without_metadata(void **state)
{
    char root[MACHINES_PATH_MAX];
    struct tree t = {.root = root};
    struct fabric_facts facts;

    machines_unpack("p4d", root);
    fabric_read(&facts, &t, FABRIC_VIEW_JOB, NULL);
    machines_remove(root);
    assert_int_equal(facts.kind, FABRIC_EFA);
    assert_string_equal(facts.place.machine, "p4d.24xlarge");
    assert_string_equal(facts.place.group, "");
}

/* The same plugin on a machine with Grace processors. */
static void test_plugin_for_arm64(void **state)
{
    static const char folder[] = "/opt/amazon/ofi-nccl/lib";
    char root[MACHINES_PATH_MAX], from[2 * MACHINES_PATH_MAX], to[2 * MACHINES_PATH_MAX];
    struct tree t = {.root = root};
    struct fabric_facts facts;

    machines_unpack("p5", root);
    (void)snprintf(from, sizeof(from), "%s%s/x86_64-linux-gnu", root, folder);
    (void)snprintf(to, sizeof(to), "%s%s/aarch64-linux-gnu", root, folder);
    assert_int_equal(rename(from, to), 0);
    fabric_read(&facts, &t, FABRIC_VIEW_JOB, NULL);
    machines_remove(root);
    assert_string_equal(
        facts.plugin, "/opt/amazon/ofi-nccl/lib/aarch64-linux-gnu/libnccl-net-ofi.so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_without_metadata),
        cmocka_unit_test(test_plugin_for_arm64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
