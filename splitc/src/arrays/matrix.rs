//! Matrices in blocks.
