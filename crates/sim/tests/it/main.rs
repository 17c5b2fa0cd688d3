//! Everything the simulator holds the core to: scenarios, seeds, the lifecycle.

mod plans;
mod scenarios;
mod seeds;
mod shapes;
