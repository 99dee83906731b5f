/*
 * met.h - has a job's command met another node of the job, or has it run alone?
 *
 * A wrapper that loses the variables, a script that makes a process group of one, another job's
 * name: each lets every node train alone and end well. So `weft run` looks whether its command has
 * met another node. It has, when it has come to the job's store at the hub and is not the only one
 * of the job; or when data was exchanged by TCP with another node of the job over the overlay, or
 * over the island's private network where the job uses that (tcp_watch.h). Neither keepalives nor
 * what Weft's own programs say counts.
 *
 * Theory of operation. It is looked several times a second in the first minute, and less often
 * after that; once the command has met, never again. Who has come to the job the hub says, and
 * which addresses they have the agent: both are asked when there is something new to be judged.
 * Beside that the memory maps of the command's processes show whether it uses torch. What is not
 * seen is not judged: where the kernel does not tell, or has told more than could be taken, and
 * where the command has others run elsewhere, as by ssh or in a container.
 *
 * Any program of this machine counts that exchanges data with another node of the job while the
 * command runs, but on ports below 1024, as ssh's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/netlink/tcp_watch.h"

struct island_lan;
struct run;

/** Own addresses on the overlay and the island's network, and others that are kept apart. */
#define MET_LOCALS_MAX 16
#define MET_SEEN_MAX   256

/** What a command has shown. */
struct met {
    const struct run *run; /* pins */
    struct tcp_watch tcp;  /* owns */
    struct ip_addr locals[MET_LOCALS_MAX];
    unsigned n_locals;
    struct endpoint stores[2];         /* of the job, at the hub; port 0: none */
    struct ip_addr seen[MET_SEEN_MAX]; /* with which data was exchanged */
    unsigned n_seen;
    bool is_on;        /* it is looked */
    bool uses_store;   /* it has come to the job's store */
    bool has_met;      /* another node of the job */
    bool has_new;      /* something was seen that was not judged yet */
    bool used_torch;   /* libtorch was in the memory map of one of its processes */
    bool is_elsewhere; /* it has others run where they are not seen */
    nsec_t begun_at;
    nsec_t look_at;      /* NSEC_NEVER: not any more */
    nsec_t list_at;      /* all connections are listed again */
    nsec_t judge_at;     /* the hub and the agent are asked again */
    nsec_t report_at;    /* NSEC_NEVER: not any more */
    unsigned n_complete; /* looks in a row that have shown that all nodes have come */
};

enum met_verdict {
    MET_VERDICT_MET,     /* or it is not known */
    MET_VERDICT_ALONE,   /* it has met no other node of the job */
    MET_VERDICT_STRAYED, /* likewise, and it has used torch */
};

/**
 * met_begin() - before the command starts
 *
 * Nothing is looked at if the job does not meet at the hub, one node is enough for it, or the
 * command has met others in an earlier start.
 */
void met_begin(struct met *m, const struct run *run);

/** met_look() - look now, and say once, after a minute, whom the command has not met. Blocks while
 * the hub and the agent are asked. */
void met_look(struct met *m);

/** met_end() - the command has ended: what has it shown? Blocks for some seconds at most. */
enum met_verdict met_end(struct met *m);

/** met_deinit() - idempotent. */
void met_deinit(struct met *m);

/** met_starts_elsewhere() - does a program of that name have others run where they are not seen? */
bool met_starts_elsewhere(const char *name);

/**
 * met_is_of_member() - is it the address of a node that has come to the job?
 * @status:	of the agent
 * @members:	names; NULL: they are not known, and any node may have come
 * @island:	addresses on the island's network, of nodes by name; NULL: it is not used
 */
bool met_is_of_member(const struct ip_addr *address, const json_t *status, const json_t *members,
    const struct island_lan *island);
