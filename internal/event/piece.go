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
