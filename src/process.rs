//! The one place that spawns child processes.
