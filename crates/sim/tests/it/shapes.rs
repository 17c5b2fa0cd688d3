//! The ready order of dags pays: on shapes like those of recorded workflows it is not slower than first-come
//! and stays near what no order could beat.

use wonder_sim::shape::Shape;

const SHAPES: u64 = 60;
const SLOTS: [usize; 3] = [4, 8, 16];

/// A hundred of first-come's or the lower bound's time.
fn percent(ms: u64, of: u64) -> u64 {
    ms * 100 / of.max(1)
}

#[test]
fn the_ready_order_is_not_worse_than_first_come_and_near_the_bound() {
    for slots in SLOTS {
        let mut against_bound = Vec::new();
        for seed in 0..SHAPES {
            let shape = Shape::generated(seed);
            let ordered = shape.ordered_ms(slots).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let (bound, first_come) = (shape.lower_bound_ms(slots), shape.first_come_ms(slots));
            assert!(ordered >= bound, "seed {seed}, {slots} slots: {ordered} ms, but none can beat {bound}");
            let against = percent(ordered, first_come);
            assert!(against <= 103, "seed {seed}, {slots} slots: {against} % of first-come's time");
            against_bound.push(percent(ordered, bound));
        }
        against_bound.sort_unstable();
        let median = against_bound[against_bound.len() / 2];
        assert!(median <= 115, "{slots} slots: {median} % of the lower bound on the median");
    }
}
