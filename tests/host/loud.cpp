/*
 * A host whose logging function does what it must not, and what it may: it throws, and it calls the plugin.
 *
 *     loud PLUGIN.so
 *
 * Exits with 0 if all is as it must be.
 */
extern "C" {
#include "hipdnn_plugin.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <stdexcept>

namespace {

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            std::fprintf(stderr, "loud.cpp:%d: %s is not so\n", __LINE__, #condition);                                           \
            std::exit(1);                                                                                                        \
        }                                                                                                                        \
    } while (0)

decltype(&hipdnnPluginGetName) get_name;
decltype(&hipdnnPluginGetLastErrorString) get_last_error;
decltype(&hipdnnPluginSetLoggingCallback) set_callback;
decltype(&hipdnnPluginSetLogLevel) set_level;
decltype(&hipdnnEnginePluginGetEngineName) get_engine_name;
decltype(&hipdnnEnginePluginCreate) create;
decltype(&hipdnnEnginePluginDestroy) destroy;
decltype(&hipdnnEnginePluginGetApplicableEngineIds) get_applicable;

int messages;
int depth;

const char *last_error() {
    const char *text = nullptr;
    get_last_error(&text);
    return text;
}

void throws(Severity, const char *) {
    messages++;
    if (messages % 2 == 0) {
        throw messages;
    }
    throw std::runtime_error("from the logging function");
}

/* Creates and destroys handles, asks, fails, and would be called for ever if its own calls were logged. */
void calls_back(Severity, const char *message) {
    CHECK(depth == 0);
    depth++;
    messages++;
    CHECK(std::strncmp(message, "rotini: ", 8) == 0);
    Handle handle = nullptr;
    CHECK(create(&handle) == STATUS_SUCCESS);
    Bytes bytes = {"no graph", 8};
    int64_t id = 0;
    uint32_t count = 7;
    CHECK(get_applicable(handle, &bytes, &id, 1, &count) == STATUS_SUCCESS);
    CHECK(count == 0);
    CHECK(destroy(handle) == STATUS_SUCCESS);
    CHECK(get_name(nullptr) == STATUS_BAD_PARAM);
    CHECK(set_level(SEVERITY_INFO) == STATUS_SUCCESS);
    depth--;
}

template <typename Function> void resolve(void *library, const char *name, Function &function) {
    *reinterpret_cast<void **>(&function) = dlsym(library, name);
    CHECK(function != nullptr);
}

} // namespace

int main(int argc, char **argv) {
    CHECK(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    resolve(library, "hipdnnPluginGetName", get_name);
    resolve(library, "hipdnnPluginGetLastErrorString", get_last_error);
    resolve(library, "hipdnnPluginSetLoggingCallback", set_callback);
    resolve(library, "hipdnnPluginSetLogLevel", set_level);
    resolve(library, "hipdnnEnginePluginGetEngineName", get_engine_name);
    resolve(library, "hipdnnEnginePluginCreate", create);
    resolve(library, "hipdnnEnginePluginDestroy", destroy);
    resolve(library, "hipdnnEnginePluginGetApplicableEngineIds", get_applicable);
    const LogCallback callbacks[] = {throws, calls_back};
    for (LogCallback callback : callbacks) {
        CHECK(set_callback(callback) == STATUS_SUCCESS);
        CHECK(set_level(SEVERITY_INFO) == STATUS_SUCCESS);
        for (int round = 0; round < 3; round++) {
            /* The first handle sets everything up, under locks, and complains of what the environment has. */
            messages = 0;
            Handle handle = nullptr;
            CHECK(create(&handle) == STATUS_SUCCESS);
            CHECK(handle != nullptr);
            CHECK(messages > 0);
            messages = 0;
            Bytes bytes = {"no graph", 8};
            int64_t id = 0;
            uint32_t count = 7;
            CHECK(get_applicable(handle, &bytes, &id, 1, &count) == STATUS_SUCCESS);
            CHECK(count == 0 && messages > 0);
            /* The text is that of the call that failed, whatever the logging function did after it. */
            const char *name = nullptr;
            CHECK(get_engine_name(0x1234, &name) == STATUS_NOT_APPLICABLE);
            CHECK(std::strstr(last_error(), "1234") != nullptr);
            CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
            CHECK(destroy(handle) == STATUS_SUCCESS);
        }
    }
    CHECK(set_callback(nullptr) == STATUS_SUCCESS);
    CHECK(dlclose(library) == 0);
    return 0;
}
