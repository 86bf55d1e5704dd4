//go:build !linux

package main

// measureChat measures nothing: the terminals of this system are opened in another way.
func measureChat(place, string, string) error { return nil }
