package rpc

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/event"
)

// An old is data as an older version has stored it.
type old struct {
	event.Payload
	data string
}

func (o old) MarshalJSON() ([]byte, error) { return []byte(o.data), nil }

// TestWhatOlderVersionsStoredCanBeReadByTypedClients: events that typed clients
// cannot read are shown mended, and all others as they are stored.
func TestWhatOlderVersionsStoredCanBeReadByTypedClients(t *testing.T) {
	for _, test := range []struct {
		kind event.Payload
		data string
		same bool // it is shown as it is stored
	}{
		{event.ToolCompleteData{}, `{"toolCallId":"c","success":true,"result":{"content":"x","contents":[{"type":"terminal","shellId":"1","result":{"status":"running"}},{"type":"shell_exit","shellId":"2","exitCode":0}]}}`, false},
		{event.ToolCompleteData{}, `{"toolCallId":"c","success":true,"result":{"content":"\"type\":\"terminal\"","contents":[{"type":"terminal","text":"t"}]}}`, true},
		{event.ToolCompleteData{}, `{"toolCallId":"c","success":true,"result":{"content":",\"data\":\"type\":\"terminal\""}}`, true},
		{event.PermissionDoneData{}, `{"requestId":"q","result":{"kind":"approved-for-session"},"grants":[{"kind":"shell","subject":"ls"}]}`, false},
		{event.PermissionDoneData{}, `{"requestId":"q","result":{"kind":"approved-for-session"}}`, false},
		{event.PermissionDoneData{}, `{"requestId":"q","result":{"kind":"approved-for-location","approval":{"kind":"write"}}}`, false},
		{event.PermissionDoneData{}, `{"requestId":"q","result":{"kind":"approved-for-session","approval":{"kind":"write"}}}`, true},
		{event.PermissionDoneData{}, `{"requestId":"q","result":{"kind":"approved"}}`, true},
		{event.SystemNotificationData{}, `{"content":"lost","kind":null}`, false},
		{event.SystemNotificationData{}, `{"content":"\"kind\":null","kind":{"type":"shell_completed","shellId":"1"}}`, true},
		{event.UserMessageData{}, `{"content":"look","attachments":[{"type":"file","path":"/a/b"}]}`, false},
		{event.UserMessageData{}, `{"content":"look","attachments":[{"type":"file","path":"/a/b","displayName":"b"}]}`, true},
		{event.AbortData{}, `{"reason":"rewind"}`, false},
		{event.AbortData{}, `{"reason":"user_initiated"}`, true},
	} {
		e, err := event.Encode(event.Head{ID: "1", Time: time.Unix(0, 0)}, old{test.kind, test.data})
		if err != nil {
			t.Fatal(err)
		}
		stored := bytes.Clone(e.Bytes)
		shown := mended(e)
		if faults := shapetest.Event(shown.Bytes); len(faults) > 0 || !json.Valid(shown.Bytes) {
			t.Errorf("%s is shown as %s: %q", stored, shown.Bytes, faults)
		}
		if bytes.Equal(shown.Bytes, stored) != test.same || !bytes.Equal(e.Bytes, stored) {
			t.Errorf("%s is shown as %s", stored, shown.Bytes)
		}
	}
}
