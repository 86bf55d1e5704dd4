package event

import "bytes"

// A Piece is an event that is a piece of a text, cut where the text is. Pieces of the
// same stream can be joined: the head of the first, all texts in order, and the end.
type Piece struct {
	Head   []byte // the envelope up to the text
	Stream []byte // bytes that all pieces of one text share: the end of the head, from parentId on
	Text   []byte // the piece of the text, as it is encoded in JSON
}

// PieceEnd follows the text of every piece.
const PieceEnd = `"}}`

// CutPiece cuts an event that is a piece of a text, without copying it. It is false for
// other events. It relies on how [Encode] writes: the members of the envelope in their
// order, no space between members, quotes in values escaped, and the text last.
func (e Event) CutPiece() (Piece, bool) {
	field := e.Kind().Grows
	if field == "" || !bytes.HasSuffix(e.Bytes, []byte(PieceEnd)) {
		return Piece{}, false
	}
	parent := bytes.Index(e.Bytes, []byte(`,"parentId":`)) // everything before it differs from piece to piece
	text := bytes.Index(e.Bytes, []byte(`"`+field+`":"`))
	if parent < 0 || text < parent {
		return Piece{}, false
	}
	text += len(field) + len(`"":"`)
	end := len(e.Bytes) - len(PieceEnd)
	if text > end || endsBefore(e.Bytes[text:end]) {
		return Piece{}, false
	}
	return Piece{Head: e.Bytes[:text], Stream: e.Bytes[parent:text], Text: e.Bytes[text:end]}, true
}

// endsBefore reports whether the text of a JSON string contains the quote that ends it.
func endsBefore(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return false
		}
		if escapes := i - len(bytes.TrimRight(text[:i], `\`)); escapes%2 == 0 {
			return true
		}
		text = text[i+1:]
	}
}

// A plainBody is a body that can be written without package json, which takes longer. There
// are hundreds of pieces in an answer.
type plainBody interface {
	// writePlain writes the body as package json does. It writes nothing and returns false
	// if a text is not plain.
	writePlain(buf *bytes.Buffer) bool
}

func (d MessageDeltaData) writePlain(buf *bytes.Buffer) bool {
	return writePiece(buf, `{"messageId":"`, d.MessageID, d.DeltaContent)
}

func (d ReasoningDeltaData) writePlain(buf *bytes.Buffer) bool {
	return writePiece(buf, `{"reasoningId":"`, d.ReasoningID, d.DeltaContent)
}

func writePiece(buf *bytes.Buffer, opening, id, text string) bool {
	if !isPlain(id) || !isPlain(text) {
		return false
	}
	buf.WriteString(opening)
	buf.WriteString(id)
	buf.WriteString(`","deltaContent":"`)
	buf.WriteString(text)
	buf.WriteString(`"}`)
	return true
}

// isPlain reports whether a text consists of printable ASCII that JSON does not escape.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
