package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// here returns the default working directory of sessions.
func (a *app) here() (string, error) {
	loaded, err := a.settings()
	if err != nil {
		return "", err
	}
	if dir := loaded.Config.Pod.Pwd; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", configError(fmt.Errorf("pod.pwd in %s: %s is not a directory", loaded.Origins["pod.pwd"], dir))
		}
		return dir, nil
	}
	return os.Getwd()
}

// dataFolder returns the data folder: the value of the flag, the first of the given
// environment variables that is set, or the default of the XDG specification.
func dataFolder(flag string, variables ...string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	for _, name := range variables {
		if dir := os.Getenv(name); dir != "" {
			return dir, nil
		}
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "abide"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", configError(errors.New("there is no home directory for the data: set HOME, or name a data folder with ABIDE_HOME or --home"))
	}
	return filepath.Join(home, ".local", "share", "abide"), nil
}
