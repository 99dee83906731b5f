/*
 * stream_frame.h - datagrams inside a stream of bytes: docs/wire/stream.md.
 *
 * Each datagram follows its length, 16 bits in network order. Length 0 is a
 * beat: it says "still here" and carries nothing. A length beyond what UDP can
 * carry cannot be meant, and a stream that says it has lost its frame.
 *
 * Decoding works in place: whoever reads bytes hands them over in pieces, gets
 * whole frames back, and keeps what is left of the last one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/** Bytes before each datagram. */
#define STREAM_FRAME_HEADER 2

/** Longest datagram: what UDP over IPv4 can carry. */
#define STREAM_FRAME_MAX 65507

#define STREAM_FRAME_E_MORE    1 /* the rest of the frame has not come yet */
#define STREAM_FRAME_E_INVALID 2 /* its length is none */

/**
 * stream_frame_next() - the next whole frame
 * @in:		moved behind it; stays where it is unless 0 is returned
 * @ret:	its datagram; borrowed from @in's bytes
 * @ret_len:	its length; 0: a beat
 *
 * Return: 0; STREAM_FRAME_E_MORE; STREAM_FRAME_E_INVALID, and then the stream is lost.
 */
int stream_frame_next(struct reader *in, const uint8_t **ret, size_t *ret_len);

/** stream_frame_room() - bytes that @len bytes of datagrams of @seg take (the last is shorter). */
size_t stream_frame_room(size_t len, size_t seg);

/**
 * stream_frame_put() - datagrams of one size, each behind its length
 * @out:	has room for stream_frame_room() bytes
 * @datagrams:	@len bytes, at least 1: datagrams of @seg bytes back to back, the last may be
 *		shorter; none is longer than STREAM_FRAME_MAX
 */
void stream_frame_put(struct writer *out, const uint8_t *datagrams, size_t len, size_t seg);

/** stream_frame_put_beat() - an empty frame. */
void stream_frame_put_beat(struct writer *out);
