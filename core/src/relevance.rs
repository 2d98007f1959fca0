//! relevance
