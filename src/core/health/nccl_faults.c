/* nccl_faults.c - see nccl_faults.h. */
#include "health/nccl_faults.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "mesh/object/fields.h"

/* Longest name of a kind, and most kinds, that a newer version may send. */
#define KIND_MAX  40
#define KINDS_MAX 32

static const char *const kind_names[] = {
    "network", "poll", "completion", "unreached", "closed", "timeout"};
_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == NCCL_FAULT_N, "a name each");

/*
 * What lines of the level WARN say, as it stands in NCCL 2.8 to 2.30 (src/misc/socket.cc,
 * src/misc/ibvwrap.cc, src/transport/net_ib.cc) and in aws-ofi-nccl; and PyTorch's watchdog, where
 * its output goes to the same file. The first that is found counts, so those that may stand beside
 * others in a line are first.
 */
static const struct {
    const char *words;
    enum nccl_fault_kind kind;
} sentences[] = {
    {"ibv_poll_cq", NCCL_FAULT_POLL},
    {"Got completion from peer", NCCL_FAULT_COMPLETION},
    {"completed with error", NCCL_FAULT_COMPLETION},
    {"async fatal event", NCCL_FAULT_COMPLETION},
    {"exceeded error retry count", NCCL_FAULT_UNREACHED},
    {"exceeded retries", NCCL_FAULT_UNREACHED},
    {"socketStartConnect: Connect to", NCCL_FAULT_UNREACHED},
    {"Call to connect", NCCL_FAULT_UNREACHED},
    {"ibv_modify_qp failed", NCCL_FAULT_UNREACHED},
    {"onnection closed by remote peer", NCCL_FAULT_CLOSED},
    {"Connection reset by peer", NCCL_FAULT_CLOSED},
    {"Broken pipe", NCCL_FAULT_CLOSED},
    {"Connection timed out", NCCL_FAULT_TIMEOUT},
    {"No route to host", NCCL_FAULT_TIMEOUT},
    {"imeout waiting for", NCCL_FAULT_TIMEOUT},
    {"timed out", NCCL_FAULT_TIMEOUT},
};

/* PyTorch: "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(...) ran for ...". */
static const char *const watchdogs[] = {
    "Watchdog caught collective operation timeout", "Caught collective operation timeout"};

/* The text from @words on; NULL: they are not in it. */
static const char *find(const char *line, size_t len, const char *words)
{
    return memmem(line, len, words, strlen(words));
}

static void count(struct nccl_fault *f)
{
    f->n += f->n < NCCL_FAULT_COUNT_MAX;
}

/* Copies what can be printed, without blanks at the end. */
static void copy(char ret[static NCCL_FAULT_TEXT_MAX], const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < NCCL_FAULT_TEXT_MAX; i++)
        ret[n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

/* Which kind a line is of, and where its sentence begins; NCCL_FAULT_N: of none. */
static enum nccl_fault_kind classify(const char *line, size_t len, const char **ret)
{
    static const char level[] = "NCCL WARN ";
    size_t left;

    *ret = find(line, len, level);
    if (*ret) {
        *ret += strlen(level);
        left = (size_t)(line + len - *ret);
        for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++)
            if (find(*ret, left, sentences[i].words))
                return sentences[i].kind;
        return NCCL_FAULT_N;
    }
    for (size_t i = 0; i < sizeof(watchdogs) / sizeof(*watchdogs); i++) {
        *ret = find(line, len, watchdogs[i]);
        if (*ret)
            return NCCL_FAULT_TIMEOUT;
    }
    return NCCL_FAULT_N;
}

bool nccl_faults_take(
    struct nccl_faults *f, const char *line, size_t len, enum nccl_fault_kind *ret)
{
    const char *text;
    enum nccl_fault_kind kind = classify(line, len, &text);

    if (kind == NCCL_FAULT_N)
        return false;
    count(&f->kinds[kind]);
    if (f->kinds[kind].n > 1)
        return false;
    copy(f->kinds[kind].text, text, (size_t)(line + len - text));
    *ret = kind;
    return true;
}

void nccl_faults_note(struct nccl_faults *f, enum nccl_fault_kind kind, const char *text)
{
    count(&f->kinds[kind]);
    copy(f->kinds[kind].text, text, strlen(text));
}

/* ---- as JSON -------------------------------------------------------------------------------- */

json_t *nccl_faults_encode(const struct nccl_faults *f)
{
    json_t *list = NULL;

    for (unsigned i = 0; i < NCCL_FAULT_N; i++) {
        const struct nccl_fault *one = &f->kinds[i];

        if (one->n == 0)
            continue;
        list = list ? list : json_array();
        (void)json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "kind", kind_names[i],
                                              "count", (json_int_t)one->n, "text", one->text));
    }
    return list;
}

/* A kind that only a newer version knows is passed over. */
static void read_one(struct nccl_faults *ret, const json_t *json, struct fields *all)
{
    struct fields f = fields_make(json, "an entry of \"nccl\"", all->e);
    struct nccl_fault one = {.n = 0};
    const char *word = fields_string(&f, "kind", FIELDS_REQUIRED, 1, KIND_MAX);
    size_t kind = parse_word(word, kind_names, NCCL_FAULT_N);

    fields_int(&f, "count", FIELDS_REQUIRED, 1, NCCL_FAULT_COUNT_MAX, &one.n);
    fields_text(&f, "text", FIELDS_REQUIRED, 0, sizeof(one.text), one.text);
    all->failed = fields_end(&f);
    if (all->failed == 0 && kind < NCCL_FAULT_N)
        ret->kinds[kind] = one;
}

void nccl_faults_read(struct nccl_faults *ret, struct fields *fields, const char *name)
{
    const json_t *list = fields_array(fields, name, FIELDS_OPTIONAL, 0, KINDS_MAX);

    for (size_t i = 0; fields->failed == 0 && i < json_array_size(list); i++)
        read_one(ret, json_array_get(list, i), fields);
}
