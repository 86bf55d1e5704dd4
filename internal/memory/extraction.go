package memory

import (
	_ "embed" // the prompt
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// tools are the tools of the model that extracts.
var tools = &model.Tools{List: []model.Tool{{
	Name:        WriteExtracted,
	Description: "Hands in what was found. Call it once, with all four lists; empty ones are fine.",
	Parameters: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["decisions","discussions","attempts","requests"],"properties":{` +
		list("decisions", `"options":{"type":"array","items":{"type":"string"}},"chosen":{"type":"string"},"rationale":{"type":"string"}`, `"options","chosen","rationale"`) + `,` +
		list("discussions", `"topic":{"type":"string"},"points":{"type":"array","items":{"type":"string"}}`, `"topic","points"`) + `,` +
		list("attempts", `"action":{"type":"string"},"result":{"type":"string"},"succeeded":{"type":"boolean"}`, `"action","result","succeeded"`) + `,` +
		list("requests", `"intent":{"type":"string"},"target":{"type":"string"},"summary":{"type":"string"}`, `"intent","summary"`) + `}}`),
}}}

func list(name, properties, required string) string {
	return fmt.Sprintf(`%q:{"type":"array","items":{"type":"object","additionalProperties":false,"required":[%s],"properties":{%s,"sources":{"type":"array","items":{"type":"integer"},"description":"The numbers in brackets of the lines that it comes from."},"supersedes":{"type":"array","items":{"type":"integer"},"description":"The numbers of the known facts that it takes the place of."}}}}`, name, required, properties)
}

// extractor is the system prompt of the model that extracts.
//
//go:embed extractor.md
var extractor string

// Room is how many tokens a text may have, for a model whose requests may have so
// many.
func Room(limit int) int { return limit - overhead }

// KnownBytes is how many bytes of known facts a request may have beside texts of so many
// tokens. The room of the texts has to be less by as many.
func KnownBytes(room int) int { return min(mostKnown, room/4) * 2 }

// mostKnown is how many tokens of known facts a request has at most.
const mostKnown = 2000

// overhead is the size of a request without its text, in tokens.
var overhead = window.Tokens(extractor) + window.Tokens(string(tools.List[0].Parameters)) + 400

// tries is the number of requests for each text before the extraction fails.
const tries = 3

// An Extraction is one attempt at extracting a batch. It does no I/O: the caller sends
// the requests that Next returns and gives the replies to Take, until Next returns nil. It
// makes at most three requests for each text.
type Extraction struct {
	batch    Batch
	known    []Known       // facts that are known already
	ask      model.Request // the part that all requests share
	next     int           // index of the text to read next
	tried    int           // number of requests for that text that failed
	feedback string        // the fault of the last reply
	found    Extracted     // findings so far
	err      error         // reason for which the extraction failed
}

// NewExtraction returns an extraction of a batch. ask contains what all of its requests
// have in common; known are facts that memory has already.
func NewExtraction(b Batch, known []Known, ask model.Request) *Extraction {
	return &Extraction{batch: b, known: known, ask: ask}
}

// knownText returns the known facts as the model reads them.
func (x *Extraction) knownText() string {
	if len(x.known) == 0 {
		return ""
	}
	var w strings.Builder
	w.WriteString("What is known already:\n<known>\n")
	for i, k := range x.known {
		mark := ""
		if k.Wanted {
			mark = wantedMark
		}
		fmt.Fprintf(&w, "%d. %s%s\n", i+1, mark, knownQuote(k.Text))
	}
	w.WriteString("</known>\n\n")
	return w.String()
}

// wantedMark stands before a known fact that is what the user wants.
const wantedMark = "(wanted by the user) "

// recordQuote changes tags in a record, so that it cannot end early.
var recordQuote = strings.NewReplacer("</record>", "<-record>").Replace

// knownQuote changes tags in a fact, so that it cannot end the list of known facts.
var knownQuote = strings.NewReplacer("</known>", "<-known>", "\n", " ").Replace

// Next returns the next request, or nil if the extraction is done or has failed.
func (x *Extraction) Next() *model.Request {
	if x.err != nil || x.next == len(x.batch.Texts) {
		return nil
	}
	text := x.knownText() + fmt.Sprintf("Part %d of %d of the record, events %d to %d:\n<record>\n%s</record>", x.next+1, len(x.batch.Texts), x.batch.From, x.batch.To, recordQuote(x.batch.Texts[x.next]))
	if x.feedback != "" {
		text += "\n\nYour last attempt was of no use: " + x.feedback
	}
	req := x.ask
	req.System, req.Tools, req.Tail = extractor, tools, ""
	req.Messages = []*model.Message{{Role: model.User, Text: text}}
	return &req
}

// Take is given the reply to the last request, or its error.
func (x *Extraction) Take(reply *model.Reply, err error) {
	if x.err = err; err != nil {
		return
	}
	found, err := Read(reply, x.batch, x.known)
	if err == nil {
		x.found.add(found)
		x.next, x.tried, x.feedback = x.next+1, 0, ""
		return
	}
	if x.tried++; x.tried == tries {
		x.err = err
	}
	x.feedback = render.Cut(err.Error(), 400)
}

func (x *Extracted) add(more *Extracted) {
	x.Decisions = append(x.Decisions, more.Decisions...)
	x.Discussions = append(x.Discussions, more.Discussions...)
	x.Attempts = append(x.Attempts, more.Attempts...)
	x.Requests = append(x.Requests, more.Requests...)
}

// Result returns the findings, or the reason for which the extraction failed. The lists
// are never nil, and secrets are removed.
func (x *Extraction) Result() (*Extracted, error) {
	if x.err != nil {
		return nil, x.err
	}
	if x.next < len(x.batch.Texts) {
		return nil, fmt.Errorf("part %d of %d was not read yet", x.next+1, len(x.batch.Texts))
	}
	whole := &Extracted{Decisions: []Decision{}, Discussions: []Discussion{}, Attempts: []Attempt{}, Requests: []Request{}}
	whole.add(&x.found)
	whole.redact()
	return whole, nil
}
