package folder

// NetworkRisk says what a network file system means for a data folder.
const NetworkRisk = "locks and syncs may not hold there, so that two engines may write at once and acknowledged events may be lost after a crash; choose a folder on a local disk with ABIDE_HOME"
