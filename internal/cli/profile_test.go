package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/model/profile"
)

func TestTheConfigurationTakesEveryProfile(t *testing.T) {
	want := strings.Join(profile.Names(), ",")
	for _, table := range []any{config.Model{}, config.Provider{}} {
		f, _ := reflect.TypeOf(table).FieldByName("Profile")
		if got := f.Tag.Get("enum"); got != want {
			t.Errorf("%T takes the profiles %s, want %s", table, got, want)
		}
	}
}

func TestAProfileReachesTheProvider(t *testing.T) {
	p, err := endpoint(config.Provider{BaseURL: "http://gateway.example", Profile: "mistral"}, "model")
	if err != nil || withModelSettings(p, config.Config{}, "x").Abide.Profile != "mistral" {
		t.Errorf("%+v, %v", p, err)
	}
}
