//! Expressions and templates, parsed once however often they are written.

use std::collections::HashMap;

use wonder_lang::def::{Name, Text};
use wonder_lang::expr::{Expr, ExprError};
use wonder_lang::template::{Template, TemplateError};

#[derive(Debug, Default)]
pub(super) struct Parsed {
    exprs: HashMap<Name, Result<Expr, ExprError>>,
    templates: HashMap<Name, Result<Template, TemplateError>>,
}

impl Parsed {
    pub(super) fn expr(&mut self, text: &Text) -> Result<Expr, ExprError> {
        self.exprs.entry(text.text.clone()).or_insert_with(|| Expr::compile(&text.text)).clone()
    }

    pub(super) fn template(&mut self, text: &Text) -> Result<Template, TemplateError> {
        self.templates.entry(text.text.clone()).or_insert_with(|| Template::compile(&text.text)).clone()
    }
}
