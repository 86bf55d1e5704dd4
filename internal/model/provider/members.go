package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// members are members of a JSON object by their names.
type members = map[string]json.RawMessage

// rest is what a decoded object has beside its fields.
type rest struct {
	unknown members         // members without a field
	err     error           // the reason why the stored object cannot be read; nil if it can
	stored  json.RawMessage // the stored object, if it cannot be read
}

// fields are the names of the members that a struct has fields for.
type fields []string

var (
	providerFields = fieldsOf(reflect.TypeFor[Provider]())
	modelFields    = fieldsOf(reflect.TypeFor[Model]())
	secretFields   = fieldsOf(reflect.TypeFor[Secret]())
)

func fieldsOf(t reflect.Type) (names fields) {
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// has reports whether encoding/json decodes a member into one of the fields: it
// ignores case.
func (f fields) has(name string) bool {
	return slices.Contains(f, name) || slices.ContainsFunc(f, func(known string) bool { return strings.EqualFold(known, name) })
}

// decode decodes a JSON object into a struct, and returns the members that the struct
// has no fields for.
func decode(b []byte, into any, known fields) (unknown members, err error) {
	if err := json.Unmarshal(b, into); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &unknown); err != nil {
		return nil, err
	}
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool { return known.has(name) })
	if len(unknown) == 0 {
		return nil, nil
	}
	return unknown, nil
}

// encode encodes a struct as a JSON object, with further members after its own.
func encode(fields any, further members) ([]byte, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-1]
	for _, name := range slices.Sorted(maps.Keys(further)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, quoted...), ':'), further[name]...)
	}
	return append(b, '}'), nil
}

// The types without methods are decoded and encoded by their fields alone.
type (
	providerOnly Provider
	modelOnly    Model
	secretOnly   Secret
)

// UnmarshalJSON decodes a provider and keeps the members that it has no fields for.
// The error of a wrong field is a *json.UnmarshalTypeError that names it.
func (p *Provider) UnmarshalJSON(b []byte) (err error) {
	p.unknown, err = decode(b, (*providerOnly)(p), providerFields)
	return err
}

// MarshalJSON encodes the provider with its keys.
func (p Provider) MarshalJSON() ([]byte, error) {
	if p.err != nil {
		return p.stored, nil
	}
	return encode(providerOnly(p), p.unknown)
}

// UnmarshalJSON decodes a model and keeps the members that it has no fields for.
func (m *Model) UnmarshalJSON(b []byte) (err error) {
	m.unknown, err = decode(b, (*modelOnly)(m), modelFields)
	return err
}

// MarshalJSON encodes the model.
func (m Model) MarshalJSON() ([]byte, error) {
	if m.err != nil {
		return m.stored, nil
	}
	return encode(modelOnly(m), m.unknown)
}

// UnmarshalJSON decodes a secret and keeps the members that it has no fields for.
func (s *Secret) UnmarshalJSON(b []byte) (err error) {
	s.unknown, err = decode(b, (*secretOnly)(s), secretFields)
	return err
}

// MarshalJSON encodes the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return encode(secretOnly(s), s.unknown) }

// encodeList encodes a list whose elements encode themselves. Unlike json.Marshal, it
// leaves unknown members as they are.
func encodeList[T json.Marshaler](list []T) (json.RawMessage, error) {
	if list == nil {
		return json.RawMessage("null"), nil
	}
	b := []byte{'['}
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		text, err := element.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return append(b, ']'), nil
}

// fieldError returns the error of decoding what is stored under a name, with the name
// of the field that is wrong.
func fieldError(name string, err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if wrong.Field != "" {
		name += "." + wrong.Field
	}
	return fmt.Errorf("%s: want %s, have %s", name, wrong.Type, wrong.Value)
}
