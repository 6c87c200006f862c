//! Black-box tests of the binary.
