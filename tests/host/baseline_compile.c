/*
 * iree-compile for x86-64-v3 where it is asked for this very processor: valgrind knows no AVX-512. The real program is COMPILER.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static char baseline[] = "--iree-llvmcpu-target-cpu=x86-64-v3";
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--iree-llvmcpu-target-cpu=host") == 0) {
            arguments[i] = baseline;
        }
    }
    execv(COMPILER, arguments);
    return EXIT_FAILURE;
}
