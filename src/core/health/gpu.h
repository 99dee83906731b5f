/*
 * gpu.h - how the GPUs of a machine are: from what NVIDIA's driver says of them each minute, and
 * from what the machine's network lines carry meanwhile, to findings.
 *
 * A cause is found alone. Of GPUs whose driver is gone, none is gone by itself; a GPU that is gone
 * has no other fault; and what its memory counts explains what it has reported of that.
 *
 * Pure: samples in, findings out; no clock. A process of its own makes the samples
 * (fabric/gpu_sampler.h), so they are checked like all that comes from outside.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "health/finding.h"

#define GPU_MAX         32 /* of a machine; more are passed over */
#define GPU_LINES_MAX   64 /* network interfaces and fabric ports; likewise */
#define GPU_XIDS_MAX    8  /* faults that a GPU reports in one sample; likewise */
#define GPU_XIDS_KEPT   64 /* of all GPUs, for GPU_XID_FOR_S */
#define GPU_BUS_MAX     20 /* "0000:3b:00.0", with its zero */
#define GPU_NAME_MAX    64
#define GPU_VERSION_MAX 32
#define GPU_WHY_MAX     128

/** Longest sample as text. */
#define GPU_SAMPLE_MAX 65536
/** Longest time of a sample, ms. */
#define GPU_SAMPLE_MS_MAX 120000
/** A sample that is older says nothing; one is due each ten minutes at least. */
#define GPU_SAMPLE_FOR_S 900
/** A fault that a GPU has reported is said for so long. */
#define GPU_XID_FOR_S 3600
/** That the driver was changed is said for so long. */
#define GPU_CHANGED_FOR_S 3600

/** How the driver answers. */
enum gpu_driver {
    GPU_DRIVER_ABSENT,   /* there is none, or no library of it */
    GPU_DRIVER_OK,       /* it answers */
    GPU_DRIVER_MISMATCH, /* its library is of another version than what the kernel has loaded */
    GPU_DRIVER_FAILED,   /* it answers that it cannot */
    GPU_DRIVER_SILENT,   /* it has not answered in time, or the process that asks it has crashed */
    GPU_DRIVER_N,
};

/** A GPU. What is not known has no @has_. */
struct gpu {
    char bus[GPU_BUS_MAX];   /* its place, as the kernel calls it: "0000:3b:00.0" */
    char name[GPU_NAME_MAX]; /* its model; "": not known */
    bool is_lost;            /* the driver lists it, and does not reach it */
    bool has_use;
    bool has_ecc;
    bool has_numa;
    uint32_t use;         /* of the time in which it computes, %; the mean of the sample's time */
    uint32_t numa;        /* the NUMA node that it is at */
    uint64_t memory;      /* bytes; 0: not known */
    uint64_t memory_used; /* of them */
    uint64_t ecc; /* errors of its memory that cannot be corrected, since its driver began */
    uint32_t xids[GPU_XIDS_MAX]; /* faults in this time, by NVIDIA's numbers */
    unsigned n_xids;
};

/** A network line of the machine: the interface that has its default route, or a fabric port. */
struct gpu_line {
    char name[GPU_NAME_MAX]; /* "eth0", "mlx5_0/1" */
    bool is_fabric;
    bool has_numa;
    bool has_use;
    uint32_t numa;
    uint32_t use; /* of its rate, %, in the direction that carries more */
};

struct gpu_sample {
    enum gpu_driver driver;
    char version[GPU_VERSION_MAX]; /* of the driver; "": not known */
    char why[GPU_WHY_MAX];         /* why it does not answer, a clause; "": it does */
    uint32_t ms;                   /* how long it was looked */
    struct gpu gpus[GPU_MAX];
    unsigned n_gpus;
    struct gpu_line lines[GPU_LINES_MAX];
    unsigned n_lines;
};

/** gpu_sample_encode() - as gpu_sample_decode() takes it; a new reference, NULL: no memory. */
json_t *gpu_sample_encode(const struct gpu_sample *s);

/** gpu_sample_decode() - @ret: untouched on failure. 0, or -EINVAL with words; -ENOMEM. */
int gpu_sample_decode(struct gpu_sample *ret, const json_t *json, struct err *e);

/**
 * gpu_xid_parse() - a record of the kernel's log that says that a GPU has reported a fault
 * @record:	as /dev/kmsg has it: "4,1234,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, ..."
 * @ret_us:	the kernel's time of it, us since its start
 *
 * Return: false: it says something else, and nothing is set.
 */
bool gpu_xid_parse(const char *record, size_t len, char ret_bus[static GPU_BUS_MAX],
    uint32_t *ret_xid, uint64_t *ret_us);

/** gpu_xid_means() - what that number is for people; NULL: none of the common ones. */
const char *gpu_xid_means(uint32_t xid);

/** gpu_is_used() - does a program use it, by the memory that it has? */
bool gpu_is_used(const struct gpu *g);

/** A fault that was reported. */
struct gpu_xid {
    char bus[GPU_BUS_MAX];
    uint32_t xid;
    int64_t at; /* the last time, s since 1970 */
};

/** What was seen since the start. All zero: nothing. */
struct gpu_watch {
    struct gpu_sample now;
    int64_t at;                /* of @now, s since 1970; 0: there is none yet */
    struct gpu known[GPU_MAX]; /* each that the driver has ever listed */
    unsigned n_known;
    struct gpu_xid xids[GPU_XIDS_KEPT];
    unsigned n_xids;
    bool was_ok;                   /* the driver has answered once */
    char version[GPU_VERSION_MAX]; /* of the driver that answered last */
    char before[GPU_VERSION_MAX];  /* of the one before it; "": it is the first */
    int64_t changed_at;            /* when that one was gone, s since 1970 */
    unsigned n_silent;             /* samples in a row in which it was silent */
    unsigned n_waiting;            /* likewise, in which the GPUs waited for a full line */
};

/** gpu_watch_take() - a new sample, of the time @at, s since 1970. */
void gpu_watch_take(struct gpu_watch *w, const struct gpu_sample *sample, int64_t at);

/** gpu_find() - add to @set what is found of the GPUs of node @name, by the clock @at; the caller
 * has begun the look. */
void gpu_find(const struct gpu_watch *w, const char *name, struct findings *set, int64_t at);
