// Package eventlogtest holds what every [eventlog.Store] must do, as tests. A
// store that passes keeps the promises of package eventlog.
package eventlogtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Run tests a store. The function opens an empty one that is closed at the end
// of the test.
func Run(t *testing.T, open func(t *testing.T) eventlog.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"EventsAreNumberedWithoutGaps", numbering},
		{"AnAppendReturnsTheChainedEnd", chaining},
		{"AnAppendThatIsRefusedStoresNothing", refused},
		{"AnEmptyBatchIsAnError", empty},
		{"BytesThatAreNoEventAreRefused", malformed},
		{"TheSecondWriterLoses", secondWriter},
		{"WritersOfManySessionsDoNotDisturbEachOther", manySessions},
		{"OfManyWritersToOneSessionEachAppendFollowsAnother", oneSession},
		{"ReadYieldsWhatIsAfter", reading},
		{"ReadFromContinuesFromATrustedEnd", readingFrom},
		{"ReadFromAnEndThatNeverWasIsAConflict", readingFromNowhere},
		{"EndAtIsWhereReadingGoesOn", endAt},
		{"ReadingCanStopAndNest", stopping},
		{"ALongSessionIsReadWholeWhileItGrows", long},
		{"ASessionOfAnyLengthIsReadWhole", growing},
		{"ASessionDeletedWhileItIsReadIsNotDamaged", deletedWhileRead},
		{"AnyTextNamesASession", anyName},
		{"AnUnknownSessionIsNotFound", unknown},
		{"TheIndexSaysWhatTheLastBatchSaid", index},
		{"SessionsAreListedLastModifiedFirst", listing},
		{"AListingIsFiltered", filters},
		{"AListingGoesOnFromAPlace", listingPages},
		{"AListingMissesAndRepeatsNoSessionThatChanges", listingWhileSessionsChange},
		{"PagesMissNoSessionThatChanges", pagesWhileSessionsChange},
		{"ASearchFindsWords", search},
		{"NoSearchIsMisunderstood", searchHostile},
		{"WhatIsTakenBackIsNotFound", searchRewound},
		{"ForksAndDeletionsAreFoundAsTheyAre", searchForked},
		{"ADamagedSessionIsSearchedUpToTheDamage", searchDamaged},
		{"ASearchIsLimited", searchLimited},
		{"AMatchHasTheLineOfTheWords", searchExcerpts},
		{"ActiveListsWhatAnEngineAttendsTo", active},
		{"ReindexCorrectsTheIndexAndNothingElse", reindex},
		{"AForkSharesItsParentsEvents", fork},
		{"AForkOfAForkSharesBoth", forkOfFork},
		{"AForkAtAnotherHashIsAConflict", forkConflict},
		{"ADeletedSessionIsGone", deletion},
		{"SharedEventsStayUntilTheLastForkIsDeleted", deletionShared},
		{"AQuarantinedSessionIsReadUpToTheDamage", quarantine},
		{"AQuarantineCanBeLifted", quarantineLifted},
		{"SecretsBelongToTheirSession", secrets},
		{"SecretsChangeWithTheAppendTheyBelongTo", secretsWithAppends},
		{"AJobIsARow", jobRows},
		{"RowsChangeWithTheAppendTheyFollowFrom", jobsWithAppends},
		{"ThereIsOneRowForAKindAndABeginning", jobsOnce},
		{"TheJobThatIsDueLongestIsTakenUntilItsLeaseIsOver", jobsTaken},
		{"NoJobIsTakenTwice", jobsRaced},
		{"ADeletedSessionTakesItsJobsAlong", jobsDeleted},
		{"TheLedgerSumsUpWhatTheEventsSay", ledger},
		{"AnAppendThatIsRefusedCostsNothing", ledgerRefused},
		{"TheCostsOfADeletedSessionStay", ledgerDeleted},
		{"TheCostsOfADeletedAgentStayWithItsSession", ledgerDeletedAgent},
		{"CountingAgainGivesTheSameSums", ledgerRecounted},
		{"AClosedStoreSaysSo", closed},
		{"AnAppendWhileTheStoreIsClosedIsStoredOrRefused", closeBusy},
		{"ABigEventIsStoredWhole", big},
		{"ACancelledContextStoresNothing", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, &fixture{t, open(t)})
		})
	}
	t.Run("AnyHistoryMatchesTheModel", func(t *testing.T) {
		t.Parallel()
		model(t, open)
	})
}

// A fixture is a store under test, with verbs that end the test on error.
type fixture struct {
	*testing.T
	eventlog.Store
}

// text makes an event that says something.
func text(s string) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: s})
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return e
}

// batch makes events that follow an end.
func batch(after eventlog.End, texts ...string) eventlog.Batch {
	b := eventlog.Batch{After: after}
	for _, s := range texts {
		b.Events = append(b.Events, text(s))
	}
	return b
}

// add appends events that say something.
func (f *fixture) add(id event.SessionID, after eventlog.End, texts ...string) eventlog.End {
	f.Helper()
	end, err := f.Append(f.Context(), id, batch(after, texts...))
	if err != nil {
		f.Fatalf("append to %s after %d: %v", id, after.Seq, err)
	}
	return end
}

// branch forks a session.
func (f *fixture) branch(child, parent event.SessionID, at eventlog.End, texts ...string) eventlog.End {
	f.Helper()
	end, err := f.Fork(f.Context(), child, parent, batch(at, texts...))
	if err != nil {
		f.Fatalf("fork %s from %s at %d: %v", child, parent, at.Seq, err)
	}
	return end
}

// said returns what the events after a position say, and the error that ended
// the reading.
func (f *fixture) said(id event.SessionID, after event.Seq) (texts []string, err error) {
	f.Helper()
	next := after + 1
	for e, err := range f.Read(f.Context(), id, after) {
		if err != nil {
			return texts, err
		}
		if e.Seq != next {
			f.Errorf("read %s: event %d where %d was expected", id, e.Seq, next)
		}
		next++
		texts = append(texts, message(f, e))
	}
	return texts, nil
}

func message(t interface{ Fatal(...any) }, e event.Event) string {
	info, err := event.As[event.SessionInfoData](e)
	if err != nil {
		t.Fatal(err)
	}
	return info.Message
}

// says checks all that a session says.
func (f *fixture) says(id event.SessionID, want ...string) {
	f.Helper()
	got, err := f.said(id, 0)
	if err != nil {
		f.Fatalf("read %s: %v", id, err)
	}
	if !slices.Equal(got, want) {
		f.Errorf("%s says %q, want %q", id, got, want)
	}
}

// fails checks for an error.
func (f *fixture) fails(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: err = %v, want %v", what, err, want)
	}
}

// end asks the index for the end of a session.
func (f *fixture) end(id event.SessionID) eventlog.End {
	f.Helper()
	s, err := f.Session(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return s.End
}

// names lists sessions.
func (f *fixture) names() []event.SessionID {
	f.Helper()
	var ids []event.SessionID
	for s, err := range f.Sessions(f.Context(), eventlog.Query{}) {
		if err != nil {
			f.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	return ids
}
