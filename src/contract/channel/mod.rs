//! What is said to and heard from a chat: identities, outbound text, outcomes, routes, messages as a provider shows them.

pub mod binding;
pub mod body;
pub mod ids;
pub mod key;
pub mod mention;
pub mod observed;
pub mod outbound;
pub mod outcome;
pub mod packet;
pub mod route;
pub mod target;
