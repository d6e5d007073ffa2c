//! Histories that no provider accepts, what becomes of them, and that nothing else ever comes out.

use super::*;
use proptest::prelude::*;

fn call(id: &str, arguments: &str) -> ModelToolCall {
    ModelToolCall { id: id.into(), name: "read".into(), arguments: arguments.into() }
}

fn assistant(content: &str, calls: &[ModelToolCall]) -> Message {
    let content = Some(Arc::from(content)).filter(|text: &Arc<str>| !text.is_empty());
    Message::Assistant { content, thinking: Vec::new(), tool_calls: calls.to_vec() }
}

fn result(id: &str, content: &str) -> Message {
    let (call_id, content) = (id.to_owned(), content.into());
    Message::Tool { call_id, name: "read".into(), content, is_error: false }
}

/// What a provider asks of a history.
fn assert_legal(messages: &[Message]) {
    assert!(matches!(messages.first(), Some(Message::User { .. })), "starts with a user");
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { call_id, content, .. } => {
                assert_eq!(open.remove(0), *call_id, "results in call order");
                assert!(!content.trim().is_empty());
            }
            Message::User { content } => {
                assert!(open.is_empty() && !content.trim().is_empty());
            }
            Message::Assistant { content, tool_calls, .. } => {
                assert!(open.is_empty());
                assert!(content.is_some() || !tool_calls.is_empty());
                for call in tool_calls {
                    assert!(ids.insert(call.id.clone()), "`{}` is used twice", call.id);
                    assert!(is_name(&call.id) && is_name(&call.name));
                    assert!(is_object(&call.arguments), "{}", call.arguments);
                    open.push(call.id.clone());
                }
            }
        }
    }
    assert!(open.is_empty(), "every call has a result");
}

#[test]
fn a_dangling_call_gets_the_fixed_result_and_the_finished_one_is_kept() {
    let calls = [call("a", "{}"), call("b", "{}"), call("c", "{}")];
    let view = [Message::user("go"), assistant("", &calls), result("b", "kept")];
    let (messages, repairs) = normalise(&view, 100);
    assert_legal(&messages);
    let texts: Vec<_> = messages.iter().skip(2).map(|message| format!("{message:?}")).collect();
    assert!(texts[0].contains(MISSING_RESULT) && texts[2].contains(MISSING_RESULT));
    assert!(texts[1].contains("kept"));
    let missing = |call| Repair::MissingResult { message: 1, call };
    assert!(repairs.contains(&missing(0)) && repairs.contains(&missing(2)));
    assert_eq!(repairs.len(), 2, "{repairs:?}");
}

#[test]
fn an_orphan_result_is_dropped_and_a_late_one_is_moved() {
    let view = [
        result("z", "before anything"),
        Message::user("go"),
        assistant("", &[call("a", "{}")]),
        Message::user("meanwhile"),
        result("a", "late"),
        result("a", "again"),
    ];
    let (messages, repairs) = normalise(&view, 100);
    assert_legal(&messages);
    assert_eq!(messages.len(), 4);
    assert!(matches!(&messages[2], Message::Tool { content, .. } if **content == *"late"));
    let expected = [
        Repair::OrphanResult { message: 0 },
        Repair::MovedResult { message: 4 },
        Repair::OrphanResult { message: 5 },
    ];
    assert_eq!(repairs, expected);
}

#[test]
fn malformed_arguments_never_reach_a_provider() {
    for raw in ["{\"path\": \"a", "", "[]", "null", "{}{}", "{\"a\":1,\"a\":2}", "\"x\"", "1"] {
        let view = [Message::user("go"), assistant("", &[call("a", raw)]), result("a", "told")];
        let (messages, repairs) = normalise(&view, 100);
        assert_legal(&messages);
        assert_eq!(repairs, [Repair::MalformedArguments { message: 1, call: 0 }], "{raw}");
        assert!(
            matches!(&view[1], Message::Assistant { tool_calls, .. }
            if tool_calls[0].arguments == raw),
            "ours stays raw"
        );
    }
}

#[test]
fn calls_are_told_apart_by_place_whatever_their_identifiers() {
    let twice = [call("a", "{}"), call("a", "{}"), call("", "{}"), call("", "{}")];
    let view = [
        Message::user("go"),
        assistant("", &twice),
        result("a", "first"),
        result("a", "second"),
        result("", "third"),
        result("", "fourth"),
        assistant("", &[call("a", "{}")]),
        result("a", "fifth"),
    ];
    let (messages, repairs) = normalise(&view, 100);
    assert_legal(&messages);
    let texts: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(&**content),
            Message::User { .. } | Message::Assistant { .. } => None,
        })
        .collect();
    assert_eq!(texts, ["first", "second", "third", "fourth", "fifth"]);
    assert_eq!(repairs.len(), 4);
}

#[test]
fn empty_messages_are_dropped_or_get_a_fixed_text() {
    let view = [
        Message::user(" "),
        assistant("\n", &[]),
        assistant("x", &[call("a", "{}")]),
        result("a", ""),
    ];
    let (messages, repairs) = normalise(&view, 100);
    assert_legal(&messages);
    assert_eq!(messages.len(), 3);
    assert!(matches!(&messages[2], Message::Tool { content, .. } if **content == *EMPTY_RESULT));
    assert_eq!(repairs.len(), 3);
}

#[test]
fn the_history_is_cut_only_where_a_user_speaks() {
    let mut view = Vec::new();
    for turn in 0..30 {
        let id = format!("c{turn}");
        view.push(Message::user(format!("question {turn}")));
        view.push(assistant("", &[call(&id, "{}")]));
        view.push(result(&id, "r"));
        view.push(assistant("answer", &[]));
    }
    let (messages, repairs) = normalise(&view, 99);
    assert_legal(&messages);
    assert_eq!(messages.len(), 96);
    assert_eq!(repairs, [Repair::HistoryCut { messages: 24 }]);
    assert_eq!(normalise(&view, 1).0, view[116..], "the last turn stays whole");
    assert_eq!(normalise(&view, 120).1, []);
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop_oneof!["", "a", "b", "call_1_0", "ü", "[a-c]{70}"];
    let arguments = prop_oneof!["", "\\{\\}", "\\{", "\\[\\]", "\\{\"x\":1\\}"];
    let name = prop_oneof!["read", "", "no such name!"];
    let calls = proptest::collection::vec(
        (id.clone(), name, arguments).prop_map(|(id, name, arguments)| ModelToolCall {
            id,
            name,
            arguments,
        }),
        0..4,
    );
    prop_oneof![
        "[a ]{0,2}".prop_map(Message::user),
        ("[a ]{0,2}", calls).prop_map(|(content, tool_calls)| Message::Assistant {
            content: Some(content.into()).filter(|text: &Arc<str>| text.len() < 2),
            thinking: Vec::new(),
            tool_calls,
        }),
        (id, "[a ]{0,2}").prop_map(|(id, content)| result(&id, &content)),
    ]
}

proptest! {
    #[test]
    fn any_history_becomes_legal_and_stays_as_it_is(
        view in proptest::collection::vec(any_message(), 0..40), limit in 1_usize..50,
    ) {
        let (once, _) = normalise(&view, limit);
        assert_legal(&once);
        let (twice, repairs) = normalise(&once, limit);
        prop_assert_eq!(&twice, &once);
        prop_assert_eq!(repairs, Vec::new());
    }
}

/// What is told once may come with any of the takes; a later cut tells of more messages.
fn but_the_end(repairs: Vec<Repair>) -> Vec<Repair> {
    let of_end = |repair: &Repair| matches!(repair, Repair::HistoryCut { .. } | Repair::StartAdded);
    repairs.into_iter().filter(|repair| !of_end(repair)).collect()
}

proptest! {
    #[test]
    fn a_history_that_grows_is_what_it_would_be_at_once(
        view in proptest::collection::vec(any_message(), 0..40),
        steps in proptest::collection::vec(0_usize..6, 0..20),
        limit in 1_usize..50,
    ) {
        let mut history = History::default();
        let (mut end, mut told) = (0, Vec::new());
        for step in steps {
            end = (end + step).min(view.len());
            let (grown, repairs) = history.of(&view[..end], limit);
            let (once, all) = normalise(&view[..end], limit);
            prop_assert_eq!(&*grown, &once);
            prop_assert_eq!(repairs.last().filter(|last| but_the_end(vec![(*last).clone()]).is_empty()),
                all.last().filter(|last| but_the_end(vec![(*last).clone()]).is_empty()));
            told.extend(but_the_end(repairs));
            for repair in but_the_end(all) {
                prop_assert!(told.contains(&repair), "{:?} was not told", repair);
            }
        }
    }
}

#[test]
fn an_added_start_goes_when_the_first_thing_that_is_sent_is_a_users() {
    let nothing = Message::Assistant {
        content: Some(" ".into()),
        thinking: Vec::new(),
        tool_calls: Vec::new(),
    };
    let view = [nothing, Message::user("go on")];
    for limit in [1, 10] {
        let mut history = History::default();
        assert_eq!(*history.of(&view[..1], limit).0, [Message::user(START)]);
        let (grown, repairs) = history.of(&view, limit);
        assert_eq!(*grown, [Message::user("go on")]);
        assert!(but_the_end(repairs.clone()) == repairs, "{repairs:?}");
    }
}
