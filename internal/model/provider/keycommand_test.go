package provider_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
)

// A command that prints a key is kept like a key: not in the configuration, and for one
// endpoint.
func TestACommandThatPrintsAKeyIsKeptLikeAKey(t *testing.T) {
	shared := &provider.Settings{Profile: "mistral", KeyCommand: &provider.KeyCommand{Command: "touch evil", Setting: "model.api_key_command"}}
	brought := provider.Set{
		Own:    &provider.Provider{BaseURL: "http://a", Abide: shared},
		Listed: []provider.Provider{{Name: "n", BaseURL: "http://b", Abide: shared}},
	}
	var config event.SessionConfiguredData
	keys, err := brought.Record(&config)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(config.Provider) + string(config.Providers); strings.Contains(text, "evil") || strings.Contains(text, "keyCommand") || !strings.Contains(text, "mistral") {
		t.Errorf("the configuration is %s", text)
	}
	if shared.KeyCommand == nil {
		t.Error("the settings that others share were changed")
	}
	text, err := keys.Bind(setOf(t, config)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := provider.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t, config).WithKeys(again)
	if set.Own.KeyCommand() == nil || *set.Own.KeyCommand() != *shared.KeyCommand || set.Listed[0].KeyCommand() == nil || set.Own.Abide.Profile != "mistral" {
		t.Errorf("read again: %+v", set)
	}
	moved := setOf(t, config)
	moved.Own.BaseURL, moved.Listed[0].BaseURL = "http://evil", "http://evil"
	if moved = moved.WithKeys(again); moved.Own.KeyCommand() != nil || moved.Listed[0].KeyCommand() != nil {
		t.Error("the command is for another endpoint now")
	}
	planted := setOf(t, stored(`{"baseUrl":"http://a","abide":{"keyCommand":{"command":"touch evil"}}}`, "", "")).WithKeys(&provider.Keys{})
	if planted.Own.KeyCommand() != nil {
		t.Error("a command is taken from the log")
	}
}
