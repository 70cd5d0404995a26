/*
 * The C ABI of hipDNN's engine plugins, as far as this host calls it: declared here from its documented facts, so that neither
 * hipDNN's headers nor the plugin's own declarations are needed, and a mistake in either is seen.
 */
#ifndef HIPDNN_PLUGIN_H
#define HIPDNN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    STATUS_SUCCESS = 0,
    STATUS_BAD_PARAM = 1,
    STATUS_INVALID_VALUE = 2,
    STATUS_INTERNAL_ERROR = 3,
    STATUS_ALLOC_FAILED = 4,
    STATUS_NOT_APPLICABLE = 5,
    STATUS_NOT_INITIALIZED = 6,
} Status;

typedef enum { TYPE_UNSPECIFIED = 0, TYPE_ENGINE = 1, TYPE_HEURISTIC = 2 } PluginType;

typedef enum { SEVERITY_INFO = 0, SEVERITY_WARN = 1, SEVERITY_ERROR = 2, SEVERITY_FATAL = 3, SEVERITY_OFF = 4 } Severity;

typedef struct {
    const void *ptr;
    size_t size;
} Bytes;

typedef struct {
    int64_t uid;
    void *ptr;
} DeviceBuffer;

typedef struct OpaqueHandle *Handle;
typedef struct OpaqueContext *Context;
typedef struct OpaqueStream *Stream;
typedef void (*LogCallback)(Severity severity, const char *message);

Status hipdnnPluginGetName(const char **name);
Status hipdnnPluginGetVersion(const char **version);
Status hipdnnPluginGetApiVersion(const char **version);
Status hipdnnPluginGetType(PluginType *type);
void hipdnnPluginGetLastErrorString(const char **text);
Status hipdnnPluginSetLoggingCallback(LogCallback callback);
Status hipdnnPluginSetLogLevel(Severity severity);

Status hipdnnEnginePluginGetAllEngineIds(int64_t *ids, uint32_t max, uint32_t *count);
Status hipdnnEnginePluginGetEngineName(int64_t engine, const char **name);
Status hipdnnEnginePluginCreate(Handle *handle);
Status hipdnnEnginePluginDestroy(Handle handle);
Status hipdnnEnginePluginSetStream(Handle handle, Stream stream);
Status hipdnnEnginePluginGetApplicableEngineIds(Handle handle, const Bytes *graph, int64_t *ids, uint32_t max, uint32_t *count);
Status hipdnnEnginePluginGetEngineDetails(Handle handle, int64_t engine, const Bytes *graph, Bytes *details);
Status hipdnnEnginePluginDestroyEngineDetails(Handle handle, Bytes *details);
Status hipdnnEnginePluginGetWorkspaceSize(Handle handle, const Bytes *config, const Bytes *graph, size_t *size);
Status hipdnnEnginePluginCreateExecutionContext(Handle handle, const Bytes *config, const Bytes *graph, Context *context);
Status hipdnnEnginePluginDestroyExecutionContext(Handle handle, Context context);
Status hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(Handle handle, Context context, size_t *size);
Status hipdnnEnginePluginExecuteOpGraph(Handle handle, Context context, void *workspace, const DeviceBuffer *buffers,
                                        uint32_t count);
Status hipdnnEnginePluginExecuteOpGraphWithOverrides(Handle handle, Context context, void *workspace, const DeviceBuffer *buffers,
                                                     uint32_t count, uint32_t overrides, const int64_t *uids,
                                                     const uint32_t *ranks, const int64_t *const *shapes,
                                                     const int64_t *const *strides);
Status hipdnnEnginePluginCreateExecutionContextFromSerialized(Handle handle, const Bytes *bytes, Context *context);

/* Every function above: a host looks each one up by its name. */
#define HIPDNN_PLUGIN_FUNCTIONS(X)                                                                                               \
    X(hipdnnPluginGetName)                                                                                                       \
    X(hipdnnPluginGetVersion)                                                                                                    \
    X(hipdnnPluginGetApiVersion)                                                                                                 \
    X(hipdnnPluginGetType)                                                                                                       \
    X(hipdnnPluginGetLastErrorString)                                                                                            \
    X(hipdnnPluginSetLoggingCallback)                                                                                            \
    X(hipdnnPluginSetLogLevel)                                                                                                   \
    X(hipdnnEnginePluginGetAllEngineIds)                                                                                         \
    X(hipdnnEnginePluginGetEngineName)                                                                                           \
    X(hipdnnEnginePluginCreate)                                                                                                  \
    X(hipdnnEnginePluginDestroy)                                                                                                 \
    X(hipdnnEnginePluginSetStream)                                                                                               \
    X(hipdnnEnginePluginGetApplicableEngineIds)                                                                                  \
    X(hipdnnEnginePluginGetEngineDetails)                                                                                        \
    X(hipdnnEnginePluginDestroyEngineDetails)                                                                                    \
    X(hipdnnEnginePluginGetWorkspaceSize)                                                                                        \
    X(hipdnnEnginePluginCreateExecutionContext)                                                                                  \
    X(hipdnnEnginePluginDestroyExecutionContext)                                                                                 \
    X(hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext)                                                                    \
    X(hipdnnEnginePluginExecuteOpGraph)                                                                                          \
    X(hipdnnEnginePluginExecuteOpGraphWithOverrides)                                                                            \
    X(hipdnnEnginePluginCreateExecutionContextFromSerialized)

#endif
