//! The door: builds the ports; the only file that names concrete providers, sources and hosts.
