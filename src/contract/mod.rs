//! What loopx says: typed packets and journal events, ids, parsing, canonical JSON and digests.
