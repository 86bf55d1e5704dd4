package event

// TaskDone tells that the model says that all is done that was asked for.
const TaskDone Type = "session.task_complete"
