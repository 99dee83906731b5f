/* heatmap.c - see heatmap.h. */
#include "train/survey/heatmap.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "train/survey/bench.h"

#define CELL       56  /* side of a square, pixels */
#define LABEL      110 /* space left of the squares for the names, pixels */
#define HEAD       70  /* space above the squares, pixels */
#define FOOT       40  /* space below the squares, pixels */
#define TEXT_NODES 32  /* with more members the squares have no figures */

struct colour {
    unsigned r, g, b;
};

static const struct colour slow = {0xfd, 0xf3, 0xd8};
static const struct colour fast = {0x0b, 0x3c, 0x6f};

/* The slowest and the fastest rate that was measured, in bits per second. */
struct scale {
    uint64_t min;
    uint64_t max;
};

static struct scale find_scale(const struct bench *b)
{
    struct scale s = {.min = UINT64_MAX};

    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++) {
            uint64_t rate = bench_rate(b, from, to);

            if (rate == 0)
                continue;
            s.min = rate < s.min ? rate : s.min;
            s.max = rate > s.max ? rate : s.max;
        }
    return s;
}

/* Returns where a rate is on the logarithmic scale: 0 for the slowest, 1 for the fastest, and 1 if
 * all rates are the same. */
static double place(const struct scale *s, uint64_t rate)
{
    if (s->max <= s->min)
        return 1;
    return log((double)rate / (double)s->min) / log((double)s->max / (double)s->min);
}

static struct colour mix(double t)
{
    return (struct colour){
        .r = (unsigned)lround(slow.r + t * ((double)fast.r - slow.r)),
        .g = (unsigned)lround(slow.g + t * ((double)fast.g - slow.g)),
        .b = (unsigned)lround(slow.b + t * ((double)fast.b - slow.b)),
    };
}

static void draw_names(const struct bench *b, struct str *out)
{
    for (size_t i = 0; i < b->n_nodes; i++) {
        size_t middle = i * CELL + CELL / 2;

        str_addf(out,
            "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%.16s</text>\n"
            "<text x=\"%zu\" y=\"%d\" text-anchor=\"middle\">%.8s</text>\n",
            LABEL - 8, HEAD + middle + 4, b->nodes[i].name, LABEL + middle, HEAD - 8,
            b->nodes[i].name);
    }
}

static void draw_square(
    const struct bench *b, const struct scale *s, size_t from, size_t to, struct str *out)
{
    uint64_t rate = bench_rate(b, from, to);
    size_t x = LABEL + to * CELL;
    size_t y = HEAD + from * CELL;
    double t = rate > 0 ? place(s, rate) : 0;
    struct colour c = mix(t);
    bool is_bad = b->expect_bps > 0 && rate < b->expect_bps;
    char text[32];

    str_addf(out, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" ", x + 1, y + 1, CELL - 2,
        CELL - 2);
    if (rate > 0)
        str_addf(out, "fill=\"#%02x%02x%02x\"", c.r, c.g, c.b);
    else
        str_add(out, "fill=\"none\" stroke-dasharray=\"4\"");
    str_addf(
        out, " stroke=\"%s\" stroke-width=\"%d\">", is_bad ? "#c0152f" : "#bbbbbb", is_bad ? 3 : 1);
    str_addf(out, "<title>%s to %s: %s</title></rect>\n", b->nodes[from].name, b->nodes[to].name,
        rate > 0 ? bench_format_rate(rate, text) : "not measured");
    if (rate > 0 && b->n_nodes <= TEXT_NODES)
        str_addf(out, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\" fill=\"%s\">%.*f</text>\n",
            x + CELL / 2, y + CELL / 2 + 4, t > 0.5 ? "#ffffff" : "#222222",
            rate < 10000000 ? 1 : 0, (double)rate / 1e6);
}

void heatmap_draw(const struct bench *b, struct str *out)
{
    struct scale s = find_scale(b);
    size_t side = b->n_nodes * CELL;
    char slowest[32];
    char fastest[32];

    str_addf(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
        "<text x=\"10\" y=\"24\" font-size=\"15\">%s: Mbit/s, from a row to a column</text>\n",
        LABEL + side + 20, HEAD + side + FOOT, b->network);
    draw_names(b, out);
    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (from != to)
                draw_square(b, &s, from, to, out);
    if (s.max > 0)
        str_addf(out, "<text x=\"%d\" y=\"%zu\">slowest %s, fastest %s</text>\n", LABEL,
            HEAD + side + 24, bench_format_rate(s.min, slowest), bench_format_rate(s.max, fastest));
    str_add(out, "</svg>\n");
}
