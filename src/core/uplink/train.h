/*
 * train.h - what a line carries, by a train: datagrams of one size, one behind the other, sent a
 * little faster than the line is thought to carry.
 *
 * Theory of operation. Both ends note marks: how many datagrams had been sent, how many of these
 * have come, and when. The rate is that of the last half of the marks. By then the credit of a
 * token bucket is used up, and what fills a queue is no part of it, because a queue is drained at
 * the rate of the line from its first datagram on.
 *
 * That rate is the line's only if the same datagrams were sent faster than they came. Otherwise it
 * is the sender's, whose processor may be slow or busy, and the line carries as much at least. The
 * time for which the sender waited for room in its socket does not count as sending: there it is
 * its own interface that is full. A train whose datagrams were lost in the receiver's socket says
 * nothing, since it is the receiver's processor then; nor does one that came unevenly, because
 * other traffic or a busy processor was in between.
 *
 * A plan sends one train after the other until the line is known: from a low rate upwards, so that
 * no train has much more than the line takes, and none is more than TRAIN_BYTES_MAX.
 *
 * Pure: times and counts in, rates out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* ---- marks ----------------------------------------------------------------------------------- */

/** Marks that an end keeps at most, and at least half of them of a train that is long enough. */
#define TRAIN_MARKS_MAX 32

struct train_mark {
    nsec_t at;      /* by the clock of the end that has made it */
    uint32_t sent;  /* datagrams of the train that had been sent before that one */
    uint32_t heard; /* the receiver's: how many of them have come, with that one */
    nsec_t waited;  /* the sender's: how long it had waited for room in its socket so far */
};

/** All zero: there are none. */
struct train_marks {
    struct train_mark items[TRAIN_MARKS_MAX];
    unsigned n;
    uint32_t step; /* least datagrams between two of them */
};

/** train_marks_add() - one more. One that comes too soon after the last one is left out; when there
 * is no room each second mark goes. */
void train_marks_add(struct train_marks *m, const struct train_mark *mark);

/* ---- one train ------------------------------------------------------------------------------- */

enum train_verdict {
    TRAIN_NOTHING, /* it says nothing: it was too short, or came unevenly, or was not all received
                    */
    TRAIN_ALL,     /* the line has carried all of it: it carries that much at least */
    TRAIN_CLOSE, /* it was sent hardly faster than it came: what the line carries is not much more,
                    or much more */
    TRAIN_LINE,  /* it was sent faster than it came, so that is what the line carries */
    TRAIN_VERDICT_N,
};

/** train_verdict_names - "nothing", "all", "close", "line". */
extern const char *const train_verdict_names[];

struct train_result {
    enum train_verdict verdict;
    uint64_t bits_per_s;      /* at which it came, with headers; 0 with TRAIN_NOTHING */
    uint64_t sent_bits_per_s; /* at which the same datagrams were sent */
};

/**
 * train_evaluate() - what a train says of the line
 * @sent:	marks of its sender
 * @heard:	marks of its receiver; as a stranger may have made them
 * @size:	bytes of a datagram on the line, with headers
 * @n_missed:	datagrams that were lost in the receiver's socket
 */
struct train_result train_evaluate(const struct train_marks *sent, const struct train_marks *heard,
    uint32_t size, uint32_t n_missed);

/* ---- one after the other --------------------------------------------------------------------- */

/** A line that carries so much is no bottleneck of a mesh: nothing is shaped there, and no more is
 * sent to find out how much it is, bit/s. */
#define TRAIN_FAST UINT64_C(2000000000)

/** Bytes of one train at most. */
#define TRAIN_BYTES_MAX (8u << 20)

/** Trains of one plan at most. */
#define TRAIN_PLAN_MAX 8

/** One train to be sent. */
struct train_step {
    uint64_t bits_per_s; /* at which it is sent, with headers */
    uint32_t ms;         /* for so long at most */
    uint32_t bytes;      /* and no more than these */
    uint32_t at_once;    /* datagrams that are sent together at most */
};

/** Trains to one peer. */
struct train_plan {
    uint64_t offered;    /* bit/s of the next train; 0: there is none */
    unsigned n;          /* trains so far */
    unsigned n_nothing;  /* of them, those in a row that have said nothing */
    uint64_t bits_per_s; /* what was found: what the line carries if @is_line, else what it carries
                            at least; 0: nothing */
    bool is_line;
};

/** train_plan_begin() - @known: what the line was found to carry before; 0: not known. */
void train_plan_begin(struct train_plan *p, uint64_t known);

/** train_plan_next() - the train to be sent now. False: there is none, and the plan says what was
 * found. */
bool train_plan_next(const struct train_plan *p, struct train_step *ret);

/** train_plan_take() - what the last train has come to. */
void train_plan_take(struct train_plan *p, const struct train_result *r);
