//! The `mock` action for real: the core's script, with the delay waited for. It counts tries, since a script
//! has one outcome for each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use wonder_core::command::TaskOrder;
use wonder_core::def::{Mock, Name};
use wonder_core::event::TokenId;
use wonder_core::mock;

use crate::errand::Errand;
use crate::tried::{Broken, Tried};

pub(crate) async fn perform(errand: &mut Errand<'_>, script: &Mock) -> Tried {
    let number = errand.shared.mocks.number(script, &errand.job.order, &errand.call.step);
    let answer = mock::outcome(script, number, &errand.scope);
    if answer.delay_ms > 0 {
        errand.leash.wait(answer.delay_ms).await?;
    }
    errand.spend.add(&answer.spend);
    // The script says what happened, so nothing is in doubt.
    answer.result.map_err(Broken::known)
}

/// How many tries of an action each token has made, by run.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<Name, OfRun>>);

type OfRun = BTreeMap<(TokenId, Name), u32>;

impl Counts {
    /// The number of this try, from 0. Earlier attempts that this worker did not see count one each.
    fn number(&self, script: &Mock, order: &TaskOrder, step: &Name) -> u32 {
        // One outcome repeats whatever the number: no need to count.
        if script.outcomes.len() < 2 {
            return 0;
        }
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = runs.entry(order.run.clone()).or_default();
        let next = tries.entry((order.token, step.clone())).or_default();
        let number = (*next).max(order.attempt.saturating_sub(1));
        *next = number + 1;
        number
    }

    pub(crate) fn forget(&self, run: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}
