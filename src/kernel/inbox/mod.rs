//! What is decided about messages: whether one is addressed, what is stored of it, which window of history is read next.

pub mod addressing;
pub mod collector;
pub mod collector_log;
pub mod gaps;
pub mod guidance;
pub mod heard;
pub mod history_page;
pub mod history_window;
pub mod ingest;
pub mod live;
pub mod service;
pub mod turn_start;
pub mod urgency;
