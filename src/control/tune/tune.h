/*
 * tune.h - which of the kernel's settings hold a mesh back on this machine, and what they should
 * be.
 *
 * A plan has an item for each setting of the table, and for what of each network device can be set:
 * what it is now, what it should be, and why. No value is lowered. What was there before a change
 * is kept in a file (struct tune_saved), so that it can be restored exactly.
 *
 * Pure: os/sysctl.h and os/nic.h read and write.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

struct err;
struct str;

/** All settings, in the order in which they are shown: identifier, name of sysctl(8). */
#define TUNE_SETTINGS(X)                                                                           \
    X(RMEM_MAX, "net.core.rmem_max")                                                               \
    X(WMEM_MAX, "net.core.wmem_max")                                                               \
    X(TCP_RMEM, "net.ipv4.tcp_rmem")                                                               \
    X(TCP_WMEM, "net.ipv4.tcp_wmem")                                                               \
    X(BACKLOG, "net.core.netdev_max_backlog")                                                      \
    X(RESTART, "net.ipv4.tcp_slow_start_after_idle")                                               \
    X(MTU_PROBING, "net.ipv4.tcp_mtu_probing")                                                     \
    X(QDISC, "net.core.default_qdisc")                                                             \
    X(CONGESTION, "net.ipv4.tcp_congestion_control")

enum tune_setting {
#define X(id, name) TUNE_##id,
    TUNE_SETTINGS(X)
#undef X
        TUNE_SETTING_N,
};

/** The names of sysctl(8). */
extern const char *const tune_names[];

/** What is set of a network device: identifier, name as ethtool(8) has it. */
#define TUNE_KNOBS(X)                                                                              \
    X(RING_RX, "ring-rx")                                                                          \
    X(RING_TX, "ring-tx")                                                                          \
    X(GRO_FORWARDING, "rx-udp-gro-forwarding")

enum tune_knob {
#define X(id, name) TUNE_##id,
    TUNE_KNOBS(X)
#undef X
        TUNE_KNOB_N,
};

/** Their names. */
extern const char *const tune_knob_names[];

/** Most devices that are looked at. */
#define TUNE_DEVICES_MAX 4

#define TUNE_VALUE_MAX  64
#define TUNE_WHY_MAX    224
#define TUNE_SOURCE_MAX 96

/** The file in the state directory with what was there before. */
#define TUNE_SAVED "tune.json"
/** What the machine sets at each boot. */
#define TUNE_BOOT_FILE "/etc/sysctl.d/90-weft.conf"

/** A network device that packets leave by. */
struct tune_device {
    char name[IFNAMSIZ];
    char now[TUNE_KNOB_N][TUNE_VALUE_MAX]; /* "512", "on"; "": it has none that could be set */
    uint32_t max[TUNE_KNOB_N];             /* of a ring */
    bool has_gro;                          /* the kernel merges what arrives by it */
};

/** A machine and its lines. */
struct tune_facts {
    char now[TUNE_SETTING_N][TUNE_VALUE_MAX]; /* "": this machine, or network namespace, has none */
    bool is_fixed[TUNE_SETTING_N];            /* not even root can change it here */
    bool has_bbr;                             /* this kernel has BBR, or a module of it */
    bool has_fq;                              /* and the queueing discipline fq */
    double rate_bps;              /* of the line with the most under way; 0: not known */
    double rtt_s;                 /* of the same line; 0: not known */
    char source[TUNE_SOURCE_MAX]; /* of both, as words */
    double loss;     /* share of what this machine sends over a long line, 0 to 1; 0: none known */
    double loss_rtt; /* seconds; of that line */
    char loss_peer[NAME_MAX_LEN + 1]; /* its other end */
    bool is_userspace;                /* the userspace engine takes the datagrams */
    /* By that device they come so fast that they could be merged; "": not known. */
    char merging_device[IFNAMSIZ];
    unsigned merging_percent; /* of those that came right behind one of their flow: merged */
    unsigned merging_age_s;   /* since that was seen */
    struct tune_device devices[TUNE_DEVICES_MAX];
    size_t n_devices;
};

/** What is to become of a setting. */
struct tune_item {
    char wanted[TUNE_VALUE_MAX]; /* what it is now, unless @changes; "": it is not there */
    bool changes;
    char why[TUNE_WHY_MAX]; /* a clause: why it changes, or why not */
};

struct tune_plan {
    struct tune_item items[TUNE_SETTING_N];
    struct tune_item devices[TUNE_DEVICES_MAX][TUNE_KNOB_N]; /* by the devices of the facts */
    unsigned n_changes;                                      /* of all */
    unsigned n_device_changes;                               /* of devices */
};

/**
 * tune_take_measured() - which line has the most under way, and whether a long one loses
 * @f:		gets the rates and the loss; stays as it is where nothing was measured
 * @json:	what `weft preflight --json` or `weft bench --json` has printed; anything is taken
 * @own:	this node's name
 */
void tune_take_measured(struct tune_facts *f, const json_t *json, const char *own);

/** tune_take_merging() - how datagrams arrive, as the agent's status says of this node; anything is
 * taken. */
void tune_take_merging(struct tune_facts *f, const json_t *self);

/** tune_plan_make() - what should change on that machine. */
void tune_plan_make(struct tune_plan *ret, const struct tune_facts *f);

/** tune_encode() - as JSON; a new reference, NULL: no memory. */
json_t *tune_encode(const struct tune_plan *p, const struct tune_facts *f);

/** tune_format() - as a table for people. */
void tune_format(const struct tune_plan *p, const struct tune_facts *f, struct str *out);

/** Settings that were changed, as they were before. */
struct tune_saved {
    bool has[TUNE_SETTING_N];
    char before[TUNE_SETTING_N][TUNE_VALUE_MAX];
    struct tune_device devices[TUNE_DEVICES_MAX]; /* @now: before; "": it was not changed */
    size_t n_devices;
    /* What of the devices it was changed to, for the next boot; "": that was not kept. */
    char wanted[TUNE_DEVICES_MAX][TUNE_KNOB_N][TUNE_VALUE_MAX];
};

/**
 * tune_saved_add() - before @p is applied; what is saved already was there before
 *
 * Return: false: @s has other devices, and no place for these.
 */
bool tune_saved_add(struct tune_saved *s, const struct tune_plan *p, const struct tune_facts *f);

/** tune_saved_encode() - as JSON; a new reference, NULL: no memory. */
json_t *tune_saved_encode(const struct tune_saved *s);

/**
 * tune_saved_decode() - read them back
 * @ret:	untouched on failure
 *
 * Return: 0; or -EINVAL with words: a value that no such setting has, more devices than there may
 * be, or nothing that this version knows.
 */
int tune_saved_decode(struct tune_saved *ret, const json_t *json, struct err *e);

/** tune_restored_encode() - what was restored, as JSON; a new reference, NULL: no memory. */
json_t *tune_restored_encode(const struct tune_saved *s);

/** tune_restored_format() - the same as text for people. */
void tune_restored_format(const struct tune_saved *s, struct str *out);

/** tune_boot_format() - TUNE_BOOT_FILE: all that was changed, as @p has it. */
void tune_boot_format(const struct tune_saved *s, const struct tune_plan *p, struct str *out);
