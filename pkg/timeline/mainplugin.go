package timeline

// Main returns the plugin that the call's chain begins with in the configuration: the one
// that makes the interface (CNI specification, section 1). Every command of a network
// has the same. Of a DEL that ended early it is known only where the configuration is;
// else it is the plugin that the DEL came to.
func (c *Call) Main() string {
	ran := c.plugins()
	switch {
	case c.Command != "DEL":
		return ran[0]
	case len(c.NeverRun) > 0:
		return c.NeverRun[len(c.NeverRun)-1]
	}
	return ran[len(ran)-1]
}
