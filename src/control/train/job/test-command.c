/* test-command.c - what is read off the words of a command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/parse.h"
#include "test/support/sample_command.h"
#include "train/job/command.h"

static void test_kinds(void **state)
{
    static const struct {
        const char *line;
        enum command_kind kind;
        const char *job;
    } cases[] = {
        {"torchrun --nnodes 4 train.py", COMMAND_KIND_TORCHRUN, "train"},
        {"/opt/venv/bin/torchrun --standalone -m pkg.train", COMMAND_KIND_TORCHRUN, "pkg-train"},
        {"python -m torch.distributed.run --nproc-per-node=8 a/b/Run_It.py", COMMAND_KIND_TORCHRUN,
            "run-it"},
        {"python3.11 -u -X dev -m torch.distributed.run t.py", COMMAND_KIND_TORCHRUN, "t"},
        {"python3 -u train.py --nnodes 3", COMMAND_KIND_PLAIN, "train"},
        {"python3", COMMAND_KIND_PLAIN, "job"},
        {"python -m", COMMAND_KIND_PLAIN, "job"},
        {"python -um mypkg.main x", COMMAND_KIND_PLAIN, "mypkg-main"},
        {"python3 -um torch.distributed.run --nnodes 4 t.py", COMMAND_KIND_TORCHRUN, "t"},
        {"python -m mypkg.main", COMMAND_KIND_PLAIN, "mypkg-main"},
        {"./job.sh", COMMAND_KIND_PLAIN, "job-sh"},
        {"mpirun -np 4 -x A ./all_reduce_perf", COMMAND_KIND_MPI, "job"},
        {"mpiexec.hydra -n 2 python3 nets.py", COMMAND_KIND_MPI, "nets"},
        {"accelerate launch --num_machines 2 fine_tune.py", COMMAND_KIND_ACCELERATE, "fine-tune"},
        {"deepspeed --hostfile h zero.py --deepspeed", COMMAND_KIND_DEEPSPEED, "zero"},
        {"torchrun", COMMAND_KIND_TORCHRUN, "job"},
        {"torchrun --nnodes", COMMAND_KIND_TORCHRUN, "job"},
        {"torchrun ---.py", COMMAND_KIND_TORCHRUN, "job"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char buf[256];
        char job[64];
        struct command c = sample_command_read(cases[i].line, buf);

        if (c.kind != cases[i].kind)
            fail_msg("%s: kind %s", cases[i].line, command_kind_names[c.kind]);
        if (strcmp(command_job_name(&c, job), cases[i].job) != 0)
            fail_msg("%s: job %s, not %s", cases[i].line, job, cases[i].job);
        assert_int_equal(parse_name(job, "job", NULL), 0);
    }
}

static void test_own_options(void **state)
{
    char buf[256];
    struct command c =
        sample_command_read("torchrun --nnodes=2:4 --rdzv-backend etcd-v2 --rdzv_id=x "
                            "--local-addr 1.2.3.4 -t 3 train.py --rdzv_endpoint a:1",
            buf);

    assert_string_equal(c.nnodes, "2:4");
    assert_string_equal(c.backend, "etcd-v2");
    assert_string_equal(c.rdzv_id, "x");
    assert_true(c.says_local_addr && c.says_streams);
    /* That one comes after the script, and is the script's. */
    assert_false(c.says_rendezvous || c.says_rdzv_conf || c.says_max_restarts);
    assert_string_equal(c.script, "train.py");

    assert_true(sample_command_read("torchrun --master_addr 10.0.0.1 t.py", buf).says_rendezvous);
    assert_true(sample_command_read("torchrun --rdzv-endpoint=h:1 t.py", buf).says_rendezvous);
    assert_true(sample_command_read("torchrun --standalone t.py", buf).says_rendezvous);
    assert_true(
        sample_command_read("torchrun --max-restarts 3 --rdzv_conf a=b t.py", buf).says_rdzv_conf);
    c = sample_command_read("torchrun --nnodes_of_mine 3 t.py", buf);
    assert_null(c.nnodes);
    assert_string_equal(c.script, "t.py");
}

static void test_options_of_other_launchers(void **state)
{
    char buf[256];
    struct command c =
        sample_command_read("accelerate launch --num_machines 2 t.py --main_process_ip x", buf);

    assert_int_equal(c.options_at, 2);
    assert_string_equal(c.nnodes, "2");
    assert_true(command_says(&c, "num_machines"));
    /* That one is the script's. */
    assert_false(c.says_rendezvous || command_says(&c, "main_process_ip"));
    c = sample_command_read("python3 -m accelerate.commands.launch --main-process-ip=h t.py", buf);
    assert_int_equal(c.options_at, 3);
    assert_true(c.says_rendezvous && command_says(&c, "main_process_ip"));
    assert_int_equal(sample_command_read("accelerate config", buf).options_at, 0);
    c = sample_command_read("deepspeed --hostfile hosts zero.py", buf);
    assert_int_equal(c.options_at, 1);
    assert_string_equal(c.hostfile, "hosts");
    assert_string_equal(sample_command_read("deepspeed -H=h2 zero.py", buf).hostfile, "h2");
    assert_null(sample_command_read("deepspeed zero.py --hostfile mine", buf).hostfile);
}

static void test_whether_the_script_is_a_file(void **state)
{
    static const struct {
        const char *line;
        bool is_file;
    } cases[] = {
        {"torchrun train.py", true},
        {"torchrun --nnodes=2 --nproc-per-node 8 -t 3 a/b/train.py --module x", true},
        {"torchrun --standalone -- train.py", true},
        {"python3 -m torch.distributed.run --run_path train.py", true},
        {"torchrun -m pkg.train conf.py", false},
        {"torchrun --module pkg.py", false},
        {"torchrun --no-python train.py", false},
        {"torchrun --mod pkg.train conf.py", false},
        {"torchrun -t3 train.py conf.py", false},
        {"torchrun --of-another-torch train.py conf.py", false},
        {"torchrun ./train", false},
        {"torchrun", false},
        {"python train.py", true},
        {"python3.11 -u -X dev -Wdefault train.py", true},
        {"python -uX dev train.py", true},
        {"python --check-hash-based-pycs never train.py", true},
        {"python -m pkg.py conf.py", false},
        {"python -um pkg conf.py", false},
        {"python -mpkg conf.py", false},
        {"python -c pass.py conf.py", false},
        {"python -uc x train.py", false},
        {"python - train.py", false},
        {"python", false},
        {"python -m", false},
        {"python -c", false},
        {"./train.py", false},
        {"accelerate launch --multi_gpu --num_machines 2 train.py", true},
        {"accelerate-launch train.py", true},
        {"accelerate launch -m pkg conf.py", false},
        {"accelerate launch --no_python ./run conf.py", false},
        {"accelerate launch --num_machines=2 train conf.py", false},
        {"accelerate config train.py", false},
        {"deepspeed --hostfile h train.py --deepspeed", true},
        {"deepspeed --module pkg conf.py", false},
        {"mpirun -np 2 python3 -u train.py", true},
        {"mpirun -np 2 python3 -m pkg conf.py", false},
        {"mpirun -np 2 ./run train.py", false},
        {"mpirun python3 ./run train.py", false},
        {"mpirun python3", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char buf[256];

        if (sample_command_read(cases[i].line, buf).is_file != cases[i].is_file)
            fail_msg("%s: %d", cases[i].line, !cases[i].is_file);
    }
}

/* Two jobs behind the same wrapper are two jobs. */
static void test_names_behind_wrappers(void **state)
{
    static const struct {
        const char *words[8];
        const char *job;
    } cases[] = {
        {{"nice", "-n", "5", "python3", "long.py", "JOB-A.py"}, "long"},
        {{"env", "CONF=a.py", "torchrun", "--nproc_per_node", "2", "train.py"}, "train"},
        {{"/bin/sh", "-c", "cd /srv && torchrun './Fine Tune/w_2.py' > log"}, "w-2"},
        {{"bash", "./run/train.sh", "x.py"}, "train-sh"},
        {{"timeout", "--foreground", "60", "uv", "run", "a.b.py"}, "a-b"},
        {{"sh", "-c", "exec trainer"}, "sh"},
        {{"nice", "trainer"}, "nice"},
        {{"nice"}, "nice"},
    };
    char job[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct command c;

        command_read(&c, (char *const *)cases[i].words);
        assert_string_equal(command_job_name(&c, job), cases[i].job);
    }
}

static void test_long_names(void **state)
{
    char word[200];
    char job[64];
    struct command c = {.script = word};

    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_int_equal(strlen(command_job_name(&c, job)), NAME_MAX_LEN);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_own_options),
        cmocka_unit_test(test_options_of_other_launchers),
        cmocka_unit_test(test_whether_the_script_is_a_file),
        cmocka_unit_test(test_names_behind_wrappers),
        cmocka_unit_test(test_long_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
