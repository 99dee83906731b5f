/*
 * path.h - path frames: two nodes ask each other whether a way works, sealed.
 *
 * They travel on WireGuard's own UDP port, which leaves their first byte alone.
 * Every frame is sealed between the two nodes' static keys, so nobody else can
 * make one, and carries the run of its sender and a sequence, so that no old one
 * counts (path/path.h). Bytes, key schedule and the argument: docs/wire/path.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "crypto/aead.h"
#include "crypto/x25519.h"

#define PATH_FRAME_TYPE   0x80 /* first byte; WireGuard ignores what it does not know */
#define PATH_FRAME_HEADER 36   /* type, version, zero, tag, nonce */
#define PATH_FRAME_BODY   68   /* the fields, sealed */
/** Length of a frame without padding; none is shorter, so no answer is longer than its question. */
#define PATH_FRAME_MIN (PATH_FRAME_HEADER + PATH_FRAME_BODY + AEAD_TAG_SIZE)
/** Length of the longest: an MTU probe of a jumbo path. */
#define PATH_FRAME_MAX 9216

/** Tells the receiver whose frame it is, so that it tries one key. No secret. */
struct path_tag {
    uint8_t b[8];
};

/** What two nodes seal their frames with; one key for each direction. Wipe it after use. */
struct path_keys {
    struct aead_key send;
    struct aead_key receive;
    struct path_tag send_tag;    /* in every frame that we send */
    struct path_tag receive_tag; /* in every frame that the peer sends */
};

enum path_frame_kind {
    PATH_FRAME_NONE,
    PATH_FRAME_PING,      /* do you hear me here? */
    PATH_FRAME_PONG,      /* yes: your transaction, your clock, your address as I see it */
    PATH_FRAME_NOMINATE,  /* from now on our packets shall go this way */
    PATH_FRAME_ACCEPT,    /* mine do: the nomination's transaction */
    PATH_FRAME_LEAVE,     /* mine do not go this way any more: see the reason */
    PATH_FRAME_PROBE,     /* a padded one: does it fit? */
    PATH_FRAME_PROBE_ACK, /* it does: the probe's transaction and size; without padding, unless
                             the probe had PATH_FRAME_WHOLE */
    PATH_FRAME_N,
};

/** Bits of a frame's flags. */
#define PATH_FRAME_ANSWERED 0x01 /* of a ping: the one before on this way was answered */
#define PATH_FRAME_MOVED    0x02 /* of a ping: my address has changed, the old one is void */
#define PATH_FRAME_WORSE    0x04 /* of a leave: this way works, but another is better */
#define PATH_FRAME_IN_USE   0x08 /* of a pong: my packets to you go this way */
#define PATH_FRAME_WHOLE    0x10 /* of a probe: answer with as many bytes, and with DF */

/** The fields of a frame. */
struct path_frame {
    enum path_frame_kind kind;
    uint8_t flags;            /* PATH_FRAME_..., unknown ones are ignored */
    uint16_t size;            /* PROBE_ACK: bytes of the probe, as UDP payload */
    uint32_t held_us;         /* answers: between the question's arrival and this */
    uint64_t transaction;     /* chosen by who asks, repeated by who answers */
    uint64_t session;         /* the sender's run, random, never 0 */
    uint64_t echo;            /* the receiver's run as the sender knows it; 0: it does not */
    uint64_t sequence;        /* one more with each frame of the run to this peer */
    uint64_t clock;           /* ns, of who asks; repeated by who answers */
    struct endpoint observed; /* answers: where the question came from; else none */
};

/**
 * path_keys_derive() - the keys between two nodes
 * @secret:	our private key
 * @own:	our public key
 * @peer:	the other's
 *
 * Return: false when @peer is a point of small order, or @own itself; @ret is then untouched.
 */
bool path_keys_derive(struct path_keys *ret, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct x25519_public *peer);

/**
 * path_frame_seal() - make a datagram
 * @nonce:	random, fresh
 * @size:	length that it is padded to, PATH_FRAME_MIN to PATH_FRAME_MAX
 * @out:	room for @size bytes
 *
 * Return: false only when libcrypto has no memory.
 */
bool path_frame_seal(const struct path_keys *k, const struct path_frame *f,
    const struct xchacha_nonce *nonce, size_t size, uint8_t *out);

/** path_frame_read_tag() - is it a path frame of our version, and whose? @len bytes, any content.
 */
bool path_frame_read_tag(const uint8_t *msg, size_t len, struct path_tag *ret);

/**
 * path_frame_open() - verify, decrypt in place and decode
 * @k:		of the peer whose receive tag the frame carries
 * @msg:	@len bytes, for which path_frame_read_tag() was true; garbage afterwards
 *
 * Whether the frame is fresh is not known yet: see @ret's session, echo and sequence.
 *
 * Return: false when it is not from that peer, or says something that has no meaning; @ret is
 * then untouched.
 */
bool path_frame_open(const struct path_keys *k, uint8_t *msg, size_t len, struct path_frame *ret);
