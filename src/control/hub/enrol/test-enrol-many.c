/* test-enrol-many.c - many who come at once, and those who try again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/enrol/enrol.h"
#include "test/support/enrolling.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_late.h"

static void test_limit_on_failures(void **state)
{
    struct enrolling *f = *state;
    struct enrol_request rq = {.key = enrolling_key(1)};
    struct enrol_proof proof = enrolling_proof(1);
    struct ip_addr from;
    struct ip_addr neighbour;
    struct ip_addr other;
    nsec_t now = NSEC_PER_SEC;

    assert_int_equal(ip_addr_parse(&from, "2001:db8::1", NULL), 0);
    assert_int_equal(ip_addr_parse(&neighbour, "2001:db8::2", NULL), 0);
    assert_int_equal(ip_addr_parse(&other, "2001:db8:1::1", NULL), 0);
    for (int i = 0; i < GUESSES_BURST; i++)
        assert_int_equal(
            sample_enrol_node(&f->enrol, &rq, NULL, &from, now, ENROLLING_WALL, &f->node, &f->e),
            ENROL_E_DENIED);
    enrolling_new_token(f, "default", 1, false);
    rq.secret = f->secret;
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, now, ENROLLING_WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &neighbour, now, ENROLLING_WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    now += GUESSES_EACH - 1;
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, now, ENROLLING_WALL, &f->node, &f->e),
        ENROL_E_TOO_OFT);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, now + 1, ENROLLING_WALL, &f->node, &f->e),
        0);
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, &proof, &other, now, ENROLLING_WALL, &f->node, &f->e), 0);
}

/* ---- many at once, on a store that is late, and loses answers ---- */

#define MANY 200

struct many {
    struct enrolling *f;
    unsigned n_answers;
    unsigned n_in;
    unsigned n_denied;
    unsigned n_unsure; /* who may ask again */
};

static void on_one(void *ctx, int r, const struct model_node *node, const struct err *e)
{
    struct many *m = ctx;

    m->n_answers++;
    m->n_in += r == 0;
    m->n_denied += r == ENROL_E_DENIED;
    m->n_unsure += r == -EAGAIN || r == -EIO;
    assert_true(r == 0 || r == ENROL_E_DENIED || r == -EAGAIN || r == -EIO);
    if (r == 0)
        assert_ptr_equal(model_find_key(node->net, &node->spec.key), node);
}

/* The machine with key @n asks; it is answered later, unless it is known. */
static void ask_soon(struct many *m, unsigned n, const char *name)
{
    struct enrolling *f = m->f;
    struct enrol_request rq = {.secret = f->secret, .key = enrolling_key((uint8_t)n)};
    struct enrol_proof proof = enrolling_proof((uint8_t)n);
    struct audit_by by = {.actor = "stranger"};
    const struct model_node *node = NULL;
    int r;

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    r = enrol_node(
        &f->enrol, &rq, &proof, &by, NSEC_PER_SEC, ENROLLING_WALL, on_one, m, &node, &f->e);
    if (r != 0 || node)
        on_one(m, r, node, &f->e);
}

/* Each number once, and the network's cursor is behind all of them. */
static void check_numbers(struct enrolling *f)
{
    struct model_network *net = model_find_network(&f->model, "default");

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct node *spec = &model_node_at(net, i)->spec;

        assert_ptr_equal(model_find_address(net, &spec->address4), model_node_at(net, i));
        assert_true(ipam_number(&net->spec.cidr4, &spec->address4) < net->ipam.next);
    }
}

static void test_many_at_once(void **state)
{
    struct enrolling *f = *state;
    struct many m = {.f = f};

    /* Fewer uses than machines, and each machine asks twice before it is answered. */
    enrolling_new_token(f, "default", MANY - 20, false);
    for (unsigned i = 0; i < MANY; i++) {
        ask_soon(&m, i + 1, "");
        ask_soon(&m, i + 1, "");
    }
    assert_int_equal(m.n_in, 0);
    store_wait(f->store);
    assert_int_equal(m.n_answers, 2 * MANY);
    assert_int_equal(m.n_in, 2 * (MANY - 20));
    assert_int_equal(m.n_denied, 2 * 20);
    assert_int_equal(model_find_network(&f->model, "default")->nodes.n, MANY - 20);
    check_numbers(f);
}

/* What the store loses costs no use and no address twice, and whoever asks again gets in once. */
static void test_lost_answers(void **state)
{
    struct enrolling *f = *state;
    struct many m = {.f = f};
    char name[16];

    enrolling_new_token(f, "default", MANY, false);
    sample_late_set_loss(f->store, 3);
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 0; i < MANY; i++) {
            (void)snprintf(name, sizeof(name), "gpu-%u", i);
            ask_soon(&m, i + 1, name);
            /* Others change the same keys. */
            if (i % 50 == 0)
                enrolling_put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(2 + i, 1 + i));
        }
    store_wait(f->store);
    assert_true(m.n_unsure > 0);
    sample_late_set_loss(f->store, 0);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "gpu-%u", i);
        ask_soon(&m, i + 1, name);
    }
    store_wait(f->store);
    assert_int_equal(model_find_network(&f->model, "default")->nodes.n, MANY);
    assert_int_equal(m.n_answers, 21 * MANY);
    assert_int_equal(m.n_denied, 0);
    /* All uses are used, and none too often. */
    assert_int_equal(enrolling_enter(f, MANY + 1, ""), ENROL_E_DENIED);
}

static void test_too_many_wait(void **state)
{
    struct enrolling *f = *state;
    struct many m = {.f = f};

    enrolling_new_token(f, "default", 3000, false);
    for (unsigned i = 0; i < ENROL_WAITING_MAX + 10; i++)
        ask_soon(&m, 1 + i % 250, "");
    assert_int_equal(m.n_unsure, 10);
    assert_non_null(strstr(f->e.text, "1024 machines wait"));
    store_wait(f->store);
    assert_int_equal(m.n_answers, ENROL_WAITING_MAX + 10);
    assert_int_equal(m.n_in, ENROL_WAITING_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ENROLLING_CASE(test_limit_on_failures),
        ENROLLING_CASE(test_many_at_once),
        ENROLLING_CASE(test_too_many_wait),
        cmocka_unit_test_setup_teardown(
            test_lost_answers, enrolling_setup_late, enrolling_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
