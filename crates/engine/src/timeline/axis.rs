//! The time of a run's own work: from its start, or from when it was forked, without what lay between an end and
//! the retry after it. Everything that is shown of a run is measured on it.

use wonder_core::Time;

use super::{Timeline, Visit};

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Where it begins; what came before was copied from another run.
    pub from: Time,
    /// From each end to the retry after it.
    closed: Vec<(Time, Time)>,
}

impl Axis {
    /// How far a time is on it.
    pub fn ms(&self, at: Time) -> u64 {
        self.between(self.from, at)
    }

    /// What of the time between the two the run was open.
    pub fn between(&self, from: Time, to: Time) -> u64 {
        let closed = |(since, until): &(Time, Time)| (*until).min(to).since((*since).max(from));
        to.since(from).saturating_sub(self.closed.iter().map(closed).sum())
    }

    /// The same of a piece of work; of one that was copied whole, how long it took there.
    pub fn work_ms(&self, began: Time, ended: Time) -> u64 {
        self.between(if ended > self.from { began.max(self.from) } else { began }, ended)
    }

    /// How long a visit has been at it, until it ended or until `now`.
    pub fn took_ms(&self, visit: &Visit, now: Time) -> u64 {
        self.work_ms(visit.started_at.unwrap_or(visit.created_at), visit.ended_at.unwrap_or(now))
    }
}

impl Timeline {
    pub fn axis(&self) -> Axis {
        Axis { from: self.forked_at.unwrap_or(self.started_at), closed: self.closed.clone() }
    }

    /// How long it lay ended before it was retried, since it was forked if it is a fork.
    pub fn closed_ms(&self) -> u64 {
        let axis = self.axis();
        self.last_at.since(axis.from) - axis.ms(self.last_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lay_between_an_end_and_a_retry_does_not_count() {
        let axis =
            Axis { from: Time(100), closed: vec![(Time(200), Time(1_000)), (Time(1_100), Time(9_000))] };
        let at = |ms: i64| axis.ms(Time(ms));
        assert_eq!([at(50), at(100), at(150), at(200)], [0, 0, 50, 100]);
        assert_eq!(
            [at(600), at(1_000), at(1_050)],
            [100, 100, 150],
            "it stands still while the run is closed"
        );
        assert_eq!(at(9_010), 210);
        assert_eq!(axis.between(Time(150), Time(1_050)), 100);
    }
}
