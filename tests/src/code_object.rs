//! Reads compiled AMD GPU code: what a kernel uses, from the notes of its ELF file.
