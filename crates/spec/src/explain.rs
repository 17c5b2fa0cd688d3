//! The page of each code, inside the binary.

/// The page that describes a code: `explain("E0020")`. Case and surrounding brackets do not matter.
pub fn explain(code: &str) -> Option<&'static str> {
    let code = code.trim().trim_matches(['[', ']']).to_ascii_uppercase();
    PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

/// Every code with its page, in order.
pub fn all() -> &'static [(&'static str, &'static str)] {
    PAGES
}

const PAGES: &[(&str, &str)] = &[];
