// Calls the host's logging function. Only C++ can stop what it may throw: Rust ends the process when it meets a foreign exception.

#include <cxxabi.h>

namespace {

// What a thread knows of its exceptions, as the Itanium C++ ABI defines it (2.2.2).
struct Globals {
    void *caught;
    unsigned int uncaught;
};

} // namespace

extern "C" int rotini_tell(void (*callback)(int, const char *), int severity, const char *message) noexcept {
    try {
        callback(severity, message);
        return 0;
    } catch (abi::__foreign_exception &) {
        // Another language's, such as a panic of Rust, whose runtime ends the process when its panics are dropped by somebody else.
        // Forgotten, it is not dropped: the end of this block finds nothing that was caught.
        reinterpret_cast<Globals *>(abi::__cxa_get_globals())->caught = nullptr;
        return 1;
    } catch (...) {
        return 1;
    }
}
