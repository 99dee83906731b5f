/* test-env.c - the plan for each kind of command, and the texts that are made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/text.h"
#include "train/job/env.h"

/* The person's environment: "NAME=VALUE", ends with NULL. */
static const char *look_up(void *ctx, const char *name)
{
    size_t len = strlen(name);

    for (const char *const *entry = ctx; *entry; entry++)
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    return NULL;
}

static const char *const nothing[] = {NULL};

static const struct env_rendezvous rendezvous = {.id = "train-3",
    .c10d = "10.42.0.1:29400",
    .etcd = "10.42.0.1:2379",
    .backend = "c10d",
    .endpoint = "10.42.0.1:29400"};

static struct env_facts facts_of(const struct command *c)
{
    return (struct env_facts){.command = c,
        .interface = "weft0",
        .address4 = "10.42.0.7",
        .network = "default",
        .node = "gpu-1",
        .job = "train",
        .nnodes = "4",
        .rendezvous = &rendezvous,
        .is_one_island = false,
        .has_infiniband = true,
        .torch = 204,
        .python = 311};
}

static struct env_plan plan_of(const struct env_facts *f, const char *const *theirs)
{
    struct env_plan plan;

    env_plan_make(&plan, f, look_up, (void *)theirs);
    return plan;
}

static void check_set(const struct env_plan *plan, const char *name, const char *value)
{
    const struct env_entry *entry = env_plan_find(plan, name);

    assert_non_null(entry);
    if (entry->verdict != ENV_VERDICT_SET)
        fail_msg("%s is %s: %s", name, env_verdict_names[entry->verdict], entry->note);
    assert_string_equal(entry->value, value);
    assert_true(strlen(entry->reason) > 10 && strlen(entry->source) > 3);
}

static void check_unneeded(const struct env_plan *plan, const char *name, const char *why)
{
    const struct env_entry *entry = env_plan_find(plan, name);

    assert_non_null(entry);
    assert_int_equal(entry->verdict, ENV_VERDICT_UNNEEDED);
    if (!strstr(entry->note, why))
        fail_msg("%s: \"%s\" has no \"%s\"", name, entry->note, why);
}

static void test_torchrun(void **state)
{
    struct command c = {.kind = COMMAND_KIND_TORCHRUN};
    struct env_facts f = facts_of(&c);
    struct env_plan plan = plan_of(&f, nothing);

    check_set(&plan, "NCCL_SOCKET_IFNAME", "=weft0");
    check_set(&plan, "GLOO_SOCKET_IFNAME", "weft0");
    check_set(&plan, "TP_SOCKET_IFNAME", "weft0");
    check_set(&plan, "UCX_NET_DEVICES", "weft0");
    check_set(&plan, "NCCL_IB_DISABLE", "1");
    check_set(&plan, "NCCL_SOCKET_NTHREADS", "2");
    check_set(&plan, "NCCL_NSOCKS_PERTHREAD", "8");
    check_set(&plan, "PET_NNODES", "4");
    check_set(&plan, "PET_RDZV_BACKEND", "c10d");
    check_set(&plan, "PET_RDZV_ENDPOINT", "10.42.0.1:29400");
    check_set(&plan, "PET_RDZV_ID", "train-3");
    check_set(&plan, "PET_RDZV_CONF", "is_host=false");
    check_set(&plan, "PET_LOCAL_ADDR", "10.42.0.7");
    check_set(&plan, "WEFT_NETWORK", "default");
    check_set(&plan, "WEFT_JOB", "train");
    check_set(&plan, "WEFT_NODE", "gpu-1");
    check_unneeded(&plan, "PET_MAX_RESTARTS", "fixed");
    check_unneeded(&plan, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "fixed");
    check_unneeded(&plan, "PET_TEE", "torch 1.x");
    assert_null(env_plan_find(&plan, "MASTER_ADDR"));
    assert_null(env_plan_find(&plan, "HYDRA_IFACE"));

    f.nnodes = "2:4";
    plan = plan_of(&f, nothing);
    check_set(&plan, "PET_MAX_RESTARTS", "100");
    check_set(&plan, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
    f.torch = 203;
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "torch 2.3 does not share it");
}

/* torch 1.13 on Python 3.11, as in Debian 12. */
static void test_old_torch(void **state)
{
    struct command c = {.kind = COMMAND_KIND_TORCHRUN};
    struct env_facts f = facts_of(&c);
    struct env_plan plan;

    f.torch = 113;
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "PET_LOCAL_ADDR", "torch 1.13 does not have it");
    check_set(&plan, "PET_REDIRECTS", "9:1");
    check_set(&plan, "PET_TEE", "9:1");
    f.python = 310;
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "PET_TEE", "torch 1.x");
    f.torch = 0;
    plan = plan_of(&f, nothing);
    check_set(&plan, "PET_LOCAL_ADDR", "10.42.0.7");
}

static void test_own_options_win(void **state)
{
    struct command c = {.kind = COMMAND_KIND_TORCHRUN,
        .nnodes = "2",
        .backend = "static",
        .says_rendezvous = true,
        .says_local_addr = true,
        .says_max_restarts = true};
    struct env_facts f = facts_of(&c);
    static const char *const names[] = {"PET_NNODES", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT",
        "PET_RDZV_ID", "PET_RDZV_CONF", "PET_LOCAL_ADDR", "PET_MAX_RESTARTS"};
    struct env_plan plan;

    f.rendezvous = NULL;
    plan = plan_of(&f, nothing);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        check_unneeded(&plan, names[i], "own options");
}

static void test_islands(void **state)
{
    struct command c = {.kind = COMMAND_KIND_PLAIN};
    struct env_facts f = facts_of(&c);
    struct env_plan plan;

    f.is_one_island = true;
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "NCCL_IB_DISABLE", "island");
    check_unneeded(&plan, "UCX_NET_DEVICES", "island");
    f.is_one_island = false;
    f.has_infiniband = false;
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "NCCL_IB_DISABLE", "no InfiniBand");
}

static void test_plain(void **state)
{
    static const char *const theirs[] = {"MASTER_ADDR=10.42.0.9", NULL};
    struct command c = {.kind = COMMAND_KIND_PLAIN};
    struct ranks ranks = {.is_known = true, .rank = 2, .address = "10.42.0.7", .port = 20123};
    struct env_facts f = facts_of(&c);
    struct env_plan plan = plan_of(&f, nothing);

    check_unneeded(&plan, "RANK", "keeps no ranks");
    f.ranks = &ranks;
    plan = plan_of(&f, nothing);
    check_set(&plan, "MASTER_ADDR", "10.42.0.7");
    check_set(&plan, "MASTER_PORT", "20123");
    check_set(&plan, "RANK", "2");
    check_set(&plan, "WORLD_SIZE", "4");
    /* It may start a torchrun, which reads these. */
    check_set(&plan, "PET_NNODES", "4");
    check_set(&plan, "PET_RDZV_ENDPOINT", "10.42.0.1:29400");
    /* Rank 0's store is its own: nobody says that the hub's is to be used. */
    assert_null(env_plan_find(&plan, "TORCHELASTIC_USE_AGENT_STORE"));
    /* Whoever says where rank 0 is has a store there, and means to use it. */
    f.rendezvous = NULL;
    plan = plan_of(&f, theirs);
    check_unneeded(&plan, "RANK", "MASTER_ADDR is set");
    check_unneeded(&plan, "PET_LOCAL_ADDR", "the environment says where to meet");
}

static void test_mpi(void **state)
{
    static const char *const theirs[] = {"OMPI_MCA_btl_tcp_if_exclude=docker0", NULL};
    static const char *const ports[] = {"OMPI_MCA_btl_tcp_port_min_v4=10000", NULL};
    struct command c = {.kind = COMMAND_KIND_MPI};
    struct env_facts f = facts_of(&c);
    struct env_plan plan = plan_of(&f, theirs);

    check_unneeded(&plan, "OMPI_MCA_btl_tcp_if_include", "if_exclude is set");
    check_set(&plan, "OMPI_MCA_oob_tcp_if_include", "weft0");
    check_set(&plan, "PRTE_MCA_prte_if_include", "weft0");
    check_set(&plan, "HYDRA_IFACE", "weft0");
    check_unneeded(&plan, "OMPI_MCA_btl_tcp_port_min_v4", "not known");
    f.first_port = 32768;
    f.last_port = 60999;
    plan = plan_of(&f, theirs);
    check_set(&plan, "OMPI_MCA_btl_tcp_port_min_v4", "32768");
    check_set(&plan, "OMPI_MCA_btl_tcp_port_range_v4", "28232");
    check_set(&plan, "OMPI_MCA_btl_tcp_port_min_v6", "32768");
    check_set(&plan, "OMPI_MCA_btl_tcp_port_range_v6", "28232");
    /* Who has chosen ports, for a firewall say, has reasons. */
    plan = plan_of(&f, ports);
    check_unneeded(&plan, "OMPI_MCA_btl_tcp_port_range_v4", "port_min_v4 is set");
    check_set(&plan, "OMPI_MCA_btl_tcp_port_range_v6", "28232");
}

/* NCCL goes onto the island's private network only with all of its groups; a script may ask. */
static void test_island_lan(void **state)
{
    const struct command command = {.kind = COMMAND_KIND_TORCHRUN};
    struct env_facts facts = facts_of(&command);
    struct env_plan plan = plan_of(&facts, nothing);

    check_unneeded(&plan, "WEFT_ISLAND_IFNAME", "not asked for");
    facts.island_interface = "eth0";
    plan = plan_of(&facts, nothing);
    check_set(&plan, "WEFT_ISLAND_IFNAME", "eth0");
    check_set(&plan, "NCCL_SOCKET_IFNAME", "=weft0");
    facts.is_one_island = true;
    plan = plan_of(&facts, nothing);
    check_set(&plan, "NCCL_SOCKET_IFNAME", "=eth0");
    check_set(&plan, "GLOO_SOCKET_IFNAME", "weft0");
}

static void test_theirs_stays(void **state)
{
    static const char *const theirs[] = {"NCCL_SOCKET_IFNAME=eth0", "GLOO_SOCKET_IFNAME==weft0",
        "NCCL_IB_DISABLE=0", "NCCL_SOCKET_NTHREADS=4", "TP_SOCKET_IFNAME=weft0",
        "PET_LOCAL_ADDR=192.168.1.4", NULL};
    static const struct {
        const char *name;
        enum env_verdict verdict;
    } expected[] = {
        {"NCCL_SOCKET_IFNAME", ENV_VERDICT_HURTS},
        {"GLOO_SOCKET_IFNAME", ENV_VERDICT_HURTS},
        {"NCCL_IB_DISABLE", ENV_VERDICT_HURTS},
        {"PET_LOCAL_ADDR", ENV_VERDICT_HURTS},
        {"NCCL_SOCKET_NTHREADS", ENV_VERDICT_KEPT},
        {"TP_SOCKET_IFNAME", ENV_VERDICT_KEPT},
    };
    struct command c = {.kind = COMMAND_KIND_TORCHRUN};
    struct env_facts f = facts_of(&c);
    struct env_plan plan = plan_of(&f, theirs);

    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        const struct env_entry *entry = env_plan_find(&plan, expected[i].name);

        assert_int_equal(entry->verdict, expected[i].verdict);
        assert_int_equal(strlen(entry->note) > 0, entry->verdict == ENV_VERDICT_HURTS);
        assert_string_equal(entry->value, look_up((void *)theirs, entry->name));
    }
    f.is_one_island = true;
    plan = plan_of(&f, theirs);
    assert_int_equal(env_plan_find(&plan, "NCCL_IB_DISABLE")->verdict, ENV_VERDICT_KEPT);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static const struct env_plan sample = {
    .entries = {{.name = "A",
                    .verdict = ENV_VERDICT_SET,
                    .value = "it's \"=x\"",
                    .reason = "r",
                    .source = "s"},
        {.name = "B",
            .verdict = ENV_VERDICT_HURTS,
            .value = "b",
            .note = "n",
            .reason = "r",
            .source = "s"},
        {.name = "C", .verdict = ENV_VERDICT_UNNEEDED, .note = "no", .reason = "r", .source = "s"}},
    .n = 3};

static void check_text(enum env_text form, const char *expected)
{
    struct str out = STR_NULL;

    assert_int_equal(env_text_add(&out, &sample, form), 0);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
}

static void test_texts(void **state)
{
    struct str out = STR_NULL;
    json_t *json;

    check_text(ENV_TEXT_SH, "export A='it'\\''s \"=x\"'\n");
    check_text(ENV_TEXT_K8S, "env:\n- name: A\n  value: \"it's \\\"=x\\\"\"\n");
    check_text(ENV_TEXT_SLURM, "export A=it's \"=x\"\n");
    assert_int_equal(env_text_add(&out, &sample, ENV_TEXT_JSON), 0);
    json = json_loads(str_text(&out), 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_object_size(json_object_get(json, "env")), 1);
    assert_int_equal(json_array_size(json_object_get(json, "variables")), 3);
    json_decref(json);
    str_deinit(&out);
    env_text_explain(&out, &sample);
    assert_string_equal(str_text(&out), "A=it's \"=x\"\n    r\n    source: s\n"
                                        "B=b  (yours, kept; it hurts: n)\n    r\n    source: s\n"
                                        "C is not set: no\n    r\n    source: s\n");
    str_deinit(&out);
}

static void test_the_flight_recorder(void **state)
{
    const struct command c = {.kind = COMMAND_KIND_TORCHRUN};
    static const char *const mine[] = {
        "TORCH_FR_BUFFER_SIZE=0", "TORCH_FR_DUMP_TEMP_FILE=/tmp/mine.", NULL};
    struct env_facts f = facts_of(&c);
    struct env_plan plan;

    f.flight = "/tmp/run/flight.";
    plan = plan_of(&f, nothing);
    check_set(&plan, "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
    check_set(&plan, "TORCH_NCCL_DUMP_ON_TIMEOUT", "1");
    check_set(&plan, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/tmp/run/flight.");
    check_set(&plan, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/tmp/run/flight.");
    /* Its variables have newer names. */
    plan = plan_of(&f, mine);
    check_unneeded(&plan, "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE is set");
    check_unneeded(&plan, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE is set");
    f.flight = NULL;
    f.flight_why = "the job does not meet at the hub";
    plan = plan_of(&f, nothing);
    check_unneeded(&plan, "TORCH_NCCL_TRACE_BUFFER_SIZE", "does not meet");
    check_unneeded(&plan, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "does not meet");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_old_torch),
        cmocka_unit_test(test_own_options_win),
        cmocka_unit_test(test_islands),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_mpi),
        cmocka_unit_test(test_island_lan),
        cmocka_unit_test(test_theirs_stays),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_the_flight_recorder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
