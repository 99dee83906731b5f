/*
 * linear_hubs.h - several hubs ask one store at random and write to it, and what they were answered
 * is held against linear.h, key by key.
 *
 * A hub is a thread with a store of its own, which the test opens; what happens to the servers
 * behind it meanwhile is the test's affair, too. A request that fails is nothing: the hub takes
 * another one in its place, until it has as many as it is to have. In the end of each run each key
 * is read once more, and whoever reads it must have been told the same by its watch.
 */
#pragma once

#include <stdint.h>

struct losing_proxy;
struct store;

/** Hubs of a test. */
#define LINEAR_HUBS 3

struct linear_hubs_rules {
    void *ctx; /* pins */

    /* Opens the store for the hub @id, 0 to LINEAR_HUBS - 1; the caller closes it. NULL: not now.
     */
    struct store *(*open)(void *ctx, unsigned id);

    /* Before every so many runs one of the hubs ends and another one begins; 0: never. */
    unsigned reopen_every;
};

/** What became of the requests. */
struct linear_hubs_figures {
    unsigned long n_runs;
    unsigned n_answered;
    unsigned n_unknown; /* commits of which nobody heard whether they were done */
    unsigned n_failed;  /* requests of which nothing was done */
    unsigned n_begun;   /* hubs */
};

/**
 * linear_hubs_run() - that many runs, of which each must be linearizable, or the test fails
 * @runs:	unless WEFT_RUNS says another number
 * @before:	called once when all hubs are there and before the first run; NULL: nothing
 * @seed:	of the first run; a failure prints its own
 *
 * WEFT_SECONDS: begin no run after that time.
 */
struct linear_hubs_figures linear_hubs_run(const struct linear_hubs_rules *rules,
    unsigned long runs, uint64_t seed, void (*before)(void *ctx));

/** linear_hubs_seed() - of WEFT_SEED, 1 without. */
uint64_t linear_hubs_seed(void);

/* ---- what is lost on the way ----------------------------------------------------------------- */

struct linear_way;

/**
 * linear_way_open() - a proxy in front of @server, HOST:PORT, that loses one request in 16, and one
 * answer
 * @spared:	a path of which nothing is lost; borrowed; NULL: none
 */
struct linear_way *linear_way_open(const char *server, uint64_t seed, const char *spared);

/** linear_way_server() - where to ask in place of the server; borrowed. */
const char *linear_way_server(const struct linear_way *way);

/** linear_way_close() - adds what was lost to @n_requests and @n_answers. Always NULL. */
struct linear_way *linear_way_close(
    struct linear_way *way, unsigned *n_requests, unsigned *n_answers);
