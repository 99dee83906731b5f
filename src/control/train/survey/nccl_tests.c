/* nccl_tests.c - see nccl_tests.h. */
#include "train/survey/nccl_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define WORDS_MAX      16

/* Columns of one way: time, algbw, busbw, wrong. */
#define WAY_COLUMNS 4

/* Columns before these: size, count, type, redop, and in later versions root. */
#define HEAD_OLD 4
#define HEAD_NEW 5

/* The largest of figures that can be true, so that no sum of them overflows. */
#define FIGURE_MAX 1e12

/* Splits a line at its blanks. */
static size_t split(char *line, char *words[static WORDS_MAX])
{
    char *rest = NULL;
    size_t n = 0;

    for (char *word = strtok_r(line, " \t\r", &rest); word && n < WORDS_MAX;
         word = strtok_r(NULL, " \t\r", &rest))
        words[n++] = word;
    return n;
}

static bool read_figure(double *ret, const char *word)
{
    char *end;
    double v = word[0] >= '0' && word[0] <= '9' ? strtod(word, &end) : -1;

    if (!(v >= 0 && v <= FIGURE_MAX) || *end != '\0')
        return false;
    *ret = v;
    return true;
}

/* Reads one way. The last column is a count of wrong values, a largest error, or N/A. */
static bool read_way(
    struct nccl_tests_size *ret, bool is_counted, char *const words[], bool *ret_wrong)
{
    double wrong = 0;

    if (!read_figure(&ret->us, words[0]) || !read_figure(&ret->algbw, words[1]) ||
        !read_figure(&ret->busbw, words[2]))
        return false;
    if (is_counted && read_figure(&wrong, words[3]) && wrong > 0)
        *ret_wrong = true;
    return true;
}

static void take_size(struct nccl_tests *t, char *words[], size_t n)
{
    bool is_new = n == HEAD_NEW + 2 * WAY_COLUMNS;
    size_t head = is_new ? HEAD_NEW : HEAD_OLD;
    struct nccl_tests_size out = {.bytes = 0};
    struct nccl_tests_size in = {.bytes = 0};
    double bytes;

    if ((!is_new && n != HEAD_OLD + 2 * WAY_COLUMNS) || t->n_sizes == NCCL_TESTS_SIZES_MAX ||
        !read_figure(&bytes, words[0]) || bytes > 1e15 ||
        !read_way(&out, is_new, words + head, &t->is_wrong) ||
        !read_way(&in, is_new, words + head + WAY_COLUMNS, &t->is_wrong))
        return;
    if (in.busbw > out.busbw)
        out = in;
    out.bytes = (uint64_t)bytes;
    t->sizes[t->n_sizes++] = out;
}

/* "# Avg bus bandwidth    : 22.4215", "# Out of bounds values : 0 OK", "#  Rank  0 Group  0 ...".
 */
static void take_remark(struct nccl_tests *t, const char *line)
{
    static const char average[] = "Avg bus bandwidth";
    const char *found = strstr(line, average);
    const char *colon = found ? strchr(found, ':') : NULL;
    double v = colon ? strtod(colon + 1, NULL) : 0;

    if (v > 0 && v <= FIGURE_MAX)
        t->average = v;
    if (strstr(line, "Out of bounds values") && strstr(line, "FAILED"))
        t->is_wrong = true;
    line += strspn(line, "# \t");
    if (strncmp(line, "Rank ", 5) == 0 && strstr(line, " device ") && t->n_ranks < UINT16_MAX)
        t->n_ranks++;
}

void nccl_tests_take(struct nccl_tests *t, const char *line, size_t len)
{
    char text[LINE_MAX_BYTES];
    char *words[WORDS_MAX];
    char *start = text;
    char *tag;

    if (memmem(line, len, " NCCL ", 6)) {
        (void)nccl_log_take(&t->log, line, len);
        return;
    }
    len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
    memcpy(text, line, len);
    text[len] = '\0';
    tag = strstr(text, ">:");
    if (text[0] == '[' && tag)
        start = tag + 2;
    start += strspn(start, " \t");
    if (start[0] == '#')
        take_remark(t, start);
    else if (start[0] >= '0' && start[0] <= '9')
        take_size(t, words, split(start, words));
}

void nccl_tests_take_all(struct nccl_tests *t, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        nccl_tests_take(t, text, len);
        text += len + (text[len] == '\n');
    }
}

const struct nccl_tests_size *nccl_tests_best(const struct nccl_tests *t)
{
    const struct nccl_tests_size *best = NULL;

    for (size_t i = 0; i < t->n_sizes; i++)
        if (!best || t->sizes[i].busbw > best->busbw)
            best = &t->sizes[i];
    return best;
}
