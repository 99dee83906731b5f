/*
 * hub_transport.h - by which transport packets reach a hub: UDP, or TLS while UDP is blocked, and
 * which direction of UDP fails. Pure: facts and times in; what is to be done, and words, out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/hublink/hub_health.h"
#include "base/addr.h"
#include "base/clock.h"

/* ---- UDP or a stream ------------------------------------------------------------------------- */

/*
 * Is the hub to be reached by UDP, or by a stream in TLS because UDP is blocked?
 *
 * Theory of operation. UDP is left only when it has really failed: the hub is silent, and the STUN
 * requests that are then sent are not answered; or they are answered and no session comes about all
 * the same, because something on the way knows WireGuard and refuses it. A session that comes about
 * meanwhile proves the contrary, also where nothing has passed in it yet: the hub may be started
 * anew a second time. And UDP is left only for a stream that is open, and after UDP was asked again
 * beside it: a hub that is away, or starts just now, answers by neither. While the stream is used,
 * UDP is asked now and then, and is taken again once it has answered several times in a row. Each
 * return to UDP that did not last makes the next one wait longer.
 */

struct transport_choice {
    bool by_stream;  /* packets to the hub go in TLS */
    nsec_t taken_at; /* time when this transport was taken; 0: it is the first one */
    nsec_t
        suspected_since; /* UDP has been asked since then because the hub is silent; 0: it is not */
    nsec_t answered_at;  /* time of the last answer by UDP; 0: never */
    nsec_t passes_since; /* UDP is answered since then, and no session comes about; 0: one is there,
                            or there was no answer */
    bool is_suspect;     /* as last polled: there is a session, so an answer does not begin that */
    bool has_begun_anew; /* a session that came about in this silence has ended that once */
    bool was_refused;    /* the stream was taken because of that, though UDP is answered */
    nsec_t asked_at;     /* time of the last request; 0: never */
    unsigned n_answered; /* answers in a row, while the stream is used */
    unsigned n_asked;    /* requests since the last answer */
    unsigned n_beside;   /* requests of these since a stream has been open */
    nsec_t settle_for;   /* shortest time that the stream is kept */
    nsec_t returned_at;  /* time when UDP was last taken again; 0: never */
};

/** How often to run while UDP is in doubt or a stream is wanted. */
#define TRANSPORT_CHOICE_TICK (250 * NSEC_PER_MSEC)

/* ---- which direction fails ------------------------------------------------------------------- */

/*
 * Which way between this node and the hub lets no UDP through.
 *
 * When requests by UDP stay unanswered, either they are lost on the way there or
 * their answers are lost on the way back. Two things tell which:
 *
 *   - While the hub's session is still in use and our requests are lost, what the
 *     hub sends goes on arriving: it repeats what nobody acknowledges, and begins
 *     handshakes.
 *   - Over the stream in TLS the hub can be asked whether it has heard a request
 *     that was not answered (docs/wire/stream.md).
 */

enum udp_asymmetry_kind {
    UDP_ASYMMETRY_UNKNOWN, /* not known, or both ways are broken */
    UDP_ASYMMETRY_IN,      /* the hub hears this node, but nothing from the hub arrives */
    UDP_ASYMMETRY_OUT,     /* what the hub sends arrives, but it does not hear this node */
    UDP_ASYMMETRY_N,
};

struct udp_asymmetry {
    nsec_t silent_since;  /* the hub answers nothing by UDP since then; 0: it does answer */
    nsec_t answered_at;   /* time of the last answer to a STUN request; 0: never */
    uint64_t rx_bytes;    /* received from the hub, as counted last */
    nsec_t grew_at;       /* time when @rx_bytes last grew by UDP; 0: not seen */
    struct endpoint from; /* our address where the hub has heard a request; none: it has not */
    unsigned n_unheard;   /* requests in a row that the hub says it has not heard */
    nsec_t asked_at;      /* time when the hub was last asked what it has heard; 0: never */
};

/**
 * udp_asymmetry_look() - what is seen of the hub; to be called each second
 * @silent_since: the hub answers nothing that is sent by UDP since then; 0: it does
 * @rx_bytes:	received from the hub so far
 * @is_udp:	they came by UDP, and not by the stream in TLS
 */
void udp_asymmetry_look(
    struct udp_asymmetry *ua, nsec_t silent_since, uint64_t rx_bytes, bool is_udp, nsec_t now);

/**
 * udp_asymmetry_on_answer() - the hub has answered a STUN request by UDP at @now
 *
 * Nothing from before counts any more, also when the silence that udp_asymmetry_look() is told of
 * began before: WireGuard hears the hub by UDP again only some time after the first answer.
 */
void udp_asymmetry_on_answer(struct udp_asymmetry *ua, nsec_t now);

/** udp_asymmetry_wants_to_ask() - should the hub be asked now whether it has heard a request? */
bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ua, nsec_t now);

/**
 * udp_asymmetry_on_heard() - what the hub answered to that
 * @from:	the address that the request came from; NULL: the hub has not heard it
 */
void udp_asymmetry_on_heard(struct udp_asymmetry *ua, const struct endpoint *from);

/** udp_asymmetry_of() - the verdict of all that was seen so far. */
enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ua);

/** udp_asymmetry_names - "", "in", "out". */
extern const char *const udp_asymmetry_names[];

/* ---- both, and in words ---------------------------------------------------------------------- */

/*
 * Puts together the choice (struct transport_choice) and which direction of UDP fails (struct
 * udp_asymmetry), and explains both in words. The owner tells what it sees of the hub, which STUN
 * requests were answered, and how the stream is; it does what is to be done. hub_transport_io.h is
 * that owner, with sockets.
 */

/** How the hub is seen, at each poll. */
struct hub_transport_view {
    nsec_t silent_since;      /* the hub has not been heard since then; 0: it is heard */
    bool is_suspect;          /* it is heard, and since @silent_since it seems not to hear us */
    bool is_late;             /* a doubt only because something that was due has not come */
    struct endpoint heard_at; /* where the engine has it */
    uint64_t rx_bytes;        /* received from it so far */
    nsec_t handshake_at;      /* time of the last handshake with it; 0: never */
    const char *lockout;      /* why it refuses our handshakes, a clause; "" or NULL: it does not;
                                 borrowed for the call */
    const struct hub_endpoints *endpoints; /* where it may be by UDP; borrowed for the call */
};

/** The state of a stream. */
struct hub_stream_status {
    bool is_open;                 /* connected, and admitted by the hub */
    bool is_refused;              /* the last try was answered, and refused */
    char to[TOKEN_API_MAX + 1];   /* the address that was last asked */
    char through[PROXY_TEXT_MAX]; /* the proxy's name; "": none */
    char passed_over[256];        /* the proxy's name and why it failed; "": it is used, or none */
    char why[512];                /* what failed last; "": nothing */
};

/** The stream, as it is now. */
struct hub_transport_stream {
    bool exists;              /* one was opened, whether or not it is connected */
    struct endpoint endpoint; /* where it takes datagrams on this machine */
    struct hub_stream_status status;
};

/** What is to be done now. */
struct hub_transport_actions {
    bool ask;          /* send a STUN request to each of @endpoints */
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
    bool is_suspect;     /* as last viewed */
    nsec_t handshake_at; /* as last viewed */
    struct endpoint endpoints[HUB_ENDPOINTS_MAX]; /* where the hub may be by UDP, as last viewed */
    unsigned n_endpoints;
    unsigned next_heard;               /* of @endpoints: the one that @ask_heard was last about */
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
struct hub_transport_actions hub_transport_run(
    struct hub_transport *ht, const struct hub_transport_stream *stream, nsec_t now);

/**
 * hub_transport_on_heard() - what the hub says to that
 * @from:	where the request came from, as the hub saw it; NULL: it did not come
 * @stream:	how it is now
 *
 * Return: true if another direction is known to fail now: hub_transport_why() is new.
 */
bool hub_transport_on_heard(struct hub_transport *ht, const struct endpoint *from,
    const struct hub_transport_stream *stream);

/** hub_transport_is_settled() - does UDP fail by @now, and is it known which way, or was there
 * time for that? */
bool hub_transport_is_settled(const struct hub_transport *ht, nsec_t now);

/** hub_transport_why() - why packets go through a stream, a clause; NULL while they do not. */
const char *hub_transport_why(const struct hub_transport *ht);
