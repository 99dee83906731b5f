/*
 * heatmap.h - the matrix of a benchmark as a picture (SVG). Pure.
 */
#pragma once

struct bench;
struct str;

/**
 * heatmap_draw() - append an SVG document to @out, which remembers a failure
 *
 * It has a square for each direction, from the member of its row to the member of its column. The
 * faster the direction, the darker the square, on a logarithmic scale between the slowest and the
 * fastest. The square of a direction that is slower than expected has a red frame. The square of a
 * direction that was not measured is empty.
 */
void heatmap_draw(const struct bench *b, struct str *out);
