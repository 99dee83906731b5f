/*
 * test-tune-machine.c - settings of a network namespace are changed, and are what they were again.
 *
 * Without root, or a namespace of its own, the tests that change something are skipped.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "os/file.h"
#include "os/nic.h"
#include "os/sysctl.h"
#include "test/support/netns.h"
#include "tune/tune_machine.h"

struct place {
    char dir[64];
    char state[80];
    char boot_file[96];
    char saved[96];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/weft-tune-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->state, sizeof(p->state), "%s/node", p->dir);
    (void)snprintf(p->saved, sizeof(p->saved), "%s/" TUNE_SAVED, p->state);
    (void)snprintf(p->boot_file, sizeof(p->boot_file), "%s/sysctl.d/90-weft.conf", p->dir);
    *state = p;
    return 0;
}

static int remove_place(void **state)
{
    struct place *p = *state;
    char path[96];

    (void)unlink(p->boot_file);
    (void)unlink(p->saved);
    (void)rmdir(p->state);
    (void)snprintf(path, sizeof(path), "%s/sysctl.d", p->dir);
    (void)rmdir(path);
    (void)rmdir(p->dir);
    free(p);
    return 0;
}

/* This program has a network namespace of its own. */
static bool is_alone;

/* May settings be changed here? Those of the namespace may, without harm to the machine. */
static bool may_change(void)
{
    return is_alone && geteuid() == 0 && sysctl_check("net.ipv4.tcp_rmem") == 0;
}

static struct tune_facts gather(double rate_bps)
{
    struct tune_facts f = {.source = "as the test says"};

    tune_gather(&f);
    f.rate_bps = rate_bps;
    f.rtt_s = 0.1;
    f.is_userspace = true;
    /* Of a fresh namespace that is the only one. */
    f.n_devices = 0;
    tune_gather_device(&f, "lo");
    /* As it would be seen of a network card that does not merge. */
    (void)snprintf(f.merging_device, sizeof(f.merging_device), "lo");
    f.devices[0].has_gro = true;
    /* Those are the machine's where this is no namespace of its own. */
    for (unsigned s = 0; s < TUNE_SETTING_N; s++)
        if (strncmp(tune_names[s], "net.core.", strlen("net.core.")) == 0)
            f.is_fixed[s] = true;
    return f;
}

static void assert_now(enum tune_setting s, const char *value)
{
    char now[TUNE_VALUE_MAX];

    assert_int_equal(sysctl_read(tune_names[s], now, sizeof(now)), 0);
    assert_string_equal(now, value);
}

/* Does the loopback, of which that alone can be set here, have it on? */
static bool merges(void)
{
    bool is_on = false;

    assert_int_equal(nic_get_feature("lo", tune_knob_names[TUNE_GRO_FORWARDING], &is_on), 0);
    return is_on;
}

static void test_gather(void **state)
{
    struct tune_facts f = gather(1e9);

    assert_true(f.now[TUNE_TCP_RMEM][0] >= '0' && f.now[TUNE_TCP_RMEM][0] <= '9');
    assert_true(f.now[TUNE_CONGESTION][0] != '\0');
    assert_int_equal(f.n_devices, 1);
    assert_string_equal(f.devices[0].now[TUNE_RING_RX], "");
}

static void test_apply_and_undo(void **state)
{
    const struct place *at = *state;
    struct tune_facts f = gather(10e9);
    struct tune_facts after;
    struct tune_saved restored;
    struct err e = ERR_NULL;
    struct tune_plan p;
    char *text;

    if (!may_change())
        skip();
    tune_plan_make(&p, &f);
    assert_true(p.items[TUNE_TCP_RMEM].changes);
    assert_int_equal(tune_apply(&p, &f, at->state, at->boot_file, &e), 0);
    assert_now(TUNE_TCP_RMEM, p.items[TUNE_TCP_RMEM].wanted);
    assert_true(merges());
    assert_int_equal(statefile_read(at->boot_file, 4096, &text, NULL, NULL), 0);
    assert_non_null(strstr(text, p.items[TUNE_TCP_RMEM].wanted));
    free(text);
    /* Once more there is nothing to be done; and for a faster line what was first there is kept. */
    after = gather(10e9);
    tune_plan_make(&p, &after);
    assert_int_equal(p.n_changes, 0);
    assert_int_equal(tune_apply(&p, &after, at->state, at->boot_file, &e), 0);
    after = gather(20e9);
    tune_plan_make(&p, &after);
    assert_true(p.n_changes > 0);
    assert_int_equal(tune_apply(&p, &after, at->state, at->boot_file, &e), 0);
    /* A boot. */
    assert_int_equal(nic_set_feature("lo", tune_knob_names[TUNE_GRO_FORWARDING], false), 0);
    assert_int_equal(tune_set_again(at->state, &e), 0);
    assert_true(merges());
    assert_int_equal(tune_undo(&restored, at->state, at->boot_file, &e), 0);
    assert_true(restored.has[TUNE_TCP_RMEM]);
    for (unsigned s = 0; s < TUNE_SETTING_N; s++)
        if (f.now[s][0] != '\0')
            assert_now((enum tune_setting)s, f.now[s]);
    assert_false(merges());
    assert_int_equal(tune_set_again(at->state, &e), 0);
    assert_false(merges());
    assert_int_equal(access(at->boot_file, F_OK), -1);
    assert_int_equal(tune_undo(&restored, at->state, at->boot_file, &e), TUNE_E_NOTHING);
    assert_non_null(strstr(e.text, "has changed nothing here"));
}

/* A file of somebody else's is not overwritten, and nothing is changed. */
static void test_a_file_of_another(void **state)
{
    const struct place *at = *state;
    struct tune_facts f = gather(10e9);
    struct err e = ERR_NULL;
    struct tune_plan p;
    char dir[96];

    if (!may_change())
        skip();
    (void)snprintf(dir, sizeof(dir), "%s/sysctl.d", at->dir);
    assert_int_equal(statefile_make_dir(dir, 0755, &e), 0);
    assert_int_equal(statefile_replace(at->boot_file, "a", 1, 0644, &e), 0);
    tune_plan_make(&p, &f);
    assert_int_equal(tune_apply(&p, &f, at->state, at->boot_file, &e), -EEXIST);
    assert_non_null(strstr(e.text, "was not written by weft tune"));
    assert_now(TUNE_TCP_RMEM, f.now[TUNE_TCP_RMEM]);
    assert_int_equal(access(at->saved, F_OK), -1);
}

/* One that the kernel refuses: all are as they were, and nothing is kept. */
static void test_a_refusal(void **state)
{
    const struct place *at = *state;
    struct tune_facts f = gather(10e9);
    struct err e = ERR_NULL;
    struct tune_plan p;

    if (!may_change())
        skip();
    tune_plan_make(&p, &f);
    p.items[TUNE_CONGESTION].changes = true;
    (void)snprintf(p.items[TUNE_CONGESTION].wanted, TUNE_VALUE_MAX, "no_such_control");
    assert_true(tune_apply(&p, &f, at->state, at->boot_file, &e) < 0);
    assert_non_null(strstr(e.text, "net.ipv4.tcp_congestion_control cannot be set to no_such"));
    assert_now(TUNE_TCP_RMEM, f.now[TUNE_TCP_RMEM]);
    assert_now(TUNE_CONGESTION, f.now[TUNE_CONGESTION]);
    assert_int_equal(access(at->saved, F_OK), -1);
    assert_int_equal(access(at->boot_file, F_OK), -1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_gather),
        CASE(test_apply_and_undo),
        CASE(test_a_file_of_another),
        CASE(test_a_refusal),
    };

    static void *namespace;

    if (netns_enter(&namespace) != 0)
        return 1;
    is_alone = namespace != NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
