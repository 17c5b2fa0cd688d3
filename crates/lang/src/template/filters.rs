//! The filters of templates, by subject. What they are for is in `words.rs`.

mod lists;
mod maps;
mod numbers;
mod texts;

use super::budget::Evaluated;
use super::eval::Rendering;
use super::exprs::Call;
use super::value::Val;

pub(super) type Filter = for<'r, 't> fn(&'r mut Rendering<'t>, Call<'t>) -> Evaluated<Val<'t>>;

pub(super) fn find(name: &str) -> Option<Filter> {
    Some(match name {
        "abs" => numbers::abs,
        "attr" => maps::attr,
        "batch" => lists::batch,
        "bool" => numbers::truth,
        "capitalize" => texts::capitalize,
        "chain" => lists::chain,
        "count" | "length" => lists::length,
        "d" | "default" => maps::default,
        "dictsort" => maps::dictsort,
        "e" | "escape" => texts::escape,
        "first" => lists::first,
        "float" => numbers::float,
        "format" => texts::format,
        "groupby" => maps::groupby,
        "indent" => texts::indent,
        "int" => numbers::int,
        "items" => maps::items,
        "join" => texts::join,
        "last" => lists::last,
        "lines" => texts::lines,
        "list" => lists::list,
        "lower" => texts::lower,
        "map" => lists::map,
        "max" => lists::max,
        "min" => lists::min,
        "pprint" => texts::pprint,
        "reject" => lists::reject,
        "rejectattr" => lists::rejectattr,
        "replace" => texts::replace,
        "reverse" => lists::reverse,
        "round" => numbers::round,
        "safe" => texts::safe,
        "select" => lists::select,
        "selectattr" => lists::selectattr,
        "slice" => lists::slice,
        "sort" => lists::sort,
        "split" => texts::split,
        "string" => texts::string,
        "sum" => numbers::sum,
        "title" => texts::title,
        "tojson" => texts::tojson,
        "trim" => texts::trim,
        "unique" => lists::unique,
        "upper" => texts::upper,
        "zip" => lists::zip,
        _ => return None,
    })
}
