package lazyregexp

import (
	"sync"
	"testing"
)

func TestConcurrentFirstUses(t *testing.T) {
	r := New(`^a+$`)
	if r.compiled != nil {
		t.Error("the expression is compiled before its first use")
	}
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			if !r.MatchString("aaa") || r.MatchString("ab") {
				t.Error("the expression does not match what it should")
			}
		})
	}
	users.Wait()
}

func TestAnInvalidPatternPanicsAtItsFirstUse(t *testing.T) {
	r := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("an invalid pattern was used without a panic")
		}
	}()
	r.MatchString("")
}
