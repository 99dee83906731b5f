/*
 * lost.h - a job of fixed size whose node is lost: noticing it, and waiting for the node.
 *
 * Theory of operation. torchrun of such a job cannot go on without one of its nodes, and ends on
 * the others, as it does when the script fails. What it was only the hub can say: each `weft run`
 * tells it every few seconds that its command is there, and at the end that it has ended. A command
 * that is silent and has not ended is lost: its machine is without power, starts anew, or somebody
 * has killed `weft run`. Then the others begin a new run of the job and wait in it until all are
 * there again, the node that was lost or another one in its place. A node that ends its command
 * while it waits, because a person wants it or nobody has come in time, says so in that run, and
 * then all end.
 *
 * When a command has failed, those of the other nodes may be lost without being missed yet, so
 * lost_assess() waits until each of them was heard, or is missed. That takes a few seconds.
 *
 * A hub of a version that does not know of this says nothing, and nobody counts as lost.
 *
 * All functions but lost_each_ms() ask the agent, and block.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/socket/tcp.h"
#include "train/job/rendezvous.h"

struct island_lan;
struct run;

/** What the looks since the start of the command have shown. Starts as zeroes. */
struct lost_looks {
    unsigned n_own;  /* in a row: an earlier command of this node is lost */
    unsigned n_idle; /* in a row: another node is lost, and the command has nothing to do */
    char drained[RENDEZVOUS_NAMED_MAX][NAME_MAX_LEN + 1]; /* @n_drained nodes that were so at the
                                                            last one */
    unsigned n_drained;
};

/** lost_is_watched() - is it a job that ends when one of its nodes is lost, and may begin again? */
bool lost_is_watched(const struct run *run);

/** lost_is_said() - does the command tell the hub that it is there? That of a job of fixed size
 * does. */
bool lost_is_said(const struct run *run);

/**
 * lost_each_ms() - milliseconds between two looks at what has become of the job
 *
 * The nodes of a large job look less often, so that one hub has at most some ten of these requests
 * a second of it.
 */
unsigned lost_each_ms(const struct run *run);

/**
 * lost_say() - what has become of the job's meeting; and if it is such a job, say how this command
 * is
 * @ret:	always set
 */
enum rendezvous_state lost_say(const struct run *run, bool ended, struct rendezvous_presence *ret);

/**
 * lost_is_own() - was an earlier command of this node lost with the run that this one came to?
 *
 * So it is when the machine was started anew, and the command with it, before the others have
 * noticed: the run cannot go on. It counts at the second look, since after a time without the hub
 * two commands of one machine are not heard at once.
 */
bool lost_is_own(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks);

/**
 * lost_is_idle() - does torchrun wait in vain, because a node was lost?
 * @is_idle:	it has no workers
 *
 * When its workers have failed, torchrun waits for five minutes for the other nodes to end, too,
 * and at a meeting for ten for them to come. It counts at the second look, and is said on standard
 * error.
 */
bool lost_is_idle(const struct run *run, const struct rendezvous_presence *presence, bool is_idle,
    struct lost_looks *looks);

/** lost_tell_drained() - say on standard error which nodes of the job are drained now and were not
 * before: they get no new work, and the job goes on. */
void lost_tell_drained(
    const struct run *run, const struct rendezvous_presence *presence, struct lost_looks *looks);

/**
 * lost_is_before() - lost_is_own(), before the command is started
 *
 * Says on standard error when the job's other nodes have ended without this one, which was lost.
 */
bool lost_is_before(const struct run *run);

/**
 * lost_assess() - the command has just failed: was another node lost?
 * @i:	begun; a signal ends the wait
 *
 * While the hub does not answer it is not known, and asked again for wait_lost, or a minute if that
 * is longer.
 *
 * Return: RUN_E_LOST, after a sentence on standard error that names the nodes; RUN_E_CUT_OFF: a new
 * run of the job has begun meanwhile, or another hub serves it; 0: no; or a person does not wait.
 */
int lost_assess(const struct run *run, struct interrupt *i);

/* Outcomes of lost_await(), and of again_prepare(). No outcome of run_prepare() is the same. */
#define LOST_E_AGAIN       102 /* the run has broken, or another hub serves it: prepare it again */
#define LOST_E_ALONE       103 /* not all nodes have come in time, or no hub or agent */
#define LOST_E_ENDED       104 /* another node has ended its command, and will not be there */
#define LOST_E_INTERRUPTED 105 /* a person does not wait */

/**
 * lost_await() - wait until all nodes of the job are there
 * @deadline:	monotonic
 * @i:		begun; a signal ends the wait
 *
 * Says from time to time who is missing.
 *
 * Return: 0: they are, or the hub does not say; LOST_E_ALONE or LOST_E_ENDED with words;
 * LOST_E_AGAIN or LOST_E_INTERRUPTED.
 */
int lost_await(const struct run *run, nsec_t deadline, struct interrupt *i, struct err *e);

/**
 * lost_end() - tell the hub that this node's command has ended and is not started again
 * @i:	begun, a signal ends the wait; NULL: it is told once
 *
 * While the hub is away, the others of a job of fixed size would begin again when it is back, and
 * wait for this node. So it is told again and again, for a minute.
 */
void lost_end(const struct run *run, struct interrupt *i);

/**
 * lost_give_up() - tell those that wait in lost_await() that this node's command has ended
 *
 * The run is left, so that a node that comes to it within a minute is told, too.
 */
void lost_give_up(const struct run *run);

/*
 * Says which nodes a job still waits for, and which ones were not met.
 *
 * torchrun waits for ten minutes and says nothing meanwhile. A script that makes a process group of
 * one waits for nobody, and says nothing either (met_look()).
 *
 * Those that ask the hub and the agent block for some seconds at most.
 */

/** Milliseconds from the start to the first report of who is missing. */
#define MISSING_FIRST_MS 20000

/** Who has come, and who there is. All are borrowed. */
struct missing_facts {
    json_t *present; /* names of the nodes that have come to the run */
    json_t *status;  /* of the agent, GET /v1/status */
    json_t *jobs;    /* of the network, GET /v1/jobs; NULL: not known */
    const char *job;
    const char *self; /* this node's name */
    unsigned min_nodes;
};

/** missing_format() - append which nodes have not come, and what helps: "n2: start the same command
 * there; n3 is in the job b: give all the same --job" */
void missing_format(const struct missing_facts *f, struct str *out);

/** missing_format_unmet() - append how the other nodes are, none of which was met: "n2 has started
 * it, too, and was not met; n3 has not started it" */
void missing_format_unmet(const struct missing_facts *f, struct str *out);

/**
 * missing_report() - say on standard error which nodes have not come
 *
 * Return: in how many ms it is to be called again; 0: never, because the job has enough nodes or
 * the hub is of a version that does not say.
 */
unsigned missing_report(const struct run *run);

/**
 * missing_unmet() - ask for what missing_format_unmet() says, and append it; nothing when they do
 * not answer
 *
 * Return: have enough nodes come?
 */
bool missing_unmet(const struct run *run, struct str *out);

/*
 * Has a job's command met another node of the job, or has it run alone?
 *
 * A wrapper that loses the variables, a script that makes a process group of one, another job's
 * name: each lets every node train alone and end well. So `weft run` looks whether its command has
 * met another node. It has, when it has come to the job's store at the hub and is not the only one
 * of the job; or when data was exchanged by TCP with another node of the job over the overlay, or
 * over the island's private network where the job uses that (tcp.h). Neither keepalives nor
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
    nsec_t assess_at;    /* the hub and the agent are asked again */
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
