/* qr.c - see qr.h. */
#include "qr.h"

#include <errno.h>
#include <qrencode.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

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

static void add_lines(struct str *out, const QRcode *code)
{
    /* Indices: is the upper module light, is the lower one? */
    static const char *const halves[2][2] = {{" ", "▄"}, {"▀", "█"}};
    const int end = code->width + QUIET_ZONE;

    for (int y = -QUIET_ZONE; y < end; y += 2) {
        str_add(out, BLACK_AND_WHITE);
        for (int x = -QUIET_ZONE; x < end; x++)
            str_add(out, halves[is_light(code, x, y)][is_light(code, x, y + 1)]);
        str_add(out, AS_BEFORE "\n");
    }
}

int qr_format(struct str *out, const char *text, size_t len, unsigned *ret_columns, struct err *e)
{
    QRcode *code = QRcode_encodeData((int)len, (const unsigned char *)text, 0, QR_ECLEVEL_L);

    if (!code)
        return err_set(e, -errno, "no QR code can be made of %zu bytes: %s", len, strerror(errno));
    add_lines(out, code);
    *ret_columns = (unsigned)code->width + 2 * QUIET_ZONE;
    QRcode_free(code);
    return out->failed ? err_set(e, -ENOMEM, "no memory for a QR code") : 0;
}
