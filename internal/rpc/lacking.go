package rpc

// Lacking is what a machine lacks that volumes need, and what to do about it; nothing, of
// an engine that does not say.
func Lacking(engine any) []string {
	if l, ok := engine.(interface{ Lacking() []string }); ok {
		return l.Lacking()
	}
	return nil
}
