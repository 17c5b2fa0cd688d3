//! Cassettes: what actions asked of the outside and what came of it, as readable files, so that a run can be played
//! again without a network, a key or a command.
//!
//! An exchange is one try of one action: its kind and its filled-in fields, and a result, a failure or a stop, with what
//! was spent. It is found again by its content: the key is the hash of the request as canonical JSON. Exchanges with equal
//! keys are told apart by where in the run they were made, then by their order; each is given once. A conversation is
//! stored as what it adds to an earlier one.
//!
//! Plain data and pure functions: no file is opened here, no secret is known, and nothing is performed. Who records hides
//! what is to be hidden before it comes here.

mod exchange;
mod fold;
mod missing;
mod player;
mod written;

pub use exchange::{Exchange, Key, Outcome, Place, Request, Stop};
pub use missing::Missing;
pub use player::Player;
pub use written::{Contents, FORMAT, Unreadable, Writer};
