//! Goals, quota, Turns and settlement through the binary.

mod asked_captures;
mod busy;
mod crash;
mod current;
mod decisions;
mod disk;
mod forged;
mod formats;
mod gates;
mod halves;
mod hosts;
mod large;
mod leases;
mod meddling;
mod mixed;
mod race;
mod refresh;
mod registry;
mod reviews;
mod scenes;
mod spends;
mod stop;
mod todos;
mod turns;
mod unfinished;
mod worked;
