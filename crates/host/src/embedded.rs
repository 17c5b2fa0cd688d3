//! What only the embedded host is asked, beside what every engine is: whether it carries on what a request sets
//! going, and to carry on a run that nobody drives. An owner is asked the same over its socket.

use serde::{Deserialize, Serialize};
use wonder_engine::Request;

/// Whether to carry the run on after recording what was asked.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drive {
    #[default]
    On,
    /// Only record: the run waits until somebody resumes it.
    Off,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Embedded {
    Ask {
        request: Request,
        drive: Drive,
    },
    /// Carry on a run that nobody drives, if it is live; changes nothing else.
    Adopt {
        run: String,
    },
    /// Whether anybody answers.
    Hello,
}

impl From<Request> for Embedded {
    fn from(request: Request) -> Embedded {
        Embedded::Ask { request, drive: Drive::On }
    }
}

impl Embedded {
    /// How long the answer may be waited for because it was asked to wait.
    pub(crate) fn wait_ms(&self) -> u64 {
        match self {
            Embedded::Ask { request: Request::Wait { wait_ms, .. }, .. } => *wait_ms,
            Embedded::Ask { request: Request::Start(start), .. } => start.wait_ms,
            Embedded::Ask { request: Request::Follow(follow), .. } => follow.wait_ms,
            Embedded::Ask { request: Request::Listen(listen), .. } => listen.wait_ms,
            _ => 0,
        }
    }

    /// The run that it sets going is to be carried on.
    pub(crate) fn drives(&self) -> bool {
        match self {
            Embedded::Adopt { .. } => true,
            Embedded::Hello => false,
            Embedded::Ask { request, drive } => {
                let sets_going = matches!(
                    request,
                    Request::Start(_)
                        | Request::Act { .. }
                        | Request::Fork(_)
                        | Request::Answer(_)
                        | Request::Signal(_)
                        | Request::Tell(_)
                );
                sets_going && *drive == Drive::On
            }
        }
    }
}
