//! The codes of problems that the reader finds: text, shape and names. Codes from E0100 on are the graph's, but for
//! those at the foot.
//! A code is never reused; `docs/errors/` has a page for each.

use wonder_core::problem::Code;

pub const TOO_LARGE: Code = Code("E0001");
pub const SYNTAX: Code = Code("E0002");
pub const TOO_DEEP: Code = Code("E0003");
pub const TOO_MANY_NODES: Code = Code("E0004");
pub const DUPLICATE_KEY: Code = Code("E0005");
pub const MERGE_KEY: Code = Code("E0006");
pub const KEY_NOT_TEXT: Code = Code("E0007");
pub const TAG: Code = Code("E0008");
pub const NOT_JSON: Code = Code("E0009");
pub const FORMAT: Code = Code("E0010");
pub const NOTHING_DEFINED: Code = Code("E0011");
pub const UNKNOWN_KEY: Code = Code("E0020");
pub const MISSING_KEY: Code = Code("E0021");
pub const WRONG_FORM: Code = Code("E0022");
pub const UNKNOWN_WORD: Code = Code("E0023");
pub const BAD_NAME: Code = Code("E0024");
pub const CHOICE: Code = Code("E0025");
pub const OUT_OF_RANGE: Code = Code("E0026");
pub const BAD_DURATION: Code = Code("E0027");
pub const BAD_MONEY: Code = Code("E0028");
pub const DUPLICATE_NAME: Code = Code("E0030");
pub const GRAPH_AND_DAG: Code = Code("E0031");
pub const RESPONSE: Code = Code("E0032");
pub const NOT_YET: Code = Code("E0033");
pub const UNKNOWN_WORKFLOW: Code = Code("E0034");
pub const FILE_NOT_READ: Code = Code("E0035");
pub const FILE_CYCLE: Code = Code("E0036");
pub const INDENTATION: Code = Code("E0037");
pub const NO_SUCH_VERSION: Code = Code("E0038");
pub const CANNOT_PERFORM: Code = Code("E0039");
pub const RETRY_OF_NAMED_TASK: Code = Code("E0185");

/// All of them, for the test that each has its page.
pub const ALL: [Code; 31] = [
    TOO_LARGE,
    SYNTAX,
    TOO_DEEP,
    TOO_MANY_NODES,
    DUPLICATE_KEY,
    MERGE_KEY,
    KEY_NOT_TEXT,
    TAG,
    NOT_JSON,
    FORMAT,
    NOTHING_DEFINED,
    UNKNOWN_KEY,
    MISSING_KEY,
    WRONG_FORM,
    UNKNOWN_WORD,
    BAD_NAME,
    CHOICE,
    OUT_OF_RANGE,
    BAD_DURATION,
    BAD_MONEY,
    DUPLICATE_NAME,
    GRAPH_AND_DAG,
    RESPONSE,
    NOT_YET,
    UNKNOWN_WORKFLOW,
    FILE_NOT_READ,
    FILE_CYCLE,
    INDENTATION,
    NO_SUCH_VERSION,
    CANNOT_PERFORM,
    RETRY_OF_NAMED_TASK,
];
