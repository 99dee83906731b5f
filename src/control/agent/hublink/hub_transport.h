/*
 * hub_transport.h - by which transport packets reach the hub: UDP, or TLS while UDP is blocked.
 *
 * Theory of operation. Puts together the choice (transport_choice.h) and which direction of UDP
 * fails (udp_asymmetry.h), and explains both in words. The owner tells what it sees of the
 * hub, which STUN requests were answered, and how the stream is; it does what is wished.
 * hub_transport_io.h is that owner, with sockets.
 *
 * Pure: facts and times in, wishes and words out.
 */
#pragma once

#include <stdbool.h>

#include "agent/hublink/hub_stream.h"
#include "agent/hublink/hub_ways.h"
#include "agent/hublink/transport_choice.h"
#include "agent/hublink/udp_asymmetry.h"
#include "base/addr.h"
#include "base/clock.h"

/** How the hub is seen, at each poll. */
struct hub_transport_view {
    nsec_t silent_since;      /* the hub has not been heard since then; 0: it is heard */
    bool is_doubt;            /* it is heard, and since @silent_since it seems not to hear us */
    bool is_late;             /* a doubt only because something that was due has not come */
    struct endpoint heard_at; /* where the engine has it */
    uint64_t rx_bytes;        /* received from it so far */
    const char *lockout;      /* why it refuses our handshakes, a clause; "" or NULL: it does not;
                                 borrowed for the call */
    const struct hub_ways *ways; /* where it may be by UDP; borrowed for the call */
};

/** The stream, as it is now. */
struct hub_transport_stream {
    bool exists;              /* one was opened, whether or not it is connected */
    struct endpoint endpoint; /* where it takes datagrams on this machine */
    struct hub_stream_status status;
};

/** What is to be done now. */
struct hub_transport_wish {
    bool ask;          /* send a STUN request to each of @ways */
    bool open_stream;  /* there is none, and one is wanted */
    bool close_stream; /* it is not wanted any more */
    bool join_stream;  /* let it carry WireGuard's datagrams */
    bool has_changed;  /* the transport is another one; hub_transport_why() is new */
    bool has_failure;  /* the stream's failure is one that was not told yet */
    bool ask_heard; /* ask the hub whether it has heard a request that @heard_way never answered */
    struct endpoint heard_way;
};

struct hub_transport {
    struct transport_choice choice;
    struct udp_asymmetry asymmetry;
    nsec_t silent_since; /* the hub has not been heard by UDP since then; 0: it is heard */
    bool is_doubt;       /* as last viewed */
    struct endpoint ways[HUB_WAYS_MAX]; /* where the hub may be by UDP, as last viewed */
    unsigned n_ways;
    unsigned next_heard;               /* of @ways: the one that @ask_heard was last about */
    enum udp_asymmetry_kind explained; /* which direction fails, as @why says */
    char lockout[240];                 /* as last viewed: a sentence fits */
    char why[768];                     /* why it is a stream, a clause */
    char failed[512];                  /* the stream's failure that was last told */
};

/** hub_transport_poll() - take what is seen of the hub at @now; hub_transport_run() afterwards. */
void hub_transport_poll(struct hub_transport *ht, const struct hub_transport_view *view,
    const struct hub_transport_stream *stream, nsec_t now);

/**
 * hub_transport_on_answer() - a STUN request by UDP was answered
 *
 * Return: true if @from is where the hub may be; then hub_transport_run() afterwards.
 */
bool hub_transport_on_answer(struct hub_transport *ht, const struct endpoint *from, nsec_t now);

/**
 * hub_transport_run() - what is to be done at @now?
 *
 * After each poll and each answer, and each TRANSPORT_CHOICE_TICK while there is a stream or
 * something was asked.
 */
struct hub_transport_wish hub_transport_run(
    struct hub_transport *ht, const struct hub_transport_stream *stream, nsec_t now);

/** hub_transport_on_asked() - the hub was asked, as hub_transport_wish.ask_heard says. */
void hub_transport_on_asked(struct hub_transport *ht, nsec_t now);

/**
 * hub_transport_on_heard() - what the hub says to that
 * @from:	where the request came from, as the hub saw it; NULL: it did not come
 * @stream:	how it is now
 *
 * Return: true if another direction is known to fail now: hub_transport_why() is new.
 */
bool hub_transport_on_heard(struct hub_transport *ht, const struct endpoint *from,
    const struct hub_transport_stream *stream);

/** hub_transport_is_by_stream() - packets to the hub go in TLS. */
bool hub_transport_is_by_stream(const struct hub_transport *ht);

/** hub_transport_why() - why packets go through a stream, a clause; NULL while they do not. */
const char *hub_transport_why(const struct hub_transport *ht);
