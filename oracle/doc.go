// Package oracle tests our wires against the official SDKs.
//
// It runs the stories of each wire again: the types of the SDK must be able to express
// what we send, and the SDK must decode a reply to the same result as we do. It is a
// separate module, so that the SDKs do not become dependencies of abide.
//
// Gemini is asked in the form of OpenAI, and google.golang.org/genai speaks another one. It
// is held against the two answers that Gemini gives in its own form: the limits of a model,
// and the details of a refusal.
package oracle
