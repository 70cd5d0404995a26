# Tests of an installed tree, in TheRock's layout: bin/rotiniprovider/ has what they need beside a CTestTestfile.cmake whose paths are
# relative, so that it works wherever the tree has been moved to. `ctest --test-dir PREFIX/bin/rotiniprovider` runs them.

set(rotini_tests bin/rotiniprovider)

add_executable(rotini_plugin_test tests/host/loads.c)
target_compile_options(rotini_plugin_test PRIVATE -std=gnu11 -Wall -Wextra)
target_link_libraries(rotini_plugin_test PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(rotini_plugin_test PROPERTIES THEROCK_INSTALL_RPATH_ORIGIN "${rotini_tests}")
install(TARGETS rotini_plugin_test DESTINATION "${rotini_tests}")

install(FILES cmake/CTestTestfile.cmake DESTINATION "${rotini_tests}")

# From the build directory the plugin alone is looked at: the rest is about where files are installed.
add_test(NAME rotini.plugin_loads COMMAND rotini_plugin_test "${rotini_cargo_DIR}/librotini_plugin.so")
