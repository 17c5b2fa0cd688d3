//! Filling in a mapping: every expression of it, over whatever scope it stands in.

use wonder_lang::expr::{EvalError, Scope};
use wonder_lang::value::{Map, Value};

use crate::MapTree;

impl MapTree {
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        match self {
            MapTree::Expr(expr) => expr.eval(scope),
            MapTree::Literal(value) => Ok(value.clone()),
            MapTree::List(items) => {
                Ok(Value::from(items.iter().map(|i| i.eval(scope)).collect::<Result<Vec<_>, _>>()?))
            }
            MapTree::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.clone(), value.eval(scope)?);
                }
                Ok(Value::from(map))
            }
        }
    }
}
