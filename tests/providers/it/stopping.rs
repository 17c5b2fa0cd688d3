//! A call that is cancelled in the middle of its answer lets go of the connection: whoever serves it sees that, and
//! stops writing what nobody reads and somebody pays for.

use wonder_core::input::TaskOutcome;

use crate::ask::{self, Call, FORMATS};
use crate::cases::{Case, Maps};
use crate::raw::RawServer;
use crate::replies;

const STOPPED: Case = Case::new("stopped", "", [Maps::Never; 5]);

#[tokio::test]
async fn a_call_that_is_cancelled_in_its_stream_closes_the_connection() {
    let server = RawServer::start(replies::reply, None).await;
    let worker = ask::worker();
    for (done, format) in FORMATS.iter().enumerate() {
        let call = Call::of(&STOPPED, format, &server.url).stopped_at_the_first_piece();
        let (report, pieces) = call.perform(&worker).await;
        assert!(matches!(report.outcome, TaskOutcome::Cancelled), "{format:?}: {report:?}");
        assert_eq!((pieces, report.spend.calls), (1, 1), "{format:?}");
        let left = tokio::time::timeout(std::time::Duration::from_secs(10), server.left_by(done + 1));
        left.await.unwrap_or_else(|_| panic!("{format:?}: the connection stays open"));
    }
    assert_eq!(server.journal().len(), FORMATS.len(), "nothing is asked for again");
}
