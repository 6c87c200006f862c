//! `periodic-report generate` as a black box.

mod files;
mod input;
mod repository;
mod shapes;
