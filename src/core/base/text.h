/*
 * text.h - text: that grows, in other alphabets, checked, and in columns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Text that grows.
 *
 * A failed allocation is remembered, not returned: the caller adds everything
 * and asks once, when it takes the text. Memory that is given back is wiped,
 * because configurations with keys are built here.
 */

struct str {
    char *text;  /* owns; @len bytes and a zero; NULL while empty */
    size_t len;  /* without the zero */
    size_t cap;  /* with the zero */
    bool failed; /* there was no memory: everything after is ignored */
};

#define STR_NULL {0}

/** str_deinit() - wipe and release. */
void str_deinit(struct str *s);

/** str_add() - append @text. */
void str_add(struct str *s, const char *text);

/** str_add_bytes() - append @len bytes; a zero among them is kept. */
void str_add_bytes(struct str *s, const char *bytes, size_t len);

/** str_addf() - append formatted text. */
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** str_text() - borrowed until the next change; "" while empty. */
const char *str_text(const struct str *s);

/**
 * str_take() - the text; @s is empty afterwards
 * @ret_len:	its bytes, without the zero; may be NULL
 *
 * Return: gives it, free() it; NULL when some allocation had failed.
 */
char *str_take(struct str *s, size_t *ret_len);

/*
 * Bytes as text: hex (UAPI) and base64 (keys, tokens); and text that a terminal does not
 * obey.
 *
 * The decoders take exactly what the encoders write. They run in time that
 * depends only on the length, because keys pass through them.
 */

/** hex_encode() - 2 * @len characters and a zero into @out. */
void hex_encode(const void *p, size_t len, char *out);

/** hex_decode() - exactly 2 * @len hex digits (either case) and the end. */
bool hex_decode(const char *text, void *out, size_t len);

/** Room that base64_encode() needs for @len bytes, with padding and the zero. */
#define BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/** base64_encode() - standard alphabet with padding (RFC 4648 section 4). */
void base64_encode(const void *p, size_t len, char *out);

/** base64_decode() - exactly @len bytes in the standard alphabet, padded. */
bool base64_decode(const char *text, void *out, size_t len);

/** base64url_encode() - URL alphabet, no padding (RFC 4648 section 5). Room: BASE64_SIZE. */
void base64url_encode(const void *p, size_t len, char *out);

/**
 * base64url_decode() - unpadded URL alphabet
 * @text_len:	characters to read
 * @cap:	room at @out, bytes
 * @ret_len:	bytes written
 *
 * Return: false for a foreign character, an impossible length, or too little room.
 */
bool base64url_decode(const char *text, size_t text_len, void *out, size_t cap, size_t *ret_len);

/** What text_next() finds. */
enum text_kind {
    TEXT_KIND_PLAIN,
    TEXT_KIND_CONTROL, /* C0, DEL, or C1 as UTF-8 has it, U+0080 to U+009F */
    TEXT_KIND_INVALID, /* a byte that is no UTF-8 (RFC 3629) */
};

/**
 * text_next() - how many bytes the character at @text has
 * @len:	bytes that are there, at least 1
 *
 * Terminals take U+009B for the beginning of an escape sequence as they do ESC and '[', and some
 * take the byte 0x9b alone.
 */
size_t text_next(const char *text, size_t len, enum text_kind *ret);

/** text_is_plain() - is it UTF-8 without a control character? */
bool text_is_plain(const char *text, size_t len);

/** text_make_plain() - write @by, which is of ASCII, over each byte of what is not plain. */
void text_make_plain(char *text, char by);

/** text_part() - copy @text up to @end, or all of it, into @ret. Return: what follows; NULL: it is
 * empty, or does not fit, or @text is NULL. */
const char *text_part(const char *text, char end, char *ret, size_t cap);

/** text_cut() - of @text, @len bytes of UTF-8, how many whole characters' bytes are within @max. */
size_t text_cut(const char *text, size_t len, size_t max);

/* Columns of text for people, each as wide as its widest cell. */

/** Cells row by row; the first row is the head. */
struct table {
    unsigned n_columns;
    char **cells; /* owns the array and the texts */
    size_t n;
    size_t cap;
    bool failed; /* no memory for some of it */
};

/** table_deinit() - release. */
void table_deinit(struct table *t);

/** table_add() - the next cell, as printf has it. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** table_format() - all complete rows, two blanks between columns, a newline after each. */
void table_format(const struct table *t, struct str *out);
