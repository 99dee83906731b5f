/*
 * status_cells.h - fields of the status's JSON as words: cells of its tables, and parts of its
 * sentences.
 *
 * A field may be missing or of another type, where the agent is of another version.
 */
#pragma once

#include <jansson.h>

#define STATUS_CELL_MAX 32 /* with the NUL */

/** status_cells_text() - a text; @instead if there is none or it is empty. Borrowed from @obj. */
const char *status_cells_text(const json_t *obj, const char *field, const char *instead);

/** status_cells_age() - of the last handshake: "12 s ago", "never". */
const char *status_cells_age(const json_t *obj, char buf[static STATUS_CELL_MAX]);

/** status_cells_bytes() - "1.5 KiB". Return: @buf. */
const char *status_cells_bytes(
    const json_t *obj, const char *field, char buf[static STATUS_CELL_MAX]);

/** status_cells_time() - of a field in seconds: "3 min". Return: @buf. */
const char *status_cells_time(
    const json_t *obj, const char *field, char buf[static STATUS_CELL_MAX]);

/** status_cells_real() - of a number, times @factor: "0.4 ms"; "-": it is not known. */
const char *status_cells_real(const json_t *obj, const char *field, double factor, const char *unit,
    char buf[static STATUS_CELL_MAX]);
