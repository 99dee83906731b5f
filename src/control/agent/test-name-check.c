/* test-name-check.c - names are asked for by a thread, and a resolver that is silent knows none. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/node_names.h"
#include "base/err.h"
#include "os/clock.h"

/* A resolver that this test is: it waits at a gate, and knows "taken" only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_open;
static bool is_dead;
static unsigned n_waiting;
static unsigned n_asked;
static char asked[64]; /* the names, each with a blank behind */

static enum name_found resolver(const struct name_query *q, struct ip_addr *ret_where)
{
    enum name_found found = NAME_FOUND_NOBODY;
    size_t len;

    (void)pthread_mutex_lock(&lock);
    n_waiting++;
    len = strlen(asked);
    (void)snprintf(asked + len, sizeof(asked) - len, "%s ", q->name);
    (void)pthread_cond_broadcast(&changed);
    while (!is_open)
        (void)pthread_cond_wait(&changed, &lock);
    n_waiting--;
    n_asked++;
    if (is_dead)
        found = NAME_FOUND_SILENT;
    else if (strcmp(q->name, "taken") == 0)
        found = NAME_FOUND_SOMEBODY;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    if (found == NAME_FOUND_SOMEBODY)
        *ret_where = q->address4;
    return found;
}

static void set_gate(bool open, bool dead)
{
    (void)pthread_mutex_lock(&lock);
    is_open = open;
    is_dead = dead;
    n_asked = 0;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void wait_counter(const unsigned *counter, unsigned n)
{
    (void)pthread_mutex_lock(&lock);
    while (*counter < n)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

/* The thread takes an answer in a moment after the resolver has given it. */
static enum name_verdict settled(struct name_check *c, const char *name, struct ip_addr *where)
{
    enum name_verdict v;

    do
        v = name_check_ask(c, name, clock_now(), where);
    while (v == NAME_VERDICT_PENDING);
    return v;
}

static const struct name_query queries[] = {
    {.name = "free", .address4 = {{1}}}, {.name = "taken", .address4 = {{2}}}};

static void test_verdicts(void **state)
{
    const struct name_query three[] = {{.name = "third"}, queries[1], queries[0]};
    struct name_query moved = queries[1];
    struct name_check *c = NULL;
    struct ip_addr where = {{0}};

    set_gate(false, false);
    assert_int_equal(name_check_new(&c, resolver, NULL), 0);
    assert_true(name_check_want(c, queries, 2));
    wait_counter(&n_waiting, 1);
    /* Nothing is known while it is being asked ... */
    assert_int_equal(name_check_ask(c, "taken", clock_now(), &where), NAME_VERDICT_PENDING);
    assert_int_equal(name_check_ask(c, "free", clock_now(), &where), NAME_VERDICT_PENDING);
    assert_int_equal(name_check_ask(c, "other", clock_now(), &where), NAME_VERDICT_PENDING);
    /* ... but who does not answer for seconds knows nothing. */
    assert_int_equal(
        name_check_ask(c, "taken", clock_now() + 3 * NSEC_PER_SEC, &where), NAME_VERDICT_FREE);
    set_gate(true, false);
    assert_int_equal(settled(c, "taken", &where), NAME_VERDICT_ELSEWHERE);
    assert_int_equal(where.b[0], 2);
    assert_int_equal(settled(c, "free", &where), NAME_VERDICT_FREE);
    /* When there are more, only these are asked for. */
    assert_true(name_check_want(c, three, 3));
    assert_int_equal(settled(c, "third", &where), NAME_VERDICT_FREE);
    assert_int_equal(settled(c, "free", &where), NAME_VERDICT_FREE);
    assert_string_equal(asked, "free taken third ");
    /* What is known stays known while the list changes; a node with another address is asked for.
     */
    set_gate(false, false);
    where.b[0] = 0;
    assert_true(name_check_want(c, &queries[1], 1));
    assert_int_equal(name_check_ask(c, "taken", clock_now(), &where), NAME_VERDICT_ELSEWHERE);
    assert_int_equal(where.b[0], 2);
    assert_int_equal(name_check_ask(c, "free", clock_now(), &where), NAME_VERDICT_PENDING);
    moved.address6.b[0] = 7;
    assert_true(name_check_want(c, &moved, 1));
    assert_int_equal(name_check_ask(c, "taken", clock_now(), &where), NAME_VERDICT_PENDING);
    set_gate(true, false);
    assert_int_equal(settled(c, "taken", &where), NAME_VERDICT_ELSEWHERE);
    set_gate(false, false);
    moved.address4.b[0] = 7;
    assert_true(name_check_want(c, &moved, 1));
    assert_int_equal(name_check_ask(c, "taken", clock_now(), &where), NAME_VERDICT_PENDING);
    set_gate(true, false);
    assert_null(name_check_free(c));
}

static void test_silence(void **state)
{
    struct name_check *c = NULL;
    struct ip_addr where;

    set_gate(true, true);
    assert_int_equal(name_check_new(&c, resolver, NULL), 0);
    assert_true(name_check_want(c, queries, 2));
    wait_counter(&n_asked, 2);
    assert_int_equal(settled(c, "taken", &where), NAME_VERDICT_FREE);
    assert_null(name_check_free(c));
    assert_null(name_check_free(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
