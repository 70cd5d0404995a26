//! librotini_plugin.so: re-exports the library `rotini-plugin`, so that the shipped file is built
//! with link-time optimisation and tests can link the library.

pub use plugin::abi;
