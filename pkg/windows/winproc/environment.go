package winproc

import (
	"slices"
	"strings"
)

var ordinary = []string{
	"ALLUSERSPROFILE", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "COMSPEC", "DRIVERDATA",
	"NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER", "PROCESSOR_LEVEL",
	"PROCESSOR_REVISION",
	"PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROGRAMW6432", "PSMODULEPATH", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "WINDIR",
}

// told removes ordinary variables and PATH entries of Windows, and converts CNI paths to slashes.
func told(environment []string) (all []string) {
	root := ""
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); strings.EqualFold(name, "SystemRoot") {
			root = strings.ToLower(slashed(value)) + "/"
		}
	}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch name = strings.ToUpper(name); {
		case slices.Contains(ordinary, name):
		case name == "PATH":
			own := slices.DeleteFunc(strings.Split(value, ";"), func(folder string) bool {
				return root != "" && strings.HasPrefix(strings.ToLower(slashed(folder))+"/", root)
			})
			all = append(all, "PATH="+strings.Join(own, ";"))
		case name == "CNI_PATH":
			all = append(all, "CNI_PATH="+slashed(value))
		default:
			all = append(all, variable)
		}
	}
	return all
}
