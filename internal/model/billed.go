package model

import "errors"

// A BilledError is the error of an attempt that the provider has counted all the same: it
// said what the request costs before the reply broke off. It wraps the error that the
// attempt would have had otherwise.
type BilledError struct {
	Usage     Usage
	RequestID string // id that the provider gave the request
	Err       error
}

func (e *BilledError) Error() string { return e.Err.Error() }
func (e *BilledError) Unwrap() error { return e.Err }

// Billed returns the error of an attempt, with what the provider has counted in the part
// of the reply that has arrived. It is nil if nothing has.
func Billed(err error, arrived *Reply) error {
	if err == nil || arrived == nil || arrived.Usage == (Usage{}) {
		return err
	}
	return &BilledError{Usage: arrived.Usage, RequestID: arrived.RequestID, Err: err}
}

// BilledIn returns what the provider has counted of a failed attempt; nil if that is
// nothing.
func BilledIn(err error) *BilledError {
	var billed *BilledError
	errors.As(err, &billed)
	return billed
}
