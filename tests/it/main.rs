//! Black-box tests: the binary as a child process, the house rules, the documents.

#![allow(clippy::too_many_lines, clippy::too_many_arguments)]

mod cli_common;
mod cli_generate;
mod cli_handoff;
mod cli_maintenance;
mod documents;
mod golden;
mod house;
mod kernel;
mod lark;
mod packet_forms;
mod report_page;
mod report_properties;
mod schemas;
mod second_provider;
mod support;
