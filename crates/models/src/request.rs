//! What a model is asked, in our neutral form, whoever provides it.

use wonder_lang::def::Name;
use wonder_lang::schema::Schema;
use wonder_lang::value::Map;
use wonder_lang::{Value, limits};

use crate::message::{Arguments, Image, Message, Part};
use crate::problem::Problem;

#[derive(Clone, Debug, Default)]
pub struct Request {
    /// As the provider names it; sent untouched.
    pub model: String,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub tool_choice: ToolChoice,
    /// The most tokens of the answer, reasoning included. Where a provider insists on a number and there is none,
    /// [`limits::OUTPUT_TOKENS_RESERVED`].
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub stop: Vec<String>,
    pub reasoning: Option<Effort>,
    pub cache: Cache,
    /// What the answer has to fit. Asked of the provider by its own mechanism where that can say it, in words
    /// where not; checked by us always.
    pub output_schema: Option<Schema>,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
    /// The same for every try of one call; sent where a provider understands it (OpenAI).
    pub idempotency_key: Option<String>,
    /// Fields of the provider's own, laid over the body that is sent.
    pub parameters: Map,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Ours: it may have slashes and any length.
    pub name: Name,
    pub description: Option<Name>,
    /// A JSON Schema of a map.
    pub schema: Value,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    /// Some tool.
    Required,
    /// This tool.
    Tool(Name),
}

impl ToolChoice {
    /// `auto`, `none`, `required`, or the name of a tool.
    pub fn parse(text: &str) -> ToolChoice {
        match text {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            name => ToolChoice::Tool(name.into()),
        }
    }

    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Tool(_))
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    pub fn parse(text: &str) -> Result<Effort, Problem> {
        match text {
            "low" => Ok(Effort::Low),
            "medium" => Ok(Effort::Medium),
            "high" => Ok(Effort::High),
            _ => Err(Problem::new("reasoning", "is one of low, medium, high")),
        }
    }

    /// Tokens for models that want a number instead of a word.
    pub(crate) fn budget_tokens(self) -> u64 {
        match self {
            Effort::Low => 2_048,
            Effort::Medium => 8_192,
            Effort::High => 24_576,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Cache {
    /// What stays the same from turn to turn is marked for the provider's cache, where marks are needed.
    #[default]
    Auto,
    Off,
}

impl Cache {
    pub fn parse(text: &str) -> Result<Cache, Problem> {
        match text {
            "auto" => Ok(Cache::Auto),
            "off" => Ok(Cache::Off),
            _ => Err(Problem::new("cache", "is auto or off")),
        }
    }
}

impl Request {
    /// Takes a profile's `parameters`: what has a neutral name counts where the call itself says nothing, all
    /// else is the provider's own. `wire` is read by [`crate::Wire::of_parameter`].
    pub fn with_parameters<'p>(
        mut self,
        parameters: impl IntoIterator<Item = (&'p Name, &'p Value)>,
    ) -> Result<Request, Problem> {
        for (name, value) in parameters {
            let wrong =
                |what: &str| Problem::new(format!("parameters.{name}"), format!("is {what}, not {value}"));
            match &**name {
                "wire" => {}
                "max_tokens" => {
                    let count = value.as_i64().and_then(|count| u64::try_from(count).ok());
                    let count = count.filter(|count| *count > 0).ok_or_else(|| wrong("a number above 0"))?;
                    self.max_tokens.get_or_insert(count);
                }
                "temperature" => {
                    let degree = value.as_f64().ok_or_else(|| wrong("a number"))?;
                    self.temperature.get_or_insert(degree);
                }
                "stop" if self.stop.is_empty() => {
                    let texts = value.as_list().unwrap_or_default().iter().map(|text| text.as_str());
                    let texts: Option<Vec<&str>> = texts.collect();
                    let texts = texts.filter(|texts| !texts.is_empty());
                    let texts = texts.ok_or_else(|| wrong("a list of texts"))?;
                    self.stop = texts.into_iter().map(str::to_owned).collect();
                }
                "stop" => {}
                "reasoning" if value.as_str().is_some() => {
                    let effort = Effort::parse(value.as_str().unwrap_or_default())
                        .map_err(|_| wrong("one of low, medium, high"))?;
                    self.reasoning.get_or_insert(effort);
                }
                _ => {
                    self.parameters.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(self)
    }

    /// Whether a cut answer would be of use: plain text that nothing else hangs on.
    pub(crate) fn may_be_cut(&self) -> bool {
        self.output_schema.is_none() && self.tools.is_empty()
    }

    pub(crate) fn max_tokens_or_default(&self) -> u64 {
        self.max_tokens.unwrap_or(limits::OUTPUT_TOKENS_RESERVED)
    }
}

const BYTES_PER_TOKEN: u64 = 3;
const TOKENS_PER_MESSAGE: u64 = 8;
const TOKENS_PER_TOOL: u64 = 32;

/// About how many tokens of input a request is, for reserving money before it is sent. Meant to be too high:
/// a token is at least four bytes of English and code and about three of most other scripts, and three are
/// counted; an image counts as the largest that providers bill. Dense text (base64, digits) can be more.
pub fn estimate_tokens(request: &Request) -> u64 {
    let mut bytes = request.system.as_deref().map_or(0, str::len);
    let mut tokens = TOKENS_PER_MESSAGE;
    for message in &request.messages {
        tokens += TOKENS_PER_MESSAGE;
        for part in &message.content {
            measure(part, &mut bytes, &mut tokens);
        }
    }
    for tool in &request.tools {
        tokens += TOKENS_PER_TOOL;
        bytes += tool.name.len() + tool.description.as_deref().map_or(0, str::len) + tool.schema.size();
    }
    bytes += request.output_schema.as_ref().map_or(0, |schema| schema.doc().size());
    tokens.saturating_add((bytes as u64).div_ceil(BYTES_PER_TOKEN))
}

fn measure(part: &Part, bytes: &mut usize, tokens: &mut u64) {
    match part {
        Part::Text { text, .. } => *bytes += text.len(),
        // Reasoning goes back as its item, if at all; its text is a summary of that.
        Part::Reasoning { text, item } => {
            *bytes += text.len().max(item.as_ref().map_or(0, |item| item.value.size()));
        }
        Part::Image(Image::Data { .. } | Image::Url { .. }) => *tokens += limits::IMAGE_TOKENS_RESERVED,
        Part::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::Read(arguments) => arguments.size(),
                Arguments::Unreadable { raw, .. } => raw.len(),
            };
            *bytes += call.id.len() + call.tool.len() + arguments;
        }
        Part::ToolResult(result) => {
            *bytes += result.id.len() + result.tool.len();
            for part in &result.content {
                measure(part, bytes, tokens);
            }
        }
    }
}
