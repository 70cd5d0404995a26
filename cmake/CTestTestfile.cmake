# Runs in an installed tree: paths are relative to the directory of this file. TheRock's runner selects by the labels.

# A host in C loads the plugin as hipDNN does.
add_test(rotini.plugin_loads ./rotini_plugin_test ../../lib/hipdnn_plugins/engines/librotini_plugin.so)
# The command looks for its plugin in its own prefix, and nowhere else.
add_test(rotini.command_finds_the_plugin ../../bin/rotini doctor)
# Compiles and executes on the CPU, and holds the results against a reference. Needs IREE's compiler, and is skipped without.
add_test(rotini.executes ../../bin/rotini demo)

set_tests_properties(rotini.plugin_loads rotini.command_finds_the_plugin rotini.executes PROPERTIES
  LABELS "quick;standard;comprehensive;full" TIMEOUT 300
  ENVIRONMENT "ROTINI_DEVICE=cpu;ROTINI_CACHE_DIR="
  ENVIRONMENT_MODIFICATION "ROTINI_COMPILE_WORKER=unset:;ROTINI_PLUGIN=unset:")
set_tests_properties(rotini.command_finds_the_plugin PROPERTIES
  PASS_REGULAR_EXPRESSION "ok plugin +[^ ]* [^ ]*/lib/hipdnn_plugins/engines/librotini_plugin.so: ")
# The plugin finds the worker in its prefix: without, it would take another way to the compiler, and say so.
set_tests_properties(rotini.executes PROPERTIES
  SKIP_RETURN_CODE 3 FAIL_REGULAR_EXPRESSION "no rotini-compile-worker found")
