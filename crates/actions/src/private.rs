//! What a process can do about others of the same person that look into it.

/// Keeps our memory and environment from commands that run as the same user: they cannot read `/proc/PID/environ` or
/// `mem` any more, nor trace us, and a crash leaves no core file. Root can all the same, and so can a process with
/// `CAP_SYS_PTRACE`. Where the system has nothing of the kind, nothing happens.
pub fn hide_from_other_processes() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with this argument; and if it did, we would be where we were.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
