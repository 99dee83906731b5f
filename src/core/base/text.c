/* text.c - see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/secret.h"

/* ---- text that grows ---- */

void str_deinit(struct str *s)
{
    if (s->text)
        secret_wipe(s->text, s->cap);
    free(s->text);
    *s = (struct str)STR_NULL;
}

/* Room for @len more bytes and a zero. Not realloc(), which leaves a copy behind. */
static bool reserve(struct str *s, size_t len)
{
    size_t cap = s->cap ? s->cap : 64;
    char *grown;

    if (s->failed)
        return false;
    if (s->text && len < s->cap - s->len)
        return true;
    while (cap - s->len <= len) {
        if (__builtin_mul_overflow(cap, 2, &cap)) {
            s->failed = true;
            return false;
        }
    }
    grown = malloc(cap);
    if (!grown) {
        s->failed = true;
        return false;
    }
    if (s->text) {
        memcpy(grown, s->text, s->len + 1);
        secret_wipe(s->text, s->cap);
        free(s->text);
    }
    s->text = grown;
    s->cap = cap;
    return true;
}

void str_add_bytes(struct str *s, const char *bytes, size_t len)
{
    if (!reserve(s, len))
        return;
    /* No bytes may be nowhere, of which memcpy() would not hear. */
    if (len > 0)
        memcpy(s->text + s->len, bytes, len);
    s->len += len;
    s->text[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
    str_add_bytes(s, text, strlen(text));
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0 || !reserve(s, (size_t)len)) {
        s->failed = true;
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(s->text + s->len, s->cap - s->len, fmt, ap);
    va_end(ap);
    s->len += (size_t)len;
}

const char *str_text(const struct str *s)
{
    return s->text ? s->text : "";
}

char *str_take(struct str *s, size_t *ret_len)
{
    char *text = NULL;

    if (!s->text)
        str_add(s, "");
    if (s->failed) {
        str_deinit(s);
        return NULL;
    }
    text = s->text;
    if (ret_len)
        *ret_len = s->len;
    *s = (struct str)STR_NULL;
    return text;
}

/*
 * ---- hex and base64 ----
 *
 * No table lookups: an index that depends on a key leaks through the cache.
 */

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
    size_t total = BASE64_SIZE(len) - 1;
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

/* ---- UTF-8 ---- */

/* The forms of RFC 3629 section 4. */
static const struct {
    uint8_t first;  /* of the first byte: from */
    uint8_t last;   /* to */
    uint8_t low;    /* of the second byte: from */
    uint8_t high;   /* to */
    uint8_t length; /* bytes */
} forms[] = {
    {0x00, 0x7f, 0, 0, 1},
    {0xc2, 0xdf, 0x80, 0xbf, 2},
    {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4},
    {0xf4, 0xf4, 0x80, 0x8f, 4},
};

/* Bytes of the UTF-8 sequence at @p; 0: there is none. */
static size_t sequence(const uint8_t *p, size_t len)
{
    size_t i = 0;

    while (i < sizeof(forms) / sizeof(*forms) && !(p[0] >= forms[i].first && p[0] <= forms[i].last))
        i++;
    if (i == sizeof(forms) / sizeof(*forms) || forms[i].length > len)
        return 0;
    if (forms[i].length > 1 && (p[1] < forms[i].low || p[1] > forms[i].high))
        return 0;
    for (size_t n = 2; n < forms[i].length; n++)
        if ((p[n] & 0xc0) != 0x80)
            return 0;
    return forms[i].length;
}

size_t text_next(const char *text, size_t len, enum text_kind *ret)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t n = sequence(p, len);

    if (n == 0)
        *ret = TEXT_KIND_INVALID;
    else if (p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
        *ret = TEXT_KIND_CONTROL;
    else
        *ret = TEXT_KIND_PLAIN;
    return n > 0 ? n : 1;
}

bool text_is_plain(const char *text, size_t len)
{
    enum text_kind kind = TEXT_KIND_PLAIN;

    for (size_t i = 0; i < len && kind == TEXT_KIND_PLAIN;)
        i += text_next(text + i, len - i, &kind);
    return kind == TEXT_KIND_PLAIN;
}

void text_make_plain(char *text, char by)
{
    size_t len = strlen(text);
    enum text_kind kind;

    for (size_t i = 0, n; i < len; i += n) {
        n = text_next(text + i, len - i, &kind);
        if (kind != TEXT_KIND_PLAIN)
            memset(text + i, by, n);
    }
}

const char *text_part(const char *text, char end, char *ret, size_t cap)
{
    size_t n = text ? strcspn(text, (const char[]){end, '\0'}) : 0;

    if (n == 0 || n >= cap)
        return NULL;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return text[n] ? text + n + 1 : text + n;
}

size_t text_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (len = max; len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80;)
        len--;
    return len;
}

/* ---- columns ---- */

void table_deinit(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){.n_columns = t->n_columns};
}

void table_add(struct table *t, const char *fmt, ...)
{
    char **cells = sorted_open(t->cells, t->n, sizeof(*cells), t->n, &t->cap);
    va_list ap;

    t->cells = cells ? cells : t->cells;
    va_start(ap, fmt);
    if (!cells || vasprintf(&cells[t->n], fmt, ap) < 0)
        t->failed = true;
    else
        t->n++;
    va_end(ap);
}

static size_t width_of(const struct table *t, unsigned column)
{
    size_t width = 0;

    for (size_t i = column; i < t->n; i += t->n_columns)
        if (strlen(t->cells[i]) > width)
            width = strlen(t->cells[i]);
    return width;
}

void table_format(const struct table *t, struct str *out)
{
    size_t n = t->n - t->n % t->n_columns;

    if (t->failed)
        out->failed = true;
    for (size_t i = 0; i < n; i++) {
        unsigned column = (unsigned)(i % t->n_columns);

        if (column + 1 == t->n_columns)
            str_addf(out, "%s\n", t->cells[i]);
        else
            str_addf(out, "%-*s  ", (int)width_of(t, column), t->cells[i]);
    }
}
