//! Which congestion control the next connection to a destination gets, and whether that helps.
