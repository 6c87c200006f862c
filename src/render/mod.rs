//! How a packet or document looks: pure text.
