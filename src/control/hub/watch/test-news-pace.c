/*
 * test-news-pace.c - when changed nodes are told of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hub/watch/news_pace.h"

#define NOW (100 * NSEC_PER_SEC)

static void test_few(void **state)
{
    struct news_pace p = {.told_at = NOW, .n_told = 1000};

    assert_int_equal(news_pace_due(&p, NEWS_PACE_FEW, NOW), 0);
    p.told_at = 0;
    assert_int_equal(news_pace_due(&p, 10000, NOW), 0);
}

/* The more watches, and the more nodes were told of, the longer the next ones wait. */
static void test_waits(void **state)
{
    struct news_pace p = {.told_at = 0};

    news_pace_on_told(&p, 1, NOW);
    assert_int_equal(news_pace_due(&p, 10000, NOW), NOW + 10000 * NEWS_PACE_WATCH);
    news_pace_on_told(&p, 3, NOW);
    assert_int_equal(news_pace_due(&p, 10000, NOW), NOW + 30000 * NEWS_PACE_WATCH);
    news_pace_on_told(&p, 500, NOW);
    assert_int_equal(
        news_pace_due(&p, 10000, NOW), NOW + NEWS_PACE_PATIENCE * 10000 * NEWS_PACE_WATCH);
}

/* One machine that joins is told of like any other change; one after another wait together. */
static void test_rush(void **state)
{
    struct news_pace p = {.told_at = 0};
    nsec_t alone;
    nsec_t many;

    news_pace_on_told(&p, 1, NOW);
    news_pace_on_newcomer(&p, NOW);
    alone = news_pace_due(&p, 10000, NOW);
    assert_int_equal(alone, NOW + 10000 * NEWS_PACE_WATCH);
    news_pace_on_newcomer(&p, NOW + NEWS_PACE_RUSH_GAP / 2);
    many = news_pace_due(&p, 10000, NOW + NEWS_PACE_RUSH_GAP / 2);
    assert_int_equal(many, NOW + NEWS_PACE_PATIENCE * 10000 * NEWS_PACE_WATCH);
    /* A short while after the last one it is over. */
    assert_int_equal(news_pace_due(&p, 10000, NOW + 2 * NEWS_PACE_RUSH_GAP), alone);
    news_pace_on_newcomer(&p, NOW + 5 * NEWS_PACE_RUSH_GAP);
    assert_int_equal(news_pace_due(&p, 10000, NOW + 5 * NEWS_PACE_RUSH_GAP), alone);
}

/* Of many that have come the next ones wait longer, but they are told of. */
static void test_share_of_a_rush(void **state)
{
    struct news_pace p = {.told_at = 0};
    nsec_t cost = 10000 * (NEWS_PACE_WATCH + 200 * NEWS_PACE_NODE);

    news_pace_on_newcomer(&p, NOW);
    news_pace_on_newcomer(&p, NOW);
    news_pace_on_told(&p, 200, NOW);
    assert_int_equal(news_pace_due(&p, 10000, NOW), NOW + NEWS_PACE_RUSH_SHARE * cost);
    news_pace_on_told(&p, 10000, NOW);
    assert_int_equal(news_pace_due(&p, 10000, NOW), NOW + NEWS_PACE_RUSH_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_rush),
        cmocka_unit_test(test_share_of_a_rush),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
