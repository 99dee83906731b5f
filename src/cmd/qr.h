/*
 * qr.h - text as a QR code: for a terminal, or as an image.
 *
 * Two modules a character, one above the other, in black and white whatever the
 * terminal's colours are: an inverted code is one that many phones do not read.
 * The code itself is made by libqrencode.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct str;

/** Most bytes that a QR code holds: version 40 with the lowest error correction (ISO/IEC 18004). */
#define QR_BYTES_MAX 2953

/**
 * qr_format() - append the code for @text, line by line
 * @len:	at most QR_BYTES_MAX
 * @ret_columns:	how wide it is
 *
 * Return: 0 or negative errno with words.
 */
int qr_format(struct str *out, const char *text, size_t len, unsigned *ret_columns, struct err *e);

/** Most bytes of an image: version 40 and its border, a bit a pixel, if nothing could be packed. */
#define QR_PNG_MAX (512u << 10)

/**
 * qr_png() - the code for @text as an image in PNG, some pixels a module
 * @len:	at most QR_BYTES_MAX
 * @ret:	gives @ret_len bytes; secret_wipe() them when the text is a secret, and free() them
 *
 * Return: 0 or negative errno with words.
 */
int qr_png(const char *text, size_t len, uint8_t **ret, size_t *ret_len, struct err *e);
