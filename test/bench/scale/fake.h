/*
 * fake.h - a fake node: its key, its address, and how it asks the hub.
 *
 * Threads: a node is used by one thread at a time; but it may report and begin a watch, each in any
 * thread, once it has learnt.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/content/token.h"
#include "base/addr.h"
#include "crypto/x25519.h"
#include "wire/member_proof.h"

struct fake {
    uint32_t number;
    struct x25519_secret secret;
    struct ip_addr address;            /* in the overlay */
    struct member_proof_signer signer; /* of its requests */
    pthread_mutex_t asking;            /* held while it signs a request, and until a report is
                                          answered */
    char at[ENDPOINT_TEXT_MAX];        /* where it says that it is */
    uint64_t n_reports;                /* number of the last one */
    bool is_known;                     /* the hub has taken it */
};

/** What all nodes know. Immutable once the first one asks. */
struct fake_hub {
    struct token token;
    struct endpoint udp;    /* where it is */
    struct endpoint api;    /* its public API */
    struct endpoint member; /* its API in the overlay */
    struct ssl_ctx_st *tls; /* for clients */
};

/** fake_hub_init() - from the text of a join token. Ends the program when it is none. */
void fake_hub_init(struct fake_hub *hub, const char *token);

/**
 * fake_enrol() - make a key, and become a node of the network through the hub's public API
 *
 * By TLS, with the key that the token pins, as `weft join` does; sets all of @f.
 *
 * Return: HTTP's status; 0: none was answered.
 */
int fake_enrol(struct fake *f, uint32_t number, const struct fake_hub *hub);

/** fake_learn() - ask in vain, so that the hub says which proofs it takes. False: it did not. */
bool fake_learn(struct fake *f, const struct fake_hub *hub);

/**
 * fake_report() - report as an agent does: each minute, and what has changed
 * @endpoint:	where @f is from now on; NULL: where it was, and nothing has changed
 *
 * Return: false if the hub did not take it; the next one then holds everything.
 */
bool fake_report(struct fake *f, const struct fake_hub *hub, const char *endpoint);

/** What a watch knows when it begins. */
struct fake_known {
    uint64_t boot;     /* of which run of the hub; 0: nothing */
    uint64_t revision; /* of the last event that it had */
};

/** fake_watch() - begin its watch. The socket, which does not block; -1: it does not begin. */
int fake_watch(struct fake *f, const struct fake_hub *hub, const struct fake_known *known);

/** fake_set_probes() - as client_set_probes() does for an agent. */
void fake_set_probes(int fd, unsigned idle_s);

/** fake_die() - end the program with these words. */
_Noreturn void fake_die(const char *what);
