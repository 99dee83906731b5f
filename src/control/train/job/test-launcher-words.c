/* test-launcher-words.c - what accelerate and deepspeed are started with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "train/job/command.h"
#include "train/job/rendezvous.h"

static const struct env_rendezvous rendezvous = {
    .id = "t.1", .backend = "c10d", .endpoint = "10.77.0.1:29731"};

#define BLANKS "                                                            "

#define MEET "--main_process_ip 10.77.0.1 --main_process_port 29731 --rdzv_conf is_host=false"

/* @line: words with single blanks between them. */
static void check(
    const char *line, const struct env_rendezvous *m, const char *nnodes, const char *expected)
{
    char buf[256];
    char said[512] = "";
    char *words[24] = {NULL};
    struct launcher_words lw;
    struct command c;
    char *rest = NULL;
    size_t n = 0;

    (void)snprintf(buf, sizeof(buf), "%s", line);
    for (char *word = strtok_r(buf, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    command_read(&c, words);
    assert_int_equal(launcher_words_make(&lw, words, &c, m, nnodes), 0);
    for (char **word = lw.items; *word; word++)
        (void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s",
            word == lw.items ? "" : " ", *word);
    assert_string_equal(said, expected);
    launcher_words_deinit(&lw);
    launcher_words_deinit(&lw);
}

static void test_accelerate(void **state)
{
    check("accelerate launch --num_processes 16 t.py --lr 1", &rendezvous, "2",
        "accelerate launch --num_machines 2 --machine_rank 0 --rdzv_backend c10d " MEET
        " --num_processes 16 t.py --lr 1");
    check("python3 -m accelerate.commands.launch --num-machines=2 t.py", &rendezvous, "2",
        "python3 -m accelerate.commands.launch --machine_rank 0 --rdzv_backend c10d " MEET
        " --num-machines=2 t.py");
    /* What the person says stays: a place of his own, rank 0's address, no launch at all. */
    check("accelerate launch --same_network t.py", &rendezvous, "2",
        "accelerate launch --same_network t.py");
    check("accelerate launch t.py", NULL, "2", "accelerate launch t.py");
    check("accelerate config", &rendezvous, "2", "accelerate config");
    /* It has no range of nodes. */
    check("accelerate launch t.py", &rendezvous, "2:4", "accelerate launch t.py");
}

static void test_deepspeed(void **state)
{
    /* The first line is longer than what is read of the file at once. */
    static const char hosts[] = "# mine" BLANKS BLANKS BLANKS BLANKS BLANKS "note\n\n"
                                "  10.77.0.3 slots=8\n10.77.0.4 slots=8\n";
    char path[] = "/tmp/weft-test-XXXXXX";
    int fd = mkstemp(path);
    char line[128];
    char expected[192];

    assert_int_equal(write(fd, hosts, sizeof(hosts) - 1), sizeof(hosts) - 1);
    (void)close(fd);
    (void)snprintf(line, sizeof(line), "deepspeed --hostfile %s z.py", path);
    (void)snprintf(
        expected, sizeof(expected), "deepspeed --master_addr 10.77.0.3 --hostfile %s z.py", path);
    check(line, NULL, NULL, expected);
    (void)snprintf(line, sizeof(line), "deepspeed --hostfile=%s --master_addr h z.py", path);
    check(line, NULL, NULL, line);
    /* Which host is the first of those that are left, deepspeed finds out. */
    (void)snprintf(line, sizeof(line), "deepspeed --hostfile %s -i 10.77.0.4 z.py", path);
    check(line, NULL, NULL, line);
    (void)snprintf(line, sizeof(line), "deepspeed --exclude=10.77.0.3 --hostfile %s z.py", path);
    check(line, NULL, NULL, line);
    (void)unlink(path);
    /* It says itself that the file is not there. */
    check("deepspeed --hostfile /none z.py", NULL, NULL, "deepspeed --hostfile /none z.py");
    check("torchrun --nnodes 2 t.py", &rendezvous, "2", "torchrun --nnodes 2 t.py");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accelerate),
        cmocka_unit_test(test_deepspeed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
