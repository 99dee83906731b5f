/* fuzz-probe-line.c - the lines of measuring: orders, results and facts that another member sends,
 * and what an agent tells its measuring process, by somebody else. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/text.h"
#include "measure/facts.h"
#include "measure/order.h"
#include "measure/result.h"
#include "measure/service_process.h"
#include "measure/train_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was taken in is within its bounds, and is read back as what it was. */
static void check_order(const json_t *json)
{
    struct order o = ORDER_NULL;
    struct order again = ORDER_NULL;
    struct err e = ERR_NULL;
    json_t *text;

    if (order_decode(&o, json, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    assert(o.n_addrs <= ORDER_NODES_MAX && o.n_names <= ORDER_NODES_MAX);
    assert(o.streams <= ORDER_STREAMS_MAX && o.ms <= ORDER_MS_MAX && o.pings <= ORDER_PINGS_MAX);
    assert(o.datagrams <= ORDER_DATAGRAMS_MAX && o.per_second <= ORDER_PER_SECOND_MAX);
    assert(o.kind != ORDER_LOSS || (o.datagrams > 0 && o.per_second > 0 && o.ms > 0));
    assert(o.kind != ORDER_BURST || (o.ms <= ORDER_BURST_MS_MAX && o.bytes <= ORDER_BURST_MAX));
    assert(!o.is_paced || (o.bits_per_s > 0 && o.at_once <= ORDER_AT_ONCE_MAX && o.at_once > 0));
    assert(o.kind != ORDER_CATCH || (o.size >= FRAME_LEN && o.size <= ORDER_DATAGRAM_MAX));
    assert(o.kind != ORDER_ALLREDUCE || (o.rank < o.n_addrs && o.bytes <= ORDER_VECTOR_MAX));
    text = order_encode(&o);
    assert(text && order_decode(&again, text, &e) == 0);
    assert(again.kind == o.kind && again.bytes == o.bytes && again.rank == o.rank);
    assert(again.has_proof == o.has_proof && again.datagrams == o.datagrams);
    assert(memcmp(again.proof.mac, o.proof.mac, sizeof(o.proof.mac)) == 0);
    json_decref(text);
    order_deinit(&again);
    order_deinit(&o);
}

/* A challenge is read back as what it was; what is proven about it is of the same length always. */
static void check_challenge(const json_t *json)
{
    const struct order o = {.kind = ORDER_SESSION, .purpose = "bench", .seconds = 1};
    struct order_challenge c;
    struct order_challenge again;
    struct measure_proof p;
    json_t *text;

    if (!order_challenge_decode(&c, json))
        return;
    text = order_challenge_encode(&c, "no");
    assert(text && order_challenge_decode(&again, text));
    p = order_proof_input(&o, &again);
    assert(memcmp(p.challenge, c.b, sizeof(c.b)) == 0);
    json_decref(text);
}

/* What was taken in can be written, and is taken in again. */
static void check_facts(const struct facts *facts)
{
    static struct facts again;
    json_t *text = facts_encode(facts);
    json_t *twice;

    assert(text && facts_decode(&again, text, NULL) == 0);
    twice = facts_encode(&again);
    assert(json_equal(text, twice));
    json_decref(text);
    json_decref(twice);
}

static void check_idle(const struct idle_test *idle)
{
    struct idle_test again;
    json_t *text = idle_test_encode(idle);
    json_t *twice;

    assert(text && idle_test_decode(&again, text, NULL) == 0);
    twice = idle_test_encode(&again);
    assert(json_equal(text, twice));
    json_decref(text);
    json_decref(twice);
}

/* Marks that somebody else has made say something or nothing, whatever they are. */
static void check_caught(const struct caught *caught)
{
    struct train_marks sent = {.n = 0};
    struct caught again;
    json_t *text = caught_encode(caught);
    struct train_result r;

    assert(caught->heard <= 10000000 && caught->marks.n <= TRAIN_MARKS_MAX);
    assert(text && caught_decode(&again, text, NULL) == 0);
    assert(again.marks.n == caught->marks.n && again.missed == caught->missed);
    json_decref(text);
    for (uint32_t i = 0; i < 64; i++)
        train_marks_add(&sent, &(struct train_mark){.at = i * NSEC_PER_MSEC, .sent = 32 * i});
    r = train_evaluate(&sent, &caught->marks, 1420, caught->missed);
    assert(r.verdict < TRAIN_VERDICT_N && (r.verdict == TRAIN_NOTHING || r.bits_per_s > 0));
}

static void check_results(const json_t *json)
{
    static struct facts facts;
    struct idle_test idle;
    struct bulk bulk;
    struct loss_test loss;
    struct burst burst;
    struct caught caught;
    struct allreduce sum;
    struct wrong_name wrong;
    struct err e = ERR_NULL;
    const char *name;
    json_t *where;

    json_object_foreach((json_t *)json, name, where)
        if (wrong_name_decode(&wrong, name, where))
            assert(text_is_plain(wrong.name, strlen(wrong.name)) &&
                   text_is_plain(wrong.where, strlen(wrong.where)));
    if (idle_test_decode(&idle, json, &e) == 0) {
        assert(memchr(idle.why, '\0', sizeof(idle.why)) && idle.route_mtu <= UINT16_MAX);
        check_idle(&idle);
    }
    if (bulk_decode(&bulk, json, &e) == 0)
        assert(memchr(bulk.via, '\0', sizeof(bulk.via)));
    if (loss_test_decode(&loss, json, &e) == 0)
        assert(memchr(loss.why, '\0', sizeof(loss.why)) && loss.heard <= loss.sent);
    if (burst_decode(&burst, json, &e) == 0)
        assert(memchr(burst.via, '\0', sizeof(burst.via)) && burst.size <= UINT16_MAX);
    if (caught_decode(&caught, json, &e) == 0)
        check_caught(&caught);
    if (allreduce_decode(&sum, json, &e) == 0)
        assert(sum.elapsed >= 0);
    if (facts_decode(&facts, json, &e) == 0) {
        assert(facts.n_interfaces <= FACTS_INTERFACES_MAX);
        check_facts(&facts);
    }
}

/* What a hub says to the process that sends its trains, and what that answers. */
static void check_trains(const json_t *json)
{
    struct train_task task;
    struct train_task task_again;
    struct train_answer answer;
    struct train_answer answer_again;
    json_t *text;

    if (train_task_decode(&task, json, NULL) == 0) {
        text = train_task_encode(&task);
        assert(text && train_task_decode(&task_again, text, NULL) == 0);
        assert(task_again.known == task.known && task_again.port == task.port);
        json_decref(text);
    }
    if (train_answer_decode(&answer, json, NULL) != 0)
        return;
    text = train_answer_encode(&answer);
    assert(text && train_answer_decode(&answer_again, text, NULL) == 0);
    assert(answer_again.bits_per_s == answer.bits_per_s);
    json_decref(text);
}

static void check_message(const json_t *json)
{
    struct service_wire m;
    struct service_wire again;
    json_t *text;
    json_t *twice;

    if (service_wire_decode(&m, json, NULL) != 0)
        return;
    assert(m.type < SERVICE_WIRE_N && m.n <= SERVICE_WIRE_MEMBERS_MAX && !strchr(m.interface, '/'));
    text = service_wire_encode(&m);
    assert(text && service_wire_decode(&again, text, NULL) == 0);
    twice = service_wire_encode(&again);
    assert(json_equal(text, twice));
    json_decref(text);
    json_decref(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *json = NULL;

    if (body_parse(&json, (const char *)data, len, NULL) != 0)
        return 0;
    check_order(json);
    check_challenge(json);
    check_results(json);
    check_message(json);
    check_trains(json);
    json_decref(json);
    return 0;
}
