//! Where things are: the project, the registry, the runtime root, the environment.
