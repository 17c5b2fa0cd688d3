//! Tests of wonder-cli.
