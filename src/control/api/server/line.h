/*
 * line.h - text that is made once and sent to thousands of streams: one line, several, or a part of
 * one.
 *
 * A client that accepts "Content-Encoding: deflate" (RFC 9110 section 8.4.1.2) is sent the same
 * text packed. It is packed once, when the first stream needs it.
 *
 * Theory of operation. A deflate stream (RFC 1951) may consist of pieces that were packed apart, if
 * each ends at a byte, by an empty stored block, and refers to nothing before its own beginning. So
 * one packed line fits into every stream, whatever that stream has sent before, and a stream needs
 * no memory for packing. It has the header of RFC 1950 before the first line. Behind the last line
 * it has an empty last block and the checksum of all of the text. The checksum is calculated from
 * those of the lines.
 *
 * Threads: a line and all who hold it belong to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Shared, and never changed. */
struct line {
    unsigned refs;       /* how many hold it */
    bool is_part;        /* the line that is queued next continues it */
    struct line *packed; /* owns; the same for clients that take it packed; NULL: not made yet */
    size_t n_plain;      /* of a packed line: the bytes that it unpacks to */
    uint32_t checksum;   /* of a packed line: Adler-32 of those bytes (RFC 1950 section 8.2) */
    size_t len;          /* of @text, with the newline */
    char text[];         /* not zero-terminated */
};

/** line_new() - a copy of @len bytes at @text and a newline; one reference, NULL: no memory. */
struct line *line_new(const char *text, size_t len);

/** line_new_part() - without the newline: the beginning of a line that the next one continues. */
struct line *line_new_part(const char *text, size_t len);

/** line_ref() - add a reference. Returns @l. */
struct line *line_ref(struct line *l);

/** line_unref() - drop a reference; the last one frees it. NULL is fine. Always NULL. */
struct line *line_unref(struct line *l);

/** line_packed() - lends the same text packed, for as long as @l stays. NULL: no memory. */
struct line *line_packed(struct line *l);

/** Bytes before the first packed line, and most bytes behind the last one. */
#define LINE_PACKED_HEAD 2
#define LINE_PACKED_END  6

/** The checksum of no text at all. */
#define LINE_CHECKSUM_NONE 1u

/** line_packed_head() - what comes before the first packed line. */
void line_packed_head(char buf[static LINE_PACKED_HEAD]);

/** line_packed_end() - what comes behind the last one; @checksum: of all of their text. */
void line_packed_end(uint32_t checksum, char buf[static LINE_PACKED_END]);

/** line_checksum_add() - the checksum of a text with that one, and of @packed behind it. */
uint32_t line_checksum_add(uint32_t checksum, const struct line *packed);

/**
 * line_accepts_packed() - does a client that sent this header take "deflate"?
 * @accept_encoding:	as it came (RFC 9110 section 12.5.3); NULL: none did
 *
 * Return: true if it names "deflate" and does not refuse it with "q=0".
 */
bool line_accepts_packed(const char *accept_encoding);
