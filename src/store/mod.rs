//! What loopx keeps: SQLite journals and owner-private files. It stores and never decides.
