package config

// Changes returns the keys that differ between two configurations: those that can take effect at
// once, and those that need a restart.
func Changes(old, now Config) (live, restart []string) {
	before, after := old.Fields(), now.Fields()
	for i, f := range after {
		if f.Section || f.Text() == before[i].Text() {
			continue
		}
		if f.Live {
			live = append(live, f.Path)
		} else {
			restart = append(restart, f.Path)
		}
	}
	return live, restart
}

// Live returns c with the live keys of another configuration.
func (c Config) Live(now Config) Config {
	ours, theirs := c.Fields(), now.Fields()
	for i, f := range ours {
		if f.Live && !f.Section {
			f.value.Set(theirs[i].value)
		}
	}
	return c
}
