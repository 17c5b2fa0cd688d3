//! What the operating system says of a process: processor time, memory.

/// Processor seconds used so far, all threads.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    // Fields 14 and 15 of the whole line; a tick is a hundredth of a second on Linux.
    (ticks(11) + ticks(12)) / 100.0
}

/// Processor milliseconds of this process so far, all threads, to the microsecond.
pub(crate) fn cpu_ms() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 * 1_000.0 + used.tv_nsec as f64 / 1_000_000.0
}

/// Resident megabytes of a process by its number, or of this one: `self`.
pub(crate) fn rss_mb(process: &str) -> f64 {
    status_mb(process, "VmRSS:")
}

/// The most that this process had resident at any time.
pub(crate) fn peak_mb() -> f64 {
    status_mb("self", "VmHWM:")
}

fn status_mb(process: &str, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}
