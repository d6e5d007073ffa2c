//! The conversation as the model is sent it: the journal's view in the model's form.

use crate::model::{Message, ModelToolCall, Replay, Thinking};
use crate::session::{self, SessionState, ViewMessage};
use std::collections::HashMap;

/// The messages of `state`, in order.
#[must_use]
pub(super) fn messages(state: &SessionState) -> Vec<Message> {
    let mut names: HashMap<String, String> = HashMap::new();
    session::view(state).iter().map(|item| message(item, &mut names)).collect()
}

/// Results name their tool only through the call that they answer.
fn message(item: &ViewMessage, names: &mut HashMap<String, String>) -> Message {
    match &*item.message {
        session::Message::User(user) => Message::user(user.content.clone()),
        session::Message::Assistant(assistant) => {
            for call in &assistant.tool_calls {
                names.insert(call.id.clone(), call.function.name.clone());
            }
            Message::Assistant {
                content: assistant.content.clone(),
                thinking: item.thinking.iter().map(thinking).collect(),
                tool_calls: assistant.tool_calls.iter().map(call).collect(),
            }
        }
        session::Message::Tool(tool) => Message::Tool {
            call_id: tool.tool_call_id.clone(),
            name: names.get(&tool.tool_call_id).cloned().unwrap_or_default(),
            content: tool.content.clone(),
            is_error: false,
        },
    }
}

fn call(call: &session::ToolCall) -> ModelToolCall {
    ModelToolCall {
        id: call.id.clone(),
        name: call.function.name.clone(),
        arguments: call.function.arguments.clone(),
    }
}

/// The journal keeps what a provider wants back with a thought as JSON text.
fn thinking(thought: &session::Thinking) -> Thinking {
    let replay = thought.signature.as_deref();
    let replay = replay.and_then(|text| serde_json::from_str::<Replay>(text).ok());
    Thinking { text: thought.text.clone(), replay }
}

/// The form in which the journal takes a thought.
#[must_use]
pub(super) fn recorded_thinking(thoughts: &[Thinking]) -> Vec<(String, Option<String>)> {
    let signature = |replay: &Replay| serde_json::to_string(replay).ok();
    thoughts
        .iter()
        .map(|thought| (thought.text.clone(), thought.replay.as_ref().and_then(signature)))
        .collect()
}
