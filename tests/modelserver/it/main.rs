//! The codecs against the server, over HTTP: two readings of the same documentation that have to agree.

mod binary;
mod client;
mod conversations;
mod faults;
mod strictness;
