// Package oracle tests our wires against the official SDKs.
//
// It runs the stories of each wire again: the types of the SDK must be able to express
// what we send, and the SDK must decode a reply to the same result as we do. It is a
// separate module, so that the SDKs do not become dependencies of abide.
//
// There is nothing to hold against google.golang.org/genai: Gemini is asked in the form of
// OpenAI, and the SDK of Google speaks another. The one answer in Gemini's own form, the
// limits of a model, is a single number.
package oracle
