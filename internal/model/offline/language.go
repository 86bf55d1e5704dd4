package offline

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/model"
)

// introduction is the reply to an instruction that is not in the language.
const introduction = "I am the offline model: I need no key, and I do only what I am told in one of these forms.\n" +
	"\n" +
	"    Reply with exactly: HELLO\n" +
	"    Use TOOL with value 'V', then reply with the result\n" +
	"    Use view with {\"path\":\"README.md\"}\n" +
	"    Call A with value 'x' and B with value 'y', then reply with both results\n" +
	"    Run `date`\n" +
	"    Run `sleep 60` in the background\n" +
	"    Ask me: which colour do you like?\n" +
	"\n" +
	"For a conversation, configure a provider and name one of its models."

// An order is what an instruction asks for: a text, or calls whose results become the
// reply.
type order struct {
	text  string
	calls []model.Call
}

// forms are the regular expressions of the language. They are compiled when the first
// instruction is read, because most processes never read one.
var forms = sync.OnceValue(func() (f struct{ reply, ask, use, tool, value, next, run, end *regexp.Regexp }) {
	const (
		result = `(?:,?\s*(?:and\s+)?(?:then\s+)?reply\s+with\s+(?:the|both|all)(?:\s+the)?\s+(?:results?|output))?`
		stop   = `[\s.!?]*$`
	)
	f.reply = regexp.MustCompile(`(?is)^reply\s+with\s+exactly\s*:\s*(.+)$`)
	f.ask = regexp.MustCompile(`(?is)^ask\s+me\s*:\s*(.+)$`)
	f.use = regexp.MustCompile(`(?i)^(?:use|call)\s+`)
	f.tool = regexp.MustCompile("(?i)^`?([\\w./:-]+)`?\\s+with\\s+")
	f.value = regexp.MustCompile(`(?is)^value\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`)
	f.next = regexp.MustCompile(`(?i)^(?:\s*,\s*and|\s*,|\s+and)\s+`)
	f.run = regexp.MustCompile("(?i)^run\\s*(`+)")
	f.end = regexp.MustCompile(`(?i)^(\s+in\s+the\s+background)?` + result + stop)
	return f
})

// parse reads an instruction. It reports false if the instruction is not in the
// language.
func parse(text string) (order, bool) {
	f := forms()
	if m := f.reply.FindStringSubmatch(text); m != nil {
		return order{text: m[1]}, true
	}
	if m := f.ask.FindStringSubmatch(text); m != nil {
		return orderCalls(call("ask_user", question{m[1]})), true
	}
	if m := f.run.FindStringSubmatch(text); m != nil {
		return parseRun(text[len(m[0]):], m[1])
	}
	if m := f.use.FindString(text); m != "" {
		return parseUse(text[len(m):])
	}
	return order{}, false
}

// parseUse reads one or more "TOOL with value 'V'" or "TOOL with {…}".
func parseUse(text string) (order, bool) {
	f := forms()
	var calls []model.Call
	for {
		tool := f.tool.FindStringSubmatch(text)
		if tool == nil {
			return order{}, false
		}
		arguments, n := parseArguments(text[len(tool[0]):])
		if n == 0 {
			return order{}, false
		}
		calls = append(calls, call(tool[1], arguments))
		text = text[len(tool[0])+n:]
		if end := f.end.FindStringSubmatch(text); end != nil {
			return orderCalls(calls...), end[1] == ""
		}
		next := f.next.FindString(text)
		if next == "" {
			return order{}, false
		}
		text = text[len(next):]
	}
}

// parseArguments reads the arguments of a call at the start of text. It returns them with
// the number of bytes that were read, which is zero if there are no arguments.
func parseArguments(text string) (any, int) {
	if m := forms().value.FindStringSubmatch(text); m != nil {
		return argument{unquote(m[1])}, len(m[0])
	}
	var object map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	if !strings.HasPrefix(text, "{") || dec.Decode(&object) != nil {
		return nil, 0
	}
	n := int(dec.InputOffset())
	return json.RawMessage(text[:n]), n
}

// parseRun reads a command up to the closing fence, which is the same as the opening one.
// A command that contains backticks is written between longer fences.
func parseRun(text, fence string) (order, bool) {
	cmd, rest, ok := strings.Cut(text, fence)
	cmd = strings.TrimSpace(cmd)
	end := forms().end.FindStringSubmatch(rest)
	if !ok || cmd == "" || end == nil {
		return order{}, false
	}
	args := command{Command: cmd, Description: describe(cmd)}
	if end[1] != "" {
		args.Mode = "async"
	}
	return orderCalls(call("bash", args)), true
}

// describe returns a short description of a command.
func describe(cmd string) string {
	const most = 60
	line, _, _ := strings.Cut(cmd, "\n")
	if short := []rune(line); len(short) > most {
		line = string(short[:most-1]) + "…"
	}
	return "Run " + line
}

// unquote removes the quotes around a value, and the backslashes before quotes and
// backslashes in it. Other backslashes stay.
func unquote(quoted string) string {
	var b strings.Builder
	inner := quoted[1 : len(quoted)-1]
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' && strings.IndexByte(`'"\`, inner[i+1]) >= 0 {
			i++
		}
		b.WriteByte(inner[i])
	}
	return b.String()
}

// The arguments of the calls that the language knows.
type (
	argument struct {
		Value string `json:"value"`
	}
	question struct {
		Question string `json:"question"`
	}
	command struct {
		Command     string `json:"command"`
		Description string `json:"description"`
		Mode        string `json:"mode,omitempty"`
	}
)

func orderCalls(calls ...model.Call) order { return order{calls: calls} }

// call returns a call without an id.
func call(tool string, arguments any) model.Call {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // people read these
	if err := enc.Encode(arguments); err != nil {
		panic(err) // strings always encode
	}
	return model.Call{Name: tool, Arguments: bytes.TrimSpace(b.Bytes())}
}
