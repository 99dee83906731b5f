/*
 * test-changes-jobs.c - whom the jobs of a network let come, as its nodes come, change and go.
 *
 * Started as `test-hub-changes-jobs rendezvous` it is the process that is told of the members, and
 * says how many it knows; see take().
 */
#include "hub/changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/jobs/jobs.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/emulated.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_rdzv.h"

static struct sample_hub s;
static uv_timer_t wake;

static void on_wake(uv_timer_t *timer)
{
}

static struct model_network *network(void)
{
    return sample_hub_network(&s);
}

static int enter(void **state)
{
    sample_hub_begin(&s);
    jobs_start(s.hub->jobs, &s.hub->model.networks);
    (void)uv_timer_init(&s.loop, &wake);
    (void)uv_timer_start(&wake, on_wake, 2, 2);
    return 0;
}

static int leave(void **state)
{
    uv_close((uv_handle_t *)&wake, NULL);
    sample_hub_end(&s);
    return 0;
}

static void serve_behind(const char *fence, uint64_t revision)
{
    struct err e = ERR_NULL;

    if (changes_open_jobs(&s.hub->changes, network(), fence, revision, 5, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static void serve(void)
{
    serve_behind(NULL, 0);
}

/* As another hub writes it. @value: taken; NULL deletes. */
static void put(const char *key, char *value)
{
    sample_hub_write(&s, key, value);
    free(value);
}

static void write_node(const struct node *spec)
{
    const struct token_hash nobody = {0};
    char key[64];

    (void)snprintf(key, sizeof(key), "node/default/%.32s", spec->meta.name);
    put(key, record_node_encode(spec, &nobody));
}

/* So many members' addresses are known; their last bytes come to so much, those of version 4 and
 * those of version 6. */
static void expect_members(unsigned n, unsigned sum4, unsigned sum6)
{
    nsec_t deadline = clock_now() + 10 * NSEC_PER_SEC;
    struct job_counts c;

    do {
        (void)uv_run(&s.loop, UV_RUN_ONCE);
        store_wait(s.hub->store);
        c = jobs_count(s.hub->jobs).processes;
    } while ((c.n_hung_up != n || c.n_store_requests != sum4 || c.n_etcd_requests != sum6) &&
             clock_now() < deadline);
    assert_int_equal(c.n_hung_up, n);
    assert_int_equal(c.n_store_requests, sum4);
    assert_int_equal(c.n_etcd_requests, sum6);
}

static unsigned last_of(const char *name)
{
    return sample_hub_node(&s, name)->spec.address4.b[15];
}

/* Those that there are, and who comes later; a hub is none. */
static void test_members_that_come(void **state)
{
    struct node far;
    unsigned sum;

    sample_hub_add_node(&s, "aa");
    serve();
    sum = last_of("aa");
    expect_members(2, sum, sum);
    far = network()->own->spec;
    (void)snprintf(far.meta.name, sizeof(far.meta.name), "far");
    far.key.b[3] ^= 1;
    far.address4.b[15] = far.address6.b[15] = 77;
    write_node(&far);
    sample_hub_add_node(&s, "bb");
    sum += last_of("bb");
    expect_members(4, sum, sum);
    /* Nor is one that gets other addresses. */
    far.address4.b[15] = far.address6.b[15] = 78;
    write_node(&far);
    sample_hub_add_node(&s, "cc");
    sum += last_of("cc");
    expect_members(6, sum, sum);
    /* The next process is told of all of them; what the first one has said counts as well. */
    jobs_close(&network()->served->jobs, false);
    serve();
    expect_members(12, 2 * sum, 2 * sum);
}

static void test_a_member_that_moves(void **state)
{
    struct node spec;

    sample_hub_add_node(&s, "aa");
    spec = sample_hub_node(&s, "aa")->spec;
    serve();
    expect_members(2, spec.address4.b[15], spec.address6.b[15]);
    spec.address4.b[15] = spec.address6.b[15] = 77;
    write_node(&spec);
    expect_members(2, 77, 77);
    /* Another key is no other address. */
    spec.key.b[3] ^= 1;
    write_node(&spec);
    sample_hub_add_node(&s, "bb");
    expect_members(4, 77 + last_of("bb"), 77 + last_of("bb"));
}

static void test_a_member_that_goes(void **state)
{
    unsigned sum;

    sample_hub_add_node(&s, "aa");
    sample_hub_add_node(&s, "bb");
    serve();
    sum = last_of("bb");
    put("node/default/aa", NULL);
    expect_members(2, sum, sum);
}

/* Where several hubs have the store, nothing is written but by the one that serves them. */
static void test_a_fence(void **state)
{
    put("fence", strdup("{}"));
    serve_behind("fence", store_revision(s.hub->store));
    assert_int_equal(jobs_fence(&network()->served->jobs), store_revision(s.hub->store));
}

static void expect_jobs(uint64_t n)
{
    nsec_t deadline = clock_now() + 10 * NSEC_PER_SEC;

    while (jobs_count(s.hub->jobs).n_jobs != n && clock_now() < deadline) {
        (void)uv_run(&s.loop, UV_RUN_ONCE);
        store_wait(s.hub->store);
    }
    assert_int_equal(jobs_count(s.hub->jobs).n_jobs, n);
}

/* The network's jobs go with it, which is the one that there is without being asked for. */
static void test_a_network_that_goes(void **state)
{
    serve();
    expect_jobs(1);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "DELETE", "/v1/networks/default", NULL, NULL),
        204);
    expect_jobs(0);
}

/* ---- as a process ---------------------------------------------------------------------------- */

static void take(const struct rdzv_wire *m, int fd)
{
    /* Is that a member? By the last byte of its address, of version 6 and of version 4. */
    static bool are_members[2][256];
    /* How many in @n_hung_up, those last bytes in the others. */
    struct rdzv_wire counts = {.type = RDZV_WIRE_COUNTS};

    if (m->type == RDZV_WIRE_END)
        _exit(0);
    if (m->type != RDZV_WIRE_MEMBER && m->type != RDZV_WIRE_NO_MEMBER)
        return;
    are_members[ip_addr_is_v4(&m->address)][m->address.b[15]] = m->type == RDZV_WIRE_MEMBER;
    for (unsigned i = 0; i < 256; i++) {
        counts.n_hung_up += (uint64_t)are_members[0][i] + are_members[1][i];
        counts.n_etcd_requests += are_members[0][i] ? i : 0;
        counts.n_store_requests += are_members[1][i] ? i : 0;
    }
    sample_rdzv_say(&counts);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_members_that_come),
        TEST(test_a_member_that_moves),
        TEST(test_a_member_that_goes),
        TEST(test_a_fence),
        TEST(test_a_network_that_goes),
    };

    if (argc > 1 && strcmp(argv[1], "rendezvous") == 0)
        return sample_rdzv_run(take);
    if (emulated_lacks("way for a program to start itself"))
        return EMULATED_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
