/*
 * job_ports.h - the ports of jobs that are isolated (a Rule of a job, mesh/object/rule.h), and what
 * they add to the table of access_table.h and to the lines of access_lines.h.
 *
 * Theory of operation. Programs that train listen at ports that the kernel chooses, and at some
 * that they are told. `weft run` says again and again at which ports of this machine the processes
 * of its job listen, and at which others do. While the rule of a job has this node as a
 * destination, a port of the job takes members of the job alone, from the moment that the kernel
 * chooses it: of those that the kernel may choose, one that nobody has spoken of yet takes members
 * of the jobs here alone. So a program of another kind that begins to listen there meanwhile is
 * reached with the next word of `weft run`.
 *
 * On a hub the ports of a job are those that its rule allows.
 *
 * Pure. Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"
#include "mesh/object/object.h"

struct err;
struct rule;
struct rule_peer;
struct snapshot;
struct str;

/** Most ports of each kind in one word of a job, and jobs that are known. */
#define JOB_PORTS_OWN_MAX    1024
#define JOB_PORTS_OTHERS_MAX 4096
#define JOB_PORTS_JOBS_MAX   32

/** Ports below are not for anybody to listen at, and no job's. */
#define JOB_PORTS_FIRST 1024

/** A job that says nothing for so long is over, or its `weft run` is: what others listen at is not
 * known by it any more. */
#define JOB_PORTS_SILENT (20 * NSEC_PER_SEC)

/** Ports, in their order, each once. */
struct job_port_list {
    uint16_t *items; /* owns */
    size_t n;
};

/** What a job says. */
struct job_ports_word {
    struct job_port_list own;    /* at which its processes listen */
    struct job_port_list others; /* at which other processes of the machine do */
    uint16_t first;              /* those that the kernel chooses */
    uint16_t last;
};

#define JOB_PORTS_WORD_NULL {.first = 0}

/** job_ports_word_deinit() - idempotent. */
void job_ports_word_deinit(struct job_ports_word *w);

/** job_ports_word_decode() - {"own": [40001], "others": [], "first": 32768, "last": 60999}. 0; or
 * negative errno with words, and @ret is untouched. */
int job_ports_word_decode(struct job_ports_word *ret, const json_t *json, struct err *e);

/** job_ports_word_encode() - a new reference; NULL: no memory. */
json_t *job_ports_word_encode(const struct job_ports_word *w);

/** job_ports_word_equal() - do both say the same? */
bool job_ports_word_equal(const struct job_ports_word *a, const struct job_ports_word *b);

struct job_ports_entry {
    char job[NAME_MAX_LEN + 1];
    struct job_ports_word word; /* owns */
    nsec_t heard_at;
};

/** All jobs that have said something here. All zero: none. */
struct job_ports {
    struct job_ports_entry items[JOB_PORTS_JOBS_MAX];
    unsigned n;
    uint16_t first; /* that the kernel chooses, as was said last; 0: not said yet */
    uint16_t last;
};

/** job_ports_deinit() - forget all. Idempotent. */
void job_ports_deinit(struct job_ports *jp);

/** job_ports_set() - what @job says. @w: taken. False: too many jobs do. */
bool job_ports_set(struct job_ports *jp, const char *job, struct job_ports_word *w, nsec_t now);

/** job_ports_tick() - forget what jobs say that are isolated here no more. */
void job_ports_tick(struct job_ports *jp, const struct snapshot *s, nsec_t now);

/** job_ports_is_here() - is @job isolated on this node, as far as its hub has said? */
bool job_ports_is_here(const struct snapshot *s, const char *job);

/** job_ports_is_any() - is any job isolated on this node? */
bool job_ports_is_any(const struct snapshot *s);

/**
 * job_ports_format() - sets and chains of the table; "jump jobs" is for packets that come to this
 *			node's own addresses and begin something
 * @close:	ends the chain of what is refused, as access_table.h has it
 */
void job_ports_format(struct str *out, const struct job_ports *jp, const struct snapshot *s,
    nsec_t now, void (*close)(struct str *out));

/** job_ports_set_fn - adds a set of the members that one of @peers is about. */
typedef void (*job_ports_set_fn)(
    struct str *out, const struct snapshot *s, const struct rule_peer *peers, unsigned n);

/**
 * job_ports_lines() - the same as lines of access_lines.h
 * @next_set:	the number of the first set that is added
 */
void job_ports_lines(struct str *out, const struct job_ports *jp, const struct snapshot *s,
    nsec_t now, unsigned next_set, job_ports_set_fn add_set);
