//! Every number that bounds something, with its unit and the reason for its size.
//!
//! The constants of the two founding documents (tiny-agent, TinyElf) keep their values; where the
//! documents disagree the comment says which reading was taken.

use std::time::Duration;

/// Model calls in one run. Source: TinyElf `MAX_ITERATIONS`.
pub const ITERATIONS_MAX: u32 = 40;
/// Repetitions of a cycle of calls that make it a circle: twice happens in honest work (run the tests,
/// look, run them again), three times in a row with equal results hardly ever does.
pub const REPETITIONS_MAX: u32 = 3;
/// Sampling temperature. Source: TinyElf `TEMPERATURE`; low, since tools want repeatable answers.
pub const TEMPERATURE: f64 = 0.1;
/// Output tokens of one answer. Source: TinyElf `MAX_TOKENS`.
pub const OUTPUT_TOKENS_MAX: u32 = 8_192;
/// Bytes of one tool result that reach the model, cut on a character boundary. Source: TinyElf
/// `TOOL_RESULT_MAX_CHARS`, read as bytes so that the bound holds for every script.
pub const TOOL_RESULT_BYTES_MAX: usize = 50_000;
/// Retries of one model call: three attempts in all. Source: TinyElf `MAX_LLM_RETRIES`.
pub const MODEL_RETRIES_MAX: u32 = 2;
/// Delay before retry `n` is `n` times this. Source: TinyElf `LLM_RETRY_DELAY_MS`.
pub const MODEL_RETRY_DELAY: Duration = Duration::from_millis(1_000);
/// Longest delay that a server may ask for before the call fails instead: a run that waits longer
/// than a minute is better told why.
pub const MODEL_RETRY_DELAY_MAX: Duration = Duration::from_secs(60);
/// Silence on a model's stream after which the attempt fails; pings count as life.
pub const MODEL_IDLE_MAX: Duration = Duration::from_secs(90);
/// Time in which a model's stream shows nothing but signs of life (pings) after which the attempt fails: as
/// long as an answer that is not streamed may take, since a stream without a word tells no more.
pub const MODEL_STALLED_MAX: Duration = Duration::from_secs(600);
/// Longest wait for an answer that is not streamed: nothing shows that the model still works on it.
pub const MODEL_WHOLE_ANSWER_MAX: Duration = Duration::from_secs(600);
/// Longest time to connect to a model server.
pub const MODEL_CONNECT_MAX: Duration = Duration::from_secs(15);
/// Bytes of one server-sent event, and of one non-streamed answer: a thousand times a full answer.
pub const MODEL_EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of a model server's error document that are read: its words are cut to far less.
pub const MODEL_ERROR_BYTES_MAX: usize = 64 * 1024;
/// Bytes of all headers of a model server's answer; servers send a few thousand.
pub const MODEL_HEADER_BYTES_MAX: usize = 64 * 1024;
/// Time after the finish reason that ends a model's stream: all that is missing is the token count.
pub const MODEL_AFTER_FINISH_MAX: Duration = Duration::from_secs(5);
/// Time to read the end of a finished stream, so that its connection can be used again.
pub const MODEL_DRAIN_MAX: Duration = Duration::from_millis(100);
/// Connections to a model server that are kept for the next call; sub-agents call at the same time.
/// Over plain HTTP, which goes to this machine only, none is kept: a new one costs nothing, and a
/// server that writes its answer in two pieces on an old one makes each call 40 ms longer (Nagle's
/// algorithm against delayed acknowledgements).
pub const MODEL_IDLE_CONNECTIONS_MAX: usize = 4;
/// Bytes of a model script: room for a recorded run of full answers.
pub const SCRIPT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Turns that one `repeat` of a model script may stand for: far more than a run can use.
pub const SCRIPT_REPEAT_MAX: usize = 10_000;
/// Wall time of one tool call. Source: TinyElf `DEFAULT_TOOL_EXECUTION_TIMEOUT_MS`.
pub const TOOL_TIME_MAX: Duration = Duration::from_millis(300_000);
/// Wall time of one background job, if no rule says less: longer than the tests of a large project take,
/// and short enough that a forgotten server does not outlive the work by much.
pub const JOB_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest time for which the record of a stop may hold up the end of cells: a flush takes some
/// milliseconds, and whoever stops a run whose disk hangs does not wait for it.
pub const STOP_RECORD_MAX: Duration = Duration::from_secs(2);
/// Background jobs of a session at the same time: each may use what one call may use.
pub const JOBS_AT_ONCE_MAX: u64 = 8;
/// Background jobs that one run starts: the output that is kept of each stays in memory.
pub const JOBS_PER_RUN_MAX: usize = 200;
/// Milliseconds that one look at a background job may wait for something new: a turn that waits is
/// cheaper than turns that ask, and a person may want to say something.
pub const JOB_WAIT_MS_MAX: u64 = 60_000;
/// Time a person has to answer a permission question. Source: TinyElf `PERMISSION_TIMEOUT`.
pub const PERMISSION_TIME_MAX: Duration = Duration::from_millis(300_000);
/// Rounds in a row in which background results alone keep a run going. Source: TinyElf.
pub const BACKGROUND_DRAIN_ROUNDS_MAX: u32 = 3;
/// Messages of history that are sent to the model. Source: TinyElf `DEFAULT_MAX_HISTORY`.
pub const HISTORY_MESSAGES_MAX: usize = 100;
/// Bytes of the workspace's AGENTS.md that go into a conversation; it is sent with every request.
pub const AGENTS_FILE_BYTES_MAX: usize = 16_000;
/// Tries in a row to replace older messages by a summary: a third that does not help shows that a
/// fourth would not.
pub const COMPACTIONS_IN_A_ROW_MAX: u32 = 3;
/// Bytes of one message that the summarising model reads, at the first try; half with each further one.
pub const COMPACTION_MESSAGE_BYTES_MAX: usize = 8_000;
/// Output tokens of a summary: some pages, which is all that the rest of the work can need.
pub const COMPACTION_TOKENS_MAX: u32 = 4_096;
/// Time the guardian has to answer: a reviewer slower than this would double the time of a turn.
pub const GUARDIAN_TIME_MAX: Duration = Duration::from_secs(15);
/// Answers "yes, until the program ends" that are remembered: more than any person gives.
pub const APPROVALS_MAX: usize = 1_000;
/// Files whose content the model has seen, of which a changed one is refused to be edited; of a
/// forgotten one only the text that is replaced is compared.
pub const SEEN_FILES_MAX: usize = 10_000;
/// Files that the runs of one program may make before the oldest are forgotten.
pub const CREATED_FILES_MAX: usize = 10_000;
/// Time one pre-tool hook has to answer.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of a hook's standard output that are read.
pub const HOOK_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Lines of one page of the read tool. Source: tiny-agent.
pub const READ_LINES_MAX: usize = 2_000;
/// Bytes of one page of the read tool. Source: tiny-agent, which uses 50 times 1,024.
pub const READ_BYTES_MAX: usize = 51_200;
/// Bytes kept free in a tool result for the notes around a page or a list.
pub const RESULT_NOTES_BYTES: usize = 2_000;
/// Bytes that one read may pass over on the way to its page; the time limit ends most earlier.
pub const READ_SCAN_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of a file that is edited, and of one whose digest is taken: it is held in memory twice.
pub const EDIT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Time one file job works before it stops and says how far it came.
pub const FILE_JOB_TIME_MAX: Duration = Duration::from_secs(20);
/// Names that list and glob give, and lines that grep gives; more do not help a model.
pub const FOUND_MAX: usize = 1_000;
/// Bytes of one line that grep shows.
pub const GREP_LINE_BYTES_MAX: usize = 500;
/// Names that one list, glob or grep looks at.
pub const WALK_ENTRIES_MAX: u64 = 500_000;
/// Names of one directory that are held in memory to be sorted.
pub const DIRECTORY_ENTRIES_MAX: usize = 100_000;
/// Directory levels below the start that a walk enters; each holds one open file.
pub const WALK_DEPTH_MAX: u64 = 64;
/// Bytes of a glob or regular expression.
pub const PATTERN_BYTES_MAX: usize = 4_096;
/// Bytes of a compiled regular expression, and of its search cache.
pub const REGEX_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Bytes of the reply of one file job: a full page in which every byte needs a six-byte escape.
pub const JOB_REPLY_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a shell script that is analysed; a longer one is unresolved as a whole.
pub const SHELL_BYTES_MAX: usize = 64 * 1024;
/// Nesting of a shell script that is analysed; a deeper one is unresolved as a whole.
pub const SHELL_DEPTH_MAX: usize = 64;
/// Commands and constructs of a shell script that are analysed; bounds the time of one decision. Scripts
/// that people wrote hold some twenty in a kilobyte, so that one of full size reaches a fifth of it.
pub const SHELL_NODES_MAX: usize = 6_000;
/// Words of all commands of a shell script, those that expansions make and those that are judged again
/// behind a wrapper among them: twice as many as a script of full size holds words.
pub const SHELL_WORDS_MAX: usize = 8_192;
/// Bytes of a policy file.
pub const POLICY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the raw arguments of one tool call; above it the call is told to be smaller.
pub const ARGUMENTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Time between SIGTERM and SIGKILL when a call is ended.
pub const KILL_GRACE: Duration = Duration::from_millis(2_000);
/// Time output is still read after the shell has exited: a daemon may hold the pipe for ever.
pub const OUTPUT_DRAIN: Duration = Duration::from_millis(100);
/// Processes and threads of a cell that is counted for itself alone, unless the policy says
/// otherwise: builds and browsers stay below a thousand, and a service gets about as many by default.
pub const PROCESSES_MAX: u64 = 4_096;
/// Bytes on disk in a session's private temporary directory, unless the policy says otherwise: room for
/// what builds and package managers keep there, and no full disk.
pub const PRIVATE_TMP_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;
/// Bytes of the whole output of one call that are kept in its spill file.
pub const SPILL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of output after which a call is ended: eight times what is kept of it, so a flood costs the
/// supervisor about a second.
pub const OUTPUT_TOTAL_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes that a journal or log keeps allocated ahead of its end, so that a full disk can still be
/// recorded.
pub const LOG_RESERVE_BYTES: u64 = 256 * 1024;
