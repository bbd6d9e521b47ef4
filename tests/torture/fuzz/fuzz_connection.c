/* fuzz_connection.c: connection files of any bytes: a connection, or one line that names the file.
 */
#include "tests/torture/fuzz/bytes.h"

#include "jupyter-kernel/connection.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_connection connection;
    char error[256] = "";
    const char *path = bytes_file(data, size);
    if (tk_connection_read(path, &connection, error, sizeof error)) {
        for (int k = 0; k < TK_CHANNELS; k++) {
            char *address = tk_connection_address(&connection, (tk_channel)k);
            int port =
                connection.registration_port ? connection.registration_port : connection.ports[k];
            HOLDS(address && port > 0 && port < 65536);
            free(address);
        }
        HOLDS(!connection.curve_public == !connection.curve_secret);
        tk_connection_clear(&connection);
    } else {
        HOLDS(!strncmp(error, path, strlen(path)) && !strchr(error, '\n'));
    }
    return 0;
}
