//! The shape of a config, read from the schemas of its types.

use std::sync::LazyLock;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Types that have a section of their own. Settings of these types only name them, because they can be nested
/// without end.
const NAMED_TYPES: [(&str, &str); 2] = [("LossConfig", "loss"), ("Miner", "miner")];

/// The JSON schema of a type.
pub struct Schema {
    root: Value,
}

/// A part of a schema: what a value may be.
pub type Node = Map<String, Value>;

/// A node that allows any value.
static ANY: LazyLock<Node> = LazyLock::new(Node::new);

/// What a value may be, as a reader of configs sees it.
pub enum Shape<'a> {
    /// A table with known keys.
    Table(&'a Node),
    /// A table whose `kind` decides which other keys it has.
    Kinds(Vec<(&'a str, &'a Node)>),
    /// One of some names, each with its meaning, or, where there is one, a table.
    Names(Vec<(&'a str, &'a str)>, Option<&'a Node>),
    /// A table whose keys are free.
    Map(&'a Node),
    /// A list, of this length if it has a fixed one.
    List(&'a Node, Option<u64>),
    /// A number, a text or a truth value: the `type` of JSON schema.
    Plain(&'a str),
    /// Any value.
    Any,
}

impl Schema {
    /// The schema of a type.
    pub fn of<T: JsonSchema>() -> Self {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        Self { root: schema.to_value() }
    }

    /// The whole type.
    pub fn root(&self) -> &Node {
        self.root.as_object().expect("the schema of a config is an object")
    }

    /// What a node, or the type that it refers to, allows.
    pub fn shape<'a>(&'a self, node: &'a Node) -> Shape<'a> {
        let node = self.resolve(node);
        if let Some(any_of) = nodes(node, "anyOf") {
            // A name or a table.
            let (mut names, mut table) = (Vec::new(), None);
            for part in any_of {
                match self.shape(part) {
                    Shape::Names(more, _) => names.extend(more),
                    _ => table = Some(self.resolve(part)),
                }
            }
            return Shape::Names(names, table);
        }
        if let Some(one_of) = nodes(node, "oneOf") {
            let kinds: Vec<_> = one_of.iter().filter_map(|&part| Some((kind(part)?, part))).collect();
            if kinds.len() == one_of.len() {
                return Shape::Kinds(kinds);
            }
            let names = one_of.iter().filter_map(|part| Some((text(part, "const")?, description(part))));
            let table = one_of.iter().find(|part| part.contains_key("properties"));
            return Shape::Names(names.collect(), table.copied());
        }
        if let Some(names) = node.get("enum").and_then(Value::as_array) {
            return Shape::Names(names.iter().filter_map(|name| Some((name.as_str()?, ""))).collect(), None);
        }
        if node.contains_key("properties") {
            return Shape::Table(node);
        }
        if let Some(values) = node.get("additionalProperties").and_then(Value::as_object) {
            return Shape::Map(values);
        }
        if let Some(items) = node.get("items").and_then(Value::as_object) {
            return Shape::List(items, node.get("minItems").and_then(Value::as_u64));
        }
        let types = node.get("type");
        let first = types.and_then(Value::as_array).and_then(|types| types.first()).or(types);
        match first.and_then(Value::as_str) {
            // Its items may be anything.
            Some("array") => Shape::List(&ANY, None),
            plain => plain.map_or(Shape::Any, Shape::Plain),
        }
    }

    /// What a node is called, if its type has a section of its own.
    pub fn named_type(&self, node: &Node) -> Option<&'static str> {
        let target = self.target(node)?;
        NAMED_TYPES.iter().find(|(definition, _)| *definition == target).map(|&(_, name)| name)
    }

    /// The node itself, or what it refers to.
    pub fn resolve<'a>(&'a self, node: &'a Node) -> &'a Node {
        let definition = |name: &str| self.root.get("$defs")?.get(name)?.as_object();
        self.target(node).and_then(definition).unwrap_or(node)
    }

    /// A name that has settings, and how a config gives it: as serde writes it, a table with this one key. None for another
    /// table.
    pub fn name_with_settings<'a>(&'a self, table: &'a Node) -> Option<(&'a str, String)> {
        let [(name, settings)] = fields(table)[..] else { return None };
        if required(table) != [name] || !self.resolve(settings).contains_key("properties") {
            return None;
        }
        let setting = |(key, node): (&str, &Node)| match node.get("default") {
            Some(default) => format!("{key} = {default}"),
            None => format!("{key} = …"),
        };
        let settings: Vec<String> = fields(self.resolve(settings)).into_iter().map(setting).collect();
        Some((name, format!("{{ {name} = {{ {} }} }}", settings.join(", "))))
    }

    /// The name of the definition that a node refers to, directly or as an optional value.
    fn target<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        let optional = || match nodes(node, "anyOf")?[..] {
            [some, none] if text(none, "type") == Some("null") => text(some, "$ref"),
            _ => None,
        };
        match text(node, "$ref").or_else(optional)? {
            "#" => self.root.get("title")?.as_str(),
            path => path.strip_prefix("#/$defs/"),
        }
    }
}

/// The fields of a table: first those that are required, in the order of the type, then `kind`, then the others by name.
pub fn fields(table: &Node) -> Vec<(&str, &Node)> {
    let properties = table.get("properties").and_then(Value::as_object);
    let required = required(table);
    let mut fields: Vec<(&str, &Node)> = properties
        .into_iter()
        .flatten()
        .filter_map(|(key, node)| Some((&**key, node.as_object()?)))
        .collect();
    let place = |key: &str| required.iter().position(|name| *name == key).unwrap_or(usize::MAX);
    fields.sort_by_key(|(key, _)| (place(key), *key != "kind"));
    fields
}

/// The keys that a table must have.
pub fn required(table: &Node) -> Vec<&str> {
    let names = table.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The doc comment of a type, a field or a name.
pub fn description(node: &Node) -> &str {
    text(node, "description").unwrap_or_default()
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key)?.as_str()
}

fn nodes<'a>(node: &'a Node, key: &str) -> Option<Vec<&'a Node>> {
    node.get(key)?.as_array()?.iter().map(Value::as_object).collect()
}

/// The `kind` that a table must have to be of this shape.
fn kind(node: &Node) -> Option<&str> {
    node.get("properties")?.get("kind")?.get("const")?.as_str()
}
