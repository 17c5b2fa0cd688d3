//! Everything the simulator holds the core to: scenarios, seeds, the lifecycle.

mod scenarios;
mod seeds;
mod shapes;
