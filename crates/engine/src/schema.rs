//! `thalweg-engine schema`: the Rust declarations as JSON, as input for generated files.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use thalweg_plan::{plan, scenario};
use thalweg_trace::{Column, RECORDS, TABLES, Table};

/// Subject of a schema.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Subject {
    /// JSON Schema of scenarios, without their tables `search` and `fuzz`.
    Scenario,
    /// JSON Schema of plans.
    Plan,
    /// The columns of the tables in a run directory, and those of records.
    Columns,
}

/// Returns the schema of `subject`; its keys are in the order of the declaration.
pub fn schema(subject: Subject) -> Value {
    match subject {
        Subject::Scenario => json_schema::<scenario::Scenario>(),
        Subject::Plan => json_schema::<plan::Plan>(),
        Subject::Columns => json!({
            "format": plan::FORMAT,
            "tables": TABLES.iter().map(|table| describe(table)).collect::<Vec<_>>(),
            "records": RECORDS.iter().map(|table| describe(table)).collect::<Vec<_>>(),
        }),
    }
}

/// Returns the JSON Schema, draft 2020-12, of a type. `title`, in which schemars puts the name of the Rust type, is
/// removed.
fn json_schema<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let keys = schema.as_object_mut().expect("the schema of a struct is an object");
    keys.shift_remove("title");
    schema
}

fn describe(table: &Table) -> Value {
    json!({
        "name": table.name,
        "about": table.about,
        "columns": table.columns.iter().map(describe_column).collect::<Vec<_>>(),
    })
}

fn describe_column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "kind": column.kind.name(),
        "optional": column.is_optional,
        "key": column.is_key,
        "about": column.about,
    })
}
