package remote_test

import (
	"testing"

	"github.com/abide-run/abide/internal/model/remote"
)

var table = remote.Kinds{
	{Types: []string{"one", "cloud"}, API: "plain"},
	{Types: []string{"one", "cloud"}, API: "rich", Streams: true},
	{Types: []string{"two"}, API: "only", Vendors: []remote.Vendor{{Scheme: "two"}}},
}

func TestAWireIsFoundByTypeAndAPI(t *testing.T) {
	for _, test := range []struct{ typ, api, want string }{
		{"", "", "plain"},
		{"", "rich", "rich"},
		{"one", "plain", "plain"},
		{"cloud", "", "plain"},
		{"cloud", "rich", "rich"},
		{"two", "", "only"},
		{"two", "rich", "only"}, // there is nothing to choose from
		{"three", "", `The provider type "three" is unknown; use one, which also fits every compatible endpoint, cloud or two.`},
		{"one", "only", `The wire "only" is unknown; use plain or rich.`},
	} {
		k, err := table.Find(test.typ, test.api)
		got := k.API
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("type %q, wire %q: %s, want %s", test.typ, test.api, got, test.want)
		}
	}
}

func TestVendorsAreInTheOrderOfTheTable(t *testing.T) {
	if list := table.Vendors(); len(list) != 1 || list[0].Scheme != "two" {
		t.Errorf("the vendors are %+v", list)
	}
}
