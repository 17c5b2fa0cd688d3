//! Every text of an action, compiled: the one walk over them. What it finds on its way serves the checks of
//! what may be read where, the search for secrets in clear, and the list of secrets that a worker asks for.

use crate::parsed::Parsed;
use crate::{MapTree, SecretReads, TemplateTree, WriteTo};
use wonder_lang::def::{Name, SchemaDef, Text, Tree, Writes};
use wonder_lang::expr::{Expr, ExprError, Read};
use wonder_lang::path::{Target, TargetError};
use wonder_lang::schema::Schema;
use wonder_lang::template::{Template, TemplateError};
use wonder_lang::value::Value;

pub(super) const SECRET: &str = "secret";

/// What a text of an action is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextKind {
    Template,
    Expr,
    /// Which workflow to call: an expression over the run, since a call's input is the child's.
    Callee,
    CalleeTemplate,
}

/// One text of an action, and where it stands.
#[derive(Debug)]
pub(super) struct ActionText {
    pub(super) field: &'static str,
    /// Its key, where the field is a map.
    pub(super) key: Option<Name>,
    pub(super) kind: TextKind,
    pub(super) text: Text,
    /// The prompt spec that it is a text of, as the action names it.
    pub(super) prompt: Option<Text>,
    pub(super) reads: Vec<Read>,
    /// It deals with what may be absent.
    pub(super) minds_absence: bool,
}

/// What does not compile, and why.
#[derive(Debug)]
pub(super) enum BadText {
    Expr(Text, ExprError),
    Template(Text, TemplateError),
    Target(Text, TargetError),
    /// A schema that an action or its prompt has under this key.
    Schema(SchemaDef, &'static str, String),
    /// Something that has to be said is not.
    Missing(&'static str),
}

/// Compiles the texts of one action, and keeps a list of them. What does not compile is kept too, and None.
pub(super) struct Texts<'p> {
    parsed: &'p mut Parsed,
    pub(super) found: Vec<ActionText>,
    pub(super) bad: Vec<BadText>,
    /// The prompt spec whose texts are being read.
    prompt: Option<Text>,
}

impl<'p> Texts<'p> {
    pub(super) fn new(parsed: &'p mut Parsed) -> Texts<'p> {
        Texts { parsed, found: Vec::new(), bad: Vec::new(), prompt: None }
    }

    pub(super) fn schema(&mut self, def: Option<&SchemaDef>, key: &'static str) -> Option<Schema> {
        let def = def?;
        let compiled = Schema::compile(&def.doc);
        compiled.map_err(|message| self.bad.push(BadText::Schema(def.clone(), key, message))).ok()
    }

    /// The texts that `read` compiles are those of this prompt spec.
    pub(super) fn of_prompt<T>(&mut self, name: &Text, read: impl FnOnce(&mut Texts<'p>) -> T) -> T {
        self.prompt = Some(name.clone());
        let done = read(self);
        self.prompt = None;
        done
    }

    pub(super) fn template(&mut self, field: &'static str, text: &Text) -> Option<Template> {
        self.compile_template((field, None, TextKind::Template), text)
    }

    pub(super) fn optional(&mut self, field: &'static str, text: Option<&Text>) -> Option<Template> {
        text.and_then(|text| self.template(field, text))
    }

    pub(super) fn list(&mut self, field: &'static str, texts: &[Text]) -> Vec<Template> {
        texts.iter().filter_map(|text| self.template(field, text)).collect()
    }

    pub(super) fn callee_template(&mut self, field: &'static str, text: &Text) -> Option<Template> {
        self.compile_template((field, None, TextKind::CalleeTemplate), text)
    }

    pub(super) fn tree(&mut self, field: &'static str, tree: Option<&Tree>) -> Option<TemplateTree> {
        tree.map(|tree| match tree {
            Tree::Map(map) => TemplateTree::Map(
                map.iter().map(|(key, tree)| (key.clone(), self.branch(field, Some(key), tree))).collect(),
            ),
            tree => self.branch(field, None, tree),
        })
    }

    /// What does not compile stands as null: no graph comes of it.
    fn branch(&mut self, field: &'static str, key: Option<&Name>, tree: &Tree) -> TemplateTree {
        match tree {
            Tree::Text(text) => self
                .compile_template((field, key, TextKind::Template), text)
                .map_or(TemplateTree::Literal(Value::Null), TemplateTree::Text),
            Tree::Literal(value) => TemplateTree::Literal(value.clone()),
            Tree::List(list) => {
                TemplateTree::List(list.iter().map(|tree| self.branch(field, None, tree)).collect())
            }
            Tree::Map(map) => TemplateTree::Map(
                map.iter().map(|(key, tree)| (key.clone(), self.branch(field, None, tree))).collect(),
            ),
        }
    }

    pub(super) fn expr(&mut self, field: &'static str, text: Option<&Text>) -> Option<Expr> {
        self.compile_expr((field, None, TextKind::Expr), text?)
    }

    pub(super) fn callee_expr(&mut self, field: &'static str, text: &Text) -> Option<Expr> {
        self.compile_expr((field, None, TextKind::Callee), text)
    }

    /// A tree of expressions. What does not compile stands as null.
    pub(super) fn mapping(&mut self, field: &'static str, tree: &Tree) -> MapTree {
        match tree {
            Tree::Text(text) => {
                self.expr(field, Some(text)).map_or(MapTree::Literal(Value::Null), MapTree::Expr)
            }
            Tree::Literal(value) => MapTree::Literal(value.clone()),
            Tree::List(list) => MapTree::List(list.iter().map(|tree| self.mapping(field, tree)).collect()),
            Tree::Map(map) => {
                MapTree::Map(map.iter().map(|(key, tree)| (key.clone(), self.mapping(field, tree))).collect())
            }
        }
    }

    pub(super) fn writes(&mut self, field: &'static str, writes: &Writes) -> Vec<WriteTo> {
        let mut compiled = Vec::with_capacity(writes.0.len());
        for write in &writes.0 {
            let value = self.mapping(field, &write.value);
            match Target::parse(&write.to.text) {
                Ok(target) => compiled.push(WriteTo { target, value }),
                Err(error) => self.bad.push(BadText::Target(write.to.clone(), error)),
            }
        }
        compiled
    }

    /// The secrets that the texts so far read.
    pub(super) fn secrets(&self) -> SecretReads {
        let mut secrets = SecretReads::default();
        let templates = self.found.iter().filter(|text| text.kind == TextKind::Template);
        for read in templates.flat_map(|text| &text.reads).filter(|read| &*read.root == SECRET) {
            match read.path.first() {
                Some(name) => drop(secrets.names.insert(name.clone())),
                None => secrets.whole = true,
            }
        }
        secrets
    }

    fn compile_template(&mut self, place: Place<'_>, text: &Text) -> Option<Template> {
        let template = self.parsed.template(text);
        let minds = template.as_ref().is_ok_and(Template::minds_absence);
        self.keep(place, text, template.as_ref().map_or(&[], Template::reads), minds);
        template.map_err(|error| self.bad.push(BadText::Template(text.clone(), error))).ok()
    }

    fn compile_expr(&mut self, place: Place<'_>, text: &Text) -> Option<Expr> {
        let expr = self.parsed.expr(text);
        let minds = expr.as_ref().is_ok_and(Expr::minds_absence);
        self.keep(place, text, expr.as_ref().map_or(&[], Expr::reads), minds);
        expr.map_err(|error| self.bad.push(BadText::Expr(text.clone(), error))).ok()
    }

    fn keep(&mut self, (field, key, kind): Place<'_>, text: &Text, reads: &[Read], minds_absence: bool) {
        self.found.push(ActionText {
            field,
            key: key.cloned(),
            kind,
            text: text.clone(),
            prompt: self.prompt.clone(),
            reads: reads.to_vec(),
            minds_absence,
        });
    }
}

/// The field of a text, its key in it, and what kind of text it is.
type Place<'p> = (&'static str, Option<&'p Name>, TextKind);
