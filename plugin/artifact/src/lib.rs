//! librotini_plugin.so: the plugin as hipDNN loads it.
