//! What the model is told about each tool: name, description and JSON Schema.
//!
//! The schema comes from the argument structs, freed of what providers stumble over. The same tools
//! give the same bytes in every request of every session, so that providers can cache them and a
//! record can name them by digest.

use crate::base::digest::Digest;
use crate::base::json::canonical;
use crate::base::limits;
use crate::call::request::{
    BashArguments, EditArguments, GlobArguments, GrepArguments, JobKillArguments,
    JobOutputArguments, ListArguments, ReadArguments, ToolName, WriteArguments,
};
use crate::model::ToolDefinition;
use crate::tools::worker::job::JobLimits;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The definition of `tool`.
#[must_use]
pub fn definition(tool: ToolName) -> ToolDefinition {
    ToolDefinition {
        name: tool.as_str().to_owned(),
        description: description(tool),
        parameters: parameters(tool),
    }
}

/// The digest of a definition's canonical JSON.
#[must_use]
pub fn digest(definition: &ToolDefinition) -> Digest {
    let ToolDefinition { name, description, parameters } = definition;
    let value = json!({"name": name, "description": description, "parameters": parameters});
    Digest::of(canonical(&value).as_bytes())
}

/// The definitions of the enabled tools, sorted by name.
#[must_use]
pub fn definitions(enabled: &BTreeSet<ToolName>) -> Vec<ToolDefinition> {
    ToolName::ALL.into_iter().filter(|tool| enabled.contains(tool)).map(definition).collect()
}

fn description(tool: ToolName) -> String {
    let (found, result) = (limits::FOUND_MAX, limits::TOOL_RESULT_BYTES_MAX);
    match tool {
        ToolName::Bash => format!(
            "Run a bash script in a confined process and return its output (stdout and stderr, in \
             order) and exit status. It has no input and no terminal; everything it started ends \
             with it. Of an output over {result} bytes the head and the tail are returned. With \
             `background` it is not waited for: for long work, read with job_output and ended with \
             job_kill. Such a job ends with your final answer, and without a granted network no other \
             call reaches a port that it opens: start a server in the command that uses it."
        ),
        ToolName::Edit => format!(
            "Replace exact text in a file. Each `old` must occur exactly once in the file as it is \
             now, white space included; edits must not overlap; either all are made or none. \
             Everything else in the file stays byte for byte. Files up to {} MiB.",
            limits::EDIT_BYTES_MAX / (1024 * 1024)
        ),
        ToolName::Glob => format!(
            "Find files by pattern below a directory, sorted by path, at most {found}. Leaves out \
             directories and, unless `all` is set, hidden names and what git ignores."
        ),
        ToolName::Grep => format!(
            "Search the lines of files for a regular expression; returns `file:line:text`, at most \
             {found} lines. Passes over binary files and, unless `all` is set, hidden names and \
             what git ignores."
        ),
        ToolName::JobKill => "End a background job that `bash` began, with everything it started. \
             Its output can still be read."
            .to_owned(),
        ToolName::JobOutput => format!(
            "Read the output of a background job that `bash` began, from where the last look stopped \
             or from `offset`, and whether it still runs or how it ended. With `wait_ms` it waits for \
             something new; at most {result} bytes are returned."
        ),
        ToolName::List => format!(
            "List a directory, sorted, at most {found} names; a directory ends with `/`. Leaves out \
             hidden names and what git ignores unless `all` is set."
        ),
        ToolName::Read => format!(
            "Read a text file, at most {} lines and {} bytes a page, in whole lines. If the file \
             goes on, the result names the `offset` of the next page.",
            limits::READ_LINES_MAX,
            JobLimits::default().page_bytes
        ),
        ToolName::Write => "Create a file, or replace the whole content of one. Missing parent \
             directories are made. To change part of a file use `edit`."
            .to_owned(),
    }
}

fn parameters(tool: ToolName) -> Value {
    match tool {
        ToolName::Bash => schema::<BashArguments>(),
        ToolName::Edit => schema::<EditArguments>(),
        ToolName::Glob => schema::<GlobArguments>(),
        ToolName::Grep => schema::<GrepArguments>(),
        ToolName::JobKill => schema::<JobKillArguments>(),
        ToolName::JobOutput => schema::<JobOutputArguments>(),
        ToolName::List => schema::<ListArguments>(),
        ToolName::Read => schema::<ReadArguments>(),
        ToolName::Write => schema::<WriteArguments>(),
    }
}

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    clean(&mut value);
    if let Value::Object(map) = &mut value {
        // The tool's own description says it already.
        map.remove("description");
        map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    }
    value
}

/// Leaves out titles, number formats and the `null` of optional keys, and makes each description
/// one line.
fn clean(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for noise in ["title", "format", "default"] {
        map.remove(noise);
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(clean);
    }
    if let Some(items) = map.get_mut("items") {
        clean(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ToolDefinition> {
        definitions(&ToolName::ALL.into_iter().collect())
    }

    /// The keys of a schema that providers accept, at every depth.
    fn check(schema: &Value, path: &str) {
        let map = schema.as_object().unwrap();
        for (key, value) in map {
            match key.as_str() {
                "type" => assert!(value.is_string(), "{path}: one type"),
                "properties" => {
                    for (name, property) in value.as_object().unwrap() {
                        assert!(
                            property.get("description").is_some(),
                            "{path}.{name} is described"
                        );
                        check(property, &format!("{path}.{name}"));
                    }
                }
                "items" => check(value, &format!("{path}[]")),
                "additionalProperties" => assert_eq!(value, false, "{path}"),
                "description" => assert!(!value.as_str().unwrap().contains('\n'), "{path}"),
                "required" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
                other => panic!("{path}: unexpected `{other}`"),
            }
        }
        if map["type"] == "object" {
            assert_eq!(map["additionalProperties"], false, "{path}");
            assert!(map.contains_key("required"), "{path}");
        }
    }

    #[test]
    fn schemas_are_plain_and_closed() {
        for definition in all() {
            assert_eq!(definition.parameters["type"], "object");
            check(&definition.parameters, &definition.name);
        }
        let read = definition(ToolName::Read);
        assert_eq!(
            read.parameters,
            json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "File to read, absolute or relative to the workspace."
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "First line of the page, counted from 1. Default 1."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 2000,
                        "description": "Most lines of the page. Default and maximum 2000."
                    },
                },
                "required": ["path"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn definitions_are_sorted_and_the_same_every_time() {
        let names: Vec<String> = all().into_iter().map(|definition| definition.name).collect();
        assert!(names.is_sorted());
        assert_eq!(serde_json::to_vec(&all()).unwrap(), serde_json::to_vec(&all()).unwrap());
        let digests: BTreeSet<Digest> = all().iter().map(digest).collect();
        assert_eq!(digests.len(), ToolName::ALL.len());
    }

    #[test]
    fn only_enabled_tools_are_described() {
        let only = definitions(&BTreeSet::from([ToolName::Read]));
        assert_eq!(only.len(), 1);
        assert!(!serde_json::to_string(&only).unwrap().contains("\"write\""));
        assert!(definitions(&BTreeSet::new()).is_empty());
    }
}
