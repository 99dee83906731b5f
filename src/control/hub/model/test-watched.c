/* test-watched.c - the last changes of a network, and readers of every speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"
#include "base/parse.h"
#include "base/secret.h"
#include "hub/model/watched.h"
#include "mesh/object/object.h"

#define N_OBJECTS 900
#define N_READERS 8

/* An object that may be gone, and come again under its name. */
struct thing {
    struct watched_change change;
    char name[16];
    bool exists;
};

static struct watched_network net;
static struct thing things[N_OBJECTS];

static int enter(void **state)
{
    watched_network_init(&net, 0);
    for (unsigned i = 0; i < N_OBJECTS; i++) {
        things[i] = (struct thing){.exists = false};
        list_init(&things[i].change.link);
        (void)snprintf(things[i].name, sizeof(things[i].name), "n%u", i);
    }
    return 0;
}

static int leave(void **state)
{
    watched_network_deinit(&net);
    watched_network_deinit(&net);
    return 0;
}

static void put(unsigned i, uint64_t revision)
{
    things[i].exists = true;
    watched_add(&net, &things[i].change, &node_kind, things[i].name, revision);
}

static void drop(unsigned i, uint64_t revision)
{
    things[i].exists = false;
    list_remove(&things[i].change.link);
    watched_add_gone(&net, &node_kind, things[i].name, revision);
}

/* A reader that knows, of each object, what it was told: the serial of a change, 0: it is gone. */
struct reader {
    uint64_t cursor;
    uint64_t known[N_OBJECTS];
    uint64_t revision; /* of its last line */
};

static void read_once(struct reader *rd)
{
    const struct watched_change *items[WATCHED_READ_MAX];
    uint64_t end;
    size_t n = watched_read(&net, &rd->cursor, items, &end);

    assert_true(n <= WATCHED_READ_MAX);
    assert_true(n == 0 || items[0]->revision >= rd->revision);
    for (size_t i = 0; i < n; i++) {
        uint64_t number;

        assert_true(i == 0 || items[i]->serial > items[i - 1]->serial);
        assert_true(items[i]->serial <= net.ready);
        assert_int_equal(
            parse_u64(&number, items[i]->name + 1, 0, N_OBJECTS - 1, "a name", NULL), 0);
        if (!items[i]->is_gone)
            rd->known[number] = items[i]->serial;
        else if (!things[number].exists)
            rd->known[number] = 0;
    }
    if (end != 0)
        rd->revision = end;
    else if (n > 0)
        rd->revision = items[n - 1]->revision;
}

static void assert_knows_all(struct reader *rd)
{
    while (rd->cursor != net.ready)
        read_once(rd);
    for (unsigned i = 0; i < N_OBJECTS; i++)
        assert_int_equal(rd->known[i], things[i].exists ? things[i].change.serial : 0);
}

/* Each reader reads as often as its number says, the first one at every change; in the end all know
 * the same. Who begins at a revision lacks nothing either. */
static void test_readers(void **state)
{
    static struct reader readers[N_READERS];
    static struct reader late;
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    uint64_t revision = 1;

    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = rng_u32(&rng) % N_OBJECTS;

        revision += rng_u32(&rng) % 3 == 0;
        if (things[i].exists && rng_u32(&rng) % 2)
            drop(i, revision);
        else
            put(i, revision);
        /* What is not ready is not read. */
        if (round % 3 == 0)
            net.ready = net.serial;
        for (unsigned k = 0; k < N_READERS; k++)
            if (round % (1u << (2 * k)) == 0)
                read_once(&readers[k]);
        if (round == 15000)
            late = readers[0];
    }
    net.ready = net.serial;
    assert_true(watched_find(&net, late.revision, &late.cursor));
    for (unsigned k = 0; k < N_READERS; k++)
        assert_knows_all(&readers[k]);
    assert_knows_all(&late);
}

/* Those who begin at different places read the same changes from the next multiple on. */
static void test_same_ends(void **state)
{
    struct reader one = {.cursor = 3};
    struct reader two = {.cursor = 100};

    for (unsigned i = 0; i < 3 * WATCHED_READ_MAX; i++)
        put(i % 7 == 0 ? 7 : i, 1);
    net.ready = net.serial;
    read_once(&one);
    read_once(&two);
    assert_int_equal(one.cursor, WATCHED_READ_MAX);
    assert_int_equal(two.cursor, WATCHED_READ_MAX);
    read_once(&one);
    assert_int_equal(one.cursor, 2 * WATCHED_READ_MAX);
}

/* Of more objects that are gone, the oldest are forgotten; those that there are never are. */
static void test_bounded(void **state)
{
    uint64_t cursor = 0;

    put(0, 1);
    for (unsigned i = 0; i < WATCHED_GONE_MAX; i++)
        watched_add_gone(&net, &node_kind, "x", 2 + i / 2);
    net.ready = net.serial;
    assert_int_equal(net.forgotten_serial, 0);
    assert_true(watched_find(&net, 1, &cursor));
    assert_int_equal(cursor, 0);
    for (unsigned i = 0; i < 3; i++)
        watched_add_gone(&net, &node_kind, "x", 1 + WATCHED_GONE_MAX);
    net.ready = net.serial;
    assert_int_equal(net.n_gone, WATCHED_GONE_MAX);
    assert_int_equal(net.forgotten_serial, 4);
    assert_false(watched_find(&net, 2, &cursor));
    /* The second change of that revision is there, and the first one is not. */
    assert_false(watched_find(&net, 3, &cursor));
    assert_true(watched_find(&net, 4, &cursor));
    assert_int_equal(cursor, 5);
    assert_true(watched_find(&net, 2 + WATCHED_GONE_MAX, &cursor));
    assert_int_equal(cursor, net.serial);
    put(0, 2 + WATCHED_GONE_MAX);
    assert_int_equal(net.forgotten_serial, 4);
}

/* Where more was forgotten for want of memory, what is forgotten next does not take that back. */
static void test_forgotten_stays_forgotten(void **state)
{
    uint64_t cursor = 0;

    watched_add_gone(&net, &node_kind, "x", 5);
    net.forgotten = 9;
    for (unsigned i = 0; i < WATCHED_GONE_MAX; i++)
        watched_add_gone(&net, &node_kind, "x", 10);
    net.ready = net.serial;
    assert_int_equal(net.forgotten_serial, 1);
    assert_false(watched_find(&net, 9, &cursor));
    assert_true(watched_find(&net, 10, &cursor));
}

/* What is known from before comes in any order, and is read in that of the revisions. */
static void test_sort(void **state)
{
    static struct reader rd;

    put(1, 9);
    put(2, 3);
    watched_add_gone(&net, &node_kind, "n3", 5);
    put(4, 4);
    net.forgotten = 2;
    assert_int_equal(watched_sort(&net), 0);
    net.ready = net.serial;
    assert_false(watched_find(&net, 2, &rd.cursor));
    rd = (struct reader){.known = {[2] = things[2].change.serial, [3] = 7}};
    assert_true(watched_find(&net, 4, &rd.cursor));
    read_once(&rd);
    assert_int_equal(rd.known[1], things[1].change.serial);
    assert_knows_all(&rd);
    assert_true(things[4].change.serial < things[1].change.serial);
    assert_true(things[2].change.serial < things[4].change.serial);
}

/* A network goes with its nodes: those that have changed are released first, and it has to find
 * what is gone in its list without them. */
static void test_network_goes(void **state)
{
    struct watched_node *node = calloc(1, sizeof(*node));
    const struct model_node *of = (const struct model_node *)things;
    const struct watched_change *items[WATCHED_READ_MAX];
    uint64_t cursor = 0;
    uint64_t end;

    assert_non_null(node);
    watched_node_init(node, of);
    assert_ptr_equal(node->node, of);
    watched_add_gone(&net, &node_kind, "n1", 1);
    watched_add(&net, &node->change, &node_kind, "n2", 2);
    watched_add_gone(&net, &node_kind, "n3", 3);
    watched_node_deinit(node);
    free(node);
    net.ready = net.serial;
    assert_int_equal(watched_read(&net, &cursor, items, &end), 2);
    assert_string_equal(items[1]->name, "n3");
}

/* ---- nodes ---------------------------------------------------------------------------------- */

#define N_NODES (2 * WATCHED_BLOCK_NODES + 1)

/* Every text is there, as after a snapshot. */
static void make_texts(struct watched_node *nodes)
{
    for (unsigned i = 0; i < N_NODES; i++)
        if (!nodes[i].text)
            nodes[i].text = line_new("{}", 2);
    for (size_t i = 0; i < net.n_blocks; i++)
        if (!net.blocks[i]->text)
            net.blocks[i]->text = line_new_part("{}", 2);
}

/* A change costs the text of the node, and of its block alone; so does one that comes or goes. */
static void test_blocks_of_nodes(void **state)
{
    static struct watched_node nodes[N_NODES];
    struct watched_block *first, *second;

    for (unsigned i = 0; i < N_NODES; i++) {
        watched_node_init(&nodes[i], NULL);
        assert_int_equal(watched_node_add(&net, &nodes[i]), 0);
        assert_int_equal(net.n_blocks, i / WATCHED_BLOCK_NODES + 1);
        assert_ptr_equal(nodes[i].block, net.blocks[i / WATCHED_BLOCK_NODES]);
        assert_ptr_equal(nodes[i].block->nodes[i % WATCHED_BLOCK_NODES], &nodes[i]);
    }
    first = net.blocks[0];
    second = net.blocks[1];
    make_texts(nodes);
    watched_node_changed(&nodes[3]);
    assert_true(!nodes[3].text && nodes[4].text && !first->text && second->text);
    make_texts(nodes);
    watched_add(&net, &nodes[70].change, &node_kind, "n70", 1);
    watched_node_remove(&nodes[70]);
    watched_node_remove(&nodes[70]);
    assert_true(first->text && !second->text && net.blocks[2]->text);
    assert_null(nodes[70].block);
    assert_true(list_is_empty(&net.changes));
    assert_int_equal(second->n, WATCHED_BLOCK_NODES - 1);
    /* The last one has its place. */
    assert_ptr_equal(second->nodes[70 - WATCHED_BLOCK_NODES], &nodes[2 * WATCHED_BLOCK_NODES - 1]);
    /* One of which nobody has a text, and that is in no block. */
    watched_node_changed(&nodes[70]);
    watched_node_changed(&nodes[70]);
    /* The newest block that has room takes the next one. */
    make_texts(nodes);
    assert_int_equal(watched_node_add(&net, &nodes[70]), 0);
    assert_ptr_equal(nodes[70].block, net.blocks[2]);
    assert_true(second->text && !net.blocks[2]->text);
    for (unsigned i = 0; i < N_NODES; i++) {
        watched_node_remove(&nodes[i]);
        watched_node_deinit(&nodes[i]);
        assert_null(nodes[i].text);
    }
    assert_int_equal(first->n + second->n + net.blocks[2]->n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_readers, enter, leave),
        cmocka_unit_test_setup_teardown(test_same_ends, enter, leave),
        cmocka_unit_test_setup_teardown(test_bounded, enter, leave),
        cmocka_unit_test_setup_teardown(test_forgotten_stays_forgotten, enter, leave),
        cmocka_unit_test_setup_teardown(test_sort, enter, leave),
        cmocka_unit_test_setup_teardown(test_network_goes, enter, leave),
        cmocka_unit_test_setup_teardown(test_blocks_of_nodes, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
