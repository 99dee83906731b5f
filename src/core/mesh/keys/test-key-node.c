/* test-key-node.c - what the object of a node says of its keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "mesh/keys/key_node.h"
#include "test/support/sample_keys.h"
#include "test/support/sample_mesh.h"

struct world {
    struct sample_keys keys;
    struct object o;
};

static struct world make(void)
{
    struct world w;

    sample_keys_make(&w.keys, "default", "n3");
    w.o = sample_node(3);
    return w;
}

static void test_a_node_whose_key_never_changed(void **state)
{
    struct world w = make();
    struct key_statement chain[NODE_KEYS_STATEMENTS_MAX];
    struct x25519_public other;

    assert_int_equal(key_node_chain(&w.o.node, chain), 0);
    assert_int_equal(key_node_serial(&w.o.node), 0);
    assert_null(key_node_next(&w.o.node));
    assert_false(key_node_other(&w.o.node, &other));
    sample_keys_say(&w.o.node, &w.keys, 0, -1, 0);
    assert_null(key_node_next(&w.o.node));
    assert_false(key_node_other(&w.o.node, &other));
    object_deinit(&w.o);
}

/* From its announcement to the end of a change, and the one after it. */
static void test_the_course_of_a_change(void **state)
{
    struct world w = make();
    struct object before = sample_node(3);
    struct key_statement chain[NODE_KEYS_STATEMENTS_MAX];
    struct x25519_public other;

    sample_keys_say(&before.node, &w.keys, 0, -1, 0);
    sample_keys_say(&w.o.node, &w.keys, 0, 1, 1);
    assert_int_equal(key_node_serial(&w.o.node), 1);
    assert_true(key_node_other(&w.o.node, &other));
    assert_memory_equal(&other, &w.keys.keys[1], sizeof(other));
    assert_false(key_node_follows(&before.node, &w.o.node));
    sample_keys_say(&w.o.node, &w.keys, 1, 1, 1);
    assert_true(key_node_other(&w.o.node, &other));
    assert_memory_equal(&other, &w.keys.keys[0], sizeof(other));
    assert_true(key_node_follows(&before.node, &w.o.node));
    sample_keys_say(&w.o.node, &w.keys, 1, -1, 1);
    assert_null(key_node_next(&w.o.node));
    assert_false(key_node_other(&w.o.node, &other));
    assert_true(key_node_follows(&before.node, &w.o.node));
    sample_keys_say(&w.o.node, &w.keys, 2, -1, 2);
    assert_false(key_node_follows(&before.node, &w.o.node));
    assert_int_equal(key_node_chain(&w.o.node, chain), 2);
    assert_int_equal(chain[0].serial, 1);
    assert_int_equal(chain[1].serial, 2);
    object_deinit(&w.o);
    object_deinit(&before);
}

/* What cannot be read breaks the chain, and what comes after it is one of its own. */
static void test_what_cannot_be_read(void **state)
{
    struct world w = make();
    struct key_statement chain[NODE_KEYS_STATEMENTS_MAX];
    struct x25519_public other;

    sample_keys_say(&w.o.node, &w.keys, 1, 1, 1);
    assert_int_equal(node_keys_add(w.o.node.keys, "AAAA"), 0);
    assert_int_equal(key_node_chain(&w.o.node, chain), 0);
    assert_false(key_node_other(&w.o.node, &other));
    assert_int_equal(key_node_serial(&w.o.node), 0);
    assert_int_equal(node_keys_add(w.o.node.keys, w.keys.statements[1]), 0);
    assert_int_equal(key_node_chain(&w.o.node, chain), 1);
    assert_int_equal(chain[0].serial, 2);
    object_deinit(&w.o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_whose_key_never_changed),
        cmocka_unit_test(test_the_course_of_a_change),
        cmocka_unit_test(test_what_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
