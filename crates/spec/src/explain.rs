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

/// Lists the pages; each is a file of `docs/errors/`.
macro_rules! pages {
    ($($code:literal)*) => {
        &[$(($code, include_str!(concat!("../../../docs/errors/", $code, ".md")))),*]
    };
}

#[rustfmt::skip]
const PAGES: &[(&str, &str)] = pages! {
    "E0001" "E0002" "E0003" "E0004" "E0005" "E0006" "E0007" "E0008" "E0009" "E0010" "E0011" "E0020" "E0021"
    "E0022" "E0023" "E0024" "E0025" "E0026" "E0027" "E0028" "E0030" "E0031" "E0032" "E0033" "E0034" "E0035"
    "E0036" "E0037" "E0038" "E0039" "E0101" "E0102" "E0103" "E0104" "E0105" "E0106" "E0107" "E0108" "E0109"
    "E0110" "E0111" "E0112" "E0113" "E0114" "E0115" "E0116" "E0117" "E0118" "E0119" "E0120" "E0121" "E0122"
    "E0123" "E0124" "E0125" "E0126" "E0127" "E0128" "E0130" "E0131" "E0132" "E0133" "E0135" "E0136" "E0137"
    "E0140" "E0141" "E0142" "E0143" "E0144" "E0145" "E0146" "E0147" "E0148" "E0149" "E0150" "E0151" "E0152"
    "E0153" "E0154" "E0160" "E0161" "E0162" "E0163" "E0164" "E0165" "E0166" "E0167" "E0170" "E0171" "E0172" "E0173" "E0180" "E0185" "E0190" "E0191" "W0201"
    "W0202" "W0203" "W0204" "W0205" "W0206" "W0207" "W0210" "W0211"
};
