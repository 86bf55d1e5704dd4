package session

import (
	"reflect"
	"testing"
)

func TestEveryActivityIsInTheList(t *testing.T) {
	listed := map[reflect.Type]bool{}
	for _, a := range new(Session).activities() {
		listed[reflect.TypeOf(a)] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Session]()) {
		if is := reflect.PointerTo(field.Type); is.Implements(reflect.TypeFor[activity]()) && !listed[is] {
			t.Errorf("%s is an activity that Session.activities lacks: it would not be stopped", field.Name)
		}
	}
}
