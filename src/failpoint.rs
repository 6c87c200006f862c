//! Named crash points.
