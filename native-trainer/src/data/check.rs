//! `akin data check`: what a data set holds, and what is likely wrong with it.
