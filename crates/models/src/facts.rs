//! What has to be known of single models, by name: the only place that looks into one. Names that are not here
//! are taken to be newer than this list. The name that is sent is never changed.

/// Claude models that are told how many tokens to think with. Later ones decide by themselves and refuse a number.
pub(crate) fn claude_thinks_by_budget(model: &str) -> bool {
    let old = [
        "claude-3",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-5",
        "claude-opus-4-2",
        "claude-sonnet-4-0",
        "claude-sonnet-4-5",
        "claude-sonnet-4-2",
        "claude-haiku-4-5",
    ];
    // Gateways put their own words before the name.
    old.iter().any(|name| model.contains(name))
}

/// Gemini models before the third generation: they think by a number of tokens, have no JSON mode beside tools,
/// do not insist on signatures, and take the images of a result beside it.
pub(crate) fn gemini_is_before_3(model: &str) -> bool {
    model.contains("gemini-2") || model.contains("gemini-1")
}

/// OpenAI's models that do not reason, and refuse to be asked for reasoning.
pub(crate) fn openai_does_not_reason(model: &str) -> bool {
    ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|name| model.starts_with(name))
}
