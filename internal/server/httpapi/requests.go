package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// A startRequest is the body of a start request.
type startRequest struct {
	Command    string            `json:"command"`
	Workdir    string            `json:"workdir"`
	Env        map[string]string `json:"env"`
	Background bool              `json:"background"`
	Key        string            `json:"key"`
	Title      string            `json:"title"`
}

// decodeStart reads a startRequest.
func decodeStart(body io.Reader) (startRequest, error) {
	var r startRequest
	if err := decode(body, &r); err != nil {
		return r, err
	}
	if strings.TrimSpace(r.Command) == "" {
		return r, invalid("command is required")
	}
	for name := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return r, invalid("env: %q is not a valid name of a variable", name)
		}
	}
	return r, nil
}

// A signalRequest is the body of a signal request.
type signalRequest struct {
	Signal string `json:"signal"`
}

// decodeSignal reads a signalRequest.
func decodeSignal(body io.Reader) (string, error) {
	var r signalRequest
	if err := decode(body, &r); err != nil {
		return "", err
	}
	if r.Signal == "" {
		return "", invalid("signal is required: kill, terminate, or a name such as SIGINT")
	}
	return r.Signal, nil
}

// decode reads one JSON value, and refuses fields that v does not have.
func decode(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.Decode(new(json.RawMessage)) != io.EOF {
		err = errors.New("there is more than one value")
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &apiError{http.StatusRequestEntityTooLarge, "too_large", "the request is larger than 2 MiB"}
	case err != nil:
		return invalid("the body is not a valid request: %v", err)
	}
	return nil
}
