/* run_budget.c - see run_budget.h. */
#include "cmd/run_budget.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/traffic.h"
#include "cmd/cmd.h"
#include "mesh/object/fields.h"

/* Longest amount, with its unit. */
#define AMOUNT_TEXT_MAX 48

/* Nodes of the job that write at the same time are refused but for one; they look again. */
#define TRIES 8

static int refuse_amount(const char *text, struct err *e)
{
    return err_set(e, -EINVAL,
        "--budget \"%.60s\" is neither money, such as 20 or 12.5, nor bytes, such as 500GB or 2TB, "
        "of a day: above 0, and at most %.0g",
        text, BUDGET_MAX);
}

/* What a unit at the end of @text stands for, which is cut off; 0: there is none. */
static double take_unit(char *text)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1}};
    size_t len = strlen(text);

    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        size_t n = strlen(units[i].name);

        if (len <= n || strcmp(text + len - n, units[i].name) != 0)
            continue;
        text[len - n] = '\0';
        return units[i].bytes;
    }
    return 0;
}

/* "20", "20/day", "2TB", "1.5e3GB/day" */
static int read_amount(struct budget *ret, const char *text, struct err *e)
{
    static const char day[] = "/day";
    char plain[AMOUNT_TEXT_MAX];
    size_t len = strnlen(text, sizeof(plain));
    json_t *json;
    double unit;
    double value;

    if (len >= sizeof(plain))
        return refuse_amount(text, e);
    memcpy(plain, text, len + 1);
    if (len > strlen(day) && strcmp(plain + len - strlen(day), day) == 0)
        plain[len - strlen(day)] = '\0';
    unit = take_unit(plain);
    json = json_string(plain);
    value = fields_decimal(json) * (unit > 0 ? unit : 1);
    json_decref(json);
    /* Of bytes at least one. */
    if (!isfinite(value) || value <= 0 || value > BUDGET_MAX || (unit > 0 && value < 1))
        return refuse_amount(text, e);
    if (unit > 0)
        ret->bytes = (uint64_t)value;
    else
        ret->cost = value;
    return 0;
}

int run_budget_check(struct run_budget *b, struct err *e)
{
    int r;

    b->target.socket = ADMIN_SOCKET_DEFAULT;
    b->budget = (struct budget){.cost = 0};
    if ((b->target.hub || b->target.token_file || b->target.pin) && !b->amount)
        return err_set(e, -EINVAL,
            "--hub, --admin-token-file and --pin are for --budget, and there is no --budget");
    if (!b->amount)
        return 0;
    r = admin_check(&b->target, e);
    if (r == 0)
        r = read_amount(&b->budget, b->amount, e);
    return r;
}

/* Puts the budget in place of the job's. @spec: of the network. Return: it is another one than
 * before. */
static bool put(json_t *spec, const struct budget *budget)
{
    const struct budgets one = {.items = {*budget}, .n = 1};
    json_t *wanted = budgets_encode(&one);
    json_t *entry = json_array_get(wanted, 0);
    json_t *list = json_object_get(spec, "budgets");
    bool is_other = true;
    size_t i = 0;

    if (!json_is_array(list)) {
        list = json_array();
        (void)json_object_set_new(spec, "budgets", list);
    }
    while (i < json_array_size(list) &&
           strcmp(admin_field(json_array_get(list, i), NULL, "job"), budget->job) != 0)
        i++;
    if (i < json_array_size(list)) {
        is_other = !json_equal(json_array_get(list, i), entry);
        (void)json_array_set(list, i, entry);
    } else {
        (void)json_array_append(list, entry);
    }
    json_decref(wanted);
    return is_other;
}

static void say(const struct budget *budget)
{
    char bytes[TRAFFIC_BYTES_TEXT_MAX];

    (void)fprintf(stderr, "weft run: job %s has a budget of ", budget->job);
    if (budget->cost > 0)
        (void)fprintf(stderr, "%.2f a day", budget->cost);
    else
        (void)fprintf(stderr, "%s a day", traffic_bytes_format(budget->bytes, bytes));
    (void)fprintf(stderr, "\n");
}

int run_budget_set(const struct run_budget *b, const char *network, const char *job)
{
    struct budget budget = b->budget;
    char path[160];
    int status = CMD_OK;
    bool is_written = false;

    if (!b->amount)
        return CMD_OK;
    (void)snprintf(budget.job, sizeof(budget.job), "%s", job);
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/objects/Network/%s", network, network);
    for (unsigned i = 0; i < TRIES && !is_written && status == CMD_OK; i++) {
        _cleanup_(client_answer_deinit) struct client_answer before = CLIENT_ANSWER_NULL;
        json_t *spec;

        status = admin_call(&b->target, "run", "GET", path, NULL, &before);
        if (status != CMD_OK)
            break;
        spec = json_object_get(before.body, "spec");
        if (!json_is_object(spec))
            return cmd_fail("run", "the hub's answer is no network: its budget is not set");
        is_written = !put(spec, &budget);
        if (!is_written)
            status = admin_put(&b->target, "run", path, before.body, &is_written);
    }
    if (status == CMD_OK && !is_written)
        return cmd_fail("run",
            "the network's object was changed by others %u times meanwhile: its budget is not set",
            TRIES);
    if (status == CMD_OK)
        say(&budget);
    return status;
}
