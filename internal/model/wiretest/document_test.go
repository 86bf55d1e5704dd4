package wiretest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

func reading(d ...model.Document) *model.Request {
	return &model.Request{Model: "m", Messages: []*model.Message{{Role: model.User, Text: "read", Documents: d}}}
}

var paper = model.Document{Name: "paper.pdf", MediaType: model.PDF, Data: []byte("pdf")}

func TestADocumentIsSentAsTheProviderWantsIt(t *testing.T) {
	const data = `data:application/pdf;base64,cGRm`
	for name, test := range map[string]struct{ wire, as, member, want string }{
		"OpenAI":     {chat, "openai", "messages", `[{"role":"user","content":[{"type":"text","text":"read"},{"type":"file","file":{"filename":"paper.pdf","file_data":"` + data + `"}}]}]`},
		"OpenRouter": {chat, "openrouter", "messages", `[{"role":"user","content":[{"type":"text","text":"read"},{"type":"file","file":{"filename":"paper.pdf","file_data":"` + data + `"}}]}]`},
		"Mistral":    {chat, "mistral", "messages", `[{"role":"user","content":[{"type":"text","text":"read"},{"type":"document_url","document_name":"paper.pdf","document_url":"` + data + `"}]}]`},
		"Responses":  {replies, "openai", "input", `[{"type":"message","role":"user","content":[{"type":"input_text","text":"read"},{"type":"input_file","filename":"paper.pdf","file_data":"` + data + `"}]}]`},
		"Claude": {messages, "anthropic", "messages", `[{"role":"user","content":[{"type":"text","text":"read"},` +
			`{"type":"document","title":"paper.pdf","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"},"cache_control":{"type":"ephemeral"}}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := ask(t, test.wire, test.as, reading(paper), "")
			if err != nil || !same(t, s.body[test.member], test.want) {
				t.Errorf("%v: %s", err, s.raw)
			}
		})
	}
}

func TestADocumentWithPicturesAndAReminder(t *testing.T) {
	for wire := range wires {
		req := reading(paper, paper)
		req.Messages[0].Images = []model.Image{{MediaType: "image/png", Data: []byte("png")}}
		req.Tail = "now"
		for _, text := range []string{"read", ""} {
			m := *req
			m.Messages = []*model.Message{{Role: model.User, Text: text, Images: req.Messages[0].Images, Documents: req.Messages[0].Documents}}
			s, _, err := ask(t, wire, "openai", &m, "") // invalid JSON is reported by the server
			if err != nil || bytes.Count(s.raw, []byte("cGRm")) != 2 || !bytes.Contains(s.raw, []byte("now")) {
				t.Errorf("%s: %v: %s", wire, err, s.raw)
			}
		}
	}
}

func TestADocumentThatIsNotReadIsAnErrorBeforeTheRequest(t *testing.T) {
	word := model.Document{Name: "a.docx", MediaType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", Data: []byte("x")}
	blind := reading(paper)
	blind.Can = &model.Capabilities{Known: true}
	for name, test := range map[string]struct {
		wire, as string
		req      *model.Request
		want     []string
	}{
		"Ollama":              {chat, "ollama", reading(paper), []string{"paper.pdf", "ollama", "Chat Completions", "another provider"}},
		"DeepSeek by another": {messages, "deepseek", reading(paper), []string{"paper.pdf", "deepseek"}},
		"an unknown server":   {chat, "other", reading(paper), []string{"paper.pdf", "other"}},
		"another type":        {chat, "openai", reading(word), []string{"a.docx", "PDF", "convert"}},
		"a blind model":       {replies, "openai", blind, []string{"paper.pdf", "sees no pictures"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := ask(t, test.wire, test.as, test.req, "")
			if err == nil || s.body != nil {
				t.Fatalf("%v: %s", err, s.raw)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestAnOlderDocumentIsNamedWhereItIsNotRead(t *testing.T) {
	req := reading(paper)
	req.Messages = append(req.Messages, &model.Message{Role: model.Assistant, Text: "done"}, &model.Message{Role: model.User, Text: "and?"})
	for wire, as := range map[string]string{chat: "ollama", replies: "ollama", messages: "deepseek"} {
		s, _, err := ask(t, wire, as, req, "")
		if err != nil || bytes.Contains(s.raw, []byte("cGRm")) || !bytes.Contains(s.raw, []byte("the document paper.pdf")) {
			t.Errorf("%s: %v: %s", wire, err, s.raw)
		}
	}
}

func TestAClientSaysWhichModelsReadDocuments(t *testing.T) {
	for _, test := range []struct {
		wire, as string
		can      *model.Capabilities
		want     bool
	}{
		{chat, "openai", nil, true}, {chat, "ollama", nil, false}, {messages, "anthropic", nil, true}, {replies, "openai", &model.Capabilities{Known: true}, false},
		{chat, "openrouter", &model.Capabilities{Known: true}, true}, {replies, "azure", nil, true}, {chat, "azure", nil, false},
	} {
		c := wires[test.wire].open(configOf(record(t, ""), test.as))
		if got := c.ReadsDocuments("m", test.can); got != test.want {
			t.Errorf("%s on the wire %s: %v", test.as, test.wire, got)
		}
	}
}
