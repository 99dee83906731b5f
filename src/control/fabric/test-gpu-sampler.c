/* test-gpu-sampler.c - a sample by a driver that the test plays, and by a recorded machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "fabric/gpu_sampler.h"
#include "fabric/nvml.h"
#include "test/support/machines.h"

#define GIB (1ull << 30)

/* ---- a driver ------------------------------------------------------------------------------- */

#define N 2

/* What it says of its GPUs, which are the addresses of their entries. */
static struct fake {
    int init;
    unsigned n;
    bool has_events;
    unsigned n_xids; /* of the second GPU: so many come at the third turn */
    unsigned n_waits;
    unsigned n_turns;
    unsigned n_freed;
    unsigned lost_at; /* at this turn all are lost; 0: never */
    struct fake_gpu {
        int answer;
        unsigned bus;
        unsigned use;
        unsigned long long used;
        unsigned long long ecc;
    } gpus[N];
} fake;

static struct gpu_sample sample;

static int fake_init(void)
{
    return fake.init;
}

static int fake_shutdown(void)
{
    return NVML_OK;
}

static int fake_version(char *ret, unsigned cap)
{
    (void)snprintf(ret, cap, "550.54\x1b");
    return NVML_OK;
}

static int fake_count(unsigned *ret)
{
    *ret = fake.n;
    return NVML_OK;
}

static int fake_device(unsigned index, void **ret)
{
    *ret = &fake.gpus[index];
    return NVML_OK;
}

static int fake_pci(void *device, struct nvml_pci *ret)
{
    const struct fake_gpu *g = device;

    ret->bus = g->bus;
    return NVML_OK;
}

static int fake_name(void *device, char *ret, unsigned cap)
{
    memset(ret, 'n', cap - 1);
    ret[cap - 1] = '\0';
    return NVML_OK;
}

static int fake_use(void *device, struct nvml_use *ret)
{
    const struct fake_gpu *g = device;

    if (fake.lost_at > 0 && fake.n_turns >= fake.lost_at)
        return NVML_GPU_LOST;
    ret->gpu = g->use + fake.n_turns % 2 * 2;
    return g->answer;
}

static int fake_memory(void *device, struct nvml_memory *ret)
{
    const struct fake_gpu *g = device;

    *ret = (struct nvml_memory){.total = 80 * GIB, .used = g->used};
    return g->answer;
}

static int fake_ecc(void *device, int type, int counter, unsigned long long *ret)
{
    const struct fake_gpu *g = device;

    assert_int_equal(type, NVML_UNCORRECTED);
    assert_int_equal(counter, NVML_VOLATILE);
    *ret = g->ecc;
    return g->answer == NVML_OK && g->ecc == 77 ? 3 : g->answer; /* 3: it has no ECC */
}

static int fake_events_new(void **ret)
{
    *ret = &fake;
    return fake.has_events ? NVML_OK : 3;
}

static int fake_events_add(void *device, unsigned long long types, void *set)
{
    assert_ptr_equal(set, &fake);
    assert_int_equal(types, NVML_XID);
    return NVML_OK;
}

static int fake_events_wait(void *set, struct nvml_event *ret, unsigned timeout_ms)
{
    fake.n_waits++;
    if (fake.n_turns < 3 || fake.n_xids == 0)
        return NVML_TIMED_OUT;
    *ret = (struct nvml_event){.device = &fake.gpus[1], .type = NVML_XID, .data = 70 + fake.n_xids};
    fake.n_xids--;
    return NVML_OK;
}

static int fake_events_free(void *set)
{
    fake.n_freed++;
    return NVML_OK;
}

static const struct nvml driver = {.init = fake_init,
    .shutdown = fake_shutdown,
    .driver_version = fake_version,
    .count = fake_count,
    .device = fake_device,
    .pci = fake_pci,
    .name = fake_name,
    .use = fake_use,
    .memory = fake_memory,
    .ecc = fake_ecc,
    .events_new = fake_events_new,
    .events_add = fake_events_add,
    .events_wait = fake_events_wait,
    .events_free = fake_events_free};

static int set_up(void **state)
{
    fake = (struct fake){.n = N,
        .has_events = true,
        .gpus = {{.bus = 0x3b, .use = 50, .used = GIB - 1}, {.bus = 0x5e, .use = 200}}};
    return 0;
}

static bool count_turn(void *ctx)
{
    fake.n_turns++;
    return true;
}

static void take(const struct nvml *nvml)
{
    static const struct gpu_pace pace = {.turn_ms = 0, .turns = 4, .turns_used = 6};
    char root[MACHINES_PATH_MAX];
    struct tree t = {.root = root};

    machines_unpack("../counters/gpus", root);
    gpu_sample_take(&sample, nvml, &t, &pace, 0, count_turn, NULL);
    machines_remove(root);
}

static void test_gpus(void **state)
{
    fake.gpus[1].ecc = 5;
    take(&driver);
    assert_int_equal(sample.driver, GPU_DRIVER_OK);
    assert_string_equal(sample.version, "550.54?");
    assert_int_equal(sample.n_gpus, 2);
    assert_string_equal(sample.gpus[0].bus, "0000:3b:00.0");
    assert_string_equal(sample.gpus[1].bus, "0000:5e:00.0");
    assert_int_equal(strlen(sample.gpus[0].name), GPU_NAME_MAX - 1);
    assert_true(sample.gpus[0].has_numa && sample.gpus[0].numa == 1);
    assert_false(sample.gpus[1].has_numa);
    /* The mean; and never more than all. */
    assert_int_equal(sample.gpus[0].use, 51);
    assert_int_equal(sample.gpus[1].use, 100);
    assert_int_equal(sample.gpus[0].memory, 80 * GIB);
    assert_int_equal(sample.gpus[0].memory_used, GIB - 1);
    assert_true(sample.gpus[1].has_ecc && sample.gpus[1].ecc == 5);
    assert_int_equal(sample.n_lines, 4);
    /* No program uses them: the look is short. */
    assert_int_equal(fake.n_turns, 4);
    assert_int_equal(fake.n_freed, 1);
}

static void test_what_a_gpu_does_not_have(void **state)
{
    fake.gpus[0].ecc = 77;
    take(&driver);
    assert_false(sample.gpus[0].has_ecc);
    assert_false(sample.gpus[0].is_lost);
    assert_true(sample.gpus[1].has_ecc);
    fake.gpus[0].answer = NVML_GPU_LOST;
    take(&driver);
    assert_true(sample.gpus[0].is_lost);
    assert_false(sample.gpus[0].has_use);
    assert_false(sample.gpus[1].is_lost);
}

/* It is looked for longer while programs use them, and until something happens. */
static void test_faults(void **state)
{
    fake.gpus[0].used = GIB;
    take(&driver);
    assert_int_equal(fake.n_turns, 10);
    assert_int_equal(sample.gpus[1].n_xids, 0);
    (void)set_up(NULL);
    fake.gpus[0].used = GIB;
    fake.n_xids = GPU_XIDS_MAX + 3;
    take(&driver);
    assert_int_equal(fake.n_turns, 4);
    assert_int_equal(sample.gpus[0].n_xids, 0);
    assert_int_equal(sample.gpus[1].n_xids, GPU_XIDS_MAX);
    assert_int_equal(sample.gpus[1].xids[0], 70 + GPU_XIDS_MAX + 3);
    assert_int_equal(fake.n_xids, 0);
    (void)set_up(NULL);
    fake.gpus[0].used = GIB;
    fake.lost_at = 6;
    take(&driver);
    assert_int_equal(fake.n_turns, 6);
    assert_true(sample.gpus[0].is_lost && sample.gpus[1].is_lost);
}

static void test_a_driver_without_events(void **state)
{
    struct nvml older = driver;

    fake.has_events = false;
    fake.gpus[0].used = GIB;
    take(&driver);
    assert_int_equal(fake.n_waits, 0);
    assert_int_equal(fake.n_turns, 4);
    older.events_wait = NULL;
    older.name = NULL;
    older.ecc = NULL;
    older.use = NULL;
    older.memory = NULL;
    take(&older);
    assert_int_equal(sample.driver, GPU_DRIVER_OK);
    assert_string_equal(sample.gpus[0].name, "");
    assert_false(sample.gpus[0].has_ecc || sample.gpus[0].has_use || sample.gpus[0].memory != 0);
}

static void test_a_driver_that_does_not_answer(void **state)
{
    static const struct {
        int r;
        enum gpu_driver driver;
        const char *why;
    } cases[] = {
        {NVML_NOT_LOADED, GPU_DRIVER_ABSENT, "it is not loaded"},
        {NVML_NO_LIBRARY, GPU_DRIVER_ABSENT, "a library of it is not there"},
        {NVML_MISMATCH, GPU_DRIVER_MISMATCH,
            "its library and what the kernel has loaded are of two versions"},
        {NVML_NO_PERMISSION, GPU_DRIVER_FAILED, "it may not be asked from here"},
        {999, GPU_DRIVER_FAILED, "NVML answers with the error 999"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fake.init = cases[i].r;
        take(&driver);
        assert_int_equal(sample.driver, cases[i].driver);
        assert_string_equal(sample.why, cases[i].why);
        assert_int_equal(sample.n_gpus, 0);
        assert_int_equal(fake.n_turns, 0);
    }
}

static bool want_no_more(void *ctx)
{
    return false;
}

static void test_nobody_wants_it(void **state)
{
    static const struct gpu_pace pace = {.turn_ms = 100000, .turns = 4};
    const struct tree nowhere = {.root = "/nowhere"};

    gpu_sample_take(&sample, &driver, &nowhere, &pace, 0, want_no_more, NULL);
    assert_int_equal(fake.n_waits, 0);
    assert_int_equal(sample.n_lines, 0);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static struct gpu_line_count before[GPU_LINES_MAX];
static struct gpu_line_count now[GPU_LINES_MAX];

static unsigned read_lines(const char *machine, struct gpu_line_count ret[static GPU_LINES_MAX])
{
    char root[MACHINES_PATH_MAX];
    struct tree t = {.root = root};
    unsigned n;

    machines_unpack(machine, root);
    n = gpu_lines_read(&t, ret);
    machines_remove(root);
    return n;
}

static void test_lines(void **state)
{
    assert_int_equal(read_lines("../counters/gpus", now), 4);
    /* The default route leads over a VLAN on a bond of two. */
    assert_string_equal(now[0].line.name, "eth0");
    assert_true(now[0].line.has_numa && now[0].line.numa == 0 && !now[0].line.is_fabric);
    assert_int_equal(now[0].rate, 25000 * 125000ull);
    assert_int_equal(now[0].sent, 1000);
    assert_int_equal(now[0].received, 2000);
    assert_string_equal(now[1].line.name, "eth1");
    assert_false(now[1].line.has_numa);
    assert_int_equal(now[1].rate, 0);
    assert_string_equal(now[2].line.name, "mlx5_0/1");
    assert_true(now[2].line.is_fabric && now[2].line.has_numa && now[2].line.numa == 1);
    assert_int_equal(now[2].rate, 50000000000ull);
    assert_int_equal(now[2].sent, 4000);
    assert_int_equal(now[2].received, 12000);
    assert_string_equal(now[3].line.name, "rdmap0/1");
    assert_int_equal(now[3].sent, 7);
    assert_int_equal(read_lines("../counters/ipv6", now), 1);
    assert_string_equal(now[0].line.name, "eth2");
    assert_int_equal(now[0].rate, 1000 * 125000);
}

static void test_how_full_lines_are(void **state)
{
    unsigned n = read_lines("../counters/gpus", before);

    memcpy(now, before, sizeof(now));
    now[0].received += 25000 * 125000ull; /* half of two seconds */
    now[0].sent += 1;
    now[2].sent += UINT64_C(1) << 60;
    now[3].sent -= 7; /* it was set back */
    sample.n_lines = 0;
    gpu_lines_compare(&sample, before, n, now, n, 2000);
    assert_int_equal(sample.n_lines, 4);
    assert_true(sample.lines[0].has_use);
    assert_int_equal(sample.lines[0].use, 50);
    assert_false(sample.lines[1].has_use);
    assert_int_equal(sample.lines[2].use, 100);
    assert_int_equal(sample.lines[3].use, 0);
    sample.n_lines = 0;
    gpu_lines_compare(&sample, before, 1, now, n, 2000);
    assert_true(sample.lines[0].has_use && !sample.lines[2].has_use);
    sample.n_lines = 0;
    gpu_lines_compare(&sample, before, n, now, n, 999);
    assert_false(sample.lines[0].has_use);
}

/* ---- the kernel's log ----------------------------------------------------------------------- */

static void test_the_log_of_the_kernel(void **state)
{
    static const char *const records[] = {
        "4,1,1000,-;NVRM: Xid (PCI:0000:3b:00): 48, x\n",
        "4,2,2000,-;NVRM: Xid (PCI:0000:3b:00): 79, x\n",
        "4,3,2001,-;something else\n",
        "4,4,2002,-;NVRM: Xid (PCI:0000:ff:00): 74, x\n",
        "4,5,2003,-;NVRM: Xid (PCI:0000:5e:00): 31, x\n",
    };
    int fds[2];

    take(&driver);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++)
        assert_int_equal(
            write(fds[1], records[i], strlen(records[i])), (ssize_t)strlen(records[i]));
    gpu_kmsg_read(&sample, fds[0], 1001);
    assert_int_equal(sample.gpus[0].n_xids, 1);
    assert_int_equal(sample.gpus[0].xids[0], 79);
    assert_int_equal(sample.gpus[1].n_xids, 1);
    assert_int_equal(sample.gpus[1].xids[0], 31);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(test_gpus),
        TEST(test_what_a_gpu_does_not_have),
        TEST(test_faults),
        TEST(test_a_driver_without_events),
        TEST(test_a_driver_that_does_not_answer),
        TEST(test_nobody_wants_it),
        TEST(test_lines),
        TEST(test_how_full_lines_are),
        TEST(test_the_log_of_the_kernel),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
