/* qr.c - see qr.h. */
#include "qr.h"

#include <errno.h>
#include <qrencode.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"

/* The light border that a code has to have, in modules. */
#define QUIET_ZONE 4

#define BLACK_AND_WHITE "\033[40;37;1m"
#define AS_BEFORE       "\033[0m"

/* Modules around the code are light as well: the quiet zone. */
static bool is_light(const QRcode *code, int x, int y)
{
    if (x < 0 || y < 0 || x >= code->width || y >= code->width)
        return true;
    return (code->data[y * code->width + x] & 1) == 0;
}

static int encode(QRcode **ret, const char *text, size_t len, struct err *e)
{
    *ret = QRcode_encodeData((int)len, (const unsigned char *)text, 0, QR_ECLEVEL_L);
    return *ret ? 0
                : err_set(
                      e, -errno, "no QR code can be made of %zu bytes: %s", len, strerror(errno));
}

int qr_format(struct str *out, const char *text, size_t len, unsigned *ret_columns, struct err *e)
{
    /* Indices: is the upper module light, is the lower one? */
    static const char *const halves[2][2] = {{" ", "▄"}, {"▀", "█"}};
    QRcode *code;
    int r = encode(&code, text, len, e);

    if (r != 0)
        return r;
    for (int y = -QUIET_ZONE; y < code->width + QUIET_ZONE; y += 2) {
        str_add(out, BLACK_AND_WHITE);
        for (int x = -QUIET_ZONE; x < code->width + QUIET_ZONE; x++)
            str_add(out, halves[is_light(code, x, y)][is_light(code, x, y + 1)]);
        str_add(out, AS_BEFORE "\n");
    }
    *ret_columns = (unsigned)code->width + 2 * QUIET_ZONE;
    QRcode_free(code);
    return out->failed ? err_set(e, -ENOMEM, "no memory for a QR code") : 0;
}

/* ---- an image: PNG, ISO/IEC 15948; a bit a pixel -------------------------------------------- */

/* Pixels that a module is wide and high: enough for a screen, and for paper. */
#define SCALE 6

/** An image that is being written. */
struct png {
    uint8_t *bytes; /* owns; QR_PNG_MAX of them */
    size_t len;
};

static void put_be32(uint8_t *at, uint32_t n)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(n >> (24 - 8 * i));
}

/* A chunk: length, type, data, and the sum of the last two. */
static void add_chunk(struct png *png, const char type[static 4], const uint8_t *data, size_t len)
{
    uint8_t *at = png->bytes + png->len;

    put_be32(at, (uint32_t)len);
    memcpy(at + 4, type, 4);
    if (len > 0)
        memcpy(at + 8, data, len);
    put_be32(at + 8 + len, (uint32_t)crc32(crc32(0, NULL, 0), at + 4, (uInt)len + 4));
    png->len += len + 12;
}

static int add_image(struct png *png, const QRcode *code, struct err *e)
{
    const unsigned side = ((unsigned)code->width + 2 * QUIET_ZONE) * SCALE;
    const size_t row_len = 1 + (side + 7) / 8;
    _cleanup_(freep) uint8_t *rows = calloc(side, row_len);
    _cleanup_(freep) uint8_t *packed = malloc(compressBound(side * row_len));
    uint8_t header[13] = {[8] = 1}; /* a bit a pixel, grey */
    uLongf n = compressBound(side * row_len);

    if (!rows || !packed || n + 100 > QR_PNG_MAX)
        return err_set(e, -ENOMEM, "no memory for an image");
    put_be32(header, side);
    put_be32(header + 4, side);
    /* Rows of @side pixels, each behind the byte that says that it is not filtered; light is 1. */
    for (unsigned y = 0; y < side; y++)
        for (unsigned x = 0; x < side; x++)
            if (is_light(code, (int)(x / SCALE) - QUIET_ZONE, (int)(y / SCALE) - QUIET_ZONE))
                rows[y * row_len + 1 + x / 8] |= (uint8_t)(0x80 >> (x % 8));
    if (compress(packed, &n, rows, side * row_len) != Z_OK)
        return err_set(e, -ENOMEM, "no memory for an image");
    memcpy(png->bytes, "\x89PNG\r\n\x1a\n", 8);
    png->len = 8;
    add_chunk(png, "IHDR", header, sizeof(header));
    add_chunk(png, "IDAT", packed, n);
    add_chunk(png, "IEND", NULL, 0);
    secret_wipe(rows, side * row_len);
    secret_wipe(packed, n);
    return 0;
}

int qr_png(const char *text, size_t len, uint8_t **ret, size_t *ret_len, struct err *e)
{
    struct png png = {.bytes = malloc(QR_PNG_MAX)};
    QRcode *code = NULL;
    int r = png.bytes ? encode(&code, text, len, e) : err_set(e, -ENOMEM, "no memory for an image");

    if (r == 0)
        r = add_image(&png, code, e);
    QRcode_free(code);
    if (r != 0) {
        free(png.bytes);
        return r;
    }
    *ret = png.bytes;
    *ret_len = png.len;
    return 0;
}
