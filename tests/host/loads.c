/*
 * The least that a hipDNN host does: loads a plugin, asks it who it is, and closes it again. Needs neither a compiler nor a device, so
 * it runs wherever the plugin is installed.
 *
 *     loads PLUGIN.so
 */
#include "hipdnn_plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition, ...)                                                                                                    \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            fprintf(stderr, "%s is not so: ", #condition);                                                                       \
            fprintf(stderr, __VA_ARGS__);                                                                                        \
            fputc('\n', stderr);                                                                                                 \
            exit(1);                                                                                                             \
        }                                                                                                                        \
    } while (0)

#define MEMBER(name) __typeof__(&name) name;
static struct {
    HIPDNN_PLUGIN_FUNCTIONS(MEMBER)
} api;

#define LOOK_UP(name)                                                                                                            \
    *(void **)&api.name = dlsym(library, #name);                                                                                 \
    CHECK(api.name != NULL, "%s", dlerror());

int main(int count, char **arguments) {
    CHECK(count == 2, "usage: loads PLUGIN.so");
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL, "%s", dlerror());
    HIPDNN_PLUGIN_FUNCTIONS(LOOK_UP)

    PluginType type = TYPE_UNSPECIFIED;
    CHECK(api.hipdnnPluginGetType(&type) == STATUS_SUCCESS && type == TYPE_ENGINE, "type %d", (int)type);
    const char *version = NULL;
    CHECK(api.hipdnnPluginGetApiVersion(&version) == STATUS_SUCCESS && version != NULL, "no API version");

    int64_t engine = 0;
    uint32_t engines = 0;
    CHECK(api.hipdnnEnginePluginGetAllEngineIds(&engine, 1, &engines) == STATUS_SUCCESS && engines == 1, "%u engines", engines);
    const char *name = NULL;
    CHECK(api.hipdnnEnginePluginGetEngineName(engine, &name) == STATUS_SUCCESS && name != NULL, "engine %#llx has no name",
          (unsigned long long)engine);
    CHECK(strcmp(name, "ROTINI_ENGINE") == 0, "the engine is called %s", name);

    printf("%s: %s, engine API %s\n", arguments[1], name, version);
    CHECK(dlclose(library) == 0, "%s", dlerror());
    return 0;
}
