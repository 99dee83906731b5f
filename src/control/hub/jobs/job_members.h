/*
 * job_members.h - which members have come to the present run of a job, whose commands are there,
 * and what NCCL took there.
 *
 * `weft run` says by it who is missing, and whether another node of the job was lost. A command of
 * a job of fixed size says every few seconds that it is there, and once that it has ended. One that
 * has not ended and is not heard any more is lost: its machine has no power, or is starting anew,
 * or somebody has killed it.
 *
 * Members whose commands were lost in one run are awaited in the next. One of them that comes when
 * the others have ended, in that run or in a later one, is told so: else it would wait for them.
 *
 * Only who has come to a run may say that it is broken.
 *
 * A job of fixed size has as many *places* as it has nodes. A member has one as long as a command
 * of it is there, and after that until it is lost; a member whose command has ended, as long as
 * another one is there, and not any more when somebody comes after that. One that has said nothing
 * of its commands yet has its place for JOB_MEMBERS_SILENT_FOR. When a run takes the place of a
 * broken one, members whose commands were there keep their places for JOB_MEMBERS_KEPT_FOR, and so
 * do those that were there before the hub was started: their names are in the store.
 *
 * All else lives in memory. A hub that was started anew, or has taken the job over, knows of nobody
 * until they ask again, and so it does not know that somebody has not come: see @is_whole.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"

struct str;

/** A command is lost when it was not heard for three times what it has said, and this. */
#define JOB_MEMBERS_GRACE (6 * NSEC_PER_SEC)

/** Members of which it is kept what NCCL took; the others' word on that is passed over. */
#define JOB_MEMBERS_NCCL_MAX 256

/** With more members than that their commands are counted for all who ask, once in so long: each of
 * them asks every few seconds, and a count is a walk through all. */
#define JOB_MEMBERS_FEW        64
#define JOB_MEMBERS_COUNT_EACH NSEC_PER_SEC

/** How the commands were when they were counted last. */
struct job_members_count {
    json_int_t n_present;
    json_int_t n_ended;
    json_int_t n_lost; /* members */
    nsec_t silent_for; /* the longest of those that are there */
    json_t *lost;      /* owns; names, JOB_MEMBERS_NAMED_MAX at most; NULL: they were not counted */
    json_t *ended_on;  /* likewise, of members whose command has ended */
    nsec_t at;
};

/** Who has come. All zero: nobody is known. */
struct job_members {
    json_t *names;    /* owns; by name: what it says of NCCL, or true; NULL: nobody */
    json_t *commands; /* owns; by name: {COMMAND: {"heard", "due", "ended"}}, with times in ns;
                         NULL: none is known */
    json_t *awaited;  /* owns; by name, true: their commands were lost in the run before; NULL: of
                         none */
    json_t *without;  /* owns; {"run", "ended", "endedOn"}: the run before, which has ended without
                         those of @awaited; NULL: none has */
    json_t *expected; /* owns; by name, true: their commands were there in the run before, and they
                         have not come yet; NULL: none is */
    nsec_t expected_until; /* they are not waited for any longer */
    json_t *arrived;       /* owns; by name, when it has come last, ns; NULL: not known of any */
    json_t *isolated;      /* owns; by name, true: its ports of the job are for members of it alone;
                              NULL: of none */
    json_t *kept;       /* owns; by name, true: it has a place, and has not come yet; NULL: none */
    nsec_t kept_until;  /* they have their places */
    nsec_t gathered_at; /* somebody has come when nobody was there: what has ended until then has
                           nothing to do with who is there now; 0: never */
    char before[NAME_MAX_LEN + 16]; /* the run that this one has taken the place of */
    bool is_noted;                  /* job_members_names() is what is in the store */
    struct job_members_count count;
    char nnodes[16]; /* of how many nodes it is, as who came first has said; "": nobody has */
    char nnodes_by[NAME_MAX_LEN + 1]; /* and who that was */
    bool is_whole;                    /* the run began here, so that all who have come are known */
    unsigned n_nccl;
};

/** job_members_deinit() - forget all. */
void job_members_deinit(struct job_members *m);

/** job_members_begin() - the first run begins: nobody has come to it. */
void job_members_begin(struct job_members *m);

/** job_members_begin_next() - another run begins, after the one of the name @before. */
void job_members_begin_next(struct job_members *m, const char *before, nsec_t now);

/** job_members_add() - @name has come; again is fine. Without memory it is not told of. */
void job_members_add(struct job_members *m, const char *name);

/** job_members_come() - the same, and it has a place from now on. */
void job_members_come(struct job_members *m, const char *name, nsec_t now);

/** job_members_isolate() - what the job listens at on @name is for members of the job alone. */
void job_members_isolate(struct job_members *m, const char *name);

/** job_members_isolated() - the names of those, sorted; gives a reference, NULL: no memory. */
json_t *job_members_isolated(const struct job_members *m);

/** job_members_keep() - @names, as in rdzv_job_record.members, keep their places for
 * JOB_MEMBERS_KEPT_FOR. */
void job_members_keep(struct job_members *m, const char *names, nsec_t now);

/** job_members_keep_none() - the run is over: no place is kept. */
void job_members_keep_none(struct job_members *m);

/**
 * job_members_is_full() - do others than @name have all @n_nodes places?
 * @ret_names:	appended if so: "a, b, c", JOB_MEMBERS_NAMED_MAX at most, and of one that is silent
 *		for how long it still has its place
 *
 * False while none of those that have a place is there.
 */
bool job_members_is_full(const struct job_members *m, const char *name, unsigned n_nodes,
    nsec_t now, struct str *ret_names);

/**
 * job_members_names() - who has the places of a job of fixed size, when all have been taken
 * @ret:	set if true: sorted, with a space between them; "" if that does not fit
 *
 * Return: false: not all have been taken, or it is a range of nodes, or @m->is_noted.
 */
bool job_members_names(const struct job_members *m, nsec_t now, char *ret, size_t cap);

/** What a command says of itself. */
struct job_word {
    const char *command;    /* what it calls itself, as no other one does; borrowed */
    uint32_t every_seconds; /* it says so again after this time */
    bool ended;             /* it has ended, and nobody is to wait for it */
};

/** job_members_hear() - a command of @name says how it is; who says so has come. */
void job_members_hear(
    struct job_members *m, const char *name, const struct job_word *word, nsec_t now);

/**
 * job_members_hear_late() - a command of @name says of the run before that it has ended
 *
 * It counts as ended in this one if it was awaited here.
 *
 * Return: false: it is not that run, or it was not awaited.
 */
bool job_members_hear_late(struct job_members *m, const char *name, const char *run,
    const struct job_word *word, nsec_t now);

/** job_members_ended_on() - a member whose command has ended beside those that are there now, and
 * of which no other one is there; lent, NULL: none is known. */
const char *job_members_ended_on(const struct job_members *m, nsec_t now);

/** job_members_is_back() - a command of @name has ended: is another one there since, or have others
 * begun when all had ended? */
bool job_members_is_back(const struct job_members *m, const char *name, nsec_t now);

/**
 * job_members_presence() - how the commands are
 * @asker:	the member that is told
 *
 * {"present", "ended", "endedOn", "lost", "lostNodes", "silentSeconds"}: how many are there (a
 * member that says nothing of its commands counts as one), how many have ended and on which
 * members, the names of the members whose are lost and how many members these are, and the longest
 * time for which one of those that are there has not been heard. Of each kind JOB_MEMBERS_NAMED_MAX
 * are named; @asker is one of them if its own is lost. "endedWithout" is there for an @asker that
 * was awaited when nobody else is there: {"run"?, "ended", "endedOn"}, a run that has ended without
 * it, the present one where no other is named. Of many members this may be as old as
 * JOB_MEMBERS_COUNT_EACH, and nobody was silent for longer than it says.
 *
 * Return: gives a reference; NULL: no memory.
 */
json_t *job_members_presence(struct job_members *m, const char *asker, nsec_t now);

/** job_members_set_nnodes() - @name has come to a job of so many nodes, "4" or "2:4". Of those who
 * say the same number it is the first who is remembered. */
void job_members_set_nnodes(struct job_members *m, const char *name, const char *nnodes);

/**
 * job_members_are_gone() - were commands lost, and is none there any more?
 *
 * Those that are lost were killed without a word. False while members of the run before are on
 * their way to this one. Where all have ended by their own word, the last one says so of the run.
 */
bool job_members_are_gone(const struct job_members *m, nsec_t now);

/** job_members_has_others() - is a command of another member than @name there, or on its way here?
 */
bool job_members_has_others(const struct job_members *m, const char *name, nsec_t now);

/** job_members_may_be() - has @name come, or is that not known? */
bool job_members_may_be(const struct job_members *m, const char *name);

/** job_members_list() - the names, sorted; gives a reference, NULL: no memory. */
json_t *job_members_list(const struct job_members *m);

/**
 * job_members_present() - the members that have come and of which a command is there, as far as is
 * known, sorted; JOB_MEMBERS_LISTED_MAX at most. Gives a reference, NULL: no memory.
 */
json_t *job_members_present(const struct job_members *m, nsec_t now);

/** job_members_set_nccl() - what NCCL took on @name; @said: an object of text, taken. */
void job_members_set_nccl(struct job_members *m, const char *name, json_t *said);

/**
 * job_members_nccl() - what NCCL took, sorted by the node's name
 *
 * Return: a reference to an array, each of its objects with "node"; NULL: nobody has said, or no
 * memory.
 */
json_t *job_members_nccl(const struct job_members *m);
