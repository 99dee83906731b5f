/* test-gpu.c - what is found of a machine's GPUs, from one sample after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health/gpu.h"

#define AT  1790000000
#define GIB ((uint64_t)1 << 30)

static struct gpu_watch watch;
static struct gpu_sample sample;
static struct findings found;
static int64_t at;

static struct gpu make_gpu(const char *bus, uint32_t numa)
{
    struct gpu g = {.has_use = true,
        .has_ecc = true,
        .has_numa = true,
        .use = 95,
        .numa = numa,
        .memory = 80 * GIB,
        .memory_used = 60 * GIB};

    (void)snprintf(g.bus, sizeof(g.bus), "%s", bus);
    (void)snprintf(g.name, sizeof(g.name), "NVIDIA H100");
    return g;
}

/* A machine of two GPUs that is well: one at each NUMA node, and a fabric port at each. */
static int set_up(void **state)
{
    findings_deinit(&found);
    memset(&watch, 0, sizeof(watch));
    at = AT;
    sample = (struct gpu_sample){.driver = GPU_DRIVER_OK,
        .version = "550.54.15",
        .ms = 45000,
        .n_gpus = 2,
        .n_lines = 3,
        .lines = {{.name = "eth0", .has_numa = true, .numa = 0, .has_use = true, .use = 40},
            {.name = "mlx5_0/1", .is_fabric = true, .has_numa = true, .has_use = true, .use = 50},
            {.name = "mlx5_1/1", .is_fabric = true, .has_numa = true, .numa = 1}}};
    sample.gpus[0] = make_gpu("0000:3b:00.0", 0);
    sample.gpus[1] = make_gpu("0000:5e:00.0", 1);
    return 0;
}

static int tear_down(void **state)
{
    findings_deinit(&found);
    return 0;
}

/* What is found after the next sample: the codes, each with a blank behind it. */
static const char *look(void)
{
    static char codes[256];
    size_t len = 0;

    gpu_watch_take(&watch, &sample, at);
    findings_look(&found, "a");
    gpu_find(&watch, "a", &found, at);
    findings_done(&found, "a", NULL, NULL);
    at += 60;
    codes[0] = '\0';
    for (size_t i = 0; i < found.n; i++)
        len += (size_t)snprintf(
            codes + len, sizeof(codes) - len, "%s ", finding_kinds[found.items[i]->code].code);
    return codes;
}

static const char *text(void)
{
    return found.n > 0 ? found.items[0]->text : "";
}

static void test_well(void **state)
{
    findings_look(&found, "a");
    gpu_find(&watch, "a", &found, AT);
    assert_int_equal(found.n, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(look(), "");
}

/* Nor is anything found of a machine that has no GPU, whatever stands in the way. */
static void test_no_driver(void **state)
{
    static const enum gpu_driver drivers[] = {GPU_DRIVER_ABSENT, GPU_DRIVER_FAILED};

    for (unsigned i = 0; i < 2; i++) {
        sample = (struct gpu_sample){.driver = drivers[i], .why = "there is no library of it"};
        assert_string_equal(look(), "");
        assert_string_equal(look(), "");
    }
}

static void test_a_gpu_that_is_gone(void **state)
{
    assert_string_equal(look(), "");
    sample.gpus[1].is_lost = true;
    /* What else is known of it follows from that. */
    sample.gpus[1].ecc = 3;
    sample.gpus[1].numa = 7;
    sample.gpus[1].xids[0] = 79;
    sample.gpus[1].n_xids = 1;
    assert_string_equal(look(), "WEFT-GPU-001 ");
    assert_string_equal(
        text(), "0000:5e:00.0 (NVIDIA H100) of a is gone: the driver reaches it no more.");
    sample.n_gpus = 0;
    assert_string_equal(look(), "WEFT-GPU-001 ");
    assert_string_equal(text(), "0000:3b:00.0 (NVIDIA H100), 0000:5e:00.0 (NVIDIA H100) of a are "
                                "gone: the driver reaches them no more.");
    assert_int_equal(found.items[0]->since, AT + 60);
    (void)set_up(NULL);
    assert_string_equal(look(), "");
}

static void test_many_gpus(void **state)
{
    for (unsigned i = 2; i < GPU_MAX; i++) {
        char bus[GPU_BUS_MAX];

        (void)snprintf(bus, sizeof(bus), "0000:%02x:00.0", 0x80 + i);
        sample.gpus[i] = make_gpu(bus, 0);
    }
    sample.n_gpus = GPU_MAX;
    assert_string_equal(look(), "");
    sample.n_gpus = 0;
    assert_string_equal(look(), "WEFT-GPU-001 ");
    assert_non_null(strstr(text(), ", 0000:83:00.0 (NVIDIA H100) and 28 more of a are gone"));
}

static void test_the_driver_is_gone(void **state)
{
    assert_string_equal(look(), "");
    sample = (struct gpu_sample){.driver = GPU_DRIVER_ABSENT, .why = "it is not loaded"};
    assert_string_equal(look(), "WEFT-GPU-002 ");
    assert_string_equal(
        text(), "The driver of the GPUs of a, version 550.54.15, is gone: it is not loaded.");
    /* What is old says nothing. */
    findings_look(&found, "a");
    gpu_find(&watch, "a", &found, watch.at + GPU_SAMPLE_FOR_S + 1);
    findings_done(&found, "a", NULL, NULL);
    assert_int_equal(found.n, 0);
    sample.driver = GPU_DRIVER_FAILED;
    assert_string_equal(look(), "WEFT-GPU-002 ");
}

static void test_the_driver_is_silent(void **state)
{
    sample = (struct gpu_sample){.driver = GPU_DRIVER_SILENT, .why = "it hangs"};
    /* Once may be by chance. */
    assert_string_equal(look(), "");
    assert_string_equal(look(), "WEFT-GPU-002 ");
    assert_string_equal(text(), "The driver of the GPUs of a does not answer: it hangs.");
    (void)set_up(NULL);
    assert_string_equal(look(), "");
    sample.driver = GPU_DRIVER_SILENT;
    assert_string_equal(look(), "");
}

static void test_the_driver_was_changed(void **state)
{
    assert_string_equal(look(), "");
    (void)snprintf(sample.version, sizeof(sample.version), "555.42");
    assert_string_equal(look(), "WEFT-GPU-003 ");
    assert_non_null(strstr(text(), "from version 550.54.15 to 555.42 while"));
    sample.version[0] = '\0';
    assert_string_equal(look(), "WEFT-GPU-003 ");
    at += GPU_CHANGED_FOR_S;
    assert_string_equal(look(), "");
    sample.driver = GPU_DRIVER_MISMATCH;
    assert_string_equal(look(), "WEFT-GPU-003 ");
    assert_non_null(strstr(text(), "no new program gets a GPU"));
}

static void test_memory_errors(void **state)
{
    sample.gpus[0].ecc = 2;
    assert_string_equal(look(), "WEFT-GPU-004 ");
    assert_non_null(strstr(text(), "loaded: 0000:3b:00.0 (2)."));
    /* They are what it has reported. */
    sample.gpus[0].xids[0] = 48;
    sample.gpus[0].xids[1] = 63;
    sample.gpus[0].n_xids = 2;
    assert_string_equal(look(), "WEFT-GPU-004 ");
    sample.gpus[0].ecc = 0;
    assert_string_equal(look(), "WEFT-GPU-005 WEFT-GPU-006 ");
    sample.gpus[0].has_ecc = false;
    sample.gpus[0].ecc = 9;
    assert_string_equal(look(), "WEFT-GPU-005 WEFT-GPU-006 ");
}

static void test_faults(void **state)
{
    sample.gpus[0].xids[0] = 74;
    sample.gpus[0].n_xids = 1;
    assert_string_equal(look(), "WEFT-GPU-005 ");
    assert_string_equal(text(),
        "GPUs of a have reported faults in the last hour: 0000:3b:00.0 Xid 74 (an error of "
        "NVLink).");
    sample.gpus[0].n_xids = 0;
    sample.gpus[1].xids[0] = 31;
    sample.gpus[1].xids[1] = 4711;
    sample.gpus[1].n_xids = 2;
    assert_string_equal(look(), "WEFT-GPU-005 WEFT-GPU-006 ");
    assert_string_equal(found.items[1]->text,
        "GPUs of a have reported faults in the last hour: 0000:5e:00.0 Xid 31 (a program has used "
        "memory that it does not have), 0000:5e:00.0 Xid 4711.");
    sample.gpus[1].n_xids = 0;
    at += GPU_XID_FOR_S - 180;
    assert_string_equal(look(), "WEFT-GPU-005 WEFT-GPU-006 ");
    assert_string_equal(look(), "WEFT-GPU-006 ");
    assert_string_equal(look(), "");
    assert_int_equal(watch.n_xids, 0);
}

static void test_more_faults_than_are_kept(void **state)
{
    for (unsigned i = 0; i < 2 * GPU_XIDS_KEPT; i++) {
        sample.gpus[0].xids[0] = 1000 + i;
        sample.gpus[0].n_xids = 1;
        gpu_watch_take(&watch, &sample, at);
    }
    assert_int_equal(watch.n_xids, GPU_XIDS_KEPT);
    assert_string_equal(look(), "WEFT-GPU-006 ");
    assert_non_null(strstr(text(), "Xid 1003 and 60 more."));
}

static void test_distance(void **state)
{
    /* Where there is a fabric, it matters, and nothing else. */
    sample.lines[2].numa = 0;
    assert_string_equal(look(), "WEFT-GPU-007 ");
    assert_string_equal(text(),
        "GPUs of a are at another NUMA node than all its network cards that matter: 0000:5e:00.0 "
        "(node 1); mlx5_0/1 (node 0), mlx5_1/1 (node 0).");
    sample.lines[0].numa = 1;
    assert_string_equal(look(), "WEFT-GPU-007 ");
    sample.n_lines = 1;
    assert_string_equal(look(), "WEFT-GPU-007 ");
    assert_non_null(strstr(text(), "0000:3b:00.0 (node 0); eth0 (node 1)."));
    /* What is not known is not far. */
    sample.lines[0].has_numa = false;
    assert_string_equal(look(), "");
    sample.lines[0].has_numa = true;
    sample.gpus[0].has_numa = false;
    assert_string_equal(look(), "");
    sample.n_lines = 0;
    sample.gpus[0].has_numa = true;
    assert_string_equal(look(), "");
}

static void test_gpus_that_wait_for_the_line(void **state)
{
    sample.gpus[0].use = 70;
    sample.gpus[1].use = 88;
    sample.lines[0].use = 90;
    assert_string_equal(look(), "");
    assert_string_equal(look(), "WEFT-GPU-008 ");
    assert_string_equal(text(), "The GPUs of a that programs use work 79 % of the time, while eth0 "
                                "carries 90 % of its rate.");
    sample.lines[0].use = 89;
    assert_string_equal(look(), "");
    /* The fullest counts. */
    sample.lines[1].use = 97;
    assert_string_equal(look(), "");
    assert_string_equal(look(), "WEFT-GPU-008 ");
    assert_non_null(strstr(text(), "mlx5_0/1 carries 97 %"));
    sample.gpus[0].use = 72;
    assert_string_equal(look(), "");
    /* Those that no program uses do not wait. */
    sample.gpus[0].use = sample.gpus[1].use = 0;
    sample.gpus[0].memory_used = sample.gpus[1].memory_used = GIB - 1;
    assert_string_equal(look(), "");
    assert_string_equal(look(), "");
}

/* ---- from outside --------------------------------------------------------------------------- */

static void test_there_and_back(void **state)
{
    static struct gpu_sample again;
    struct err e = ERR_NULL;
    json_t *json;

    sample.gpus[1] =
        (struct gpu){.bus = "0000:5e:00.0", .is_lost = true, .n_xids = 2, .xids = {79, 0}};
    json = gpu_sample_encode(&sample);
    assert_int_equal(gpu_sample_decode(&again, json, &e), 0);
    json_decref(json);
    assert_memory_equal(again.gpus[0].bus, sample.gpus[0].bus, sizeof(again.gpus[0].bus));
    assert_string_equal(again.version, sample.version);
    assert_int_equal(again.n_gpus, 2);
    assert_int_equal(again.n_lines, 3);
    assert_int_equal(again.gpus[0].memory_used, 60 * GIB);
    assert_true(again.gpus[0].has_numa && again.gpus[0].has_use && again.gpus[0].has_ecc);
    assert_false(again.gpus[1].has_numa || again.gpus[1].has_use || again.gpus[1].has_ecc);
    assert_true(again.gpus[1].is_lost);
    assert_int_equal(again.gpus[1].xids[0], 79);
    assert_true(again.lines[1].is_fabric && !again.lines[2].has_use);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"[]", "sample: is not a JSON object"},
        {"{}", "\"driver\" is missing"},
        {"{\"driver\": \"odd\"}", "\"driver\" is \"odd\", and one of absent, ok, mismatch,"},
    };
    static struct gpu_sample s;
    struct err e = ERR_NULL;
    json_t *json;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json = json_loads(cases[i].text, 0, NULL);
        assert_true(gpu_sample_decode(&s, json, &e) < 0);
        assert_non_null(strstr(err_text(&e), cases[i].words));
        json_decref(json);
    }
    json = gpu_sample_encode(&sample);
    (void)json_object_set_new(
        json_array_get(json_object_get(json, "gpus"), 1), "use", json_integer(101));
    assert_true(gpu_sample_decode(&s, json, &e) < 0);
    assert_non_null(strstr(err_text(&e), "an entry of \"gpus\": \"use\""));
    json_decref(json);
    json = gpu_sample_encode(&sample);
    (void)json_object_set_new(
        json_array_get(json_object_get(json, "gpus"), 0), "xids", json_pack("[s]", "79"));
    assert_true(gpu_sample_decode(&s, json, &e) < 0);
    assert_non_null(strstr(err_text(&e), "\"xids\""));
    json_decref(json);
    json = gpu_sample_encode(&sample);
    (void)json_object_del(json_array_get(json_object_get(json, "lines"), 0), "fabric");
    assert_true(gpu_sample_decode(&s, json, &e) < 0);
    assert_non_null(strstr(err_text(&e), "an entry of \"lines\""));
    assert_int_equal(s.n_gpus, 0);
    json_decref(json);
}

static void test_the_log_of_the_kernel(void **state)
{
    static const struct {
        const char *record;
        const char *bus; /* NULL: it is none */
        uint32_t xid;
        uint64_t us;
    } cases[] = {
        {"4,1234,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen "
         "off the bus.\n SUBSYSTEM=pci\n",
            "0000:3b:00.0", 79, 98765432},
        {"3,7,5,-,caller=T1;NVRM: Xid (0002:81:00): 13, Graphics Exception", "0002:81:00.0", 13, 5},
        {"4,1,2,c;NVRM: Xid (PCI:00000001:3B:1F): 48, x", "0001:3b:1f.0", 48, 2},
        {"4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 100000, x", NULL, 0, 0},
        {"4,1,2,-;NVRM: Xid (PCI:0000:3b): 48", NULL, 0, 0},
        {"4,1,2,-;NVRM: Xid (PCI:0000:100:00): 48", NULL, 0, 0},
        {"4,1,2,-;NVRM: Xid (PCI:0000:3b:00): -4", NULL, 0, 0},
        {"4,1;NVRM: Xid (PCI:0000:3b:00): 48", NULL, 0, 0},
        {"x,1,2,-;NVRM: Xid (PCI:0000:3b:00): 48", NULL, 0, 0},
        {"4,1,2,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module", NULL, 0, 0},
        /* What a program writes there has a newline before it, or stands in a field. */
        {"4,1,2,-;hello\n NVRM: Xid (PCI:0000:3b:00): 48", NULL, 0, 0},
        {"", NULL, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char bus[GPU_BUS_MAX] = "";
        uint32_t xid = 0;
        uint64_t us = 0;
        bool is_one = gpu_xid_parse(cases[i].record, strlen(cases[i].record), bus, &xid, &us);

        if (is_one != (cases[i].bus != NULL))
            fail_msg("%s", cases[i].record);
        assert_string_equal(bus, cases[i].bus ? cases[i].bus : "");
        assert_int_equal(xid, cases[i].xid);
        assert_int_equal(us, cases[i].us);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_well),
        TEST(test_no_driver),
        TEST(test_a_gpu_that_is_gone),
        TEST(test_many_gpus),
        TEST(test_the_driver_is_gone),
        TEST(test_the_driver_is_silent),
        TEST(test_the_driver_was_changed),
        TEST(test_memory_errors),
        TEST(test_faults),
        TEST(test_more_faults_than_are_kept),
        TEST(test_distance),
        TEST(test_gpus_that_wait_for_the_line),
        TEST(test_there_and_back),
        TEST(test_what_is_refused),
        TEST(test_the_log_of_the_kernel),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
