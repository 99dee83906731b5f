/*
 * qr.h - text as a QR code for a terminal.
 *
 * Two modules a character, one above the other, in black and white whatever the
 * terminal's colours are: an inverted code is one that many phones do not read.
 * The code itself is made by libqrencode.
 */
#pragma once

#include <stddef.h>

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
