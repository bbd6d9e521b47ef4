/* test_cpu_processors.c: the processors that control groups leave, read from trees like the
 * kernel's. */
#include "engine/core/processors.h"

#include "tests/check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/tide-groups-XXXXXX";

static void make_folder(const char *path) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    REQUIRE(mkdir(full, 0700) == 0);
}

static void write_file(const char *path, const char *text) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "w");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
}

static int quota(const char *groups) {
    return td_processors_quota(groups, root, 8);
}

TEST(a_share_of_a_processor_counts_as_one) {
    write_file("/half/cpu.max", "50000 100000\n");
    CHECK_INT(quota("0::/half\n"), 1);
    write_file("/half/cpu.max", "150000 100000\n");
    CHECK_INT(quota("0::/half\n"), 2);
    write_file("/half/cpu.max", "200000 100000\n");
    CHECK_INT(quota("0::/half\n"), 2);
}

TEST(no_quota_leaves_the_machine) {
    write_file("/half/cpu.max", "max 100000\n");
    CHECK_INT(quota("0::/half\n"), 8);
    CHECK_INT(quota("0::/not/there\n"), 8);
    CHECK_INT(quota(""), 8);
    CHECK_INT(quota("nonsense\n\n:::\n"), 8);
    write_file("/half/cpu.max", "1600000 100000\n");
    CHECK_INT(quota("0::/half\n"), 8);
    write_file("/half/cpu.max", "100000 0\n");
    CHECK_INT(quota("0::/half\n"), 8);
}

TEST(groups_around_bound_those_inside) {
    write_file("/half/cpu.max", "300000 100000\n");
    write_file("/half/inner/cpu.max", "max 100000\n");
    CHECK_INT(quota("0::/half/inner\n"), 3);
    write_file("/cpu.max", "200000 100000\n");
    CHECK_INT(quota("0::/half/inner\n"), 2);
    CHECK_INT(quota("0::/\n"), 2);
    write_file("/cpu.max", "max 100000\n");
}

TEST(the_first_version_has_a_file_for_each) {
    write_file("/cpu/job/cpu.cfs_quota_us", "250000\n");
    write_file("/cpu/job/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota("5:cpuset:/job\n4:cpuacct,cpu:/job\n"), 3);
    CHECK_INT(quota("5:cpuset:/job\n"), 8);
    write_file("/cpu/job/cpu.cfs_quota_us", "-1\n");
    CHECK_INT(quota("4:cpu,cpuacct:/job\n"), 8);
}

TEST(this_process_has_some) {
    CHECK(td_processors_allowed() >= 1);
    CHECK(td_processors_allowed() <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
    char command[64];
    if (!mkdtemp(root))
        return 1;
    make_folder("/half");
    make_folder("/half/inner");
    make_folder("/cpu");
    make_folder("/cpu/job");
    RUN(a_share_of_a_processor_counts_as_one);
    RUN(no_quota_leaves_the_machine);
    RUN(groups_around_bound_those_inside);
    RUN(the_first_version_has_a_file_for_each);
    RUN(this_process_has_some);
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK_INT(system(command), 0);
    return check_finish();
}
