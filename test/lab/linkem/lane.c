/* lane.c - one direction of an emulated link; see lane.h for the theory of operation. */
#include "lane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/secret.h"

static const char *const fate_names[] = {
    [LANE_FATE_HELD] = "held",
    [LANE_FATE_DROP_CUT] = "cut",
    [LANE_FATE_DROP_MTU] = "mtu",
    [LANE_FATE_DROP_LOSS] = "loss",
    [LANE_FATE_DROP_QUEUE] = "queue",
    [LANE_FATE_DROP_MEMORY] = "memory",
};
static_assert(sizeof(fate_names) / sizeof(*fate_names) == LANE_FATE_N, "one name per fate");

const char *lane_fate_name(enum lane_fate fate)
{
    return fate_names[fate];
}

void lane_init(struct lane *lane, uint64_t seed)
{
    *lane = (struct lane){.params = LANE_PARAMS_PERFECT, .random = seed};
}

static struct lane_frame *take_first(struct lane *lane, nsec_t now)
{
    struct heap_link *first = heap_pop_due(&lane->in_flight, now);
    struct lane_frame *frame;

    if (!first)
        return NULL;
    frame = container_of(first, struct lane_frame, flight);
    lane->held_bytes -= frame->len;
    return frame;
}

static void lose_frames_in_flight(struct lane *lane)
{
    struct lane_frame *frame;

    while ((frame = take_first(lane, NSEC_NEVER)))
        free(frame);
}

void lane_deinit(struct lane *lane)
{
    lose_frames_in_flight(lane);
    heap_deinit(&lane->in_flight);
}

void lane_set_cut(struct lane *lane, bool is_cut)
{
    lane->is_cut = is_cut;
    if (!is_cut)
        return;
    lose_frames_in_flight(lane);
    lane->busy_until = 0;
    lane->newest_due = 0;
}

static uint64_t draw(struct lane *lane)
{
    struct rng rng = rng_seeded(&lane->random);

    return rng_u64(&rng);
}

static bool draw_chance(struct lane *lane, uint32_t ppm)
{
    return draw(lane) % LANE_PPM < ppm;
}

static nsec_t draw_delay(struct lane *lane)
{
    const struct lane_params *p = &lane->params;
    uint64_t width = 2 * (uint64_t)p->jitter + 1;
    nsec_t offset = (nsec_t)(draw(lane) % width) - p->jitter;

    return nsec_max(p->delay + offset, 0);
}

/* How long @bytes take at @rate bits/s. Both are bounded (params.h), so 64 bits hold it. */
static nsec_t transmit_time(uint64_t bytes, uint64_t rate)
{
    return (nsec_t)(bytes * 8 * (uint64_t)NSEC_PER_SEC / rate);
}

/* Pass the frame through the transmitter; false if the queue before it is full. */
static bool transmit(struct lane *lane, nsec_t now, size_t len, nsec_t *ret_sent)
{
    const struct lane_params *p = &lane->params;
    nsec_t start = nsec_max(lane->busy_until, now);

    if (p->rate == 0) {
        *ret_sent = now;
        return true;
    }
    if (start - now > transmit_time(p->queue, p->rate))
        return false;
    lane->busy_until = start + transmit_time(len, p->rate);
    *ret_sent = lane->busy_until;
    return true;
}

/* Put a copy of the frame into flight; false if there is no room for it. */
static bool hold(struct lane *lane, nsec_t due, const uint8_t *bytes, size_t len)
{
    struct lane_frame *frame;

    if (lane->held_bytes + len > LANE_HELD_MAX)
        return false;
    frame = malloc(sizeof(*frame) + len);
    if (!frame)
        return false;
    frame->flight = (struct heap_link){0};
    frame->len = len;
    memcpy(frame->bytes, bytes, len);
    if (heap_set(&lane->in_flight, &frame->flight, due) < 0) {
        free(frame);
        return false;
    }
    lane->held_bytes += len;
    return true;
}

static enum lane_fate decide(struct lane *lane, nsec_t now, const uint8_t *bytes, size_t len)
{
    const struct lane_params *p = &lane->params;
    bool is_lost = draw_chance(lane, p->loss_ppm);
    bool overtakes = draw_chance(lane, p->reorder_ppm);
    nsec_t delay = draw_delay(lane);
    nsec_t due;

    if (lane->is_cut)
        return LANE_FATE_DROP_CUT;
    if (p->mtu != 0 && len > p->mtu + LANE_ETHERNET_BYTES)
        return LANE_FATE_DROP_MTU;
    if (is_lost)
        return LANE_FATE_DROP_LOSS;
    if (!transmit(lane, now, len, &due))
        return LANE_FATE_DROP_QUEUE;
    if (!overtakes) {
        due = nsec_max(due + delay, lane->newest_due);
        lane->newest_due = due;
    }
    return hold(lane, due, bytes, len) ? LANE_FATE_HELD : LANE_FATE_DROP_MEMORY;
}

enum lane_fate lane_push(struct lane *lane, nsec_t now, const uint8_t *bytes, size_t len)
{
    enum lane_fate fate = decide(lane, now, bytes, len);

    lane->n_entered++;
    lane->n_fate[fate]++;
    return fate;
}

nsec_t lane_due(const struct lane *lane)
{
    return heap_due(&lane->in_flight);
}

struct lane_frame *lane_pop(struct lane *lane, nsec_t now)
{
    struct lane_frame *frame = take_first(lane, now);

    if (frame)
        lane->n_left++;
    return frame;
}
