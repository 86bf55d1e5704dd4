package cli

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

func TestAServerIsFoundByItsAddressOrItsID(t *testing.T) {
	list := []api.Server{
		{ID: "AAAB", Address: "one:1", Status: api.ServerLive},
		{ID: "AACC", Address: "two:1", Status: api.ServerDraining},
		{ID: "BBBB", Address: "one:1", Status: api.ServerDead},
	}
	for name, want := range map[string]string{"one:1": "AAAB", "AAC": "AACC", "two:1": "AACC", "BBBB": "no live server", "AA": "ambiguous", "three:1": "no live server"} {
		s, err := findServer(list, name)
		if err == nil && s.ID != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %s", name, s.ID, err, want)
		}
	}
}

func TestServersNeedAnAddressAndAKey(t *testing.T) {
	for want, f := range map[string]serveFlags{
		"belong together":  {advertise: "10.0.0.7:1"},
		"together":         {clusterKey: "key"},
		"cannot reach":     {advertise: "0.0.0.0:1", clusterKey: "key"},
		"reach 10.0.0.7:0": {advertise: "10.0.0.7:0", clusterKey: "key"},
		"ADDRESS:PORT":     {advertise: "10.0.0.7", clusterKey: "key"},
	} {
		a := &app{}
		if err := a.takePart(f); err == nil || !strings.Contains(err.Error(), want) || a.cluster != nil {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
	a := &app{}
	if err := a.takePart(serveFlags{store: "postgres://x/y", advertise: "10.0.0.7:1", clusterKey: "key"}); err != nil || a.cluster.Advertise != "10.0.0.7:1" || a.storeURL != "postgres://x/y" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnAddressOfAnotherMachineIsRefusedByName(t *testing.T) {
	for _, address := range []string{"192.0.2.1:7490", "nowhere.invalid:7490"} {
		list, err := listenOn(t.Context(), "--advertise", address)
		if err == nil || !strings.Contains(err.Error(), "--advertise: this machine cannot listen at "+address) {
			t.Errorf("%s: %v, %v", address, list, err)
		}
	}
}
