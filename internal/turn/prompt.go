package turn

// Prompt is what the system prompt is made of.
type Prompt struct {
	System  string // the prompt as it was last stored
	Context string // what hooks have added to it
	Loaded  string // what the project's files tell the model
}
