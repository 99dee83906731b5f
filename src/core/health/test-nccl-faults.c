/*
 * test-nccl-faults.c - what goes wrong, by lines of NCCL's log.
 *
 * The lines have the form that NCCL 2.8 to 2.30, aws-ofi-nccl and PyTorch give them, as in their
 * source; host names and addresses are changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "health/nccl_faults.h"
#include "mesh/object/fields.h"

#define WARN "gpu-1:188:585 [0] misc/socket.cc:484 NCCL WARN "

static const struct {
    const char *line;
    enum nccl_fault_kind kind; /* NCCL_FAULT_N: of none */
    const char *text;
} cases[] = {
    {WARN "Net : Connection closed by remote peer gpu-2<35838>", NCCL_FAULT_CLOSED,
        "Net : Connection closed by remote peer gpu-2<35838>"},
    {WARN "socketProgress: Connection closed by remote peer 10.42.0.7<47634>\r", NCCL_FAULT_CLOSED,
        "socketProgress: Connection closed by remote peer 10.42.0.7<47634>"},
    {WARN "socketProgressOpt: Call to recv from 10.42.0.7<3335> failed : Connection reset by peer",
        NCCL_FAULT_CLOSED,
        "socketProgressOpt: Call to recv from 10.42.0.7<3335> failed : Connection reset by peer"},
    {WARN "NET/Socket : socketProgressOpt: Call to send to 10.42.0.7<3335> failed : Broken pipe",
        NCCL_FAULT_CLOSED,
        "NET/Socket : socketProgressOpt: Call to send to 10.42.0.7<3335> failed : Broken pipe"},
    {WARN "NET/IB : Got completion from peer 10.42.0.7<40223> with error 12, opcode 0, len 0, "
          "vendor err 129",
        NCCL_FAULT_COMPLETION,
        "NET/IB : Got completion from peer 10.42.0.7<40223> with error 12, opcode 0, len 0, vendor "
        "err 129"},
    {WARN "NET/IB: Got completion from peer 10.42.0.7<49210> with status=IBV_WC_RETRY_EXC_ERR(12) "
          "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Recv hca mlx5_0",
        NCCL_FAULT_COMPLETION,
        "NET/IB: Got completion from peer 10.42.0.7<49210> with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Recv hca mlx5_0"},
    {"[2026-09-09 10:46:33] gpu-2:319733:319761 [1] transport/net_ib/p2p.cc:648 NCCL WARN NET/IB: "
     "Got completion from peer 10.42.0.7<40554> with status=IBV_WC_RETRY_EXC_ERR(12) "
     "opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129 localGid ::ffff:1.1.2.2 hca mlx5_1",
        NCCL_FAULT_COMPLETION,
        "NET/IB: Got completion from peer 10.42.0.7<40554> with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129 localGid ::ffff:1.1.2.2 hca mlx5_1"},
    {WARN "NET/OFI Request 0x7f0 completed with error. RC: 113. Error: 4130 (Unresponsive "
          "receiver). Completed length: 0",
        NCCL_FAULT_COMPLETION,
        "NET/OFI Request 0x7f0 completed with error. RC: 113. Error: 4130 (Unresponsive receiver). "
        "Completed length: 0"},
    {WARN "NET/IB : mlx5_0:1 async fatal event: local catastrophic error", NCCL_FAULT_COMPLETION,
        "NET/IB : mlx5_0:1 async fatal event: local catastrophic error"},
    {WARN "Call to ibv_poll_cq() returned -1", NCCL_FAULT_POLL,
        "Call to ibv_poll_cq() returned -1"},
    {WARN "socketStartConnect: Connect to 10.0.0.7<40001> failed : No route to host",
        NCCL_FAULT_UNREACHED,
        "socketStartConnect: Connect to 10.0.0.7<40001> failed : No route to host"},
    {WARN "socketPollConnect: connect to 10.0.0.7<57943> returned Connection refused, exceeded "
          "error retry count after 35 attempts",
        NCCL_FAULT_UNREACHED,
        "socketPollConnect: connect to 10.0.0.7<57943> returned Connection refused, exceeded error "
        "retry count after 35 attempts"},
    {"[2026-02-25 16:41:56] gpu-3:23873:23873 [3] os/linux.cc:200 NCCL WARN "
     "ncclOsSocketPollConnect: connect to 10.0.0.7<37857> returned Connection refused, exceeded "
     "error retry count after 35 attempts",
        NCCL_FAULT_UNREACHED,
        "ncclOsSocketPollConnect: connect to 10.0.0.7<37857> returned Connection refused, exceeded "
        "error retry count after 35 attempts"},
    {WARN "Call to connect returned Connection timed out", NCCL_FAULT_UNREACHED,
        "Call to connect returned Connection timed out"},
    {WARN "Call to ibv_modify_qp failed with error Connection timed out errno 110",
        NCCL_FAULT_UNREACHED,
        "Call to ibv_modify_qp failed with error Connection timed out errno 110"},
    {WARN "socketProgressOpt: Call to recv from 10.42.0.7<3335> failed : Connection timed out",
        NCCL_FAULT_TIMEOUT,
        "socketProgressOpt: Call to recv from 10.42.0.7<3335> failed : Connection timed out"},
    {"[rank1]:[E1129 10:01:02.003 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective "
     "operation timeout: WorkNCCL(SeqNum=18, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600073 "
     "milliseconds before timing out.",
        NCCL_FAULT_TIMEOUT,
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18, OpType=ALLREDUCE, "
        "Timeout(ms)=600000) ran for 600073 milliseconds before timing out."},
    {"[Rank 3] Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)", NCCL_FAULT_TIMEOUT,
        "Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)"},
    /* A try that failed is not the end of trying, and a script may print what it likes. */
    {"gpu-1:188:585 [0] NCCL INFO socketPollConnect: connect to 10.0.0.7<57943> returned "
     "Connection refused, retrying (1/34) after sleep for 100 msec",
        NCCL_FAULT_N, NULL},
    {"gpu-1:188:585 [0] NCCL INFO [Service thread] Connection closed by localRank 0", NCCL_FAULT_N,
        NULL},
    {"epoch 3: Connection closed by remote peer", NCCL_FAULT_N, NULL},
    {WARN "Cuda failure 'unspecified launch failure'", NCCL_FAULT_N, NULL},
    {"", NCCL_FAULT_N, NULL},
};

static void test_each_line(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nccl_faults f = {.kinds = {{.n = 0}}};
        enum nccl_fault_kind kind = NCCL_FAULT_N;
        bool is_first = nccl_faults_take(&f, cases[i].line, strlen(cases[i].line), &kind);

        if (kind != cases[i].kind)
            fail_msg("%s: kind %u", cases[i].line, kind);
        assert_int_equal(is_first, kind != NCCL_FAULT_N);
        if (kind == NCCL_FAULT_N)
            continue;
        assert_int_equal(f.kinds[kind].n, 1);
        assert_string_equal(f.kinds[kind].text, cases[i].text);
    }
}

static void test_the_first_of_each_kind_is_kept(void **state)
{
    struct nccl_faults f = {.kinds = {{.n = 0}}};
    enum nccl_fault_kind kind = NCCL_FAULT_N;
    char line[4096] = WARN "Broken pipe ";

    assert_true(nccl_faults_take(&f, cases[0].line, strlen(cases[0].line), &kind));
    assert_false(nccl_faults_take(&f, cases[1].line, strlen(cases[1].line), &kind));
    assert_int_equal(f.kinds[NCCL_FAULT_CLOSED].n, 2);
    assert_string_equal(f.kinds[NCCL_FAULT_CLOSED].text, cases[0].text);
    f.kinds[NCCL_FAULT_CLOSED].n = NCCL_FAULT_COUNT_MAX;
    assert_false(nccl_faults_take(&f, cases[1].line, strlen(cases[1].line), &kind));
    assert_int_equal(f.kinds[NCCL_FAULT_CLOSED].n, NCCL_FAULT_COUNT_MAX);

    f = (struct nccl_faults){.kinds = {{.n = 0}}};
    memset(line + strlen(line), '\x1b', 1000);
    assert_true(nccl_faults_take(&f, line, sizeof(line), &kind));
    assert_string_equal(f.kinds[NCCL_FAULT_CLOSED].text, "Broken pipe");
}

static void read_back(const json_t *list, struct nccl_faults *ret, int wanted)
{
    json_t *json = json_pack("{s:O*}", "nccl", list);
    struct err e = ERR_NULL;
    struct fields f = fields_make(json, "sample", &e);

    nccl_faults_read(ret, &f, "nccl");
    assert_int_equal(fields_end(&f), wanted);
    assert_true(wanted == 0 || e.text[0] != '\0');
    json_decref(json);
}

static void test_json(void **state)
{
    struct nccl_faults f = {.kinds = {{.n = 0}}};
    struct nccl_faults again = {.kinds = {{.n = 0}}};
    enum nccl_fault_kind kind;
    json_t *list;

    assert_null(nccl_faults_encode(&f));
    read_back(NULL, &again, 0);
    assert_memory_equal(&again, &f, sizeof(f));
    nccl_faults_note(&f, NCCL_FAULT_NETWORK, "NCCL uses sockets");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        (void)nccl_faults_take(&f, cases[i].line, strlen(cases[i].line), &kind);
    list = nccl_faults_encode(&f);
    assert_int_equal(json_array_size(list), NCCL_FAULT_N);
    read_back(list, &again, 0);
    assert_memory_equal(&again, &f, sizeof(f));
    json_decref(list);
}

static void test_json_that_is_wrong(void **state)
{
    static const struct {
        const char *text;
        int wanted;
    } lists[] = {
        {"[{\"kind\": \"of-tomorrow\", \"count\": 1, \"text\": \"x\"}]", 0},
        {"[{\"kind\": \"closed\", \"count\": 0, \"text\": \"x\"}]", -22},
        {"[{\"kind\": \"closed\", \"count\": 1000001, \"text\": \"x\"}]", -22},
        {"[{\"kind\": \"closed\", \"count\": 1, \"text\": \"\\u001b\"}]", -22},
        {"[{\"kind\": \"closed\", \"count\": 1}]", -22},
        {"[{\"kind\": 7, \"count\": 1, \"text\": \"x\"}]", -22},
        {"[3]", -22},
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct nccl_faults f = {.kinds = {{.n = 0}}};
        json_t *list = json_loads(lists[i].text, 0, NULL);

        assert_non_null(list);
        read_back(list, &f, lists[i].wanted);
        for (unsigned k = 0; k < NCCL_FAULT_N; k++)
            assert_int_equal(f.kinds[k].n, 0);
        json_decref(list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_line),
        cmocka_unit_test(test_the_first_of_each_kind_is_kept),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_that_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
