package event

// QuestionsRedelivered tells that open questions were put to a client again.
const QuestionsRedelivered Type = "questions.redelivered"

// QuestionsRedeliveredData names them. It is stored before the client sees them.
type QuestionsRedeliveredData struct {
	RequestIDs []string `json:"requestIds"`
}

// Type is the kind of the event.
func (QuestionsRedeliveredData) Type() Type { return QuestionsRedelivered }
