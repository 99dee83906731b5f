/* test-qr.c - a QR code as an image: what a reader of PNG finds in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <qrencode.h>
#include <zlib.h>

#include "cmd/qr.h"

#define TEXT   "[Interface]\nPrivateKey = abc\nAddress = 10.77.0.2/32\n"
#define SCALE  6
#define BORDER 4

static uint32_t be32(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The chunk at @at, whose type and sum have to be right; its length. */
static size_t chunk(const uint8_t *at, const char *type)
{
    size_t len = be32(at);

    assert_memory_equal(at + 4, type, 4);
    assert_int_equal(be32(at + 8 + len), crc32(0, at + 4, (uInt)len + 4));
    return len;
}

/* Each module is where libqrencode has it, as a square, within a light border. */
static void test_png(void **state)
{
    QRcode *code =
        QRcode_encodeData((int)strlen(TEXT), (const unsigned char *)TEXT, 0, QR_ECLEVEL_L);
    unsigned side = ((unsigned)code->width + 2 * BORDER) * SCALE;
    uLongf n = side * (1 + (side + 7) / 8);
    uint8_t *rows = malloc(n);
    uint8_t *png = NULL;
    size_t len = 0;
    size_t data;

    (void)state;
    assert_int_equal(qr_png(TEXT, strlen(TEXT), &png, &len, NULL), 0);
    assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(chunk(png + 8, "IHDR"), 13);
    assert_int_equal(be32(png + 16), side);
    assert_int_equal(be32(png + 20), side);
    assert_memory_equal(png + 24, "\x01\x00\x00\x00\x00", 5);
    data = chunk(png + 33, "IDAT");
    assert_int_equal(chunk(png + 33 + data + 12, "IEND"), 0);
    assert_int_equal(len, 33 + data + 24);
    assert_int_equal(uncompress(rows, &n, png + 41, data), Z_OK);
    for (unsigned y = 0; y < side; y++) {
        const uint8_t *row = rows + y * (1 + (side + 7) / 8);

        assert_int_equal(row[0], 0);
        for (unsigned x = 0; x < side; x++) {
            int mx = (int)(x / SCALE) - BORDER;
            int my = (int)(y / SCALE) - BORDER;
            bool is_code = mx >= 0 && my >= 0 && mx < code->width && my < code->width;
            bool is_dark = is_code && (code->data[my * code->width + mx] & 1);

            assert_int_equal(!(row[1 + x / 8] & (0x80 >> (x % 8))), is_dark);
        }
    }
    QRcode_free(code);
    free(rows);
    free(png);
}

/* The largest code there is. */
static void test_as_much_as_fits(void **state)
{
    static char text[QR_BYTES_MAX + 1];
    uint8_t *png = NULL;
    size_t len = 0;

    (void)state;
    memset(text, 'x', QR_BYTES_MAX);
    assert_int_equal(qr_png(text, QR_BYTES_MAX, &png, &len, NULL), 0);
    assert_in_range(len, 1000, QR_PNG_MAX);
    free(png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_as_much_as_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
