//! How a packet or document looks: pure text.

pub(crate) mod packet_text;
