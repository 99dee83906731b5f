/*
 * machine.h - how a machine is, from two samples of what its kernel counts: what it throws away
 * itself, which cores, disks and fabric ports are in the way.
 *
 * What a machine loses itself is its own finding, and not that of a line. A rule needs a share of
 * all and a count: a few lost packets in a quiet minute are none.
 *
 * Pure: counts in, findings out; no clock. The samples are read by fabric/machine_sample.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "health/finding.h"

/** What the kernel counts, since its start. */
enum machine_counter {
    MACHINE_CPU_TICKS,     /* of all cores, idle ones too */
    MACHINE_CPU_IDLE,      /* of them, those that were idle or waited for a disk */
    MACHINE_THROTTLED_US,  /* that this process' control group was held back, us */
    MACHINE_HOT_EVENTS,    /* times that a core was slowed down because it was hot */
    MACHINE_BACKLOG_DROPS, /* packets that found a core's backlog full */
    MACHINE_UDP_IN,        /* datagrams taken by programs */
    MACHINE_UDP_DROPS,     /* of those that came, not taken: a socket's buffer was full */
    MACHINE_TCP_OUT,       /* segments sent */
    MACHINE_TCP_AGAIN,     /* of them, those sent again */
    MACHINE_COUNTER_N,
};

#define MACHINE_NICS_MAX  64
#define MACHINE_PORTS_MAX 64
#define MACHINE_NAME_MAX  32

/** A network interface that has a device. */
struct machine_nic {
    char name[MACHINE_NAME_MAX];
    uint64_t packets; /* both ways */
    uint64_t dropped; /* by the device or its ring, for want of room; both ways */
    uint64_t errors;  /* damaged: checksums, frames; both ways */
};

/** A port of a verbs device. */
struct machine_port {
    char name[MACHINE_NAME_MAX]; /* "mlx5_0/1" */
    bool is_active;
    uint64_t errors; /* damaged, lost or sent again; of all that the device counts */
    uint64_t downed; /* times that its link went down */
};

struct machine_sample {
    nsec_t at; /* monotonic */
    uint64_t counters[MACHINE_COUNTER_N];
    bool has[MACHINE_COUNTER_N]; /* the kernel says it */
    struct machine_nic nics[MACHINE_NICS_MAX];
    size_t n_nics;
    struct machine_port ports[MACHINE_PORTS_MAX];
    size_t n_ports;
    uint64_t disk_all;   /* bytes of the file system that has the node's state; 0: not known */
    uint64_t disk_free;  /* of them, those that are free for the daemons */
    uint64_t files_free; /* files that can still be made; only with @has_files */
    bool has_files;
};

/** Samples that are further apart than that, or nearer, say nothing together. */
#define MACHINE_APART_MIN (10 * NSEC_PER_SEC)
#define MACHINE_APART_MAX (300 * NSEC_PER_SEC)

/** What was seen since the start. All zero: nothing. */
struct machine_watch {
    struct machine_sample before;
    struct machine_sample now;
    struct machine_port best[MACHINE_PORTS_MAX]; /* each port that was ever active */
    size_t n_best;
};

/** machine_watch_take() - a new sample. */
void machine_watch_take(struct machine_watch *w, const struct machine_sample *sample);

/** machine_cpu_percent() - how much of the cores' time was used between the two samples, 0 to 100;
 * -1: not known. @w may be NULL. */
int machine_cpu_percent(const struct machine_watch *w);

/** machine_find() - add to @set what is found of the machine of node @name, by the clock @at; the
 * caller has begun the look. */
void machine_find(
    const struct machine_watch *w, const char *name, struct findings *set, int64_t at);
