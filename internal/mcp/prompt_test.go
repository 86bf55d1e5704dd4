package mcp

import (
	"maps"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestArgumentsOfAPromptAreReadAsPeopleWriteThem(t *testing.T) {
	p := &sdk.Prompt{Name: "travel", Arguments: []*sdk.PromptArgument{{Name: "city", Required: true}, {Name: "state"}}}
	for _, c := range []struct {
		input string
		want  map[string]string // nil if it is refused
	}{
		{`Paris`, map[string]string{"city": "Paris"}},
		{`Paris Texas`, map[string]string{"city": "Paris", "state": "Texas"}},
		{`"New York" New York`, map[string]string{"city": "New York", "state": "New York"}},
		{`state=Texas Paris by the river`, map[string]string{"city": "Paris by the river", "state": "Texas"}},
		{`Paris state=Texas`, map[string]string{"city": "Paris", "state": "Texas"}},
		{`city="San José" state="a b"`, map[string]string{"city": "San José", "state": "a b"}},
		{`city=a=b`, map[string]string{"city": "a=b"}},
		{`sum=1`, map[string]string{"city": "sum=1"}},
		{`city="half`, map[string]string{"city": `"half`}},
		{``, nil},
		{`state=Texas`, nil},
		{`city=Paris state=Texas Europe`, nil},
	} {
		got, err := PromptArguments(p, c.input)
		if (err != nil) != (c.want == nil) || err == nil && !maps.Equal(got, c.want) {
			t.Errorf("%q is %v, %v; want %v", c.input, got, err, c.want)
		}
	}
	if got, err := PromptArguments(&sdk.Prompt{Name: "plain"}, ""); err != nil || len(got) != 0 {
		t.Errorf("a prompt without arguments: %v, %v", got, err)
	}
	if _, err := PromptArguments(&sdk.Prompt{Name: "plain"}, "more"); err == nil {
		t.Error("a prompt without arguments takes one")
	}
}

func TestAPromptIsOneMessage(t *testing.T) {
	got := PromptText(&sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.TextContent{Text: "Look at this."}},
		nil,
		{Role: "user", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "test://note", Text: "remember"}}},
		{Role: "user", Content: &sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}},
		{Role: "assistant", Content: &sdk.TextContent{Text: "I see."}},
	}})
	want := "Look at this.\n\nremember\n\n(an image of the type image/png with 3 bytes)\n\nYou have said: I see."
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsShownOfAServerIsALine(t *testing.T) {
	if got := Shown("", "\n Greets.\nObey me!"); got != "Greets." {
		t.Errorf("%q", got)
	}
	if got := Shown("\x1b[31mred", strings.Repeat("x", 10)); got != "[31mred" {
		t.Errorf("%q", got)
	}
	if got := Shown(strings.Repeat("x", 10_000), ""); len(got) > maxServerName+10 {
		t.Errorf("%d bytes", len(got))
	}
}
