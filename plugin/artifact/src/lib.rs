//! librotini_plugin.so: one line over the library `rotini-plugin`, so that link-time optimisation
//! and tests both get what they want.

pub use plugin::abi;
