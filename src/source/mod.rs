//! Where facts come from: one file or folder per source adapter.
