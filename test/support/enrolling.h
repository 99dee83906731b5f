/*
 * enrolling.h - a hub's model and enrolment without the hub, for the tests of who gets in.
 *
 * There is one network, "default", 10.42.0.0/16. A machine is a number; its key follows from it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"

/** When all happens, in seconds since 1970, unless a test says another time. */
#define ENROLLING_WALL 1790000000

struct enrolling {
    struct store *store;
    struct model model;
    struct enrol enrol;
    struct rng rng;
    struct err e;
    uint8_t next_key;
    struct token_secret secret;
    struct model_node *node; /* the last one that got in */
};

/** The store loses what it is given; until a test sets it, a lost record fails the test. */
extern bool enrolling_may_fail;

/**
 * enrolling_setup() - on the memory store
 * enrolling_setup_late() - on one whose every answer is late (sample_late.h)
 * enrolling_teardown() - of both
 */
int enrolling_setup(void **state);
int enrolling_setup_late(void **state);
int enrolling_teardown(void **state);

/** enrolling_put() - write a record past the model; @value: freed, NULL deletes. */
void enrolling_put(
    struct enrolling *f, enum record_kind kind, const char *network, const char *name, char *value);

/** enrolling_put_soon() - the same without waiting for the store. */
void enrolling_put_soon(
    struct enrolling *f, enum record_kind kind, const char *network, const char *name, char *value);

/** enrolling_add_network() - written, but not known to the model until enrolling_load(). */
void enrolling_add_network(struct enrolling *f, const char *name, const char *cidr4);

/** enrolling_new_hub_key() - of the networks that are added from now on. */
void enrolling_new_hub_key(struct enrolling *f);

/** enrolling_load() - as a hub that starts: the model from what is in the store. */
void enrolling_load(struct enrolling *f);

/** enrolling_new_token() - its secret is what is asked with from now on. */
void enrolling_new_token(struct enrolling *f, const char *network, uint32_t uses, bool ephemeral);

/** enrolling_key() - machine @n's public key. */
struct x25519_public enrolling_key(uint8_t n);

/** enrolling_proof() - the proof that machine @n makes. */
struct enrol_proof enrolling_proof(uint8_t n);

/**
 * enrolling_ask() - ask for machine @n under @name ("": none), and wait
 * @proof:	NULL: it proves nothing
 *
 * Return: as enrol_node(); @f->node and @f->e say more.
 */
int enrolling_ask(struct enrolling *f, uint8_t n, const char *name, const struct enrol_proof *proof,
    int64_t wall);

/** enrolling_enter(), enrolling_enter_at() - the same with its proof; now, or at @wall. */
int enrolling_enter(struct enrolling *f, uint8_t n, const char *name);
int enrolling_enter_at(struct enrolling *f, uint8_t n, const char *name, int64_t wall);

/** enrolling_assert_address() - of the node that got in last. */
void enrolling_assert_address(const struct enrolling *f, const char *v4, const char *v6);

/** Once on either store. */
#define ENROLLING_CASE(test)                                                                       \
    {#test " (memory)", test, enrolling_setup, enrolling_teardown, NULL},                          \
    {                                                                                              \
#test " (late)", test, enrolling_setup_late, enrolling_teardown, NULL                      \
    }
