/*
 * gpu_sampler.h - one sample of a machine's GPUs (health/gpu.h), from NVML and from the kernel.
 *
 * Theory of operation. NVIDIA's driver may hang or crash whoever asks it, and who has it open keeps
 * others from loading another one. So the agent asks by a process of its own, `weft gpus`, which it
 * starts each minute, and kills when it is silent (agent/node_machine.h). That asks for two
 * seconds; and where programs use the GPUs, which keep the driver from being changed anyway, for
 * most of the minute, since what the GPUs report as faults comes as events, which are only heard
 * meanwhile. Where there are no such events, the kernel's log is read, if that may be.
 *
 * While it goes on it writes an empty line again and again; at last, its sample as a line of JSON.
 */
#pragma once

#include <stdint.h>

#include "fabric/metadata.h"
#include "health/gpu.h"

struct err;
struct nvml;

/** How long it is looked. */
struct gpu_pace {
    unsigned turn_ms;    /* between two looks at what the GPUs do */
    unsigned turns;      /* looks */
    unsigned turns_used; /* more of them, while programs use GPUs; what is new ends them */
};

/** A line as it was at one moment. */
struct gpu_line_count {
    struct gpu_line line; /* but for its use */
    uint64_t rate;        /* bytes/s; 0: not known */
    uint64_t sent;        /* bytes */
    uint64_t received;
};

/** gpu_lines_read() - the interface that has the default route, or those below it that have a
 * device, and all active fabric ports. Return: how many, GPU_LINES_MAX at most. */
unsigned gpu_lines_read(const struct tree *t, struct gpu_line_count ret[static GPU_LINES_MAX]);

/** gpu_lines_compare() - put into @ret what the lines have carried in the @ms from @before to @now.
 */
void gpu_lines_compare(struct gpu_sample *ret, const struct gpu_line_count *before,
    unsigned n_before, const struct gpu_line_count *now, unsigned n_now, uint32_t ms);

/** gpu_kmsg_read() - add the faults that the kernel's log has since @since_us, of its own clock.
 * @fd:	of /dev/kmsg: each read gives a record, and fails when there are no more */
void gpu_kmsg_read(struct gpu_sample *ret, int fd, uint64_t since_us);

/** gpu_sample_take() - a sample; blocks as long as @pace says. @turn: called at each turn; false:
 * nobody wants the sample any more. */
void gpu_sample_take(struct gpu_sample *ret, const struct nvml *nvml, const struct tree *t,
    const struct gpu_pace *pace, uint64_t since_us, bool (*turn)(void *ctx), void *ctx);

/**
 * gpu_sampler_run() - take a sample of this machine, and write it to @fd, of a socket
 * @since_us:	when the last one began, by the monotonic clock
 *
 * Gives up what it does not need first. Threads: while the process has one.
 *
 * Return: 0; -ESRCH: nobody reads it; or another negative errno; each with words.
 */
int gpu_sampler_run(int fd, uint64_t since_us, struct err *e);
