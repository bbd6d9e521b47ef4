/* replay.c: reads every file of a folder once, in place of libFuzzer. usage: fuzz_NAME corpus/NAME
 */
#include "tests/torture/fuzz/bytes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    HOLDS(file);
    uint8_t *data = malloc(1 << 20);
    HOLDS(data);
    size_t size = fread(data, 1, 1 << 20, file);
    fclose(file);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees its end */
    HOLDS(exact);
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv) {
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    int count = 0;
    HOLDS(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') {
            read_file(argv[1], entry->d_name);
            count++;
        }
    closedir(folder);
    printf("%d inputs\n", count);
    return count ? 0 : 1;
}
