package rpc

import (
	"bytes"
	"encoding/json"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
)

// mended returns an event as typed clients can read it. That is the stored one,
// except for some that older versions have stored without a field that typed
// clients require, or with a word that they do not know: a session with such an
// event could not be read by them at all. The log stays as it is, and whoever asks
// for the log itself is sent what is stored.
func mended(e event.Event) event.Event {
	mend := menders[e.Type]
	if mend == nil || !bytes.Contains(e.Bytes, mend.where) {
		return e
	}
	before, data, found := bytes.Cut(e.Bytes, dataKey)
	if !found || len(data) == 0 {
		return e
	}
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(data[:len(data)-1], &fields) != nil || !mend.change(fields) {
		return e
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return e
	}
	e.Bytes = bytes.Join([][]byte{before, dataKey, text, closing}, nil)
	return e
}

var dataKey = []byte(`,"data":`)

// A mender completes the data of events of a kind that have a text in them. It
// reports whether there was something to change.
type mender struct {
	where  []byte
	change func(data map[string]json.RawMessage) bool
}

var menders = map[event.Type]*mender{
	event.ToolComplete:       {[]byte(`"type":"terminal"`), mendResult},
	event.PermissionDone:     {[]byte(`"approved-for-`), mendApproval},
	event.SystemNotification: {[]byte(`"kind":null`), mendKind},
	event.UserMessage:        {[]byte(`"attachments":[{`), mendAttachments},
	event.Abort:              {[]byte(`"reason":`), mendReason},
}

// mendResult gives terminals a text.
func mendResult(data map[string]json.RawMessage) bool {
	var result map[string]json.RawMessage
	var parts []map[string]json.RawMessage
	if json.Unmarshal(data["result"], &result) != nil || json.Unmarshal(result["contents"], &parts) != nil {
		return false
	}
	changed := false
	for _, part := range parts {
		if string(part["type"]) == `"terminal"` && part["text"] == nil {
			part["text"], changed = json.RawMessage(`""`), true
		}
	}
	return changed && put(result, "contents", parts) && put(data, "result", result)
}

// mendApproval lets a yes for longer say what it covers. Older versions have
// stored the grants beside it.
func mendApproval(data map[string]json.RawMessage) bool {
	var result map[string]json.RawMessage
	var grants []event.Grant
	if json.Unmarshal(data["result"], &result) != nil {
		return false
	}
	_ = json.Unmarshal(data["grants"], &grants) // there may be none
	changed := false
	if result["approval"] == nil {
		changed = put(result, "approval", approval.Coverage{}.Completed(grants, "unknown"))
	}
	if string(result["kind"]) == `"`+event.ApprovedForLocation+`"` && result["locationKey"] == nil {
		changed = put(result, "locationKey", ".")
	}
	return changed && put(data, "result", result)
}

func mendKind(data map[string]json.RawMessage) bool {
	return string(data["kind"]) == "null" && put(data, "kind", map[string]string{"type": "unclassified"})
}

func mendAttachments(data map[string]json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(data["attachments"], &list) != nil {
		return false
	}
	complete := transcript.Completed(list)
	for i := range list {
		if !bytes.Equal(list[i], complete[i]) {
			return put(data, "attachments", complete)
		}
	}
	return false
}

func mendReason(data map[string]json.RawMessage) bool {
	var was event.AbortData
	if json.Unmarshal(data["reason"], &was.Reason) != nil {
		return false
	}
	is := event.AbortFor(was.Reason)
	return is.Reason != was.Reason && put(data, "reason", is.Reason) && put(data, "detail", is.Detail)
}

// put sets a field. It reports true unless the value cannot be encoded.
func put(to map[string]json.RawMessage, name string, value any) bool {
	text, err := json.Marshal(value)
	if err != nil {
		return false
	}
	to[name] = text
	return true
}
