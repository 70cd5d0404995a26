/*
 * A hipDNN host in C: loads a plugin, takes every graph through its whole life and checks what the plugin owes a host on the way;
 * then once more, as a host does that unloads eagerly.
 *
 *     host [--keep] PLUGIN.so GRAPH.fb...
 *
 * With --keep the plugin stays mapped after it is closed, so that leak checkers still see what its statics point to.
 *
 * Beside each GRAPH.fb lies GRAPH.fb.buffers, one line per tensor in memory: its uid, `in` or `out`, and a file with its bytes before
 * the execution. What an `out` holds afterwards is written to that file's name with `.out` appended, for somebody else to judge.
 *
 * Exits with 0 if all is as it must be; else the first thing that is not is told, and the exit status is 1.
 */
#include "hipdnn_plugin.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 16, MAX_PATH = 4096, THREADS = 8, EXECUTIONS = 20, CYCLES = 2 };

#define MEMBER(name) __typeof__(&name) name;
static struct {
    HIPDNN_PLUGIN_FUNCTIONS(MEMBER)
} api;

#define CHECK(condition, ...)                                                                                                    \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            fprintf(stderr, "host.c:%d: %s is not so: ", __LINE__, #condition);                                                  \
            fprintf(stderr, __VA_ARGS__);                                                                                        \
            fputc('\n', stderr);                                                                                                 \
            exit(1);                                                                                                             \
        }                                                                                                                        \
    } while (0)

static const char *last_error(void) {
    const char *text = NULL;
    api.hipdnnPluginGetLastErrorString(&text);
    CHECK(text != NULL, "hipDNN reads the text without looking");
    return text;
}

#define SUCCEEDS(call)                                                                                                           \
    do {                                                                                                                         \
        Status status_ = (call);                                                                                                 \
        CHECK(status_ == STATUS_SUCCESS, "%s: status %d, %s", #call, (int)status_, last_error());                               \
    } while (0)

/* The call fails with this status and with a text that has this word. */
#define FAILS(expected, word, call)                                                                                              \
    do {                                                                                                                         \
        Status status_ = (call);                                                                                                 \
        CHECK(status_ == (expected), "%s: status %d, not %d", #call, (int)status_, (int)(expected));                            \
        CHECK(strstr(last_error(), (word)) != NULL, "%s: %s", #call, last_error());                                             \
    } while (0)

/* ---- Logging ---- */

static atomic_int messages;

static void on_message(Severity severity, const char *message) {
    CHECK(severity >= SEVERITY_INFO && severity <= SEVERITY_FATAL, "severity %d", (int)severity);
    CHECK(message != NULL && message[0] != '\0', "a message without text");
    fprintf(stderr, "log %d: %s\n", (int)severity, message);
    atomic_fetch_add(&messages, 1);
}

/* ---- Files ---- */

typedef struct {
    int64_t uid;
    int is_output;
    char path[MAX_PATH];
    void *initial;
    size_t size;
} Tensor;

typedef struct {
    const char *path;
    Bytes bytes;
    Tensor tensors[MAX_BUFFERS];
    uint32_t count;
} Graph;

static void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL, "%s", path);
    CHECK(fseek(file, 0, SEEK_END) == 0, "%s", path);
    long length = ftell(file);
    CHECK(length > 0, "%s", path);
    rewind(file);
    void *bytes = malloc((size_t)length);
    CHECK(bytes != NULL && fread(bytes, 1, (size_t)length, file) == (size_t)length, "%s", path);
    fclose(file);
    *size = (size_t)length;
    return bytes;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL, "%s", path);
    CHECK(fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "%s", path);
}

static void read_graph(Graph *graph, const char *path) {
    graph->path = path;
    graph->bytes.ptr = read_file(path, &graph->bytes.size);
    graph->count = 0;
    char manifest[MAX_PATH + sizeof ".buffers"];
    snprintf(manifest, sizeof manifest, "%s.buffers", path);
    FILE *file = fopen(manifest, "r");
    CHECK(file != NULL, "%s", manifest);
    Tensor tensor;
    char role[4];
    while (fscanf(file, "%" SCNd64 " %3s %4000s", &tensor.uid, role, tensor.path) == 3) {
        CHECK(graph->count < MAX_BUFFERS, "%s", manifest);
        tensor.is_output = strcmp(role, "out") == 0;
        tensor.initial = read_file(tensor.path, &tensor.size);
        graph->tensors[graph->count++] = tensor;
    }
    CHECK(feof(file) && graph->count > 0, "%s cannot be read", manifest);
    fclose(file);
}

static void free_graph(Graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++) {
        free(graph->tensors[i].initial);
    }
    free((void *)graph->bytes.ptr);
}

/* ---- Buffers ---- */

/* From malloc: 16-byte aligned and no more, as hipDNN promises. */
static void new_buffers(const Graph *graph, DeviceBuffer *buffers) {
    for (uint32_t i = 0; i < graph->count; i++) {
        const Tensor *tensor = &graph->tensors[i];
        /* In reverse: a plugin looks buffers up by their uid. */
        DeviceBuffer *buffer = &buffers[graph->count - 1 - i];
        buffer->uid = tensor->uid;
        buffer->ptr = malloc(tensor->size);
        CHECK(buffer->ptr != NULL, "%zu bytes", tensor->size);
        memcpy(buffer->ptr, tensor->initial, tensor->size);
    }
    /* The caller's pack may have more than the graph needs, also empty entries. */
    buffers[graph->count] = (DeviceBuffer){INT64_MAX, NULL};
}

static const DeviceBuffer *buffer_of(const Graph *graph, const DeviceBuffer *buffers, uint32_t tensor) {
    return &buffers[graph->count - 1 - tensor];
}

static void free_buffers(const Graph *graph, DeviceBuffer *buffers) {
    for (uint32_t i = 0; i < graph->count; i++) {
        free(buffers[i].ptr);
    }
}

static void execute(Handle handle, Context context, const Graph *graph, const DeviceBuffer *buffers) {
    size_t size = SIZE_MAX;
    SUCCEEDS(api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle, context, &size));
    void *workspace = size == 0 ? NULL : malloc(size);
    SUCCEEDS(api.hipdnnEnginePluginExecuteOpGraph(handle, context, workspace, buffers, graph->count + 1));
    free(workspace);
}

/* ---- Engines ---- */

/* FNV-1a, 64 bits: hipDNN derives an engine's id from its name so. */
static int64_t engine_id_of(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return (int64_t)hash;
}

/* An engine config of hipDNN's size, 24 bytes: a FlatBuffers table with an engine's id and no knobs. */
typedef struct {
    uint32_t root;
    uint16_t vtable_size, table_size, id_field, padding;
    int32_t vtable_distance;
    int64_t engine;
} EngineConfig;

_Static_assert(sizeof(EngineConfig) == 24, "the layout has no gaps");

static EngineConfig engine_config(int64_t engine) {
    return (EngineConfig){.root = 12, .vtable_size = 6, .table_size = 12, .id_field = 4, .vtable_distance = 8, .engine = engine};
}

/* What a host does with a plugin before it creates a handle. Tells the engine's id. */
static int64_t check_identity(void) {
    const char *text = NULL;
    PluginType type = TYPE_UNSPECIFIED;
    SUCCEEDS(api.hipdnnPluginGetType(&type));
    CHECK(type == TYPE_ENGINE, "type %d", (int)type);
    SUCCEEDS(api.hipdnnPluginGetName(&text));
    CHECK(text != NULL && text[0] != '\0', "the plugin has no name");
    SUCCEEDS(api.hipdnnPluginGetVersion(&text));
    CHECK(text != NULL && text[0] != '\0', "the plugin has no version");
    SUCCEEDS(api.hipdnnPluginSetLoggingCallback(on_message));
    SUCCEEDS(api.hipdnnPluginSetLogLevel(SEVERITY_INFO));
    SUCCEEDS(api.hipdnnPluginGetApiVersion(&text));
    unsigned major, minor, patch;
    char rest;
    CHECK(sscanf(text, "%u.%u.%u%c", &major, &minor, &patch, &rest) == 3, "API version '%s'", text);
    CHECK(major == 1, "API version '%s'", text);

    uint32_t count = 0, filled = 0;
    SUCCEEDS(api.hipdnnEnginePluginGetAllEngineIds(NULL, 0, &count));
    CHECK(count == 1, "%" PRIu32 " engines", count);
    int64_t ids[2] = {0, -7};
    SUCCEEDS(api.hipdnnEnginePluginGetAllEngineIds(ids, count, &filled));
    CHECK(filled == count && ids[1] == -7, "%" PRIu32 " engines, not %" PRIu32, filled, count);

    SUCCEEDS(api.hipdnnEnginePluginGetEngineName(ids[0], &text));
    CHECK(engine_id_of(text) == ids[0], "%s hashes to %" PRIx64 ", not %" PRIx64, text, engine_id_of(text), ids[0]);
    FAILS(STATUS_NOT_APPLICABLE, "engine", api.hipdnnEnginePluginGetEngineName(ids[0] + 1, &text));
    return ids[0];
}

/* Every pointer that must not be null is asked for by its name. */
static void check_nulls(Handle handle, Context context, int64_t engine, const Graph *graph) {
    EngineConfig raw_config = engine_config(engine);
    const Bytes config = {&raw_config, sizeof raw_config};
    const Bytes *bytes = &graph->bytes;
    int64_t id;
    uint32_t count;
    size_t size;
    Bytes details = {NULL, 0};
    Context created;
    const char *name;

#define REFUSES(word, call) FAILS(STATUS_BAD_PARAM, word " is null", call)
    REFUSES("name", api.hipdnnPluginGetName(NULL));
    REFUSES("version", api.hipdnnPluginGetVersion(NULL));
    REFUSES("version", api.hipdnnPluginGetApiVersion(NULL));
    REFUSES("type", api.hipdnnPluginGetType(NULL));
    api.hipdnnPluginGetLastErrorString(NULL);
    REFUSES("count", api.hipdnnEnginePluginGetAllEngineIds(&id, 1, NULL));
    REFUSES("ids", api.hipdnnEnginePluginGetAllEngineIds(NULL, 1, &count));
    REFUSES("name", api.hipdnnEnginePluginGetEngineName(engine, NULL));
    REFUSES("handle", api.hipdnnEnginePluginCreate(NULL));
    REFUSES("handle", api.hipdnnEnginePluginDestroy(NULL));
    REFUSES("handle", api.hipdnnEnginePluginSetStream(NULL, NULL));
    REFUSES("handle", api.hipdnnEnginePluginGetApplicableEngineIds(NULL, bytes, &id, 1, &count));
    REFUSES("graph", api.hipdnnEnginePluginGetApplicableEngineIds(handle, NULL, &id, 1, &count));
    REFUSES("ids", api.hipdnnEnginePluginGetApplicableEngineIds(handle, bytes, NULL, 1, &count));
    REFUSES("count", api.hipdnnEnginePluginGetApplicableEngineIds(handle, bytes, &id, 1, NULL));
    REFUSES("handle", api.hipdnnEnginePluginGetEngineDetails(NULL, engine, bytes, &details));
    REFUSES("graph", api.hipdnnEnginePluginGetEngineDetails(handle, engine, NULL, &details));
    REFUSES("details", api.hipdnnEnginePluginGetEngineDetails(handle, engine, bytes, NULL));
    REFUSES("handle", api.hipdnnEnginePluginDestroyEngineDetails(NULL, &details));
    REFUSES("details", api.hipdnnEnginePluginDestroyEngineDetails(handle, NULL));
    REFUSES("handle", api.hipdnnEnginePluginGetWorkspaceSize(NULL, &config, bytes, &size));
    REFUSES("config", api.hipdnnEnginePluginGetWorkspaceSize(handle, NULL, bytes, &size));
    REFUSES("graph", api.hipdnnEnginePluginGetWorkspaceSize(handle, &config, NULL, &size));
    REFUSES("size", api.hipdnnEnginePluginGetWorkspaceSize(handle, &config, bytes, NULL));
    REFUSES("handle", api.hipdnnEnginePluginCreateExecutionContext(NULL, &config, bytes, &created));
    REFUSES("config", api.hipdnnEnginePluginCreateExecutionContext(handle, NULL, bytes, &created));
    REFUSES("graph", api.hipdnnEnginePluginCreateExecutionContext(handle, &config, NULL, &created));
    REFUSES("context", api.hipdnnEnginePluginCreateExecutionContext(handle, &config, bytes, NULL));
    REFUSES("handle", api.hipdnnEnginePluginDestroyExecutionContext(NULL, context));
    REFUSES("context", api.hipdnnEnginePluginDestroyExecutionContext(handle, NULL));
    REFUSES("handle", api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(NULL, context, &size));
    REFUSES("context", api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle, NULL, &size));
    REFUSES("size", api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle, context, NULL));
    DeviceBuffer none = {0, NULL};
    REFUSES("handle", api.hipdnnEnginePluginExecuteOpGraph(NULL, context, NULL, &none, 1));
    REFUSES("context", api.hipdnnEnginePluginExecuteOpGraph(handle, NULL, NULL, &none, 1));
    REFUSES("buffers", api.hipdnnEnginePluginExecuteOpGraph(handle, context, NULL, NULL, 1));
    const int64_t uid = 1, extent = 1;
    const uint32_t rank = 1;
    const int64_t *const shape = &extent, *const no_shape = NULL;
#define EXECUTE(handle, context, buffers, uids, ranks, shapes, strides)                                                          \
    api.hipdnnEnginePluginExecuteOpGraphWithOverrides(handle, context, NULL, buffers, 1, 1, uids, ranks, shapes, strides)
    REFUSES("handle", EXECUTE(NULL, context, &none, &uid, &rank, &shape, &shape));
    REFUSES("context", EXECUTE(handle, NULL, &none, &uid, &rank, &shape, &shape));
    REFUSES("buffers", EXECUTE(handle, context, NULL, &uid, &rank, &shape, &shape));
    REFUSES("override uids", EXECUTE(handle, context, &none, NULL, &rank, &shape, &shape));
    REFUSES("override ranks", EXECUTE(handle, context, &none, &uid, NULL, &shape, &shape));
    REFUSES("override shapes", EXECUTE(handle, context, &none, &uid, &rank, NULL, &shape));
    REFUSES("override strides", EXECUTE(handle, context, &none, &uid, &rank, &shape, NULL));
    REFUSES("shape of an override", EXECUTE(handle, context, &none, &uid, &rank, &no_shape, &shape));
    REFUSES("strides of an override", EXECUTE(handle, context, &none, &uid, &rank, &shape, &no_shape));
    /* Shapes that a graph was not declared with. */
    FAILS(STATUS_INVALID_VALUE, "own shapes alone", EXECUTE(handle, context, &none, &uid, &rank, &shape, &shape));
#undef EXECUTE
#undef REFUSES
    /* Nothing of that has harmed what it was called with. */
    SUCCEEDS(api.hipdnnEnginePluginGetEngineName(engine, &name));
    SUCCEEDS(api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle, context, &size));
}

static void check_logging(void) {
    const char *text;
    int before = atomic_load(&messages);
    SUCCEEDS(api.hipdnnPluginSetLogLevel(SEVERITY_ERROR));
    (void)api.hipdnnPluginGetName(NULL);
    CHECK(atomic_load(&messages) > before, "an error is not logged");
    SUCCEEDS(api.hipdnnPluginSetLogLevel(SEVERITY_OFF));
    before = atomic_load(&messages);
    (void)api.hipdnnPluginGetName(NULL);
    CHECK(atomic_load(&messages) == before, "something is logged at level OFF");
    FAILS(STATUS_INVALID_VALUE, "99", api.hipdnnPluginSetLogLevel((Severity)99));
    SUCCEEDS(api.hipdnnPluginSetLogLevel(SEVERITY_INFO));
    SUCCEEDS(api.hipdnnPluginSetLoggingCallback(NULL));
    (void)api.hipdnnPluginGetName(NULL);
    CHECK(atomic_load(&messages) == before, "something is logged to a callback that was taken back");
    SUCCEEDS(api.hipdnnPluginSetLoggingCallback(on_message));
    SUCCEEDS(api.hipdnnPluginGetName(&text));
}

/* ---- The life of a graph ---- */

/* What comes before the context: cheap questions. */
static void ask(Handle handle, int64_t engine, const Graph *graph, const Bytes *config, size_t *estimate) {
    int64_t id = 0;
    uint32_t count = UINT32_MAX;
    SUCCEEDS(api.hipdnnEnginePluginGetApplicableEngineIds(handle, &graph->bytes, &id, 1, &count));
    CHECK(count == 1 && id == engine, "%s: %" PRIu32 " engines", graph->path, count);
    count = UINT32_MAX;
    SUCCEEDS(api.hipdnnEnginePluginGetApplicableEngineIds(handle, &graph->bytes, NULL, 0, &count));
    CHECK(count == 0, "%" PRIu32 " engines in no place", count);

    Bytes details = {NULL, 0};
    SUCCEEDS(api.hipdnnEnginePluginGetEngineDetails(handle, engine, &graph->bytes, &details));
    CHECK(details.ptr != NULL && details.size != 0, "the details are empty");
    SUCCEEDS(api.hipdnnEnginePluginDestroyEngineDetails(handle, &details));
    CHECK(details.ptr == NULL && details.size == 0, "destroyed details are not zeroed");
    FAILS(STATUS_INVALID_VALUE, "engine id", api.hipdnnEnginePluginGetEngineDetails(handle, engine + 1, &graph->bytes, &details));
    SUCCEEDS(api.hipdnnEnginePluginGetWorkspaceSize(handle, config, &graph->bytes, estimate));
}

typedef struct {
    const Graph *graph;
    Context context;
    const DeviceBuffer *right;
    int64_t engine;
    int64_t number;
    pthread_barrier_t *barrier;
} Worker;

/* Executes a context that all workers share, on a handle and buffers of its own. */
static void *work(void *argument) {
    const Worker *worker = argument;
    Handle handle = NULL;
    SUCCEEDS(api.hipdnnEnginePluginCreate(&handle));
    DeviceBuffer buffers[MAX_BUFFERS + 1];
    new_buffers(worker->graph, buffers);
    pthread_barrier_wait(worker->barrier);
    for (int i = 0; i < EXECUTIONS; i++) {
        execute(handle, worker->context, worker->graph, buffers);
    }
    for (uint32_t i = 0; i < worker->graph->count; i++) {
        CHECK(memcmp(buffers[i].ptr, worker->right[i].ptr, worker->graph->tensors[worker->graph->count - 1 - i].size) == 0,
              "%s: thread %" PRId64 " has another result", worker->graph->path, worker->number);
    }
    free_buffers(worker->graph, buffers);

    /* The last error is this thread's, whatever the others did meanwhile. */
    const char *name;
    char expected[32];
    int64_t foreign = worker->engine + 1 + worker->number;
    snprintf(expected, sizeof expected, "%016" PRIx64, (uint64_t)foreign);
    pthread_barrier_wait(worker->barrier);
    (void)api.hipdnnEnginePluginGetEngineName(foreign, &name);
    pthread_barrier_wait(worker->barrier);
    CHECK(strstr(last_error(), expected) != NULL, "%s is not about %s", last_error(), expected);
    SUCCEEDS(api.hipdnnEnginePluginDestroy(handle));
    return NULL;
}

static void check_threads(const Graph *graph, Context context, const DeviceBuffer *right, int64_t engine) {
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0, "no barrier");
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){graph, context, right, engine, i, &barrier};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0, "thread %d", i);
    }
    pthread_barrier_destroy(&barrier);
}

static void live(Handle handle, Handle other, int64_t engine, const Graph *graph) {
    EngineConfig raw_config = engine_config(engine);
    const Bytes config = {&raw_config, sizeof raw_config};
    size_t estimate = SIZE_MAX, exact = SIZE_MAX, cached = SIZE_MAX;
    ask(handle, engine, graph, &config, &estimate);

    /* What a call that fails was to write to stays as it is. */
    Context context = (Context)(uintptr_t)1;
    EngineConfig raw_foreign = engine_config(engine + 1);
    const Bytes foreign = {&raw_foreign, sizeof raw_foreign};
    FAILS(STATUS_INVALID_VALUE, "engine id",
          api.hipdnnEnginePluginCreateExecutionContext(handle, &foreign, &graph->bytes, &context));
    CHECK(context == (Context)(uintptr_t)1, "a context was written by a call that failed");
    /* Hosts of one generation pass an engine config too, so that the bytes are where others have the place for the context. */
    Bytes payload = {"payload", 7};
    typedef Status (*FourArguments)(Handle, const Bytes *, const Bytes *, Context *);
    FourArguments load = (FourArguments)(void (*)(void))api.hipdnnEnginePluginCreateExecutionContextFromSerialized;
    CHECK(load(handle, &config, &payload, &context) != STATUS_SUCCESS, "an engine config is no context");
    CHECK(payload.ptr != NULL && payload.size == 7, "the caller's bytes were written to");
    CHECK(context == (Context)(uintptr_t)1, "a context was written by a call that failed");
    int64_t id = -7;
    uint32_t count = 77;
    CHECK(api.hipdnnEnginePluginGetApplicableEngineIds(handle, &graph->bytes, NULL, 1, &count) != STATUS_SUCCESS, "no place");
    CHECK(api.hipdnnEnginePluginGetApplicableEngineIds(handle, NULL, &id, 1, &count) != STATUS_SUCCESS, "no graph");
    CHECK(count == 77 && id == -7, "a call that failed has written");
    SUCCEEDS(api.hipdnnEnginePluginCreateExecutionContext(handle, &config, &graph->bytes, &context));
    CHECK(context != NULL, "%s", graph->path);
    SUCCEEDS(api.hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle, context, &exact));
    CHECK(exact <= estimate, "%s: %zu bytes, %zu were estimated", graph->path, exact, estimate);
    SUCCEEDS(api.hipdnnEnginePluginGetWorkspaceSize(handle, &config, &graph->bytes, &cached));
    CHECK(cached == exact, "%s: %zu bytes, %zu are needed", graph->path, cached, exact);

    DeviceBuffer buffers[MAX_BUFFERS + 1];
    new_buffers(graph, buffers);
    execute(handle, context, graph, buffers);
    for (uint32_t i = 0; i < graph->count; i++) {
        const Tensor *tensor = &graph->tensors[i];
        const void *after = buffer_of(graph, buffers, i)->ptr;
        if (tensor->is_output) {
            char path[MAX_PATH + sizeof ".out"];
            snprintf(path, sizeof path, "%s.out", tensor->path);
            write_file(path, after, tensor->size);
        } else {
            CHECK(memcmp(after, tensor->initial, tensor->size) == 0, "%s: input %" PRId64 " is changed", graph->path, tensor->uid);
        }
    }

    /* A second context of the same graph, on another handle, with the first one still alive. */
    Context second = NULL;
    SUCCEEDS(api.hipdnnEnginePluginCreateExecutionContext(other, &config, &graph->bytes, &second));
    CHECK(second != NULL && second != context, "a context is given out twice");
    SUCCEEDS(api.hipdnnEnginePluginDestroyExecutionContext(handle, context));
    check_nulls(other, second, engine, graph);
    check_threads(graph, second, buffers, engine);
    SUCCEEDS(api.hipdnnEnginePluginDestroyExecutionContext(other, second));
    free_buffers(graph, buffers);
}

/* ---- The life of the plugin ---- */

typedef struct {
    int64_t engine;
    const Graph *graph;
    pthread_barrier_t *used, *unloaded;
} Lingerer;

/* Uses the plugin and ends when it is gone: nothing of it may be left to run then. */
static void *linger(void *argument) {
    const Lingerer *lingerer = argument;
    EngineConfig raw_config = engine_config(lingerer->engine);
    const Bytes config = {&raw_config, sizeof raw_config};
    Handle handle = NULL;
    size_t estimate;
    SUCCEEDS(api.hipdnnEnginePluginCreate(&handle));
    ask(handle, lingerer->engine, lingerer->graph, &config, &estimate);
    SUCCEEDS(api.hipdnnEnginePluginDestroy(handle));
    pthread_barrier_wait(lingerer->used);
    pthread_barrier_wait(lingerer->unloaded);
    return NULL;
}

/* Loads the plugin, uses it and closes it as hipDNN does. */
static void use(const char *path, char **graphs, int count) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL, "%s", dlerror());
#define RESOLVE(name)                                                                                                            \
    *(void **)&api.name = dlsym(library, #name);                                                                                 \
    CHECK(api.name != NULL, "%s", dlerror());
    HIPDNN_PLUGIN_FUNCTIONS(RESOLVE)

    atomic_store(&messages, 0);
    int64_t engine = check_identity();
    check_logging();
    Handle handles[2] = {NULL, NULL};
    SUCCEEDS(api.hipdnnEnginePluginCreate(&handles[0]));
    SUCCEEDS(api.hipdnnEnginePluginCreate(&handles[1]));
    CHECK(handles[0] != NULL && handles[1] != NULL && handles[0] != handles[1], "handles are null or the same");
    SUCCEEDS(api.hipdnnEnginePluginSetStream(handles[0], NULL));
    Graph graph;
    for (int i = 0; i < count; i++) {
        read_graph(&graph, graphs[i]);
        live(handles[0], handles[1], engine, &graph);
        free_graph(&graph);
        printf("%s: ok\n", graphs[i]);
    }
    SUCCEEDS(api.hipdnnEnginePluginDestroy(handles[0]));
    SUCCEEDS(api.hipdnnEnginePluginDestroy(handles[1]));
    CHECK(atomic_load(&messages) > 0, "nothing was logged");

    read_graph(&graph, graphs[0]);
    pthread_barrier_t used, unloaded;
    CHECK(pthread_barrier_init(&used, NULL, 2) == 0 && pthread_barrier_init(&unloaded, NULL, 2) == 0, "no barrier");
    Lingerer lingerer = {engine, &graph, &used, &unloaded};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, linger, &lingerer) == 0, "no thread");
    pthread_barrier_wait(&used);
    CHECK(dlclose(library) == 0, "%s", dlerror());
    pthread_barrier_wait(&unloaded);
    CHECK(pthread_join(thread, NULL) == 0, "the thread that outlives the plugin");
    pthread_barrier_destroy(&used);
    pthread_barrier_destroy(&unloaded);
    free_graph(&graph);
}

int main(int count, char **arguments) {
    int is_kept = count > 1 && strcmp(arguments[1], "--keep") == 0;
    arguments += is_kept;
    count -= is_kept;
    CHECK(count >= 3, "usage: host [--keep] PLUGIN.so GRAPH.fb...");
    if (is_kept) {
        CHECK(dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != NULL, "%s", dlerror());
    }
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        use(arguments[1], arguments + 2, count - 2);
    }
    return 0;
}
