/* text.c - see text.h. No table lookups: an index that depends on a key leaks through the cache. */
#include "text.h"

#include <string.h>

/* All ones if lo <= c <= hi, else zero. Operands are small non-negative numbers. */
static unsigned in_range(int c, int lo, int hi)
{
    return (unsigned)(((lo - 1 - c) & (c - hi - 1)) >> 31);
}

static char hex_digit(unsigned v)
{
    return (char)(v + '0' + (in_range((int)v, 10, 15) & ('a' - '0' - 10)));
}

void hex_encode(const void *p, size_t len, char *out)
{
    const uint8_t *b = p;

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = hex_digit(b[i] >> 4);
        out[2 * i + 1] = hex_digit(b[i] & 15);
    }
    out[2 * len] = '\0';
}

/* 0..15, or bit 8 set for a foreign character. Bits 8 and up of a difference are ones when it is
 * below zero. */
static unsigned hex_value(char ch)
{
    unsigned c = (unsigned char)ch;
    unsigned digit = c ^ '0';
    unsigned letter = (c & ~0x20u) - ('A' - 10);
    unsigned is_digit = (digit - 10) >> 8;
    unsigned is_letter = ((letter - 10) ^ (letter - 16)) >> 8;

    return (is_digit & digit) | (is_letter & letter & 15) | (~(is_digit | is_letter) & 0x100);
}

bool hex_decode(const char *text, void *out, size_t len)
{
    uint8_t *b = out;
    unsigned bad = 0;

    if (strnlen(text, 2 * len + 1) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned hi = hex_value(text[2 * i]);
        unsigned lo = hex_value(text[2 * i + 1]);

        bad |= hi | lo;
        b[i] = (uint8_t)(hi << 4 | lo);
    }
    return (bad & 0x100) == 0;
}

/* The two alphabets differ in the last two characters. */
struct alphabet {
    char c62;
    char c63;
};

static const struct alphabet standard = {'+', '/'};
static const struct alphabet url = {'-', '_'};

static char b64_char(unsigned v, const struct alphabet *a)
{
    int n = (int)v;

    return (char)((in_range(n, 0, 25) & (unsigned)(n + 'A')) |
                  (in_range(n, 26, 51) & (unsigned)(n - 26 + 'a')) |
                  (in_range(n, 52, 61) & (unsigned)(n - 52 + '0')) |
                  (in_range(n, 62, 62) & (unsigned)a->c62) |
                  (in_range(n, 63, 63) & (unsigned)a->c63));
}

/* 0..63, or bit 8 set for a foreign character. */
static unsigned b64_value(char ch, const struct alphabet *a)
{
    int c = (unsigned char)ch;
    unsigned upper = in_range(c, 'A', 'Z');
    unsigned lower = in_range(c, 'a', 'z');
    unsigned digit = in_range(c, '0', '9');
    unsigned is62 = in_range(c, a->c62, a->c62);
    unsigned is63 = in_range(c, a->c63, a->c63);

    return (upper & (unsigned)(c - 'A')) | (lower & (unsigned)(c - 'a' + 26)) |
           (digit & (unsigned)(c - '0' + 52)) | (is62 & 62) | (is63 & 63) |
           (~(upper | lower | digit | is62 | is63) & 0x100);
}

/* @len bytes as characters without padding; returns how many. */
static size_t encode_plain(const uint8_t *b, size_t len, char *out, const struct alphabet *a)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)b[i] << 16;
        size_t chars = 2;

        if (i + 1 < len) {
            v |= (unsigned)b[i + 1] << 8;
            chars = 3;
        }
        if (i + 2 < len) {
            v |= b[i + 2];
            chars = 4;
        }
        for (size_t k = 0; k < chars; k++)
            out[n++] = b64_char(v >> (18 - 6 * k) & 63, a);
    }
    return n;
}

/* @n characters without padding to n * 6 / 8 bytes; spare bits must be zero. */
static bool decode_plain(const char *text, size_t n, uint8_t *out, const struct alphabet *a)
{
    unsigned bad = 0;
    unsigned acc = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned v = b64_value(text[i], a);

        bad |= v;
        acc = (acc << 6 | (v & 63)) & 0xffffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *out++ = (uint8_t)(acc >> bits);
        }
    }
    bad |= (acc & ((1u << bits) - 1)) << 8;
    return (bad & ~0xffu) == 0;
}

void base64_encode(const void *p, size_t len, char *out)
{
    size_t n = encode_plain(p, len, out, &standard);

    while (n % 4 != 0)
        out[n++] = '=';
    out[n] = '\0';
}

bool base64_decode(const char *text, void *out, size_t len)
{
    size_t total = BASE64_ROOM(len) - 1;
    size_t plain = (len * 8 + 5) / 6;

    if (strnlen(text, total + 1) != total)
        return false;
    for (size_t i = plain; i < total; i++)
        if (text[i] != '=')
            return false;
    return decode_plain(text, plain, out, &standard);
}

void base64url_encode(const void *p, size_t len, char *out)
{
    out[encode_plain(p, len, out, &url)] = '\0';
}

bool base64url_decode(const char *text, size_t text_len, void *out, size_t cap, size_t *ret_len)
{
    size_t len = text_len / 4 * 3 + (text_len % 4 ? text_len % 4 - 1 : 0);

    if (text_len % 4 == 1 || len > cap || !decode_plain(text, text_len, out, &url))
        return false;
    *ret_len = len;
    return true;
}

/* Bytes of the control character at @text, of which @len follow; 0: it is none. */
static size_t control_at(const char *text, size_t len)
{
    const unsigned char c = (unsigned char)text[0];

    if (c < 0x20 || c == 0x7f)
        return 1;
    /* RFC 3629: U+0080 to U+009F are 0xc2 and 0x80 to 0x9f. */
    return c == 0xc2 && len > 1 && ((unsigned char)text[1] & 0xe0) == 0x80 ? 2 : 0;
}

bool text_is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (control_at(text + i, len - i) > 0)
            return false;
    return true;
}

void text_make_plain(char *text, char by)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        for (size_t n = control_at(text + i, len - i); n > 0; n--)
            text[i + n - 1] = by;
}
