/*
 * test-profile.c - the variables that each recorded machine gets, and NCCL's list of its own.
 *
 * NAME.env beside each test/platform/machines/NAME.tree holds the plan for a job inside one island
 * and for one that crosses islands. GOLDEN_REWRITE=1 writes those files anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "fabric/fabric.h"
#include "test/support/machines.h"
#include "train/job/env.h"
#include "train/profile/nccl_log.h"
#include "train/profile/profile.h"

/* The person's environment is the array at @ctx. */
static const char *look_up(void *ctx, const char *name)
{
    size_t len = strlen(name);

    for (char *const *entry = ctx; entry && *entry; entry++)
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    return NULL;
}

static void make_plan(struct env_plan *ret, const struct fabric_facts *fabric, bool is_one_island,
    const char *const *theirs)
{
    const struct env_facts facts = {
        .interface = "weft0",
        .address4 = "10.42.0.7",
        .is_one_island = is_one_island,
        .has_infiniband = fabric->n_devices > 0,
        .fabric = fabric,
        .theirs = (char *const *)theirs,
    };

    env_plan_make(ret, &facts, look_up, (void *)theirs);
}

static bool is_for_nccl(const struct env_entry *entry)
{
    return strncmp(entry->name, "NCCL_", 5) == 0 || strncmp(entry->name, "FI_", 3) == 0;
}

/* Everything that is set has to be known to NCCL, or to a plugin. */
static void add_plan(struct str *out, const struct env_plan *plan)
{
    static struct env_plan own;
    char note[NCCL_NOTE_MAX];

    own.n = 0;
    for (size_t i = 0; i < plan->n; i++) {
        const struct env_entry *entry = &plan->entries[i];

        if (!is_for_nccl(entry))
            continue;
        own.entries[own.n++] = *entry;
        if (entry->verdict == ENV_VERDICT_SET &&
            nccl_var_assess(entry->name, entry->value, 0, note) == NCCL_VERDICT_NOTHING)
            fail_msg("%s=%s: %s", entry->name, entry->value, note);
    }
    env_text_explain(out, &own);
}

static void check_machine(const char *name)
{
    static struct fabric_facts facts;
    static struct env_plan plan;
    struct str out = STR_NULL;

    machines_read(&facts, name);
    str_addf(&out, "profile %s\n\n== inside one island\n", profile_of(&facts)->name);
    make_plan(&plan, &facts, true, NULL);
    add_plan(&out, &plan);
    str_add(&out, "\n== across islands\n");
    make_plan(&plan, &facts, false, NULL);
    add_plan(&out, &plan);
    machines_compare(name, "env", str_text(&out));
    str_deinit(&out);
}

static void test_machines(void **state)
{
    machines_each(check_machine);
}

static void test_profiles(void **state)
{
    static const struct {
        const char *machine;
        const char *profile;
        const char *network; /* what NCCL says that it uses, as in its log */
    } rows[] = {
        {"p4d", "efa", "AWS Libfabric"},
        {"p5", "efa", "Libfabric"},
        {"p5en", "efa", "Libfabric"},
        {"a3-high", "gpudirect-tcpx", "GPUDirectTCPX_v7"},
        {"a3-mega", "gpudirect-tcpxo", "FasTrak"},
        {"a3-ultra", "gpudirect-rdma", "gIB"},
        {"a4", "gpudirect-rdma", "gIB"},
        {"gvnic", "gvnic", "Socket"},
        {"azure-nd", "infiniband-azure", "IB"},
        {"on-prem-ib", "infiniband", "IBext_v8"},
        {"mixed", "infiniband", "IB"},
        {"roce", "roce", "IB"},
        {"container-ib", "sockets", "Socket"},
        {"marketplace-4090", "sockets", "Socket"},
        {"plain-vm", "sockets", "Socket"},
    };
    static struct fabric_facts facts;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct profile *p;

        machines_read(&facts, rows[i].machine);
        p = profile_of(&facts);
        assert_string_equal(p->name, rows[i].profile);
        if (!profile_takes(p, rows[i].network))
            fail_msg("%s is not of the profile %s", rows[i].network, p->name);
        if (strcmp(rows[i].profile, "sockets") != 0 && strcmp(rows[i].profile, "gvnic") != 0)
            assert_false(profile_takes(p, "Socket"));
    }
}

/* Every row of the table, also of machines that nobody has recorded. */
static void test_table_is_known(void **state)
{
    char note[NCCL_NOTE_MAX];
    const struct profile *p;

    for (size_t i = 0; (p = profile_at(i)); i++)
        for (size_t k = 0; k < p->n_vars; k++) {
            const struct profile_var *var = &p->vars[k];

            assert_true(strlen(var->reason) > 10 && strlen(var->source) > 3);
            assert_true(!var->value != !var->make);
            if (nccl_var_assess(var->name, var->value ? var->value : "", 0, note) ==
                NCCL_VERDICT_NOTHING)
                fail_msg("%s: %s: %s", p->name, var->name, note);
        }
}

static void test_known_variables(void **state)
{
    static const struct {
        const char *name;
        const char *value;
        unsigned nccl;
        enum nccl_verdict verdict;
        const char *words;
    } rows[] = {
        {"NCCL_DEBUG", "INFO", 0, NCCL_VERDICT_FINE, ""},
        {"NCCL_MAX_CTAS", "4", 0, NCCL_VERDICT_FINE, ""},
        {"NCCL_MAX_CTAS", "4", 16, NCCL_VERDICT_NOTHING, "came with NCCL 2.17"},
        {"NCCL_MIN_NCHANNELS", "4", 0, NCCL_VERDICT_REMARK, "NCCL_MIN_CTAS"},
        {"NCCL_TREE_THRESHOLD", "0", 0, NCCL_VERDICT_NOTHING, "2.4 was the last"},
        {"NCCL_TREE_THRESHOLD", "0", 4, NCCL_VERDICT_FINE, ""},
        {"NCCL_TIMEOUT", "7200", 0, NCCL_VERDICT_NOTHING, "init_process_group"},
        {"NCCL_DYNAMIC_CHUNK_SIZE", "1", 0, NCCL_VERDICT_NOTHING, "Google's own builds"},
        {"NCCL_NET", "GoogleFastSocket", 0, NCCL_VERDICT_NOTHING, "FastSocket"},
        {"NCCL_SHM_DISABLE", "1", 0, NCCL_VERDICT_REMARK, "shared memory"},
        {"NCCL_SHM_DISABLE", "0", 0, NCCL_VERDICT_FINE, ""},
        {"NCCL_P2P_LEVEL", "LOC", 0, NCCL_VERDICT_REMARK, "by itself"},
        {"NCCL_CROSS_NIC", "0", 0, NCCL_VERDICT_REMARK, "keep to one NIC"},
        {"NCCL_CROSS_NIC", "1", 0, NCCL_VERDICT_REMARK, "a rail of its own"},
        {"NCCL_CROSS_NIC", "2", 0, NCCL_VERDICT_FINE, ""},
        {"FI_PROVIDER", "efa", 0, NCCL_VERDICT_REMARK, "by itself"},
        {"FI_EFA_TX_MIN_CREDITS", "32", 0, NCCL_VERDICT_NOTHING, "no such setting"},
        {"FI_EFA_USE_DEVICE_RDMA", "1", 0, NCCL_VERDICT_REMARK, "by themselves"},
        {"NCCL_FASTRAK_NUM_FLOWS", "2", 0, NCCL_VERDICT_FINE, ""},
        {"PATH", "/bin", 0, NCCL_VERDICT_FINE, ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char note[NCCL_NOTE_MAX] = "";

        if (nccl_var_assess(rows[i].name, rows[i].value, rows[i].nccl, note) != rows[i].verdict ||
            !strstr(note, rows[i].words))
            fail_msg("%s=%s with 2.%u: \"%s\"", rows[i].name, rows[i].value, rows[i].nccl, note);
    }
}

/* The person's own values win, and are judged. */
static void test_theirs(void **state)
{
    static const char *const theirs[] = {"NCCL_NET=Socket", "NCCL_IB_HCA=mlx5_0",
        "NCCL_IB_DISABLE=1", "NCCL_TIMEOUT=7200", "NCCL_MIN_NCHANNELS=4", "HOME=/root", NULL};
    static const struct {
        const char *name;
        enum env_verdict verdict;
        const char *words;
    } rows[] = {
        {"NCCL_NET", ENV_VERDICT_HURTS, "the fabric profile infiniband has IB here"},
        {"NCCL_IB_HCA", ENV_VERDICT_HURTS, "=mlx5_0,mlx5_1"},
        {"NCCL_IB_DISABLE", ENV_VERDICT_HURTS, "TCP instead"},
        {"NCCL_TIMEOUT", ENV_VERDICT_HURTS, "no version of NCCL"},
        {"NCCL_MIN_NCHANNELS", ENV_VERDICT_KEPT, "deprecated"},
    };
    static struct fabric_facts facts;
    static struct env_plan plan;

    machines_read(&facts, "on-prem-ib");
    make_plan(&plan, &facts, true, theirs);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct env_entry *entry = env_plan_find(&plan, rows[i].name);

        assert_non_null(entry);
        assert_int_equal(entry->verdict, rows[i].verdict);
        assert_string_equal(entry->value, look_up((void *)theirs, rows[i].name));
        if (!strstr(entry->note, rows[i].words))
            fail_msg("%s: \"%s\" has no \"%s\"", entry->name, entry->note, rows[i].words);
    }
    assert_null(env_plan_find(&plan, "HOME"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_table_is_known),
        cmocka_unit_test(test_known_variables),
        cmocka_unit_test(test_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
