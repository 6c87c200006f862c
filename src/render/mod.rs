//! How a packet or document looks: pure text.

pub(crate) mod appendix;
pub(crate) mod brief;
pub(crate) mod escape;
pub(crate) mod generate_text;
pub(crate) mod html;
pub(crate) mod kernel_text;
pub(crate) mod labels;
pub(crate) mod link;
pub(crate) mod log_text;
pub(crate) mod markdown;
pub(crate) mod packet_text;
pub(crate) mod page;
pub(crate) mod prepare;
pub(crate) mod report;
pub(crate) mod report_text;
pub(crate) mod runnable;
pub(crate) mod shape;
pub(crate) mod symbol;
