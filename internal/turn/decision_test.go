package turn_test

import (
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// TestDecisionsAreRecordedInTheWordsOfApproval: what a judgement rests on is recorded as
// package approval says it, so both packages have the same words.
func TestDecisionsAreRecordedInTheWordsOfApproval(t *testing.T) {
	for recorded, judged := range map[string]string{
		event.ByRule: approval.ByRule, event.ByGrant: approval.ByGrant, event.BySet: approval.BySet, event.ByScope: approval.ByScope,
	} {
		if recorded != judged {
			t.Errorf("event records %q, approval says %q: make them the same", recorded, judged)
		}
	}
}
