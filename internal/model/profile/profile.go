// Package profile says how the providers of one API differ: which members of a request
// they know, where they allow a message, and what they want back.
//
// Wires ask the profile of a request and never a provider's name. A profile is chosen by
// the host of the base URL, or by its name in the configuration. A server that no row
// fits has the profile Other, which only uses what nearly every server accepts.
package profile

import (
	"net"
	"slices"
	"strings"
)

// A Profile is how a provider differs from others with the same API.
type Profile struct {
	Name  string
	Pages []string // public documentation that the row follows
	Hosts []string // hosts of its endpoints; ".x" stands for all hosts below x, ":n" for every host with that port
	// API is the wireApi that its models need to call tools, if the configuration names
	// none; empty if that is the usual one.
	API string

	// Limit is the member of a Chat Completions request that limits the reply.
	// ReasonerLimit is that of models that reason, if it is another.
	Limit, ReasonerLimit string
	SystemRole           string // role of the system prompt in Chat Completions
	NoUsageOption        bool   // true if stream_options are refused; usage is sent without being asked for
	Effort               Effort // how the amount of reasoning is said

	// ResultThenUser is true if a message of the user may follow the result of a call.
	// Where it may not, a reminder stands in the result.
	ResultThenUser bool

	IDs   IDs // ids of calls and names of tools that are accepted
	Cache Cache

	// Echo is what is sent back of the members that the provider added to its own
	// messages and calls.
	Echo Echo
	// Thoughts is how the readable reasoning of a message is sent back. NeedsThoughts is
	// the member in which every message with calls has to have it, or an empty text; empty
	// if none has to.
	Thoughts      Thoughts
	NeedsThoughts string
	// Answer is how the form of an answer is asked for in Chat Completions, and
	// AnswerBesideTools is how if there are tools: many servers that are held to a form
	// can call none.
	Answer, AnswerBesideTools Answer
	// Enforces is true if the provider's Messages API enforces a schema.
	Enforces bool

	// ChatDocuments is the part of Chat Completions in which documents are sent.
	// NoDocuments is true if the provider reads none on the other wires either.
	ChatDocuments Documents
	NoDocuments   bool
	// AnyModelReads is true if models that see no images read documents all the same.
	AnyModelReads bool

	Windows Windows // where the provider says how large the windows of its models are

	// Unsigned is what the first call of a message has if the provider has not signed
	// it, because another model made it; empty if calls need no signature.
	Unsigned string
}

// Effort is how the amount of reasoning is said in Chat Completions.
type Effort int

// The values of Effort.
const (
	EffortFlat   Effort = iota // "reasoning_effort":"high"
	EffortNested               // "reasoning":{"effort":"high"}
	EffortNone                 // there is no such member
)

// IDs is a rule for the ids of calls and the names of tools.
type IDs int

// The values of IDs.
const (
	AnyID   IDs = iota // every text is accepted
	ShortID            // at most 40 letters, digits, _ and -
	NineID             // exactly 9 letters and digits
)

// Cache is how a request says what the provider should cache.
type Cache int

// The values of Cache.
const (
	CacheAlone Cache = iota // the provider decides alone
	CacheKey                // requests with the same prompt_cache_key share a cache
	CacheMark               // a request for a Claude model has a cache_control
)

// Echo is which members are sent back to the provider that added them.
type Echo int

// The values of Echo.
const (
	EchoAll  Echo = iota // all members that only the provider understands
	EchoNone             // none: unknown members are refused
)

// Thoughts is how the readable reasoning of a message is sent back to the provider and
// the model that it came from.
type Thoughts int

// The values of Thoughts.
const (
	ThoughtsDropped    Thoughts = iota // it is not sent back
	ThoughtsAsTheyCame                 // with calls, in the member in which it came, unless a member of the provider's own repeats it
	ThoughtsInContent                  // in a part of the content
)

// Answer is how a request asks for an answer of a certain form.
type Answer int

// The values of Answer.
const (
	AnswerByFormat Answer = iota // a response_format with the schema
	AnswerByCall                 // a tool whose parameters are the answer, and some tool must be called
	AnswerByTool                 // such a tool, which the model is free to call
)

// Documents is the part of a message in which documents are sent.
type Documents int

// The values of Documents.
const (
	DocumentNone Documents = iota // documents are not read
	DocumentFile                  // {"type":"file","file":{"filename":...,"file_data":...}}
	DocumentURL                   // {"type":"document_url","document_url":...}
)

// Windows is where a provider says how large the window of a model is.
type Windows int

// The values of Windows.
const (
	WindowsListed   Windows = iota // in the list of models, if it does
	WindowsUntold                  // nowhere
	WindowsOllama                  // /api/ps for a model that is loaded, and /api/show
	WindowsLMStudio                // /api/v0/models
	WindowsGemini                  // the model itself, in the API of Gemini
	WindowsGitHub                  // /catalog/models, which is the list of models as well
)

// Other is the profile of a server that no row of the table fits.
var Other = &Profile{
	Name: "other", Limit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true,
	Thoughts: ThoughtsAsTheyCame, AnswerBesideTools: AnswerByTool,
}

// table is all profiles that have a name. The pages of each row say what is in it.
var table = []*Profile{
	{
		Name: "openai", Hosts: []string{"api.openai.com"}, API: "responses",
		Pages: []string{"https://developers.openai.com/api/docs/api-reference/chat/create", "https://developers.openai.com/api/docs/guides/latest-model", "https://developers.openai.com/api/docs/guides/prompt-caching",
			"https://developers.openai.com/api/docs/guides/file-inputs", "https://developers.openai.com/api/docs/guides/structured-outputs"},
		Limit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true, IDs: ShortID, Cache: CacheKey, Echo: EchoNone,
		ChatDocuments: DocumentFile, Windows: WindowsUntold,
	},
	{
		Name: "azure", Hosts: []string{".azure.com"},
		Pages: []string{"https://learn.microsoft.com/azure/ai-foundry/openai/reference"},
		Limit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true, IDs: ShortID, Echo: EchoNone,
		Windows: WindowsUntold,
	},
	{
		Name: "anthropic", Hosts: []string{"api.anthropic.com"},
		Pages: []string{"https://platform.claude.com/docs/en/api/openai-sdk", "https://platform.claude.com/docs/en/build-with-claude/prompt-caching", "https://platform.claude.com/docs/en/build-with-claude/structured-outputs", "https://platform.claude.com/docs/en/build-with-claude/pdf-support"},
		Limit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true, Effort: EffortNone, Echo: EchoNone,
		Answer: AnswerByCall, AnswerBesideTools: AnswerByCall, Enforces: true,
	},
	{
		Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com", ".aiplatform.googleapis.com"},
		Pages: []string{"https://ai.google.dev/gemini-api/docs/openai", "https://ai.google.dev/gemini-api/docs/thought-signatures"},
		Limit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true,
		AnswerBesideTools: AnswerByCall, NoDocuments: true, Windows: WindowsGemini,
		Unsigned: `"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}`,
	},
	{
		Name: "deepseek", Hosts: []string{"api.deepseek.com"},
		Pages: []string{"https://api-docs.deepseek.com/api/create-chat-completion", "https://api-docs.deepseek.com/guides/thinking_mode", "https://api-docs.deepseek.com/guides/json_mode"},
		Limit: "max_tokens", SystemRole: "system", ResultThenUser: true, Thoughts: ThoughtsAsTheyCame, NeedsThoughts: "reasoning_content",
		Answer: AnswerByTool, AnswerBesideTools: AnswerByTool, NoDocuments: true, Windows: WindowsUntold,
	},
	{
		Name: "mistral", Hosts: []string{"api.mistral.ai", "codestral.mistral.ai"},
		Pages: []string{"https://docs.mistral.ai/api/endpoint/chat", "https://docs.mistral.ai/capabilities/function_calling", "https://docs.mistral.ai/capabilities/reasoning"},
		Limit: "max_tokens", SystemRole: "system", NoUsageOption: true, IDs: NineID, Echo: EchoNone, Thoughts: ThoughtsInContent,
		AnswerBesideTools: AnswerByCall, ChatDocuments: DocumentURL, AnyModelReads: true,
	},
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Pages: []string{"https://openrouter.ai/docs/use-cases/reasoning-tokens", "https://openrouter.ai/docs/features/prompt-caching", "https://openrouter.ai/docs/features/multimodal/pdfs", "https://openrouter.ai/docs/models"},
		Limit: "max_tokens", SystemRole: "system", ResultThenUser: true, Effort: EffortNested, Cache: CacheMark, Thoughts: ThoughtsAsTheyCame,
		ChatDocuments: DocumentFile, AnyModelReads: true,
	},
	{
		Name: "ollama", Hosts: []string{":11434", "ollama.com"},
		Pages: []string{"https://docs.ollama.com/api/openai-compatibility", "https://docs.ollama.com/api-reference/show-model-details", "https://docs.ollama.com/context-length", "https://docs.ollama.com/capabilities/thinking"},
		Limit: "max_tokens", SystemRole: "system", ResultThenUser: true, Thoughts: ThoughtsAsTheyCame,
		AnswerBesideTools: AnswerByTool, NoDocuments: true, Windows: WindowsOllama,
	},
	{
		Name:  "vllm",
		Pages: []string{"https://docs.vllm.ai/en/latest/serving/openai_compatible_server", "https://docs.vllm.ai/en/latest/features/reasoning_outputs", "https://docs.vllm.ai/en/latest/features/interleaved_thinking"},
		Limit: "max_tokens", SystemRole: "system", ResultThenUser: true, Thoughts: ThoughtsAsTheyCame,
		AnswerBesideTools: AnswerByTool, NoDocuments: true,
	},
	{
		Name: "lmstudio", Hosts: []string{":1234"},
		Pages: []string{"https://lmstudio.ai/docs/developer/openai-compat/chat-completions", "https://lmstudio.ai/docs/api/rest-api"},
		Limit: "max_tokens", SystemRole: "system", ResultThenUser: true, Thoughts: ThoughtsAsTheyCame,
		AnswerBesideTools: AnswerByTool, NoDocuments: true, Windows: WindowsLMStudio,
	},
	{
		Name: "github", Hosts: []string{"models.github.ai", "models.inference.ai.azure.com"},
		Pages: []string{"https://docs.github.com/en/rest/models/inference", "https://docs.github.com/en/rest/models/catalog"},
		Limit: "max_tokens", ReasonerLimit: "max_completion_tokens", SystemRole: "system", ResultThenUser: true, IDs: ShortID, Echo: EchoNone,
		NoDocuments: true, Windows: WindowsGitHub,
	},
}

// Names returns the names of all profiles, in the order of the table.
func Names() (names []string) {
	for _, p := range table {
		names = append(names, p.Name)
	}
	return append(names, Other.Name)
}

// Named returns the profile of a name, and whether there is one.
func Named(name string) (*Profile, bool) {
	i := slices.IndexFunc(table, func(p *Profile) bool { return p.Name == name })
	switch {
	case i >= 0:
		return table[i], true
	case name == Other.Name:
		return Other, true
	}
	return nil, false
}

// families are how the names of Mistral's models begin.
var families = []string{"mistral", "ministral", "magistral", "mixtral", "devstral", "codestral", "pixtral"}

// UserAfterResult reports whether a message of the user may follow the result of a call
// of a model. The models of Mistral refuse it wherever they run, because their template of
// a conversation does.
func (p *Profile) UserAfterResult(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return p.ResultThenUser && !slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
}

// At returns the profile of a host, which may have a port. A whole name is preferred to
// an ending, and an ending to a port.
func At(host string) *Profile {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, ""
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	fits := []func(pattern string) bool{
		func(pattern string) bool { return pattern == name },
		func(pattern string) bool { return strings.HasPrefix(pattern, ".") && strings.HasSuffix(name, pattern) },
		func(pattern string) bool { return port != "" && pattern == ":"+port },
	}
	for _, fit := range fits {
		if i := slices.IndexFunc(table, func(p *Profile) bool { return slices.ContainsFunc(p.Hosts, fit) }); i >= 0 {
			return table[i]
		}
	}
	return Other
}
